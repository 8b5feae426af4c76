"""Exact integer statistics of a frame, which is all that an engine ever computes for a release.

Each is a sum over rows of an integer that depends on that row alone, or a count of distinct
values. What a row can contribute is bounded by the lowered expression itself, which fills nulls,
clamps and rounds again: no inferred fact is trusted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Final, Self

import polars as pl

from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.values import Value, show_value, unit_words
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.domain import Columns
from dpframe.core.dtypes import INT128
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import show
from dpframe.core.exprs import Change, HasExprs
from dpframe.core.grid import Grid, squares_shortened
from dpframe.core.tree import Tree
from dpframe.frames.facts import FrameFacts
from dpframe.frames.nodes import row_of
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.layouts import unsigned_zero
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars


class Statistic(HasExprs):
    """An exact integer per group."""

    __slots__ = ()

    of_individuals: ClassVar[bool] = False
    """Whether each individual adds to a group once, however many rows it has there."""

    @abstractmethod
    def adds(self, facts: FrameFacts) -> kernel.Adds:
        """What one row adds, or one individual in a group, as the kernel has it."""

    @property
    def step(self) -> Fraction:
        """The value of 1 in the result's units."""
        return Fraction(1)

    @property
    def bias(self) -> Fraction:
        """The largest rounding error of one row, in the result's units."""
        return Fraction(0)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        """How many of these contributions one individual may make, and in how many groups."""
        return scope.spread

    @abstractmethod
    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        """The integer (or value) of each row, None when the rows themselves are counted."""

    @abstractmethod
    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """From the column that `row` made to one Int64 per group."""

    @abstractmethod
    def words(self) -> str:
        """What is computed, in a plan."""


@dataclass(frozen=True, slots=True)
class RowCount(Statistic):
    """The number of rows."""

    engines = EVERYWHERE

    def map_exprs(self, change: Change) -> Self:
        return self

    def adds(self, facts: FrameFacts) -> kernel.One:
        return kernel.One()

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        return None

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        rows: pl.Expr = ns.len().cast(ns.Int64)
        return rows

    def words(self) -> str:
        return "number of rows"


@dataclass(frozen=True, slots=True)
class ValueCount(Statistic):
    """The number of rows in which an expression is neither null nor NaN."""

    engines = EVERYWHERE

    tree: Tree

    def map_exprs(self, change: Change) -> Self:
        return replace(self, tree=change(self.tree))

    def adds(self, facts: FrameFacts) -> kernel.Valued:
        return kernel.Valued(row_of(self.tree))

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        value = lower(self.tree, columns, ns)
        return value.fill_nan(None) if domain(self.tree, columns).dtype.is_float else value

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.count().cast(ns.Int64)

    def words(self) -> str:
        return f"number of values of {words(self.tree)}; null and NaN not counted"


@dataclass(frozen=True, slots=True)
class GridSum(Statistic):
    """The sum of an expression, clamped and rounded to an integer grid row by row."""

    engines = EVERYWHERE

    value: Value
    grid: Grid

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    def adds(self, facts: FrameFacts) -> kernel.Placed:
        return kernel.Placed(row_of(self.value.tree), self.grid.node)

    @property
    def step(self) -> Fraction:
        return self.grid.step

    @property
    def bias(self) -> Fraction:
        exact = self.value.is_whole and self.grid.is_exact
        return Fraction(0) if exact else self.grid.bias_per_row

    @property
    def values(self) -> Grid:
        """Where values are placed."""
        return self.grid

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        number = self.value.exact_number(lower(self.value.tree, columns, ns), ns)
        return quantise(number, self.grid, self.value.is_whole, ns, wide=self.value.is_wide)

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        """The integer of a value, an Int64 or Float64."""
        return quantise(number, self.grid, self.value.is_whole, ns)

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.sum().cast(ns.Int64)

    def words(self) -> str:
        centre = self.grid.centre
        less = f", less {show_value(centre, self.value.domain.dtype)}" if centre else ""
        return f"sum of {_clamped(self.value, self.grid)}{less}; {_skipped(self.value)}"


