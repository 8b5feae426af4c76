"""Periods of a stream: this many days, weeks, months, quarters or years, one after another."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from dpframe.core.exact import as_given
from dpframe.errors import UnsupportedOperation
from dpframe.frames.delays import Delay
from dpframe.kernel.moves import DAYS
from dpframe.workloads import MOST_PERIODS

__all__ = ["EVERY", "PERIOD", "Schedule"]

EVERY: Final = DAYS
"""What periods there are, and how many days each has at most."""
_MONTHS: Final = {"1mo": 1, "1q": 3, "1y": 12}
PERIOD: Final = "period"
"""What their column is called."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Periods by the dates in a column.

    Parameters
    ----------
    by
        The column.
    every
        How long each is: ``"1d"``, ``"1w"`` from Monday on, ``"1mo"``, ``"1q"`` or ``"1y"``.
    start
        The first day of the first.
    periods
        How many there are.
    delay
        How long after its end each may be released; None for at any time.

    Raises
    ------
    UnsupportedOperation
        When the periods do not exist.
    """

    by: str
    every: str
    start: dt.date
    periods: int
    delay: Delay | None = None

    def __post_init__(self) -> None:
        where = f"every={as_given(self.every)}"
        if not isinstance(self.by, str):
            raise UnsupportedOperation(
                f"by= is the name of a column of dates, not {as_given(self.by)}",
                where="by=...",
                remedy='write by="day", and compute that column first: .with_columns(day=...)',
            )
        if self.every not in EVERY:
            raise UnsupportedOperation(
                f"a stream has no periods of {as_given(self.every)}",
                where=where,
                remedy=f"write every= with one of {', '.join(map(repr, EVERY))}",
            )
        if not isinstance(self.start, dt.date) or isinstance(self.start, dt.datetime):
            raise UnsupportedOperation(
                f"a stream starts on a date, not {as_given(self.start)}",
                where="start=...",
                remedy="write for example start=datetime.date(2027, 1, 1)",
            )
        whole = isinstance(self.periods, int) and not isinstance(self.periods, bool)
        if not whole or not 1 <= self.periods <= MOST_PERIODS:
            raise UnsupportedOperation(
                f"a stream has between 1 and {MOST_PERIODS} periods, not {as_given(self.periods)}",
                where="periods=...",
                remedy="write for example periods=365",
            )
        self._require_dates()

    def _require_dates(self) -> None:
        first = self._begin(self.start)
        if first != self.start:
            raise UnsupportedOperation(
                f"no period of {self.every!r} begins on {self.start}",
                where=f"every={self.every!r}",
                remedy=f"write start=datetime.date({first.year}, {first.month}, {first.day})",
            )
        try:
            self.first(self.periods)
        except (OverflowError, ValueError):
            raise _too_late("end", "periods=...", "use fewer periods") from None
        try:
            self.due(self.periods - 1, None)
        except (OverflowError, ValueError):
            raise _too_late("be released", "delay=...", "use a shorter delay=") from None

    def _begin(self, day: dt.date) -> dt.date:
        match self.every:
            case "1d":
                return day
            case "1w":
                return day - dt.timedelta(days=day.weekday())
            case _:
                months = _MONTHS[self.every]
                return day.replace(month=(day.month - 1) // months * months + 1, day=1)

    def first(self, number: int) -> dt.date:
        """The first day of a period, from 0."""
        if self.every in _MONTHS:
            years, months = divmod(self.start.month - 1 + number * _MONTHS[self.every], 12)
            return dt.date(self.start.year + years, months + 1, 1)
        return self.start + dt.timedelta(days=number * EVERY[self.every])

    def dates(self, count: int | None = None) -> list[dt.date]:
        """The first days of the periods, or of the first ones."""
        return [self.first(n) for n in range(self.periods if count is None else count)]

    def number(self, period: object) -> int:
        """Which period has a date, from 0.

        Raises
        ------
        UnsupportedOperation
            When none has it.
        """
        if not isinstance(period, dt.date) or isinstance(period, dt.datetime):
            raise UnsupportedOperation(
                f"a period is named by a date in it, not {as_given(period)}",
                where="period=...",
                remedy=f"write for example period=datetime.date{self._example()}",
            )
        begin = self._begin(period)
        if self.every in _MONTHS:
            months = (begin.year - self.start.year) * 12 + begin.month - self.start.month
            found = months // _MONTHS[self.every]
        else:
            found = (begin - self.start).days // EVERY[self.every]
        if not 0 <= found < self.periods:
            raise UnsupportedOperation(
                f"the stream has no period with {period}",
                where="period=...",
                remedy=f"write a date from {self.start} to the end of the period that begins on "
                f"{self.first(self.periods - 1)}",
            )
        return found

    def due(self, number: int, zone: str | None) -> dt.datetime | None:
        """From when on a period may be released, in UTC; None for at any time.

        Parameters
        ----------
        number
            The number of the period, from 0.
        zone
            The time zone of the column, which says when a day ends; without one it is UTC.

        Raises
        ------
        OverflowError
            When that is after the year 9999.
        """
        return None if self.delay is None else self.delay.due(self.first(number + 1), zone)

    def _example(self) -> str:
        return f"({self.start.year}, {self.start.month}, {self.start.day})"

    def words(self) -> str:
        """The periods, in a plan."""
        said = f"{self.periods} periods of {self.every} by {self.by!r}, the first from {self.start}"
        if self.delay is not None:
            said += f", none released before {self.delay.words()} have passed since its end"
        return said


def _too_late(what: str, where: str, remedy: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the last of the periods would {what} after the year 9999", where=where, remedy=remedy
    )
