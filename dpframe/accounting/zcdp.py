"""What zero-concentrated privacy amounts to as (epsilon, delta), rounded towards less privacy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.search import minimum
from dpframe.core.exact import float_down, float_up

__all__ = ["largest_rho", "log_delta_zcdp"]


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
    return Fraction(max(best, 0.0) * (1.0 - 1e-10)) or Fraction(1, 1 << 200)
