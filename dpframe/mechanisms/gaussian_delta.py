"""How private discrete Gaussian noise is as (epsilon, delta), and how much of it is needed.

Three upper bounds on delta are known; all are valid and the least one counts.

*On the integers*, when one entry changes, by the integer D: Canonne, Kamath and Steinke 2020 (CKS),
Theorem 7, a sum of nonnegative terms. Used up to sigma = 2048.

*By smoothing*, for any number of entries: discrete Gaussian noise is, up to a factor next to 1,
continuous Gaussian noise that was rounded at random, and rounding is post-processing. Let
r(x) = exp(-x**2 / (2 s**2)) and round y to z with probability r(z - y) / sum(r(z' - y)). By Poisson
summation the sum is s sqrt(2 pi) (1 + c), |c| <= t = 2 sum(exp(-2 pi**2 s**2 k**2), k >= 1),
whatever y is. So N(mu, sigma**2 - s**2), rounded, has at z a probability between (1 + t)**-1 and
(1 - t)**-1 times the density of N(mu, sigma**2) at z (the convolution of two Gaussians); and so has
the discrete Gaussian, when sigma >= s. The two differ by a factor of at most exp(K),
K = ln((1 + t) / (1 - t)), per entry. Hence if continuous noise of variance sigma**2 - s**2 is
(e, d)-private (Balle and Wang 2018, Theorem 8), discrete noise of variance sigma**2 is
(e + 2 l0 K, exp(l0 K) d)-private, where l0 entries change at most. With s**2 from 1 to 2, l0 K is
below 2**-31. (The smoothing parameter of a lattice: Micciancio and Regev 2007.)

*Through zCDP*: rho = l2**2 / (2 sigma**2) and CKS 2020, Proposition 12.

Floats are rounded towards more noise: each bound is inflated by far more than the error of the few
operations behind it, given an `exp`, `expm1`, `log` and `erfc` that are right to 2**-43.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import float_down, float_up
from dpframe.errors import InvalidBudget
from dpframe.mechanisms.rounding import dyadic_up

__all__ = ["delta_bound", "variance_for"]

_LARGE: Final = Fraction(2048**2)
"""From this variance on smoothing is within 5e-7 of the best bound on the integers."""

_TOLERANCE: Final = 5e-7
_INFLATE: Final = 1.0 + 1e-11
_LEAST: Final = 1e-280
_MOST_EPSILON: Final = Fraction(10**4)
"""What is private with this epsilon is so with any larger one, which floats might not hold."""


@lru_cache(maxsize=1024)
def delta_bound(sigma_squared: Fraction, l0: int, l2_squared: Fraction, epsilon: Fraction) -> float:
    """The least of the valid upper bounds on delta."""
    l0 = _entries(l0, l2_squared)
    found = [1.0, math.exp(_log_delta_zcdp(l2_squared / (2 * sigma_squared), epsilon))]
    smoothing = _smoothing(l0, epsilon)
    if sigma_squared > smoothing:
        d = float_up(l2_squared / (sigma_squared - smoothing)) ** 0.5 * _INFLATE
        found.append(math.exp(_log_delta_normal(d, _smoothed(epsilon)) + 2.0**-30))
    if l0 == 1 and sigma_squared < 2 * _LARGE:
        log_delta = _log_delta_on_integers(sigma_squared, _step(l2_squared), epsilon)
        found.append(math.exp(log_delta))
    return min(1.0, max(min(found) * _INFLATE, _LEAST))  # a bound that underflowed is not 0


@lru_cache(maxsize=1024)
def variance_for(l0: int, l2_squared: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least variance, within a relative 1e-6, at which one of the bounds is at most delta.

    Raises
    ------
    InvalidBudget
        When delta is 1 or more, or too small for a float.
    ValueError
        When l0 is below 1.
    """
    if l0 < 1:
        raise ValueError("l0 must be at least 1")
    if not _LEAST < delta < 1:
        raise InvalidBudget(
            "delta must lie between 1e-280 and 1", remedy="delta=1e-8, or a budget without a delta"
        )
    epsilon = min(epsilon, _MOST_EPSILON)
    l0 = _entries(l0, l2_squared)
    target = math.log(float_down(delta)) - 1e-11
    continuous = l2_squared / Fraction(_largest_shift(_smoothed(epsilon), target - 2.0**-30)) ** 2
    variance = continuous + _smoothing(l0, epsilon)
    variance = min(variance, l2_squared / (2 * _largest_rho(epsilon, target)))
    if l0 == 1 and variance < _LARGE:
        exact = _variance_on_integers(_step(l2_squared), epsilon, target, float(continuous))
        variance = min(variance, exact)
    return dyadic_up(variance)


