"""How private continuous Gaussian noise is, rounded towards less privacy."""

from __future__ import annotations

import math

from dpframe.accounting.search import least_true


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
