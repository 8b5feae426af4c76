"""Statistics of individuals: an engine first makes one integer of all rows that an individual has
in a group, and then adds up these.

However many rows an individual has in a group, what counts is one integer within public bounds. So
rows need no limit, only groups do.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import polars as pl

from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import GridSum, SquareSum, Statistic
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.domain import Columns
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exprs import Change
from dpframe.core.tree import Tree
from dpframe.frames.facts import FrameFacts
from dpframe.frames.nodes import row_of
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.operation import Namespace

_MANY = 1 << 16
"""A row counts up to this many times the bounds of a total, for values that cancel out."""
_LARGEST = 1 << 52
"""Totals up to this many steps are exact as floats."""


class UnitStatistic(Statistic):
    """An integer per individual and group, summed over individuals."""

    __slots__ = ()
    of_individuals: ClassVar[bool] = True
    gathers_two: ClassVar[bool] = False
    """Whether two numbers of an individual make its integer."""

    @property
    def counts_pairs(self) -> bool:
        """Whether each individual in a group adds one, for any values in its rows."""
        return False

    @abstractmethod
    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """From the column that `row` made to one Int64 per individual and group; any order of the
        rows gives the same.
        """

    @abstractmethod
    def clamp_per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """The gathered integer within its bounds; null for an individual that adds nothing."""

    def row_beside(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        """The second column of each row, where two numbers are gathered; as the first one is."""
        return None

    def clamp_pair(self, column: pl.Expr, beside: pl.Expr, ns: Namespace) -> pl.Expr:
        """The same as `clamp_per_unit` where two were gathered."""
        return self.clamp_per_unit(column, ns)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return scope.unit_spread

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.sum().cast(ns.Int64)


@dataclass(frozen=True, slots=True)
class UnitCount(UnitStatistic):
    """The number of individuals with a row, or with a value of an expression."""

    engines = EVERYWHERE

    tree: Tree | None = None

    @property
    def counts_pairs(self) -> bool:
        return self.tree is None

    def map_exprs(self, change: Change) -> Self:
        return self if self.tree is None else replace(self, tree=change(self.tree))

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.People() if self.tree is None else kernel.PersonRows(row_of(self.tree), 1)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        if self.tree is None:
            return None
        value = lower(self.tree, columns, ns)
        value = value.fill_nan(None) if domain(self.tree, columns).dtype.is_float else value
        return value.is_not_null().cast(ns.Int64)

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        if self.tree is None:
            rows: pl.Expr = ns.len().cast(ns.Int64)
            return rows
        return column.sum()

    def clamp_per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.clip(0, 1)

    def words(self) -> str:
        if self.tree is None:
            return "number of individuals"
        return f"number of individuals with a value of {words(self.tree)}; null and NaN not counted"


@dataclass(frozen=True, slots=True)
class UnitRows(UnitStatistic):
    """The number of rows, at most this many of each individual in a group."""

    engines = EVERYWHERE

    most: int
    tree: Tree | None = None

    def map_exprs(self, change: Change) -> Self:
        return self if self.tree is None else replace(self, tree=change(self.tree))

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.PersonRows(None if self.tree is None else row_of(self.tree), self.most)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        return UnitCount(self.tree).row(columns, ns)

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return UnitCount(self.tree).per_unit(column, ns)

    def clamp_per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.clip(0, self.most)

    def words(self) -> str:
        what = "rows" if self.tree is None else f"values of {words(self.tree)}"
        return f"number of {what}, up to {self.most} of each individual"


@dataclass(frozen=True, slots=True)
class UnitTotal(UnitStatistic):
    """A sum over individuals of what `of` makes of their totals.

    Rows are placed on the grid of the totals, or one this much coarser that totals stay exact,
    and added up as integers, so their order never matters. A row counts up to 65,536 times the
    larger bound; where that does not do, totals wrap, each on its own, and are clamped after
    that.
    """

    engines = EVERYWHERE

    of: GridSum | SquareSum

    def map_exprs(self, change: Change) -> Self:
        return replace(self, of=self.of.map_exprs(change))

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.PersonTotal(self.of.adds(facts))

    @property
    def step(self) -> Fraction:
        return self.of.step

    @property
    def _row_step(self) -> Fraction:
        """The grid of rows: that of the values, but no finer than 2**-35 of the bounds."""
        grid = self.of.values
        least = self._reach / (1 << 35)
        step = grid.step
        while step < least:
            step *= 2
        return step

    @property
    def _reach(self) -> Fraction:
        grid = self.of.values
        ends = (grid.centre + grid.lo * grid.step, grid.centre + grid.hi * grid.step)
        return max(abs(end) for end in ends)

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        value = self.of.value
        number = value.number(lower(value.tree, columns, ns), ns)
        if value.is_whole:
            whole = min(int(self._reach * _MANY) + 1, 1 << 62)
            return number.clip(-whole, whole)
        step = self._row_step
        most = float(min(int(self._reach / step * _MANY) + 1, _LARGEST))
        placed = (number.cast(ns.Float64) * float(1 / step)).clip(-most, most) + 0.5
        return placed.floor().cast(ns.Int64, strict=False)

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        known = column.count() > 0
        total: pl.Expr = ns.when(known).then(column.sum())
        return total

    def clamp_per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return self.of.place(self.number(column, ns), ns)

    def number(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """A gathered total in the units of the value."""
        if self.of.value.is_whole:
            return column
        number: pl.Expr = column.clip(-_LARGEST, _LARGEST).cast(ns.Float64) * float(self._row_step)
        return number

    def words(self) -> str:
        return f"over individuals, of their totals: {self.of.words()}"