@dataclass(frozen=True, slots=True)
class SquareSum(Statistic):
    """The sum of squared distances from the centre of the bounds, less a constant, on a grid.

    `inner` clamps and centres the value; `grid` places the squares. They are integer places of
    the value. So for any value, a row's addition to this sum follows from its addition to the sum
    of the values, and is never below the square of it, see `grid_of_squares`.
    """

    engines = EVERYWHERE

    value: Value
    inner: Grid
    grid: Grid

    def map_exprs(self, change: Change) -> Self:
        return replace(self, value=self.value.map_exprs(change))

    def adds(self, facts: FrameFacts) -> kernel.Squared:
        shift = squares_shortened(self.inner, self.grid)
        return kernel.Squared(row_of(self.value.tree), self.inner.node, shift)

    @property
    def step(self) -> Fraction:
        return self.grid.step

    @property
    def bias(self) -> Fraction:
        """What shortening squares may add, and what rounding a value at the end of the bounds does
        to its square.
        """
        shortened = bool(squares_shortened(self.inner, self.grid))
        of_value = Fraction(0)
        if not (self.value.is_whole and self.inner.is_exact):
            farthest = max(-self.inner.lo, self.inner.hi)
            of_value = (2 * farthest + 1) * self.inner.step * self.inner.bias_per_row
        return of_value + 2 * self.grid.step * shortened

    @property
    def values(self) -> Grid:
        """The grid on which values are placed before they are squared."""
        return self.inner

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        number = self.value.exact_number(lower(self.value.tree, columns, ns), ns)
        wide = self.value.is_wide
        return self.of_places(quantise(number, self.inner, self.value.is_whole, ns, wide=wide))

    def place(self, number: pl.Expr, ns: Namespace) -> pl.Expr:
        """The integer of a value, an Int64 or Float64."""
        return self.of_places(quantise(number, self.inner, self.value.is_whole, ns))

    def of_places(self, places: pl.Expr) -> pl.Expr:
        """The integers of values that are placed already, at most 2**30 each way."""
        top, shift = self.grid.hi, squares_shortened(self.inner, self.grid)
        squares = places * places
        if shift:
            squares = ((squares // 2 ** min(shift, 61)) + 1).clip(1, top)
        return squares * 2 - top

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.sum().cast(ns.Int64)

    def words(self) -> str:
        less = f", less {show(self.inner.centre)}" if self.inner.centre else ""
        square = f"({_clamped(self.value, self.inner)}{less})^2"
        return f"sum of {square}, less {show(self.grid.centre)}; {_skipped(self.value)}"


@dataclass(frozen=True, slots=True)
class DistinctCount(Statistic):
    """The number of distinct values that are neither null nor NaN.

    Adding a row adds at most one value, so a row contributes between 0 and 1 however the others
    look; the rows of one individual are added one after another.
    """

    engines = EVERYWHERE

    tree: Tree

    def map_exprs(self, change: Change) -> Self:
        return replace(self, tree=change(self.tree))

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.Distinct(row_of(self.tree))

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr | None:
        value = lower(self.tree, columns, ns)
        dtype = domain(self.tree, columns).dtype
        if dtype.is_float:
            return unsigned_zero(ns, value.fill_nan(None), dtype)  # -0.0 and 0.0 are one value
        return value.cast(ns.String) if dtype.name == "Categorical" else value

    def reduce(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        return column.drop_nulls().n_unique().cast(ns.Int64)

    def words(self) -> str:
        return f"number of distinct values of {words(self.tree)}; null and NaN not counted"


@dataclass(frozen=True, slots=True)
class DistinctIndividuals(DistinctCount):
    """The number of individuals, as distinct values of the identifier.

    One individual adds 1 at most to an entry, however many rows it has there. So it contributes
    once to each group that it is in, and needs no limit of rows.
    """

    engines = EVERYWHERE
    of_individuals: ClassVar[bool] = True

    def adds(self, facts: FrameFacts) -> kernel.Adds:
        return kernel.People() if facts.time is None else kernel.DistinctPersons()

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return scope.unit_spread

    def words(self) -> str:
        return "number of individuals"


def is_counted_by(count: ValueCount, total: GridSum) -> bool:
    """Whether the places of values are null in just the rows that are not counted."""
    return count.tree == total.value.tree and total.value.domain.dtype.name in _NEVER_NULL


_NEVER_NULL: Final = frozenset(
    ("Float64", "Float32", "Int64", "Int32", "Int16", "Int8", "UInt32", "UInt16", "UInt8")
)
"""Types whose values are placed on a grid unless they are null or NaN."""


def _clamped(value: Value, grid: Grid) -> str:
    """The value, its unit where it has one, and the bounds that every row is clamped to."""
    dtype = value.domain.dtype
    lo, hi = (show_value(grid.centre + end * grid.step, dtype) for end in (grid.lo, grid.hi))
    unit = f" in {unit_words(dtype)}," if dtype.is_temporal else ""
    return f"{words(value.tree)}{unit} clamped to [{lo}, {hi}]"


def _skipped(value: Value) -> str:
    return "null and NaN add 0" if value.domain.dtype.is_float else "null adds 0"


def quantise(
    number: pl.Expr, grid: Grid, whole: bool, ns: Namespace, *, wide: bool = False
) -> pl.Expr:
    """Int64 or Float64 values, or with `wide` Int128, as integers in [lo, hi]; null for null and
    NaN, which sums skip.

    Whole numbers on a grid of step 1 are clamped and centred as integers. Whole numbers that
    floats do not distinguish are clamped, and moved near 0, as integers first. Other values are
    scaled to v = (x - centre) / step - lo + 1/2, clamped to [0, hi - lo] and truncated, which is
    the floor there, so v + lo is the nearest grid point. Clamping leaves no value outside for the
    cast to meet but NaN, which becomes null.
    """
    if whole and grid.step == 1 and grid.centre.denominator == 1 and _small(grid):
        clamped = number.clip(int(grid.lo + grid.centre), int(grid.hi + grid.centre))
        clamped = clamped.cast(ns.Int64) if wide else clamped
        return clamped - int(grid.centre) if grid.centre else clamped
    scale, centre = float(1 / grid.step), grid.centre
    shift = Fraction(1, 2) - grid.lo
    origin = _origin(grid) if whole else 0
    origin = origin if wide else _within_int64(origin)
    if origin:
        number, centre = _moved(number, grid, origin, ns, wide), centre - origin
    number = number.cast(ns.Float64)
    if abs(centre) < 2**20 * grid.step * (grid.hi - grid.lo + 1):
        shift -= centre / grid.step  # scaling by a power of two is exact: one rounding less
    else:
        number = number - float(centre)
    placed = (number * scale + float(shift)).clip(0.0, float(grid.hi - grid.lo))
    steps = placed.cast(ns.Int64, strict=False)
    return steps + grid.lo if grid.lo else steps


def _origin(grid: Grid) -> int:
    """An offset subtracted from whole numbers before they become floats, so that these are exact,
    or far finer than a step: 0 where they are so without it.
    """
    lo, hi = (grid.centre + end * grid.step for end in (grid.lo, grid.hi))
    if max(abs(lo), abs(hi)) <= 2**52 or hi - lo > 2**61:
        return 0
    return int(grid.centre) if grid.centre else int(lo)


def _moved(number: pl.Expr, grid: Grid, origin: int, ns: Namespace, wide: bool) -> pl.Expr:
    """Whole numbers clamped to the grid's ends, less the origin, as Int64."""
    lo, hi = (grid.centre + end * grid.step for end in (grid.lo, grid.hi))
    least, most = floor(lo), ceil(hi)
    if not wide:
        return number.clip(_within_int64(least), _within_int64(most)) - origin
    ends = [_wide_constant(ns, end) for end in (least, most, origin)]
    moved: pl.Expr = (number.clip(*ends[:2]) - ends[2]).cast(ns.Int64)
    return moved


def _within_int64(number: int) -> int:
    """The nearest number that Int64 has. Bounds may lie beyond all values of a column."""
    return min(max(number, -(2**63)), 2**63 - 1)


def _wide_constant(ns: Namespace, number: int) -> Any:
    """A constant for arithmetic with Int128. Older versions of Polars take a plain one beyond
    Int64 for null."""
    return ns.lit(number, dtype=to_polars(INT128)) if ns is pl else number


def _small(grid: Grid) -> bool:
    """Whether clamping and centring stay far from the limits of Int64."""
    return abs(grid.centre) < 2**62 and max(abs(grid.lo), abs(grid.hi)) < 2**62
