"""Whole numbers that are read from dates, times of day and durations, as Int64, in local time where
there is a zone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from math import ceil, trunc
from operator import attrgetter
from typing import Any, TypeAlias

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval, interval
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, PlainOperation, on, operation
from dpframe.rows.temporal import (
    DAY,
    FIRST_DAY,
    INT64_LIMITS,
    LAST_DAY,
    MOST_KEYS,
    Limits,
    TemporalOperation,
    physical_units,
)

_EPOCH = date(1970, 1, 1)
_Method: TypeAlias = "tuple[str, str, tuple[str, ...], str, tuple[str, ...]]"


@operation
class TemporalNumber(TemporalOperation, PlainOperation):
    """A number that a method without constants reads."""

    name: str
    method: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]

    @abstractmethod
    def interval_of(self, operand: Domain) -> Interval:
        """Where the numbers of values lie that have one."""

    def result(self, operand: Domain) -> Domain:
        return Domain(INT64, nullable=operand.nullable, interval=self.interval_of(operand))

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        return as_type(attrgetter(self.method)(operand)(), INT64)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}()"


@operation
class DatePart(TemporalNumber):
    """A part of a date."""

    values: tuple[int, int] | Callable[[date], int]
    """The least and the most that it can be; or what it is of a date, where it never decreases as
    time goes on.
    """
    engines = EVERYWHERE

    def interval_of(self, operand: Domain) -> Interval:
        if isinstance(self.values, tuple):
            return interval(*self.values)
        return interval(*map(self.values, _days(operand)))

    @property
    def few_values(self) -> range | None:
        if not isinstance(self.values, tuple) or self.values[1] > MOST_KEYS:
            return None
        return range(self.values[0], self.values[1] + 1)


@operation
class ClockPart(DatePart):
    """A part of a time of day."""

    types = ("Datetime", "Time")
    engines = EVERYWHERE


@operation
class Total(TemporalNumber):
    """A duration in a unit, towards zero; null where it does not fit in Int64."""

    unit: int
    """Its nanoseconds."""
    types = ("Duration",)
    engines = EVERYWHERE

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        if params is not None and params.get("fractional"):
            raise UnsupportedOperation(
                f"{self.method}(fractional=True) is not supported",
                remedy="divide a finer total, such as .dt.total_seconds() / 86400",
            )
        return self.of(*operands)

    def interval_of(self, operand: Domain) -> Interval:
        size = self._size(operand.dtype)
        return operand.interval.increasing(lambda end: Fraction(trunc(end / size)))

    def limits(self, dtype: DType) -> Limits | None:
        size = self._size(dtype)
        return None if size >= 1 else (ceil(INT64_LIMITS[0] * size), trunc(INT64_LIMITS[1] * size))

    def _size(self, dtype: DType) -> Fraction:
        return Fraction(dtype.units_per_second * self.unit, 10**9)


def _year(day: date) -> int:
    return day.year


def _iso_year(day: date) -> int:
    return day.isocalendar().year


def _century(day: date) -> int:
    return (day.year - 1) // 100 + 1


def _millennium(day: date) -> int:
    return (day.year - 1) // 1000 + 1


def _days(operand: Domain) -> tuple[date, date]:
    """The first and last local date that an operand can have, which a zone may move by a day."""
    dtype, interval_of = operand.dtype, operand.interval
    farthest = 2**63 // (DAY * 10**9) + 2
    earliest, latest = (-farthest, farthest) if dtype.unit == "ns" else (FIRST_DAY, LAST_DAY)
    day, off = physical_units(dtype, DAY), int(dtype.zone is not None)
    first = earliest if interval_of.lo is None else int(interval_of.lo // day) - off
    last = latest if interval_of.hi is None else int(interval_of.hi // day) + off
    first, last = (min(max(day, earliest), latest) for day in (first, last))
    return _EPOCH + timedelta(days=first), _EPOCH + timedelta(days=last)


def _of(method: str, columns: str, summary: str, read: str | None = None) -> _Method:
    """What a method is called here and in Polars, what it gives, and examples."""
    reads = f"TemporalExpr.{read or method.title().replace('_', '')}"
    return f"dt_{method}", f"dt.{method}", (reads,), summary, on(columns, f"dt.{method}()")


def _total(unit: str, summary: str, nanoseconds: int) -> Total:
    name, method, reads, _, examples = _of(f"total_{unit}", "dur durb", summary)
    between = f'(pl.col("dt") - pl.col("dtb")).dt.total_{unit}()'
    return Total(name, method, reads, summary, (*examples, between), nanoseconds)


_NULL = "null outside the years 1 to 9999"
_SECOND = "since the last whole second"
_TOO_LONG = "null where they do not fit in Int64"
OPERATIONS: tuple[Kind, ...] = (
    DatePart(*_of("year", "d dtb dtz", f"Calendar year; {_NULL}."), _year),
    DatePart(*_of("iso_year", "d dtb", f"Year that the ISO week belongs to; {_NULL}."), _iso_year),
    DatePart(*_of("century", "d dtb", "Century: 20 for the years 1901 to 2000."), _century),
    DatePart(
        *_of("millennium", "dt dtb", "Millennium: 2 for the years 1001 to 2000."), _millennium
    ),
    DatePart(*_of("quarter", "d dtms", "Quarter of the year, 1 to 4."), (1, 4)),
    DatePart(*_of("month", "d dtz", "Month, 1 to 12."), (1, 12)),
    DatePart(*_of("week", "d dtz", "ISO week, 1 to 53."), (1, 53)),
    DatePart(*_of("weekday", "d dtz", "Day of the week, 1 (Monday) to 7.", "WeekDay"), (1, 7)),
    DatePart(*_of("day", "d dtz", "Day of the month, 1 to 31."), (1, 31)),
    DatePart(*_of("ordinal_day", "d dtz", "Day of the year, 1 to 366."), (1, 366)),
    DatePart(*_of("days_in_month", "d dtz", "Length of the month, 28 to 31."), (28, 31)),
    ClockPart(*_of("hour", "dt dtz t", f"Hour, 0 to 23; {_NULL}."), (0, 23)),
    ClockPart(*_of("minute", "dt dtz t", "Minute, 0 to 59."), (0, 59)),
    ClockPart(*_of("second", "dt dtz t", "Whole second, 0 to 59."), (0, 59)),
    ClockPart(*_of("millisecond", "dt dtms", f"Milliseconds {_SECOND}, 0 to 999."), (0, 999)),
    ClockPart(
        *_of("microsecond", "dtz t dt", f"Microseconds {_SECOND}, 0 to 999,999."), (0, 999_999)
    ),
    ClockPart(
        *_of("nanosecond", "dtms t dt", f"Nanoseconds {_SECOND}, 0 to 999,999,999."),
        (0, 999_999_999),
    ),
    _total("days", "Whole days, towards zero.", DAY * 10**9),
    _total("hours", "Whole hours, towards zero.", 3_600 * 10**9),
    _total("minutes", "Whole minutes, towards zero.", 60 * 10**9),
    _total("seconds", "Whole seconds, towards zero.", 10**9),
    _total("milliseconds", f"Whole milliseconds, towards zero; {_TOO_LONG}.", 10**6),
    _total("microseconds", f"Whole microseconds, towards zero; {_TOO_LONG}.", 10**3),
    _total("nanoseconds", f"Nanoseconds; {_TOO_LONG}.", 1),
)
