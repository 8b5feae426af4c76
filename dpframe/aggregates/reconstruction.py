"""Aggregates that are rebuilt by least squares from what is drawn for several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import (
    BoundAggregate,
    Clamp,
    Laws,
    MeasurementKey,
    MeasurementUse,
    Noisy,
    Output,
    Query,
    variance_of,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.cells import BinCells, CategoryCells, Cells, WholeCells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.error import MeanError, NoErrorBound, PartError, VarianceError
from dpframe.aggregates.grouping_sets import (
    adds_up,
    best_margins,
    in_own_sets,
    margin_uses,
    margin_weights,
    margin_words,
    sets_wanted,
    table_wanted,
    values_of,
)
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.margins import (
    LevelSums,
    SetAxes,
    by_words,
    columns_of,
    levels_of,
    strategy_words,
    weights_of,
)
from dpframe.aggregates.measurement import COUNT, Additive, Measurement, Table
from dpframe.aggregates.noise import Independent, JointNoise, drawn_of
from dpframe.aggregates.quantile import answer_together
from dpframe.aggregates.reconstructed_error import (
    BinRanges,
    CumulativeRanges,
    DistributionError,
    DistributionSetsError,
    OutputError,
    Ranges,
    RangesBySets,
    RebuiltError,
    RunError,
)
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import ONE, Shape
from dpframe.aggregates.statistics import (
    GridSum,
    RowCount,
    SquareSum,
    UnitCount,
    UnitRows,
    UnitTotal,
    ValueCount,
)
from dpframe.core.budget import ApproxDP, Budget, PureDP
from dpframe.core.domain import Columns
from dpframe.core.edition import is_edition_before
from dpframe.core.exact import dyadic_down, show
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.frames.groups import CommonSets, SetGroups, SetsOfQuery
from dpframe.mechanisms import AdditiveMechanism
from dpframe.rows.fold import domain
from dpframe.workloads import (
    MANY_CELLS,
    Axis,
    Degree,
    Estimate,
    Factor,
    Part,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    apportioned,
    best_tables,
    nearest_nonnegative,
    tables,
    trees,
    whole_deviation,
)

# -- distribution functions by grouping sets ------------------------------------------------------
# They are rebuilt from the tables of runs of cells that are best to measure.

KeptColumns = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RolledDistribution(BoundAggregate):
    """Distribution functions by several grouping sets at once."""

    inner: BoundDistribution  # The distribution functions of the finest groups
    axes: SetAxes  # The columns of the grouping sets, and the steps between edges
    scope: QueryScope  # The scope of the query
    strategy: Strategy  # What is measured

    def by(self, degree: Degree) -> RolledDistribution:
        """The same where a rho is shared (1) or an epsilon (2)."""
        if degree == self.strategy.degree:
            return self
        strategy = _best(self.inner.uses[0].part, self.axes, self.scope, degree)
        return replace(
            self, strategy=strategy, uses=_distribution_uses(self.inner, self.axes, strategy)
        )

    @property
    def sets(self) -> tuple[KeptColumns, ...]:
        """The columns of each grouping set."""
        return self.axes.groups.sets

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def note(self) -> str:
        said = f"{self.inner.sign}; rebuilt by least squares from "
        said += margin_words(self.strategy, self.axes)
        if self.inner.nonnegative:
            return f"{said}; each group by itself is made to rise, so groups need not add up"
        return said

    @property
    def error(self) -> DistributionSetsError:
        strategy = self.strategy
        axis, weights = strategy.workload.axes[-1], list[Fraction]()
        for part, weight in zip(strategy.parts, margin_weights(strategy), strict=True):
            weights.append(weight * part.energy(part.levels))
        last, edges = len(self.axes.sizes) - 1, self.inner.cells.edges.size
        columns = tuple(
            tuple(i for i in range(last) if part.shape[i] > 1) for part in strategy.parts
        )
        measured = columns, tuple(part.levels[last] for part in strategy.parts), tuple(weights)
        sizes = self.axes.groups.sizes
        return DistributionSetsError(sizes, self.sets, axis.size, axis.branching, *measured, edges)

    @property
    def ranges(self) -> RangesBySets:
        own = self.inner.ranges
        return RangesBySets(own.value_of, own.edges, self.error, self.axes.groups)

    def edge_words(self, number: int) -> str:
        """An edge as people write it."""
        return self.inner.edge_words(number)

    def expected_error(self, laws: Laws) -> float:
        """The sum over the sets of the mean squared errors of its numbers, in proportion to what
        they would be if they were added up from noisy cells of their own.
        """
        return self.strategy.objective([variance_of(laws, key) for key in self.keys])

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return pl.concat([self.inner.column_of(found) for found in self._rebuilt(values)])

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        assert isinstance(noise, Independent)
        laws = [law for law, _ in noise.parts if isinstance(law, AdditiveMechanism)]
        lows, highs = list[pl.Series](), list[pl.Series]()
        for kept, found in zip(self.sets, self._rebuilt(values), strict=True):
            reach = self.error.reaches(laws, kept, level)
            lows.append(self.inner.column_of(found - reach))
            highs.append(self.inner.column_of(found + reach))
        return pl.concat(lows), pl.concat(highs)

    def _rebuilt(self, values: Sequence[Noisy]) -> Iterator[NDArray[np.int64]]:
        """For each set the number of rows up to each edge, of shape (groups, cells)."""
        strategy = self.strategy
        whole = WholeTables(Estimate(strategy, values_of(strategy, values)))
        prefixes = [False] * len(self.axes.groups.sizes) + [True]
        for kept in self.axes.kept:
            yield whole.cells(kept, prefixes).reshape(-1, self.axes.width)


def rolled_distribution(inner: BoundDistribution, scope: QueryScope) -> RolledDistribution:
    """Distribution functions by grouping sets. Raises `UnboundedSensitivity` when nothing limits
    how far one individual moves a table.
    """
    groups = scope.groups
    assert isinstance(groups, SetGroups)
    axes = SetAxes(groups, inner.cells)
    strategy = _best(inner.uses[0].part, axes, scope, 1)  # which is found soonest
    uses = _distribution_uses(inner, axes, strategy)
    return RolledDistribution(inner.request, uses, inner, axes, scope, strategy)


def _best(part: Measurement, axes: SetAxes, scope: QueryScope, degree: Degree) -> Strategy:
    """What to measure, of the tree whose error is least; one with all cells below its root has
    tables of cells and of totals alone.
    """
    columns = tuple(map(Axis.nominal, axes.groups.sizes))
    wanted = tuple(
        Wanted((*("cells" if k else "total" for k in kept[:-1]), "prefixes")) for kept in axes.kept
    )
    tried = [Workload((*columns, axis), wanted) for axis in _likely(axes.width, degree)]
    found = [best_margins(part, axes, w, scope, degree, has_total=True) for w in tried]
    return min(found, key=lambda strategy: strategy.objective())


@lru_cache(maxsize=64)
def _likely(cells: int, degree: Degree) -> tuple[Axis, ...]:
    """Trees that may be the best ones: those that are it for one group, and that without levels."""
    flat, one = Axis.ordered(cells, max(2, cells)), (Wanted(("prefixes",)),)
    found = trees(Workload((Axis.ordered(cells),), one), degree)
    rising = sorted(found, key=lambda tree: tables(tree, degree).objective())
    return tuple(dict.fromkeys([flat, *(tree.axes[0] for tree in rising[:_TRIED])]))


_TRIED: Final = 2
"""This many trees are tried."""


def _distribution_uses(
    inner: BoundDistribution, axes: SetAxes, strategy: Strategy
) -> tuple[MeasurementUse, ...]:
    """The tables, with what makes the shares of a plan's cost those of the strategy."""
    workload, use = strategy.workload, inner.uses[0]
    return tuple(margin_uses(use, axes, strategy, workload.flat(workload.tables[0])))


