"""Additive aggregates by grouping sets, rebuilt from those margins that are best to measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.bound import (
    BoundAggregate,
    Clamp,
    MeasurementUse,
    Noisy,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.error_rules import (
    MeanError,
    NoErrorBound,
    PartError,
    VarianceError,
)
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.margin_strategy import (
    best_margins,
    margin_uses,
    margin_weights,
    margin_words,
    sets_wanted,
    values_of,
)
from dpframe.aggregates.margins import by_words
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.noise_law import drawn_of
from dpframe.aggregates.own_sets import in_own_sets
from dpframe.aggregates.rebuilt_error import OutputError, RebuiltError
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rolled_distribution import rolled_distribution
from dpframe.aggregates.set_axes import SetAxes, columns_of
from dpframe.aggregates.shapes import Shape
from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, ValueCount
from dpframe.aggregates.unit_statistics import UnitCount, UnitRows, UnitTotal
from dpframe.core.exact import show
from dpframe.core.tree import Tree
from dpframe.errors import UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.workloads import (
    MANY_CELLS,
    Degree,
    Estimate,
    Strategy,
    WholeTables,
    apportioned,
    nearest_nonnegative,
    whole_deviation,
)

__all__ = ["RolledAggregate", "rolled"]

Strategies: TypeAlias = Mapping[Degree, tuple[Strategy, ...]]

_ADDITIVE: Final = (RowCount, ValueCount, GridSum, SquareSum, UnitCount, UnitRows, UnitTotal)


@dataclass(frozen=True, slots=True, eq=False)
class RolledAggregate(BoundAggregate):
    """An aggregate by several grouping sets at once.

    Parameters
    ----------
    inner
        The aggregate by the finest groups.
    axes
        The columns of the grouping sets, and more cells.
    strategies
        For each way in which a spend is shared (rho, epsilon) what is measured of each of its
        parts.
    degree
        Which of them is used.
    own_totals
        The same strategies where totals are tables separately, and so may be drawn jointly with
        those of other parts; None where they are.
    """

    inner: BoundAggregate
    axes: SetAxes
    strategies: Strategies
    degree: Degree
    own_totals: Strategies | None = None

    def by(self, degree: Degree) -> RolledAggregate:
        """The same where a rho is shared (1) or an epsilon (2)."""
        uses = _uses(self.inner, self.axes, self.strategies[degree])
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
    """An aggregate by groups unchanged; by grouping sets, all of these at once.

    Raises
    ------
    UnsupportedOperation
        When its parts do not add up over groups.
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
    strategies, own = (_strategies(inner, axes, scope, has_total) for has_total in (True, False))
    uses = _uses(inner, axes, strategies[2])
    beside = any(s.total_of is not None for used in strategies.values() for s in used)
    own_totals = own if beside and axes.cells is None else None
    return RolledAggregate(inner.request, uses, inner, axes, strategies, 2, own_totals)


def _strategies(
    inner: BoundAggregate, axes: SetAxes, scope: QueryScope, has_total: bool
) -> Strategies:
    """What is best to measure of each part."""
    workload = sets_wanted(axes.sizes, tuple((kept, Fraction(1)) for kept in axes.sets))
    degrees: tuple[Degree, ...] = (1, 2)
    return {
        degree: tuple(
            best_margins(use.part, axes, workload, scope, degree, has_total) for use in inner.uses
        )
        for degree in degrees
    }


def _uses(
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
    """The aggregate with a table of its own for each set.

    Raises
    ------
    UnsupportedOperation
        When it has none.
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
