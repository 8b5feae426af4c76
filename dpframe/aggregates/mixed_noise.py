"""The joint law of several weighted sums of noise, approximated by its first four moments.

Sums of jointly drawn numbers depend on each other. `weighted_noise` approximates one such sum by a
Gaussian plus a Laplace variable. Several sums are approximated by a Gaussian vector of random
size: a multivariate Laplace vector is sqrt(E) times a Gaussian one with E exponential (Kotz,
Kozubowski and Podgorski 2001, chapter 5). If it has the share s of the variance, the sum of both
has

    the covariances times 1 - s + s E,

with the variances and correlations of the exact law, and an excess of 3 s**2 in every direction.
This excess is at least that of each sum, and that of the sum and difference of each two sums with
equal deviations. The error of a result computed from all of them lies in such a direction.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import Independent, JointNoise, Slices
from dpframe.aggregates.weighted_noise import WeightedNoise
from dpframe.mechanisms.discrete_gaussian import normal_above

__all__ = ["MixedNoise"]

Floats: TypeAlias = "NDArray[np.float64]"
Part: TypeAlias = "tuple[WeightedNoise, Fraction]"

_SIZES: Final = {1: 32, 2: 16}
"""The number of sizes of Gaussian noise, by the number of parts after the first."""
_SPACING: Final = {1: 0.25, 2: 0.4}
"""The distance between points of a grid, in deviations."""
_SLIGHT: Final = 1e-4
"""The share of the failure probability that slices may leave out."""
_FIRM: Final = 1.0 + 1e-12
_LEAST: Final = 1e-300
"""Variances are multiplied by `_FIRM` and are at least this, so that matrices can be inverted."""


@dataclass(frozen=True, slots=True)
class MixedNoise:
    """Sums of noises; some of these are drawn jointly.

    Parameters
    ----------
    parts
        Each sum on its own, in steps, and what a step is.
    correlations
        For each two of them, in the order (0, 1), (0, 2), (1, 2), ...
    excess
        The largest excess of all directions, at most 3.
    """

    parts: tuple[Part, ...]
    correlations: tuple[float, ...]
    excess: float

    @property
    def even(self) -> bool:
        return not any(self.correlations)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        own = tuple(self.parts[part] for part in parts)
        if len(parts) == 1:
            return Independent(own)
        matrix = self._matrix()
        pairs = itertools.combinations(parts, 2)
        return MixedNoise(own, tuple(float(matrix[pair]) for pair in pairs), self.excess)

    def _matrix(self) -> Floats:
        """The correlations as a matrix."""
        size = len(self.parts)
        found = np.eye(size)
        found[np.triu_indices(size, 1)] = self.correlations
        return found + np.triu(found, 1).T

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        deviations = [math.sqrt(law.variance()) * float(step) for law, step in self.parts]
        covariance = self._matrix() * np.outer(deviations, deviations)
        own = np.diag_indices_from(covariance)
        covariance[own] = np.maximum(covariance[own] * _FIRM, _LEAST)
        return _slices(covariance, math.sqrt(min(max(self.excess, 0.0), 3.0) / 3.0), miss)


def _slices(covariance: Floats, share: float, miss: float) -> Slices:
    """Gaussian noise of some sizes, and in each a grid of all parts but the first."""
    others = len(covariance) - 1
    sizes, masses = _sizes(share, _SIZES.get(others, 8))
    grid, density = _grid(others, _SPACING.get(others, 0.6), miss)
    rest = covariance[1:, 1:]
    pull: Floats = np.asarray(np.linalg.solve(rest, covariance[1:, 0]), dtype=np.float64)
    left = math.sqrt(max(covariance[0, 0] - pull @ covariance[1:, 0], 1e-300))
    points: Floats = np.asarray(np.linalg.cholesky(rest), dtype=np.float64) @ grid
    weights: Floats = np.multiply.outer(masses, density).reshape(-1)
    kept = weights > miss * _SLIGHT / weights.size
    found: list[Floats] = [np.multiply.outer(sizes, p).reshape(-1)[kept] for p in points]
    mean: Floats = pull @ np.array(found)
    deviation: Floats = np.repeat(sizes * left, density.size)[kept]
    return Slices(
        weights[kept] / weights[kept].sum(),
        tuple(found),
        above=lambda x: normal_above((x - mean) / deviation),
        below=lambda x: normal_above((mean - x) / deviation),
    )


@lru_cache(maxsize=64)
def _sizes(share: float, count: int) -> tuple[Floats, Floats]:
    """Deviations of Gaussian noise whose mixture has this much of its variance from Laplace
    noise, and the probability of each.
    """
    if share < 1e-6:
        return np.ones(1), np.ones(1)
    nodes, weights = np.polynomial.laguerre.laggauss(count)
    return np.sqrt(1.0 - share + share * nodes), weights


def _grid(numbers: int, spacing: float, miss: float) -> tuple[Floats, Floats]:
    """Points of this many independent Gaussian numbers, one per column, and what each stands
    for."""
    reach = math.sqrt(-2.0 * math.log(min(0.1, miss * _SLIGHT)))
    half = math.ceil(reach / spacing)
    points = np.linspace(-reach, reach, 2 * half + 1)
    grid = np.stack(np.meshgrid(*[points] * numbers, indexing="ij")).reshape(numbers, -1)
    density = np.exp(-0.5 * (grid * grid).sum(axis=0))
    return grid, density / density.sum()
