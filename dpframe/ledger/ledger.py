"""What every ledger does, wherever it keeps its budget."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.ledger.account import Account, Entry, Settled
from dpframe.ledger.amounts import decimals, exact_fields
from dpframe.ledger.approvals import Approval, Bound, Requirement
from dpframe.ledger.contents import Contents, MemoryContents
from dpframe.ledger.kept import Attempt, Attempts, Begun, Identity, Key
from dpframe.ledger.record import Draft, Seal
from dpframe.ledger.scopes import InScope, Scope
from dpframe.ledger.streaming import StreamBook
from dpframe.ledger.streams import StreamOpening

# What happens to a budget while a command runs, for who watches it: charges, and how they ended.
#
# Events hold only amounts, names, numbers of records and fingerprints: nothing of the data.

Listener: TypeAlias = "Callable[[str, dict[str, Any]], None]"

_listeners: list[Listener] = []


@contextmanager
def watched(listener: Listener) -> Iterator[None]:
    """Within this, the listener receives each event, by name and with its facts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def happened(event: str, **facts: Any) -> None:
    """Report an event to the listeners."""
    for listener in [*_listeners]:
        listener(event, facts)


def report_charge(name: str | None, number: int, fingerprint: str, cost: Budget) -> None:
    """Report that a plan was charged to a budget, by a record of this number."""
    amounts = {"cost": exact_fields(cost), "cost_decimal": decimals(cost, up=True)}
    happened("charge", budget=name, record=number, fingerprint=fingerprint, **amounts)


# What is kept of the results of one budget, in a ledger or in memory.


@dataclass(frozen=True, slots=True)
class Beginning:
    """A result that is about to be charged, and is to be kept."""

    begun: Begun  # The identity of the result
    cost: Budget  # The cost of the plan; for a part of a frame the whole may be charged less
    key: Key | None = None  # The key under which it may begin only once, if any
    # The charge of the attempt by that key which was lost, if there is one.
    after: int | None = None

    def at(self, scope: Scope | None) -> Beginning:
        """The same, which says where its charge falls."""
        place = None if scope is None else scope.place
        return replace(self, begun=replace(self.begun, place=place))

    def drafts(self, attempts: Attempts, account: Account) -> list[Draft]:
        """What is recorded directly before the charge. Raises `Overtaken` when another process has
        begun it meanwhile.
        """
        attempts.require_newest(self.key, self.begun.identity, self.after)
        result = [self.begun.draft(account.name, self.cost, self.after)]
        if self.after is not None and self.after in account.open:
            result = [Draft(account.name, "failed", refers=self.after), *result]
        return result


class Keeping(Protocol):
    """What is kept of the results of one budget."""

    @property
    def contents(self) -> Contents:
        """Where contents lie."""
        ...

    @property
    def origin(self) -> str:
        """The identity of the ledger, which a move does not change."""
        ...

    def every(self) -> list[Attempt]:
        """All charges whose results were to be kept, as they are now, in order."""
        ...

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        """The current state of the last attempt by a key."""
        ...

    def attempt(self, number: int) -> Attempt | None:
        """The current state of the attempt for a charge."""
        ...

    def is_open(self, number: int) -> bool:
        """Whether it is not recorded how a charge ended."""
        ...

    def finish(self, number: int, content: str) -> None:
        """Record that a content exists whose own process could not record it."""
        ...

    def hash_of(self, number: int) -> str:
        """The hash of the record of a charge."""
        ...

    def seal(self, values: list[object]) -> str:
        """The seal of a content under the key of the ledger."""
        ...


class MemoryKeeping:
    """What is kept in memory, while the process lives."""

    def __init__(self) -> None:
        self.contents = MemoryContents()
        self.origin = uuid.uuid4().hex
        self.attempts = Attempts()
        self.open: set[int] = set()

    def begin(self, number: int, beginning: Beginning) -> None:
        """Remember a charge whose result is to be kept."""
        time, after = datetime.now(UTC), beginning.after
        self.attempts.begin(number, time, beginning.begun, beginning.cost, after)
        self.open.add(number)

    def every(self) -> list[Attempt]:
        return [*self.attempts.by_number.values()]

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        return self.attempts.newest(key, identity)

    def attempt(self, number: int) -> Attempt | None:
        return self.attempts.attempt(number)

    def is_open(self, number: int) -> bool:
        return number in self.open

    def finish(self, number: int, content: str) -> None:
        self.attempts.keep(number, datetime.now(UTC), content)
        self.open.discard(number)

    def hash_of(self, number: int) -> str:
        return f"{self.origin} {number}"

    def seal(self, values: list[object]) -> str:
        return Seal(None).release(values)


