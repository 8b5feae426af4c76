"""Dates and times moved to a regular boundary, in local time where there is a zone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
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
from dpframe.rows.temporal_local import floored_locally, moved_locally


@operation
class _ToBoundary(ParametricOperation):
    """Outside the years 1 to 9999, and where the clock skips the boundary, the result is null."""

    every: str

    def check(self) -> None:
        window(self.every)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, every = operands
        what = f"the window of {cls.name.replace('_', '.', 1)}"
        return cls(text(every, what)).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        dtype = args[0].dtype
        require_type(args[0], ("Date", "Datetime"), self.method)
        every = self._window(dtype)
        operand = inside(args[0], _limits(dtype, every))
        return image(
            operand,
            lambda value: self.lower(pl, [value], [operand]),
            calendar(dtype),
            may_be_off(dtype, every.seconds),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = domains[0].dtype
        every = self._window(dtype)
        moved = guarded(
            ns,
            args[0],
            dtype,
            _limits(dtype, every),
            lambda value: self.move(ns, value, dtype, every),
        )
        return kept_inside(ns, moved, dtype, calendar(dtype))

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}({quoted(self.every)})"

    def _window(self, dtype: DType) -> Span:
        every = window(self.every)
        require_resolution(every, dtype, self.method)
        return every

    @property
    def method(self) -> str:
        return self.name.replace("_", ".", 1)

    @abstractmethod
    def move(self, ns: Namespace, value: pl.Expr, dtype: DType, every: Span) -> pl.Expr:
        """The boundary for a value that is inside the calendar."""


@operation
class Truncate(_ToBoundary):
    """Where the clock shows a boundary twice, the last showing that is not later is taken."""

    name = "dt_truncate"
    reads = ("TemporalExpr.Truncate",)
    engines = EVERYWHERE
    summary = "The last boundary of a constant window that is not later."
    examples = (
        'pl.col("d").dt.truncate("1mo")',
        'pl.col("dt").dt.truncate("1h")',
        'pl.col("dtb").dt.truncate("1w")',
        'pl.col("dtz").dt.truncate("1d")',
        'pl.col("dtms").dt.truncate("15m")',
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType, every: Span) -> pl.Expr:
        return _truncated(ns, value, dtype, every)


@operation
class Round(_ToBoundary):
    """Ties go up. Parts of a day are counted on the clock's ticks, also where it is set."""

    name = "dt_round"
    reads = ("TemporalExpr.Round",)
    engines = EVERYWHERE
    summary = "The nearest boundary of a constant window."
    examples = (
        'pl.col("d").dt.round("1mo")',
        'pl.col("dt").dt.round("1h")',
        'pl.col("dtb").dt.round("1w")',
        'pl.col("dtz").dt.round("30m")',
    )

    def move(self, ns: Namespace, value: pl.Expr, dtype: DType, every: Span) -> pl.Expr:
        if every.nanoseconds:
            half = every.nanoseconds // (2 * (10**9 // dtype.units_per_second))
            later = value + point(ns, half, DType("Duration", unit=dtype.unit))
            return _truncated(ns, later, dtype, every)
        return moved_locally(ns, value, dtype, lambda local: _nearest(ns, local, every))


def _truncated(ns: Namespace, value: pl.Expr, dtype: DType, every: Span) -> pl.Expr:
    return floored_locally(ns, value, dtype, lambda local: local.dt.truncate(every.text))


def _nearest(ns: Namespace, local: pl.Expr, every: Span) -> pl.Expr:
    before = local.dt.truncate(every.text)
    after = before.dt.offset_by(every.text)
    is_nearer = (after - local) <= (local - before)
    expression: pl.Expr = ns.when(is_nearer).then(after).otherwise(before)
    return expression


def window(text: str) -> Span:
    """A span to truncate or round to: positive, and of one kind of unit.

    Raises
    ------
    UnsupportedOperation
        For another.
    """
    every = span(text)
    if every.negative or every.kinds == 0:
        raise UnsupportedOperation(
            f"a window of {text!r} is not positive", remedy='use a positive one, such as "1d"'
        )
    if every.kinds > 1:
        raise UnsupportedOperation(
            f"a window of {text!r} mixes months, weeks, days or parts of a day",
            remedy='use one kind of unit, such as "36h" or "14d"',
        )
    return every


def _limits(dtype: DType, every: Span) -> Limits | None:
    """Where a Datetime in nanoseconds can be moved by two windows (weeks start in 1969)."""
    return calendar(dtype, 2 * every.seconds + 7 * DAY)


OPERATIONS: tuple[Kind, ...] = (Truncate, Round)
