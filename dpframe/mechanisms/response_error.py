"""How far debiased counts of randomised responses are off: their exact law.

With c of n rows in a category, the reports of it are a sum of two binomials: c rows report it with
probability p = exp(eps) / (exp(eps) + K - 1), the others with q = 1 / (exp(eps) + K - 1), for K
categories. The estimate is off by the deviation of that sum from its mean, over p - q, and by less
than 1 for its rounding. How many rows are in the category is private, so the worst c counts.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ALL = 200
"""Up to this many rows every c is tried; above, this many evenly spaced ones, and one report is
added: the quantile changes little from one c to the next.
"""
_SPACED = 33
_MOST_ROWS = 10**7
"""More reports are normal, but for less than the rounding."""
_WIDE = 12.0
"""Standard deviations beyond which nothing is left in double precision."""


def worst_error(n: int, p: float, q: float, miss: float) -> float:
    """What the estimate of a category is off by with a probability of at most `miss`, for the worst
    number of rows in it; the rounding to an integer included.

    Parameters
    ----------
    n
        How many rows there are.
    p, q
        The probability with which a row reports the category, when it is in it and when not.
    miss
        Above 0 and below 1.
    """
    if n > _MOST_ROWS:
        return asymptotic_error(p, q, miss) * math.sqrt(n) + 1
    every = n <= _ALL
    tried = range(n + 1) if every else np.linspace(0, n, _SPACED).astype(np.int64).tolist()
    reports = max(_quantile(c, n - c, p, q, miss) for c in tried)
    return (reports + (0 if every else 1)) / (p - q) + 1


def asymptotic_error(p: float, q: float, miss: float) -> float:
    """The same as a multiple of the root of the number of rows, for many rows: the reports are
    normal then (de Moivre and Laplace), with a variance of p (1 - p) or q (1 - q) each.
    """
    return -NormalDist().inv_cdf(miss / 2) * math.sqrt(max(p * (1 - p), q * (1 - q))) / (p - q)


def _quantile(c: int, rest: int, p: float, q: float, miss: float) -> float:
    """The least a for which the number of reports is further than a from its mean with a
    probability of at most `miss`.
    """
    first, one = _binomial(c, p)
    start, other = _binomial(rest, q)
    mass = _convolved(one, other)
    away = np.abs(np.arange(mass.size) + (first + start) - (c * p + rest * q))
    order = np.argsort(-away, kind="stable")
    beyond = np.cumsum(mass[order])
    within = int(np.searchsorted(beyond, miss, "right"))
    return float(away[order[min(within, order.size - 1)]])


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """The first count that matters, and the probabilities from it on."""
    if n == 0 or not 0.0 < p < 1.0:
        return n if p >= 1.0 else 0, np.ones(1)
    spread = _WIDE * math.sqrt(n * p * (1 - p)) + 40
    low = max(0, math.floor(n * p - spread))
    high = min(n, math.ceil(n * p + spread))
    counts = np.arange(low, high)
    # ratios of neighbouring probabilities, added up from the mode
    steps = np.log((n - counts) / (counts + 1.0)) + math.log(p) - math.log1p(-p)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(logs - logs.max())
    return low, mass / mass.sum()


def _convolved(one: Floats, other: Floats) -> Floats:
    if min(one.size, other.size) < 500:
        return np.convolve(one, other)
    size = 1 << (one.size + other.size - 1).bit_length()
    product = np.fft.rfft(one, size) * np.fft.rfft(other, size)
    found = np.fft.irfft(product, size)[: one.size + other.size - 1]
    return np.maximum(found, 0.0)
