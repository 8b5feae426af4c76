"""Dates and times moved by a constant span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, text
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.spans import Span, require_resolution, span
from dpframe.rows.temporal import (
    DAY,
    Limits,
    calendar,
    guarded,
    image,
    inside,
    kept_inside,
    may_be_off,
    point,
    require_type,
)
from dpframe.rows.temporal_local import moved_locally

_SHORTER = 3 * DAY
"""A month is at most this much shorter than another: across it two days may move farther from
each other."""


@operation
class OffsetBy(ParametricOperation):
    """Months, weeks and days move local time; hours and less then move the instant.

    A day that a shorter month lacks becomes its last. Null where the result is outside the years 1
    to 9999, or is a local time that the clock skips; a local time that it shows twice stays in the
    same showing. A Datetime in nanoseconds is null where it is within the span of the type's ends.
    """

    name = "dt_offset_by"
    reads = ("TemporalExpr.OffsetBy",)
    engines = EVERYWHERE
    summary = "The date or time moved by a constant span such as 1mo or -2d12h."
    examples = (
        'pl.col("d").dt.offset_by("1mo")',
        'pl.col("dt").dt.offset_by("-1y2d")',
        'pl.col("dtb").dt.offset_by("36h")',
        'pl.col("dtz").dt.offset_by("1d12h")',
        'pl.col("dtms").dt.offset_by("-250ms")',
    )
    by: str

    def check(self) -> None:
        span(self.by)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, by = operands
        return cls(text(by, "the offset of dt.offset_by")).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        dtype = args[0].dtype
        require_type(args[0], ("Date", "Datetime"), "dt.offset_by")
        by = span(self.by)
        require_resolution(by, dtype, "dt.offset_by")
        operand = inside(args[0], _limits(dtype, by))
        return image(
            operand,
            lambda value: self.lower(pl, [value], [operand]),
            calendar(dtype),
            may_be_off(dtype, _SHORTER if by.months else 0),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        by = span(self.by)
        moved = guarded(
            ns, args[0], dtype, _limits(dtype, by), lambda value: _moved(ns, value, dtype, by)
        )
        return kept_inside(ns, moved, dtype, calendar(dtype))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.dt.offset_by({quoted(self.by)})"


def _limits(dtype: DType, by: Span) -> Limits | None:
    """Where a value can be moved without overflow."""
    return calendar(dtype, by.seconds)


def _moved(ns: Namespace, value: pl.Expr, dtype: DType, by: Span) -> pl.Expr:
    calendar_part = by.calendar_part
    if calendar_part.kinds:
        value = moved_locally(
            ns, value, dtype, lambda local: local.dt.offset_by(calendar_part.text)
        )
    if not by.nanoseconds:
        return value
    units = by.nanoseconds // (10**9 // dtype.units_per_second)
    clock = point(ns, -units if by.negative else units, DType("Duration", unit=dtype.unit))
    return value + clock


OPERATIONS: tuple[Kind, ...] = (OffsetBy,)
