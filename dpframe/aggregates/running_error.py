"""The error of running totals, of periods and of windows, in advance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import nearest
from dpframe.mechanisms import AdditiveMechanism, CombinedNoise
from dpframe.workloads import PeriodTree, RunningSums, SquareRoot, squared

__all__ = ["RunningError", "running_sums"]

Floats: TypeAlias = "NDArray[np.float64]"
_UP: Final = 1.0 + 1e-9
_SURE: Final = 1.0 - 1e-15
_PARTS: Final = 1 << 10


def running_sums(periods: int, branching: int, levels: int) -> RunningSums:
    """What is drawn of this many periods: sums of a tree, or with no levels those of the root."""
    return PeriodTree(periods, branching, levels) if levels else SquareRoot(periods)


@dataclass(frozen=True, slots=True)
class RunningError:
    """A running total of this many periods follows from noisy sums of them, with public factors.

    For the square root, noises are Gaussian, and so is their sum, except for rounding to whole
    parts: each is a continuous Gaussian of nearly the same variance that was rounded at random
    (`dpframe.accounting.gaussian_noise`). For a tree, totals are sums of this many independent
    noises, whose law is that of `CombinedNoise`. Totals are rounded to whole steps.

    Parameters
    ----------
    periods
        How many there are.
    branching, levels
        The branching of a tree of sums; 0 for the square root.
    """

    periods: int
    branching: int
    levels: int

    def __post_init__(self) -> None:
        _ = self.sums  # is checked as well

    @property
    def sums(self) -> RunningSums:
        """What is drawn."""
        return running_sums(self.periods, self.branching, self.levels)

    def worst(self, law: AdditiveMechanism, level: Fraction) -> int:
        """The bound of the total with the largest error."""
        sums = self.sums
        at = self.periods - 1
        if isinstance(sums, PeriodTree):
            at = max(range(self.periods), key=sums.pieces)
        rounded = Fraction(0) if self.levels else Fraction(1, 2)
        return self.reach(law, sums.total_factors(at), level, rounded)

    def reach(
        self, law: AdditiveMechanism, factors: Floats, level: Fraction, rounded: Fraction
    ) -> int:
        """The least whole number of steps within which a number stays with that probability.

        Parameters
        ----------
        law
            The law of the noises.
        factors
            By what they are multiplied in it.
        level
            Between 0 and 1, exclusive.
        rounded
            What rounding adds at most.
        """
        if law.is_exact:
            return 0
        if not self.levels:
            deviation = math.sqrt(squared(factors) * law.variance()) * _UP
            sure = min((1.0 + nearest(level)) / 2.0, _SURE)
            return max(0, math.floor(NormalDist().inv_cdf(sure) * deviation + float(rounded)))
        if (factors == 1.0).all():
            return CombinedNoise.of(law, (1,) * len(factors), 1).quantile(level)
        parts = np.ceil(np.abs(factors) * _PARTS).astype(np.int64)
        used = tuple(int(part) for part in parts if part)
        noise = CombinedNoise.of(law, used, _PARTS).quantile(level) if used else 0
        return noise + math.floor(rounded)
