"""What zero-concentrated privacy amounts to as (epsilon, delta), rounded towards less privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.search import minimum
from dpframe.core.exact import dyadic_down, float_down, float_up

_BITS: Final = 28
"""Of rho: plans should be the same on machines whose logarithms differ in the last."""


def log_delta_zcdp(rho: Fraction, epsilon: Fraction) -> float:
    """ln delta = min over a > 1 of (a - 1)(a rho - epsilon) - ln(a - 1) + a ln(1 - 1 / a)."""
    rate, price = float_up(rho), float_down(epsilon)

    def bound(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((a - 1) * (a * rate - price) - np.log(a - 1) + a * np.log1p(-1 / a))

    best = minimum(bound)
    return min(0.0, best + 1e-11 * (1.0 + abs(best)))


def largest_rho(epsilon: Fraction, log_delta: float) -> Fraction:
    """The largest rho whose Proposition 12 epsilon is at most `epsilon`, rounded down.

    Solved for rho at every order a: (epsilon - ln(1 - 1 / a) + (ln delta + ln a) / (a - 1)) / a.
    """
    price = float_down(epsilon)

    def negative(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((np.log1p(-1 / a) - price - (log_delta + np.log(a)) / (a - 1)) / a)

    best = -minimum(negative)
    found = dyadic_down(Fraction(max(best, 0.0) * (1.0 - 1e-10)), _BITS)
    return found or Fraction(1, 1 << 200)


def epsilon_of_rho(rho: Fraction, delta: float) -> float:
    """The least epsilon that Proposition 12 gives at delta:

    the least, over a > 1, of a rho + ln(1 - 1 / a) - ln(delta a) / (a - 1).
    """
    if delta <= 0.0:
        return math.inf
    return renyi_epsilon(lambda orders: orders * float_up(rho), delta)


def renyi_epsilon(
    curve: Callable[[NDArray[np.float64]], NDArray[np.float64]], delta: float
) -> float:
    """The same for any upper bounds on Renyi divergences, as a function of the order a."""
    log_delta = math.log(delta)

    def bound(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(curve(a) + np.log1p(-1 / a) - (log_delta + np.log(a)) / (a - 1))

    best = minimum(bound)
    return max(0.0, best + 1e-11 * (1.0 + abs(best)))


def loose_epsilon_of_rho(rho: Fraction, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1 / delta)) (Bun and Steinke 2016, Prop. 1.3)."""
    if delta <= 0.0:
        return math.inf
    rate = float_up(rho)
    return (rate + 2.0 * math.sqrt(rate * -math.log(delta))) * (1.0 + 1e-15)
