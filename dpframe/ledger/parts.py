"""Budgets of disjoint parts of a frame, of which the most expensive are paid for.

Parallel composition, adaptively. Fix two neighbouring frames. They differ in at most g parts,
however the analyst goes about it: in g = k parts where an individual's k rows come or go, in 2k
where k rows change, for each may leave a part for another. Take the plans in the order in which
they run, on whichever parts, each chosen after all results before it. A plan on a part in which the
two frames agree has the same distribution on both: it tells them apart by nothing. A plan on one of
the others does by its cost. So what tells the two frames apart is a sequence of plans on g parts at
most, whose costs add up to no more, at every time, than the sum of the g largest totals of parts,
whichever g they are. The increase of that sum is charged to the budget of the whole frame before a
plan runs. There it stands beside all other charges in one sum, which is a privacy filter (Rogers,
Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021): its proof takes one pair of neighbours at a
time, as this does. Epsilons and deltas (or rho) are summed each on their own, so that the sum is
never below that of any g parts (McSherry 2009, Theorem 4, for plans fixed in advance, pure epsilon
and g = 1).

What the parts were charged is kept in memory. Another partition of the same frame, in this process
or another, begins at zero and is charged in full: that counts too much, never too little.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from heapq import nlargest
from threading import Lock

from dpframe.core.budget import ApproxDP, Budget
from dpframe.errors import BudgetExceeded, LedgerError
from dpframe.ledger.amounts import over_budget
from dpframe.ledger.approvals import Approval, Requirement
from dpframe.ledger.bound import Bound
from dpframe.ledger.caller import this_caller
from dpframe.ledger.entry import Entry, Settled
from dpframe.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Share:
    """What a plan on one of several parts costs the session of the whole frame.

    Parameters
    ----------
    parts
        How many there are.
    touched
        In how many of them neighbouring frames can differ.
    charged
        What the session would be charged now; never more than the plan's cost.
    """

    parts: int
    touched: int
    charged: Budget


class Partition:
    """What each part was charged, and the ledger that pays for the most expensive ones; safe
    between threads.

    A forked process has a copy of the totals, on which both would count; it may not use it.
    """

    def __init__(self, parent: Ledger, parts: int, touched: int) -> None:
        self.parent = parent
        self.parts = parts
        self.touched = touched
        self._zero = _nothing(parent.budget)
        self._totals = [self._zero] * parts
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads out, and refuse forked processes."""
        if os.getpid() != self._process:
            raise LedgerError(
                "what the parts of a frame were charged is kept in memory, in the process that "
                "divided it; this one was forked from it and would count the same charges again",
                remedy="divide the frame again in this process: session.partition(...)",
            )
        with self._lock:
            yield

    def spent(self, part: int) -> Budget:
        """All that the part was charged."""
        with self.alone():
            return self._totals[part]

    def budget(self, part: int) -> Budget:
        """All that the part may come to, if nothing else is charged meanwhile."""
        with self.alone():
            return self._most(part)

    def increase(self, part: int, cost: Budget) -> Budget:
        """What the parent would now be charged for a cost of the part."""
        with self.alone():
            return self._paid(self._after(part, cost)) - self._paid(self._totals)

    def charge(
        self,
        part: int,
        cost: Budget,
        fingerprint: str,
        unit: str | None,
        approval: Requirement | None,
    ) -> int:
        """Charge the parent what the cost adds, then the part; nothing if the parent refuses.

        If the parent's charge was recorded and this does not return, no data is read, and the part
        has room that it paid for: too much is counted, never too little.
        """
        with self.alone():
            after = self._after(part, cost)
            increase = self._paid(after) - self._paid(self._totals)
            try:
                number = self.parent.charge(increase, fingerprint, unit, approval)
            except BudgetExceeded:
                most, spent = self._most(part), self._totals[part]
                raise over_budget(most, spent, cost, self.parent.within, part=True) from None
            self._totals = after
            return number

    def _after(self, part: int, cost: Budget) -> list[Budget]:
        totals = [*self._totals]
        totals[part] = totals[part] + cost
        return totals

    def _paid(self, totals: list[Budget]) -> Budget:
        """The sum of the largest totals, as many as neighbours can differ in."""
        return self._zero.of(
            sum(nlargest(self.touched, (t.main for t in totals)), Fraction(0)),
            sum(nlargest(self.touched, (t.slack for t in totals)), Fraction(0)),
        )

    def _most(self, part: int) -> Budget:
        """With r left in the parent, total t here and h the g-th largest total elsewhere, the sum
        of the g largest grows by max(t + c, h) - max(t, h) at a cost c: by at most r as long as
        t + c <= r + max(t, h).
        """
        left, total = self.parent.remaining, self._totals[part]
        others = self._totals[:part] + self._totals[part + 1 :]
        return self._zero.of(
            left.main + max(total.main, _nth(self.touched, [t.main for t in others])),
            left.slack + max(total.slack, _nth(self.touched, [t.slack for t in others])),
        )


def _nothing(budget: Budget) -> Budget:
    return budget.of(Fraction(0))


def _nth(n: int, amounts: list[Fraction]) -> Fraction:
    """The n-th largest, 0 where there are fewer."""
    return nlargest(n, amounts)[-1] if len(amounts) >= n else Fraction(0)


class PartLedger:
    """The budget of one part, as far as the budget of the whole frame and the other parts allow.

    Its charges are its own; the ledger of the whole frame has the increases that it was charged,
    0 included.
    """

    def __init__(self, partition: Partition, part: int) -> None:
        self._partition = partition
        self._part = part
        self._entries: dict[int, Entry] = {}

    @property
    def where(self) -> str:
        return f"for one of {self._partition.parts} parts, {self._partition.parent.where}"

    @property
    def budget(self) -> Budget:
        return self._partition.budget(self._part)

    @property
    def within(self) -> ApproxDP | None:
        return self._partition.parent.within

    @property
    def spent(self) -> Budget:
        return self._partition.spent(self._part)

    @property
    def remaining(self) -> Budget:
        return self.budget - self.spent

    @property
    def entries(self) -> tuple[Entry, ...]:
        with self._partition.alone():
            return tuple(self._entries.values())

    @property
    def approvals(self) -> tuple[Approval, ...]:
        return self._partition.parent.approvals

    @property
    def identities(self) -> Sequence[str]:
        return self._partition.parent.identities

    @property
    def bound(self) -> Bound:
        return self._partition.parent.bound

    def require_unit(self, unit: str) -> None:
        self._partition.parent.require_unit(unit)

    def charge(
        self,
        cost: Budget,
        fingerprint: str,
        unit: str | None = None,
        approval: Requirement | None = None,
    ) -> int:
        number = self._partition.charge(self._part, cost, fingerprint, unit, approval)
        time = datetime.now(UTC)
        made = Entry(number, time, fingerprint, cost, "charged", this_caller())
        with self._partition.alone():
            self._entries[number] = made
        return number

    def settle(self, number: int, status: Settled) -> None:
        self._partition.parent.settle(number, status)
        with self._partition.alone():
            self._entries[number] = replace(self._entries[number], status=status)

    def verify(self) -> None:
        self._partition.parent.verify()

    def share(self, cost: Budget) -> Share:
        """What a plan of this cost would add to the budget of the whole frame, or of the frame that
        this one is a part of a part of.
        """
        increase = self._partition.increase(self._part, cost)
        parent = self._partition.parent
        while isinstance(parent, PartLedger):
            increase = parent._partition.increase(parent._part, increase)
            parent = parent._partition.parent
        return Share(self._partition.parts, self._partition.touched, increase)
