"""Calendar windows: days, weeks, months, quarters and years, numbered without a gap."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast, get_args

from dpframe.core.exact import show_input
from dpframe.errors import DPFrameError, UnsupportedOperation

Every: TypeAlias = Literal["1d", "1w", "1mo", "1q", "1y"]

NAMES: dict[Every, str] = {"1d": "day", "1w": "week", "1mo": "month", "1q": "quarter", "1y": "year"}
"""What a window is called."""


def as_every(given: object, where: str, error: type[DPFrameError] = UnsupportedOperation) -> Every:
    """The length of a window that a user wrote.

    Raises
    ------
    DPFrameError
        The type of the error for an invalid window.
    """
    if isinstance(given, str) and given in get_args(Every):
        return cast("Every", given)
    raise error(
        f"{show_input(given)} is not a length of windows",
        where=where,
        remedy=f"write one of {', '.join(repr(every) for every in get_args(Every))}",
    )


def number_of(every: Every, day: dt.date) -> int:
    """The number of the window that a day is in; weeks begin on Mondays."""
    match every:
        case "1d":
            return day.toordinal()
        case "1w":
            return (day.toordinal() - 1) // 7  # 0001-01-01 is a Monday, and the first day
        case "1mo":
            return day.year * 12 + day.month - 1
        case "1q":
            return day.year * 4 + (day.month - 1) // 3
        case "1y":
            return day.year


BEFORE: dict[Every, int] = {every: number_of(every, dt.date.min) - 1 for every in NAMES}
"""The window of all times before the year 1, which is before that of 0001-01-01."""
AFTER: dict[Every, int] = {every: number_of(every, dt.date.max) + 1 for every in NAMES}
"""The window of all times after the year 9999."""


def first_day(every: Every, number: int) -> dt.date | None:
    """The day on which a window begins; None if Python's dates do not reach it."""
    try:
        match every:
            case "1d":
                return dt.date.fromordinal(number)
            case "1w":
                return dt.date.fromordinal(1 + 7 * number)
            case "1mo":
                return dt.date(number // 12, number % 12 + 1, 1)
            case "1q":
                return dt.date(number // 4, number % 4 * 3 + 1, 1)
            case "1y":
                return dt.date(number, 1, 1)
    except (OverflowError, ValueError):
        return None


def window_words(every: Every, number: int) -> str:
    """A window as people write it: ``2026-11``, ``2026-Q4``, ``week of 2026-11-16``."""
    day = first_day(every, number)
    if day is None:
        return f"{NAMES[every]} {number}"
    match every:
        case "1d":
            return day.isoformat()
        case "1w":
            return f"week of {day.isoformat()}"
        case "1mo":
            return f"{day.year:04}-{day.month:02}"
        case "1q":
            return f"{day.year:04}-Q{number % 4 + 1}"
        case "1y":
            return f"{day.year:04}"


def whole_person(every: Every) -> str:
    """What is promised of a person in several windows, whom no window protects as a whole."""
    name = NAMES[every]
    return (
        f"a person present in n {name}s is n individuals: for the whole of that person epsilon is "
        "n times as large, and rho up to n * n times"
    )


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that a query may read.

    Parameters
    ----------
    every
        Their length.
    first, last
        Numbers of the first and the last one (`number_of`); None where there is no end. If the
        last is before the first there are no windows.
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

    @property
    def are_all(self) -> bool:
        """Whether there is no row that may not be read."""
        return self.first is None and self.last is None and self.without

    @property
    def is_one(self) -> bool:
        """Whether a person has rows in one of them at most."""
        if self.none_with_time:
            return True
        return self.first is not None and self.first == self.last and not self.without

    def fields(self) -> dict[str, Any]:
        """As JSON; of the same windows there is one form."""
        first, last = (0, -1) if self.none_with_time else (self.first, self.last)
        return {"every": self.every, "first": first, "last": last, "without": self.without}

    @classmethod
    def read(cls, found: Any) -> Windows:
        """What `fields` made.

        Raises
        ------
        ValueError, TypeError
            When it makes no sense.
        """
        if not isinstance(found, dict) or found.keys() != {"every", "first", "last", "without"}:
            raise ValueError
        first, last = found["first"], found["last"]
        if not all(end is None or type(end) is int for end in (first, last)):
            raise TypeError
        if type(found["without"]) is not bool:
            raise TypeError
        if found["every"] not in NAMES:
            raise ValueError
        made = cls(found["every"], first, last, found["without"])
        if made.fields() != found:
            raise ValueError
        return made

    def hull(self, other: Windows) -> Windows:
        """All windows of both, and those between."""
        if self.none_with_time:
            return Windows(self.every, other.first, other.last, self.without or other.without)
        if other.none_with_time:
            return other.hull(self)
        firsts, lasts = (self.first, other.first), (self.last, other.last)
        return Windows(
            self.every,
            None if None in firsts else min(n for n in firsts if n is not None),
            None if None in lasts else max(n for n in lasts if n is not None),
            self.without or other.without,
        )

    def both(self, other: Windows) -> Windows | None:
        """What is in both; None where that is nothing."""
        without = self.without and other.without
        if self.none_with_time or other.none_with_time:
            return Windows(self.every, 0, -1) if without else None
        firsts = [n for n in (self.first, other.first) if n is not None]
        lasts = [n for n in (self.last, other.last) if n is not None]
        first, last = max(firsts, default=None), min(lasts, default=None)
        found = Windows(self.every, first, last, without)
        return None if found.none_with_time and not without else found

    def words(self) -> str:
        """In words: ``2026-10 and 2026-11``, ``2026-10 to 2026-12``, ``all months``."""
        named = [] if self.none_with_time else [self._with_time()]
        rest = ["rows without a time"] if self.without else []
        return " and ".join(named + rest) or "no window"

    def _with_time(self) -> str:
        name, plural = window_words, f"all {NAMES[self.every]}s"
        if self.last is None:
            if self.first is None:
                return plural
            return f"{plural} from {name(self.every, self.first)} on"
        if self.first is None:
            return f"{plural} up to {name(self.every, self.last)}"
        if self.first == self.last:
            return name(self.every, self.first)
        joint = "and" if self.last == self.first + 1 else "to"
        return f"{name(self.every, self.first)} {joint} {name(self.every, self.last)}"


# The current time from the machine's clock, which decides whether a release is too early.


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
