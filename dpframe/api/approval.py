"""Plans that need an approval before they run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from dpframe.core.tree import visible
from dpframe.errors import DPFrameError, PlanMismatch
from dpframe.ledger.approvals import KEY_VARIABLE, Approval, Planned, Requirement, valid
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.place import DEFAULT_NAME
from dpframe.plan.document import (
    earlier_fingerprint,
    says_the_same,
    stated_in,
    template_fingerprint,
)
from dpframe.report import Plan

_MOST = 20
"""Lines of a difference that a message shows."""

_SAME = "nothing but what documents of earlier versions do not say"

_COMPARED = 100
"""Approved plans that another is compared with, the newest first: each takes
milliseconds, or some fifty where many parts share a cost."""


def require_approved(plan: Plan, ledger: Ledger, name: str, needed: Requirement) -> None:
    """Refuse a plan whose fingerprint is not approved for the current budget of that name.

    The charge checks this again, because an approval may be used up or revoked in between.
    """
    fingerprint, ledgers, bound = plan.fingerprint, ledger.identities, ledger.bound
    approvals = ledger.approvals
    same = needed.same(approvals, fingerprint)
    if any(needed.counting(same, ledgers, bound)):
        return
    counted = tuple(valid(approvals, needed.key))
    lapsed = [a for a in same if a in counted]
    why = (
        needed.reasons(lapsed, ledgers, bound) or _outside(plan, counted) or _nearest(plan, counted)
    )
    option = "" if name == DEFAULT_NAME else f" --name {shlex.quote(name)}"
    review = f"`dpframe approve PLAN.json --by WHO --ledger WHERE{option}`"
    remedy: str | tuple[str, str] = f"have it reviewed: write it with plan.to_json(), then {review}"
    if not lapsed and (names := _approved_for(ledger, needed, fingerprint)):
        why = f"it is approved for {' and '.join(map(repr, names))}, not for the budget {name!r}"
        remedy = (
            f"open the session with name={names[0]!r}",
            f"have it approved for this budget: {review}",
        )
    if unsigned := len(approvals) - len(counted):
        are = "approval is" if unsigned == 1 else "approvals are"
        why += f"\n    {unsigned} {are} not signed with the key in {KEY_VARIABLE}, and cannot count"
    raise PlanMismatch(f"the plan {fingerprint[:16]} is not approved", why=why, remedy=remedy)


def _approved_for(ledger: Ledger, needed: Requirement, fingerprint: str) -> list[str]:
    """The names of other budgets for which this very plan, or a range with it, is approved."""
    return [
        name
        for name, approvals in sorted(ledger.other_approvals.items())
        if any(a.revoked is None for a in needed.same(valid(approvals, needed.key), fingerprint))
    ]


def nearest(plan: Plan, approvals: Sequence[Approval]) -> tuple[Approval, str] | None:
    """The approved plan with the fewest differences, and these, in words; of several the one that
    was approved last.
    """
    newest: dict[str, Approval] = {}
    for approval in reversed(approvals):
        newest.setdefault(approval.fingerprint, approval)
    found: list[tuple[Approval, str]] = []
    for approval in list(newest.values())[:_COMPARED]:
        try:
            approved, stated = Plan.from_json(approval.document), stated_in(approval.document)
        except DPFrameError:  # written by a version that this one cannot read
            continue
        if _is_of(approval, approved, stated):
            found.append((approval, _differences(approval, approved, plan)))
    return min(found, key=lambda f: len(f[1].splitlines()), default=None)


def _differences(approval: Approval, approved: Plan, plan: Plan) -> str:
    """The differences from an approved plan and their possible consequences, without values of
    parameters that the approval covers.
    """
    given = {parameter.name: parameter for parameter in plan.parameters}
    covered = [n for n, found in approval.allowed if n in given and found.covers(given[n])]
    lines = approved.diff(plan).splitlines()
    if not covered:
        return "\n".join(lines)
    values = [f"parameter {one.words()} -> " for one in approved.parameters if one.name in covered]
    left_out = (*map(visible, values), "known after ", "reads ")
    return "\n".join(line for line in lines if not line.startswith(left_out))


def planned(plan: Plan) -> Planned:
    """What approvals of other fingerprints look at in a plan."""
    made: dict[tuple[tuple[str, str], ...], str] = {}
    same: dict[int, bool] = {}

    def template(allowed: Mapping[str, str]) -> str:
        known = tuple(sorted(allowed.items()))
        if known not in made:
            made[known] = template_fingerprint(plan, allowed)
        return made[known]

    def is_same(approval: Approval) -> bool:
        if approval.number not in same:
            same[approval.number] = _says_the_same(approval, plan)
        return same[approval.number]

    return Planned(plan.parameters, template, is_same)


def _says_the_same(approval: Approval, plan: Plan) -> bool:
    """Whether an approval that the edition before recorded is of a plan that says all that this one
    does but types of columns. That edition's fingerprint did not cover all that a reviewer saw, so
    the document that was approved is compared.
    """
    allowed = {name: found.words for name, found in approval.allowed}
    try:
        if allowed:
            earlier = template_fingerprint(plan, allowed, earlier=True)
        else:
            earlier = earlier_fingerprint(plan)
        if approval.fingerprint != earlier:
            return False
        return says_the_same(Plan.from_json(approval.document), plan, allowed)
    except (DPFrameError, KeyError):
        return False


def _is_of(approval: Approval, plan: Plan, stated: str) -> bool:
    """Whether a document is that of what was approved: the plan, or one of the range."""
    if not approval.allowed:
        return approval.fingerprint == stated
    allowed = {name: found.words for name, found in approval.allowed}
    try:
        made = [template_fingerprint(plan, allowed, earlier=e) for e in (False, True)]
    except KeyError:
        return False
    return approval.fingerprint in made


def _outside(plan: Plan, approvals: Sequence[Approval]) -> str:
    """The values of a plan that lie outside all approvals of otherwise equal plans."""
    given = {parameter.name: parameter for parameter in plan.parameters}
    for approval in reversed(approvals):
        if approval.allowed and _is_of(approval, plan, ""):
            wrong = [
                f"{name} is {given[name].value_words}, and the approval is for {found.words}"
                for name, found in approval.allowed
                if not found.covers(given[name])
            ]
            return ", ".join(wrong)
    return ""


def _nearest(plan: Plan, approvals: Sequence[Approval]) -> str:
    found = nearest(plan, approvals)
    if found is None:
        return "the ledger has no approved plan to compare it with"
    approval, words = found
    lines = words.splitlines() or [_SAME]
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return (
        f"it differs from {approval.fingerprint[:16]}, which {approval.by} approved on "
        f"{approval.time:%Y-%m-%d}:" + "".join(f"\n    {line}" for line in [*lines[:_MOST], *more])
    )
