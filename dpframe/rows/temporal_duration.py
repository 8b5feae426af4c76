"""Durations as integers of a unit, towards zero."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, trunc
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.rows.given import Operand
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, PlainOperation, on, operation
from dpframe.rows.temporal import INT64_LIMITS, Limits, guarded, inside, require_type


@operation
class Total(PlainOperation):
    """Null where the number does not fit in Int64."""

    name: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]
    unit_nanoseconds: int
    engines = EVERYWHERE

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        if params is not None and params.get("fractional"):
            raise UnsupportedOperation(
                f"dt.{self.method}(fractional=True) is not supported",
                remedy="divide a finer total, such as .dt.total_seconds() / 86400",
            )
        return self.of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_type(args[0], ("Duration",), f"dt.{self.method}")
        operand = inside(args[0], self._limits(args[0].dtype))
        size = Fraction(operand.dtype.units_per_second * self.unit_nanoseconds, 10**9)
        known = operand.interval.increasing(lambda end: Fraction(trunc(end / size)))
        return Domain(INT64, nullable=operand.nullable, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype

        def read(value: pl.Expr) -> pl.Expr:
            return as_type(getattr(value.dt, self.method)(), INT64)

        return guarded(ns, args[0], dtype, self._limits(dtype), read)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.{self.method}()"

    @property
    def method(self) -> str:
        return self.name.removeprefix("dt_")

    def _limits(self, dtype: DType) -> Limits | None:
        """The durations whose number of units fits in Int64; None when all do."""
        size = Fraction(dtype.units_per_second * self.unit_nanoseconds, 10**9)
        if size >= 1:
            return None
        return ceil(INT64_LIMITS[0] * size), trunc(INT64_LIMITS[1] * size)


def _total(unit: str, summary: str, nanoseconds: int) -> Total:
    reads = (f"TemporalExpr.Total{unit.capitalize()}",)
    between = f'(pl.col("dt") - pl.col("dtb")).dt.total_{unit}()'
    examples = (*on("dur durb", f"dt.total_{unit}()"), between)
    return Total(f"dt_total_{unit}", reads, summary, examples, nanoseconds)


_NULL = "null where they do not fit in Int64"
OPERATIONS: tuple[Kind, ...] = (
    _total("days", "Whole days, towards zero.", 86_400 * 10**9),
    _total("hours", "Whole hours, towards zero.", 3_600 * 10**9),
    _total("minutes", "Whole minutes, towards zero.", 60 * 10**9),
    _total("seconds", "Whole seconds, towards zero.", 10**9),
    _total("milliseconds", f"Whole milliseconds, towards zero; {_NULL}.", 10**6),
    _total("microseconds", f"Whole microseconds, towards zero; {_NULL}.", 10**3),
    _total("nanoseconds", f"Nanoseconds; {_NULL}.", 1),
)
