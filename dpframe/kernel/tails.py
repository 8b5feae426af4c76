"""Lower and upper bounds for tails of normal and discrete Gaussian noise, equal to 30 digits.

All numbers are decimals of 60 digits. They are never combined by operators, which round to fewer.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from math import factorial, log, sqrt
from statistics import NormalDist
from typing import Final, TypeAlias

Bracket: TypeAlias = tuple[Decimal, Decimal]
"""A number that is not known lies between these two."""

D: Final = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
PI: Final = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
ONE, TWO, HALF = Decimal(1), Decimal(2), Decimal("0.5")
LESS, MORE = D.subtract(ONE, Decimal("1e-35")), D.add(ONE, Decimal("1e-35"))
"""More than a few dozen operations with 60 digits are off by, where 20 of these cancel."""
ROOT: Final = D.sqrt(D.multiply(TWO, PI))
"""The square root of 2 pi."""
LEAST: Final = Decimal("1e-1000")
_UNIT: Final = 1 << 200
_SQUARE: Final = _UNIT * _UNIT
_TERMS: Final = 16
_NOTHING: Final = Decimal("1e-45")
_SMOOTH: Final = 256
"""From this variance on sums are near enough to integrals."""


def decimal_of(value: Fraction) -> Decimal:
    """A fraction to 60 digits."""
    return D.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_of(value: Fraction) -> Decimal:
    """exp of a fraction that is not above 10**6, to more than 50 digits."""
    if value > 10**6:
        raise OverflowError
    return D.exp(_long(value))


def _long(value: Fraction) -> Decimal:
    return _LONG.divide(Decimal(value.numerator), Decimal(value.denominator))


_LONG: Final = Context(prec=90, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)


def fraction_up(value: Decimal) -> Fraction:
    """A decimal as a short fraction that is not below it. Below 1e-1000 it is that: fractions of
    very small numbers take all memory.
    """
    return Fraction(_UP.plus(max(value, LEAST)))


_UP: Final = Context(prec=30, rounding="ROUND_CEILING", Emin=MIN_EMIN, Emax=MAX_EMAX)


def mills(x: Decimal) -> Bracket:
    """Mills' ratio of the normal law: P(N > x) over its density at x.

    From 4 on it is the continued fraction 1 / (x + 1 / (x + 2 / (x + ...))) (Laplace), whose
    convergents lie on both sides in turns. From 0 to 4 it is sqrt(pi / 2) exp(x**2 / 2) less the
    sum of x**(2 k + 1) / (1 3 5 ... (2 k + 1)).
    """
    grown = D.multiply(ROOT, D.exp(D.divide(D.multiply(x, x), TWO))) if x < 4 else ONE
    if x < 0:
        small, large = mills(D.minus(x))
        return D.multiply(D.subtract(grown, large), LESS), D.multiply(
            D.subtract(grown, small), MORE
        )
    at = int(D.multiply(x, Decimal(_UNIT)))  # in whole numbers of units, which are quicker
    if x >= 4:
        n = int(2000 / (x * x)) + 16
        low, high = at, at + (n + 1) * _SQUARE // at  # of the rest of the fraction
        for k in range(n, 0, -1):
            low, high = at + k * _SQUARE // low, at + k * _SQUARE // high
        one, other = sorted((_SQUARE // low, _SQUARE // high))
        return D.multiply(_of_units(one), LESS), D.multiply(_of_units(other), MORE)
    square = at * at // _UNIT
    term, total, k = at, at, 1
    while term > 1 << 30 or k * _UNIT < 2 * square:
        k += 2
        term = term * square // (k * _UNIT)
        total += term
    found = D.subtract(D.divide(grown, TWO), _of_units(total))
    return D.multiply(found, LESS), D.multiply(found, MORE)


def _of_units(number: int) -> Decimal:
    return D.divide(Decimal(number), Decimal(_UNIT))


def density(x: Decimal) -> Decimal:
    """The density of the normal law."""
    return D.divide(D.exp(D.divide(D.multiply(x, x), Decimal(-2))), ROOT)


def quantile_up(log_tail: Decimal) -> Decimal:
    """A z that is not below the one with ln P(N > z) = `log_tail`, and equal to 20 digits.

    Proof: ln P(N > z) is concave, so its tangent lies above it. Newton's step from any point leads
    to where the tangent reaches the value, which is not before the function does. The slope is -1
    over Mills' ratio.
    """
    near = float(log_tail)
    rough = -NormalDist().inv_cdf(_exp(near)) if near > -600 else sqrt(-2 * (near + log(2)))
    z = Decimal(rough)
    for _ in range(1 if near > -600 else 3):
        low, high = mills(z)
        above = D.subtract(D.add(D.ln(density(z)), D.ln(high)), log_tail)
        z = D.add(z, max(D.multiply(above, low), D.multiply(above, high)))
    return D.add(z, Decimal("1e-45"))


def _exp(near: float) -> float:
    return float(D.exp(Decimal(near)))


def gaussian_sum(sigma_squared: Fraction, least: int) -> Bracket:
    """The sum of exp(-x**2 / (2 sigma**2)) over whole x >= `least`, times exp(least**2 / (2
    sigma**2)); `least` is above 0.

    Narrow noise is added up term by term, until what is left is at most a geometric series. Wide
    noise follows from the formula of Euler and Maclaurin for sums of values in the middles of cells
    (Olver et al., NIST Handbook of Mathematical Functions, 2.10.1, with B(1/2)). Let y be (least -
    1/2) / sigma, M Mills' ratio, and He Hermite's polynomials. Let c be the coefficients of u / (2
    sinh(u / 2)) by powers of u**2, and K = 16. The sum is exp(-y**2 / 2) times

        sigma M(y) + sum(c(k) He(2 k - 1)(y) / sigma**(2 k - 1), k <= K).

    It is off by at most 2.01 / (2 pi)**(2 K) times the integral of the absolute derivative of order
    2 K. By Cramer's inequality |He(n)(t)| is at most 1.1 sqrt(n!) exp(t**2 / 4) (Abramowitz and
    Stegun 22.14.17). So that is at most sqrt((2 K)!) exp(y**2 / 4) / (2 pi sigma)**(2 K - 1), next
    to the formula above. From 11 on, beyond all its zeros, He(32)(t) exp(-t**2 / 2) has the
    integral He(31)(y) exp(-y**2 / 2), which is at most y**31 exp(-y**2 / 2). So there it is at most
    (y / (2 pi sigma))**(2 K - 1).
    """
    if sigma_squared >= _SMOOTH:
        sigma = D.sqrt(decimal_of(sigma_squared))
        y = D.divide(Decimal(2 * least - 1), D.multiply(TWO, sigma))
        if y < 11 or 5 * y <= 3 * sigma:
            # exp(least**2 / (2 sigma**2)) / exp(y**2 / 2)
            factor = exp_of(Fraction(4 * least - 1, 8) / sigma_squared)
            low, high = _near_integral(sigma, y)
            return D.multiply(D.multiply(low, factor), LESS), D.multiply(
                D.multiply(high, factor), MORE
            )
    half = 1 / (2 * sigma_squared)
    term, factor, ratio = ONE, exp_of(-half * (2 * least + 1)), exp_of(-half * 2)
    total = Decimal(0)
    while term > _NOTHING:
        total = D.add(total, term)
        term, factor = D.multiply(term, factor), D.multiply(factor, ratio)
    rest = D.divide(term, D.subtract(ONE, factor))
    return D.multiply(total, LESS), D.multiply(D.add(total, rest), MORE)


def _near_integral(sigma: Decimal, y: Decimal) -> Bracket:
    """The sum of Gaussian terms from y on, times exp(y**2 / 2); see `gaussian_sum`."""
    total, before, now, power = Decimal(0), ONE, y, sigma  # He(0), He(1)
    square = D.multiply(sigma, sigma)
    for k in range(1, _TERMS + 1):
        total = D.add(total, D.divide(D.multiply(_MIDDLES[k], now), power))
        power = D.multiply(power, square)
        for n in (2 * k - 1, 2 * k):
            before, now = now, D.subtract(D.multiply(y, now), D.multiply(Decimal(n), before))
    wide = D.multiply(D.multiply(TWO, PI), sigma)
    if y < 11:
        error = D.multiply(_CRAMER, D.exp(D.divide(D.multiply(y, y), Decimal(4))))
        error = D.divide(error, D.power(wide, 2 * _TERMS - 1))
    else:
        error = D.power(D.divide(y, wide), 2 * _TERMS - 1)
    low, high = mills(y)
    middle = D.add(D.multiply(sigma, low), total)
    return D.subtract(middle, error), D.add(D.add(D.multiply(sigma, high), total), error)


def _middles() -> tuple[Decimal, ...]:
    """The coefficients of u / (2 sinh(u / 2)) by powers of u**2."""
    found = [Fraction(1)]
    for n in range(1, _TERMS + 1):
        terms = (found[n - k] / (4**k * factorial(2 * k + 1)) for k in range(1, n + 1))
        found.append(-sum(terms, Fraction(0)))
    return tuple(map(decimal_of, found))


_MIDDLES: Final = _middles()
_CRAMER: Final = D.sqrt(Decimal(factorial(2 * _TERMS)))


def gaussian_whole(sigma_squared: Fraction) -> Bracket:
    """The sum of exp(-x**2 / (2 sigma**2)) over all whole x.

    From sigma = 3 on it is sqrt(2 pi) sigma, and more by a factor of at most 1 + 2.01 exp(-2 pi**2
    sigma**2) (Poisson summation).
    """
    if sigma_squared >= 9:
        whole = D.multiply(ROOT, D.sqrt(decimal_of(sigma_squared)))
        return D.multiply(whole, LESS), D.multiply(whole, MORE)
    first = exp_of(-1 / (2 * sigma_squared))
    low, high = gaussian_sum(sigma_squared, 1)
    both = D.multiply(TWO, first)
    return D.multiply(D.add(ONE, D.multiply(both, low)), LESS), D.multiply(
        D.add(ONE, D.multiply(both, high)), MORE
    )


def gaussian_tail(sigma_squared: Fraction, least: int) -> Bracket:
    """The probability that discrete Gaussian noise is at least this."""
    if least < 1:
        low, high = gaussian_tail(sigma_squared, 1 - least)
        return D.subtract(ONE, high), D.subtract(ONE, low)
    first = exp_of(-Fraction(least * least) / (2 * sigma_squared))
    low, high = gaussian_sum(sigma_squared, least)
    small, large = gaussian_whole(sigma_squared)
    one = D.multiply(D.divide(D.multiply(first, low), large), LESS)
    return one, D.multiply(D.divide(D.multiply(first, high), small), MORE)
