"""The hull of an arch and its mirror image, as `dpframe.samplers.hull` has it, cut at counts.

At a count of a, of -1 to 1, the pair (x, y) of a sum and a sum of squares is uniform in what
remains of the hull, a section. With p = (1 + a) / 2 and q = (1 - a) / 2 a section has

- at x the length 2 - 2 max(0, |x| - p)**2 / q - 2 max(0, |x| - q)**2 / p,
- at y the reach |x| <= p + sqrt(q (1 - y) / 2) for y >= a, and q + sqrt(p (1 + y) / 2) below,
- the area 10 / 3 - 2 a**2 / 3,

by solving the inequalities for y, for x, and by integrating lengths. (At y >= a the other bound on
x is at least 1: q (1 - y) / 2 <= q**2 just where p (1 + y) / 2 >= p**2.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
_Polynomial: TypeAlias = list[Fraction]

_LEAST: Final = 1e-300


def area(a: Floats) -> Floats:
    """The area of a section, over that of the square [-1, 1]**2."""
    return np.asarray((5.0 - a * a) / 6.0)


def ends_at(a: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest y of a section at each x."""
    p, q, far = (1.0 + a) / 2.0, (1.0 - a) / 2.0, np.abs(x)
    high = 1.0 - 2.0 * np.maximum(far - p, 0.0) ** 2 / np.maximum(q, _LEAST)
    low = 2.0 * np.maximum(far - q, 0.0) ** 2 / np.maximum(p, _LEAST) - 1.0
    return low, np.maximum(low, high)


def reach_at(a: Floats, y: Floats) -> Floats:
    """The greatest x of a section at each y."""
    p, q = (1.0 + a) / 2.0, (1.0 - a) / 2.0
    upper = p + np.sqrt(np.maximum(q * (1.0 - y) / 2.0, 0.0))
    lower = q + np.sqrt(np.maximum(p * (1.0 + y) / 2.0, 0.0))
    return np.where(y >= a, upper, lower)


def sum_above(a: Floats, u: Floats) -> Floats:
    """P(x > u) in a section, for u of 0 to 1."""
    p, q = (1.0 + a) / 2.0, (1.0 - a) / 2.0
    cut = _cut(p, q, u) + _cut(q, p, u)
    return np.asarray((2.0 * (1.0 - u) - cut) / (4.0 * area(a)))


def _cut(p: Floats, q: Floats, u: Floats) -> Floats:
    """The integral of 2 max(0, x - p)**2 / q from u to 1."""
    from_p = q**3 - np.maximum(u - p, 0.0) ** 3
    return np.asarray(2.0 / 3.0 * from_p / np.maximum(q, _LEAST))


def square_above(a: Floats, u: Floats) -> Floats:
    """P(y > u) in a section, for u of -1 to 1."""
    p, q = (1.0 + a) / 2.0, (1.0 - a) / 2.0
    high = np.maximum(u, a)
    upper = p * (1.0 - high) + np.sqrt(q / 2.0) * (2.0 / 3.0) * (1.0 - high) ** 1.5
    low = np.minimum(u, a)
    powers = (1.0 + a) ** 1.5 - (1.0 + low) ** 1.5
    lower = q * (a - low) + np.sqrt(p / 2.0) * (2.0 / 3.0) * powers
    return np.asarray((upper + lower) / (2.0 * area(a)))


def moment_of_sum(a: Floats, power: int) -> Floats:
    """The mean of x**power in a section, for an even power."""
    return np.asarray(np.polynomial.polynomial.polyval(a, _of_sums(power)) / (4.0 * area(a)))


def moment_of_square(a: Floats, power: int) -> Floats:
    """The mean of y**power in a section."""
    return np.asarray(np.polynomial.polynomial.polyval(a, _of_squares(power)) / (4.0 * area(a)))


@lru_cache(maxsize=64)
def second_moments(arches: int) -> tuple[Fraction, Fraction, Fraction]:
    """The means of a**2, x**2 and y**2, with x and y of one of this many arches on one count, in
    the whole: counts are as likely as the product of the areas of their sections is large.
    """
    areas = _sums_to(0)
    others = _power(areas, arches - 1)
    whole = _integral(_times(others, areas))
    squares = _integral(_times(_times(others, areas), [Fraction(0), Fraction(0), Fraction(1)]))
    sums = _integral(_times(others, _sums_to(2)))
    both = _integral(_times(others, _squares_to(2)))
    return squares / whole, sums / whole, both / whole


@lru_cache(maxsize=16)
def _of_sums(power: int) -> Floats:
    return np.array([float(factor) for factor in _sums_to(power)])


@lru_cache(maxsize=16)
def _of_squares(power: int) -> Floats:
    return np.array([float(factor) for factor in _squares_to(power)])


def _sums_to(power: int) -> _Polynomial:
    """The integral of x**power over a section, of a: 4 / (power + 1), less that of x**power 2
    max(0, |x| - p)**2 / q, which is 4 q**2 times that of (p + q u)**power u**2 over u from 0 to 1,
    and the same with p and q exchanged.
    """
    found: _Polynomial = [Fraction(4, power + 1)]
    for p, q in (_HALVES, _HALVES[::-1]):
        for j in range(power + 1):
            term = _times(_power(p, power - j), _power(q, j + 2))
            found = _plus(found, term, Fraction(-4 * math.comb(power, j), j + 3))
    return found


def _squares_to(power: int) -> _Polynomial:
    """The integral of y**power over a section, of a: with y = 1 - 2 q v**2 above a, that of (1 - 2
    q v**2)**power 8 q v (p + q v) over v from 0 to 1, and the mirror image of it.
    """
    found: _Polynomial = [Fraction(0)]
    for (p, q), sign in ((_HALVES, 1), (_HALVES[::-1], (-1) ** power)):
        for j in range(power + 1):
            factor = sign * math.comb(power, j) * (-2) ** j * 8
            straight, curved = _times(p, _power(q, j + 1)), _power(q, j + 2)
            found = _plus(found, straight, Fraction(factor, 2 * j + 2))
            found = _plus(found, curved, Fraction(factor, 2 * j + 3))
    return found


_HALVES: Final = (
    [Fraction(1, 2), Fraction(1, 2)],
    [Fraction(1, 2), Fraction(-1, 2)],
)
"""p and q, of a."""


def _times(one: Sequence[Fraction], other: Sequence[Fraction]) -> _Polynomial:
    found = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            found[i + j] += left * right
    return found


def _plus(one: Sequence[Fraction], other: Sequence[Fraction], factor: Fraction) -> _Polynomial:
    found = [*one, *[Fraction(0)] * (len(other) - len(one))]
    for i, value in enumerate(other):
        found[i] += factor * value
    return found


def _power(polynomial: Sequence[Fraction], exponent: int) -> _Polynomial:
    found: _Polynomial = [Fraction(1)]
    for _ in range(exponent):
        found = _times(found, polynomial)
    return found


def _integral(polynomial: Sequence[Fraction]) -> Fraction:
    """From -1 to 1."""
    terms = (2 * value / (i + 1) for i, value in enumerate(polynomial) if i % 2 == 0)
    return sum(terms, Fraction(0))
