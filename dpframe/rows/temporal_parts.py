"""Parts of dates as Int64, in local time where there is a zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.engines import EVERYWHERE, POLARS
from dpframe.core.interval import Interval, interval
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Kind, Namespace, PlainOperation, on, operation
from dpframe.rows.temporal import (
    DAY,
    FIRST_DAY,
    LAST_DAY,
    MOST_KEYS,
    calendar,
    guarded,
    inside,
    physical_units,
    require_type,
)

_EPOCH = date(1970, 1, 1)


@operation
class DatePart(PlainOperation):
    """A number that is read from a date, by the engine's method of the same name.

    Parameters
    ----------
    values
        The least and the most that it can be; or what it is of a date, where it never decreases as
        time goes on.
    """

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
    values: tuple[int, int] | Callable[[date], int]
    engines: frozenset[str] = frozenset({POLARS})

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Date", "Datetime"), f"dt.{self.method}")
        operand = inside(args[0], calendar(args[0].dtype))
        return Domain(INT64, nullable=operand.nullable, interval=self._known(operand))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype

        def read(value: pl.Expr) -> pl.Expr:
            return as_type(getattr(value.dt, self.method)(), INT64)

        return guarded(ns, args[0], dtype, calendar(dtype), read)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.removeprefix("dt_")

    @property
    def few_values(self) -> range | None:
        if not isinstance(self.values, tuple) or self.values[1] > MOST_KEYS:
            return None
        return range(self.values[0], self.values[1] + 1)

    def _known(self, operand: Domain) -> Interval:
        if isinstance(self.values, tuple):
            return interval(*self.values)
        first, last = _days(operand)
        return interval(self.values(first), self.values(last))


@operation
class IsLeapYear(PlainOperation):
    name = "dt_is_leap_year"
    reads = ("TemporalExpr.IsLeapYear",)
    summary = "Whether the year has 366 days."
    examples = on("d dtz", "dt.is_leap_year()")
    engines = EVERYWHERE

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Date", "Datetime"), "dt.is_leap_year")
        return boolean(inside(args[0], calendar(args[0].dtype)).nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(ns, args[0], dtype, calendar(dtype), lambda value: value.dt.is_leap_year())

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.is_leap_year()"


def _year(day: date) -> int:
    return day.year


def _iso_year(day: date) -> int:
    return day.isocalendar().year


def _century(day: date) -> int:
    return (day.year - 1) // 100 + 1


def _millennium(day: date) -> int:
    return (day.year - 1) // 1000 + 1


def _days(operand: Domain) -> tuple[date, date]:
    """The first and last local date that an operand can have."""
    earliest, latest = _days_of_type(operand.dtype)
    first = _day(operand.interval.lo, operand.dtype, earliest, -1)
    last = _day(operand.interval.hi, operand.dtype, latest, 1)
    first, last = (min(max(day, earliest), latest) for day in (first, last))
    return _EPOCH + timedelta(days=first), _EPOCH + timedelta(days=last)


def _days_of_type(dtype: DType) -> tuple[int, int]:
    limit = 2**63 // (DAY * 10**9) + 2
    return (-limit, limit) if dtype.unit == "ns" else (FIRST_DAY, LAST_DAY)


def _day(end: Fraction | None, dtype: DType, unknown: int, outwards: int) -> int:
    """The day of one end of an interval, which local time may be a day off from."""
    if end is None:
        return unknown
    return int(end // physical_units(dtype, DAY)) + (outwards if dtype.zone is not None else 0)


def _part(
    method: str,
    read: str,
    columns: str,
    summary: str,
    values: tuple[int, int] | Callable[[date], int],
    engines: frozenset[str] = frozenset({POLARS}),
) -> DatePart:
    reads = (f"TemporalExpr.{read}",)
    return DatePart(f"dt_{method}", reads, summary, on(columns, f"dt.{method}()"), values, engines)


_NULL = "null outside the years 1 to 9999"
_ALL = EVERYWHERE
OPERATIONS: tuple[Kind, ...] = (
    _part("year", "Year", "d dtb dtz", f"Calendar year; {_NULL}.", _year, _ALL),
    _part(
        "iso_year",
        "IsoYear",
        "d dtb",
        f"Year that the ISO week belongs to; {_NULL}.",
        _iso_year,
        _ALL,
    ),
    _part("century", "Century", "d dtb", "Century: 20 for the years 1901 to 2000.", _century, _ALL),
    _part(
        "millennium",
        "Millennium",
        "dt dtb",
        "Millennium: 2 for the years 1001 to 2000.",
        _millennium,
        _ALL,
    ),
    _part("quarter", "Quarter", "d dtms", "Quarter of the year, 1 to 4.", (1, 4), _ALL),
    _part("month", "Month", "d dtz", "Month, 1 to 12.", (1, 12), _ALL),
    _part("week", "Week", "d dtz", "ISO week, 1 to 53.", (1, 53), _ALL),
    _part("weekday", "WeekDay", "d dtz", "Day of the week, 1 (Monday) to 7.", (1, 7), _ALL),
    _part("day", "Day", "d dtz", "Day of the month, 1 to 31.", (1, 31), _ALL),
    _part("ordinal_day", "OrdinalDay", "d dtz", "Day of the year, 1 to 366.", (1, 366), _ALL),
    _part(
        "days_in_month", "DaysInMonth", "d dtz", "Length of the month, 28 to 31.", (28, 31), _ALL
    ),
    IsLeapYear(),
)
