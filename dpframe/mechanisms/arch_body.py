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

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "area",
    "ends_at",
    "moment_of_square",
    "moment_of_sum",
    "reach_at",
    "second_moments",
    "square_above",
    "sum_above",
]

Floats: TypeAlias = "NDArray[np.float64]"
_Polynomial: TypeAlias = list[Fraction]

_NODES, _WEIGHTS = (np.asarray(part) for part in np.polynomial.legendre.leggauss(8))
_UNIT: Final = (_NODES + 1.0) / 2.0
_LEAST: Final = 1e-300


def area(a: Floats) -> Floats:
    """Of a section, over that of the square [-1, 1]**2."""
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
    p, q = (1.0 + a) / 2.0, (1.0 - a) / 2.0
    whole = 4.0 / (power + 1)
    return np.asarray((whole - _tip(p, q, power) - _tip(q, p, power)) / (4.0 * area(a)))


def _tip(p: Floats, q: Floats, power: int) -> Floats:
    """The integral of x**power 2 max(0, |x| - p)**2 / q from -1 to 1."""
    u = _UNIT.reshape(-1, *[1] * p.ndim)
    found = np.tensordot(_WEIGHTS / 2.0, (p + q * u) ** power * u * u, axes=(0, 0))
    return np.asarray(4.0 * q * q * found)


def moment_of_square(a: Floats, power: int) -> Floats:
    """The mean of y**power in a section."""
    p, q = (1.0 + a) / 2.0, (1.0 - a) / 2.0
    found = _side(p, q, power) + (-1.0) ** power * _side(q, p, power)
    return np.asarray(found / (4.0 * area(a)))


def _side(p: Floats, q: Floats, power: int) -> Floats:
    """The integral of y**power times the width of a section from a to 1; with y = 1 - 2 q v**2."""
    v = _UNIT.reshape(-1, *[1] * p.ndim)
    widths = 2.0 * (p + q * v) * 4.0 * q * v
    return np.asarray(np.tensordot(_WEIGHTS / 2.0, (1.0 - 2.0 * q * v * v) ** power * widths, 1))


@lru_cache(maxsize=64)
def second_moments(arches: int) -> tuple[Fraction, Fraction, Fraction]:
    """The means of a**2, x**2 and y**2, with x and y of one of so many arches on one count, in the
    whole: counts are as likely as the product of the areas of their sections is large.
    """
    areas = [Fraction(10, 3), Fraction(0), Fraction(-2, 3)]
    others = _power(areas, arches - 1)
    whole = _integral(_times(others, areas))
    squares = _integral(_times(_times(others, areas), [Fraction(0), Fraction(0), Fraction(1)]))
    sums = _integral(_times(others, _sums_squared()))
    both = _integral(_times(others, _squares_squared()))
    return squares / whole, sums / whole, both / whole


def _sums_squared() -> _Polynomial:
    """The integral of x**2 over a section, of a."""
    found: _Polynomial = [Fraction(4, 3)]
    for p, q in (_HALVES, _HALVES[::-1]):
        terms = ((0, 4, Fraction(1, 5)), (1, 3, Fraction(1, 2)), (2, 2, Fraction(1, 3)))
        for of_p, of_q, factor in terms:
            found = _plus(found, _times(_power(p, of_p), _power(q, of_q)), -4 * factor)
    return found


def _squares_squared() -> _Polynomial:
    """The integral of y**2 over a section, of a."""
    found: _Polynomial = [Fraction(0)]
    for p, q in (_HALVES, _HALVES[::-1]):
        straight = ((1, Fraction(1, 2)), (2, Fraction(-1)), (3, Fraction(2, 3)))
        curved = ((2, Fraction(1, 3)), (3, Fraction(-4, 5)), (4, Fraction(4, 7)))
        for of_q, factor in straight:
            found = _plus(found, _times(p, _power(q, of_q)), 8 * factor)
        for of_q, factor in curved:
            found = _plus(found, _power(q, of_q), 8 * factor)
    return found


_HALVES: Final = (
    [Fraction(1, 2), Fraction(1, 2)],
    [Fraction(1, 2), Fraction(-1, 2)],
)


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
