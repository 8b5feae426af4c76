"""What purely private noise costs in rho: the least number that is true, not epsilon**2 / 2.

For a pair of output laws P and Q that look the same exchanged, let F(s) = E[exp((s - 1/2) L)]
over the loss L under P; F is even and F(1/2) = 1. The Renyi divergence of order a is ln F(a -
1/2) / (a - 1), and rho must be at least that over a, for every a > 1; with s = a - 1/2 it is the
slope of ln F, seen as a function of s**2, between 1/4 and s**2. Where ln F is concave in s**2,
slopes are largest at 1/4, and rho is the limit for a = 1, the Kullback-Leibler divergence E[L].

It is concave where all zeros of F are imaginary, because then F(s) = F(0) prod(1 + s**2 / y**2)
(Hadamard; F has order 1 and is even), a sum of concave functions of s**2 in logarithms.

*Randomised response*: F is cosh(e s) / cosh(e / 2) with imaginary zeros, and rho = e tanh(e / 2).
The same holds for any purely e-private mechanism, because that is the worst one (Kairouz, Oh and
Viswanath 2015).

*Discrete Laplace noise* with q = exp(-h), moved by D steps: F is (U_D(x) - q U_(D - 2)(x)) at x =
cosh(h s), but for a constant, U being Chebyshev's polynomials of the second kind. By their
recurrence that is 2 x U_(D - 1) - (1 + q) U_(D - 2), the characteristic polynomial of a symmetric
tridiagonal matrix, so its D zeros are real; none has |x| >= 1, where U_D > U_(D - 2). So s is
imaginary, and rho = h (D - (1 - q**D) / sinh(h)).

*k categories*: ln F = ln(cosh(e s) + c) + const with c = (k - 2) exp(-e / 2) / 2. Its derivative is
concave from 0 on as long as c <= 2, which also makes rho the Kullback-Leibler divergence,
e (exp(e) - 1) / (exp(e) + k - 1). For larger c the largest slope is sought.

(Harrison and Manurangsi 2026 prove the same values for Laplace noise and up to 6 categories.)

*Vectors* of discrete Laplace noise: coordinates are independent, so costs add up. rho is a convex
function g of the move D with g(0) = 0 and second differences 2 q**D g(1) <= 2 g(1). Hence the sum
of g(d_i) is largest where as many coordinates as possible move by the largest move and one by what
is left of L1; and g(D) <= D**2 g(1), so the sum is at most L2**2 g(1) as well.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import digits_up, dyadic_up
from dpframe.mechanisms.mechanism import DIGITS

_UP: Final = 1 + Fraction(1, 10**18)
"""More than 60 digits are off by, cancellation included."""
_ENOUGH: Final = 20
"""A rho of 2**20 steps leaves no noise; a larger one asks for no smaller scale."""
_SHORT: Final = 4
"""From this scale on moves of one step cost 1 / (2 scale**2): half a percent more, in few
digits."""
_INFLATE: Final = 1.0 + 2.0**-44


def pure_rho(epsilon: Fraction) -> Fraction:
    """Of any epsilon-private mechanism: epsilon tanh(epsilon / 2), rounded up."""
    if not epsilon:
        return Fraction(0)
    return min(_response(epsilon, 2), epsilon * epsilon / 2)


def response_rho(epsilon: Fraction, categories: int) -> Fraction:
    """The rho of one report by randomised response, rounded up."""
    worst = pure_rho(epsilon)
    if (categories - 2) * math.exp(-float(epsilon) / 2) <= 4 * (1 - 1e-12):
        return min(worst, _response(epsilon, categories))
    return min(worst, digits_up(Fraction(_largest_slope(float(epsilon), categories) * _INFLATE)))


def _response(epsilon: Fraction, categories: int) -> Fraction:
    """The mean loss, rounded up."""
    if epsilon > 10**6:
        return digits_up(epsilon)
    with localcontext(DIGITS):
        e = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        grown = e.exp()
        return _up(e * (grown - 1) / (grown + categories - 1))


def _largest_slope(e: float, categories: int) -> float:
    """An upper bound on (ln F(s) - ln F(1/2)) / (s**2 - 1/4), s > 1/2.

    On a grid of s, with the numerator, which grows, at the upper end of each cell and the
    denominator at its lower end. Next to 1/2 by the derivative, which grows too, and far out by
    ln F(s) - ln F(1/2) <= e (s - 1/2). Where bounds are above the values on the grid, again on a
    finer one.
    """
    c = 0.5 * (categories - 2) * math.exp(-0.5 * e)

    def log_f(s: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(e * s + np.log1p(2.0 * c * np.exp(-e * s) + np.exp(-2.0 * e * s)))

    start = float(log_f(np.array([0.5]))[0])

    def slopes(s: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        logs, squares = log_f(s) - start + 1e-14 * (1.0 + abs(start)), s * s - 0.25
        return logs[1:] / squares[:-1], float((logs / squares).max())

    near = 0.5 + 1e-5
    grid = 0.5 + np.geomspace(1e-5, 1e5, 801)
    ends = max(_derivative(e, c, near), e / (float(grid[-1]) + 0.5))
    bounds, reached = slopes(grid)
    above = np.flatnonzero(bounds > max(reached, ends))
    if not above.size:
        return ends
    low, high = float(grid[above[0]]) - 0.5, float(grid[above[-1] + 1]) - 0.5
    return max(ends, reached, float(slopes(0.5 + np.geomspace(low, high, 8001))[0].max()))


def _derivative(e: float, c: float, s: float) -> float:
    """Of ln F at s >= 1/2, which is at least that with respect to s**2."""
    falls = math.exp(-e * s)
    return e * (1.0 - falls * falls) / (1.0 + falls * falls + 2.0 * c * falls) * _INFLATE


def laplace_rho(
    scale: Fraction,  # In steps
    # `l1`, `l2_squared`, `linf`: the vector's sensitivity in steps; where a norm is not known L1
    # bounds it.
    l1: Fraction,
    l2_squared: Fraction | None = None,
    linf: Fraction | None = None,
) -> Fraction:
    """The rho of a vector of discrete Laplace noise of this scale, rounded up."""
    whole = math.ceil(l1)
    if not whole:
        return Fraction(0)
    most = whole if linf is None else max(1, min(whole, math.ceil(linf)))
    full, left = divmod(whole, most)
    if most == 1 and scale >= _SHORT:
        return whole / (2 * scale * scale)
    with localcontext(DIGITS):
        h = Decimal(scale.denominator) / Decimal(scale.numerator)
        concentrated = min(_up(full * _one(h, most) + _one(h, left)), whole / scale)
        if l2_squared is None or most == 1:
            return concentrated
        return min(concentrated, _up(_one(h, 1)) * l2_squared)


def _one(h: Decimal, steps: int) -> Decimal:
    """h (D - (1 - exp(-h D)) / sinh(h))."""
    if not steps or h > 10**5:  # of the largest loss nothing is missing that digits could hold
        return h * steps
    sinh = (h.exp() - (-h).exp()) / 2
    return h * (steps - (1 - (-h * steps).exp()) / sinh)


def _up(value: Decimal) -> Fraction:
    return digits_up(Fraction(value) * _UP)


def laplace_scale(
    l1: Fraction, l2_squared: Fraction | None, linf: Fraction | None, rho: Fraction
) -> Fraction:
    """The least scale, within a relative 2**-40, at which a vector costs rho at most."""
    if rho > 1 << 60:  # a mean of losses is at most the largest one, l1 / scale
        return dyadic_up(l1 / rho, 44)
    whole = math.ceil(l1)
    most = whole if linf is None else max(1, min(whole, math.ceil(linf)))
    full, left = divmod(whole, most)
    squared = None if l2_squared is None or most == 1 else float(l2_squared)

    def cost(log_h: float) -> float:
        h = math.exp(log_h)
        found = full * _rough(h, most, most) + _rough(h, left, most)
        return found if squared is None else min(found, squared * _rough(h, 1, most))

    target = float(min(rho, Fraction(whole << _ENOUGH)))
    at = math.log(target / whole + math.sqrt(2.0 * target / (full * most**2 + left**2)))
    for _ in range(60):  # the cost grows as a power between the first and the second
        found = cost(at)
        if abs(found - target) <= 1e-14 * target:
            break
        slope = (math.log(cost(at + 1e-3)) - math.log(found)) / 1e-3
        at += math.log(target / found) / max(0.3, slope)
    scale = dyadic_up(Fraction(math.exp(-at)) * (1 + Fraction(1, 1 << 42)), 44)
    while laplace_rho(scale, l1, l2_squared, linf) > rho:
        scale = dyadic_up(scale * (1 + Fraction(1, 1 << 40)), 44)
    return scale


def _rough(h: float, steps: int, most: int) -> float:
    """`_one` by floats, without cancellation: x - 1 + exp(-x) + (1 - exp(-x)) (1 - h / sinh(h))."""
    if most == 1 and h <= 1.0 / _SHORT:
        return steps * 0.5 * h * h
    x = h * steps
    if x > 1e-2:
        first = x + math.expm1(-x)
    else:
        first = (
            x * x * (0.5 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
        )
    if h > 1e-1:
        rest = 1.0 - h / math.sinh(h) if h < 700.0 else 1.0
    else:
        square = h * h
        rest = square * (1 / 6 - square * (7 / 360 - square * (31 / 15120 - square / 4762)))
    return first - math.expm1(-x) * rest
