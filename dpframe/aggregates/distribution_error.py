"""The error of a distribution function that is rebuilt from noisy sums of cells, by edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.weighted_noise import WeightedNoise, excess_of, reaches_of
from dpframe.mechanisms import AdditiveMechanism
from dpframe.workloads import Axis, MeasuredLevels, RootPrefixes

__all__ = ["DistributionError", "EdgesError", "RootError", "RunError"]

Floats: TypeAlias = "NDArray[np.float64]"
Noises: TypeAlias = "Sequence[AdditiveMechanism]"

_MOST: Final = 10**6 + 2
_ROUNDING: Final = 1 / 12
"""The variance of rounding to a whole number."""
_NEXT_TO_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DistributionError:
    """The number of rows up to an edge follows from noisy sums of neighbouring cells by weighted
    least squares; which edge has the largest error depends on where it lies.

    Parameters
    ----------
    cells
        How many cells there are.
    branching
        How many children a node of the tree of cells has.
    levels
        Which levels are measured, rising; the cells themselves are the last.
    weights
        What a sum of each counts: its cells over the variance of its noise, in proportion.
    shown
        How many edges are released; cells after them, two at most, have rows above them, and those
        without a value.
    """

    cells: int
    branching: int
    levels: tuple[int, ...]
    weights: tuple[Fraction, ...]
    shown: int

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.cells <= min(_MOST, self.shown + 2):
            raise ValueError("the number of edges is out of range")
        if not 2 <= self.branching <= _MOST:
            raise ValueError("a tree of this shape does not exist")
        _ = self.measured  # is checked as well

    @property
    def parts(self) -> int:
        """How many noisy vectors there are."""
        return len(self.levels)

    @property
    def measured(self) -> MeasuredLevels:
        """What is measured of the tree."""
        axis = Axis.ordered(self.cells, self.branching)
        return MeasuredLevels(axis, self.levels, tuple(map(float, self.weights)))

    @property
    def entries(self) -> int:
        """How many numbers the first vector has for each group."""
        return Axis.ordered(self.cells, self.branching).nodes(self.levels[0])

    def reaches(self, laws: Noises, level: Fraction | float) -> NDArray[np.int64]:
        """For each cell how far the number of rows up to its upper edge may be off with that
        probability.

        Parameters
        ----------
        laws
            The noise of each level.
        level
            Between 0 and 1, exclusive.
        """
        spreads, fourths = _moments(self.measured, *_cumulants(laws))
        rounded = spreads + self._rounding(spreads)
        excesses = fourths / np.maximum(rounded, _NEXT_TO_NOTHING) ** 2
        return reaches_of(rounded, excesses, float(level))

    def range_noise(self, laws: Noises, start: int, stop: int) -> WeightedNoise:
        """The law of the noise of the cells from `start` to `stop` - 1 together, that of making
        numbers whole included.
        """
        spread, fourth = self.measured.moments_of(start, stop, *_cumulants(laws))
        total = spread + (1 + (start > 0)) * float(self._rounding(np.array(spread)))
        return WeightedNoise(total, fourth / total**2 if total > _NEXT_TO_NOTHING else 0.0)

    def _rounding(self, spreads: Floats) -> Floats:
        """What rounding a number with this much variance adds to it; sums of integers are
        whole."""
        most = 0.0 if len(self.levels) == 1 else _ROUNDING
        return np.minimum(spreads, most)


@dataclass(frozen=True, slots=True)
class RunError:
    """A number of rows that is the sum of the first cells of a distribution function, or of all of
    them, and follows from the same noisy sums.

    Parameters
    ----------
    edges
        The error rule of these numbers.
    cells
        How many of the first cells it is of.
    """

    edges: DistributionError
    cells: int

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= self.edges.cells:
            raise ValueError("the number of cells is out of range")

    def noise(self, laws: Noises) -> WeightedNoise:
        """The law of its noise, from that of each level."""
        return self.edges.range_noise(laws, 0, self.cells)


@dataclass(frozen=True, slots=True)
class RootError:
    """The number of rows up to an edge follows from noisy sums of the square root factorisation.

    Parameters
    ----------
    cells
        How many cells there are.
    shown
        How many edges are released; the cell after them, if there is one, has rows above them.
    """

    cells: int
    shown: int

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.cells <= self.shown + 1:
            raise ValueError("the number of edges is out of range")
        _ = self.root  # is checked as well

    @property
    def root(self) -> RootPrefixes:
        """What is measured."""
        return RootPrefixes(self.cells)

    @property
    def parts(self) -> int:
        """How many noisy vectors there are."""
        return 1

    @property
    def entries(self) -> int:
        """How many numbers the vector has for each group."""
        return self.cells

    def reaches(self, laws: Noises, level: Fraction | float) -> NDArray[np.int64]:
        """As `DistributionError.reaches`."""
        (variance,), (fourth,) = _cumulants(laws)
        spreads = self.root.power_sums(2) * variance
        rounded = spreads + np.minimum(spreads, _ROUNDING)
        fourths = self.root.power_sums(4) * fourth
        excesses = fourths / np.maximum(rounded, _NEXT_TO_NOTHING) ** 2
        return reaches_of(rounded, excesses, float(level))

    def range_noise(self, laws: Noises, start: int, stop: int) -> WeightedNoise:
        """As `DistributionError.range_noise`."""
        (variance,), (fourth,) = _cumulants(laws)
        factors = self.root.factors_of(start, stop)
        spread = float((factors**2).sum()) * variance
        total = spread + (1 + (start > 0)) * min(spread, _ROUNDING)
        around = float((factors**4).sum()) * fourth
        return WeightedNoise(total, around / total**2 if total > _NEXT_TO_NOTHING else 0.0)


EdgesError: TypeAlias = DistributionError | RootError
"""The errors of the numbers up to each edge."""
Cumulants: TypeAlias = tuple[float, ...]


def _cumulants(laws: Noises) -> tuple[Cumulants, Cumulants]:
    """Second and fourth cumulants."""
    variances = tuple(law.variance() for law in laws)
    return variances, tuple(excess_of(law) * v**2 for law, v in zip(laws, variances, strict=True))


@lru_cache(maxsize=16)
def _moments(
    measured: MeasuredLevels, variances: Cumulants, fourths: Cumulants
) -> tuple[Floats, Floats]:
    return measured.moments(variances, fourths)
