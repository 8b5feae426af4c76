"""The upper tails of the normal and the discrete Gaussian law for whole arrays, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEP: Final = 2.0**-7
_FARTHEST: Final = 38.0
_SUMMED: Final = 64.0
_UP: Final = 1.0 + 2.0**-16
"""Above the error of interpolation: the logarithm of the tail is concave, its second derivative is
at most 1 in size, and so a chord over a step lies at most step**2 / 8 = 2**-17 below it."""


def normal_above(z: Floats) -> Floats:
    """P(Z > z) of a standard normal Z: at least that, and at most 2**-15 of it more.

    Beyond 38 it is that at 38, about 3e-316.
    """
    knots, logs = _table()
    tail: Floats = np.exp(np.interp(np.abs(z), knots, logs)) * _UP
    return np.where(z >= 0, tail, np.minimum(1.0, 1.0 - tail / (_UP * _UP)))


@cache
def _table() -> tuple[Floats, Floats]:
    knots = np.arange(0.0, _FARTHEST + _STEP, _STEP)
    knots = knots[knots <= _FARTHEST]
    logs = [math.log(math.erfc(z / math.sqrt(2)) / 2) for z in knots.tolist()]
    return knots, np.asarray(logs)


def gaussian_above(sigma_squared: Fraction, k: Floats) -> Floats:
    """P(noise >= k) of discrete Gaussian noise for whole k of at least 1: above it by 1 in 2**14 at
    most, never below but for the last digits of floats.

    From the series up to sigma = 64. Beyond that it comes from the continuous law. A term is
    close to the integral over the unit interval around it, up to (k**2 / sigma**2 + 1) / (24
    sigma**2) of it (the remainder of the midpoint rule), which is covered.
    """
    sigma = math.sqrt(sigma_squared)
    if sigma <= _SUMMED:
        tails = _tails(float(1 / (2 * sigma_squared)), math.ceil(39 * sigma) + 2)
        return np.asarray(tails[np.minimum(k, tails.size - 1.0).astype(np.int64)])
    z = np.minimum((k - 0.5) / sigma, 40.0)
    return normal_above(z) * (1.0 + (z * z + 1.0) / (20.0 * float(sigma_squared)))


@lru_cache(maxsize=64)
def _tails(half: float, reach: int) -> Floats:
    """P(noise >= k) for k = 0, 1, ..., reach; the first one is never needed."""
    terms = np.exp(-(np.arange(reach + 1, dtype=np.float64) ** 2) * half)
    sums: Floats = np.cumsum(terms[::-1])[::-1]
    return np.asarray(sums / (2.0 * sums[0] - 1.0))
