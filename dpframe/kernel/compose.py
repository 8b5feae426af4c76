"""Upper bounds on the delta of costs that are no pure epsilon.

Orders and other points at which bounds are evaluated are floats. They hold at any point, so these
need not be right.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpframe.kernel.tails import (
    LESS,
    MORE,
    ONE,
    TWO,
    D,
    decimal_of,
    density,
    exp_of,
    fraction_up,
    gaussian_sum,
    gaussian_tail,
    gaussian_whole,
    mills,
)

_CEILING: Final = Context(D.prec, ROUND_CEILING, D.Emin, D.Emax)
_FLOOR: Final = Context(D.prec, ROUND_FLOOR, D.Emin, D.Emax)
_LARGEST: Final = Fraction(10**4)
"""What keeps this epsilon keeps any larger one."""
_WIDEST: Final = 2 * 2048**2
"""From this variance on smoothing gives no more than the exact delta."""
_TINY: Final = Decimal("1e-12")
_LARGE_RIPPLE: Final = Decimal("1.1")
"""Beyond, other bounds are better."""


@lru_cache(maxsize=1024)
def gaussian_delta(
    sigma_squared: Fraction, l0: int, l2_squared: int, linf: int, epsilon: Fraction
) -> Fraction:
    """A delta of discrete Gaussian noise on whole numbers that one individual moves so: at most
    `l0` of them, each by at most `linf`.

    It is the least of four bounds. L(z) is the privacy loss, and delta is E[(1 - exp(epsilon -
    L))+]. Numbers that do not move reveal nothing, so there are at most `l2_squared` to look at.

    *One number*, that moves by d: see `_on_integers`. Noise is log-concave, so what distinguishes
    best is whether z is at most some c. With F the distribution function, delta is the largest F(c)
    - exp(epsilon) F(c - d) over c, which grows with d.

    *Numbers that move by 1 each*, n of them: L = (n - 2 S) / (2 sigma**2) rests on the sum S of
    their noise alone. One number with the variance n sigma**2 that moves by n has the same loss at
    S. So it is enough to compare the laws of S. Say that P(S = s) for k numbers is at most C times
    the discrete Gaussian law of variance k sigma**2. One more number makes that exp(-s**2 / (2 (k +
    1) sigma**2)) times a sum of a Gaussian function of variance w = sigma**2 k / (k + 1) over
    shifted whole numbers. That sum is within 1 +- t of its mean, t = 2 sum(exp(-2 pi**2 w j**2), j
    >= 1) (Poisson summation), so C grows by (1 + t) / (1 - t) at most. Fewer numbers reveal less,
    as more follow from them and from noise.

    *Many numbers, by smoothing*: let r(x) = exp(-x**2 / (2 s**2)), and round y to the whole number
    z with probability r(z - y) over the sum of r(x - y) for all whole x. That sum is s sqrt(2 pi)
    times 1 +- t, t = 2 sum(exp(-2 pi**2 s**2 k**2), k >= 1) (Poisson summation; Micciancio and
    Regev 2007). So N(m, sigma**2 - s**2) rounded has at z the density of N(m, sigma**2), times a
    factor from 1 / (1 + t) to 1 / (1 - t). Discrete noise around a whole m has that density times
    a factor from 1 / (1 + t) to 1. So the two differ by at most exp(K), K = ln((1 + t) / (1 - t)),
    for each number that moves. Rounding is work on what has noise. So where continuous noise of
    variance sigma**2 - s**2 has delta' at epsilon - 2 l0 K, discrete noise has exp(l0 K) delta' at
    epsilon: from p <= exp(l0 K) p' and q >= exp(-l0 K) q' follows (p - exp(epsilon) q)+ <= exp(l0
    K) (p' - exp(epsilon - 2 l0 K) q')+. For continuous noise the L2 norm decides, and more of it
    reveals more (Balle and Wang 2018, Theorem 8).

    *Through rho* = l2**2 / (2 sigma**2) (Canonne, Kamath and Steinke 2020, Theorem 4).
    """
    epsilon, l0 = min(epsilon, _LARGEST), min(l0, l2_squared)
    if not l2_squared:
        return Fraction(0)
    if l0 == 1 and sigma_squared < _WIDEST:  # this is delta itself
        step = math.isqrt(l2_squared - 1) + 1  # rounded up
        return fraction_up(_on_integers(sigma_squared, step, epsilon))
    found = [ONE]
    if l0 > 1 and linf <= 1 and l0 * sigma_squared < _WIDEST:
        ripple = _ripple(sigma_squared, l0)
        if ripple is not None:
            found.append(D.multiply(ripple, _on_integers(l0 * sigma_squared, l0, epsilon)))
            if ripple < 1 + _TINY:
                return fraction_up(min(found))
    found.append(_smooth_delta(sigma_squared, l0, l2_squared, epsilon))
    if (
        min(found) == 1 or -16 * min(found).adjusted() >= sigma_squared
    ):  # else smoothing makes no difference
        found.append(_of_rho(l2_squared / (2 * sigma_squared), epsilon))
    return fraction_up(min(found))


def _on_integers(sigma_squared: Fraction, step: int, epsilon: Fraction) -> Decimal:
    """For one number that moves by `step`: P(z >= m) - exp(epsilon) P(z >= m + step), with m the
    first whole number at which the loss is above epsilon (Canonne, Kamath and Steinke 2020, Theorem
    7). A common factor of both tails is taken out, so that nothing becomes too small.
    """
    first = math.floor(epsilon * sigma_squared / step - Fraction(step, 2)) + 1
    if first < 1:
        beyond = D.multiply(
            D.exp(decimal_of(epsilon)), gaussian_tail(sigma_squared, first + step)[0]
        )
        found = D.subtract(gaussian_tail(sigma_squared, first)[1], D.multiply(beyond, LESS))
        return D.multiply(found, MORE)
    _, high = gaussian_sum(sigma_squared, first)
    low, _ = gaussian_sum(sigma_squared, first + step)
    grown = exp_of(epsilon - Fraction(step * (2 * first + step)) / (2 * sigma_squared))
    least, _ = gaussian_whole(sigma_squared)
    gap = D.subtract(high, D.multiply(low, grown))
    peak = exp_of(-Fraction(first * first) / (2 * sigma_squared))
    return D.multiply(D.divide(D.multiply(peak, gap), least), MORE)


def _ripple(sigma_squared: Fraction, l0: int) -> Decimal | None:
    """The product of (1 + t) / (1 - t) over the numbers but the first, where it is small. A later
    number has a smaller t than an earlier one.
    """
    if sigma_squared * 3 < 1:
        return None
    found, last = ONE, min(l0 - 1, 64)
    for k in range(1, last + 1):
        # the sum is at most 2.01 times its first term, as pi**2 sigma**2 is above 3
        power = Fraction(2 * 986960440, 10**8) * sigma_squared * k / (k + 1)
        t = D.multiply(Decimal("2.01"), exp_of(-power))
        many = l0 - k if t < Decimal("1e-22") or k == last else 1
        grown = D.divide(D.add(ONE, t), D.subtract(ONE, t))
        found = D.multiply(found, D.power(grown, many))
        if many > 1:
            break
    return D.multiply(found, MORE) if found < _LARGE_RIPPLE else None


def smoothing(l0: int, factor: float) -> tuple[Fraction, Decimal]:
    """An s**2 for which l0 K is at most about `factor`, and l0 K for it; see `gaussian_delta`."""
    square = max(0.5, math.log(4.3 * l0 / factor) / (2 * math.pi**2))
    s_squared = Fraction(square)
    power = Fraction(2 * 986960440, 10**8) * s_squared
    t = D.multiply(Decimal("2.001"), exp_of(-power))
    log = D.ln(D.divide(D.add(ONE, t), D.subtract(ONE, t)))
    return s_squared, D.multiply(D.multiply(log, Decimal(l0)), MORE)


def _smooth_delta(sigma_squared: Fraction, l0: int, l2_squared: int, epsilon: Fraction) -> Decimal:
    if epsilon <= 0:
        return ONE
    near = min(1.0, float(epsilon)) or 1e-300
    s_squared, log_factor = smoothing(l0, 2.0**-31 * near)
    if s_squared >= sigma_squared:
        return ONE
    lower = epsilon - 2 * Fraction(log_factor)
    if lower <= 0:
        return ONE
    distance = l2_squared / (sigma_squared - s_squared)
    return D.multiply(D.multiply(normal_delta(distance, lower), D.exp(log_factor)), MORE)


def normal_delta(d_squared: Fraction, epsilon: Fraction) -> Decimal:
    """The delta of continuous Gaussian noise of variance 1 on a vector that moves by d.

    Q(a) - exp(epsilon) Q(a + d) with a = epsilon / d - d / 2 and Q the normal tail (Balle and Wang
    2018, Theorem 8), which is the density at a times M(a) - M(a + d), with Mills' ratio M. M is
    convex and has the slope x M(x) - 1, so that is at most d (1 - a M(a)). Delta grows with d and
    falls with epsilon, so d is rounded up, and then a down: as if epsilon were less.
    """
    d = _CEILING.multiply(D.sqrt(decimal_of(d_squared)), MORE)
    half = _CEILING.divide(d, TWO)
    a = _FLOOR.subtract(_FLOOR.divide(_FLOOR.multiply(decimal_of(epsilon), LESS), d), half)
    if a < -5:
        return ONE
    here = mills(a)
    there = mills(_CEILING.add(a, d))
    steep = min(D.multiply(a, here[0]), D.multiply(a, here[1]))
    least = min(
        D.subtract(here[1], there[0]), D.multiply(D.multiply(d, D.subtract(ONE, steep)), MORE)
    )
    return D.multiply(D.multiply(least, density(a)), MORE)


@lru_cache(maxsize=256)
def rho_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """A delta of all that costs rho."""
    return fraction_up(min(ONE, _of_rho(rho, min(epsilon, _LARGEST))))


def _of_rho(rho: Fraction, epsilon: Fraction) -> Decimal:
    """exp((a - 1) (a rho - epsilon)) (1 - 1 / a)**a / (a - 1), for any a above 1 (Canonne, Kamath
    and Steinke 2020, Proposition 12). The logarithm is convex, with the derivative (2 a - 1) rho -
    epsilon + ln(1 - 1 / a).
    """
    rate, price = float(min(rho, Fraction(10**15))), float(epsilon)
    low, high = -36.0, 40.0  # ln(a - 1)
    for _ in range(48):
        middle = (low + high) / 2
        excess = math.exp(middle)
        if (2 * excess + 1) * rate - price - math.log1p(1 / excess) < 0:
            low = middle
        else:
            high = middle
    x = Fraction(math.exp(high))
    a = 1 + x
    power = x * (a * rho - epsilon)
    if power > 10**5:
        return ONE
    logs = D.multiply(decimal_of(a), D.ln(decimal_of(x / a)))
    found = D.divide(D.multiply(exp_of(power), D.exp(logs)), decimal_of(x))
    return D.multiply(found, MORE)
