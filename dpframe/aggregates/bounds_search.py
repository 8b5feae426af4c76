"""Bounds for columns with an unknown range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate, MeasurementUse, Noisy
from dpframe.aggregates.cells import BinCells
from dpframe.aggregates.error import ErrorRule, NoErrorBound
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.request import QueryScope, Request
from dpframe.aggregates.shapes import Listed, Shape
from dpframe.aggregates.statistics import RowCount
from dpframe.aggregates.values import Value, numeric_value
from dpframe.core.dtypes import FLOAT64
from dpframe.errors import UnsupportedOperation
from dpframe.rows.cast import Cast
from dpframe.rows.fold import words

_SMALLEST, _LARGEST = -30, 100
"""Powers of two between which floats are distinguished."""
_MISS = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class BoundBounds(BoundAggregate):
    """The outer edges of bins with more than noise in them."""

    cells: BinCells  # The bins

    @property
    def shape(self) -> Shape:
        return Listed(("lower", "upper"))

    @property
    def note(self) -> str:
        return "the outer edges of the bins that have more than noise in them; null if none has"

    @property
    def error(self) -> ErrorRule:
        return NoErrorBound(
            f"how far {self.name!r} is from the exact bounds depends on the data",
            "ask a release for the error of its counts",
        )

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        whole, edges = self.cells.value.is_whole, self.cells.edges
        counts = values[0].reshape(-1, self.cells.size)
        least = _above_noise(counts)
        ranges: list[list[int] | list[float] | None] = []
        for row in counts:
            full = np.flatnonzero(row > least)
            if not full.size:
                ranges.append(None)
                continue
            lo, hi = edges[int(full[0])], edges[int(full[-1]) + 1]
            ranges.append([int(lo), int(hi)] if whole else [float(lo), float(hi)])
        return pl.Series(self.name, ranges, dtype=pl.List(pl.Int64 if whole else pl.Float64))


class Bounds(Aggregate):
    """Powers of two between which values lie, as a list of a lower and an upper bound.

    Values are counted in bins whose edges are 0 and the powers of two of either sign. The bounds
    are the outer edges of the bins with more than noise in them, or null where no bin has. The
    size of the noise is estimated from the noisy counts themselves: most of some hundred bins are
    empty, so their median size is that of noise. The chance that any empty bin is taken for a
    full one is 5% in all. A few values far out may lie in bins that drown in noise, and are
    clamped by such bounds.

    Guarantee
    ---------
    The sensitivity of a histogram: a row is in one bin, so L1 = L2 = Linf = k for k rows per
    individual under add-remove adjacency. Everything computed from the noisy counts is
    post-processing.

    Proof
    -----
    Edges are powers of two and 0, which are public, and no value lies in two bins. The size of
    the noise is estimated from noisy counts and from nothing else.
    """

    kind: ClassVar[str] = "bounds"
    summary: ClassVar[str] = "powers of two between which nearly all values lie"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("i64").dp_bounds()', 'pl.col("f64").dp_bounds()')

    def bind(self, request: Request, scope: QueryScope) -> BoundBounds:
        cells = _cells(request, scope)
        return BoundBounds(
            request, (MeasurementUse(Additive(Table(RowCount(), cells)), "bounds"),), cells
        )


def _cells(request: Request, scope: QueryScope) -> BinCells:
    assert request.tree is not None
    value = numeric_value(request.tree, scope.facts.columns, "bounds")
    if value.domain.dtype.is_temporal or value.domain.dtype.is_boolean:
        raise UnsupportedOperation(
            f"dp_bounds() does not work on values of type {value.domain.dtype}",
            where=f"{words(value.tree)}.dp_bounds()",
            remedy="give bounds from public knowledge: .dp_mean((low, high))",
        )
    if value.is_wide:  # which floats distinguish far enough
        real = Cast(FLOAT64).of(value.tree)
        value = numeric_value(real, scope.facts.columns, "bounds")
    return BinCells(value, _edges(value))


def _edges(value: Value) -> tuple[Fraction, ...]:
    """0 and the powers of two, with the limits of Int64 at the ends of whole numbers."""
    if value.is_whole:
        powers = [Fraction(1 << k) for k in range(63)]
        ends = Fraction(-(1 << 63)), Fraction((1 << 63) - 1)
    else:
        powers = [Fraction(2) ** k for k in range(_SMALLEST, _LARGEST)]
        ends = -(Fraction(2) ** _LARGEST), Fraction(2) ** _LARGEST
    return (ends[0], *(-p for p in reversed(powers)), Fraction(0), *powers, ends[1])


def _above_noise(counts: Noisy) -> float:
    """A size that noise exceeds in any of the bins with a chance of at most 5%, if it is Laplace
    noise of the observed median size. Gaussian noise exceeds it more rarely.
    """
    if not counts.size:
        return 0.0
    # half a step more, because noise is whole: most of it may be 0, and some of it not
    scale = (float(np.median(np.abs(counts))) + 0.5) / math.log(2.0)
    return max(0.0, scale * math.log(counts.size / (2.0 * _MISS)))
