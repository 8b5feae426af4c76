"""Constant spans of time as Polars writes them: ``"1mo"``, ``"-2d12h"``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpframe.core.dtypes import DType
from dpframe.errors import UnsupportedOperation

_SPAN = re.compile(r"(-?)((?:[0-9]+(?:ns|us|ms|mo|[smhdwqy]))+)")
_PART = re.compile(r"([0-9]+)(ns|us|ms|mo|[smhdwqy])")
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
}
_DAY = 86_400 * 10**9
_MOST_MONTHS = 120_000
_MOST_DAYS = 100_000
"""Longer spans overflow inside older versions of Polars."""


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time; months, weeks and days follow the calendar, nanoseconds the clock.

    Parameters
    ----------
    months, weeks, days, nanoseconds
        The parts, none negative.
    negative
        Whether the whole span goes back in time.
    """

    months: int
    weeks: int
    days: int
    nanoseconds: int
    negative: bool = False

    @property
    def kinds(self) -> int:
        """How many kinds of units the span mixes."""
        return sum(map(bool, (self.months, self.weeks, self.days, self.nanoseconds)))

    @property
    def seconds(self) -> int:
        """At least as many seconds as the span can last."""
        days = 31 * self.months + 7 * self.weeks + self.days
        return days * 86_400 + -(-self.nanoseconds // 10**9)

    @property
    def calendar_part(self) -> Span:
        """Without the nanoseconds."""
        return Span(self.months, self.weeks, self.days, 0, self.negative)

    @property
    def text(self) -> str:
        """The span as Polars reads it."""
        parts = ((self.months, "mo"), (self.weeks, "w"), (self.days, "d"), (self.nanoseconds, "ns"))
        shown = "".join(f"{count}{unit}" for count, unit in parts if count)
        return ("-" if self.negative and shown else "") + (shown or "0d")


def span(text: str) -> Span:
    """The span that a text denotes.

    Raises
    ------
    UnsupportedOperation
        When it denotes none, or one that is too long to be safe.
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UnsupportedOperation(
            f"{text!r} is not a duration",
            remedy='write numbers and units, such as "1d", "2h30m" or "1mo" '
            "(ns, us, ms, s, m, h, d, w, mo, q, y)",
        )
    totals = {"months": 0, "weeks": 0, "days": 0, "nanoseconds": 0}
    for digits, unit in _PART.findall(match[2]):
        count = int(digits.lstrip("0")[:40] or "0")
        if unit in _MONTHS:
            totals["months"] += count * _MONTHS[unit]
        elif unit in _NANOSECONDS:
            totals["nanoseconds"] += count * _NANOSECONDS[unit]
        else:
            totals["weeks" if unit == "w" else "days"] += count
    found = Span(**totals, negative=match[1] == "-")
    fixed = (7 * found.weeks + found.days) * _DAY + found.nanoseconds
    if found.months > _MOST_MONTHS or fixed > _MOST_DAYS * _DAY:
        raise UnsupportedOperation(
            f"the duration {text!r} is too long",
            remedy=f"write at most 10,000 years in months or longer units, and {_MOST_DAYS:,} days "
            "in weeks or shorter ones",
        )
    return found


def require_resolution(found: Span, dtype: DType, what: str) -> None:
    """Refuse a span that a type cannot represent.

    Raises
    ------
    UnsupportedOperation
        For parts of a day on a Date, a part of the unit of a Datetime, or centuries on a Datetime
        in nanoseconds, which cannot hold them.
    """
    if dtype.name == "Date":
        if found.nanoseconds:
            raise UnsupportedOperation(
                f"{what} of a Date takes whole days", remedy='cast it to pl.Datetime("us") first'
            )
        return
    if found.nanoseconds % (10**9 // dtype.units_per_second):
        raise UnsupportedOperation(
            f"the duration is finer than the unit of {dtype}",
            remedy=("use a longer duration", 'write .dt.cast_time_unit("ns") first'),
        )
    if dtype.unit == "ns" and found.seconds > 2**62 // 10**9:
        raise UnsupportedOperation(
            f"the duration is too long for {dtype}, which spans the years 1677 to 2262",
            remedy='use .dt.cast_time_unit("us") first',
        )