def _entries(l0: int, l2_squared: Fraction) -> int:
    """How many entries can change, when each that does changes by 1 at least."""
    return min(l0, max(1, math.floor(l2_squared)))


def _step(l2_squared: Fraction) -> int:
    """The largest change of an integer that the sensitivity allows; delta grows with the change,
    because shifts of a log-concave law have a monotone likelihood ratio.
    """
    return max(1, math.isqrt(math.floor(l2_squared)))


# ------------------------------------------------------------------------------- on the integers
def _log_delta_on_integers(sigma_squared: Fraction, step: int, epsilon: Fraction) -> float:
    """ln of CKS 2020, Theorem 7: the sum over integers z > c = epsilon sigma**2 / D - D / 2 of
    P(z) (1 - exp(-(D / sigma**2) (z - c))).
    """
    crossing = epsilon * sigma_squared / step - Fraction(step, 2)
    first = math.floor(crossing) + 1
    half, sigma = float(1 / (2 * sigma_squared)), math.sqrt(sigma_squared)
    if first < -38.0 * sigma:
        return 0.0
    nearest = float(max(first, 0))  # terms are taken relative to the density here
    end = math.ceil(math.hypot(nearest, 9.5 * sigma)) + 1
    z = np.arange(first, end, dtype=np.float64)
    loss = np.expm1(-float(step / sigma_squared) * (float(first - crossing) + (z - first)))
    terms = np.exp((nearest - z) * (nearest + z) * half) * loss
    beyond = math.exp((nearest - end) * (nearest + end) * half) * (1.0 + sigma * sigma / end)
    total = beyond - float(terms.sum())
    return math.log(total) - nearest * nearest * half - _log_normaliser(sigma, half) + 1e-11


def _log_normaliser(sigma: float, half: float) -> float:
    """ln of a lower bound on sum(exp(-k**2 / (2 sigma**2))); sqrt(2 pi) sigma by CKS, Fact 18."""
    partial = 1.0 + 2.0 * sum(math.exp(-k * k * half) for k in range(1, 9))
    return math.log(max(partial, math.sqrt(2.0 * math.pi) * sigma))


def _variance_on_integers(step: int, epsilon: Fraction, target: float, start: float) -> Fraction:
    def excess(log_variance: float) -> float:
        variance = Fraction(math.exp(log_variance))
        return _log_delta_on_integers(variance, step, epsilon) - target

    width = min(0.5, 0.2 / start) + _TOLERANCE
    return Fraction(math.exp(_least_root(excess, math.log(start), width, _TOLERANCE)))


# ------------------------------------------------------------------------------- by smoothing
def _smoothing(l0: int, epsilon: Fraction) -> Fraction:
    """s**2 with 2 l0 K <= 2**-30 min(epsilon, 1); K <= 4.3 exp(-2 pi**2 s**2) when s**2 >= 1/2."""
    least = math.log(8.6 * l0 * 2.0**30 / min(1.0, float_down(epsilon)))
    return Fraction(max(0.5, least / (2.0 * math.pi**2) * _INFLATE))


def _smoothed(epsilon: Fraction) -> float:
    return float_down(epsilon * (1 - Fraction(1, 1 << 30)))


def _largest_shift(epsilon: float, target: float) -> float:
    """The largest l2 / sigma at which continuous Gaussian noise keeps ln delta below `target`."""

    def excess(log_sigma: float) -> float:
        return _log_delta_normal(math.exp(-log_sigma), epsilon) - target

    start = 0.5 * math.log(max(1e-3, 2.0 * (epsilon - target))) - math.log(epsilon)
    return math.exp(-_least_root(excess, start, 0.5, _TOLERANCE / 32))


