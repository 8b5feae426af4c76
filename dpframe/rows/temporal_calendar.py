"""The date and the time of day of a Datetime, and the ends of its month."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DATE, TIME
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval, interval
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.temporal import (
    DAY,
    calendar,
    guarded,
    image,
    inside,
    kept_inside,
    may_be_off,
    physical_units,
    require_type,
)
from dpframe.rows.temporal_local import moved_locally

_LONGEST_MONTH = 31 * DAY


@operation
class DateOf(PlainOperation):
    name = "dt_date"
    reads = ("TemporalExpr.Date",)
    engines = EVERYWHERE
    summary = "The date, local where there is a zone; null outside the years 1 to 9999."
    examples = ('pl.col("dt").dt.date()', 'pl.col("dtz").dt.date()', 'pl.col("dtb").dt.date()')

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Date", "Datetime"), "dt.date")
        operand = inside(args[0], calendar(args[0].dtype))
        return Domain(DATE, nullable=operand.nullable, interval=_dates(operand))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        return guarded(ns, args[0], dtype, calendar(dtype), lambda value: value.dt.date())

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.date()"


def _dates(operand: Domain) -> Interval:
    """The dates of an interval; local time may be a day off."""
    day = physical_units(operand.dtype, DAY)
    off = 1 if operand.dtype.zone is not None else 0
    dates = operand.interval.increasing(lambda end: Fraction(floor(end / day)))
    return dates + interval(-off, off)


@operation
class TimeOf(PlainOperation):
    name = "dt_time"
    reads = ("TemporalExpr.Time",)
    summary = "The time of day, local where there is a zone; null outside the years 1 to 9999."
    examples = ('pl.col("dt").dt.time()', 'pl.col("dtz").dt.time()', 'pl.col("t").dt.time()')

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Datetime", "Time"), "dt.time")
        if args[0].dtype == TIME:
            return args[0]
        nullable = inside(args[0], calendar(args[0].dtype)).nullable
        return Domain(TIME, nullable=nullable, interval=interval(0, DAY * 10**9 - 1))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        if dtype == TIME:
            return args[0]
        return guarded(ns, args[0], dtype, calendar(dtype), lambda value: value.dt.time())

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.time()"


class _MonthEnd(PlainOperation):
    """A move within the month that keeps the local time of day."""

    __slots__ = ()

    def domain(self, args: Sequence[Domain]) -> Domain:
        dtype = args[0].dtype
        require_type(args[0], ("Date", "Datetime"), self.method)
        operand = inside(args[0], calendar(dtype, _LONGEST_MONTH))
        # The time of day is kept, so within a month a later input can give an earlier result.
        slack = 0 if dtype.name == "Date" else physical_units(dtype, DAY)
        return image(
            operand,
            lambda value: self.lower(pl, [value], [operand]),
            calendar(dtype),
            slack + may_be_off(dtype, _LONGEST_MONTH),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        moved = guarded(
            ns,
            args[0],
            dtype,
            calendar(dtype, _LONGEST_MONTH),
            lambda value: moved_locally(ns, value, dtype, self.move),
        )
        return kept_inside(ns, moved, dtype, calendar(dtype))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.replace("_", ".", 1)

    def move(self, local: pl.Expr) -> pl.Expr:
        """The move of local time."""
        moved: pl.Expr = getattr(local.dt, self.method.removeprefix("dt."))()
        return moved


@operation
class MonthStart(_MonthEnd):
    name = "dt_month_start"
    reads = ("TemporalExpr.MonthStart",)
    engines = EVERYWHERE
    summary = "The first day of the month, at the same time; null where the clock skips that."
    examples = ('pl.col("d").dt.month_start()', 'pl.col("dtz").dt.month_start()')


@operation
class MonthEnd(_MonthEnd):
    name = "dt_month_end"
    reads = ("TemporalExpr.MonthEnd",)
    engines = EVERYWHERE
    summary = "The last day of the month, at the same time; null where the clock skips that."
    examples = ('pl.col("dtb").dt.month_end()', 'pl.col("dtz").dt.month_end()')


OPERATIONS: tuple[Kind, ...] = (DateOf(), TimeOf(), MonthStart(), MonthEnd())