class Ledger(Protocol):
    """One budget and what was spent of it; entries are only ever added.

    It is a privacy filter for adaptively chosen plans: each plan is admitted only if the sum of all
    costs stays within the budget. Sums are valid filters for pure DP and (epsilon, delta) (Rogers,
    Roth, Ullman & Vadhan 2016, Theorem 3.6) and for zCDP (Feldman & Zrnic 2021).
    """

    @property
    def name(self) -> str | None:
        """The name of the budget in its ledger; None for a budget in memory."""
        ...

    @property
    def where(self) -> str:
        """Where the budget is kept, in words: ``kept in memory only``."""
        ...

    @property
    def budget(self) -> Budget:
        """All that may be spent, grants included."""
        ...

    @property
    def within(self) -> ApproxDP | None:
        """The (epsilon, delta) for which the budget is an amount of rho, if it was opened so."""
        ...

    @property
    def per(self) -> Every | None:
        """The windows of time that each have this budget; None for one budget for all time."""
        ...

    @property
    def spent(self) -> Budget:
        """The exact sum of all charges."""
        ...

    @property
    def remaining(self) -> Budget:
        """What may still be spent: nothing of a budget that was closed."""
        ...

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All charges, in order."""
        ...

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """The plans that were approved for this budget, in order."""
        ...

    @property
    def other_approvals(self) -> Mapping[str, Sequence[Approval]]:
        """The approvals for other budgets of the same ledger, by their names."""
        ...

    @property
    def identities(self) -> Sequence[str]:
        """The identities of the ledger, here and at earlier places, the newest last; empty if it
        is in memory.
        """
        ...

    @property
    def bound(self) -> Bound:
        """The amount that approvals are for now: that of the whole frame's budget."""
        ...

    @property
    def keeping(self) -> Keeping:
        """What is kept of results; of a part of a frame that of the whole."""
        ...

    @property
    def streams(self) -> StreamBook:
        """The streams that it paid for."""
        ...

    def require_unit(self, unit: str) -> None:
        """Refuse another kind of privacy unit than the one recorded at the first charge."""
        ...

    def charge(
        self,
        cost: Budget,
        fingerprint: str,
        unit: str | None = None,
        approval: Requirement | None = None,
        scope: Scope | None = None,
        beginning: Beginning | None = None,
        stream: StreamOpening | None = None,
    ) -> int:
        """Record a spend, durably, before any data is read.

        With a `scope` the whole budget is charged what the cost adds to its largest totals. Where
        it needs an `approval`, one that counts is found and used in the same transaction. A
        `beginning` describes the result to be kept, and a `stream` is one that is paid for; each
        is recorded directly before the charge.

        Returns
        -------
        int
            The entry's number, for `settle`.

        Raises
        ------
        BudgetExceeded
            When it does not fit; nothing is recorded then.
        LedgerError
            When it cannot be recorded, or the unit is another than before.
        PlanMismatch
            When no approval counts that it needs.
        Overtaken
            When another process has begun the same result meanwhile, and it may begin only once.
        StreamIsOpen
            When another process has opened the stream meanwhile.
        """
        ...

    def in_scope(self, scope: Scope, cost: Budget | None = None) -> InScope:
        """What a scope was charged, what may still be charged to it, and what a plan of this cost
        would add to the whole.
        """
        ...

    def settle(self, number: int, status: Settled, content: str | None = None) -> None:
        """Record how a charged release ended, and the digest of what is kept of it, if anything is.
        The charge stays in any case.
        """
        ...

    def verify(self) -> None:
        """Refuse a ledger in which anything was changed since it was written."""
        ...
