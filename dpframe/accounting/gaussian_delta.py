"""How private discrete Gaussian noise is as (epsilon, delta), and how much of it is needed.

Four upper bounds on delta are known; all are valid and the least one counts.

*On the integers*, when one entry changes, by the integer D: Canonne, Kamath and Steinke 2020 (CKS),
Theorem 7, a sum of nonnegative terms. Used up to sigma = 2048.

*On the integers, by their sum*, when n entries change by 1 each: the privacy loss is (n - 2 S) /
(2 sigma**2), S the sum of the noise of n entries. S is discrete Gaussian noise of variance n
sigma**2 up to a factor. When one entry is added to k others, the sum over their shares is one of
a Gaussian of variance sigma**2 k / (k + 1) over shifted integers, within 1 +- t_k of its mean,
t_k = 2 sum(exp(-2 pi**2 sigma**2 k / (k + 1) j**2), j >= 1) (Poisson summation). So delta is at
most prod((1 + t_k) / (1 - t_k), k < n) times that of one entry with variance n sigma**2 that
moves by n, which has the same loss. Fewer entries reveal less.

*By smoothing*, for any number of entries: discrete Gaussian noise is, up to a factor next to 1,
continuous Gaussian noise that was rounded at random, and rounding is post-processing. Let
r(x) = exp(-x**2 / (2 s**2)) and round y to z with probability r(z - y) / sum(r(z' - y)). By
Poisson summation the sum is s sqrt(2 pi) (1 + c), |c| <= t = 2 sum(exp(-2 pi**2 s**2 k**2), k >=
1), for any y. So N(mu, sigma**2 - s**2), rounded, has at z a probability between (1 + t)**-1 and
(1 - t)**-1 times the density of N(mu, sigma**2) at z (the convolution of two Gaussians); and so
has the discrete Gaussian, when sigma >= s. The two differ by a factor of at most exp(K), K =
ln((1 + t) / (1 - t)), per entry. Hence if continuous noise of variance sigma**2 - s**2 is (e,
d)-private (Balle and Wang 2018, Theorem 8), discrete noise of variance sigma**2 is (e + 2 l0 K,
exp(l0 K) d)-private, where l0 entries change at most. With s**2 from 1 to 2, l0 K is below
2**-31. (The smoothing parameter of a lattice: Micciancio and Regev 2007.)

*Through zCDP*: rho = l2**2 / (2 sigma**2) and CKS 2020, Proposition 12.

Floats are rounded towards more noise: each bound is inflated by far more than the error of the few
operations behind it, given an `exp`, `expm1`, `log` and `erfc` that are right to 2**-43.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from dpframe.accounting.normal import log_delta_normal
from dpframe.accounting.search import least_root
from dpframe.accounting.zcdp import largest_rho, log_delta_zcdp
from dpframe.core.exact import digits_down, dyadic_up, float_down, float_up
from dpframe.errors import InvalidBudget

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
        found.append(math.exp(log_delta_normal(d, _smoothed(epsilon)) + 2.0**-30))
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
            "delta must lie between 1e-280 and 1",
            remedy=("write delta=1e-8", "use a budget without a delta"),
        )
    epsilon = min(epsilon, _MOST_EPSILON)
    l0 = _entries(l0, l2_squared)
    target = math.log(float_down(delta)) - 1e-11
    continuous = l2_squared / Fraction(largest_shift(_smoothed(epsilon), target - 2.0**-30)) ** 2
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


def _smoothed(epsilon: Fraction) -> float:
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
