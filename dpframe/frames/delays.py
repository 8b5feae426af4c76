"""How long after its end a period may be released, so that rows that come late are there by then.

Waiting gives more accurate results and reveals no more about any person: the cost of a release,
and the people it protects, do not depend on it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

import polars as pl

from dpframe.core.exact import as_given
from dpframe.core.windows import NAMES, Every, first_day, number_of
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.rows.temporal import Span, span

__all__ = ["Delay", "Waits"]

_UNITS: Final = (("h", 3600 * 10**6), ("m", 60 * 10**6), ("s", 10**6), ("us", 1))
_WHERE: Final = "delay=..."


@dataclass(frozen=True, slots=True)
class Delay:
    """How long after its end a period may be released: months, then days by the clocks of a place,
    then time as it passes.

    Parameters
    ----------
    months, days
        By the calendar: midnight stays midnight when clocks are put forward or back.
    microseconds
        As they pass.
    """

    months: int
    days: int
    microseconds: int

    @classmethod
    def of(cls, given: object) -> Delay:
        """A delay as it was written: a duration as Polars writes it, or a timedelta.

        Raises
        ------
        UnsupportedOperation
            When it is neither, negative, or too long.
        """
        if isinstance(given, dt.timedelta):
            rest = given - dt.timedelta(days=given.days)
            found = cls(0, given.days, rest // dt.timedelta(microseconds=1))
            negative = given < dt.timedelta(0)
        elif isinstance(given, str):
            read = _span(given)
            fine = -(-read.nanoseconds // 1000)  # never earlier
            found, negative = cls(read.months, 7 * read.weeks + read.days, fine), read.negative
        else:
            raise UnsupportedOperation(
                f"a delay is a duration, not {as_given(given)}",
                where=_WHERE,
                remedy='write for example delay="2d" or delay="36h"',
            )
        if negative:
            raise UnsupportedOperation(
                f"the delay {as_given(given)} is negative",
                where=_WHERE,
                remedy=('write for example delay="2d"', "leave delay= out"),
            )
        return found

    def words(self) -> str:
        """The delay as Polars writes durations, in one way for all that mean the same."""
        parts = [(self.months, "mo"), (self.days, "d")]
        rest = self.microseconds
        for unit, size in _UNITS:
            parts.append((rest // size, unit))
            rest %= size
        return "".join(f"{count}{unit}" for count, unit in parts if count) or "0d"

    def due(self, end: dt.date, zone: str | None) -> dt.datetime:
        """When the time has come, in UTC, because what ends with the beginning of a day.

        Parameters
        ----------
        end
            The first day that is not part of it any more.
        zone
            Whose midnight that is; None for UTC. One that clocks show twice is the second, and of
            one that they pass over the moment at which they do counts.

        Raises
        ------
        OverflowError
            When that is after the year 9999.
        """
        day = _moved(end, f"{self.months}mo{self.days}d")
        midnight = dt.datetime(day.year, day.month, day.day)
        return _moment(midnight, zone) + dt.timedelta(microseconds=self.microseconds)


@dataclass(frozen=True, slots=True)
class Waits:
    """How long after its end a part is released.

    Parameters
    ----------
    every
        How long the period is that has the date in its key.
    delay
        How long after its end.
    """

    every: Every
    delay: Delay

    def words(self) -> str:
        """In a plan."""
        return (
            f"not before {self.delay.words()} have passed since the end of its {NAMES[self.every]}"
        )

    def due(self, day: dt.date, zone: str | None) -> dt.datetime:
        """When the part of a date may be released, in UTC; its period ends at midnight in a zone,
        and a datetime is one as the clocks there show it.

        Raises
        ------
        OverflowError
            When that is after the year 9999.
        """
        day = day.date() if isinstance(day, dt.datetime) else day
        end = first_day(self.every, number_of(self.every, day) + 1)
        if end is None:
            raise OverflowError
        return self.delay.due(end, zone)


def _span(text: str) -> Span:
    try:
        return span(text)
    except DPFrameError as error:
        raise error.at(_WHERE) from None


def _moved(day: dt.date, by: str) -> dt.date:
    """A date this many months and days later; of a month that is shorter its last day."""
    years = day.year
    found: dt.date | None = None
    try:
        found = pl.Series([day], dtype=pl.Date).dt.offset_by(by).to_list()[0]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # years that neither has; a panic of Polars is no Exception
        found = None
    if found is None or found.year < years:
        raise OverflowError
    return found


def _moment(midnight: dt.datetime, zone: str | None) -> dt.datetime:
    """When clocks in a zone show midnight, in UTC, by the rules that Polars has for the zone."""
    if zone in (None, "UTC"):
        return midnight.replace(tzinfo=dt.UTC)
    wall = pl.Series([midnight], dtype=pl.Datetime("us"))
    shown = wall.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    found: dt.datetime | None = shown.dt.convert_time_zone("UTC").to_list()[0]
    if found is not None:
        return found
    before = (wall - dt.timedelta(days=1)).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    offset: dt.timedelta = (before.dt.base_utc_offset() + before.dt.dst_offset()).to_list()[0]
    return midnight.replace(tzinfo=dt.UTC) - offset  # which is when they pass it over
