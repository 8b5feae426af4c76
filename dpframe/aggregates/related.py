"""Additive aggregates of several queries whose tables are margins of one another, rebuilt together
from those margins that are best to measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.bound import (
    BoundAggregate,
    Clamp,
    Laws,
    MeasurementUse,
    Noisy,
    variance_of,
)
from dpframe.aggregates.error_rules import MeanError, PartError, VarianceError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.margin_strategy import (
    adds_up,
    best_margins,
    margin_uses,
    margin_weights,
    margin_words,
    sets_wanted,
    table_wanted,
)
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.noise_law import drawn_of
from dpframe.aggregates.query import Output, Query
from dpframe.aggregates.rebuilt_error import RebuiltError
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rolled import RolledAggregate
from dpframe.aggregates.set_axes import SetAxes, columns_of
from dpframe.aggregates.shapes import ONE
from dpframe.frames.common_sets import CommonSets, SetsOfQuery
from dpframe.frames.grouping_sets import SetGroups
from dpframe.workloads import Degree, Estimate, Strategy, WholeTables

__all__ = ["RelatedAggregate", "can_be_related", "related_outputs"]

Kept: TypeAlias = tuple[int, ...]
Strategies: TypeAlias = Mapping[Degree, tuple[Strategy, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class RelatedAggregate(BoundAggregate):
    """An aggregate whose table is a margin of what other queries ask for.

    Parameters
    ----------
    inner
        The aggregate by its own groups.
    groups
        The grouping sets that all queries have in common.
    shown
        The sets that it shows, and the groups of each.
    strategies
        For each way in which a spend is shared (rho, epsilon) what is measured of each of its
        parts for all queries.
    portions
        What of the error of each strategy counts for it.
    units
        The sensitivity of each of its parts if it were the only output.
    degree
        Which of the strategies is used.
    """

    inner: BoundAggregate
    groups: SetGroups
    shown: SetsOfQuery
    strategies: Strategies
    portions: tuple[Fraction, ...]
    units: tuple[Fraction, ...]
    degree: Degree

    def by(self, degree: Degree) -> RelatedAggregate:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _uses(self.inner, self.groups, self.strategies[degree], self.portions)
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


def _uses(
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
    """The outputs of several queries, rebuilt from margins of all of them.

    Parameters
    ----------
    queries
        Those that `common` is of, in its order.
    common
        What their groups have in common.
    scope
        Their rows by the common groups.

    Raises
    ------
    UnboundedSensitivity
        When nothing limits how far one individual moves a margin.
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
    """What the aggregates of several queries are made of.

    Parameters
    ----------
    common, scope
        As in `related_outputs`.
    wanted
        How much the errors of the tables of each statistic count.
    found
        What is measured of each statistic.
    """

    common: CommonSets
    scope: QueryScope
    wanted: Mapping[Table, Mapping[Kept, Fraction]]
    found: dict[tuple[Table, Degree], Strategy]

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
        uses = _uses(inner, groups, strategies[2], portions)
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
