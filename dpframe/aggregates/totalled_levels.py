"""Distribution functions with counts of the same rows. A count is the number up to the last of
all cells, so both are rebuilt from the same noisy levels of a tree, at shares that are best for
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.best_levels import levels_of, strategy_words, weights_of
from dpframe.aggregates.bound import BoundAggregate, Clamp, Laws, MeasurementUse, Noisy, variance_of
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.cells import Cells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.distribution_error import DistributionError, RunError
from dpframe.aggregates.joint_noise import Independent, JointNoise
from dpframe.aggregates.level_sums import LevelSums
from dpframe.aggregates.measurement import COUNT, Additive, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.ranges import CumulativeRanges, Ranges
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import Shape
from dpframe.aggregates.statistics import RowCount, ValueCount
from dpframe.aggregates.whole_cells import WholeCells
from dpframe.core.domain import Columns
from dpframe.core.exact import dyadic_down
from dpframe.mechanisms import AdditiveMechanism
from dpframe.rows.fold import domain
from dpframe.workloads import (
    Axis,
    Degree,
    Estimate,
    Part,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    best_tables,
    tables,
)

__all__ = ["TotalledLevels", "with_whole_levels"]

Strategies: TypeAlias = Mapping[Degree, Strategy]
_BITS: Final = 20
_DEGREES: Final[tuple[Degree, ...]] = (1, 2)
_EDGES = Wanted(("prefixes",))
_TOTAL = Wanted(("total",))


@dataclass(frozen=True, slots=True, eq=False)
class TotalledLevels(BoundAggregate):
    """A distribution function, or a count of rows or values, that is rebuilt from noisy levels of
    all cells.

    Parameters
    ----------
    inner
        What it is on its own.
    table
        The exact counts of cells: those of the distribution function first, then one for all other
        rows where there may be any.
    run
        How many of the cells its last number is of.
    strategies
        What is measured of them, where a rho is shared and where an epsilon is.
    portion
        How much its own error counts in these.
    degree
        Which of them is used.
    """

    inner: BoundDistribution | BoundCount
    table: Table
    run: int
    strategies: Strategies
    portion: Fraction
    degree: Degree

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
    counts = [a for a in query.aggregates if _is_count(a, least, scope)]
    if not counts:
        return query
    made = _Totalled.of(least, [a for a in functions if a.cells == least.cells], counts, scope)
    outputs = tuple(
        replace(o, aggregates={p: made.moved(a) for p, a in o.aggregates.items()})
        for o in query.outputs
    )
    return replace(query, outputs=outputs)


def _is_count(aggregate: BoundAggregate, function: BoundDistribution, scope: QueryScope) -> bool:
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
    """What is rebuilt of one query.

    Parameters
    ----------
    table, strategies
        As in `TotalledLevels`.
    runs
        For each aggregate that is moved how many cells its last number is of, and how much of the
        error is its own.
    """

    table: Table
    strategies: Strategies
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
        strategies = _strategies(table, of_functions, total - of_functions, scope)
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


def _strategies(
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
