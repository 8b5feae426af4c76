"""The error of distribution functions by grouping sets, by set and edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.weighted_noise import WeightedNoise, excess_of, reaches_of
from dpframe.mechanisms import AdditiveMechanism
from dpframe.workloads import Axis, MeasuredTables, rounding_variance

__all__ = ["DistributionSetsError"]

Floats: TypeAlias = "NDArray[np.float64]"
Noises: TypeAlias = "Sequence[AdditiveMechanism]"
Columns: TypeAlias = tuple[int, ...]
Cumulants: TypeAlias = tuple[float, ...]

_MOST: Final = 10**6 + 1
_NEXT_TO_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DistributionSetsError:
    """The number of rows up to an edge in a group of one of several grouping sets follows from
    noisy tables of neighbouring cells by weighted least squares. Which edge has the largest error
    depends on its set and place.

    Parameters
    ----------
    sizes
        How many values each column has.
    sets
        The columns of each grouping set that is released.
    cells
        How many cells a group has.
    branching
        How many children a node of the tree of cells has.
    measured
        For each noisy table its columns.
    levels
        For each the level of its runs of cells; the cells themselves are the last.
    weights
        What a sum of each counts: the finest cells that it stands for over the variance of its
        noise, in proportion.
    shown
        How many edges are released; one cell after them has rows above them.
    """

    sizes: tuple[int, ...]
    sets: tuple[Columns, ...]
    cells: int
    branching: int
    measured: tuple[Columns, ...]
    levels: tuple[int, ...]
    weights: tuple[Fraction, ...]
    shown: int

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.cells <= min(_MOST, self.shown + 1):
            raise ValueError("the number of edges is out of range")
        if not 2 <= self.branching <= _MOST or not self.sets or min(self.sizes, default=0) < 1:
            raise ValueError("a tree of this shape does not exist, or no grouping set")
        tables, known = self.tables, range(len(self.sizes))  # which are checked as well
        if any(i not in known for kept in self.sets for i in kept):
            raise ValueError("a grouping set of a column that is not there")
        if not all(map(tables.tells, self.sets)):
            raise ValueError("a grouping set follows from no noisy table")

    @property
    def tables(self) -> MeasuredTables:
        """What is measured."""
        axis = Axis.ordered(self.cells, self.branching)
        tables = tuple(zip(self.measured, self.levels, strict=True))
        return MeasuredTables(self.sizes, axis, tables, tuple(map(float, self.weights)))

    @property
    def parts(self) -> int:
        """How many noisy tables there are."""
        return len(self.measured)

    @property
    def groups(self) -> int:
        """How many groups all sets have together."""
        return sum(math.prod(self.sizes[i] for i in kept) for kept in self.sets)

    def reaches(self, laws: Noises, kept: Columns, level: Fraction | float) -> NDArray[np.int64]:
        """For each cell how far the number of rows up to its upper edge may be off with that
        probability, in a group of one of the sets.

        Parameters
        ----------
        laws
            The noise of each noisy table.
        kept
            The columns of the set.
        level
            Between 0 and 1, exclusive.
        """
        spreads, fourths = _moments(self.tables, kept, *_cumulants(laws))
        rounded = spreads + self._rounding(kept, spreads)
        excesses = fourths / np.maximum(rounded, _NEXT_TO_NOTHING) ** 2
        return reaches_of(rounded, excesses, float(level))

    def range_noise(self, laws: Noises, kept: Columns, start: int, stop: int) -> WeightedNoise:
        """The law of the noise of the cells from `start` to `stop` - 1 together, that of making
        numbers whole included.
        """
        spread, fourth = self.tables.moments_of(kept, start, stop, *_cumulants(laws))
        total = spread + (1 + (start > 0)) * float(self._rounding(kept, np.array(spread)))
        return WeightedNoise(total, fourth / total**2 if total > _NEXT_TO_NOTHING else 0.0)

    def _rounding(self, kept: Columns, spreads: Floats) -> Floats:
        """What rounding a number with this much variance adds to it; sums of integers are
        whole."""
        columns = [self.sizes[i] > 1 for i in kept]
        most = 0.0 if len(self.measured) == 1 else rounding_variance(columns)
        return np.minimum(spreads, most)


def _cumulants(laws: Noises) -> tuple[Cumulants, Cumulants]:
    """Second and fourth cumulants."""
    variances = tuple(law.variance() for law in laws)
    return variances, tuple(excess_of(law) * v**2 for law, v in zip(laws, variances, strict=True))


@lru_cache(maxsize=64)
def _moments(
    tables: MeasuredTables, kept: Columns, variances: Cumulants, fourths: Cumulants
) -> tuple[Floats, Floats]:
    return tables.moments(kept, variances, fourths)
