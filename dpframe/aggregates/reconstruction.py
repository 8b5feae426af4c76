"""Aggregates that are rebuilt by least squares from what is drawn for several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, Self, TypeAlias, TypeGuard

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import (
    BoundAggregate,
    Clamp,
    Laws,
    MeasurementUse,
    Noisy,
    Output,
    Query,
    effect_of,
    variance_of,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.cells import BinCells, CategoryCells, Cells, WholeCells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.error import MeanError, NoErrorBound, PartError, VarianceError
from dpframe.aggregates.grouping_sets import (
    adds_up,
    best_margins,
    by_own_sets,
    margin_words,
    sets_wanted,
    table_wanted,
)
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.margins import (
    Margin,
    SetAxes,
    by_words,
    columns_of,
    level_margins,
    levels_of,
    strategy_words,
    uses_of,
)
from dpframe.aggregates.measurement import COUNT, Additive, Measurement, Table
from dpframe.aggregates.noise import Independent, JointNoise, draws_of
from dpframe.aggregates.quantile import answer_together
from dpframe.aggregates.reconstructed_error import (
    BinRanges,
    CumulativeRanges,
    DistributionError,
    OutputError,
    Ranges,
    RebuiltError,
    RunError,
)
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import ONE, Shape
from dpframe.aggregates.statistics import (
    GridSum,
    RowCount,
    SquareSum,
    Statistic,
    UnitCount,
    UnitRows,
    UnitTotal,
    ValueCount,
)
from dpframe.core.budget import ApproxDP, Budget, PureDP
from dpframe.core.dtypes import Columns
from dpframe.core.edition import is_edition_before
from dpframe.core.exact import show
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
    Part,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    apportion,
    best_tables,
    nearest_nonnegative,
    tables,
    trees,
    whole_deviation,
)

# -- what all have in common ----------------------------------------------------------------------

Kept: TypeAlias = tuple[int, ...]
Strategies: TypeAlias = Mapping[Degree, tuple[Strategy, ...]]
Interval: TypeAlias = tuple[pl.Series, pl.Series]
_DEGREES: Final[tuple[Degree, ...]] = (1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction(BoundAggregate):
    """An aggregate that is rebuilt by least squares from the vectors that are best to measure."""

    inner: BoundAggregate  # What it is on its own; by grouping sets, of the finest groups
    # What is measured of each of its parts, where a rho is shared (1) and where an epsilon is (2).
    strategies: Strategies
    degree: Degree  # Which of them is used

    def by(self, degree: Degree) -> Self:
        """The same where a rho is shared (1) or an epsilon (2)."""
        return replace(self, degree=degree, uses=tuple(self._uses(self.strategies[degree])))

    def _uses(self, strategies: Sequence[Strategy]) -> Iterable[MeasurementUse]:
        """The vectors, with what makes the shares of a plan's cost those of the strategies."""
        raise NotImplementedError(self.request.kind)

    @property
    def used_strategies(self) -> tuple[Strategy, ...]:
        """What is measured of each part of the aggregate."""
        return self.strategies[self.degree]

    @property
    def strategy(self) -> Strategy:
        """What is measured, of an aggregate of one part."""
        (strategy,) = self.used_strategies
        return strategy

    @property
    def rule(self) -> OutputError:
        """How the errors of its numbers follow from noise, before any is moved."""
        return self.error

    @property
    def serves(self) -> str:
        """What its vectors serve besides itself: counts of its query, other queries, or nothing."""
        return ""

    @property
    def set_names(self) -> Sequence[str] | None:
        """What its grouping sets have columns of; None without grouping sets."""
        return None

    @property
    def shape(self) -> Shape:
        return self.inner.shape

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner.clamps

    @property
    def is_nonnegative(self) -> bool:
        return self.inner.is_nonnegative


def _laws_of(noise: JointNoise) -> list[AdditiveMechanism]:
    assert isinstance(noise, Independent)
    return [law for law, _ in noise.parts if isinstance(law, AdditiveMechanism)]


def _join(ends: Iterable[Interval]) -> Interval:
    """The intervals of several grouping sets."""
    lows, highs = zip(*ends, strict=True)
    return pl.concat(lows), pl.concat(highs)


