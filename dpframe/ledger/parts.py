"""Budgets of disjoint parts of a frame; only the most expensive parts are paid for.

Parallel composition, adaptively. Fix two neighbouring frames. They differ in at most g parts, for
any choices of the analyst: in g = k parts where an individual's k rows come or go, in 2k where k
rows change, because each may leave one part for another. Take the plans in the order in which
they run, on whichever parts, each chosen after all results before it. A plan on a part in which
the two frames agree has the same distribution on both, so it does not distinguish them. A plan on
one of the others does by its cost. So the two frames are distinguished only by a sequence of
plans on at most g parts. At every time the costs of these add up to at most the sum of the g
largest totals of parts, for any choice of the g parts. The increase of that sum is charged to the
budget of the whole frame before a plan runs. There it is one charge among all others in one sum,
which is a privacy filter (Rogers, Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021): its
proof takes one pair of neighbours at a time, as this does. Epsilons and deltas (or rho) are
summed each on their own, so that the sum is never below that of any g parts (McSherry 2009,
Theorem 4, for plans fixed in advance, pure epsilon and g = 1).

The ledger of the whole records what each part was charged, by the digest of the rule that divides
the frame. So the totals are the same for all processes and for as long as the ledger lasts. Parts
need not be listed before: one that is charged for the first time begins at zero. A division that
is made in another way has another digest, begins at zero and is charged in full: that counts too
much, never too little.

Rows may be added to the frame between plans. If each plan reads the frame's content at that time,
fix two histories of the frame, which differ in the rows of one individual, at every moment. If no
row is ever given another key, the parts that they differ in are still those of one individual's
rows, all that there ever were: k or 2k. Where an individual's parts are chosen by a limit, or
follow from all of its rows, rows that are added could bring it into other parts. So such divisions
have a digest of their own each time that they are made, and all their parts add up, g of g, unless
the rows are in memory and stay as they are. But a limit that keeps the first g dates, or the first
g rows by date, leaves an individual in at most g parts only if parts are charged in the order of
their dates
(`dpframe.frames.partition`). So the ledger refuses a part that is before one already charged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpframe.core.budget import Budget
from dpframe.errors import UnsupportedOperation, require
from dpframe.ledger.account import Entry
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.ledger import Beginning, Ledger
from dpframe.ledger.scopes import Level, PartScope, Scope
from dpframe.ledger.streaming import StreamBook
from dpframe.ledger.streams import StreamOpening


@dataclass(frozen=True, slots=True)
class Share:
    """What a plan on one of several parts costs the session of the whole frame."""

    parts: int  # How many there are
    touched: int  # In how many of them neighbouring frames can differ
    charged: Budget  # What the session would be charged now; never more than the plan's cost


class PartLedger(Ledger):
    """The budget of one part, within the limits of the whole frame's budget and the other parts.

    The ledger of the whole frame has the charges, each with the amount that the part itself was
    charged.
    """

    def __init__(
        self,
        parent: Ledger,  # The ledger of the whole frame, or of the part that holds this one
        level: Level,  # Which part it is
        parts: int,  # How many were made with it
    ) -> None:
        above: tuple[Level, ...] = parent.scope.levels if isinstance(parent, PartLedger) else ()
        self.parent: Ledger = parent
        self.parts: int = parts
        self.scope: PartScope = PartScope((*above, level))
        self.whole: Ledger = parent.whole if isinstance(parent, PartLedger) else parent
        """The ledger of the whole frame."""
        self._store, self._name = self.whole._store, self.whole._name

    @property
    def name(self) -> str | None:
        return self.whole.name

    @property
    def where(self) -> str:
        return f"for one of {self.parts} parts, {self.parent.where}"

    @property
    def budget(self) -> Budget:
        found = self.in_scope(self.scope)
        return found.spent + found.left

    @property
    def spent(self) -> Budget:
        return self.in_scope(self.scope).spent

    @property
    def remaining(self) -> Budget:
        return self.in_scope(self.scope).left

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Charges of the part and of parts of it, with what the part was charged."""
        depth = len(self.scope.levels)
        return tuple(
            replace(entry, cost=entry.amounts[depth])
            for entry in self.whole.entries
            if isinstance(entry.scope, PartScope)
            and entry.scope.levels[:depth] == self.scope.levels
        )

    @property
    def streams(self) -> StreamBook:
        raise no_stream_of_part()

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
        if stream is not None:
            raise no_stream_of_part()
        # it would be charged what other windows have paid
        require(scope is None, "a part of a frame is charged as a whole, not by windows")
        return self.whole.charge(cost, fingerprint, unit, approval, self.scope, beginning)

    def share(self, cost: Budget) -> Share:
        """What a plan of this cost would add to the budget of the whole frame."""
        touched = self.scope.levels[-1].touched
        return Share(self.parts, touched, self.in_scope(self.scope, cost).increase)


def no_stream_of_part() -> UnsupportedOperation:
    """The refusal of a stream of one part of a frame: what its rows are charged to would have to
    last as long as the stream.
    """
    return UnsupportedOperation(
        "a stream needs a whole frame, not a part of one",
        where="session.stream(...)",
        remedy=("group by the columns of the parts, keys={...}", "filter the frame before"),
    )