def _log_delta_normal(d: float, epsilon: float) -> float:
    """An upper bound on ln delta of continuous Gaussian noise at d = l2 / sigma.

    Balle and Wang 2018, Theorem 8: Q(a) - exp(epsilon) Q(a + d) with a = epsilon / d - d / 2, which
    equals phi(a) (M(a) - M(a + d)) for Mills' ratio M = Q / phi. M is convex and falls with slope
    a M(a) - 1, so phi(a) d (1 - a M(a)) is an upper bound too, and free of cancellation.
    """
    a = epsilon / d - d / 2.0
    log_phi = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    if a < -5.0:
        return 0.0
    here, there = _mills(a), _mills(a + d)
    exact = here * (1.0 + 1e-14) - there * (1.0 - 1e-14)
    linear = d * (1.0 + 1e-14 * (1.0 + a * a) - a * here)
    return math.log(min(exact, linear)) + log_phi + 1e-12


def _mills(x: float) -> float:
    """Mills' ratio Q(x) / phi(x) for x >= -5, within a relative 1e-14.

    From 4 on by the continued fraction 1 / (x + 1 / (x + 2 / (x + ...))) (Laplace).
    """
    if x < 4.0:
        return math.sqrt(0.5 * math.pi) * math.erfc(x * math.sqrt(0.5)) * math.exp(0.5 * x * x)
    value = x
    for k in range(60 if x < 8.0 else 20, 0, -1):
        value = x + k / value
    return 1.0 / value


# ------------------------------------------------------------------------------- through zCDP
def _log_delta_zcdp(rho: Fraction, epsilon: Fraction) -> float:
    """ln delta = min over a > 1 of (a - 1)(a rho - epsilon) - ln(a - 1) + a ln(1 - 1 / a)."""
    rate, price = float_up(rho), float_down(epsilon)

    def bound(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((a - 1) * (a * rate - price) - np.log(a - 1) + a * np.log1p(-1 / a))

    best = _minimum(bound)
    return min(0.0, best + 1e-11 * (1.0 + abs(best)))


def _largest_rho(epsilon: Fraction, log_delta: float) -> Fraction:
    """The largest rho whose Proposition 12 epsilon is at most `epsilon`, rounded down.

    Solved for rho at every order a: (epsilon - ln(1 - 1 / a) + (ln delta + ln a) / (a - 1)) / a.
    """
    price = float_down(epsilon)

    def negative(a: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((np.log1p(-1 / a) - price - (log_delta + np.log(a)) / (a - 1)) / a)

    best = -_minimum(negative)
    return Fraction(max(best, 0.0) * (1.0 - 1e-10)) or Fraction(1, 1 << 200)


def _minimum(f: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """The least value found on ever finer grids of orders a > 1; any order gives a valid bound."""
    low, high = -12.0, 40.0
    best = math.inf
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        values = f(1.0 + np.exp(grid))
        i = int(np.argmin(values))
        best = min(best, float(values[i]))
        low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, 64)])
    return best


def _least_root(f: Callable[[float], float], start: float, width: float, tolerance: float) -> float:
    """A point where the falling function f is at most 0, within `tolerance` of one where it is not.

    Widens an interval around `start`, then false position, kept off the ends of the interval.
    """
    low, high = start - width, start + width
    f_low, f_high = f(low), f(high)
    while f_low <= 0.0:
        width *= 3.0
        high, f_high, low = low, f_low, low - width
        f_low = f(low)
    while f_high > 0.0:
        width *= 3.0
        low, f_low, high = high, f_high, high + width
        f_high = f(high)
    steps = 0
    while high - low > tolerance:
        steps += 1
        share = 0.5 if steps % 4 == 0 else f_low / (f_low - f_high)
        inset = tolerance / 4.0
        middle = min(max(low + share * (high - low), low + inset), high - inset)
        value = f(middle)
        if value > 0.0:
            low, f_low = middle, value
        else:
            high, f_high = middle, value
    return high
