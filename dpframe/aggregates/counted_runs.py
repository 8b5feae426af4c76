"""Noisy counts of all candidates and of runs of neighbouring ones, off which quantiles are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import DiscreteLaplace

__all__ = ["CountedRuns", "best_runs", "squares_of_cells"]

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

_SHARES: Final = tuple(Fraction(n, 20) for n in range(6, 11))
"""Shares of the epsilon for runs."""
_SHARPEST: Final = Fraction(1, 100)
"""Smaller scales are taken for it: next to no noise is left, and floats have its variance."""


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """Counts of cells, and of runs of this many neighbouring cells, each with noise of its own.

    Parameters
    ----------
    size
        How many cells there are.
    width
        How many a run has, but for the last one.
    share
        What runs get of the epsilon; cells get the rest.
    """

    size: int
    width: int
    share: Fraction

    def __post_init__(self) -> None:
        if not 1 < self.width < self.size <= self.width**2:
            raise ValueError("runs are a level of a tree of two levels")
        if not 0 < self.share < 1:
            raise ValueError("both levels cost something")

    @property
    def sizes(self) -> Integers:
        """How many cells each run has."""
        full, rest = divmod(self.size, self.width)
        return np.array([self.width] * full + [rest] * (rest > 0), dtype=np.int64)

    @property
    def weights(self) -> Floats:
        """How much of what a run's count differs from the sum of its cells is believed: with s
        cells of variance v and a run of variance u it is s v / (s v + u), and v / u is the square
        of the shares' ratio.
        """
        ratio = float((self.share / (1 - self.share)) ** 2)
        sharper: Floats = self.sizes.astype(np.float64) * ratio
        found: Floats = sharper / (sharper + 1.0)
        return found

    def rebuilt(self, runs: Integers, cells: Integers) -> Floats:
        """The counts of cells with the least sum of weighted squared differences from both, of
        shape (groups, cells): what is believed of a difference is spread over the run evenly.
        """
        starts = np.arange(0, self.size, self.width)
        missing = runs - np.add.reduceat(cells, starts, axis=1)
        spread = np.repeat(missing * (self.weights / self.sizes), self.sizes, axis=1)
        found: Floats = cells.astype(np.float64) + spread
        return found

    def squares(self, quantiles: Sequence[Fraction], scale: Fraction) -> float:
        """About the sum of squared errors of ranks, where rows are spread over cells evenly, and a
        quantile may be anywhere in its run.

        Let n cells have variance v, in runs of s, and let w be the weight of the runs. Then the
        error of a rank is that of the cells before it times 1 - q, and of those after it times
        -q. A full run has the variance s v (1 - w): q (1 - q) (n - s) v (1 - w) of these. In the
        run of the quantile j cells are before it: v ((1 - q)**2 j + q**2 (s - j) - w (j - q s)**2
        / s), in the mean over j from 0 to s v (s ((1 - q)**2 + q**2) / 2 - w s (1 / 3 - q +
        q**2)).

        Parameters
        ----------
        quantiles
            Which are wanted.
        scale
            Of noise of counts at the whole epsilon.
        """
        s, each = self.width, _variance(scale, 1 - self.share)
        believed = s * each / (s * each + _variance(scale, self.share))
        found = 0.0
        for q in map(float, quantiles):
            found += (1.0 - believed) * q * (1.0 - q) * (self.size - s)
            found += s * ((1.0 - q) ** 2 + q * q) / 2.0
            found -= believed * s * (1.0 / 3.0 - q + q * q)
        return each * found


@lru_cache(maxsize=64)
def best_runs(size: int, quantiles: tuple[Fraction, ...], scale: Fraction) -> CountedRuns | None:
    """The best runs to count in addition to this many cells; None where cells alone have no
    larger errors.

    Parameters
    ----------
    size
        How many cells there are.
    quantiles
        Which are wanted.
    scale
        Of noise of counts at the whole epsilon.
    """
    narrow = math.isqrt(size - 1) + 1
    widths = range(max(2, narrow), min(2 * narrow, size // 2) + 1)
    ways = [CountedRuns(size, width, share) for width in widths for share in _SHARES]
    if not ways:
        return None
    least, number = min((way.squares(quantiles, scale), n) for n, way in enumerate(ways))
    return ways[number] if least < squares_of_cells(size, quantiles, scale) else None


def squares_of_cells(size: int, quantiles: Sequence[Fraction], scale: Fraction) -> float:
    """The same of cells alone: q (1 - q) of the squared noise of all of them together."""
    spread = sum((q * (1 - q) for q in quantiles), Fraction(0))
    return float(size * spread) * _variance(scale, Fraction(1))


@lru_cache(maxsize=64)
def _variance(scale: Fraction, share: Fraction) -> float:
    """Of whole numbers: to share a large epsilon costs more than the squares of shares say."""
    return DiscreteLaplace(max(scale, _SHARPEST) / share).variance()
