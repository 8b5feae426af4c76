"""The error of ranks that are read off noisy counts of cells and of runs of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.counted_runs import CountedRuns
from dpframe.aggregates.error_rules import MOST_CELLS
from dpframe.aggregates.weighted_noise import WeightedNoise, excess_of
from dpframe.mechanisms import AdditiveMechanism

__all__ = ["RunRankError"]

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

_STEP: Final = 0.05
_KINDS: Final = 24


@dataclass(frozen=True, slots=True)
class RunRankError:
    """A rank that is read off noisy counts of cells, and of runs of neighbouring ones, that are
    made to rise.

    Let N_i be the noise of the first i cells, as least squares rebuild them. A candidate is taken
    in place of the one with the rank where N_i - q N_k is as large as its rank is off, for some i
    <= k: see `RankError`. The variance and the fourth cumulant of each of these are sums over
    runs and bound how far one of them reaches. The union bound covers all of them together and
    the least and the largest q, between which others are.

    Parameters
    ----------
    cells
        How many there are.
    width
        How many cells a run has.
    share
        The share of the epsilon for runs, which determines their weight.
    lowest, highest
        The least and the largest quantile.
    sides
        2 where values between candidates have cells of their own, so that both that are compared
        may be off; else 1.
    """

    cells: int
    width: int
    share: Fraction
    lowest: Fraction
    highest: Fraction
    sides: int

    def __post_init__(self) -> None:
        if not 0 <= self.lowest <= self.highest <= 1 or self.sides not in (1, 2):
            raise ValueError("these quantiles do not exist")
        if self.cells > MOST_CELLS:
            raise ValueError("there are more cells than ranks are read off")
        _ = self.measured  # is checked as well

    @property
    def measured(self) -> CountedRuns:
        """What is counted."""
        return CountedRuns(self.cells, self.width, self.share)

    def quantile(self, laws: Sequence[AdditiveMechanism], level: Fraction) -> float:
        """The error in ranks that is kept within with probability `level`; 0 without noise.

        Parameters
        ----------
        laws
            The noise of runs, and that of cells.
        level
            Between 0 and 1, exclusive.
        """
        runs, cells = ((law.variance(), excess_of(law)) for law in laws)
        ends = {float(self.lowest), float(self.highest)}
        kinds = [kind for q in ends for kind in _kinds(self.measured, q, runs, cells)]
        return _reach_of_all(kinds, 1.0 - float(level)) * self.sides


def _reach_of_all(kinds: Sequence[tuple[int, WeightedNoise]], miss: float) -> float:
    """What any of many noises exceeds with a probability of no more than `miss`, by the union
    bound; this many are of each kind.
    """

    def exceeded(x: float) -> float:
        far = np.array([x])
        return sum(2.0 * count * float(noise.above(far)[0]) for count, noise in kinds)

    if not kinds:
        return 0.0
    low, high = 0.0, math.sqrt(max(noise.spread for _, noise in kinds))
    while exceeded(high) > miss:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if exceeded(middle) > miss else (low, middle)
    return high


@lru_cache(maxsize=16)
def _kinds(
    measured: CountedRuns, q: float, runs: tuple[float, float], cells: tuple[float, float]
) -> list[tuple[int, WeightedNoise]]:
    """The noises N_i - q N_k for i <= k in kinds, each with the largest deviation and the largest
    excess of its kind, deviations in steps of a twentieth; those far smaller than the largest are
    of one kind.
    """
    spreads, fourths = _moments(measured, q, runs, cells)
    if not spreads.size:
        return []
    excesses = fourths / spreads**2
    steps = np.minimum(np.log(spreads.max() / spreads) / (2.0 * _STEP), _KINDS).astype(np.int64)
    return [
        (int(of.sum()), WeightedNoise(float(spreads[of].max()), float(excesses[of].max())))
        for of in (steps == step for step in np.unique(steps))
    ]


def _moments(
    measured: CountedRuns, q: float, runs: tuple[float, float], cells: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The variances and the fourth cumulants of N_i - q N_k for i <= k, where there is noise."""
    starts, stops = np.triu_indices(measured.size + 1)
    found = []
    for power, run, cell in (
        (2, runs[0], cells[0]),
        (4, runs[1] * runs[0] ** 2, cells[1] * cells[0] ** 2),
    ):
        found.append(_cumulant(measured, q, (power, run, cell), (starts, stops)))
    noisy = found[0] > 0.0
    return found[0][noisy], found[1][noisy]


def _cumulant(
    measured: CountedRuns,
    q: float,
    noise: tuple[int, float, float],
    ends: tuple[Integers, Integers],
) -> Floats:
    """The cumulant of N_i - q N_k: cells count 1 - q up to i, -q from there to k, and 0 after k.

    A run's noise counts its weight times the mean that its cells count, and this much less its
    cells.
    """
    power, run, cell = noise
    sizes, weights = measured.sizes, measured.weights

    def of_run(number: Integers, before: Integers, upto: Integers) -> Floats:
        size = sizes[number]
        between = upto - before
        shared = weights[number] * ((1.0 - q) * before - q * between) / size
        inner = before * (1.0 - q - shared) ** power + between * (q + shared) ** power
        return cell * (inner + (size - upto) * shared**power) + run * shared**power

    whole = np.append(
        0.0, np.cumsum(cell * sizes * (1.0 - weights) ** power + run * weights**power)
    )
    (first, before), (last, upto) = (_placed(end, measured) for end in ends)
    apart = last > first
    own = of_run(first, before, np.where(apart, sizes[first], upto))
    other = of_run(last, np.zeros_like(upto), upto)
    middle = q**power * (whole[last] - whole[np.minimum(first + 1, sizes.size)])
    return (1.0 - q) ** power * whole[first] + own + np.where(apart, middle + other, 0.0)


def _placed(ends: Integers, measured: CountedRuns) -> tuple[Integers, Integers]:
    """In which run this many first cells end, and after how many of its own."""
    number = np.minimum(ends // measured.width, measured.sizes.size - 1)
    return number, ends - number * measured.width
