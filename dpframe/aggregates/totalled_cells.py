"""Histograms with counts of the same rows. The counts of all cells add up to the number of rows,
so both are rebuilt from noisy cells and a noisy total, at the shares that are best for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias, TypeGuard

import numpy as np
import polars as pl

from dpframe.aggregates.best_levels import levels_of, strategy_words, weights_of
from dpframe.aggregates.bound import BoundAggregate, Laws, MeasurementUse, Noisy, variance_of
from dpframe.aggregates.cells import BinCells, CategoryCells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.distribution_error import DistributionError
from dpframe.aggregates.error_rules import PartError
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.level_sums import LevelSums
from dpframe.aggregates.measurement import COUNT, Additive, Table
from dpframe.aggregates.noise_law import drawn_of
from dpframe.aggregates.query import Query
from dpframe.aggregates.ranges import BinRanges, Ranges
from dpframe.aggregates.rebuilt_error import RebuiltError
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import Shape
from dpframe.aggregates.statistics import RowCount
from dpframe.core.domain import Columns
from dpframe.core.exact import dyadic_down
from dpframe.rows.fold import domain
from dpframe.workloads import (
    Axis,
    Degree,
    Estimate,
    Factor,
    Part,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    tables,
)

__all__ = ["TotalledCells", "with_totals"]

Strategies: TypeAlias = Mapping[Degree, Strategy]
_BITS: Final = 20
_CELLS = Wanted(("cells",))
_TOTAL = Wanted(("total",))


@dataclass(frozen=True, slots=True, eq=False)
class TotalledCells(BoundAggregate):
    """A histogram, or a count of rows, that is rebuilt from noisy cells and their noisy total.

    Parameters
    ----------
    inner
        What it is on its own.
    table
        The exact counts of cells that cover all rows.
    strategies
        What is measured of them, where a rho is shared and where an epsilon is.
    portion
        How much its own error counts in these.
    degree
        Which of them is used.
    """

    inner: BoundHistogram | BoundCount
    table: Table
    strategies: Strategies
    portion: Fraction
    degree: Degree

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
    counts = [a for a in query.aggregates if shown and _is_count(a, scope)]
    if not counts:
        return query
    least = min(shown, key=lambda histogram: histogram.cells.size)
    cells = _all_cells(least.cells, scope.facts.columns)
    if cells.size < 2:
        return query
    same = [a for a in shown if a.cells == least.cells]
    table = Table(RowCount(), cells)
    weights = [sum((_weight(a) for a in some), Fraction(0)) for some in (same, counts)]
    strategies = _strategies(table, weights[0], weights[1], scope)
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


def _is_count(aggregate: BoundAggregate, scope: QueryScope) -> bool:
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


def _strategies(
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
