"""Tails of discrete Gaussian noise: the least whole number that is exceeded rarely enough.

Floats find it almost always: it is accepted only where their error cannot matter. Else 60 digits
decide, P(|X| > a) = 2 S(a) / N with S(a) = sum(exp(-k**2 / (2 sigma**2)), k > a) and N the sum
over all integers:

*From sigma = 16 on* by the formula of Euler and Maclaurin at midpoints. With u = (a + 1/2) / sigma,
Mills' ratio M and the Hermite polynomials He,

    S(a) exp(u**2 / 2) = sigma M(u) + sum(c_j sigma**(1 - 2 j) He_(2 j - 1)(u), j = 1 .. m) + R,

where c_j = B_2j(1/2) / (2 j)!, and |R| <= 4 (2 pi sigma)**(-2 m) sigma sqrt((2 m)! pi) 1.1
exp(u**2 / 4): periodic Bernoulli functions are at most 4 (2 m)! (2 pi)**(-2 m), and |He_n(x)| <=
1.1 sqrt(n!) exp(x**2 / 4) (Cramer). N is sqrt(2 pi) sigma, but for a factor of 1 + 3 exp(-2 pi**2
sigma**2) at most (Poisson summation).

*Below* by adding up the terms.

A tie cannot be distinguished from an error of the last digits; then a is taken to be too small.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

__all__ = ["least_covering"]

_SERIES: Final = 512.0
"""Up to this sigma floats add up the terms."""
_SMOOTH: Final = 16
"""From this sigma on digits do not."""
_SURE: Final = Decimal("1e-40")
"""The relative difference by which two probabilities must differ to be distinguished."""
_DEEP: Final = Context(prec=90, Emin=-(10**9), Emax=10**9)
"""Thirty digits are for cancellation."""
_PI: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534"
)


@lru_cache(maxsize=1024)
def least_covering(sigma_squared: Fraction, miss: Decimal) -> int:
    """The least a >= 0 with P(|X| > a) <= miss, a probability between 0 and 1."""
    low, high = _by_floats(sigma_squared, float(miss))
    if low == high:
        return low
    step = 1
    while low > 0 and _is_covering(sigma_squared, low - 1, miss):
        low, high, step = max(0, low - step), low - 1, 2 * step
    step = 1
    while not _is_covering(sigma_squared, high, miss):
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        if _is_covering(sigma_squared, middle, miss):
            high = middle
        else:
            low = middle + 1
    return high


def _by_floats(sigma_squared: Fraction, miss: float) -> tuple[int, int]:
    """Two numbers that are the same where it is certain, else about right."""
    sigma = math.sqrt(sigma_squared)
    normal = -NormalDist().inv_cdf(max(miss / 2, 1e-300))
    if sigma <= _SERIES and miss > 1e-290:
        reach = math.ceil(sigma * (normal + 9.0)) + 2
        k = np.arange(1, reach + 1, dtype=np.float64)
        terms = np.exp(-(k * k) * float(1 / (2 * sigma_squared)))
        tails = np.append(np.cumsum(terms[::-1])[::-1], 0.0)  # tails[a] = sum over k > a
        tails *= 2.0 / (1.0 + 2.0 * tails[0])
        low, high = (int(np.count_nonzero(tails * s > miss)) for s in (1.0 - 1e-11, 1.0 + 1e-11))
        return low, high
    edge = sigma * normal - normal / (24.0 * sigma) - 0.5
    error = 1e-5 + abs(edge) * 2.0**-42 if miss > 1e-290 else 1.0 + abs(edge) * 2.0**-42
    return max(0, math.ceil(edge - error)), max(0, math.ceil(edge + error))


def _is_covering(sigma_squared: Fraction, a: int, miss: Decimal) -> bool:
    """Whether P(|X| > a) <= miss for certain."""
    with localcontext(_DEEP):
        if sigma_squared < _SMOOTH**2:
            return _tail_by_terms(sigma_squared, a) <= miss * (1 - _SURE)
        return _tail_by_midpoints(sigma_squared, a) <= miss * (1 - _SURE)


def _tail_by_terms(sigma_squared: Fraction, a: int) -> Decimal:
    half = Decimal(sigma_squared.denominator) / (2 * Decimal(sigma_squared.numerator))
    reach = math.isqrt(math.ceil(500 * sigma_squared)) + 2  # exp(-250) of the first term
    inside = sum(((-half * k * k).exp() for k in range(1, min(a, reach) + 1)), Decimal(0))
    outside = sum(((-half * k * k).exp() for k in range(a + 1, a + reach + 1)), Decimal(0))
    return 2 * outside / (1 + 2 * (inside + outside))


def _tail_by_midpoints(sigma_squared: Fraction, a: int) -> Decimal:
    """P(|X| > a), raised by what the last term may be off by."""
    sigma = (Decimal(sigma_squared.numerator) / Decimal(sigma_squared.denominator)).sqrt()
    u = (Decimal(a) + Decimal("0.5")) / sigma
    total, power = sigma * _mills(u), sigma
    before, here = Decimal(1), u  # He_(2 j - 2), He_(2 j - 1)
    rest = total
    for j, c in enumerate(_coefficients(), start=1):
        power /= sigma * sigma
        total += c * power * here
        n = 2 * j
        rest = Decimal(math.factorial(n) * 4).sqrt() * 4 * sigma / (2 * _PI * sigma) ** n
        rest *= (u * u / 4).exp()
        if rest < total * _SURE / 1000:
            break
        before = u * here - (n - 1) * before
        before, here = here, before
        before, here = here, u * here - n * before
    return 2 * (total + rest) * (-u * u / 2).exp() / ((2 * _PI).sqrt() * sigma)


@lru_cache(maxsize=1)
def _coefficients() -> tuple[Decimal, ...]:
    """B_2j(1/2) / (2 j)!, j from 1: those of x / (2 sinh(x / 2))."""
    found = [Fraction(1)]
    for j in range(1, 61):
        terms = (
            found[i] / (4 ** (j - i) * math.factorial(2 * (j - i) + 1)) for i in range(len(found))
        )
        found.append(-sum(terms, Fraction(0)))
    return tuple(_DEEP.divide(Decimal(c.numerator), Decimal(c.denominator)) for c in found[1:])


def _mills(u: Decimal) -> Decimal:
    """P(Z > u) over the density there, for u > 0, within a relative 1e-55 or above.

    Small u by the series of the integral from 0 to u, others by Laplace's continued fraction, whose
    convergents are above and below in turn.
    """
    if u < 5:
        term = total = u
        k = 1
        while term > total * Decimal("1e-90"):
            k += 2
            term *= u * u / k
            total += term
        return (_PI / 2).sqrt() * (u * u / 2).exp() - total
    terms = 2 * int(Decimal(4000) / (u * u)) + 40  # an even number ends above
    value = u
    for k in range(terms, 0, -1):
        value = u + k / value
    return 1 / value
