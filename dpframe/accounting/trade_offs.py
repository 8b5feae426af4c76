"""Gaussian differential privacy: the distance of two unit normals that are as hard to
distinguish.

The *trade-off* of a pair of laws gives, for each probability of a false alarm, the least one of a
miss. It is that of mu-GDP or above it when no test distinguishes the pair better than N(0, 1)
from N(mu, 1) (Dong, Roth and Su 2022). The trade-off of discrete laws is a convex broken line,
and that of GDP is convex, so it is enough to compare the corners. With alpha and beta the two
errors there, mu must be at least z(1 - alpha) - z(beta), z being the quantile of the normal law.
This module has the least such mu, and never less.

*Pure privacy*: there is one corner, alpha = beta = 1 / (1 + exp(e)), so mu = 2 z(exp(e) / (1 +
exp(e))).

*Bounded range e*: at worst there are two losses t and t - e, t in (0, e), so one corner, where
alpha beta / (1 - alpha - beta) = 1 / (exp(e) - 1) for any t. mu is largest where alpha = beta. If
beta < alpha the slope there is positive as long as R(alpha) <= R(beta), with R(x) = phi(z(x)) /
(x (1 - x)). R is the sum of the hazards of the normal law at z(x) and -z(x), which is convex
(Sampford 1953) and even, so it grows away from x = 1/2. So mu is that of pure privacy e / 2.

*k categories*: two corners with the same mu, z(1 - 1 / n) - z((k - 1) / n), n = exp(e) + k - 1.

*Discrete Laplace noise*, q = exp(-h), moved by D: corners between neighbouring outcomes, with mu =
k(j) + k(D - 1 - j), k(j) = z(1 - q**(j + 1) / (1 + q)) concave (the normal law's hazard grows), so
the middle is the worst; farther out it falls. For vectors see `dpframe.accounting.loss_laws`:
most is revealed where as much as possible moves at once. mu**2 adds up over independent
coordinates.

*Discrete Gaussian noise* moved by 1: mu = max(z(F(j)) - z(F(j - 1))) over j, F its distribution
function. A move by d is d such steps at most, so a vector moved by d costs |d|**2 mu**2. Two ways:

1. *By the corners* up to j = 20 sigma**2 + 40. Beyond, with S the tail, M Mills' ratio and w =
   -ln S, dz / dw = M(z) <= 1 / z falls, so the step is at most (w_j - w_(j - 1)) / z_(j - 1). Here
   w_j - w_(j - 1) <= c + exp(-c), c = (2 j + 1) / (2 sigma**2), and z_(j - 1)**2 >= 2 L -
   2 ln(sqrt(2 pi) (sqrt(2 L) + 1)) for L <= w_(j - 1), because the normal tail is at least phi(x) /
   (x + 1). With y = j / sigma the square of this bound, times sigma**2, is 1 + (y / sigma +
   2 ln(y / sigma) + ...) / y**2, and falls with y.
2. *From continuous noise*: let r(x) = exp(-x**2 / (2 s**2)), R(y) the sum of r over y + integers.
   A number y rounded to the integer x with probability r(x - y) / R(y), where y has a density
   proportional to R times that of N(m, sigma**2 - s**2), is discrete Gaussian noise around the
   integer m: the product is exp(-(x - m)**2 / (2 sigma**2)) integrated. R is periodic and within
   1 +- t of its mean, t = 2 sum(exp(-2 pi**2 s**2 k**2)) (Poisson summation). So tails of y are
   within (1 + t) / (1 - t) of normal ones, and z of them is moved by 1.3 * 2.01 t at most, as dz /
   dw <= M(-0.01) < 1.3 on the side of the lesser tail. Hence mu <= 1 / sqrt(sigma**2 - s**2) + 6 t.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.gaussian_delta import largest_shift
from dpframe.accounting.normal import log_delta_normal, mills_of
from dpframe.core.exact import digits_down, digits_up, float_down
from dpframe.core.sensitivity import concentrated

__all__ = [
    "bounded_range_mu_squared",
    "discrete_gaussian_mu_squared",
    "laplace_mu_squared",
    "largest_mu_squared",
    "pure_mu_squared",
    "response_mu_squared",
]

_INFLATE: Final = 1.0 + 1e-10
"""Floats here are right to 1e-12."""
_LARGE: Final = 650
"""Beyond it tails leave floats."""
_HUGE: Final = 10**6
_BY_CORNERS: Final = 400
"""Up to this variance."""


def pure_mu_squared(epsilon: Fraction) -> Fraction:
    """Of any purely private mechanism."""
    if epsilon > _HUGE:  # the tail beyond x is at most exp(-x**2 / 2) / 2
        return digits_up(8 * epsilon, 14)
    return _squared(2.0 * _normal_at(epsilon))


def bounded_range_mu_squared(epsilon: Fraction) -> Fraction:
    """The mu**2 of a mechanism whose losses are within an interval of length `epsilon`."""
    return pure_mu_squared(epsilon / 2)


def response_mu_squared(epsilon: Fraction, categories: int) -> Fraction:
    """The mu**2 of one report by randomised response."""
    if categories == 2 or epsilon > _LARGE:
        return pure_mu_squared(epsilon)
    shrunk = math.exp(-float(epsilon))
    total = 1.0 + (categories - 1) * shrunk  # n exp(-e)
    # alpha = 1 / n and beta = (k - 1) / n
    alpha, beta = shrunk / total, (categories - 1) * shrunk / total
    found = _below(alpha) + _below(beta) + 1e-14 * (1.0 + _below(alpha))  # beta may be above 1/2
    return _squared(min(found, 2.0 * _normal_at(epsilon)))


def laplace_mu_squared(scale: Fraction, l1: Fraction, linf: Fraction) -> Fraction:
    """The mu**2 of a vector of discrete Laplace noise, sensitivities in steps."""
    moves = concentrated(Fraction(math.ceil(l1)), Fraction(math.ceil(linf)))
    counts = {move: moves.count(move) for move in dict.fromkeys(moves)}
    one = {move: _squared(_laplace_mu(1 / scale, int(move))) for move in counts}
    return sum((n * one[move] for move, n in counts.items()), Fraction(0))


def discrete_gaussian_mu_squared(sigma_squared: Fraction, l2_squared: Fraction) -> Fraction:
    """The mu**2 of a vector of discrete Gaussian noise, sensitivities in steps."""
    return l2_squared * _unit(sigma_squared)


def largest_mu_squared(epsilon: Fraction, log_delta: float, digits: int) -> Fraction:
    """The largest mu**2 that implies (epsilon, delta), rounded down to this many digits.

    Dong, Roth and Su 2022, Corollary 3.3; Balle and Wang 2018, Theorem 8.
    """
    price = float_down(epsilon)
    mu = largest_shift(price, log_delta) * (1.0 - 1e-9)
    while log_delta_normal(mu, price) > log_delta:  # rounding in the search
        mu *= 1.0 - 1e-9
    return digits_down(Fraction(mu) ** 2, digits)


def _squared(mu: float) -> Fraction:
    return digits_up(Fraction(mu * _INFLATE) ** 2, 14)


def _normal_at(epsilon: Fraction) -> float:
    """z(exp(e) / (1 + exp(e)))."""
    e = float(epsilon)
    return _centred(0.5 * math.tanh(0.5 * e), -e - math.log1p(math.exp(-e)))


def _laplace_mu(h: Fraction, steps: int) -> float:
    rate = float(h)
    q = math.exp(-rate)

    def side(j: int) -> float:
        inside = -math.expm1(-float(h * (j + 1))) - q * math.expm1(-float(h * j))
        return _centred(0.5 * inside / (1.0 + q), -float(h * (j + 1)) - math.log1p(q))

    return side((steps - 1) // 2) + side(steps // 2)


def _centred(x: float, log_tail: float) -> float:
    """z(1/2 + x), given also the logarithm of 1/2 - x; next to 0 by its series, rounded up."""
    y = math.sqrt(2.0 * math.pi) * x
    if y < 0.03:
        return y * (1.0 + y * y * (1.0 / 6.0 + 0.06 * y * y))
    if log_tail < -_LARGE:  # the tail is at most exp(-z**2 / 2) / 2
        return math.sqrt(2.0 * (-log_tail - math.log(2.0)))
    return _below(math.exp(log_tail))


def _below(tail: float) -> float:
    """-z(tail)."""
    return -NormalDist().inv_cdf(max(tail, 1e-300))


@lru_cache(maxsize=1024)
def _unit(sigma_squared: Fraction) -> Fraction:
    """mu**2 of discrete Gaussian noise moved by 1."""
    smoothed = Fraction(math.ceil((33.0 + math.log(float(sigma_squared)) / 2.0) * 53), 1024)
    found: Fraction | None = None
    if sigma_squared > smoothed:
        # 2 pi**2 s**2 >= 33 + ln(sigma), so 6 t < 2**-43 / sigma
        found = (1 + Fraction(1, 1 << 42)) / (sigma_squared - smoothed)
    if sigma_squared <= _BY_CORNERS:
        by_corners = _squared(_largest_step(float(sigma_squared)))
        found = by_corners if found is None else min(found, by_corners)
    assert found is not None
    return digits_up(found, 14)


def _largest_step(variance: float) -> float:
    """The largest z(F(j)) - z(F(j - 1)) over j >= 0; it is the same for -j."""
    last = math.ceil(20.0 * variance) + 40
    logs = _log_tails(variance, last)
    z = _normal_quantiles(logs[:-1])
    steps = np.diff(z, prepend=-z[0])
    c = (2 * last + 1) / (2.0 * variance)
    double = 2.0 * -float(logs[-1])
    lower = double - 2.0 * math.log(math.sqrt(2.0 * math.pi) * (math.sqrt(double) + 1.0))
    beyond = (c + math.exp(-c)) / math.sqrt(lower)
    return max(float(steps.max()), beyond) * (1.0 + 1e-10)


def _log_tails(variance: float, last: int) -> NDArray[np.float64]:
    """ln P(X > j) for j from 0 to last - 1."""
    half = 0.5 / variance
    over = [1.0]  # P(X > j) / P(X = j + 1)
    for j in range(last, 0, -1):
        over.append(1.0 + over[-1] * math.exp(-(2 * j + 1) * half))
    next_ones = np.arange(1, last + 1, dtype=np.float64)
    tails = np.log(np.array(over[:0:-1])) - next_ones**2 * half
    return np.asarray(tails - math.log(1.0 + 2.0 * over[-1] * math.exp(-half)))


def _normal_quantiles(log_tails: NDArray[np.float64]) -> NDArray[np.float64]:
    """z >= 0 with ln P(Z > z) = log_tails, by Newton's method; the logarithm is concave."""
    z = np.sqrt(np.maximum(0.0, -2.0 * (log_tails + math.log(2.0))))
    for _ in range(12):
        ratio = mills_of(z)
        excess = np.log(ratio) - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi) - log_tails
        moved = z + ratio * excess
        if np.all(np.abs(moved - z) <= 1e-13 * (1.0 + z)):
            return np.asarray(moved)
        z = np.maximum(moved, 0.0)
    return z
