"""What every ledger does, wherever it keeps its budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.ledger.approvals import Approval, Requirement
from dpframe.ledger.bound import Bound
from dpframe.ledger.entry import Entry, Settled
from dpframe.ledger.in_scope import InScope
from dpframe.ledger.keeping import Beginning, Keeping
from dpframe.ledger.scopes import Scope
from dpframe.ledger.streaming import StreamBook
from dpframe.ledger.streams import StreamOpening


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
