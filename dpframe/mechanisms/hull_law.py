"""The law of the discrete hull by floats: how often hulls have which radius, and what follows.

Given a radius, vectors are uniform in the hull of it. Cut at counts, which are whole numbers, that
is a pair of numbers in a section for each arch (`arch_body`), independently of the others, and a
number within its part of a box for each that belongs to none. So a hull of a radius is as likely as
its box times the mean over counts of the areas of sections. Pairs of sums and squares, which have
many steps, are taken as if they were continuous, within half a step more on each side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.sums import weighted_sum
from dpframe.mechanisms.arch_body import (
    area,
    moment_of_square,
    moment_of_sum,
    square_above,
    sum_above,
)
from dpframe.mechanisms.box_law import Radii, radii_of
from dpframe.mechanisms.confidence import log_tier
from dpframe.mechanisms.noise_sums import Tail, tail_in_box
from dpframe.samplers import Arch

Floats: TypeAlias = "NDArray[np.float64]"

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
    """A discrete hull law.

    Parameters
    ----------
    rate
        Of exp(-rate R).
    widths, fineness
        The radii of the boxes that contain the hulls.
    arches
        The places of counts, sums and sums of squares.
    """

    rate: Fraction
    widths: tuple[int, ...]
    fineness: int
    arches: tuple[Arch, ...]

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
        nodes = radii.grouped(_ROUGH if rough else _NODES)
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
    given = [_spread(hull, place, nodes.last) for place in range(len(hull.widths))]
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


def _spread(hull: Hull, place: int, radii: Floats) -> tuple[Floats, Floats]:
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


def _given(hull: Hull, place: int, radii: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """The first four cumulants of a number at each radius and count."""
    mean, variance = _spread(hull, place, radii)
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
    whole = float(nodes.weights @ second)
    if whole < 1e-9:
        return variance, 0.0
    found = float(nodes.weights @ fourth) - 3.0 * whole**2
    return variance, found * (variance / whole) ** 2


def _powers(
    hull: Hull, places: list[int], factors: tuple[float, ...], radii: Floats
) -> tuple[Floats, Floats]:
    """The means of the second and the fourth power, at each radius, of a sum of numbers with
    factors that are independent at a count.
    """
    one, two, three, four = (np.zeros((1, 1)) for _ in range(4))
    for place in places:
        cumulants, f = _given(hull, place, radii), factors[place]
        one = one + f * cumulants[0]
        two = two + f**2 * cumulants[1]
        three = three + f**3 * cumulants[2]
        four = four + f**4 * cumulants[3]
    weights = _weights(hull, places[0], radii)
    power = one**4 + 6.0 * one**2 * two + 4.0 * one * three + 3.0 * two**2 + four
    return _at_each(weights, one**2 + two), _at_each(weights, power)
