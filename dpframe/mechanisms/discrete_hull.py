"""Discrete hull noise: one draw for counts, sums and sums of squares of the same values.

A row that adds x to a sum adds x**2 to the sum of squares, and 1 to the count of values: a point
of an arch, not of the whole box that each number on its own stays within. The K-norm mechanism
(Hardt and Talwar 2010) of the convex hull of the arch and its mirror image is the one with the
least set that holds all additions and removals of rows (Awan and Slavkovic 2021). Compared with
the box, means have 0.70 to 0.82 of the squared error, variances 0.72 to 1.12, and both together
0.71 to 0.91, depending on the values. Only variances of values near the middle of their bounds
have larger errors, by at most 6 % of the deviation. Polynomials of Bernstein, as sum((1 - t)**2),
sum(2 t (1 - t)) and sum(t**2) with Laplace noise, make a simplex around the arch: that is less in
means, but up to 2.9 in variances.

With hull(R) and N(z) as in `dpframe.samplers.box`, P(z) ~ exp(-epsilon N(z) / m). The hull K is
convex and symmetric, and hull(R) all whole vectors of K R / m. Let k rows move the numbers by v, a
sum of k points of K. If z is in K R / m, then z + v is in K (R / m + k), as K is convex. So N(z +
v) <= N(z) + k m and, as -v is such a move too, |N(z + v) - N(z)| <= k m: probabilities differ by a
factor of exp(k epsilon) at most. All else is as for boxes (`discrete_box`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import weighted_sum
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combined import Boxes, Radii, Tail, radii_of, tail_in_box
from dpframe.mechanisms.discrete_box import DiscreteBox
from dpframe.mechanisms.mechanism import AdditiveTask, Box, Choice, charge_for, log_tier
from dpframe.samplers import Arch
from dpframe.samplers.box import require_arches

# The hull of an arch and its mirror image, as `dpframe.samplers.box` has it, cut at counts.
#
# At a count of a, of -1 to 1, the pair (x, y) of a sum and a sum of squares is uniform in what
# remains of the hull, a section. With p = (1 + a) / 2 and q = (1 - a) / 2 a section has
#
# - at x the length 2 - 2 max(0, |x| - p)**2 / q - 2 max(0, |x| - q)**2 / p,
# - at y the reach |x| <= p + sqrt(q (1 - y) / 2) for y >= a, and q + sqrt(p (1 + y) / 2) below,
# - the area 10 / 3 - 2 a**2 / 3,
#
# by solving the inequalities for y, for x, and by integrating lengths. (At y >= a the other bound
# on x is at least 1: q (1 - y) / 2 <= q**2 just where p (1 + y) / 2 >= p**2.)

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


# The law of the discrete hull by floats: how often hulls have which radius, and what follows.
#
# Given a radius, vectors are uniform in the hull of it. Cut at counts, which are whole numbers,
# that is a pair of numbers in a section for each arch (`arch_body`), independently of the others,
# and a number within its part of a box for each that belongs to none. So a hull of a radius is as
# likely as its box times the mean over counts of the areas of sections. Pairs of sums and squares,
# which have many steps, are taken as if they were continuous, within half a step more on each side.

_WHOLE: Final = 12
"""Counts of up to this much are taken one by one; beyond at nodes of their continuous law."""
_COUNTS: Final = np.arange(-_WHOLE, _WHOLE + 1, dtype=np.float64)
_PLACES, _PARTS = (np.asarray(p) for p in np.polynomial.legendre.leggauss(_COUNTS.size))
_NODES: Final = 256
_ROUGH: Final = 128
_UP: Final = 1.0 + 2.0**-11
"""Above what tails are off by."""
_BEYOND: Final = 1e-12
"""The mass that may be beyond the largest radius in the moments."""


@dataclass(frozen=True, slots=True)
class Hull:
    """A discrete hull law."""

    rate: Fraction  # Of exp(-rate R)
    # `widths`, `fineness`: the radii of the boxes that contain the hulls.
    widths: tuple[int, ...]
    fineness: int
    arches: tuple[Arch, ...]  # The places of counts, sums and sums of squares

    def radii(self, nats: int) -> Radii:
        """The law of the radius in blocks, to exp(-nats) or so."""
        return _radii(self, nats, coarse=False)

    def sharing(self, count: int) -> int:
        """How many arches a count has."""
        return sum(own == count for own, *_ in self.arches)

    def count_of(self, place: int) -> int | None:
        """The count of the arch that a sum or a sum of squares is of."""
        return next((count for count, *both in self.arches if place in both), None)

    def is_square(self, place: int) -> bool:
        """Whether a number is a sum of squares."""
        return any(place == square for *_, square in self.arches)

    def counts(self, count: int, radii: Floats) -> tuple[Floats, Floats]:
        """Counts over the reach of each radius, in the last axis, and the probability of each."""
        return _counts(radii * (self.widths[count] / self.fineness), self.sharing(count))[:2]

    def variances(self) -> tuple[float, ...]:
        """The variance of each number, in steps squared."""
        return _covariances(self)[0]

    def covariance(self, one: int, other: int) -> float:
        """Of two numbers: that of a count and a sum of squares of its arch, or of two sums of
        squares with the same count; others are not correlated.
        """
        if one == other:
            return self.variances()[one]
        return _covariances(self)[1].get((min(one, other), max(one, other)), 0.0)

    def moving(self, count: int) -> set[int]:
        """A count and the sums of squares of its arches, whose means move with it."""
        return {count, *(square for own, _, square in self.arches if own == count)}

    def cumulants(self, factors: Floats) -> tuple[float, float]:
        """The variance and the fourth cumulant of a sum of numbers with factors; the second as if
        the sum and the squares of an arch were independent at a count, where both are used.
        """
        return _cumulants(self, tuple(factors.tolist()))

    def oddness(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd), about; only counts have few steps."""
        radii = _moments_over(self)
        even = np.ones(radii.weights.size)
        for place, factor in enumerate(factors):
            if factor % 2:
                even *= self._evenness(place, radii.last)
        return 0.5 * (1.0 - float(weighted_sum(even, radii.weights)))

    def _evenness(self, place: int, radii: Floats) -> Floats:
        """The mean of (-1)**z of one number at each radius."""
        half = np.floor(radii * (self.widths[place] / self.fineness))
        if not self.sharing(place):
            return np.asarray((1.0 - 2.0 * np.fmod(half, 2.0)) / (2.0 * half + 1.0))
        _, weights = self.counts(place, radii)
        signs = 1.0 - 2.0 * np.fmod(np.abs(_COUNTS), 2.0)
        return np.where(half <= _WHOLE, weights @ signs, 0.0)

    def tail(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """P(sum > t) for whole t of at least 0, see `CombinableNoise.tail_of_sum`: of one number,
        of several that belong to no arch, or of a count and one that belongs to none.
        """
        used = [(abs(f), place) for place, f in enumerate(factors) if f]
        shared = [place for _, place in used if self.sharing(place)]
        own = [place for _, place in used if self.count_of(place) is not None]
        radii = self.radii(tier)
        if not shared and not own:
            sides = sorted(((f, self.widths[place], place) for f, place in used), reverse=True)
            variances = [self.variances()[place] for *_, place in sides]
            return tail_in_box(radii, [side[:2] for side in sides], variances, rough)
        nodes = radii.group(_ROUGH if rough else _NODES)
        if own:
            ((factor, place),) = used
            return self._tail_of_pair(nodes, factor, place)
        (count,) = shared
        rest = [(f, place) for f, place in used if place != count]
        mine = next(f for f, place in used if place == count)
        return self._tail_of_count(nodes, mine, count, rest[0] if rest else None)

    def _tail_of_pair(self, nodes: Radii, factor: int, place: int) -> Tail:
        count = self.count_of(place)
        assert count is not None
        above = square_above if self.is_square(place) else sum_above
        cuts = [self.counts(count, radii) for radii in (nodes.first, nodes.last)]
        halves = nodes.half_widths(self.widths[place])

        def tail(t: float) -> float:
            u = ((math.floor(t / factor) + 0.5) / (half + 0.5) for half in halves)
            found = (
                (above(a, np.clip(v, 0.0, 1.0)[:, None]) * weights).sum(axis=1)
                for (a, weights), v in zip(cuts, u, strict=True)
            )
            return _mean(nodes, *found)

        return tail

    def _tail_of_count(
        self, nodes: Radii, factor: int, count: int, beside: tuple[int, int] | None
    ) -> Tail:
        ends = list[tuple[Floats, Floats, Floats]]()
        for radii in (nodes.first, nodes.last):
            a, weights = self.counts(count, radii)
            reach = radii * (self.widths[count] / self.fineness)
            ends.append((_at(a, reach), weights, reach))
        if beside is None:
            sharing = self.sharing(count)
            return lambda t: _mean(
                nodes, *(_count_above(math.floor(t / factor), end, sharing) for end in ends)
            )
        other, place = beside
        halves = nodes.half_widths(self.widths[place])

        def tail(t: float) -> float:
            found = (
                (_uniform_above((t - factor * c) / other, half[:, None]) * weights).sum(axis=1)
                for (c, weights, _), half in zip(ends, halves, strict=True)
            )
            return _mean(nodes, *found)

        return tail


def _mean(nodes: Radii, first: Floats, last: Floats) -> float:
    """Over all radii, that of both ends of each block."""
    shares = float(weighted_sum(first + last, nodes.weights)) / 2.0
    return min(1.0, (shares + nodes.rest) * _UP)


def _at(a: Floats, reach: Floats) -> Floats:
    """Counts: whole where they are taken one by one."""
    c = a * reach[:, None]
    return np.where((np.floor(reach) <= _WHOLE)[:, None], np.rint(c), c)


def _count_above(t: int, law: tuple[Floats, Floats, Floats], sharing: int) -> Floats:
    """P(count > t), of counts, their probabilities and reaches."""
    c, weights, reach = law
    whole = ((c > t) * weights).sum(axis=1)
    half = np.floor(reach)
    place = np.clip((t + 0.5) / (half + 0.5), 0.0, 1.0)
    density = np.polynomial.Polynomial([5.0, 0.0, -1.0]) ** sharing
    part = density.integ()
    return np.where(half <= _WHOLE, whole, (part(1.0) - part(place)) / (2.0 * part(1.0)))


def _uniform_above(x: Floats, half: Floats) -> Floats:
    """P(z > x) of a uniform whole number of up to half in size."""
    return np.clip((half - np.floor(x)) / (2.0 * half + 1.0), 0.0, 1.0)


def _counts(reach: Floats, sharing: int) -> tuple[Floats, Floats, Floats]:
    """Counts over their reach, the probability of each, and the mean of products of areas."""
    few = np.floor(reach) <= _WHOLE
    near = reach[few, None]
    a = np.broadcast_to(_PLACES, (reach.size, _PLACES.size)).copy()
    a[few] = np.clip(_COUNTS / np.maximum(near, 1.0), -1.0, 1.0)
    weights = np.broadcast_to(_PARTS * area(_PLACES) ** sharing, a.shape).copy()
    weights[few] = (np.abs(_COUNTS) <= np.floor(near)) * area(a[few]) ** sharing
    total = weights.sum(axis=1)
    size = np.where(few, 2.0 * np.floor(reach) + 1.0, 2.0)
    return a, weights / total[:, None], total / size


def _at_counts(moment: Callable[[Floats, int], Floats], a: Floats, power: int) -> Floats:
    """A moment at all counts; the same ones are those of radii that have many."""
    few = a[:, 0] != _PLACES[0]
    found = np.broadcast_to(moment(_PLACES, power), a.shape).copy()
    found[few] = moment(a[few], power)
    return found


@lru_cache(maxsize=64)
def _radii(hull: Hull, nats: int, coarse: bool) -> Radii:
    radii = radii_of(hull.rate, hull.widths, hull.fineness, nats, coarse)
    middle = (radii.first + radii.last) / 2.0
    weights = radii.weights.copy()
    for count in {arch[0] for arch in hull.arches}:
        reach = middle * (hull.widths[count] / hull.fineness)
        weights *= _counts(reach, hull.sharing(count))[2]
    rest = radii.rest * float(weights[-1] / max(radii.weights[-1], 1e-300))
    total = float(weights.sum()) + rest
    return Radii(radii.first, radii.last, weights / total, rest / total, radii.fineness)


@lru_cache(maxsize=256)
def _covariances(hull: Hull) -> tuple[tuple[float, ...], dict[tuple[int, int], float]]:
    """The variances of all numbers, and covariances of two."""
    nodes = _moments_over(hull)
    given = [_mean_and_variance(hull, place, nodes.last) for place in range(len(hull.widths))]
    weights = [_weights(hull, place, nodes.last) for place in range(len(hull.widths))]
    variances = tuple(
        _over(nodes, of_count * (mean * mean + variance))
        for of_count, (mean, variance) in zip(weights, given, strict=True)
    )
    covariances = {
        (i, j): _over(nodes, given[i][0] * given[j][0] * weights[i])
        for count in {arch[0] for arch in hull.arches}
        for i, j in itertools.combinations(sorted(hull.moving(count)), 2)
    }
    return variances, covariances


def _moments_over(hull: Hull) -> Radii:
    """Radii in the middle of blocks."""
    radii = _radii(hull, log_tier(_BEYOND), coarse=True)
    middle = np.floor((radii.first + radii.last) / 2.0)
    return Radii(middle, middle, radii.weights, radii.rest, radii.fineness)


def _at_each(weights: Floats, values: Floats) -> Floats:
    """The mean over counts at each radius."""
    return np.asarray((values * weights).sum(axis=1))


def _over(nodes: Radii, values: Floats) -> float:
    """The mean over radii of what is added up over counts."""
    return float(weighted_sum(values.sum(axis=1), nodes.weights))


def _weights(hull: Hull, place: int, radii: Floats) -> Floats:
    """The probability of each count of the arch that a number belongs to, if it does to one."""
    count = place if hull.sharing(place) else hull.count_of(place)
    if count is None:
        return np.full((radii.size, 1), 1.0)
    return hull.counts(count, radii)[1]


def _mean_and_variance(hull: Hull, place: int, radii: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of a number at each radius and count."""
    reach = radii * (hull.widths[place] / hull.fineness)
    half = np.floor(reach)[:, None]
    count = hull.count_of(place)
    if hull.sharing(place):
        mean = _at(hull.counts(place, radii)[0], reach)
        return mean, 0.0 * mean
    if count is None:
        return 0.0 * half, half * (half + 1.0) / 3.0
    a, size = hull.counts(count, radii)[0], half + 0.5
    if not hull.is_square(place):
        return 0.0 * a, _at_counts(moment_of_sum, a, 2) * size**2
    mean = _at_counts(moment_of_square, a, 1) * size
    return mean, _at_counts(moment_of_square, a, 2) * size**2 - mean * mean


def _cumulants_at(hull: Hull, place: int, radii: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The first four cumulants of a number at each radius and count."""
    mean, variance = _mean_and_variance(hull, place, radii)
    none, count = 0.0 * mean, hull.count_of(place)
    if hull.sharing(place):
        return mean, none, none, none
    half = np.floor(radii * (hull.widths[place] / hull.fineness))[:, None]
    if count is None:
        fourth = half * (half + 1.0) * (3.0 * half * half + 3.0 * half - 1.0) / 15.0
        return none, variance, none, fourth - 3.0 * variance**2
    a, size = hull.counts(count, radii)[0], half + 0.5
    if not hull.is_square(place):
        return none, variance, none, _at_counts(moment_of_sum, a, 4) * size**4 - 3.0 * variance**2
    two, three, four = (_at_counts(moment_of_square, a, power) * size**power for power in (2, 3, 4))
    third = three - 3.0 * mean * two + 2.0 * mean**3
    fourth = four - 4.0 * mean * three + 6.0 * mean**2 * two - 3.0 * mean**4
    return mean, variance, third, fourth - 3.0 * variance**2


@lru_cache(maxsize=4096)
def _cumulants(hull: Hull, factors: tuple[float, ...]) -> tuple[float, float]:
    used = [place for place, factor in enumerate(factors) if factor]
    variance = sum(factors[i] * factors[j] * hull.covariance(i, j) for i in used for j in used)
    nodes = _moments_over(hull)
    second, fourth = np.zeros(nodes.last.size), np.zeros(nodes.last.size)
    apart = {c: [p for p in used if c in (p, hull.count_of(p))] for c, *_ in hull.arches}
    alone = [p for p in used if not any(p in mine for mine in apart.values())]
    groups = [mine for mine in apart.values() if mine] + [[place] for place in alone]
    for mine in groups:  # which are independent of each other
        square, power = _powers(hull, mine, factors, nodes.last)
        fourth += power + 6.0 * second * square
        second += square
    total = float(nodes.weights @ second)
    if total < 1e-9:
        return variance, 0.0
    excess = float(nodes.weights @ fourth) - 3.0 * total**2
    return variance, excess * (variance / total) ** 2


def _powers(
    hull: Hull, places: list[int], factors: tuple[float, ...], radii: Floats
) -> tuple[Floats, Floats]:
    """The means of the second and the fourth power, at each radius, of a sum of numbers with
    factors that are independent at a count.
    """
    one, two, three, four = (np.zeros((1, 1)) for _ in range(4))
    for place in places:
        cumulants, f = _cumulants_at(hull, place, radii), factors[place]
        one = one + f * cumulants[0]
        two = two + f**2 * cumulants[1]
        three = three + f**3 * cumulants[2]
        four = four + f**4 * cumulants[3]
    weights = _weights(hull, places[0], radii)
    power = one**4 + 6.0 * one**2 * two + 4.0 * one * three + 3.0 * two**2 + four
    return _at_each(weights, one**2 + two), _at_each(weights, power)


@dataclass(frozen=True, slots=True)
class DiscreteHull(DiscreteBox):
    """Noise z on vectors of integers with P(z) proportional to exp(-epsilon N(z) / fineness), where
    N(z) is the least integer R >= 0 for which z lies in the hull of the arches times R / fineness.

    Added to vectors that one row moves within the hull, it costs epsilon for each row that an
    individual has in all vectors together (the K-norm mechanism of Hardt and Talwar 2010).

    Parameters
    ----------
    epsilon, widths, fineness, rows
        As for `DiscreteBox`.
    arches
        Up to 8, each the places of a count of values, of their sum and of the sum of their
        squares. With a, x and y the additions of a row to them over their widths, (a, x, y) is in
        the hull of (1, t, 2 t**2 - 1), t from -1 to 1, and its mirror image.

    Raises
    ------
    InvalidBudget
        When a width or the fineness is above 2**54 times epsilon.
    ValueError
        When a parameter is invalid.
    """

    arches: tuple[Arch, ...]
    name: ClassVar[str] = "discrete_hull"
    label: ClassVar[str] = "discrete hull"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Box(self.epsilon, self.widths, self.fineness, self.arches)

    def __post_init__(self) -> None:
        DiscreteBox.__post_init__(self)
        require_arches(self.arches, len(self.widths))

    @classmethod
    def around(cls, box: DiscreteBox, arches: tuple[Arch, ...]) -> Self:
        """The hull within a box, at the same cost."""
        return cls(box.epsilon, box.widths, box.fineness, box.rows, arches)

    @classmethod
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by the hull, which spends no delta, where one is known."""
        if task.box is None or not task.box.arches:
            return None
        widths, rows, arches = task.box.widths, task.box.rows, task.box.arches
        reason = "one draw for all of them, by the values and squares that one row adds together"
        if isinstance(share, ZCDP):
            law = cls.around(DiscreteBox.for_zcdp(widths, rows, share.main), arches)
            return Choice(law, charge_for(share, law.rho), reason)
        law = cls.around(DiscreteBox.for_pure(widths, rows, share.main), arches)
        return Choice(law, share.of(law.whole_epsilon), reason)

    @property
    def hull(self) -> Hull:
        """Its law."""
        return Hull(self.epsilon / self.fineness, self.widths, self.fineness, self.arches)

    def variances(self) -> tuple[float, ...]:
        """The variance of each number, in steps squared; right to about one part in 1000."""
        return self.hull.variances()

    def covers(self, box: Box) -> bool:
        """Whether it covers these widths and rows, and arches."""
        return (self.widths, self.rows, self.arches) == (box.widths, box.rows, box.arches)

    def requires(self, factors: tuple[int, ...]) -> None:
        """Require a factor for each number, a sum or a sum of squares of an arch alone, and a
        count with at most one other number.
        """
        DiscreteBox.requires(self, factors)
        used = [place for place, factor in enumerate(factors) if factor]
        own = any(place in arch[1:] for arch in self.arches for place in used)
        counts = {arch[0] for arch in self.arches} & {*used}
        if (own and len(used) > 1) or (counts and len(used) > 2) or len(counts) > 1:
            raise ValueError("such a sum of numbers of discrete hull noise is not known")

    def alike(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes."""
        return tuple(map(abs, factors))

    def moves_with(self, place: int) -> int:
        """Squares go with the count of their arch."""
        hull = self.hull
        return (hull.count_of(place) or 0) if hull.is_square(place) else place

    def boxes(self, miss: float) -> Boxes:
        """Given the radius, numbers are uniform within the hull."""
        return Boxes(*self.radius_law(miss), self.widths, self.fineness, self.arches)

    def variance_of_sum(self, factors: tuple[int, ...]) -> float:
        """With the covariances of numbers."""
        hull = self.hull
        used = [place for place, factor in enumerate(factors) if factor]
        return sum(factors[i] * factors[j] * hull.covariance(i, j) for i in used for j in used)

    def cumulants_of_sum(self, factors: Floats) -> tuple[float, float] | None:
        """See `CombinableNoise.cumulants_of_sum`."""
        return self.hull.cumulants(factors)

    def oddness_of_sum(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd)."""
        return self.hull.oddness(factors)

    def tail_of_sum(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """See `CombinableNoise.tail_of_sum`."""
        return self.hull.tail(factors, tier, rough)

    def radii(self, nats: int) -> Radii:
        """The law of the radius in fine blocks, to exp(-nats) or so."""
        return self.hull.radii(nats)

    def log_masses(self, noise: NDArray[np.int64]) -> Floats:
        """By the least radius whose hull holds a vector: that of the box, or what solves one of the
        inequalities of an arch, which are linear in the radius where both sides are equal.
        """
        shares = noise.astype(np.float64) / np.array(self.widths, np.float64)
        radius = np.abs(shares).max(axis=-1, initial=0.0)
        for arch in self.arches:
            for sign in (1.0, -1.0):
                a, x, y = (shares[..., place] for place in arch)
                a, x, y = sign * a, np.abs(x), sign * y
                slope = 4.0 * x - 3.0 * a - y
                root = ((2.0 * x - a) ** 2 - a * y) / np.where(slope > 0, slope, 1.0)
                cuts = (slope > 0) & (root <= 2.0 * x - a)
                radius = np.where(cuts, np.maximum(radius, root), radius)
        steps = np.ceil(radius * self.fineness * (1.0 - 2.0**-50))
        return np.asarray(steps * -float(self.epsilon / self.fineness))