def _change(query: Query, change: Callable[[BoundAggregate], BoundAggregate]) -> Query:
    """The query with changed aggregates."""
    outputs = [
        replace(output, aggregates={p: change(a) for p, a in output.aggregates.items()})
        for output in query.outputs
    ]
    return replace(query, outputs=tuple(outputs))


def _has_known_groups(query: Query) -> bool:
    """Whether rows count alike, in groups that neither noise nor data decide about."""
    found = query.groups is not None and query.groups.discovered
    scope = query.scope
    return scope.norm is None and scope.parts == 1 and not found and not query.chooses_groups


# -- distribution functions by grouping sets ------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SetDistributions(Reconstruction):
    """Distribution functions by several grouping sets at once, rebuilt from tables of runs of
    cells.
    """

    inner: BoundDistribution
    axes: SetAxes  # The columns of the grouping sets, and the steps between edges
    scope: QueryScope  # The scope of the query

    def by(self, degree: Degree) -> Self:
        """The same where a rho is shared (1) or an epsilon (2), whose search may take long."""
        found = self.strategies.get(degree)
        if found is None:
            found = (_best(self.inner.uses[0].part, self.axes, self.scope, degree),)
        strategies = {**self.strategies, degree: found}
        uses = tuple(self._uses(found))
        return replace(self, strategies=strategies, degree=degree, uses=uses)

    def _uses(self, strategies: Sequence[Strategy]) -> Iterable[MeasurementUse]:
        (strategy,) = strategies
        weight = strategy.workload.flat(strategy.workload.tables[0])
        use = self.inner.uses[0]
        margins = self.axes.margins(use.part.tables[0], strategy)
        return uses_of(strategy, margins, use.role, weight)

    @property
    def sets(self) -> tuple[Kept, ...]:
        """The columns of each grouping set."""
        return self.axes.groups.sets

    @property
    def set_names(self) -> Sequence[str]:
        return self.axes.names

    @property
    def note(self) -> str:
        said = f"{self.inner.sign}; rebuilt by least squares from "
        said += margin_words(self.strategy, self.axes)
        if self.inner.nonnegative:
            return f"{said}; each group by itself is made to rise, so groups need not add up"
        return said

    @property
    def error(self) -> DistributionError:
        return DistributionError.of(self.strategy, self.inner.cells.edges.size, self.sets)

    @property
    def ranges(self) -> CumulativeRanges:
        return replace(self.inner.ranges, rule=self.error)

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """The sum over the sets of the mean squared errors of its numbers, in proportion to what
        they would be if they were added up from noisy cells of their own.
        """
        return self.strategy.objective([variance_of(laws, key) for key in self.keys])

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return pl.concat([self.inner.column_of(found) for found in self._rebuild(values)])

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> Interval | None:
        laws, column = _laws_of(noise), self.inner.column_of
        reaches = (self.error.reaches(laws, level, kept) for kept in self.sets)
        both = zip(self._rebuild(values), reaches, strict=True)
        return _join((column(sums - reach), column(sums + reach)) for sums, reach in both)

    def _rebuild(self, values: Sequence[Noisy]) -> Iterator[NDArray[np.int64]]:
        """For each set the number of rows up to each edge, of shape (groups, cells)."""
        tables = WholeTables(Estimate(self.strategy, values))
        prefixes = [False] * len(self.axes.groups.sizes) + [True]
        for kept in self.axes.masks:
            yield tables.cells(kept, prefixes).reshape(-1, self.axes.width)


def _best(part: Measurement, axes: SetAxes, scope: QueryScope, degree: Degree) -> Strategy:
    """What to measure, of the tree whose error is least; one with all cells below its root has
    tables of cells and of totals alone.
    """
    columns = tuple(map(Axis.nominal, axes.groups.sizes))
    wanted = tuple(
        Wanted((*("cells" if k else "total" for k in mask[:-1]), "prefixes")) for mask in axes.masks
    )
    tried = [Workload((*columns, axis), wanted) for axis in _likely(axes.width, degree)]
    strategies = [best_margins(part, axes, w, scope, degree, has_total=True) for w in tried]
    return min(strategies, key=lambda strategy: strategy.objective())


