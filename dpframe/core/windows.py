"""Calendar windows: days, weeks, months, quarters and years, numbered without a gap."""

from __future__ import annotations

import datetime as dt
from typing import Literal, TypeAlias, cast, get_args

from dpframe.core.exact import as_given
from dpframe.errors import DPFrameError, UnsupportedOperation

Every: TypeAlias = Literal["1d", "1w", "1mo", "1q", "1y"]

NAMES: dict[Every, str] = {"1d": "day", "1w": "week", "1mo": "month", "1q": "quarter", "1y": "year"}
"""What a window is called."""


def as_every(given: object, where: str, error: type[DPFrameError] = UnsupportedOperation) -> Every:
    """The length of a window that a user wrote.

    Raises
    ------
    DPFrameError
        Of the type given, when it is none.
    """
    if isinstance(given, str) and given in get_args(Every):
        return cast("Every", given)
    raise error(
        f"there are no calendar windows of {as_given(given)}",
        where=where,
        remedy=f"windows are {', '.join(repr(every) for every in get_args(Every))}",
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


FIRST: dict[Every, int] = {every: number_of(every, dt.date.min) for every in NAMES}
"""The window of 0001-01-01, to which earlier times are counted."""
LAST: dict[Every, int] = {every: number_of(every, dt.date.max) for every in NAMES}
"""The window of 9999-12-31, to which later times are counted."""


def first_day(every: Every, number: int) -> dt.date | None:
    """The day on which a window begins; None where that is none of Python's."""
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
    """A window as people write it: ``2026-11``, ``2026-Q4``, ``the week of 2026-11-16``."""
    day = first_day(every, number)
    if day is None:
        return f"{NAMES[every]} {number}"
    match every:
        case "1d":
            return day.isoformat()
        case "1w":
            return f"the week of {day.isoformat()}"
        case "1mo":
            return f"{day.year:04}-{day.month:02}"
        case "1q":
            return f"{day.year:04}-Q{number % 4 + 1}"
        case "1y":
            return f"{day.year:04}"
