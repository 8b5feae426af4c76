"""Plans that need somebody's approval before they run."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.errors import DPFrameError, PlanMismatch
from dpframe.ledger.approvals import Approval, valid
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.signatures import KEY_VARIABLE, ApprovalKey
from dpframe.plan import Plan

_MOST = 20
"""Lines of a difference that a message shows."""


def require_approved(plan: Plan, ledger: Ledger) -> None:
    """Refuse a plan whose fingerprint nobody approved.

    Raises
    ------
    PlanMismatch
        With what is different from the nearest plan that somebody approved.
    LedgerError
        When the key in the environment is none.
    """
    fingerprint, key = plan.fingerprint, ApprovalKey.from_environment()
    approvals = ledger.approvals
    counted = tuple(valid(approvals, key))
    if any(approval.fingerprint == fingerprint for approval in counted):
        return
    unsigned = len(approvals) - len(counted)
    raise PlanMismatch(
        f"the plan {fingerprint[:16]} is not approved{_unsigned(unsigned)}; "
        f"{_nearest(plan, counted)}",
        remedy="have it reviewed: write it with plan.to_json(), then "
        "`dpframe approve PLAN.json --by NAME --ledger WHERE`",
    )


def nearest(plan: Plan, approvals: Sequence[Approval]) -> tuple[Approval, str] | None:
    """The approved plan with the fewest differences, and these, in words."""
    found: list[tuple[int, int, Approval, str]] = []
    for number, approval in enumerate(approvals):
        try:
            approved = Plan.from_json(approval.document)
        except DPFrameError:  # written by another version
            continue
        if approved.fingerprint == approval.fingerprint:
            words = approved.diff(plan)
            found.append((words.count("\n") + bool(words), -number, approval, words))
    if not found:
        return None
    _, _, approval, words = min(found, key=lambda f: f[:2])
    return approval, words


def _nearest(plan: Plan, approvals: Sequence[Approval]) -> str:
    found = nearest(plan, approvals)
    if found is None:
        return "the ledger has no approved plan to compare it with"
    approval, words = found
    lines = words.splitlines()
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return (
        f"it differs from {approval.fingerprint[:16]}, which {approval.by} approved on "
        f"{approval.time:%Y-%m-%d}:" + "".join(f"\n    {line}" for line in [*lines[:_MOST], *more])
    )


def _unsigned(number: int) -> str:
    if not number:
        return ""
    return f" ({number} approvals are not signed with the key in {KEY_VARIABLE}, and do not count)"
