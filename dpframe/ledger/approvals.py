"""Approvals of plans, as a ledger keeps them: who approved which fingerprint, for which budget, how
often and until when; and the plan itself.

An approval is a record of the ledger's chain like any other, so adding, altering or dropping it
is as hard, and as visible, as for a charge. It is bound to what its reviewer saw: the plan, the
name of the budget, the ledger and the amount. When any of these is another one, it does not
count. What it approves is kept with it, so that another plan can be compared with it later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from dpframe.core import clock
from dpframe.core.parameters import Parameter
from dpframe.errors import PlanMismatch
from dpframe.ledger.bound import Bound
from dpframe.ledger.ranges import Allowed, allowed_fields, covers_all, read_allowed
from dpframe.ledger.record import Record
from dpframe.ledger.signatures import KEY_VARIABLE, ApprovalKey

_OLD_FIELDS = {"plan", "signature"}
_FIELDS = _OLD_FIELDS | {"id", "ledger", "budget", "runs", "until"}
_ALLOWED = "parameters"
"""A field of approvals of a range of parameters alone."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One approved plan, or all plans that differ from it only in values of parameters.

    Parameters
    ----------
    name
        The budget that the plan may be charged to.
    fingerprint
        The fingerprint of the plan; for an approval of a range, that of its template, the plan
        without the values.
    by
        Who approved it.
    time
        When, UTC.
    document
        The plan as JSON.
    signature
        The signature of the whole approval; None if unsigned.
    id
        Another one for each approval, so that a copy of one is known; None in old records.
    ledger
        The identity of the ledger that it is for.
    bound
        The amount that it is for. Old records name none: then that which the budget had when they
        were written, and None if it was not open.
    runs
        How often the plan may be charged; None for as often as the budget allows.
    until
        The last day on which it may be, UTC.
    number
        The number of the record.
    used
        How often the plan was charged by it.
    revoked
        Who took it back, if anybody did.
    allowed
        What parameters of the plan may be; those that are not here are as they are in the plan.
    """

    name: str
    fingerprint: str
    by: str
    time: datetime
    document: str
    signature: str | None
    id: str | None = None
    ledger: str | None = None
    bound: Bound | None = None
    runs: int | None = None
    until: date | None = None
    number: int = 0
    used: int = 0
    revoked: str | None = None
    allowed: Allowed = ()

    @property
    def is_old(self) -> bool:
        """Whether it was written when approvals named neither ledger nor amount."""
        return self.id is None

    @property
    def left(self) -> int | None:
        """How many runs are left; None for any number."""
        return None if self.runs is None else self.runs - self.used

    def signed_fields(self) -> list[Any]:
        """All that its signature covers."""
        amount = None if self.bound is None else self.bound.fields()
        until = None if self.until is None else self.until.isoformat()
        fields = [self.id, self.ledger, self.name, self.fingerprint, self.by]
        ranges = [allowed_fields(self.allowed)] if self.allowed else []
        return [*fields, amount, self.runs, until, *ranges]

    def allows(self, fingerprint: str | None, covered: Covered | None) -> bool:
        """Whether a charge may name it: for its plan, for one that its template covers, or for one
        whose fingerprint the edition before would have made so.
        """
        if covered is None:
            return not self.allowed and fingerprint == self.fingerprint
        if covered.parameters and not self.allowed:  # an approval of one plan leaves none open
            return False
        return covered.template == self.fingerprint and covers_all(self.allowed, covered.parameters)

    def limits(self) -> str:
        """How often and until when, in words; empty when there is no limit."""
        runs = "" if self.runs is None else f"{self.used} of {self.runs} runs"
        until = "" if self.until is None else f"until {self.until}"
        revoked = "" if self.revoked is None else f"revoked by {self.revoked}"
        ranges = ", ".join(f"{name} {found.words}" for name, found in self.allowed)
        return ", ".join(part for part in (ranges, runs, until, revoked) if part)


def read_approval(record: Record) -> Approval:
    """The approval that a record holds.

    Raises
    ------
    ValueError, TypeError
        When it holds none.
    """
    fields = json.loads(record.why or "")
    if not isinstance(fields, dict) or not record.fingerprint:
        raise ValueError
    document, signature = fields.get("plan"), fields.get("signature")
    if not isinstance(document, str) or not isinstance(signature, str | None) or not record.who:
        raise TypeError
    time = datetime.fromisoformat(record.time)
    made = record.name, record.fingerprint, record.who, time, document, signature
    if fields.keys() == _OLD_FIELDS:
        return Approval(*made, number=record.seq)
    allowed = read_allowed(fields.pop(_ALLOWED)) if _ALLOWED in fields else ()
    if fields.keys() != _FIELDS:
        raise ValueError
    given, ledger, runs, until = (fields[key] for key in ("id", "ledger", "runs", "until"))
    if not isinstance(given, str) or not isinstance(ledger, str):
        raise TypeError
    if runs is not None and (type(runs) is not int or runs < 1):
        raise ValueError
    day = None if until is None else date.fromisoformat(until)
    bound = Bound.read(fields["budget"])
    return Approval(*made, given, ledger, bound, runs, day, number=record.seq, allowed=allowed)


Signed = Literal[
    "unsigned",
    "signed, not checked",
    "signed",
    "signature is wrong",
    "signed without the amount",
]


def signed(approval: Approval, key: ApprovalKey | None) -> Signed:
    """The state of its signature, checked with the available key."""
    if approval.signature is None:
        return "unsigned"
    if approval.is_old:
        return "signed without the amount"
    if key is None:
        return "signed, not checked"
    right = key.verifies(approval.signature, *approval.signed_fields())
    return "signed" if right else "signature is wrong"


def valid(approvals: Iterable[Approval], key: ApprovalKey | None) -> Iterator[Approval]:
    """The approvals made by a person who may approve: with a key, only those that it verifies."""
    return (a for a in approvals if key is None or signed(a, key) == "signed")


@dataclass(frozen=True, slots=True)
class Covered:
    """How an approval of another fingerprint covers a charge: by the template of the plan and the
    parameters that may have other values, or by the fingerprint that the previous edition would
    have made, without parameters.
    """

    template: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """What approvals of other fingerprints than a plan's look at in it.

    Parameters
    ----------
    parameters
        All of its parameters.
    template
        Its fingerprint without the values of some, given what these may be, in words, by name.
    is_same
        Whether an approval that the edition before recorded, whose fingerprints covered less, is of
        a plan that says all that this one does but types of columns.
    """

    parameters: tuple[Parameter, ...]
    template: Callable[[Mapping[str, str]], str]
    is_same: Callable[[Approval], bool]

    def covered(self, approval: Approval) -> Covered | None:
        """How an approval of another fingerprint covers the plan; None where it does not."""
        if not covers_all(approval.allowed, self.parameters):
            return None
        names = {name for name, _ in approval.allowed}
        given = tuple(parameter for parameter in self.parameters if parameter.name in names)
        template = ""
        if approval.allowed:
            template = self.template({name: found.words for name, found in approval.allowed})
        if template == approval.fingerprint or self.is_same(approval):
            return Covered(approval.fingerprint, given)
        return None


@dataclass(frozen=True, slots=True)
class Requirement:
    """The requirement that a charge has an approval, and which approvals count.

    Parameters
    ----------
    key
        What verifies them, if anything does.
    planned
        The plan that is charged, for approvals of a range; without it none of these counts.
    """

    key: ApprovalKey | None
    planned: Planned | None = None

    def covered(self, approval: Approval) -> Covered | None:
        """How an approval of another fingerprint covers the plan; None where it does not."""
        return None if self.planned is None else self.planned.covered(approval)

    def same(self, approvals: Iterable[Approval], fingerprint: str) -> list[Approval]:
        """Those that are of the plan, or of a range that it is in."""
        return [a for a in approvals if self._is_of(a, fingerprint)]

    def _is_of(self, approval: Approval, fingerprint: str) -> bool:
        return approval.allows(fingerprint, None) or self.covered(approval) is not None

    def why_not(self, approval: Approval, ledgers: Collection[str], bound: Bound) -> str | None:
        """Why an approval does not count for the current budget; None if it does.

        `ledgers` are the identities of its ledger, because a ledger that was moved has a new one
        and keeps its approvals.
        """
        if (lapsed := self.why_lapsed(approval, ledgers)) is not None:
            return lapsed
        if approval.bound is None:
            return "names no amount, and was recorded before its budget was opened"
        if approval.bound != bound:
            return f"is for {approval.bound.words()}, and the budget is now {bound.words()}"
        if approval.left is not None and approval.left < 1:
            return f"was for {approval.runs} run{'s' if approval.runs != 1 else ''}, already used"
        return None

    def why_lapsed(self, approval: Approval, ledgers: Collection[str]) -> str | None:
        """Why an approval does not count for any amount and number of runs; None if it does."""
        if approval.revoked is not None:
            return f"was revoked by {approval.revoked}"
        if self.key is not None and (state := signed(approval, self.key)) != "signed":
            return _UNSIGNED.get(state, f"is not signed with the key in {KEY_VARIABLE}")
        if not approval.is_old and approval.ledger not in ledgers:
            return "is for another ledger"
        if approval.until is not None and approval.until < clock.now().date():
            return f"ended after {approval.until}"
        return None

    def require_standing(
        self, approvals: Sequence[Approval], fingerprint: str, ledgers: Collection[str]
    ) -> None:
        """Refuse to continue after a charge if all its approvals have lapsed.

        Raises
        ------
        PlanMismatch
            With the reason why the newest approval has lapsed.
        """
        why = "it has no approval"
        for approval in self.same(approvals, fingerprint):
            lapsed = self.why_lapsed(approval, ledgers)
            if lapsed is None:
                return
            why = f"the approval by {approval.by} of {approval.time:%Y-%m-%d} {lapsed}"
        raise PlanMismatch(
            f"the plan {fingerprint[:16]} is no longer approved",
            why=why,
            remedy=(
                "have it approved again: `dpframe approve PLAN.json --by WHO`",
                "read earlier results, which needs no approval",
            ),
        )

    def counting(
        self, approvals: Sequence[Approval], ledgers: Collection[str], bound: Bound
    ) -> Iterator[Approval]:
        """Those that count, what may run without limit first."""
        found = (a for a in approvals if self.why_not(a, ledgers, bound) is None)
        return iter(sorted(found, key=lambda a: (a.left is not None, a.until or date.max)))

    def chosen(
        self,
        approvals: Sequence[Approval],
        fingerprint: str,
        ledgers: Collection[str],
        bound: Bound,
    ) -> Approval:
        """The approval that a charge uses.

        Raises
        ------
        PlanMismatch
            When no approval counts.
        """
        same = self.same(approvals, fingerprint)
        approval = next(self.counting(same, ledgers, bound), None)
        if approval is None:
            raise PlanMismatch(
                f"the plan {fingerprint[:16]} is not approved",
                why=self.reasons(same, ledgers, bound),
                remedy="have it approved: `dpframe approve PLAN.json --by WHO`",
            )
        return approval

    def reasons(
        self, approvals: Sequence[Approval], ledgers: Collection[str], bound: Bound
    ) -> str | None:
        """Why none of some approvals counts, the newest first; None if there are no
        approvals."""
        if not approvals:
            return None
        newest = approvals[-1]
        more = f"; {len(approvals) - 1} earlier did not count either" if len(approvals) > 1 else ""
        why = self.why_not(newest, ledgers, bound)
        return f"the approval by {newest.by} of {newest.time:%Y-%m-%d} {why}{more}"


_UNSIGNED: dict[Signed, str] = {
    "signed without the amount": "was signed when signatures did not name the amount",
}
