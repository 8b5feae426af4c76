"""Which times a calendar window holds, in physical units and by the clocks of a zone."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from functools import lru_cache

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.core.windows import AFTER, BEFORE, Every, first_day
from dpframe.rows.temporal import DAY, INT64_LIMITS, calendar, physical_units


_EPOCH = dt.date(1970, 1, 1).toordinal()
_NEAR = 27 * 3_600
"""Seconds; clocks and UTC differ by less, also where clocks are set."""

Times = tuple[Interval, Interval]
"""Where times lie in physical units, and where what the clocks show lies in the same units."""


def times_of(first: int, last: int, every: Every, dtype: DType) -> Times | None:
    """The times of windows from one to another; None if none exist.

    Those before the calendar and after it are each one window, which is taken to reach a few days
    into it.
    """
    start, end = _calendar(dtype)
    lo = None if first <= BEFORE[every] else _begins(first, every, dtype, end)
    hi = None if last >= AFTER[every] else _begins(last + 1, every, dtype, end + _margin(dtype))
    if lo is not None and last >= AFTER[every]:
        lo = min(lo, end - _margin(dtype))
    if hi is not None and first <= BEFORE[every]:
        hi = start + _margin(dtype) if last <= BEFORE[every] else max(hi, start + _margin(dtype))
    shown = _interval(lo, None if hi is None else hi - 1)
    if shown is None or dtype.zone is None:
        return None if shown is None else (shown, shown)
    known = instants(shown, dtype)
    return None if known is None else (known, shown)


def instants(shown: Interval, dtype: DType) -> Interval | None:
    """Every instant at which the clocks of a zone show something that lies in an interval, and
    others only where clocks are set; None where they never do.
    """
    assert dtype.zone is not None
    lo = None if shown.lo is None else _reached(int(shown.lo), dtype, "earliest")
    hi = None if shown.hi is None else _reached(int(shown.hi) + 1, dtype, "latest")
    return _interval(lo, None if hi is None else hi - 1)


def _interval(lo: int | None, hi: int | None) -> Interval | None:
    if lo is None and hi is None:
        return EVERYTHING
    if lo is not None and hi is not None and lo > hi:
        return None
    return Interval(None if lo is None else Fraction(lo), None if hi is None else Fraction(hi))


def _begins(number: int, every: Every, dtype: DType, after: int) -> int:
    """The beginning of a window, in the units of a type; of that after the calendar the one
    given.
    """
    day = None if number >= AFTER[every] else first_day(every, number)
    days = None if day is None else day.toordinal() - _EPOCH
    return after if days is None else physical_units(dtype, days * DAY)


def _calendar(dtype: DType) -> tuple[int, int]:
    """Where operations on a type are defined; of one that they are defined on throughout, all."""
    return calendar(dtype) or INT64_LIMITS


def _margin(dtype: DType) -> int:
    """Days by which clocks are never off, in the units of a type."""
    return physical_units(dtype, 3 * DAY)


@lru_cache(maxsize=4096)
def _reached(shown: int, dtype: DType, which: str) -> int:
    """From when on clocks show a time or a later one: at first, or for good.

    Where clocks skip the time, it is when they do. Far from the years that zones know, no earlier
    and no later than clocks can be.
    """
    per_second = dtype.units_per_second
    micros = shown * 1_000_000 // per_second
    if not -(2**55) < micros < 2**57:  # the years 828 to 6537
        return shown + (-1 if which == "earliest" else 1) * _NEAR * per_second
    found = _instant(micros, str(dtype.zone), which)
    if found is None:
        return _skipped(micros, str(dtype.zone)) * per_second // 1_000_000
    below = shown * 1_000_000 - micros * per_second  # what microseconds do not hold
    return (found * per_second + below) // 1_000_000


def _instant(micros: int, zone: str, which: str) -> int | None:
    """When the clocks of a zone show a time, or for good what is not before it; in microseconds."""
    wall = pl.Series([micros], dtype=pl.Datetime("us"))
    zoned = wall.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")  # type: ignore[arg-type]
    found: int | None = zoned.to_physical().item()
    if found is None or which == "earliest":
        return found
    before = pl.Series([found - 1], dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    goes_back = before.dt.replace_time_zone(None).to_physical().item() < micros
    return found if goes_back else _instant(micros, zone, "earliest")


def _skipped(micros: int, zone: str) -> int:
    """When the clocks of a zone skip a time, which they do at a whole second; in microseconds."""
    second = micros // 1_000_000
    seconds = pl.int_range(second - _NEAR, second + _NEAR, eager=True) * 1_000_000
    clocks = seconds.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    shown = clocks.dt.replace_time_zone(None).to_physical()
    found: int = seconds.filter(shown >= micros).to_list()[0]
    return found
