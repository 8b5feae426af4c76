"""Exact integers of each group: of rows, of individuals, of pairs, and totals of individuals."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Final, Self

import polars as pl

from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.values import Value, show_value, unit_words
from dpframe.core.dtypes import FLOAT64, INT64, INT128, Columns, Domain, DType
from dpframe.core.exact import show
from dpframe.core.interval import Grid, grid_for, squares_shortened
from dpframe.core.sensitivity import ContributionBounds
from dpframe.core.tree import Change, HasExprs, Tree
from dpframe.core.units import EVERYWHERE, Identifier
from dpframe.errors import UnboundedSensitivity, UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.nodes import row_of
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import domain, lower, words
from dpframe.rows.layouts import unsigned_zero
from dpframe.rows.operation import Namespace
from dpframe.rows.polars_dtypes import to_polars

# -- exact integer statistics of a frame, which is all that an engine ever computes for a release -
# Each is a sum over rows of an integer that depends on that row alone, or a count of distinct
# values. What a row can contribute is bounded by the lowered expression itself, which fills nulls,
# clamps and rounds again: no inferred fact is trusted.


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
        return f"sum of {_clamp_words(self.value, self.grid)}{less}; {_skip_words(self.value)}"


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
        square = f"({_clamp_words(self.value, self.inner)}{less})^2"
        return f"sum of {square}, less {show(self.grid.centre)}; {_skip_words(self.value)}"


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


def _clamp_words(value: Value, grid: Grid) -> str:
    """The value, its unit where it has one, and the bounds that every row is clamped to."""
    dtype = value.domain.dtype
    lo, hi = (show_value(grid.centre + end * grid.step, dtype) for end in (grid.lo, grid.hi))
    unit = f" in {unit_words(dtype)}," if dtype.is_temporal else ""
    return f"{words(value.tree)}{unit} clamped to [{lo}, {hi}]"


def _skip_words(value: Value) -> str:
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
        number, centre = _move_to_origin(number, grid, origin, ns, wide), centre - origin
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


def _move_to_origin(number: pl.Expr, grid: Grid, origin: int, ns: Namespace, wide: bool) -> pl.Expr:
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


# -- statistics of individuals --------------------------------------------------------------------
# An engine first makes one integer of all rows that an individual has in a group, and then adds up
# these.
#
# However many rows an individual has in a group, what counts is one integer within public bounds.
# So rows need no limit, only groups do.

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
        """The grid of rows: the grid of the values, but no finer than 2**-35 of the bounds."""
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


# -- totals of two numbers that are clamped together ----------------------------------------------
# So what one row, or one individual, adds to both keeps its own ratio.
#
# A pair (a, b) that exceeds the bounds of either number is multiplied by the largest factor of at
# most 1 that brings both within them. If each were clamped separately, the two would lose different
# shares, and the ratio of their totals would describe no group of individuals.

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
    The scaled number is clamped to the grid again, as in any sum; the factor is row-wise.
    """

    engines = EVERYWHERE

    # The number that is summed, and the grid between its bounds, which hold 0.
    value: Value
    grid: Grid
    # The number next to it.
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
    """A sum over individuals of one of their two totals, which are clamped together."""

    engines = EVERYWHERE
    gathers_two: ClassVar[bool] = True

    of: PairSum  # What is made of a pair of totals

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


# -- whether an aggregate is over rows or over individuals, as `per=` says ------------------------

_BEFORE = {"quantile": "0.5, ", "histogram": "10, bounds="}


