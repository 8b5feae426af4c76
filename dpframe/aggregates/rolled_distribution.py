"""Distribution functions by grouping sets, rebuilt from those tables of runs of cells that are best
to measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.bound import (
    BoundAggregate,
    Clamp,
    Laws,
    MeasurementUse,
    Noisy,
    variance_of,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.distribution_sets_error import DistributionSetsError
from dpframe.aggregates.joint_noise import Independent, JointNoise
from dpframe.aggregates.margin_strategy import (
    best_margins,
    margin_uses,
    margin_weights,
    margin_words,
    values_of,
)
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.ranges import RangesBySets
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.set_axes import SetAxes
from dpframe.aggregates.shapes import Shape
from dpframe.frames.grouping_sets import SetGroups
from dpframe.mechanisms import AdditiveMechanism
from dpframe.workloads import (
    Axis,
    Degree,
    Estimate,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    tables,
    trees,
)

__all__ = ["RolledDistribution", "rolled_distribution"]

Columns = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RolledDistribution(BoundAggregate):
    """Distribution functions by several grouping sets at once.

    Parameters
    ----------
    inner
        The distribution functions of the finest groups.
    axes
        The columns of the grouping sets, and the steps between edges.
    scope
        The scope of the query.
    strategy
        What is measured.
    """

    inner: BoundDistribution
    axes: SetAxes
    scope: QueryScope
    strategy: Strategy

    def by(self, degree: Degree) -> RolledDistribution:
        """The same where a rho is shared (1) or an epsilon (2)."""
        if degree == self.strategy.degree:
            return self
        strategy = _best(self.inner.uses[0].part, self.axes, self.scope, degree)
        return replace(self, strategy=strategy, uses=_uses(self.inner, self.axes, strategy))

    @property
    def sets(self) -> tuple[Columns, ...]:
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
    """Distribution functions by grouping sets.

    Raises
    ------
    UnboundedSensitivity
        When nothing limits how far one individual moves a table.
    """
    groups = scope.groups
    assert isinstance(groups, SetGroups)
    axes = SetAxes(groups, inner.cells)
    strategy = _best(inner.uses[0].part, axes, scope, 1)  # which is found soonest
    uses = _uses(inner, axes, strategy)
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


def _uses(
    inner: BoundDistribution, axes: SetAxes, strategy: Strategy
) -> tuple[MeasurementUse, ...]:
    """The tables, with what makes the shares of a plan's cost those of the strategy."""
    workload, use = strategy.workload, inner.uses[0]
    return tuple(margin_uses(use, axes, strategy, workload.flat(workload.tables[0])))
