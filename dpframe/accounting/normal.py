"""How private continuous Gaussian noise is, rounded towards less privacy."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.search import least_true

__all__ = ["log_delta_normal", "mills", "mills_of", "mills_of_many", "normal_epsilon"]


_DENSITY: Final = 64
_DEGREE: Final = 6
_LAST: Final = 40
"""Taylor polynomials of Mills' ratio: how many points per unit, the degree, and the last
point."""


def log_delta_normal(d: float, epsilon: float) -> float:
    """An upper bound on ln delta of continuous Gaussian noise at d = l2 / sigma.

    Balle and Wang 2018, Theorem 8: Q(a) - exp(epsilon) Q(a + d) with a = epsilon / d - d / 2, which
    equals phi(a) (M(a) - M(a + d)) for Mills' ratio M = Q / phi. M is convex and falls with slope
    a M(a) - 1, so phi(a) d (1 - a M(a)) is an upper bound too, and free of cancellation.
    """
    a = epsilon / d - d / 2.0
    log_phi = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    if a < -5.0:
        return 0.0
    here, there = mills(a), mills(a + d)
    exact = here * (1.0 + 1e-14) - there * (1.0 - 1e-14)
    linear = d * (1.0 + 1e-14 * (1.0 + a * a) - a * here)
    return math.log(min(exact, linear)) + log_phi + 1e-12


def mills(x: float) -> float:
    """Mills' ratio Q(x) / phi(x) for x >= -5, within a relative 1e-14.

    From 4 on by the continued fraction 1 / (x + 1 / (x + 2 / (x + ...))) (Laplace).
    """
    if x < 4.0:
        return math.sqrt(0.5 * math.pi) * math.erfc(x * math.sqrt(0.5)) * math.exp(0.5 * x * x)
    value = x
    for k in range(60 if x < 8.0 else 20, 0, -1):
        value = x + k / value
    return 1.0 / value


def normal_epsilon(shift_squared: float, delta: float) -> float:
    """An epsilon that continuous Gaussian noise keeps at delta, given (l2 / sigma)**2 or more."""
    d = math.sqrt(shift_squared) * (1.0 + 1e-15)
    target = math.log(delta)

    def private(epsilon: float) -> bool:
        return log_delta_normal(d, epsilon) <= target

    if private(0.0):
        return 0.0
    # P(L > epsilon) <= delta where L ~ N(d**2 / 2, d**2), by the tail bound exp(-z**2 / 2).
    above = 0.5 * d * d + d * math.sqrt(max(0.0, -2.0 * target)) + 1e-9
    return least_true(private, 0.0, above, 2.0**-44)


def mills_of(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mills' ratio of each number >= -36, within a relative 2e-13; below -5 usually of its
    size."""
    value = np.empty_like(x)
    near = x < 4.0
    value[near] = [math.erfc(v) for v in (x[near] * math.sqrt(0.5)).tolist()]
    value[near] *= math.sqrt(0.5 * math.pi) * np.exp(0.5 * x[near] ** 2)
    far = x[~near]
    tail = far.copy()
    for k in range(60, 0, -1):
        tail = far + k / tail
    value[~near] = 1.0 / tail
    return value


def mills_of_many(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `mills_of`, as exact and quicker for thousands of numbers; its last digits differ.

    M(x) is the integral of exp(-x t - t**2 / 2) over t > 0, so its Taylor coefficients are up to
    their signs E[t**n] / n! times M(x), for t with that density; they are largest at x = 0. Beyond
    degree 6, half a 64th away, they make less than 2e-17 of M. Below 0, Q(x) = 1 - Q(-x).
    """
    size = np.abs(x)
    place = np.rint(np.minimum(size, _LAST) * _DENSITY)
    rest = size - place * (1.0 / _DENSITY)
    at = place.astype(np.intp)
    terms = _mills_taylor()
    value: NDArray[np.float64] = terms[_DEGREE].take(at)
    for n in range(_DEGREE - 1, -1, -1):
        value *= rest
        value += terms[n].take(at)
    far = size > _LAST
    if far.any():
        value[far] = mills_of(size[far])
    below = x < 0.0
    value[below] = math.sqrt(2.0 * math.pi) * np.exp(0.5 * x[below] ** 2) - value[below]
    return value


@lru_cache(maxsize=1)
def _mills_taylor() -> list[NDArray[np.float64]]:
    """Taylor coefficients of Mills' ratio M around 0, 1/64, ..., 40, degree by degree.

    M' = x M - 1, so by Leibniz' rule n c_n = x c_(n - 1) + c_(n - 2) for n >= 2.
    """
    x = np.arange(_LAST * _DENSITY + 1) / _DENSITY
    terms = [mills_of(x)]
    terms.append(x * terms[0] - 1.0)
    for n in range(2, _DEGREE + 1):
        terms.append((x * terms[-1] + terms[-2]) / n)
    return terms
