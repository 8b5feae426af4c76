"""How private Gaussian noise and zero-concentrated privacy are as (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import digits_down, dyadic_down, dyadic_up, float_down, float_up
from dpframe.errors import InvalidBudget

# Searches whose answer is right wherever they stop: a point that was tried, not a limit.

_MOST_STEPS: Final = 100


def minimum(f: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """The least value found on ever finer grids of orders a > 1; any order gives a valid bound."""
    low, high = -12.0, 40.0
    best = math.inf
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        with np.errstate(over="ignore", invalid="ignore"):
            values = f(1.0 + np.exp(grid))
        values = np.where(np.isnan(values), math.inf, values)
        i = int(np.argmin(values))
        best = min(best, float(values[i]))
        low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, 64)])
    return best


def least_root(f: Callable[[float], float], start: float, width: float, tolerance: float) -> float:
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


def least_reaching(f: Callable[[float], float], target: float, start: float, near: float) -> float:
    """A point of at least 0 where the falling function f, which is below 0, was seen to be at most
    `target`, within about a relative `near` of where it first is; infinity if none was found.

    Secants through the last two points, kept between a point that is too small and one that is
    large enough. The first step takes f to fall as the square of its argument.
    """
    low, high = 0.0, math.inf
    at, last, slope = start, None, math.nan
    for step in range(_MOST_STEPS):
        value = f(at)
        low, high = (at, high) if value > target else (low, at)
        if last is not None and value != last[1]:
            slope = (value - last[1]) / (at - last[0])
        if math.isinf(slope):  # f may fall to minus infinity
            slope = math.nan
        near_enough = high == at and value >= target + slope * near * at
        if near_enough or (high < math.inf and high - low <= near * high):
            break
        if math.isnan(slope):
            then = at * math.sqrt(target / value) if value < 0.0 else 2.0 * at
        else:
            then = at + (target - value) / slope + 0.5 * near * at
        if then <= 0.0 == low and f(0.0) <= target:
            return 0.0
        if not low < then < high or step % 8 == 7:
            then = 2.0 * at if high == math.inf else 0.5 * (low + high)
        at, last = then, (at, value)
    return high


def least_true(holds: Callable[[float], bool], low: float, high: float, near: float) -> float:
    """A point where `holds` was seen, within a relative `near` of one where it was not.

    Infinity when it never held. `holds` must not stop holding as its argument grows.
    """
    while not holds(high):
        low, high = high, 2.0 * high + 1e-300
        if high > 1e300:
            return math.inf
    while high - low > near * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


# How private continuous Gaussian noise is, rounded towards less privacy.


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


# What zero-concentrated privacy amounts to as (epsilon, delta), rounded towards less privacy.


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


# How private discrete Gaussian noise is as (epsilon, delta), and how much of it is needed.
#
# Four upper bounds on delta are known; all are valid and the least one counts.
#
# *On the integers*, when one entry changes, by the integer D: Canonne, Kamath and Steinke 2020
# (CKS), Theorem 7, a sum of nonnegative terms. Used up to sigma = 2048.
#
# *On the integers, by their sum*, when n entries change by 1 each: the privacy loss is (n - 2 S) /
# (2 sigma**2), S the sum of the noise of n entries. S is discrete Gaussian noise of variance n
# sigma**2 up to a factor. When one entry is added to k others, the sum over their shares is one of
# a Gaussian of variance sigma**2 k / (k + 1) over shifted integers, within 1 +- t_k of its mean,
# t_k = 2 sum(exp(-2 pi**2 sigma**2 k / (k + 1) j**2), j >= 1) (Poisson summation). So delta is at
# most prod((1 + t_k) / (1 - t_k), k < n) times the delta of one entry with variance n sigma**2 that
# moves by n, which has the same loss. Fewer entries reveal less.
#
# *By smoothing*, for any number of entries: discrete Gaussian noise is, up to a factor next to 1,
# continuous Gaussian noise that was rounded at random, and rounding is post-processing. Let r(x) =
# exp(-x**2 / (2 s**2)) and round y to z with probability r(z - y) / sum(r(z' - y)). By Poisson
# summation the sum is s sqrt(2 pi) (1 + c), |c| <= t = 2 sum(exp(-2 pi**2 s**2 k**2), k >= 1), for
# any y. So N(mu, sigma**2 - s**2), rounded, has at z a probability between (1 + t)**-1 and (1 -
# t)**-1 times the density of N(mu, sigma**2) at z (the convolution of two Gaussians); and so has
# the discrete Gaussian, when sigma >= s. The two differ by a factor of at most exp(K), K = ln((1 +
# t) / (1 - t)), per entry. Hence if continuous noise of variance sigma**2 - s**2 is (e, d)-private
# (Balle and Wang 2018, Theorem 8), discrete noise of variance sigma**2 is (e + 2 l0 K, exp(l0 K)
# d)-private, where l0 entries change at most. With s**2 from 1 to 2, l0 K is below 2**-31. (The
# smoothing parameter of a lattice: Micciancio and Regev 2007.)
#
# *Through zCDP*: rho = l2**2 / (2 sigma**2) and CKS 2020, Proposition 12.
#
# Floats are rounded towards more noise: each bound is inflated by far more than the error of the
# few operations behind it, given an `exp`, `expm1`, `log` and `erfc` that are right to 2**-43.

_LARGE: Final = Fraction(2048**2)
"""From this variance on smoothing is within 5e-7 of the best bound on the integers."""

_TOLERANCE: Final = 5e-7
_BITS: Final = 28
"""The bits of the variance: plans should be the same on machines whose logarithms differ in the
last."""
_INFLATE: Final = 1.0 + 1e-11
_LEAST: Final = 1e-280
_MOST_RIPPLE: Final = 0.1
"""Beyond, other bounds are better."""
_MOST_EPSILON: Final = Fraction(10**4)
"""A mechanism with this epsilon also has any larger one, which floats might not hold."""


@lru_cache(maxsize=1024)
def delta_bound(
    sigma_squared: Fraction,
    l0: int,
    l2_squared: Fraction,
    epsilon: Fraction,
    linf: Fraction | None = None,
) -> float:
    """The least of the valid upper bounds on delta."""
    epsilon = min(epsilon, _MOST_EPSILON)
    l0 = _entries(l0, l2_squared)
    found = [1.0, math.exp(log_delta_zcdp(l2_squared / (2 * sigma_squared), epsilon))]
    smoothed = _smoothing(l0, epsilon)
    if sigma_squared > smoothed:
        d = float_up(l2_squared / (sigma_squared - smoothed)) ** 0.5 * _INFLATE
        found.append(math.exp(log_delta_normal(d, _lessen(epsilon)) + 2.0**-30))
    if l0 == 1 and sigma_squared < 2 * _LARGE:
        log_delta = _log_delta_on_integers(sigma_squared, _step(l2_squared), epsilon)
        found.append(math.exp(log_delta))
    if _moves_by_ones(l0, linf) and l0 * sigma_squared < 2 * _LARGE:
        ripple = _log_ripple(l0, sigma_squared)
        if ripple < _MOST_RIPPLE:
            log_delta = _log_delta_on_integers(l0 * sigma_squared, l0, epsilon)
            found.append(math.exp(log_delta + ripple))
    return min(1.0, max(min(found) * _INFLATE, _LEAST))  # a bound that underflowed is not 0


@lru_cache(maxsize=1024)
def variance_for(
    l0: int,
    l2_squared: Fraction,
    epsilon: Fraction,
    delta: Fraction,
    linf: Fraction | None = None,
) -> Fraction:
    """The least variance, within a relative 1e-6, at which one of the bounds is at most delta.
    Raises `InvalidBudget` when delta is 1 or more, or too small for a float. Raises `ValueError`
    when l0 is below 1.
    """
    if l0 < 1:
        raise ValueError("l0 must be at least 1")
    if not _LEAST < delta < 1:
        raise InvalidBudget(
            "delta must lie between 1e-280 and 1",
            remedy=("write delta=1e-8", "use a budget without a delta"),
        )
    epsilon = min(epsilon, _MOST_EPSILON)
    l0 = _entries(l0, l2_squared)
    target = math.log(float_down(delta)) - 1e-11
    continuous = l2_squared / Fraction(largest_shift(_lessen(epsilon), target - 2.0**-30)) ** 2
    variance = continuous + _smoothing(l0, epsilon)
    variance = min(variance, l2_squared / (2 * largest_rho(epsilon, target)))
    if l0 == 1 and variance < _LARGE:
        exact = _variance_on_integers(_step(l2_squared), epsilon, target, float(continuous))
        variance = min(variance, exact)
    if _moves_by_ones(l0, linf) and l0 * variance < _LARGE:
        ripple = _log_ripple(l0, continuous * Fraction(9, 10))
        if ripple < _MOST_RIPPLE:
            summed = _variance_on_integers(l0, epsilon, target - ripple, float(l0 * continuous))
            variance = min(variance, summed / l0)
    variance = dyadic_up(variance, _BITS)
    while delta_bound(variance, l0, l2_squared, epsilon, linf) > delta:  # rounding in the search
        variance = dyadic_up(variance * (1 + Fraction(1, 1 << _BITS)), _BITS)
    return variance


def _entries(l0: int, l2_squared: Fraction) -> int:
    """How many entries can change, when each that does changes by 1 at least."""
    return min(l0, max(1, math.floor(l2_squared)))


def _moves_by_ones(l0: int, linf: Fraction | None) -> bool:
    return l0 > 1 and linf is not None and linf <= 1


def _log_ripple(entries: int, sigma_squared: Fraction) -> float:
    """ln of prod((1 + t_k) / (1 - t_k), k < entries); infinity with too little noise."""
    rate = 2.0 * math.pi**2 * float(sigma_squared)
    if rate < 6.0:  # then t_k <= 2.01 of its first term below
        return math.inf
    total, last = 0.0, min(entries - 1, 64)
    for k in range(1, last + 1):
        t = 2.01 * math.exp(-rate * k / (k + 1))
        total += (1 if k < last else entries - last) * (math.log1p(t) - math.log1p(-t))
    return total * _INFLATE


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
    return Fraction(math.exp(least_root(excess, math.log(start), width, _TOLERANCE)))


# ------------------------------------------------------------------------------- by smoothing
def smoothing(l0: int, factor: float) -> Fraction:
    """s**2 with l0 K <= `factor` <= 1; K <= 4.3 exp(-2 pi**2 s**2) when s**2 >= 1/2."""
    least = math.log(4.3 * l0 / factor)
    return Fraction(max(0.5, least / (2.0 * math.pi**2) * _INFLATE))


def _smoothing(l0: int, epsilon: Fraction) -> Fraction:
    """s**2 with 2 l0 K <= 2**-30 min(epsilon, 1)."""
    return smoothing(l0, 2.0**-31 * min(1.0, float_down(epsilon)))


def _lessen(epsilon: Fraction) -> float:
    return float_down(epsilon * (1 - Fraction(1, 1 << 30)))


def largest_shift(epsilon: float, target: float) -> float:
    """The largest l2 / sigma, within a relative 2e-8, at which continuous Gaussian noise keeps
    ln delta below `target`.
    """

    def excess(log_sigma: float) -> float:
        return log_delta_normal(math.exp(-log_sigma), epsilon) - target

    start = 0.5 * math.log(max(1e-3, 2.0 * (epsilon - target))) - math.log(epsilon)
    return math.exp(-least_root(excess, start, 0.5, _TOLERANCE / 32))


def largest_mu_squared(epsilon: Fraction, log_delta: float, digits: int) -> Fraction:
    """The largest mu**2 that implies (epsilon, delta), rounded down to this many digits.

    Dong, Roth and Su 2022, Corollary 3.3; Balle and Wang 2018, Theorem 8.
    """
    price = float_down(epsilon)
    mu = largest_shift(price, log_delta) * (1.0 - 1e-9)
    while log_delta_normal(mu, price) > log_delta:  # rounding in the search
        mu *= 1.0 - 1e-9
    return digits_down(Fraction(mu) ** 2, digits)
