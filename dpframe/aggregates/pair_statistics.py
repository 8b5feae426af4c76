"""Totals of two numbers that are clamped together, so that what one row, or one individual, adds to
both keeps its own ratio.

A pair (a, b) that exceeds the bounds of either number is multiplied by the largest factor of at
most 1 that brings both within them. If each were clamped separately, the two would lose different
shares, and the ratio of their totals would describe no group of individuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self

import polars as pl

from dpframe.aggregates.statistics import GridSum, Statistic, quantise
from dpframe.aggregates.unit_statistics import UnitStatistic, UnitTotal
from dpframe.aggregates.values import Value
from dpframe.core.domain import Columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import show
from dpframe.core.exprs import Change
from dpframe.core.grid import Grid
from dpframe.frames.facts import FrameFacts
from dpframe.frames.nodes import row_of
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import lower, words
from dpframe.rows.operation import Namespace

__all__ = ["PairSum", "UnitPairSum"]

_FAR: Final = 2.0**400
"""What is larger counts as this much, so that no product of it is NaN."""


@dataclass(frozen=True, slots=True)
class PairSum(Statistic):
    """The sum of one of two numbers, which are clamped together and then rounded to a grid.

    Guarantee
    ---------
    A row's addition is on the grid between the bounds, for any factor. Whole numbers that no
    Int64 has count as its ends, as in any sum, before they are scaled.

    Proof
    -----
    The scaled number is clamped to the grid again, as that of any sum; the factor is row-wise.

    Parameters
    ----------
    value, grid
        The number that is summed, and the grid between its bounds, which hold 0.
    other, other_grid
        The number next to it.
    """

    engines = EVERYWHERE

    value: Value
    grid: Grid
    other: Value
    other_grid: Grid

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change), other=self.other.map_exprs(change))

    def adds(self, facts: FrameFacts) -> kernel.Paired:
        mine, beside = row_of(self.value.tree), row_of(self.other.tree)
        return kernel.Paired(mine, self.grid.node, beside, self.other_grid.node)

    @property
    def step(self) -> Fraction:
        return self.grid.step

    @property
    def bias(self) -> Fraction:
        return self.grid.bias_per_row

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        mine, beside = (
            v.exact_number(lower(v.tree, columns, ns), ns) for v in (self.value, self.other)
        )
        return self.place(mine, beside, ns)

    def place(self, number: pl.Expr, beside: pl.Expr, ns: Namespace) -> pl.Expr:
        """The integer of a pair; what is missing of it is 0."""
        mine, beside = _present(number, ns), _present(beside, ns)
        factor = ns.min_horizontal(
            _factor(mine, self.grid, ns), _factor(beside, self.other_grid, ns)
        )
        return quantise(mine * factor, self.grid, False, ns)

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.sum().cast(ns.Int64)

    def words(self) -> str:
        return (
            f"sum of {words(self.value.tree)}, scaled down with {words(self.other.tree)} by one "
            f"factor into [{_ends(self.grid)}] and [{_ends(self.other_grid)}]; null and NaN add 0"
        )


@dataclass(frozen=True, slots=True)
class UnitPairSum(UnitStatistic):
    """A sum over individuals of one of their two totals, which are clamped together.

    Parameters
    ----------
    of
        What is made of a pair of totals.
    """

    engines = EVERYWHERE
    gathers_two: ClassVar[bool] = True

    of: PairSum

    def map_exprs(self, change: Change) -> Self:
        return replace(self, of=self.of.map_exprs(change))

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.PersonTotal(self.of.adds(facts))

    @property
    def step(self) -> Fraction:
        return self.of.step

    @property
    def _totals(self) -> tuple[UnitTotal, UnitTotal]:
        """The totals of the number, and of the one next to it."""
        pair = self.of
        return (
            UnitTotal(GridSum(pair.value, pair.grid)),
            UnitTotal(GridSum(pair.other, pair.other_grid)),
        )

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        return self._totals[0].row(columns, ns)

    def row_beside(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        return self._totals[1].row(columns, ns)

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return self._totals[0].per_unit(column, ns)

    def clamp_per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return self.clamp_pair(column, ns.lit(0, dtype=ns.Int64), ns)

    def clamp_pair(self, column: pl.Expr, beside: pl.Expr, ns: Namespace) -> pl.Expr:
        mine, other = self._totals
        return self.of.place(mine.number(column, ns), other.number(beside, ns), ns)

    def words(self) -> str:
        return f"over individuals, of their totals: {self.of.words()}"


def _present(number: pl.Expr, ns: Namespace) -> pl.Expr:
    """A finite float, 0 for null and NaN."""
    known: pl.Expr = number.cast(ns.Float64).fill_nan(None).fill_null(0.0).clip(-_FAR, _FAR)
    return known


def _factor(number: pl.Expr, grid: Grid, ns: Namespace) -> pl.Expr:
    """The largest factor from 0 to 1 that brings a number within bounds around 0.

    The divisor is never nearer to 0 than the bound above the line.
    """
    lo, hi = (float(end * grid.step) for end in (grid.lo, grid.hi))
    one = ns.lit(1.0, dtype=ns.Float64)
    none = ns.lit(0.0, dtype=ns.Float64)
    if hi > 0.0:
        above = ns.lit(hi, dtype=ns.Float64) / number.clip(hi, _FAR)
    else:
        above = ns.when(number > 0.0).then(none).otherwise(one)
    if lo < 0.0:
        below = ns.lit(lo, dtype=ns.Float64) / number.clip(-_FAR, lo)
    else:
        below = ns.when(number < 0.0).then(none).otherwise(one)
    factor: pl.Expr = above * below
    return factor


def _ends(grid: Grid) -> str:
    lo, hi = (show(grid.centre + end * grid.step) for end in (grid.lo, grid.hi))
    return f"{lo}, {hi}"
