"""Dates, times and durations in another unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, trunc
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.temporal import DAY, INT64_LIMITS, Limits, guarded, inside, require_type
from dpframe.rows.written_dtypes import TIME_UNITS

_DAYS = (-(2**31), 2**31 - 1)
"""The range of a Date."""


@operation
class Timestamp(ParametricOperation):
    name = "dt_timestamp"
    reads = ("TemporalExpr.TimeStamp",)
    engines = EVERYWHERE
    summary = "Units since 1970-01-01 (UTC where there is a zone); null where they do not fit."
    examples = (
        'pl.col("d").dt.timestamp("ms")',
        'pl.col("dt").dt.timestamp("us")',
        'pl.col("dtb").dt.timestamp("ns")',
        'pl.col("dtz").dt.timestamp("ms")',
    )
    unit: str

    def check(self) -> None:
        _check_unit(self.unit)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(TIME_UNITS[params]).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Date", "Datetime"), "dt.timestamp")
        factor = _factor(args[0].dtype, self.unit)
        operand = inside(args[0], _fitting(args[0].dtype, self.unit))
        return Domain(
            INT64, nullable=operand.nullable, interval=_scaled(operand.interval, factor, floor)
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype, unit = domains[0].dtype, self.unit
        limits = _fitting(dtype, unit)
        return guarded(
            ns,
            args[0],
            dtype,
            limits,
            lambda value: as_type(value.dt.timestamp(unit), INT64),  # type: ignore[arg-type]
        )

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.timestamp({quoted(self.unit)})"


@operation
class CastTimeUnit(ParametricOperation):
    """A coarser unit rounds a Datetime down and a Duration towards zero, as Polars does."""

    name = "dt_cast_time_unit"
    reads = ("TemporalExpr.CastTimeUnit",)
    summary = "The same Datetime or Duration in another unit; null where it does not fit."
    examples = (
        'pl.col("dt").dt.cast_time_unit("ms")',
        'pl.col("dtb").dt.cast_time_unit("ns")',
        'pl.col("durb").dt.cast_time_unit("ms")',
        'pl.col("dur").dt.cast_time_unit("ns")',
    )
    unit: str

    def check(self) -> None:
        _check_unit(self.unit)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(TIME_UNITS[params]).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Datetime", "Duration"), "dt.cast_time_unit")
        dtype, unit = args[0].dtype, self.unit
        factor = _factor(dtype, unit)
        operand = inside(args[0], _fitting(args[0].dtype, self.unit))
        rounding: Callable[[Fraction], int] = trunc if dtype.name == "Duration" else floor
        return Domain(
            replace(dtype, unit=unit),
            nullable=operand.nullable,
            interval=_scaled(operand.interval, factor, rounding),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype, unit = domains[0].dtype, self.unit
        limits = _fitting(dtype, unit)
        return guarded(ns, args[0], dtype, limits, lambda value: value.dt.cast_time_unit(unit))  # type: ignore[arg-type]

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.cast_time_unit({quoted(self.unit)})"


def _check_unit(unit: str) -> None:
    if unit not in ("ms", "us", "ns"):
        raise ValueError(f"{unit!r} is not a time unit")


def _factor(dtype: DType, unit: str) -> Fraction:
    """Units of the result for one physical unit of the operand."""
    per_second = DType("Duration", unit=unit).units_per_second
    if dtype.name == "Date":
        return Fraction(DAY * per_second)
    return Fraction(per_second, dtype.units_per_second)


def _fitting(dtype: DType, unit: str) -> Limits | None:
    """The operands whose result fits in Int64; None when all do."""
    factor = _factor(dtype, unit)
    all_values = _DAYS if dtype.name == "Date" else INT64_LIMITS
    limits = ceil(INT64_LIMITS[0] / factor), floor(INT64_LIMITS[1] / factor)
    return None if limits[0] <= all_values[0] and limits[1] >= all_values[1] else limits


def _scaled(known: Interval, factor: Fraction, rounding: Callable[[Fraction], int]) -> Interval:
    return known.increasing(lambda end: Fraction(rounding(end * factor)))


OPERATIONS: tuple[Kind, ...] = (Timestamp, CastTimeUnit)
