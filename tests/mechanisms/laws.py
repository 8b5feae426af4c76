"""Exact laws of private selections, by enumeration, for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np


def exponential_law(
    scores: Sequence[float], scale: float, weights: Sequence[float] | None = None
) -> list[float]:
    """Proportional to weight * exp(score / scale)."""
    given = [1.0] * len(scores) if weights is None else weights
    masses = [w * math.exp((s - max(scores)) / scale) for s, w in zip(scores, given, strict=True)]
    return [m / sum(masses) for m in masses]


def flip_law(scores: Sequence[float], scale: float) -> list[float]:
    """Permute-and-flip: a uniform choice among all successes."""
    p = [math.exp((s - max(scores)) / scale) for s in scores]
    law = [0.0] * len(p)
    for successes in product((0, 1), repeat=len(p)):
        weight = math.prod(a if s else 1 - a for a, s in zip(p, successes, strict=True))
        for i, s in enumerate(successes):
            if s and weight:
                law[i] += weight / sum(successes)
    return law


def noisy_max_law(scores: Sequence[int], scale: float, reach: int = 400) -> list[float]:
    """Report noisy max by summing over all discrete Laplace noises; ties at random."""
    k = np.arange(-reach, reach + 1)
    q = math.exp(-1 / scale)
    pmf = (1 - q) / (1 + q) * q ** np.abs(k).astype(float)
    law = []
    for i, s in enumerate(scores):
        total = 0.0
        for x, p in zip(k, pmf, strict=True):
            ways = np.array([1.0])  # by the number of others that tie
            for t in (*scores[:i], *scores[i + 1 :]):
                below, equal = pmf[k + t < x + s].sum(), pmf[k + t == x + s].sum()
                ways = np.convolve(ways, [below, equal])
            total += float(p) * float((ways / np.arange(1, ways.size + 1)).sum())
        law.append(total)
    return law
