"""How much of each noisy number is in a prefix or a range, where levels of one tree are measured.

Least squares, level by level, makes of the sums y of the nodes of each measured level

    v is the weighted estimate of a node from level l and finer ones: sum over k >= l of w_k y_k /
    W_l, x = v + (x of the parent - sum of v of all its children) / (number of these children)

with x = v at the root, where w_k is the weight of level k and W_l the sum of those from l on.
Take a query with the factors a on the nodes of a level. The part that differs from the mean of
siblings goes to v, and the mean goes to the parent; the part of v goes to all levels below it.
That is exact for trees whose last nodes have fewer children too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis
from dpframe.workloads.told_levels import Moments, ToldLevels

Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class MeasuredLevels:
    """Levels of the tree of one axis, whose sums of nodes are measured.

    Parameters
    ----------
    axis
        The cells.
    levels
        Which levels are measured, rising; the cells themselves are the last.
    weights
        For each a number in proportion to what its sums count: the cells of a full node over the
        variance of the noise.
    """

    axis: Axis
    levels: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = list(self.levels) == sorted({*self.levels})
        if not rising or not self.levels or self.levels[-1] != self.axis.height:
            raise ValueError("the cells are measured, and each level once")
        if len(self.weights) != len(self.levels) or min(self.weights) <= 0 or self.levels[0] < 0:
            raise ValueError("each level that is measured has a weight")

    def factors_of(self, start: int, stop: int) -> Iterator[Floats]:
        """What the sum of the cells from `start` to `stop` - 1 takes of the noisy numbers of each
        measured level.
        """
        weights = dict(zip(self.levels, self.weights, strict=True))
        told = self._told([0.0] * len(self.levels), [0.0] * len(self.levels))
        for level, factors in told.factors_of(start, stop):
            yield factors * weights[level]

    def moments_of(
        self, start: int, stop: int, variances: Sequence[float], fourths: Sequence[float]
    ) -> tuple[float, float]:
        """The moments of the sum of the cells from `start` to `stop` - 1.

        Parameters
        ----------
        start, stop
            Which cells.
        variances, fourths
            Second and fourth cumulants of the noise of each measured level.
        """
        return self._told(variances, fourths).moments_of(start, stop)

    def moments(self, variances: Sequence[float], fourths: Sequence[float]) -> Moments:
        """The moments of the sums of the first 1, 2, ... cells."""
        return self._told(variances, fourths).moments()

    def _told(self, variances: Sequence[float], fourths: Sequence[float]) -> ToldLevels:
        heard = [
            sum(w for at, w in zip(self.levels, self.weights, strict=True) if at >= level)
            for level in range(self.axis.height + 1)
        ]
        second = [v * w**2 for v, w in zip(variances, self.weights, strict=True)]
        fourth = [f * w**4 for f, w in zip(fourths, self.weights, strict=True)]
        counts = tuple(1.0 / weight for weight in heard)
        return ToldLevels(self.axis, counts, self.levels, tuple(second), tuple(fourth))
