"""Calendar windows, and what was charged to each of them.

A budget may be for each window: each day, week, month, quarter or year of the data's own time. Then
neighbouring frames differ in rows of one window only, and a plan tells them apart by nothing where
it reads no row of that window. So what counts, of each window, is the sum of the plans that may
read its rows, and the budget bounds the largest of these sums: parallel composition as in
`dpframe.ledger.parts`, with windows for parts and one that neighbours differ in. Rows without a
time are a window of their own.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from dpframe.core.budget import Budget
from dpframe.errors import InvalidBudget
from dpframe.ledger.exact_text import amounts_text, read_amounts

Every: TypeAlias = Literal["1d", "1w", "1mo", "1q", "1y"]

NAMES: dict[Every, str] = {"1d": "day", "1w": "week", "1mo": "month", "1q": "quarter", "1y": "year"}

_MONDAY = dt.date(1, 1, 1).toordinal()  # a Monday


def as_every(given: object) -> Every:
    """The length of a window that a user wrote.

    Raises
    ------
    InvalidBudget
        When it is none.
    """
    for every in get_args(Every):
        if given == every and isinstance(given, str):
            return every  # type: ignore[no-any-return]
    raise InvalidBudget(
        f"there are no windows of {given!r}",
        where=f"per={given!r}",
        remedy=f"windows are {', '.join(repr(every) for every in get_args(Every))}",
    )


def number_of(every: Every, day: dt.date) -> int:
    """The number of the window that a day is in; they follow each other without a gap."""
    match every:
        case "1d":
            return day.toordinal()
        case "1w":
            return (day.toordinal() - _MONDAY) // 7
        case "1mo":
            return day.year * 12 + day.month - 1
        case "1q":
            return day.year * 4 + (day.month - 1) // 3
        case "1y":
            return day.year


def window_words(every: Every, number: int) -> str:
    """A window as people write it: ``2026-11``, ``2026-Q4``, ``week of 2026-11-16``."""
    try:
        match every:
            case "1d":
                return dt.date.fromordinal(number).isoformat()
            case "1w":
                return f"week of {dt.date.fromordinal(_MONDAY + 7 * number)}"
            case "1mo":
                return f"{number // 12:04}-{number % 12 + 1:02}"
            case "1q":
                return f"{number // 4:04}-Q{number % 4 + 1}"
            case "1y":
                return f"{number:04}"
    except (OverflowError, ValueError):  # a day that Python does not have
        return f"{NAMES[every]} {number}"


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that a query may read.

    Parameters
    ----------
    every
        Their length.
    first, last
        Numbers of the first and the last one (`number_of`); None where there is no end. Where the
        last is before the first there are none.
    without
        Whether rows without a time may be read too.
    """

    every: Every
    first: int | None = None
    last: int | None = None
    without: bool = True

    @property
    def none_with_time(self) -> bool:
        """Whether only rows without a time may be read, if any."""
        return self.first is not None and self.last is not None and self.last < self.first

    def fields(self) -> dict[str, Any]:
        """As JSON; of the same windows there is one form."""
        first, last = (0, -1) if self.none_with_time else (self.first, self.last)
        return {"every": self.every, "first": first, "last": last, "without": self.without}

    @classmethod
    def read(cls, found: Any) -> Windows:
        """What `fields` made.

        Raises
        ------
        ValueError, TypeError, InvalidBudget
            When it makes no sense.
        """
        if not isinstance(found, dict) or found.keys() != {"every", "first", "last", "without"}:
            raise ValueError
        first, last = found["first"], found["last"]
        if not all(end is None or type(end) is int for end in (first, last)):
            raise TypeError
        if type(found["without"]) is not bool:
            raise TypeError
        made = cls(as_every(found["every"]), first, last, found["without"])
        if made.fields() != found:
            raise ValueError
        return made

    def words(self) -> str:
        """In words: ``2026-10 and 2026-11``, ``2026-10 to 2026-12``, ``all months``."""
        named = [] if self.none_with_time else [self._with_time()]
        rest = ["rows without a time"] if self.without else []
        return " and ".join(named + rest) or "no window"

    def _with_time(self) -> str:
        def name(number: int) -> str:
            return window_words(self.every, number)

        if self.first is None and self.last is None:
            return f"all {NAMES[self.every]}s"
        if self.first is None:
            assert self.last is not None
            return f"all {NAMES[self.every]}s up to {name(self.last)}"
        if self.last is None:
            return f"all {NAMES[self.every]}s from {name(self.first)} on"
        if self.first == self.last:
            return name(self.first)
        joint = "and" if self.last == self.first + 1 else "to"
        return f"{name(self.first)} {joint} {name(self.last)}"


class Timeline:
    """What was charged to each window: a total from each border on, up to the next one.

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
        made = cls(every, zero)
        made.borders = [*state["borders"]]
        made.totals = [read_amounts(total, zero) for total in state["totals"]]
        made.without = read_amounts(state["without"], zero)
        rising = all(a < b for a, b in zip(made.borders, made.borders[1:], strict=False))
        if not rising or len(made.totals) != len(made.borders) + 1:
            raise ValueError
        made.spent = made._most([*made.totals, made.without])
        return made