def is_per_unit(
    request: Request, scope: QueryScope, per: Per, bounds: GivenBounds, dtype: DType | None = None
) -> bool:
    """Whether it is over individuals; False where each has one row, which is the same. Raises
    `UnsupportedOperation` when no identifier says who owns the rows, or a total of the type has no
    meaning. Raises `UnboundedSensitivity` when totals have no bounds.
    """
    if per != "unit":
        return False
    what = "" if request.tree is None else f"{words(request.tree)}."
    method = request.aggregate.method
    where = f'{what}dp_{method}(per="unit")'
    if not isinstance(scope.facts.unit, Identifier):
        if scope.spread.rows == 1:
            return False
        raise UnsupportedOperation(
            'per="unit" needs an identifier of individuals, and unit=dp.Rows() has none',
            where=where,
            remedy=('write per="row"', 'protect the frame with unit="user_id"'),
        )
    if dtype is not None and dtype.is_temporal and dtype.name != "Duration":
        raise UnsupportedOperation(
            f"values of type {dtype} have no total",
            where=where,
            remedy='use per="row"',
        )
    if bounds is None:
        raise UnboundedSensitivity(
            "the total of an individual has no known bounds",
            where=where,
            remedy=f'write {what}dp_{method}({_BEFORE.get(method, "")}(low, high), per="unit")'
            if request.kind != "count"
            else 'write dp.count(per="unit", bounds=(0, n))',
        )
    return True


def require_rows_scored(request: Request, scope: QueryScope, per: Per, bounds: GivenBounds) -> None:
    """Refuse totals of individuals as scores of candidates. Raises `UnsupportedOperation` when it
    is over individuals.
    """
    if is_per_unit(request, scope, per, bounds):
        raise UnsupportedOperation(
            "dp_argmax() scores candidates by rows, not by totals of individuals",
            where="dp_argmax(score=...)",
            remedy='leave per="unit" out, and limit what one individual adds with .limit_rows(n)',
        )


def total_of(statistic: GridSum | SquareSum, per_unit: bool) -> Statistic:
    """The statistic of rows, or of totals."""
    if per_unit:
        statistic.value.require_totals()
    return UnitTotal(statistic) if per_unit else statistic


def rows_of(statistic: Statistic) -> GridSum | SquareSum | ValueCount:
    """The statistic of rows that one of totals is made of."""
    found = statistic.of if isinstance(statistic, UnitTotal) else statistic
    assert isinstance(found, (GridSum, SquareSum, ValueCount))
    return found


# -- totals of individuals as values: what histograms and quantiles of individuals are of ---------


@dataclass(frozen=True, slots=True)
class TotalValue(Value):
    """The total of an individual's rows in a group, as a number; null where no row has a value."""

    of_rows: Domain  # What is known of each row's value; `domain` is of totals
    # How finely rows are placed before they are added up: integers exactly, others to a part of the
    # range in which totals are distinguished.
    grid: Grid

    @property
    def words(self) -> str:
        return f"each individual's total of {words(self.tree)}"

    @property
    def _unit_total(self) -> UnitTotal:
        return UnitTotal(GridSum(Value(self.tree, self.of_rows), self.grid))

    def row(self, columns: Columns, ns: Namespace) -> pl.Expr:
        """The integer of each row."""
        found = self._unit_total.row(columns, ns)
        assert found is not None
        return found

    def per_unit(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """The sum of an individual's integers."""
        return self._unit_total.per_unit(column, ns)

    def total(self, column: pl.Expr, ns: Namespace) -> pl.Expr:
        """That sum in the units of the value."""
        return self._unit_total.number(column, ns)


def total_value(value: Value, ends: tuple[Fraction, Fraction]) -> TotalValue:
    """The totals of a value. `value`: the value of each row. `ends`: between what totals are
    distinguished.
    """
    value.require_totals()
    lo, hi = ends
    whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
    return totals_on(value, grid_for(lo, hi, centred=False, integers=whole))


def totals_on(value: Value, grid: Grid) -> TotalValue:
    """The totals of a value whose rows are placed on a grid."""
    dtype = value.domain.dtype
    if not dtype.is_temporal:
        dtype = INT64 if value.is_whole else FLOAT64
    return TotalValue(value.tree, Domain(dtype), value.domain, grid)