@lru_cache(maxsize=64)
def _likely(cells: int, degree: Degree) -> tuple[Axis, ...]:
    """Trees that may be the best ones: those that are it for one group, and that without levels."""
    flat, one = Axis.ordered(cells, max(2, cells)), (Wanted(("prefixes",)),)
    found = trees(Workload((Axis.ordered(cells),), one), degree)
    rising = sorted(found, key=lambda tree: tables(tree, degree).objective())
    return tuple(dict.fromkeys([flat, *(tree.axes[0] for tree in rising[:_TRIED])]))


_TRIED: Final = 2
"""This many trees are tried."""


# -- additive aggregates by grouping sets ---------------------------------------------------------

_ADDITIVE: Final = (RowCount, ValueCount, GridSum, SquareSum, UnitCount, UnitRows, UnitTotal)


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """How an aggregate of one of several queries follows from margins that serve all of them."""

    shown: SetsOfQuery  # The sets that it shows, and the groups of each
    portions: tuple[Fraction, ...]  # What of the error of each strategy counts for it
    # The sensitivity of each of its parts if it were the only output.
    units: tuple[Fraction, ...]
    before: BoundAggregate  # What it is without the other queries


@dataclass(frozen=True, slots=True, eq=False)
class SetReconstruction(Reconstruction):
    """An additive aggregate by one or several grouping sets, rebuilt from the margins that are best
    for it, or for it and other queries.
    """

    axes: SetAxes  # The columns of the grouping sets that are measured, and the cells in them
    # The same strategies where totals are tables separately, and so may be drawn jointly with those
    # of other parts; None where they are.
    own_totals: Strategies | None = None
    related: Relation | None = None  # None where the margins serve this query alone

    def with_own_totals(self) -> SetReconstruction:
        """The same where no other table has a total."""
        if self.own_totals is None:
            return self
        return replace(self, strategies=self.own_totals, own_totals=None).by(self.degree)

    def from_finest(self) -> SetReconstruction:
        """The same where larger groups are added up from the finest of the grouping sets alone."""
        finest = {
            degree: tuple(strategy.of_finest() for strategy in used)
            for degree, used in self.strategies.items()
        }
        return replace(self, strategies=finest).by(self.degree)

    def _uses(self, strategies: Sequence[Strategy]) -> Iterable[MeasurementUse]:
        uses, alone = self.inner.uses, self.related is None
        portions = [use.impact for use in uses] if self.related is None else self.related.portions
        for use, strategy, portion in zip(uses, strategies, portions, strict=True):
            margins = self.axes.margins(use.part.tables[0], strategy)
            yield from uses_of(strategy, margins, use.role, portion, is_shared=alone)

    @property
    def serves(self) -> str:
        return "" if self.related is None else "queries"

    @property
    def sets(self) -> tuple[Kept, ...]:
        """The axes of each table that it shows."""
        return self.axes.sets if self.related is None else self.related.shown.sets

    @property
    def set_names(self) -> Sequence[str]:
        return self.axes.names

    @property
    def note(self) -> str:
        said = dict.fromkeys(margin_words(strategy, self.axes) for strategy in self.used_strategies)
        whole = f"rebuilt by least squares from {'; and '.join(said)}"
        own = self.inner.note
        if self.related is not None:
            own, whole = self.related.before.note, f"{whole}, as related tables are"
        if all(isinstance(s, (UnitRows, UnitTotal)) for s in self._statistics):
            whole = f"{_TOTALS}; {whole}"
        if self.is_projected:
            return f"{whole}; {_PROJECTED}{self._rounding}"
        return f"{own}; {whole}" if own else whole

    @property
    def _rounding(self) -> str:
        """Which sets pay for making cells whole, where there are many cells."""
        axes = self.axes
        if math.prod(axes.sizes) <= MANY_CELLS:
            return ""
        moved = [
            f"{show(round(deviation, 1))} to results {by_words(tuple(axes.names[i] for i in set_))}"
            for set_, kept in zip(axes.sets, axes.masks, strict=True)
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
    def _statistics(self) -> list[Statistic]:
        return [use.part.tables[0].statistic for use in self.inner.uses]

    @property
    def is_projected(self) -> bool:
        """Whether the tables of all sets are moved together, so that no number is negative."""
        return self.is_nonnegative and self.related is None

    @property
    def error(self) -> OutputError:
        if self.is_projected:
            return NoErrorBound(
                f"{self.name!r} is moved to near tables without negative numbers, by how "
                "much depends on the data",
                "ask for interval=0.95, which holds the exact numbers all the same, or leave "
                "nonnegative=True out",
            )
        return self.rule

    @property
    def rule(self) -> RebuiltError:
        inner = self.inner.error
        assert isinstance(inner, (PartError, MeanError, VarianceError))
        return RebuiltError(
            inner,
            self.axes.sizes,
            self.sets,
            tuple(tuple(map(columns_of, strategy.parts)) for strategy in self.used_strategies),
            tuple(strategy.weights for strategy in self.used_strategies),
        )

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """The sum over its grouping sets and parts of their mean squared errors, in proportion to
        what one individual adds.
        """
        total, start, columns = 0.0, 0, len(self.axes.sizes)
        for strategy, effect in zip(self.used_strategies, self._effects(scope), strict=True):
            end = start + len(strategy.parts)
            noise = [variance_of(laws, key) for key in self.keys[start:end]]
            for kept in self.sets:
                total += effect * strategy.error(table_wanted(kept, columns), noise)
            start = end
        return total

    def _effects(self, scope: QueryScope) -> list[float]:
        """What an error of each part does."""
        if self.related is None:
            return [effect_of(use, scope) for use in self.inner.uses]
        pairs = zip(self.inner.uses, self.related.units, strict=True)
        return [float(use.impact / unit**2) for use, unit in pairs]

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        rebuild = self._nonnegative_tables if self.is_projected else self._signed_tables
        tables = [rebuild(estimate) for estimate in self._estimates(values)]
        return self.inner.combine([np.concatenate(sets) for sets in tables])

    def _estimates(self, values: Sequence[Noisy]) -> Iterator[Estimate]:
        """What is known of each part."""
        start = 0
        for strategy in self.used_strategies:
            end = start + len(strategy.parts)
            yield Estimate(strategy, values[start:end])
            start = end

    def _signed_tables(self, estimate: Estimate) -> list[Noisy]:
        """The tables of the sets, which may have negative numbers; of shape (groups, cells)."""
        whole_tables, everything = WholeTables(estimate), self.axes.everything
        rows = [None] * len(self.sets) if self.related is None else self.related.shown.rows
        tables = (
            whole_tables.cells([i in kept for i in everything]).reshape(-1, self.axes.width)
            for kept in self.sets
        )
        return [t if some is None else t[some] for t, some in zip(tables, rows, strict=True)]

    def _nonnegative_tables(self, estimate: Estimate) -> list[Noisy]:
        """The sets' tables from zero up, which are margins of one table."""
        wanted = dict(zip(self.axes.masks, estimate.strategy.workload.tables, strict=True))
        cells = nearest_nonnegative(
            {kept: estimate.cells(kept) for kept in wanted},
            {kept: estimate.strategy.error(table) for kept, table in wanted.items()},
            self.axes.sizes,
        )
        counts = apportion(cells)
        tables = [
            counts.sum(axis=tuple(i for i, k in enumerate(kept) if not k), keepdims=True)
            for kept in self.axes.masks
        ]
        return [table.reshape(-1, self.axes.width) for table in tables]

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> Interval | None:
        rule, drawn = self.rule, draws_of(noise)
        tables = [self._signed_tables(estimate) for estimate in self._estimates(values)]
        intervals = list[Interval]()
        for kept, numbers in zip(self.sets, zip(*tables, strict=True), strict=True):
            ends = self.inner.interval(numbers, rule.noises(drawn, kept), level)
            if ends is None:
                return None
            intervals.append(ends)
        joined = _join(intervals)
        return _around(*joined, self.combine(values)) if self.is_projected else joined

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
        statistics = self._statistics
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


def by_grouping_sets(inner: BoundAggregate, scope: QueryScope) -> BoundAggregate:
    """An aggregate by groups unchanged; by grouping sets, all of these at once. Raises
    `UnsupportedOperation` when its parts do not add up over groups, and `UnboundedSensitivity` when
    nothing limits how far one individual moves a table.
    """
    groups = scope.groups
    if not isinstance(groups, SetGroups):
        return inner
    if isinstance(inner, BoundDistribution):
        axes = SetAxes(groups, inner.cells)
        return SetDistributions(inner.request, (), inner, {}, 1, axes, scope).by(1)  # found soonest
    tables = [_additive(inner, use) for use in inner.uses]
    if None in tables or _is_several_times(inner, scope):
        return _by_own_sets(inner, scope)
    axes = SetAxes(groups, tables[0].cells if tables[0] is not None else None)
    strategies, own = (
        _set_strategies(inner, axes, scope, has_total) for has_total in (True, False)
    )
    beside = any(s.total_of is not None for used in strategies.values() for s in used)
    own_totals = own if beside and axes.cells is None else None
    made = SetReconstruction(inner.request, (), inner, strategies, 2, axes, own_totals)
    return made.by(2)


def _set_strategies(
    inner: BoundAggregate, axes: SetAxes, scope: QueryScope, has_total: bool
) -> Strategies:
    """What is best to measure of each part."""
    workload = sets_wanted(axes.sizes, tuple((kept, Fraction(1)) for kept in axes.sets))
    return {
        degree: tuple(
            best_margins(use.part, axes, workload, scope, degree, has_total) for use in inner.uses
        )
        for degree in _DEGREES
    }


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
    made = by_own_sets(inner, scope)
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


def _plain(aggregate: BoundAggregate) -> BoundAggregate:
    """The aggregate by the groups of one set."""
    if isinstance(aggregate, SetReconstruction) and aggregate.related is None:
        return aggregate.inner
    return aggregate


def can_be_related(query: Query) -> bool:
    """Whether all outputs of a query can be rebuilt from margins of finer tables."""
    if query.depends_on_noise or not _has_known_groups(query):
        return False
    return all(_is_related(aggregate, query.scope) for aggregate in query.aggregates)


def _is_related(aggregate: BoundAggregate, scope: QueryScope) -> bool:
    inner = _plain(aggregate)
    if isinstance(aggregate, SetReconstruction) and aggregate.is_projected:
        return False
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
    """The outputs of several queries, rebuilt from margins of all of them. `queries` are those
    that `common` is of, in its order, and `scope` has their rows by the common groups. Raises
    `UnboundedSensitivity` when nothing limits how far one individual moves a margin.
    """
    axes, sets = SetAxes(common.groups), common.groups.sets
    wanted: dict[Table, dict[Kept, Fraction]] = {}  # how much the errors of each table count
    for query, shown in zip(queries, common.shown, strict=True):
        for aggregate in query.aggregates:
            for use in _plain(aggregate).uses:
                (table,) = use.part.tables
                weights = wanted.setdefault(table, dict.fromkeys(sets, Fraction(0)))
                for kept in shown.sets:
                    weights[kept] += use.impact * aggregate.request.weight
    known: dict[tuple[Table, Degree], Strategy] = {}

    def strategy_of(use: MeasurementUse, degree: Degree) -> Strategy:
        (table,) = use.part.tables
        if (table, degree) not in known:
            weights = tuple((k, w) for k, w in wanted[table].items() if w)
            workload = sets_wanted(axes.sizes, weights)
            known[table, degree] = best_margins(use.part, axes, workload, scope, degree)
        return known[table, degree]

    def relate(aggregate: BoundAggregate, query: Query, shown: SetsOfQuery) -> SetReconstruction:
        inner, weight = _plain(aggregate), aggregate.request.weight
        strategies: Strategies = {
            d: tuple(strategy_of(use, d) for use in inner.uses) for d in _DEGREES
        }
        portions = tuple(
            use.impact * weight * len(shown.sets) / sum(wanted[use.part.tables[0]].values())
            for use in inner.uses
        )
        units = tuple(use.part.sensitivity(query.scope).linf for use in inner.uses)
        relation = Relation(shown, portions, units, aggregate)
        about = aggregate.request, (), inner, strategies
        return SetReconstruction(*about, 2, axes, related=relation).by(2)

    result = []
    for query, shown in zip(queries, common.shown, strict=True):
        where = "of all rows" if query.groups is None else f"in {query.groups.words()}"
        outputs = list[Output]()
        for output in query.outputs:
            shared = {p: relate(a, query, shown) for p, a in output.aggregates.items()}
            outputs.append(replace(output, aggregates=shared, words=f"{output.words} {where}"))
        result.append(tuple(outputs))
    return result


# -- histograms with counts of the same rows ------------------------------------------------------
# The counts of all cells add up to the number of rows, so both are rebuilt from noisy cells and a
# noisy total, at the shares that are best for both.

_CELLS = Wanted(("cells",))
_TOTAL = Wanted(("total",))


@dataclass(frozen=True, slots=True, eq=False)
class LevelReconstruction(Reconstruction):
    """An aggregate that is rebuilt from noisy levels of cells that others have in common."""

    table: Table  # The exact counts of cells
    portion: Fraction  # How much its own error counts in the strategies

    def _uses(self, strategies: Sequence[Strategy]) -> Iterable[MeasurementUse]:
        (strategy,) = strategies
        margins, role = level_margins(self.table, strategy), self.inner.uses[0].role
        return uses_of(strategy, margins, role, self.portion, is_shared=False)

    @property
    def serves(self) -> str:
        return "counts"

    @property
    def note(self) -> str:
        own = self.inner.sign if isinstance(self.inner, BoundDistribution) else self.inner.note
        (axis,) = self.strategy.workload.axes
        return f"{own}; {strategy_words(self.strategy, 'steps' if axis.is_ordered else 'cells')}"

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """Its mean squared error, in proportion to what one individual adds."""
        (use,), noise = self.inner.uses, [variance_of(laws, key) for key in self.keys]
        return effect_of(use, scope) * self._variance(noise)

    def _variance(self, noise: Sequence[float]) -> float:
        """The mean squared error of its numbers, from the variances of the noise of levels."""
        raise NotImplementedError(self.request.kind)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return self.inner.combine([self._rebuild(values)])

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> Interval | None:
        return self.inner.interval([self._rebuild(values)], self._noise(noise), level)

    def _rebuild(self, values: Sequence[Noisy]) -> Noisy:
        """The whole numbers that it is made of, of each group; of shape (groups, numbers)."""
        raise NotImplementedError(self.request.kind)

    def _noise(self, noise: JointNoise) -> JointNoise:
        """The law of their noise."""
        raise NotImplementedError(self.request.kind)

    def _whole(self, values: Sequence[Noisy]) -> WholeTables:
        """The whole numbers of each group, from arrays of shape (groups, cells)."""
        lines = [np.ascontiguousarray(numbers.T) for numbers in values]
        return WholeTables(Estimate(self.strategy, lines, lines=lines[0].shape[1]))


@dataclass(frozen=True, slots=True, eq=False)
class CellReconstruction(LevelReconstruction):
    """A histogram, or a count of rows, that is rebuilt from noisy cells and their noisy total."""

    @property
    def _has_cells(self) -> bool:
        return isinstance(self.inner, BoundHistogram)

    @property
    def error(self) -> RebuiltError:
        (axis,), weights = self.strategy.workload.axes, self.strategy.weights
        kept = (0,) if self._has_cells else ()
        measured = tuple((0,) if level else () for level in levels_of(self.strategy))
        return RebuiltError(PartError(), (axis.size,), (kept,), (measured,), (weights,))

    @property
    def ranges(self) -> Ranges | None:
        own, (axis,) = self.inner.ranges, self.strategy.workload.axes
        if not isinstance(own, BinRanges):
            return own
        return replace(own, rule=DistributionError.of(self.strategy, axis.size))

    def _variance(self, noise: Sequence[float]) -> float:
        return self.strategy.error(_CELLS if self._has_cells else _TOTAL, noise)

    def _rebuild(self, values: Sequence[Noisy]) -> Noisy:
        return np.ascontiguousarray(self._whole(values).cells((self._has_cells,)).T)

    def _noise(self, noise: JointNoise) -> JointNoise:
        (kept,) = self.error.sets
        return self.error.noises(draws_of(noise), kept)


def with_totals(query: Query) -> Query:
    """The query with the counts of rows that it asks for, and the histogram with the fewest cells,
    rebuilt from the same noisy numbers; the query itself where it has not both.
    """
    scope = query.scope
    if not _has_known_groups(query):
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
    of_cells, of_total = (sum(map(_weight, some), Fraction(0)) for some in (same, counts))
    wanted = replace(_CELLS, weight=of_cells), replace(_TOTAL, weight=of_total)
    strategies = _level_strategies(table, wanted, scope)
    moved = {id(a) for a in (*same, *counts)}

    def rebuild(aggregate: BoundAggregate) -> BoundAggregate:
        if id(aggregate) not in moved:
            return aggregate
        portion = _weight(aggregate) / (of_cells + of_total)
        about = aggregate.request, (), aggregate, strategies
        return CellReconstruction(*about, 2, table, portion).by(2)

    return _change(query, rebuild)


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


# -- distribution functions with counts of the same rows ------------------------------------------
# A count is the number up to the last of all cells, so both are rebuilt from the same noisy levels
# of a tree, at shares that are best for both.

_EDGES = Wanted(("prefixes",))


@dataclass(frozen=True, slots=True, eq=False)
class PrefixReconstruction(LevelReconstruction):
    """A distribution function, or a count of rows or values, that is rebuilt from noisy levels of
    all cells: those of the distribution function first, then one for all other rows where there may
    be any.
    """

    run: int  # How many of the cells its last number is of

    @property
    def error(self) -> DistributionError | RunError:
        is_function = isinstance(self.inner, BoundDistribution)
        return self.edges if is_function else RunError(self.edges, self.run)

    @property
    def edges(self) -> DistributionError:
        """The errors of the numbers up to each edge."""
        (axis,), own = self.strategy.workload.axes, self.inner
        shown = own.cells.edges.size if isinstance(own, BoundDistribution) else axis.size
        return DistributionError.of(self.strategy, shown)

    @property
    def ranges(self) -> Ranges | None:
        own = self.inner.ranges
        return replace(own, rule=self.edges) if isinstance(own, CumulativeRanges) else own

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """The mean squared error of its numbers, of a count in proportion to what one individual
        adds, of a distribution function to what it would be if they were added up from noisy cells.
        """
        if not isinstance(self.inner, BoundDistribution):
            return LevelReconstruction.squared_error(self, scope, laws)
        noise = [variance_of(laws, key) for key in self.keys]
        (axis,), past = self.strategy.workload.axes, self.run
        edges = axis.size * self.strategy.error(_EDGES, noise)
        whole = self.strategy.error(_TOTAL, noise)
        return (edges - (axis.size - past) * whole) / past / float(_flat(past))

    def _variance(self, noise: Sequence[float]) -> float:
        (axis,) = self.strategy.workload.axes
        if self.run == axis.size:
            return self.strategy.error(_TOTAL, noise)
        about = tuple(noise), (0.0,) * len(noise)
        return self.edges.tables.moments_of((), 0, self.run, *about)[0]

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        if isinstance(self.inner, BoundDistribution):
            return self._column(self.inner, self._prefixes(values))
        return LevelReconstruction.combine(self, values)

    def _column(self, function: BoundDistribution, counts: NDArray[np.int64]) -> pl.Series:
        """The result from the numbers of rows in the first 1, 2, ... cells."""
        return function.column_of(np.ascontiguousarray(counts[:, : self.run]))

    def _prefixes(self, values: Sequence[Noisy]) -> NDArray[np.int64]:
        """The number of rows in the first 1, 2, ... cells; of shape (groups, cells)."""
        return self._whole(values).cells((True,), (True,)).T

    def _rebuild(self, values: Sequence[Noisy]) -> Noisy:
        return self._prefixes(values)[:, [self.run - 1]]

    def _noise(self, noise: JointNoise) -> JointNoise:
        run = self.edges.range_noise(_laws_of(noise), 0, self.run)
        return Independent(((run, Fraction(1)),))

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> Interval | None:
        if not isinstance(self.inner, BoundDistribution):
            return LevelReconstruction.interval(self, values, noise, level)
        found, reach = self._prefixes(values), self.edges.reaches(_laws_of(noise), level)
        return self._column(self.inner, found - reach), self._column(self.inner, found + reach)


def with_whole_levels(query: Query) -> Query:
    """The query with the counts that it asks for, and the distribution function with the fewest
    cells, rebuilt from the same noisy numbers; the query itself where it has not both.
    """
    scope = query.scope
    if not _has_known_groups(query):
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
    cells, values = least.cells, _count_of_values(least)
    same = [a for a in functions if a.cells == cells]
    rows = {id(a) for a in counts if a.uses[0].part != values}
    whole: Cells = cells
    if rows and not _holds_all(least, scope.facts.columns):
        whole = WholeCells(cells)
    table = Table(RowCount(), whole)
    weights = {id(a): _flat(cells.size) * a.request.weight for a in same}
    of_edges = sum(weights.values(), Fraction(0))
    weights |= {id(a): _weight(a) for a in counts}
    total = sum(weights.values(), Fraction(0))
    wanted = replace(_EDGES, weight=of_edges), replace(_TOTAL, weight=total - of_edges)
    strategies = _level_strategies(table, wanted, scope)

    def rebuild(aggregate: BoundAggregate) -> BoundAggregate:
        if id(aggregate) not in weights:
            return aggregate
        run = whole.size if id(aggregate) in rows else cells.size
        about = table, weights[id(aggregate)] / total, run
        return PrefixReconstruction(aggregate.request, (), aggregate, strategies, 2, *about).by(2)

    return _change(query, rebuild)


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


def _flat(cells: int) -> Fraction:
    """The mean squared error of numbers that are added up from this many cells."""
    return Fraction(cells + 1, 2)


def _holds_all(function: BoundDistribution, columns: Columns) -> bool:
    """Whether each row has a value, and so a cell."""
    found = domain(function.cells.value.tree, columns)
    return not (found.nullable or found.nan)


def _level_strategies(table: Table, wanted: tuple[Wanted, ...], scope: QueryScope) -> Strategies:
    """What to measure of the cells and their total, or of their prefixes; the last prefix is the
    total.
    """
    assert table.cells is not None
    size = table.cells.size
    levels = [Margin(table, branching=max(2, size), level=level) for level in (0, int(size > 1))]
    sensitivities = [level.sensitivity(scope) for level in levels]
    strategies: dict[Degree, tuple[Strategy, ...]] = {}
    for degree in _DEGREES:
        squares = [s.l2_squared if degree == 1 else s.l1**2 for s in sensitivities]
        of_all = squares[0] / squares[1]

        def norm(part: Part, of_all: Fraction = of_all) -> Fraction:
            return of_all if part.entries == 1 else Fraction(1)

        axis = Axis(size, max(2, size), wanted[0].kinds == _EDGES.kinds)
        best = tables(Workload((axis,), wanted), degree, norm)
        if axis.is_ordered:
            tree = best_tables(Workload((Axis.ordered(size),), wanted), degree, norm)
            best = best if best.objective() <= tree.objective() else tree
        strategies[degree] = (best,)
    return strategies


# -- the ways in which a query can be measured, where what is best rests on the spend -------------

_MEASURED = (BoundDistribution, Reconstruction)
"""Aggregates whose parts depend on how a spend is shared."""


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
    ways = [_share_by(query, degree) for degree in degrees]
    roots: list[Query] = []
    if len(degrees) > 1:  # many parts may be composed better than one: both are compared
        roots = [way for way in ways[1:] if any(map(_is_root, way.aggregates))]
    if roots or is_edition_before():
        ways = [_change(way, _as_tree) for way in ways]
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
    by_sets = [a for a in query.aggregates if isinstance(a, SetReconstruction)]
    tables = {table for a in by_sets for use in a.inner.uses for table in use.part.tables}
    if len(tables) < 2 or all(a.own_totals is None for a in by_sets):
        return query
    return _change(query, lambda a: a.with_own_totals() if isinstance(a, SetReconstruction) else a)


def _of_finest(query: Query) -> Query:
    """The query where larger groups are added up from the finest of grouping sets alone. Shares
    are the best for each part on its own, but parts may have smaller errors if they are drawn
    jointly at the whole spend.
    """
    return _change(query, lambda a: a.from_finest() if isinstance(a, SetReconstruction) else a)


def _share_by(query: Query, degree: Degree) -> Query:
    return _change(query, lambda a: a.by(degree) if isinstance(a, _MEASURED) else a)
