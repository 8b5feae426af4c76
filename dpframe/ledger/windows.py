"""Calendar windows, and what was charged to each of them.

A budget may be for each window: each day, week, month, quarter or year of the data's own time.
Then neighbouring frames differ in rows of one window only, and a plan that reads no row of that
window does not distinguish them. So each window pays only for the plans that may read its rows, and
the budget bounds the largest of these sums. This is parallel composition as in
`dpframe.ledger.parts`: windows are the parts, and neighbours differ in one. Rows without a time are
a separate window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from dpframe.core import windows
from dpframe.core.budget import Budget
from dpframe.core.windows import Every, Windows
from dpframe.errors import InvalidBudget
from dpframe.ledger.exact_text import amounts_text, read_amounts


def as_every(given: object) -> Every:
    """The length of a window that a budget is to be for.

    Raises
    ------
    InvalidBudget
        When the window is invalid.
    """
    return windows.as_every(given, "per", InvalidBudget)


class Timeline:
    """What was charged to each window: a total from each border on, up to the next one.

    Guarantee
    ---------
    Assume that each plan is charged to every window whose rows it may read, and runs only if the
    largest total of any window stays within the budget. Then all results together keep the budget
    for frames that differ in one person's rows in one window, even if each plan and its windows
    are chosen after seeing earlier results. For a person in n windows they keep n epsilon (and n
    delta where no plan reads two of these windows), and n**2 rho, or n rho where no plan reads
    two.

    Proof
    -----
    Fix two such frames, and the window w in which they differ. A plan drops the rows of all windows
    that it is not charged to before it does anything else. So a plan that is not charged to w has
    the same distribution on both frames, given all results before it, and does not distinguish
    them. Each other plan does by its cost at most, and these costs are among those that add up to
    the total of w. That stays within the budget at every time, which is a privacy filter (Rogers,
    Roth, Ullman and Vadhan 2016; Feldman and Zrnic 2021), whose proof takes one pair of frames at
    a time. Rows without a time are one more window, for which the same holds. Epsilons and deltas
    are compared each on their own, so the largest are never below those of w.

    A plan that reads m of a person's n windows distinguishes frames with and without the person
    by m times its epsilon, and m**2 times its rho, by group privacy. Each window's total counts
    it once. So all plans come to the sum of the n totals, and for rho to n times that sum at
    most.

    Parameters
    ----------
    every
        The length of windows.
    zero
        Nothing, in the measure of the budget.
    """

    def __init__(self, every: Every, zero: Budget) -> None:
        self.every: Every = every
        self.zero = zero
        self.borders: list[int] = []
        """Numbers of windows, rising, at which the total is another one than before."""
        self.totals: list[Budget] = [zero]
        """Up to the first border, from there to the second one, and so on."""
        self.without = zero
        """Of rows without a time."""
        self.spent = zero
        """The largest of all; epsilons and deltas (or amounts of rho) each on their own."""

    def largest(self, windows: Windows) -> Budget:
        """The largest total of these windows."""
        found = [self.totals[place] for place in self._places(windows)]
        if windows.without:
            found.append(self.without)
        return self._most(found)

    def fullest(self, windows: Windows) -> Windows | None:
        """The first of these windows with the largest total; None where none was charged."""
        most, found = self.largest(windows), list[Windows]()
        for charged, total in self.charged():
            both = charged.both(windows)
            if both is not None and total.main == most.main:
                found.append(both)
        return found[0] if found else None

    def increase(self, windows: Windows, cost: Budget) -> Budget:
        """By how much the largest total of all grows where these windows are charged a cost.

        Raises
        ------
        ValueError
            When they are of another length.
        """
        if windows.every != self.every:
            raise ValueError
        if windows.none_with_time and not windows.without:
            return self.zero
        return self._most([self.spent, self.largest(windows) + cost]) - self.spent

    def add(self, windows: Windows, cost: Budget) -> None:
        """Charge these windows a cost."""
        self.spent = self.spent + self.increase(windows, cost)
        if windows.without:
            self.without = self.without + cost
        if windows.none_with_time or cost.is_zero:
            return
        if windows.first is not None:
            self._cut(windows.first)
        if windows.last is not None:
            self._cut(windows.last + 1)
        for place in self._places(windows):
            self.totals[place] = self.totals[place] + cost

    def _places(self, windows: Windows) -> range:
        """Which of `totals` are those of the windows."""
        if windows.none_with_time:
            return range(0)
        start = 0 if windows.first is None else self._place(windows.first)
        stop = len(self.totals) if windows.last is None else self._place(windows.last) + 1
        return range(start, stop)

    def _place(self, number: int) -> int:
        return bisect_left(self.borders, number + 1)

    def _cut(self, number: int) -> None:
        """Let a border be there."""
        place = bisect_left(self.borders, number)
        if place == len(self.borders) or self.borders[place] != number:
            self.borders.insert(place, number)
            self.totals.insert(place, self.totals[place])

    def _most(self, amounts: list[Budget]) -> Budget:
        if not amounts:
            return self.zero
        return self.zero.of(max(a.main for a in amounts), max(a.slack for a in amounts))

    def charged(self) -> Iterator[tuple[Windows, Budget]]:
        """Ranges of windows that were charged anything, with their totals, in order."""
        starts: list[int | None] = [None, *self.borders]
        ends: list[int | None] = [*(border - 1 for border in self.borders), None]
        for start, end, total in zip(starts, ends, self.totals, strict=True):
            if not total.is_zero:
                yield Windows(self.every, start, end, without=False), total
        if not self.without.is_zero:
            yield Windows(self.every, 0, -1, without=True), self.without

    def state(self) -> dict[str, Any]:
        """As JSON, in one form only."""
        return {
            "borders": self.borders,
            "totals": [amounts_text(total) for total in self.totals],
            "without": amounts_text(self.without),
        }

    @classmethod
    def restored(cls, every: Every, zero: Budget, state: Any) -> Timeline:
        """What `state` made.

        Raises
        ------
        ValueError, TypeError, KeyError, ArithmeticError
            When it makes no sense.
        """
        result = cls(every, zero)
        result.borders = [*state["borders"]]
        result.totals = [read_amounts(total, zero) for total in state["totals"]]
        result.without = read_amounts(state["without"], zero)
        rising = all(a < b for a, b in zip(result.borders, result.borders[1:], strict=False))
        if not rising or len(result.totals) != len(result.borders) + 1:
            raise ValueError
        result.spent = result._most([*result.totals, result.without])
        return result