# -- additive aggregates by grouping sets ---------------------------------------------------------

PartStrategies: TypeAlias = Mapping[Degree, tuple[Strategy, ...]]

_ADDITIVE: Final = (RowCount, ValueCount, GridSum, SquareSum, UnitCount, UnitRows, UnitTotal)


@dataclass(frozen=True, slots=True, eq=False)
class RolledAggregate(BoundAggregate):
    """An aggregate by several grouping sets at once."""

    inner: BoundAggregate  # The aggregate by the finest groups
    axes: SetAxes  # The columns of the grouping sets, and more cells
    # For each way in which a spend is shared (rho, epsilon) what is measured of each of its parts.
    strategies: PartStrategies
    degree: Degree  # Which of them is used
    # The same strategies where totals are tables separately, and so may be drawn jointly with those
    # of other parts; None where they are.
    own_totals: PartStrategies | None = None

    def by(self, degree: Degree) -> RolledAggregate:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _set_uses(self.inner, self.axes, self.strategies[degree])
        return replace(self, degree=degree, uses=uses)

    def with_own_totals(self) -> RolledAggregate:
        """The same where no other table has a total."""
        if self.own_totals is None:
            return self
        return replace(self, strategies=self.own_totals, own_totals=None).by(self.degree)

    @property
    def used(self) -> tuple[Strategy, ...]:
        """What is measured of each part of the aggregate."""
        return self.strategies[self.degree]

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def note(self) -> str:
        said = dict.fromkeys(margin_words(strategy, self.axes) for strategy in self.used)
        whole = f"rebuilt by least squares from {'; and '.join(said)}"
        if self._totals_apart:
            whole = f"{_TOTALS}; {whole}"
        if self.is_nonnegative:
            return f"{whole}; {_PROJECTED}{self._rounding}"
        return f"{self.inner.note}; {whole}" if self.inner.note else whole

    @property
    def _rounding(self) -> str:
        """Which sets pay for making cells whole, where there are many cells."""
        axes = self.axes
        if math.prod(axes.sizes) <= MANY_CELLS:
            return ""
        moved = [
            f"{show(round(deviation, 1))} to results {by_words(tuple(axes.names[i] for i in set_))}"
            for set_, kept in zip(axes.sets, axes.kept, strict=True)
            if (deviation := whole_deviation(kept, axes.sizes)) > 0
        ]
        if not moved:
            return "; making cells whole leaves results of all sets next to what they were"
        more = f" and {len(moved) - _SETS} more sets" if len(moved) > _SETS else ""
        return (
            f"; making cells whole adds a deviation of up to {', '.join(moved[:_SETS])}{more}, and "
            "leaves those of other sets next to what they were"
        )

    @property
    def _totals_apart(self) -> bool:
        """Whether each individual counts a bounded number in each of the finest groups, and
        larger groups have the sums.
        """
        statistics = [use.part.tables[0].statistic for use in self.inner.uses]
        return all(isinstance(s, (UnitRows, UnitTotal)) for s in statistics)

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative

    @property
    def error(self) -> OutputError:
        if self.is_nonnegative:
            return NoErrorBound(
                f"{self.name!r} is moved to near tables without negative numbers, by how "
                "much depends on the data",
                "ask for interval=0.95, which holds the exact numbers all the same, or leave "
                "nonnegative=True out",
            )
        return self.rule

    @property
    def rule(self) -> RebuiltError:
        """How the errors of numbers that may be negative follow from those of the margins."""
        inner = self.inner.error
        assert isinstance(inner, (PartError, MeanError, VarianceError))
        return RebuiltError(
            inner,
            self.axes.sizes,
            self.axes.sets,
            tuple(tuple(map(columns_of, strategy.parts)) for strategy in self.used),
            tuple(margin_weights(strategy) for strategy in self.used),
        )

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return self.inner.combine(self._rebuilt(values))

    def _rebuilt(self, values: Sequence[Noisy]) -> list[Noisy]:
        """The integers of each part, for all groups of all sets."""
        return [
            np.concatenate([cells.reshape(-1, self.axes.width) for cells in sets])
            for sets in (
                self._held(estimate) if self.is_nonnegative else self._signed(estimate)
                for estimate in self._estimates(values)
            )
        ]

    def _estimates(self, values: Sequence[Noisy]) -> Iterator[Estimate]:
        """What is known of each part."""
        start = 0
        for strategy in self.used:
            end = start + len(strategy.parts)
            yield Estimate(strategy, values_of(strategy, values[start:end]))
            start = end

    def _signed(self, estimate: Estimate) -> list[Noisy]:
        whole = WholeTables(estimate)
        return [whole.cells(kept) for kept in self.axes.kept]

    def _held(self, estimate: Estimate) -> list[Noisy]:
        """The sets' tables from zero up, which are margins of one table."""
        wanted = dict(zip(self.axes.kept, estimate.strategy.workload.tables, strict=True))
        cells = nearest_nonnegative(
            {kept: estimate.cells(kept) for kept in wanted},
            {kept: estimate.strategy.error(table) for kept, table in wanted.items()},
            self.axes.sizes,
        )
        whole = apportioned(cells)
        return [
            whole.sum(axis=tuple(i for i, k in enumerate(kept) if not k), keepdims=True)
            for kept in self.axes.kept
        ]

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        rule, start = self.rule, 0
        rebuilt = [
            np.concatenate([cells.reshape(-1, self.axes.width) for cells in self._signed(estimate)])
            for estimate in self._estimates(values)
        ]
        drawn = drawn_of(noise)
        lows, highs = list[pl.Series](), list[pl.Series]()
        groups = self.axes.groups
        for kept, within in zip(groups.sets, self.axes.sets, strict=True):
            end = start + groups.entries(kept)
            here = [numbers[start:end] for numbers in rebuilt]
            ends = self.inner.interval(here, rule.noises(drawn, within), level)
            if ends is None:
                return None
            lows.append(ends[0])
            highs.append(ends[1])
            start = end
        low, high = pl.concat(lows), pl.concat(highs)
        return _around(low, high, self.combine(values)) if self.is_nonnegative else (low, high)

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return (pl.len(),) if self._counts_individuals else self.inner.plain(column)

    @property
    def plain_tree(self) -> Tree | None:
        return None if self._counts_individuals else self.inner.plain_tree

    @property
    def is_of_totals(self) -> bool:
        return self._counts_individuals or self.inner.is_of_totals

    @property
    def _counts_individuals(self) -> bool:
        """Whether it is a number of individuals; then each counts at most once in larger groups
        too, even without limits.
        """
        statistics = [use.part.tables[0].statistic for use in self.inner.uses]
        return len(statistics) == 1 and isinstance(statistics[0], UnitCount)

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return self.inner.of_plain(numbers)


