"""Durations as whole numbers of a unit, towards zero."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, trunc

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.tree import Options
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.temporal import INT64_LIMITS, Limits, guarded, inside, require_type


class Total(RowOperation):
    """Null where the number does not fit in Int64."""

    unit_nanoseconds: int

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_type(args[0], ("Duration",), self.method)
        operand = inside(args[0], self._limits(args[0].dtype))
        size = Fraction(operand.dtype.units_per_second * self.unit_nanoseconds, 10**9)
        known = operand.interval.increasing(lambda end: Fraction(trunc(end / size)))
        return Domain(INT64, nullable=operand.nullable, interval=known)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        dtype = domains[0].dtype
        method = self.method.removeprefix("dt.")

        def read(value: pl.Expr) -> pl.Expr:
            total: pl.Expr = getattr(value.dt, method)()
            return as_type(total, INT64)

        return guarded(ns, args[0], dtype, self._limits(dtype), read)

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.replace("_", ".", 1)

    def _limits(self, dtype: DType) -> Limits | None:
        """The durations whose number of units fits in Int64; None when all do."""
        size = Fraction(dtype.units_per_second * self.unit_nanoseconds, 10**9)
        if size >= 1:
            return None
        return ceil(INT64_LIMITS[0] * size), trunc(INT64_LIMITS[1] * size)


class TotalDays(Total):
    name = "dt_total_days"
    summary = "Whole days, towards zero."
    examples = ('pl.col("dur").dt.total_days()', 'pl.col("durb").dt.total_days()')
    unit_nanoseconds = 86_400 * 10**9


class TotalHours(Total):
    name = "dt_total_hours"
    summary = "Whole hours, towards zero."
    examples = ('pl.col("dur").dt.total_hours()', 'pl.col("durb").dt.total_hours()')
    unit_nanoseconds = 3_600 * 10**9


class TotalMinutes(Total):
    name = "dt_total_minutes"
    summary = "Whole minutes, towards zero."
    examples = ('pl.col("dur").dt.total_minutes()', 'pl.col("durb").dt.total_minutes()')
    unit_nanoseconds = 60 * 10**9


class TotalSeconds(Total):
    name = "dt_total_seconds"
    summary = "Whole seconds, towards zero."
    examples = ('pl.col("dur").dt.total_seconds()', 'pl.col("durb").dt.total_seconds()')
    unit_nanoseconds = 10**9


class TotalMilliseconds(Total):
    name = "dt_total_milliseconds"
    summary = "Whole milliseconds, towards zero; null where they do not fit in Int64."
    examples = ('pl.col("dur").dt.total_milliseconds()', 'pl.col("durb").dt.total_milliseconds()')
    unit_nanoseconds = 10**6


class TotalMicroseconds(Total):
    name = "dt_total_microseconds"
    summary = "Whole microseconds, towards zero; null where they do not fit in Int64."
    examples = ('pl.col("dur").dt.total_microseconds()', 'pl.col("durb").dt.total_microseconds()')
    unit_nanoseconds = 10**3


class TotalNanoseconds(Total):
    name = "dt_total_nanoseconds"
    summary = "Nanoseconds; null where they do not fit in Int64."
    examples = ('pl.col("dur").dt.total_nanoseconds()', 'pl.col("durb").dt.total_nanoseconds()')
    unit_nanoseconds = 1


OPERATIONS: tuple[RowOperation, ...] = (
    TotalDays(),
    TotalHours(),
    TotalMinutes(),
    TotalSeconds(),
    TotalMilliseconds(),
    TotalMicroseconds(),
    TotalNanoseconds(),
)
