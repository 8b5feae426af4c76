"""Tails of discrete Gaussian noise: the least whole number that is exceeded rarely enough.

Floats find it almost always: it is accepted only where their error cannot matter. Else the upper
bound of `dpframe.kernel.tails` decides, which is equal to the tail to 30 digits. A tie cannot be
distinguished from an error of the last digits; then the number is taken to be too small.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from dpframe.kernel.tails import TWO, D, gaussian_tail

_SERIES: Final = 512.0
"""Up to this sigma floats add up the terms."""


@lru_cache(maxsize=1024)
def least_covering(sigma_squared: Fraction, miss: Decimal) -> int:
    """The least a >= 0 with P(|X| > a) <= miss, a probability between 0 and 1."""
    low, high = _by_floats(sigma_squared, float(miss))
    if low == high:
        return low
    step = 1
    while low > 0 and _is_covering(sigma_squared, low - 1, miss):
        low, high, step = max(0, low - step), low - 1, 2 * step
    step = 1
    while not _is_covering(sigma_squared, high, miss):
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        if _is_covering(sigma_squared, middle, miss):
            high = middle
        else:
            low = middle + 1
    return high


def _by_floats(sigma_squared: Fraction, miss: float) -> tuple[int, int]:
    """Two numbers that are the same where it is certain, else about right."""
    sigma = math.sqrt(sigma_squared)
    normal = -NormalDist().inv_cdf(max(miss / 2, 1e-300))
    if sigma <= _SERIES and miss > 1e-290:
        reach = math.ceil(sigma * (normal + 9.0)) + 2
        k = np.arange(1, reach + 1, dtype=np.float64)
        terms = np.exp(-(k * k) * float(1 / (2 * sigma_squared)))
        tails = np.append(np.cumsum(terms[::-1])[::-1], 0.0)  # tails[a] = sum over k > a
        tails *= 2.0 / (1.0 + 2.0 * tails[0])
        low, high = (int(np.count_nonzero(tails * s > miss)) for s in (1.0 - 1e-11, 1.0 + 1e-11))
        return low, high
    edge = sigma * normal - normal / (24.0 * sigma) - 0.5
    error = 1e-5 + abs(edge) * 2.0**-42 if miss > 1e-290 else 1.0 + abs(edge) * 2.0**-42
    return max(0, math.ceil(edge - error)), max(0, math.ceil(edge + error))


def _is_covering(sigma_squared: Fraction, a: int, miss: Decimal) -> bool:
    """Whether P(|X| > a) <= miss for certain."""
    return D.multiply(TWO, gaussian_tail(sigma_squared, a + 1)[1]) <= miss
