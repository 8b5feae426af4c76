"""Parts of dates as Int64, in local time where there is a zone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.interval import Interval, interval
from dpframe.core.tree import Options
from dpframe.rows.operands import as_type, boolean
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.temporal import (
    DAY,
    FIRST_DAY,
    LAST_DAY,
    calendar,
    guarded,
    inside,
    physical_units,
    require_type,
)

_EPOCH = date(1970, 1, 1)


class DatePart(RowOperation):
    """A number that is read from a date."""

    least: int
    most: int

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_type(args[0], ("Date", "Datetime"), self.method)
        operand = inside(args[0], calendar(args[0].dtype))
        return Domain(INT64, nullable=operand.nullable, interval=self.known(operand))

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(
            ns, args[0], dtype, calendar(dtype), lambda value: as_type(self.read(value), INT64)
        )

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.replace("_", ".", 1)

    @abstractmethod
    def read(self, value: pl.Expr) -> pl.Expr:
        """The part of a value that is inside the calendar."""

    def known(self, operand: Domain) -> Interval:
        """Where the part lies."""
        return interval(self.least, self.most)


class GrowingPart(DatePart):
    """A part that never decreases as time goes on."""

    @abstractmethod
    def of(self, day: date) -> int:
        """The part of a public date."""

    def known(self, operand: Domain) -> Interval:
        first, last = _days(operand)
        return interval(self.of(first), self.of(last))


class Year(GrowingPart):
    name = "dt_year"
    summary = "Calendar year; null outside the years 1 to 9999."
    examples = ('pl.col("d").dt.year()', 'pl.col("dtb").dt.year()', 'pl.col("dtz").dt.year()')

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.year()

    def of(self, day: date) -> int:
        return day.year


class IsoYear(GrowingPart):
    name = "dt_iso_year"
    summary = "Year that the ISO week belongs to; null outside the years 1 to 9999."
    examples = ('pl.col("d").dt.iso_year()', 'pl.col("dtb").dt.iso_year()')

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.iso_year()

    def of(self, day: date) -> int:
        return day.isocalendar().year


class Century(GrowingPart):
    name = "dt_century"
    summary = "Century: 20 for the years 1901 to 2000."
    examples = ('pl.col("d").dt.century()', 'pl.col("dtb").dt.century()')

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.century()

    def of(self, day: date) -> int:
        return (day.year - 1) // 100 + 1


class Millennium(GrowingPart):
    name = "dt_millennium"
    summary = "Millennium: 2 for the years 1001 to 2000."
    examples = ('pl.col("dt").dt.millennium()', 'pl.col("dtb").dt.millennium()')

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.millennium()

    def of(self, day: date) -> int:
        return (day.year - 1) // 1000 + 1


class Quarter(DatePart):
    name = "dt_quarter"
    summary = "Quarter of the year, 1 to 4."
    examples = ('pl.col("d").dt.quarter()', 'pl.col("dtms").dt.quarter()')
    least, most = 1, 4

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.quarter()


class Month(DatePart):
    name = "dt_month"
    summary = "Month, 1 to 12."
    examples = ('pl.col("d").dt.month()', 'pl.col("dtz").dt.month()')
    least, most = 1, 12

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.month()


class Week(DatePart):
    name = "dt_week"
    summary = "ISO week, 1 to 53."
    examples = ('pl.col("d").dt.week()', 'pl.col("dtz").dt.week()')
    least, most = 1, 53

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.week()


class Weekday(DatePart):
    name = "dt_weekday"
    summary = "Day of the week, 1 (Monday) to 7."
    examples = ('pl.col("d").dt.weekday()', 'pl.col("dtz").dt.weekday()')
    least, most = 1, 7

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.weekday()


class Day(DatePart):
    name = "dt_day"
    summary = "Day of the month, 1 to 31."
    examples = ('pl.col("d").dt.day()', 'pl.col("dtz").dt.day()')
    least, most = 1, 31

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.day()


class OrdinalDay(DatePart):
    name = "dt_ordinal_day"
    summary = "Day of the year, 1 to 366."
    examples = ('pl.col("d").dt.ordinal_day()', 'pl.col("dtz").dt.ordinal_day()')
    least, most = 1, 366

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.ordinal_day()


class DaysInMonth(DatePart):
    name = "dt_days_in_month"
    summary = "Length of the month, 28 to 31."
    examples = ('pl.col("d").dt.days_in_month()', 'pl.col("dtz").dt.days_in_month()')
    least, most = 28, 31

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.days_in_month()


class IsLeapYear(DatePart):
    name = "dt_is_leap_year"
    summary = "Whether the year has 366 days."
    examples = ('pl.col("d").dt.is_leap_year()', 'pl.col("dtz").dt.is_leap_year()')

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_type(args[0], ("Date", "Datetime"), self.method)
        return boolean(inside(args[0], calendar(args[0].dtype)).nullable)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(ns, args[0], dtype, calendar(dtype), self.read)

    def read(self, value: pl.Expr) -> pl.Expr:
        return value.dt.is_leap_year()


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


OPERATIONS: tuple[RowOperation, ...] = (
    Year(),
    IsoYear(),
    Century(),
    Millennium(),
    Quarter(),
    Month(),
    Week(),
    Weekday(),
    Day(),
    OrdinalDay(),
    DaysInMonth(),
    IsLeapYear(),
)