_TOTALS: Final = (
    "totals of individuals are clamped in each of the finest groups, and larger groups have their "
    "sums"
)
_PROJECTED: Final = (
    "then moved to near tables with the same total that still add up and have no number below 0, "
    "which biases small numbers upwards and others a little downwards"
)


_SETS: Final = 8
"""This many sets are named."""


def _around(low: pl.Series, high: pl.Series, released: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Ends around what is released as well."""
    frame = pl.DataFrame([low.alias("low"), high.alias("high"), released.alias("released")])
    ends = frame.select(
        pl.min_horizontal("low", "released").alias(low.name),
        pl.max_horizontal("high", "released").alias("high"),
    )
    return ends.to_series(0), ends.to_series(1)


def rolled(inner: BoundAggregate, scope: QueryScope) -> BoundAggregate:
    """An aggregate by groups unchanged; by grouping sets, all of these at once. Raises
    `UnsupportedOperation` when its parts do not add up over groups.
    """
    groups = scope.groups
    if not isinstance(groups, SetGroups):
        return inner
    if isinstance(inner, BoundDistribution):
        return rolled_distribution(inner, scope)
    tables = [_additive(inner, use) for use in inner.uses]
    if None in tables or _is_several_times(inner, scope):
        return _by_own_sets(inner, scope)
    axes = SetAxes(groups, tables[0].cells if tables[0] is not None else None)
    strategies, own = (
        _set_strategies(inner, axes, scope, has_total) for has_total in (True, False)
    )
    uses = _set_uses(inner, axes, strategies[2])
    beside = any(s.total_of is not None for used in strategies.values() for s in used)
    own_totals = own if beside and axes.cells is None else None
    return RolledAggregate(inner.request, uses, inner, axes, strategies, 2, own_totals)


def _set_strategies(
    inner: BoundAggregate, axes: SetAxes, scope: QueryScope, has_total: bool
) -> PartStrategies:
    """What is best to measure of each part."""
    workload = sets_wanted(axes.sizes, tuple((kept, Fraction(1)) for kept in axes.sets))
    degrees: tuple[Degree, ...] = (1, 2)
    return {
        degree: tuple(
            best_margins(use.part, axes, workload, scope, degree, has_total) for use in inner.uses
        )
        for degree in degrees
    }


def _set_uses(
    inner: BoundAggregate, axes: SetAxes, strategies: Sequence[Strategy]
) -> tuple[MeasurementUse, ...]:
    """The margins of each part."""
    return tuple(
        made
        for use, strategy in zip(inner.uses, strategies, strict=True)
        for made in margin_uses(use, axes, strategy, use.impact)
    )


def _additive(inner: BoundAggregate, use: MeasurementUse) -> Table | None:
    """What a part sums up; None where it does not add up over groups."""
    part = use.part
    if isinstance(part, Additive) and isinstance(part.table.statistic, _ADDITIVE):
        cells = part.table.cells
        # other results from cells are searched for in one table, by how much noise it has
        if cells is None or (isinstance(inner, BoundHistogram) and not cells.of_individuals):
            return part.table
    return None


def _is_several_times(inner: BoundAggregate, scope: QueryScope) -> bool:
    """Whether it is a number of individuals who may be in several of the finest groups, and so
    would count several times in larger ones.
    """
    counted = [use for use in inner.uses if isinstance(use.part.tables[0].statistic, UnitCount)]
    return bool(counted) and scope.unit_spread.tight[1] > 1


def _by_own_sets(inner: BoundAggregate, scope: QueryScope) -> BoundAggregate:
    """The aggregate with a table of its own for each set. Raises `UnsupportedOperation` when it has
    none.
    """
    made = in_own_sets(inner, scope)
    if made is not None:
        return made
    if _is_several_times(inner, scope):
        assert scope.groups is not None
        by = ", ".join(repr(name) for name in scope.groups.names)
        raise UnsupportedOperation(
            f"{inner.request.kind} of individuals by grouping sets needs individuals "
            "that are in one of the finest groups each",
            where=inner.request.name,
            why="larger groups would count the others several times",
            remedy=(
                f"add .limit_groups(1, by=[{by}]) before it",
                f"write one group_by for each set, {_APART}",
            ),
        )
    raise UnsupportedOperation(
        f"{inner.request.kind} cannot be released by grouping sets",
        where=inner.request.name,
        why="it cannot be computed from the results of smaller groups",
        remedy=f"write one group_by for each set, {_APART}",
    )


_APART: Final = 'session.collect([frame.group_by("a", "b", ...).agg(...), ...])'


# -- additive aggregates of several queries whose tables are margins of one another ---------------
# They are rebuilt together from the margins that are best to measure.

Kept: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RelatedAggregate(BoundAggregate):
    """An aggregate whose table is a margin of what other queries ask for."""

    inner: BoundAggregate  # The aggregate by its own groups
    groups: SetGroups  # The grouping sets that all queries have in common
    shown: SetsOfQuery  # The sets that it shows, and the groups of each
    # For each way in which a spend is shared (rho, epsilon) what is measured of each of its parts
    # for all queries.
    strategies: PartStrategies
    portions: tuple[Fraction, ...]  # What of the error of each strategy counts for it
    units: tuple[Fraction, ...]  # The sensitivity of each of its parts if it were the only output
    degree: Degree  # Which of the strategies is used

    def by(self, degree: Degree) -> RelatedAggregate:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _related_uses(self.inner, self.groups, self.strategies[degree], self.portions)
        return replace(self, degree=degree, uses=uses)

    @property
    def used(self) -> tuple[Strategy, ...]:
        """What is measured of each part of the aggregate."""
        return self.strategies[self.degree]

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def note(self) -> str:
        said = dict.fromkeys(margin_words(strategy, SetAxes(self.groups)) for strategy in self.used)
        whole = f"rebuilt by least squares from {'; and '.join(said)}, as related tables are"
        return f"{self.inner.note}; {whole}" if self.inner.note else whole

    @property
    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative

    @property
    def error(self) -> RebuiltError:
        return self.rule

    @property
    def rule(self) -> RebuiltError:
        """How the errors of numbers follow from those of the margins."""
        inner = _plain(self.inner).error
        assert isinstance(inner, (PartError, MeanError, VarianceError))
        return RebuiltError(
            inner,
            self.groups.sizes,
            self.shown.sets,
            tuple(tuple(map(columns_of, strategy.parts)) for strategy in self.used),
            tuple(margin_weights(strategy) for strategy in self.used),
        )

    def expected_error(self, laws: Laws) -> float:
        """The sum over its grouping sets and parts of their mean squared errors, in proportion to
        what one individual adds.
        """
        total, start = 0.0, 0
        for use, strategy, unit in zip(_plain(self.inner).uses, self.used, self.units, strict=True):
            end = start + len(strategy.parts)
            noise = [variance_of(laws, key) for key in self.keys[start:end]]
            for kept in self.shown.sets:
                error = strategy.error(table_wanted(kept, len(self.groups.by)), noise)
                total += float(use.impact / unit**2) * error
            start = end
        return total

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return _plain(self.inner).combine(self._rebuilt(values, self.shown.sets))

    def _rebuilt(self, values: Sequence[Noisy], sets: Sequence[Kept]) -> list[Noisy]:
        """The integers of each part, for the shown groups of some sets."""
        found, start = [], 0
        for strategy in self.used:
            end = start + len(strategy.parts)
            whole = WholeTables(Estimate(strategy, values[start:end]))
            start = end
            found.append(np.concatenate([self._table(whole, kept) for kept in sets]))
        return found

    def _table(self, whole: WholeTables, kept: Kept) -> Noisy:
        cells = whole.cells([i in kept for i in range(len(self.groups.by))]).reshape(-1, 1)
        rows = self.shown.rows[self.shown.sets.index(kept)]
        return cells if rows is None else cells[rows]

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        drawn = drawn_of(noise)
        lows, highs = list[pl.Series](), list[pl.Series]()
        for kept in self.shown.sets:
            here = self._rebuilt(values, [kept])
            ends = _plain(self.inner).interval(here, self.rule.noises(drawn, kept), level)
            if ends is None:
                return None
            lows.append(ends[0])
            highs.append(ends[1])
        return pl.concat(lows), pl.concat(highs)


def _plain(inner: BoundAggregate) -> BoundAggregate:
    """The aggregate by the groups of one set."""
    return inner.inner if isinstance(inner, RolledAggregate) else inner


def _related_uses(
    inner: BoundAggregate,
    groups: SetGroups,
    strategies: Sequence[Strategy],
    portions: Sequence[Fraction],
) -> tuple[MeasurementUse, ...]:
    return tuple(
        made
        for use, strategy, portion in zip(_plain(inner).uses, strategies, portions, strict=True)
        for made in margin_uses(use, SetAxes(groups), strategy, portion, is_shared=False)
    )


def can_be_related(query: Query) -> bool:
    """Whether all outputs of a query can be rebuilt from margins of finer tables."""
    scope, groups = query.scope, query.groups
    if scope.norm is not None or scope.parts != 1 or query.depends_on_noise:
        return False
    if groups is not None and (groups.discovered or query.chooses_groups):
        return False
    return all(_is_related(aggregate, scope) for aggregate in query.aggregates)


def _is_related(aggregate: BoundAggregate, scope: QueryScope) -> bool:
    inner = _plain(aggregate)
    if isinstance(aggregate, RolledAggregate) and aggregate.is_nonnegative:
        return False  # whose sets are moved together
    if aggregate.request.mechanism != "auto" or aggregate.shape is not ONE:
        return False
    if not isinstance(inner.error, (PartError, MeanError, VarianceError)):
        return False
    return all(
        adds_up(use.part) and use.impact and not use.part.sensitivity(scope).is_zero
        for use in inner.uses
    )


def related_outputs(
    queries: Sequence[Query], common: CommonSets, scope: QueryScope
) -> list[tuple[Output, ...]]:
    """The outputs of several queries, rebuilt from margins of all of them. `queries`: those that
    `common` is of, in its order. `common`: what their groups have in common. `scope`: their rows by
    the common groups. Raises `UnboundedSensitivity` when nothing limits how far one individual
    moves a margin.
    """
    wanted: dict[Table, dict[Kept, Fraction]] = {}
    for query, shown in zip(queries, common.shown, strict=True):
        for aggregate in query.aggregates:
            for use in _plain(aggregate).uses:
                (table,) = use.part.tables
                weights = wanted.setdefault(table, dict.fromkeys(common.groups.sets, Fraction(0)))
                for kept in shown.sets:
                    weights[kept] += use.impact * aggregate.request.weight
    made = _Related(common, scope, wanted, {})
    return [
        tuple(made.output(output, query, shown) for output in query.outputs)
        for query, shown in zip(queries, common.shown, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Related:
    """What the aggregates of several queries are made of."""

    # As in `related_outputs`.
    common: CommonSets
    scope: QueryScope
    # How much the errors of the tables of each statistic count.
    wanted: Mapping[Table, Mapping[Kept, Fraction]]
    found: dict[tuple[Table, Degree], Strategy]  # What is measured of each statistic

    def output(self, output: Output, query: Query, shown: SetsOfQuery) -> Output:
        made = {
            p: self._aggregate(aggregate, query, shown)
            for p, aggregate in output.aggregates.items()
        }
        where = "of all rows" if query.groups is None else f"in {query.groups.words()}"
        return replace(output, aggregates=made, words=f"{output.words} {where}")

    def _aggregate(
        self, aggregate: BoundAggregate, query: Query, shown: SetsOfQuery
    ) -> RelatedAggregate:
        inner, weight = _plain(aggregate), aggregate.request.weight
        degrees: tuple[Degree, ...] = (1, 2)
        strategies: dict[Degree, tuple[Strategy, ...]] = {
            degree: tuple(self._strategy(use, degree) for use in inner.uses) for degree in degrees
        }
        portions = tuple(
            use.impact * weight * len(shown.sets) / sum(self.wanted[use.part.tables[0]].values())
            for use in inner.uses
        )
        groups = self.common.groups
        units = tuple(use.part.sensitivity(query.scope).linf for use in inner.uses)
        uses = _related_uses(inner, groups, strategies[2], portions)
        about = aggregate, groups, shown, strategies, portions, units
        return RelatedAggregate(aggregate.request, uses, *about, 2)

    def _strategy(self, use: MeasurementUse, degree: Degree) -> Strategy:
        (table,) = use.part.tables
        key = table, degree
        if key not in self.found:
            groups = self.common.groups
            sets = tuple((k, w) for k, w in self.wanted[table].items() if w)
            workload = sets_wanted(groups.sizes, sets)
            self.found[key] = best_margins(use.part, SetAxes(groups), workload, self.scope, degree)
        return self.found[key]


# -- histograms with counts of the same rows ------------------------------------------------------
# The counts of all cells add up to the number of rows, so both are rebuilt from noisy cells and a
# noisy total, at the shares that are best for both.

Strategies: TypeAlias = Mapping[Degree, Strategy]
_BITS: Final = 20
_CELLS = Wanted(("cells",))
_TOTAL = Wanted(("total",))


@dataclass(frozen=True, slots=True, eq=False)
class TotalledCells(BoundAggregate):
    """A histogram, or a count of rows, that is rebuilt from noisy cells and their noisy total."""

    inner: BoundHistogram | BoundCount  # What it is on its own
    table: Table  # The exact counts of cells that cover all rows
    # What is measured of them, where a rho is shared and where an epsilon is.
    strategies: Strategies
    portion: Fraction  # How much its own error counts in these
    degree: Degree  # Which of them is used

    def by(self, degree: Degree) -> TotalledCells:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _uses(self.inner, self.table, self.strategies[degree], self.portion)
        return replace(self, degree=degree, uses=uses)

    @property
    def strategy(self) -> Strategy:
        """What is measured."""
        return self.strategies[self.degree]

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative

    @property
    def note(self) -> str:
        return f"{self.inner.note}; {strategy_words(self.strategy, 'cells')}"

    @property
    def _wanted(self) -> Wanted:
        return _CELLS if isinstance(self.inner, BoundHistogram) else _TOTAL

    @property
    def error(self) -> RebuiltError:
        strategy = self.strategy
        (axis,) = strategy.workload.axes
        weights = tuple(
            share**strategy.degree / norm
            for share, norm in zip(strategy.shares, strategy.norms, strict=True)
        )
        kept = (0,) if self._wanted is _CELLS else ()
        measured = tuple((0,) if level else () for level in levels_of(strategy))
        return RebuiltError(PartError(), (axis.size,), (kept,), (measured,), (weights,))

    @property
    def ranges(self) -> Ranges | None:
        own = self.inner.ranges
        if not isinstance(own, BinRanges):
            return own
        (axis,) = self.strategy.workload.axes
        levels, weights = levels_of(self.strategy), weights_of(self.strategy)
        rule = DistributionError(axis.size, axis.branching, levels, weights, axis.size)
        return replace(own, rule=rule)

    def expected_error(self, laws: Laws) -> float:
        """Its mean squared error."""
        return self.strategy.error(self._wanted, [variance_of(laws, key) for key in self.keys])

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return self.inner.combine([self._rebuilt(values)])

    def _rebuilt(self, values: Sequence[Noisy]) -> Noisy:
        """The integers of cells, or of their total, of each group; of shape (groups, cells)."""
        lines = [np.ascontiguousarray(numbers.T) for numbers in values]
        estimate = Estimate(self.strategy, lines, lines=lines[0].shape[1])
        return np.ascontiguousarray(WholeTables(estimate).cells((self._wanted is _CELLS,)).T)

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        drawn = drawn_of(noise)
        (kept,) = self.error.sets
        law = self.error.noises(drawn, kept)
        return self.inner.interval([self._rebuilt(values)], law, level)


def _uses(
    inner: BoundAggregate, table: Table, strategy: Strategy, portion: Fraction
) -> tuple[MeasurementUse, ...]:
    """The levels, with what makes the shares of a plan's cost those of the strategy."""
    (axis,), role = strategy.workload.axes, inner.uses[0].role
    whole = dyadic_down(Fraction(strategy.objective()), _BITS) * portion
    return tuple(
        MeasurementUse(
            LevelSums(table, axis.branching, level),
            role,
            whole * share ** (strategy.degree + 1),
            share,
            is_shared=False,
        )
        for level, share in zip(levels_of(strategy), strategy.shares, strict=True)
    )


def with_totals(query: Query) -> Query:
    """The query with the counts of rows that it asks for, and the histogram with the fewest cells,
    rebuilt from the same noisy numbers; the query itself where it has not both.
    """
    scope = query.scope
    discovered = query.groups is not None and query.groups.discovered
    if scope.norm is not None or scope.parts != 1 or discovered or query.chooses_groups:
        return query
    shown = [a for a in query.aggregates if _is_of_rows(a)]
    counts = [a for a in query.aggregates if shown and _is_number_of_rows(a, scope)]
    if not counts:
        return query
    least = min(shown, key=lambda histogram: histogram.cells.size)
    cells = _all_cells(least.cells, scope.facts.columns)
    if cells.size < 2:
        return query
    same = [a for a in shown if a.cells == least.cells]
    table = Table(RowCount(), cells)
    weights = [sum((_weight(a) for a in some), Fraction(0)) for some in (same, counts)]
    strategies = _cell_strategies(table, weights[0], weights[1], scope)
    moved = {
        id(a): TotalledCells(
            a.request, _uses(a, table, strategies[2], portion), a, table, strategies, portion, 2
        )
        for a in (*same, *counts)
        for portion in [_weight(a) / sum(weights)]
        if isinstance(a, (BoundHistogram, BoundCount))
    }
    outputs = tuple(
        replace(o, aggregates={p: moved.get(id(a), a) for p, a in o.aggregates.items()})
        for o in query.outputs
    )
    return replace(query, outputs=outputs)


def _weight(aggregate: BoundAggregate) -> Fraction:
    (use,) = aggregate.uses
    return use.impact * aggregate.request.weight


def _is_number_of_rows(aggregate: BoundAggregate, scope: QueryScope) -> bool:
    """Whether it is a noisy number of rows."""
    if not isinstance(aggregate, BoundCount) or not _is_additive(aggregate):
        return False
    (use,) = aggregate.uses
    return use.part == COUNT and not use.part.sensitivity(scope).is_zero


def _is_of_rows(aggregate: BoundAggregate) -> TypeGuard[BoundHistogram]:
    """Whether it is a histogram of rows with noise on each number."""
    if not isinstance(aggregate, BoundHistogram) or not _is_additive(aggregate):
        return False
    return not aggregate.cells.of_individuals


def _is_additive(aggregate: BoundAggregate) -> bool:
    return aggregate.request.mechanism == "auto" and isinstance(aggregate.uses[0].part, Additive)


def _all_cells(cells: CategoryCells | BinCells, columns: Columns) -> CategoryCells | BinCells:
    """Cells that cover all rows: with one more for all other rows if there may be any."""
    if isinstance(cells, BinCells):
        return replace(cells, other=True)
    found = domain(cells.tree, columns)
    known = found.categories is not None and {*found.categories} <= {*cells.categories}
    if known and (None in cells.categories or not found.nullable):
        return cells
    return replace(cells, other=True)


def _cell_strategies(
    table: Table, of_cells: Fraction, of_total: Fraction, scope: QueryScope
) -> dict[Degree, Strategy]:
    assert table.cells is not None
    axis = Axis.nominal(table.cells.size)
    wanted = (replace(_CELLS, weight=of_cells), replace(_TOTAL, weight=of_total))
    parts = [Part((Factor(axis, level),)) for level in (0, 1)]
    found = [LevelSums(table, axis.branching, level).sensitivity(scope) for level in (0, 1)]
    made: dict[Degree, Strategy] = {}
    for degree in _DEGREES:
        squares = [s.l2_squared if degree == 1 else s.l1**2 for s in found]
        norms = {p: square / squares[1] for p, square in zip(parts, squares, strict=True)}
        made[degree] = tables(Workload((axis,), wanted), degree, norms.__getitem__)
    return made


_DEGREES: Final[tuple[Degree, ...]] = (1, 2)


# -- distribution functions with counts of the same rows ------------------------------------------
# A count is the number up to the last of all cells, so both are rebuilt from the same noisy levels
# of a tree, at shares that are best for both.

_EDGES = Wanted(("prefixes",))


@dataclass(frozen=True, slots=True, eq=False)
class TotalledLevels(BoundAggregate):
    """A distribution function, or a count of rows or values, that is rebuilt from noisy levels of
    all cells.
    """

    inner: BoundDistribution | BoundCount  # What it is on its own
    # The exact counts of cells: those of the distribution function first, then one for all other
    # rows where there may be any.
    table: Table
    run: int  # How many of the cells its last number is of
    # What is measured of them, where a rho is shared and where an epsilon is.
    strategies: Strategies
    portion: Fraction  # How much its own error counts in these
    degree: Degree  # Which of them is used

    def by(self, degree: Degree) -> TotalledLevels:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _uses(self.inner, self.table, self.strategies[degree], self.portion)
        return replace(self, degree=degree, uses=uses)

    @property
    def strategy(self) -> Strategy:
        """What is measured."""
        return self.strategies[self.degree]

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative

    @property
    def note(self) -> str:
        return f"{self._sign}; {strategy_words(self.strategy)}"

    @property
    def _sign(self) -> str:
        return self.inner.sign if isinstance(self.inner, BoundDistribution) else self.inner.note

    @property
    def error(self) -> DistributionError | RunError:
        return self.edges if isinstance(self.inner, BoundDistribution) else self.rule

    @property
    def edges(self) -> DistributionError:
        """The errors of the numbers up to each edge."""
        (axis,) = self.strategy.workload.axes
        levels, weights = levels_of(self.strategy), weights_of(self.strategy)
        shown = axis.size
        if isinstance(self.inner, BoundDistribution):
            shown = self.inner.cells.edges.size
        return DistributionError(axis.size, axis.branching, levels, weights, shown)

    @property
    def rule(self) -> RunError:
        """The error of its last number."""
        return RunError(self.edges, self.run)

    @property
    def ranges(self) -> Ranges | None:
        own = self.inner.ranges
        return replace(own, rule=self.edges) if isinstance(own, CumulativeRanges) else own

    def expected_error(self, laws: Laws) -> float:
        """The mean squared error of its numbers, of a distribution function in proportion to what
        it would be if they were added up from noisy cells.
        """
        noise = [variance_of(laws, key) for key in self.keys]
        (axis,), past = self.strategy.workload.axes, self.run
        whole = self.strategy.error(_TOTAL, noise)
        if not isinstance(self.inner, BoundDistribution):
            if past == axis.size:
                return whole
            return self.edges.measured.moments_of(0, past, noise, [0.0] * len(noise))[0]
        edges = axis.size * self.strategy.error(_EDGES, noise)
        mean = (edges - (axis.size - past) * whole) / past
        return mean / float(_flat(past))

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return self._column(self._rebuilt(values))

    def _column(self, counts: NDArray[np.int64]) -> pl.Series:
        """The result from the numbers of rows in the first 1, 2, ... cells."""
        if isinstance(self.inner, BoundDistribution):
            return self.inner.column_of(np.ascontiguousarray(counts[:, : self.run]))
        return self.inner.combine([counts[:, [self.run - 1]]])

    def _rebuilt(self, values: Sequence[Noisy]) -> NDArray[np.int64]:
        """The number of rows in the first 1, 2, ... cells; of shape (groups, cells)."""
        lines = [np.ascontiguousarray(numbers.T) for numbers in values]
        estimate = Estimate(self.strategy, lines, lines=lines[0].shape[1])
        return WholeTables(estimate).cells((True,), (True,)).T

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        assert isinstance(noise, Independent)
        laws = [law for law, _ in noise.parts if isinstance(law, AdditiveMechanism)]
        found = self._rebuilt(values)
        if isinstance(self.inner, BoundDistribution):
            reach = self.edges.reaches(laws, level)
            return self._column(found - reach), self._column(found + reach)
        whole = Independent(((self.rule.noise(laws), Fraction(1)),))
        return self.inner.interval([found[:, [self.run - 1]]], whole, level)


def with_whole_levels(query: Query) -> Query:
    """The query with the counts that it asks for, and the distribution function with the fewest
    cells, rebuilt from the same noisy numbers; the query itself where it has not both.
    """
    scope = query.scope
    discovered = query.groups is not None and query.groups.discovered
    if scope.norm is not None or scope.parts != 1 or discovered or query.chooses_groups:
        return query
    functions = [
        a
        for a in query.aggregates
        if isinstance(a, BoundDistribution) and a.request.mechanism == "auto"
    ]
    if not functions:
        return query
    least = min(functions, key=lambda a: a.cells.size)
    counts = [a for a in query.aggregates if _is_number_of_all(a, least, scope)]
    if not counts:
        return query
    made = _Totalled.of(least, [a for a in functions if a.cells == least.cells], counts, scope)
    outputs = tuple(
        replace(o, aggregates={p: made.moved(a) for p, a in o.aggregates.items()})
        for o in query.outputs
    )
    return replace(query, outputs=outputs)


def _is_number_of_all(
    aggregate: BoundAggregate, function: BoundDistribution, scope: QueryScope
) -> bool:
    """Whether it is a noisy number of all rows, or of all values of the distribution function."""
    if not isinstance(aggregate, BoundCount) or aggregate.request.mechanism != "auto":
        return False
    (use,) = aggregate.uses
    if use.part.sensitivity(scope).is_zero:
        return False
    return use.part == COUNT or use.part == _count_of_values(function)


def _count_of_values(function: BoundDistribution) -> Additive:
    return Additive(Table(ValueCount(function.cells.value.tree)))


@dataclass(frozen=True, slots=True, eq=False)
class _Totalled:
    """What is rebuilt of one query."""

    # As in `TotalledLevels`.
    table: Table
    strategies: Strategies
    # For each aggregate that is moved how many cells its last number is of, and how much of the
    # error is its own.
    runs: Mapping[int, tuple[int, Fraction]]

    @classmethod
    def of(
        cls,
        least: BoundDistribution,
        functions: Sequence[BoundDistribution],
        counts: Sequence[BoundAggregate],
        scope: QueryScope,
    ) -> _Totalled:
        """Functions of the same cells, and counts of rows or of their values."""
        cells, values = least.cells, _count_of_values(least)
        rows = [a for a in counts if a.uses[0].part != values]
        whole: Cells = cells
        if rows and not _holds_all(least, scope.facts.columns):
            whole = WholeCells(cells)
        table = Table(RowCount(), whole)
        weights = {id(a): _flat(cells.size) * a.request.weight for a in functions}
        weights |= {id(a): a.uses[0].impact * a.request.weight for a in counts}
        of_functions = sum((weights[id(a)] for a in functions), Fraction(0))
        total = sum(weights.values(), Fraction(0))
        strategies = _level_strategies(table, of_functions, total - of_functions, scope)
        runs = {id(a): whole.size if a in rows else cells.size for a in (*functions, *counts)}
        return cls(table, strategies, {n: (runs[n], weights[n] / total) for n in runs})

    def moved(self, aggregate: BoundAggregate) -> BoundAggregate:
        """The rebuilt aggregate."""
        if id(aggregate) not in self.runs:
            return aggregate
        assert isinstance(aggregate, (BoundDistribution, BoundCount))
        run, portion = self.runs[id(aggregate)]
        uses = _uses(aggregate, self.table, self.strategies[2], portion)
        about = aggregate, self.table, run, self.strategies, portion
        return TotalledLevels(aggregate.request, uses, *about, 2)


def _flat(cells: int) -> Fraction:
    """The mean squared error of numbers that are added up from this many cells."""
    return Fraction(cells + 1, 2)


def _holds_all(function: BoundDistribution, columns: Columns) -> bool:
    """Whether each row has a value, and so a cell."""
    found = domain(function.cells.value.tree, columns)
    return not (found.nullable or found.nan)


def _level_strategies(
    table: Table, of_edges: Fraction, of_total: Fraction, scope: QueryScope
) -> dict[Degree, Strategy]:
    """What to measure of the cells, whose last prefix is the number of all rows."""
    assert table.cells is not None
    size = table.cells.size
    wanted = (replace(_EDGES, weight=of_edges), replace(_TOTAL, weight=of_total))
    found = [
        LevelSums(table, max(2, size), level).sensitivity(scope) for level in (0, int(size > 1))
    ]
    made: dict[Degree, Strategy] = {}
    for degree in _DEGREES:
        squares = [s.l2_squared if degree == 1 else s.l1**2 for s in found]
        of_all = squares[0] / squares[1]

        def norm(part: Part, of_all: Fraction = of_all) -> Fraction:
            return of_all if part.entries == 1 else Fraction(1)

        flat = tables(Workload((Axis.ordered(size, max(2, size)),), wanted), degree, norm)
        tree = best_tables(Workload((Axis.ordered(size),), wanted), degree, norm)
        made[degree] = flat if flat.objective() <= tree.objective() else tree
    return made


# -- expected errors of aggregates, however they are measured, to compare ways to do so -----------


def expected_squared_error(aggregate: BoundAggregate, scope: QueryScope, laws: Laws) -> float:
    """The sum over the parts of an aggregate, and its grouping sets, of their mean squared errors,
    each by its effect and relative to what one individual adds to it. `aggregate`: of selections
    what is expected of their score. `scope`: the scope of the query. `laws`: the noise of each of
    its parts on its own.
    """
    if isinstance(aggregate, RelatedAggregate):
        return aggregate.expected_error(laws)
    if isinstance(aggregate, TotalledCells):
        (use,) = aggregate.inner.uses
        return _relative(use, scope) * aggregate.expected_error(laws)
    if isinstance(aggregate, (BoundDistribution, RolledDistribution)):
        return aggregate.expected_error(laws)
    if isinstance(aggregate, TotalledLevels):
        found = aggregate.expected_error(laws)
        if isinstance(aggregate.inner, BoundDistribution):
            return found
        (use,) = aggregate.inner.uses
        return _relative(use, scope) * found
    if not isinstance(aggregate, RolledAggregate):
        return sum(
            _relative(use, scope) * _squared(laws, key, scope)
            for use, key in zip(aggregate.uses, aggregate.keys, strict=True)
        )
    total, start, columns = 0.0, 0, len(aggregate.axes.sizes)
    for use, strategy in zip(aggregate.inner.uses, aggregate.used, strict=True):
        end = start + len(strategy.parts)
        noise = [_squared(laws, key, scope) for key in aggregate.keys[start:end]]
        start = end
        effect = _relative(use, scope)
        for kept in aggregate.axes.sets:
            total += effect * strategy.error(table_wanted(kept, columns), noise)
    return total


def _relative(use: MeasurementUse, scope: QueryScope) -> float:
    """What an error of a part does, relative to what one individual can."""
    linf = use.part.sensitivity(scope).linf
    return float(use.impact / (linf or Fraction(1)) ** 2)


def _squared(laws: Laws, key: MeasurementKey, scope: QueryScope) -> float:
    law, (part, mechanism) = laws[key], key
    if isinstance(law, AdditiveMechanism):
        return law.variance()
    task = part.task("", part.sensitivity(scope), mechanism, scope)
    return math.exp(2.0 * law.log_noise(task.alternatives))


# -- the ways in which a query can be measured, where what is best rests on the spend -------------

_MEASURED = (
    RolledAggregate,
    RolledDistribution,
    BoundDistribution,
    RelatedAggregate,
    TotalledCells,
    TotalledLevels,
)
"""Aggregates rebuilt from parts that depend on how a spend is shared."""


def ways_to_measure(query: Query, spend: Budget) -> list[Query]:
    """The best query to measure if shares of the spend are epsilons, or amounts of rho; both if
    that is unknown, and the query itself if that makes no difference. Several quantiles of one
    column are answered together where that has a smaller error.
    """
    query = answer_together(query, spend)
    if not any(isinstance(a, _MEASURED) for a in query.aggregates):
        return [query]
    degrees: tuple[Degree, ...] = (1,)
    if isinstance(spend, (PureDP, ApproxDP)):
        degrees = (2, 1) if spend.slack else (2,)
    ways = [_measured(query, degree) for degree in degrees]
    roots: list[Query] = []
    if len(degrees) > 1:  # many parts may be composed better than one: both are compared
        roots = [way for way in ways[1:] if any(map(_is_root, way.aggregates))]
    if roots or is_edition_before():
        ways = [_changed(way, _as_tree) for way in ways]
    if is_edition_before():
        roots = []
    own = [made for way in ways if (made := _with_own_totals(way)) is not way]
    return [*ways, *own, *map(_of_finest, own), *roots]


def _is_root(aggregate: BoundAggregate) -> bool:
    """Whether it is measured by the square root factorisation."""
    return isinstance(aggregate, BoundDistribution) and aggregate.is_root


def _as_tree(aggregate: BoundAggregate) -> BoundAggregate:
    """The aggregate measured by levels of a tree, where it is by the square root factorisation."""
    if isinstance(aggregate, BoundDistribution) and aggregate.is_root:
        return replace(aggregate, root_norm=None).by(aggregate.degree)
    return aggregate


def _with_own_totals(query: Query) -> Query:
    """The query where totals of grouping sets are tables separately, where that lets them be
    drawn jointly with others.
    """
    rolled = [a for a in query.aggregates if isinstance(a, RolledAggregate)]
    tables = {table for a in rolled for use in a.inner.uses for table in use.part.tables}
    if len(tables) < 2 or all(a.own_totals is None for a in rolled):
        return query
    return _changed(query, lambda a: a.with_own_totals() if isinstance(a, RolledAggregate) else a)


def _of_finest(query: Query) -> Query:
    """The query where larger groups are added up from the finest of grouping sets alone. Shares
    are the best for each part on its own, but parts may have smaller errors if they are drawn
    jointly at the whole spend.
    """
    return _changed(query, lambda a: _added_up(a) if isinstance(a, RolledAggregate) else a)


def _added_up(rolled: RolledAggregate) -> RolledAggregate:
    finest = {
        degree: tuple(strategy.of_finest() for strategy in used)
        for degree, used in rolled.strategies.items()
    }
    return replace(rolled, strategies=finest).by(rolled.degree)


def _measured(query: Query, degree: Degree) -> Query:
    return _changed(query, lambda a: a.by(degree) if isinstance(a, _MEASURED) else a)


def _changed(query: Query, change: Callable[[BoundAggregate], BoundAggregate]) -> Query:
    """The query with changed aggregates."""
    outputs = [
        replace(output, aggregates={p: change(a) for p, a in output.aggregates.items()})
        for output in query.outputs
    ]
    return replace(query, outputs=tuple(outputs))
