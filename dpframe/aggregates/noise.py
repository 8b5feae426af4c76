"""Laws of noise: of vectors drawn jointly, of weighted sums, and of what is rebuilt from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.measurement import Rebuilt
from dpframe.core.exact import weighted_sum
from dpframe.mechanisms import (
    AdditiveMechanism,
    Arch,
    Boxes,
    CombinableNoise,
    CombinedNoise,
    Mechanism,
)
from dpframe.mechanisms.discrete_gaussian import normal_above
from dpframe.mechanisms.discrete_hull import area, ends_at, reach_at
from dpframe.workloads import rounding_variance

# -- the joint law of the noise that several parts of one result get, cut into slices -------------
# The error of a mean or a variance depends on all of its noisy numbers at once. Given all of them
# but the first, the error is at most a just where the first noise lies between two numbers, so that
#
#     P(|error| > a) = sum over slices of weight * (P(first > up) + P(first < down)),
#
# with `up` and `down` a function of the slice, of a and of the data. Each joint mechanism gives its
# own slices; `Independent` gives those of noises drawn one by one.

Floats: TypeAlias = "NDArray[np.float64]"

_ATOMS: Final = 48
"""Noise within this many steps is taken number by number."""
_FINER: Final = 16
_MOST: Final = 400
_NOTHING: Final = 1e-4
"""All slices that are left out together have no more than this share of what may be missed."""
_WIDEST: Final = 0.25
"""Of knots, in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """A joint law of noises, in the parts' own units."""

    weights: Floats  # The probability of each slice; their sum is 1
    others: tuple[Floats, ...]  # The noises of all parts but the first, one array each
    # P(first noise > x) and P(first noise < x) given the slice, for x whose last axis are slices.
    above: Callable[[Floats], Floats]
    below: Callable[[Floats], Floats]

    def outside(self, low: Floats, high: Floats) -> Floats:
        """P(first noise < low or > high), where these depend on the slice."""
        found: Floats = weighted_sum(self.above(high) + self.below(low), self.weights)
        return found


class NoiseLaw(Hashable, Protocol):
    """The law of one noise, in steps; symmetric around 0."""

    def variance(self) -> float:
        """In steps squared."""
        ...

    def quantile(self, confidence: float | Fraction, cells: int = 1, /) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence."""
        ...

    def above(self, x: Floats, /) -> Floats:
        """P(noise > x) for each x."""
        ...


class JointNoise(Hashable, Protocol):
    """The noise of several parts together; symmetric around 0."""

    @property
    def even(self) -> bool:
        """Whether each noise alone may change its sign and the law stays the same."""
        ...

    def unit(self, part: int) -> float:
        """What a step of one part is."""
        ...

    def reach(self, part: int, level: Fraction) -> int:
        """The least a with P(|noise of the part| <= a) >= level, in steps."""
        ...

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        """The law of some of the noises."""
        ...

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        """Its law, for probabilities of about `miss`. `miss`: the request is where the error is
        with probability 1 - miss. `pull`: by how much of the first noise a unit of each of the
        others moves the result at most; slices are so narrow that the first noise covers them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Independent:
    """Noises that are drawn one by one."""

    # The law of each part in steps, and what a step is.
    parts: tuple[tuple[NoiseLaw, Fraction], ...]

    @property
    def even(self) -> bool:
        return True

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> Independent:
        return Independent(tuple(self.parts[part] for part in parts))

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        return _independent(self.parts, miss, pull)


@lru_cache(maxsize=256)
def _independent(
    parts: tuple[tuple[NoiseLaw, Fraction], ...], miss: float, pull: tuple[float, ...]
) -> Slices:
    (first, step), *rest = parts
    unit = float(step)
    cover = math.sqrt(first.variance()) * unit
    weights, others = np.ones(1), list[Floats]()
    for (law, size), coefficient in zip(rest, pull, strict=True):
        width = math.inf if coefficient == 0 else cover / (coefficient * float(size))
        points, masses = _knots(law, miss, width)
        others = [np.repeat(other, points.size) for other in others]
        others.append(np.tile(points * float(size), weights.size))
        weights = np.outer(weights, masses).reshape(-1)
    kept = weights > miss * _NOTHING / weights.size
    weights = weights[kept] / weights[kept].sum()
    return Slices(
        weights,
        tuple(other[kept] for other in others),
        above=lambda x: first.above(x / unit),
        below=lambda x: first.above(-x / unit),  # symmetric
    )


def _knots(law: NoiseLaw, miss: float, width: float) -> tuple[Floats, Floats]:
    """Points in steps, and masses: the law itself where it has few atoms.

    Else what lies between two points goes to both so that its mean stays. That spreads the noise a
    little and never narrows it: in the tail, where probabilities are convex in the noise, it gives
    at least what the law itself does.
    """
    reach = law.quantile(1 - Fraction(miss) / 4096)
    if reach <= _ATOMS:
        whole = np.arange(-reach, reach + 1, dtype=np.float64)
        masses = law.above(whole - 1.0) - law.above(whole)
        masses[[0, -1]] = law.above(whole[-1:] - 1.0)
        return (whole, masses) if reach else (whole, np.ones(1))
    width = max(min(_WIDEST * math.sqrt(law.variance()), width), 2.0 * reach / _MOST)
    cells = math.ceil(reach / width)
    points = np.linspace(-reach, reach, 2 * cells + 1)
    edges = np.unique(np.floor(np.linspace(0, reach, cells * _FINER + 1))) + 0.5
    tails = np.append(0.5, law.above(edges))
    mass = np.append(tails[:-1] - tails[1:], tails[-1])  # of one side; half of 0 in each
    middles = np.append((np.append(-0.5, edges[:-1]) + edges) / 2, float(reach))
    return points, _share(points, np.append(-middles[::-1], middles), np.append(mass[::-1], mass))


def _share(points: Floats, places: Floats, masses: Floats) -> Floats:
    """Masses at places, moved to the points on either side so that their means stay."""
    left = np.clip(np.searchsorted(points, places, side="right") - 1, 0, points.size - 2)
    part = np.clip((places - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
    found = np.zeros(points.size)
    np.add.at(found, left, masses * (1.0 - part))
    np.add.at(found, left + 1, masses * part)
    return found


def pulls(noise: Sequence[float]) -> tuple[float, ...]:
    """Pulls in few digits, so that slices of nearly the same noise are made once."""
    return tuple(float(f"{abs(value):.2g}") for value in noise)


# -- slices of noise that several parts follow from: of a box, and of Gaussian noise --------------
# In a box of given size the numbers are independent and uniform. Parts are sums of such numbers, so
# all parts together are uniform within a polytope, and given all but the first, the first is
# uniform between two ends. Slices are boxes of all sizes, and in each a grid of the other parts.
#
# Gaussian noises are jointly normal; given all but the first, the first is normal.

_BOX_POINTS: Final = {1: 40, 2: 12}
"""The points of a grid, by the number of other coordinates."""
_BOX_SIZES: Final = 64
"""Of boxes."""
_BOX_SPACING: Final = 0.25
SLIGHT: Final = 1e-4
"""The share of what may be missed that slices may leave out."""


def gaussian_slices(variance: float, rows: Floats, units: list[float], miss: float) -> Slices:
    """Of equal Gaussian noise on all numbers of a vector. `variance`: the variance of each number's
    noise, in steps squared. `rows`: for each part its factors of the numbers; parts are rounded to
    whole steps. `units`: what a step of each part is. `miss`: what probabilities are about.
    """
    scale = np.array(units)
    covariance = (rows @ rows.T) * variance
    covariance[np.diag_indices_from(covariance)] += (np.abs(rows).sum(axis=1) != 1) / 12
    covariance *= np.outer(scale, scale)
    rest = covariance[1:, 1:]
    reach = math.sqrt(-2 * math.log(min(0.1, miss * SLIGHT)))
    points = np.linspace(-reach, reach, 2 * math.ceil(reach / _BOX_SPACING) + 1)
    grid = np.stack(np.meshgrid(*[points] * (len(rows) - 1), indexing="ij")).reshape(len(rest), -1)
    weights = np.exp(-0.5 * (grid * grid).sum(axis=0))
    kept = weights > miss * SLIGHT / weights.size
    weights, others = weights[kept] / weights[kept].sum(), np.linalg.cholesky(rest) @ grid[:, kept]
    pull = np.linalg.solve(rest, covariance[1:, 0])
    mean = pull @ others
    deviation = math.sqrt(max(covariance[0, 0] - pull @ covariance[1:, 0], 1e-300))
    half = scale[0] / 2

    def above(x: Floats) -> Floats:
        return normal_above((np.floor(x / scale[0]) * scale[0] + half - mean) / deviation)

    def below(x: Floats) -> Floats:
        return normal_above((mean - np.ceil(x / scale[0]) * scale[0] + half) / deviation)

    return Slices(weights, tuple(others), above, below)


def box_slices(boxes: Boxes, rows: Floats, units: list[float]) -> Slices:
    """Of noise that is uniform in boxes; other parameters as for `gaussian_slices`.

    Each number lies in [-k - 1/2, k + 1/2] as if it were continuous, which for the tails of whole
    numbers is exact.
    """
    radii, weights = fewer_sizes(boxes.radii, boxes.weights)
    widths = np.floor(np.outer(radii, np.array(boxes.widths)) / boxes.fineness) + 0.5
    scale = np.array(units)
    rows = rows * scale[:, None]
    own = np.flatnonzero((rows[0] != 0) & (rows[1:] == 0).all(axis=0))
    if own.size:
        return _apart(rows, widths, weights, int(own[0]), scale[0])
    return _section(rows, widths, weights, scale[0])


def fewer_sizes(radii: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Sizes of boxes; some neighbours are merged, at their mean, and the last ones at the
    largest.
    """
    step = -(-radii.size // _BOX_SIZES)
    starts = np.arange(0, radii.size, step)
    total = np.add.reduceat(weights, starts)
    means = np.add.reduceat(weights * radii, starts) / np.where(total > 0, total, 1.0)
    means[-1] = radii[-1]
    return means, total


def _apart(rows: Floats, widths: Floats, weights: Floats, own: int, unit: float) -> Slices:
    """Where a number moves the first part alone: a grid of all other numbers that are used."""
    used = [j for j in np.flatnonzero((rows != 0).any(axis=0)).tolist() if j != own]
    places = _box_grid(len(used))
    numbers = {j: np.outer(widths[:, j], places[i]).reshape(-1) for i, j in enumerate(used)}
    each = places.shape[1]
    parts = [sum(rows[p, j] * numbers[j] for j in used) for p in range(len(rows))]
    half = np.repeat(widths[:, own] * abs(rows[0, own]), each)
    middle = np.asarray(parts[0]) + np.zeros(half.size)
    spread = np.repeat(weights / each, each)
    whole = np.count_nonzero(rows[0]) == 1
    return uniform_slices(
        spread, tuple(map(np.asarray, parts[1:])), middle - half, middle + half, unit, whole
    )


def _section(rows: Floats, widths: Floats, weights: Floats, unit: float) -> Slices:
    """Where the first part moves others: a grid of these, in which the first lies between ends.

    The first is then the number that others are centred on, and each other has one of its own.
    """
    pivot = int(np.flatnonzero(rows[0])[0])
    used = [int(np.flatnonzero((row != 0) & (rows[0] == 0))[0]) for row in rows[1:]]
    places = _box_grid(len(used))
    each = places.shape[1]
    reach = [
        widths[:, j] * abs(rows[p, j]) + widths[:, pivot] * abs(rows[p, pivot])
        for p, j in enumerate(used, 1)
    ]
    others = [np.outer(far, places[i]).reshape(-1) for i, far in enumerate(reach)]
    half = np.repeat(widths[:, pivot], each)
    low, high = -half, half
    for p, (j, other) in enumerate(zip(used, others, strict=True), 1):
        if rows[p, pivot]:
            room = np.repeat(widths[:, j] * abs(rows[p, j]), each)
            ends = (other - room) / rows[p, pivot], (other + room) / rows[p, pivot]
            low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
    length = np.maximum(high - low, 0.0).reshape(len(weights), each)
    share = (length / length.sum(axis=1, keepdims=True) * weights[:, None]).reshape(-1)
    possible = share > 0
    turn = rows[0, pivot]
    ends = low[possible] * turn, high[possible] * turn
    values = tuple(other[possible] for other in others)
    return uniform_slices(share[possible], values, np.minimum(*ends), np.maximum(*ends), unit, True)


def _box_grid(numbers: int) -> Floats:
    """Middles of equal cells of [-1, 1] in each of this many dimensions, one point per column."""
    if not numbers:
        return np.zeros((0, 1))
    points = _BOX_POINTS.get(numbers, 10)
    middles = (2 * np.arange(points) + 1) / points - 1
    return np.stack(np.meshgrid(*[middles] * numbers, indexing="ij")).reshape(numbers, -1)


def uniform_slices(
    weights: Floats, others: tuple[Floats, ...], low: Floats, high: Floats, unit: float, whole: bool
) -> Slices:
    """Slices in which the first is uniform between two ends. Whole numbers are those of the cells
    around them; what else is rounded may be off by half a unit, which is added.
    """
    length = high - low
    moved = 0.0 if whole else unit / 2

    def above(x: Floats) -> Floats:
        at = np.floor(x / unit) * unit + unit / 2 if whole else x - moved
        return np.asarray(np.clip((high - at) / length, 0.0, 1.0))

    def below(x: Floats) -> Floats:
        at = np.ceil(x / unit) * unit - unit / 2 if whole else x + moved
        return np.asarray(np.clip((at - low) / length, 0.0, 1.0))

    return Slices(weights / weights.sum(), others, above, below)


# -- slices of noise that is uniform in hulls of random size, see `dpframe.samplers.box` ----------
# Given the size, all numbers but one that moves only the first part are put at points. The
# remaining one is uniform between two ends: those of a section of its arch (`arch_body`), or of the
# box.

_HULL_POINTS: Final = {1: (45,), 2: (15, 11)}
"""The sizes of a grid, in each of this many numbers, counts before others."""
_FEW: Final = 8.0
"""Counts up to it are whole: in 45 or 15 points 3, 5 or 15 of them are as often."""
_MORE: Final = 256
"""The number of points of a sequence, for more numbers."""


def hull_slices(boxes: Boxes, rows: Floats, units: list[float]) -> Slices:
    """Of noise that is uniform in hulls. `boxes`: the boxes that they lie in, and their arches.
    `rows`: for each part its factors of the numbers; parts are rounded to whole steps. `units`:
    what a step of each part is.
    """
    radii, weights = fewer_sizes(boxes.radii, boxes.weights)
    widths = np.floor(np.outer(radii, np.array(boxes.widths)) / boxes.fineness) + 0.5
    rows = rows * np.array(units)[:, None]
    first = np.flatnonzero(rows[0])
    alone = [place for place in first.tolist() if not rows[1:, place].any()]
    paired = [place for place in alone if not any(place == arch[0] for arch in boxes.arches)]
    own = paired[0] if paired else int(first[0])
    points, shares, ends = _points(boxes.arches, rows, own)
    counts = {arch[0] for arch in boxes.arches} - {own}
    values = {place: _values(widths[:, place], at, place in counts) for place, at in points.items()}
    spread: Floats = np.multiply.outer(weights, shares / shares.sum()).reshape(-1)
    low, high = (np.outer(widths[:, own], end).ravel() for end in ends)
    rest = [place for place in values if place != own or not paired]
    parts = [sum(rows[p, j] * values[j] for j in rest) for p in range(len(rows))]
    parts[1:] = [
        np.rint(part / unit) * unit if np.count_nonzero(row) > 1 else part
        for part, unit, row in zip(parts[1:], units[1:], rows[1:], strict=True)
    ]
    turn = rows[0, own]
    middle = np.asarray(parts[0]) - (0.0 if paired else turn * values[own])
    sides = middle + turn * low, middle + turn * high
    whole = np.count_nonzero(rows[0]) == 1
    possible = spread > 0
    return uniform_slices(
        spread[possible],
        tuple(np.broadcast_to(np.asarray(part), spread.shape)[possible] for part in parts[1:]),
        np.minimum(*sides)[possible],
        np.maximum(*sides)[possible],
        units[0],
        whole,
    )


def _values(widths: Floats, at: Floats, is_count: bool) -> Floats:
    """Numbers at each size and point; small counts are whole."""
    found = np.outer(widths, at)
    if is_count:
        found = np.where((widths <= _FEW)[:, None], np.rint(found), found)
    return found.ravel()


def _points(
    arches: tuple[Arch, ...], rows: Floats, own: int
) -> tuple[dict[int, Floats], Floats, tuple[Floats, Floats]]:
    """Numbers over their widths at points, what each point stands for, and between which ends the
    own number lies there. If the number itself is a count it is at points too, and within their
    cells.
    """
    used = np.flatnonzero((rows != 0).any(axis=0)).tolist()
    pairs = [arch for arch in arches if {*arch[1:]} & {*used}]
    counts = {arch[0] for arch in arches if arch[0] in used} | {arch[0] for arch in pairs}
    in_pairs = [place for arch in pairs for place in arch[1:]]
    free = [place for place in used if place not in counts and place not in in_pairs]
    sought = [*sorted(counts), *in_pairs, *free]
    if own not in counts:
        sought.remove(own)
    at, shares = _lattice(len(sought))
    found = dict(zip(sought, at, strict=True))
    for arch in arches:
        if arch not in pairs and arch[0] in found:
            shares = shares * area(found[arch[0]])
    one = np.ones(shares.shape)
    ends = -one, one
    for count, total, square in pairs:
        a = found[count]
        if own == total:
            reach = np.minimum(reach_at(a, found[square]), 1.0)
            shares, ends = shares * reach, (-reach, reach)
            continue
        low, high = ends_at(a, found[total])
        shares = shares * (high - low)
        if own == square:
            ends = low, high
        else:
            found[square] = low + (high - low) * (found[square] + 1.0) / 2.0
    if own in counts:
        size = 1.0 / _HULL_POINTS.get(len(sought), (_MORE,))[0]
        ends = found[own] - size, found[own] + size
    return found, shares, ends


def _lattice(numbers: int) -> tuple[Floats, Floats]:
    """Points all over [-1, 1] in this many dimensions, one per column, and what each stands
    for."""
    if not numbers:
        return np.zeros((0, 1)), np.ones(1)
    if numbers not in _HULL_POINTS:
        turns = _ratio(numbers) ** -np.arange(1.0, numbers + 1.0)
        places = (0.5 + np.outer(turns, np.arange(_MORE))) % 1.0
        return 2.0 * places - 1.0, np.ones(_MORE)
    first, *rest = _HULL_POINTS[numbers]
    middles = (2.0 * np.arange(first) + 1.0) / first - 1.0
    nodes = [np.polynomial.legendre.leggauss(n) for n in rest]
    grid = np.meshgrid(middles, *(places for places, _ in nodes), indexing="ij")
    shares = np.meshgrid(np.ones(first), *(weights for _, weights in nodes), indexing="ij")
    return np.stack(grid).reshape(numbers, -1), np.prod(np.stack(shares), axis=0).ravel()


def _ratio(numbers: int) -> float:
    """The root above 1 of x**(d + 1) = x + 1: multiples of its powers spread evenly (Roberts 2018,
    a generalised golden ratio).
    """
    found = 2.0
    for _ in range(64):
        found = (1.0 + found) ** (1.0 / (numbers + 1.0))
    return found


# -- the law of a sum of many noises with public factors, as near as four moments say -------------
# Gaussian noises with factors add up to Gaussian noise, and few Laplace noises to something between
# Laplace and Gaussian noise. So the sum is taken for a Gaussian plus a Laplace noise with its
# variance and its fourth cumulant: with an excess of e, which lies between 0 and 3, the Laplace
# part has the share sqrt(e / 3) of the variance. Where one noise decides this is its law, and where
# many do it is their limit. Variance and cumulant are those of the exact laws.

_CURVE_POINTS: Final = 4001
_FAR: Final = Fraction(1, 10**9)
_NEXT_TO_NOTHING: Final = 1e-9
_BEYOND: Final = 1e-12
"""The mass that may be beyond the largest box in the moments."""
_ROOT: Final = math.sqrt(2.0)
_ROOT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_KNOTS: Final = np.linspace(0.0, 1.0, 65)


@lru_cache(maxsize=1024)
def excess_of(law: AdditiveMechanism) -> float:
    """The fourth cumulant of a symmetric noise over its squared variance; 0 where that is less.

    For a sum of numbers that are drawn jointly it is the excess of the sum, which rounding to
    whole steps changes little.
    """
    variance = law.variance()
    if variance < _NEXT_TO_NOTHING:
        return 0.0
    if isinstance(law, CombinedNoise):
        factors = np.array(law.factors, dtype=np.float64) / law.divisor
        return max(0.0, cumulants_of_sum(law.law, factors)[1] / variance**2)
    reach = law.quantile(1 - _FAR) + 1
    if reach <= _CURVE_POINTS:
        whole = np.arange(0, reach, dtype=np.float64)
        powers = (whole + 1.0) ** 4 - whole**4  # summation by parts
        fourth = 2.0 * float(powers @ law.above(whole))
    else:
        places = (np.arange(_CURVE_POINTS) + 0.5) * (reach / _CURVE_POINTS)
        fourth = (
            2.0 * float((4.0 * places**3) @ law.above(np.floor(places))) * (reach / _CURVE_POINTS)
        )
    return max(0.0, fourth / variance**2 - 3.0)


def cumulants_of_sum(
    law: CombinableNoise | AdditiveMechanism, factors: Floats
) -> tuple[float, float]:
    """The variance and the fourth cumulant of a sum of the numbers of a vector with factors.

    In a box of half-widths h numbers are independent and uniform on whole numbers, with variances
    h (h + 1) / 3 and means of fourth powers of h (h + 1) (3 h**2 + 3 h - 1) / 15.
    """
    known = law.cumulants_of_sum(factors) if isinstance(law, CombinableNoise) else None
    if known is not None:
        return known
    boxes = law.boxes(_BEYOND) if isinstance(law, CombinableNoise) else None
    if boxes is None or not isinstance(law, CombinableNoise):
        assert isinstance(law, AdditiveMechanism)
        each, excess = law.variance(), excess_of(law)
        variance = float((factors**2).sum()) * each
        return variance, float((factors**4).sum()) * excess * each**2
    variance = float(_variances(law, factors.size) @ factors**2)
    half = np.floor(np.outer(boxes.radii, np.array(boxes.widths)) / boxes.fineness)
    squares = half * (half + 1.0) / 3.0
    fourths = half * (half + 1.0) * (3.0 * half * half + 3.0 * half - 1.0) / 15.0
    given = squares @ factors**2
    own = (fourths - 3.0 * squares**2) @ factors**4
    second = float(boxes.weights @ given)  # of boxes that are a little larger, where some are one
    if second < _NEXT_TO_NOTHING:
        return variance, 0.0
    fourth = float(boxes.weights @ (3.0 * given**2 + own)) - 3.0 * second**2
    return variance, fourth * (variance / second) ** 2


@lru_cache(maxsize=1024)
def _variances(law: CombinableNoise, numbers: int) -> Floats:
    """The variance of each number of a vector; their signs are independent, so variances add
    up."""
    units = (tuple(int(i == j) for i in range(numbers)) for j in range(numbers))
    return np.array([law.variance_of_sum(unit) for unit in units])


@dataclass(frozen=True, slots=True)
class WeightedNoise:
    """A sum of noises with factors."""

    spread: float  # Its variance, in steps squared
    excess: float  # Its fourth cumulant over its squared variance, at most 3

    def variance(self) -> float:
        """In steps squared."""
        return self.spread

    def above(self, x: Floats) -> Floats:
        """P(noise > x) for each x, in steps."""
        if self.spread == 0.0:
            return np.where(x < 0, 1.0, 0.0)
        share = math.sqrt(min(self.excess, 3.0) / 3.0)
        normal = math.sqrt(max(0.0, (1.0 - share) * self.spread))
        scale = math.sqrt(share * self.spread / 2.0)
        return _tail(np.asarray(x, dtype=np.float64), normal, scale)

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence, by the union
        bound. Results are whole steps, so errors up to a are noise up to a + 1/2.
        """
        return _quantile(self, (1.0 - float(confidence)) / max(1, cells))


@lru_cache(maxsize=4096)
def _quantile(noise: WeightedNoise, miss: float) -> int:
    if noise.spread == 0.0:
        return 0
    return max(0, math.ceil(_reach(noise, miss) - 0.5))


def _reach(noise: WeightedNoise, miss: float) -> float:
    """What |noise| exceeds with a probability of no more than `miss`."""
    low, high = 0.0, math.sqrt(noise.spread)
    while 2.0 * float(noise.above(np.array([high]))[0]) > miss:
        low, high = high, 2.0 * high
    while high - low > 2.0**-30 * high:
        middle = (low + high) / 2.0
        if 2.0 * float(noise.above(np.array([middle]))[0]) > miss:
            low = middle
        else:
            high = middle
    return high


def reaches_of(spreads: Floats, excesses: Floats, level: float) -> NDArray[np.int64]:
    """`WeightedNoise(spread, excess).quantile(level)` of many noises, but for interpolation between
    excesses.
    """
    shares = np.sqrt(np.clip(excesses, 0.0, 3.0) / 3.0)
    far = np.sqrt(spreads) * np.interp(shares, _KNOTS, _unit_reaches(1.0 - level))
    return np.maximum(0.0, np.ceil(far - 0.5)).astype(np.int64)


@lru_cache(maxsize=64)
def _unit_reaches(miss: float) -> Floats:
    """How far noise of variance 1 reaches, by the share that is Laplace noise."""
    return np.array([_reach(WeightedNoise(1.0, 3.0 * share**2), miss) for share in _KNOTS.tolist()])


def _tail(x: Floats, normal: float, scale: float) -> Floats:
    """P(N + L > x) of a normal deviation and a Laplace scale. With z = x / normal, r = normal /
    scale, the normal density f, its tail Q and Mills' ratio R = Q / f, it is

        Q(z) + f(z) (R(r - z) - R(r + z)) / 2     (Reed and Jorgensen 2004).
    """
    far = np.abs(x)
    if scale < 1e-6 * normal:
        upper = _normal_tail(far / normal)
    elif normal < 1e-6 * scale:
        upper = np.exp(-far / scale) / 2.0
    else:
        z, r = np.minimum(far / normal, 1e9), normal / scale
        density = np.exp(-z * z / 2.0) / _ROOT_TWO_PI
        left = np.where(
            z > r,
            np.exp(np.minimum(r * r / 2.0 - r * z, 0.0)) * _normal_tail(np.minimum(r - z, 0.0)),
            density * _mills(np.maximum(r - z, 0.0)),
        )
        upper = _normal_tail(z) + (left - density * _mills(r + z)) / 2.0
    return np.where(x >= 0, upper, 1.0 - upper)


def _normal_tail(z: Floats) -> Floats:
    return np.array([math.erfc(v / _ROOT) / 2.0 for v in z.reshape(-1).tolist()]).reshape(z.shape)


def _mills(z: Floats) -> Floats:
    """Q / f of numbers that are not negative; from 25 on by the asymptotic series."""
    near = np.minimum(z, 25.0)
    direct = _normal_tail(near) * np.exp(near * near / 2.0) * _ROOT_TWO_PI
    far = np.maximum(z, 25.0)
    series = (1.0 - 1.0 / far**2 + 3.0 / far**4) / far
    return np.where(z < 25.0, direct, series)


# -- the joint law of several weighted sums of noise, approximated by its first four moments ------
# Sums of jointly drawn numbers depend on each other. `weighted_noise` approximates one such sum by
# a Gaussian plus a Laplace variable. Several sums are approximated by a Gaussian vector of random
# size: a multivariate Laplace vector is sqrt(E) times a Gaussian one with E exponential (Kotz,
# Kozubowski and Podgorski 2001, chapter 5). If it has the share s of the variance, the sum of both
# has
#
#     the covariances times 1 - s + s E,
#
# with the variances and correlations of the exact law, and an excess of 3 s**2 in every direction.
# This excess is at least the excess of each sum, and of the sum and difference of each two sums
# with equal deviations. The error of a result computed from all of them lies in such a direction.

WeightedPart: TypeAlias = "tuple[WeightedNoise, Fraction]"

_MIXED_SIZES: Final = {1: 32, 2: 16}
"""The number of sizes of Gaussian noise, by the number of parts after the first."""
_MIXED_SPACING: Final = {1: 0.25, 2: 0.4}
"""The distance between points of a grid, in deviations."""
_SLIGHT: Final = 1e-4
"""The share of the failure probability that slices may leave out."""
_FIRM: Final = 1.0 + 1e-12
_LEAST: Final = 1e-300
"""Variances are multiplied by `_FIRM` and are at least this, so that matrices can be inverted."""


@dataclass(frozen=True, slots=True)
class MixedNoise:
    """Sums of noises; some of these are drawn jointly."""

    parts: tuple[WeightedPart, ...]  # Each sum on its own, in steps, and what a step is
    correlations: tuple[float, ...]  # For each two of them, in the order (0, 1), (0, 2), (1, 2),
    excess: float  # The largest excess of all directions, at most 3

    @property
    def even(self) -> bool:
        return not any(self.correlations)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        own = tuple(self.parts[part] for part in parts)
        if len(parts) == 1:
            return Independent(own)
        matrix = self._matrix()
        pairs = itertools.combinations(parts, 2)
        return MixedNoise(own, tuple(float(matrix[pair]) for pair in pairs), self.excess)

    def _matrix(self) -> Floats:
        """The correlations as a matrix."""
        size = len(self.parts)
        found = np.eye(size)
        found[np.triu_indices(size, 1)] = self.correlations
        return found + np.triu(found, 1).T

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        deviations = [math.sqrt(law.variance()) * float(step) for law, step in self.parts]
        covariance = self._matrix() * np.outer(deviations, deviations)
        own = np.diag_indices_from(covariance)
        covariance[own] = np.maximum(covariance[own] * _FIRM, _LEAST)
        return _slices(covariance, math.sqrt(min(max(self.excess, 0.0), 3.0) / 3.0), miss)


def _slices(covariance: Floats, share: float, miss: float) -> Slices:
    """Gaussian noise of some sizes, and in each a grid of all parts but the first."""
    others = len(covariance) - 1
    sizes, masses = _sizes(share, _MIXED_SIZES.get(others, 8))
    grid, density = _mixed_grid(others, _MIXED_SPACING.get(others, 0.6), miss)
    rest = covariance[1:, 1:]
    pull: Floats = np.asarray(np.linalg.solve(rest, covariance[1:, 0]), dtype=np.float64)
    left = math.sqrt(max(covariance[0, 0] - pull @ covariance[1:, 0], 1e-300))
    points: Floats = np.asarray(np.linalg.cholesky(rest), dtype=np.float64) @ grid
    weights: Floats = np.multiply.outer(masses, density).reshape(-1)
    likely = weights > miss * _SLIGHT / weights.size
    values: list[Floats] = [np.multiply.outer(sizes, p).reshape(-1)[likely] for p in points]
    mean: Floats = pull @ np.array(values)
    deviation: Floats = np.repeat(sizes * left, density.size)[likely]
    return Slices(
        weights[likely] / weights[likely].sum(),
        tuple(values),
        above=lambda x: normal_above((x - mean) / deviation),
        below=lambda x: normal_above((mean - x) / deviation),
    )


@lru_cache(maxsize=64)
def _sizes(share: float, count: int) -> tuple[Floats, Floats]:
    """Deviations of Gaussian noise whose mixture has this much of its variance from Laplace
    noise, and the probability of each.
    """
    if share < 1e-6:
        return np.ones(1), np.ones(1)
    nodes, weights = np.polynomial.laguerre.laggauss(count)
    return np.sqrt(1.0 - share + share * nodes), weights


def _mixed_grid(numbers: int, spacing: float, miss: float) -> tuple[Floats, Floats]:
    """Points of this many independent Gaussian numbers, one per column, and what each stands
    for."""
    reach = math.sqrt(-2.0 * math.log(min(0.1, miss * _SLIGHT)))
    half = math.ceil(reach / spacing)
    points = np.linspace(-reach, reach, 2 * half + 1)
    grid = np.stack(np.meshgrid(*[points] * numbers, indexing="ij")).reshape(numbers, -1)
    density = np.exp(-0.5 * (grid * grid).sum(axis=0))
    return grid, density / density.sum()


# -- the law of the noise of several parts of one result, for any joint draws ---------------------

Part: TypeAlias = "tuple[AdditiveMechanism, Fraction]"

_CELLS: Final = 96


def noise_law(parts: Sequence[tuple[AdditiveMechanism, Fraction, int]]) -> JointNoise:
    """The joint law of the noise of parts. `parts`: the law of each in steps, what a step is, and
    the number of its draw. Parts of one draw depend on each other.
    """
    blocks: dict[int, list[int]] = {}
    for place, (_, _, draw) in enumerate(parts):
        blocks.setdefault(draw, []).append(place)
    laws = [(law, step) for law, step, _ in parts]
    if len(blocks) == len(parts):
        return Independent(tuple(laws))
    if len(blocks) == 1:
        return Together(tuple(laws))
    return _Blocks(tuple(laws), tuple(map(tuple, blocks.values())))


def draws_of(noise: JointNoise) -> list[tuple[AdditiveMechanism, Fraction, int]]:
    """The parts that `noise_law` made a law of, with the numbers of their draws."""
    assert isinstance(noise, (Independent, Together, _Blocks))
    draws = dict.fromkeys(range(len(noise.parts)), 0)
    if isinstance(noise, Independent):
        draws = {place: place for place in draws}
    elif isinstance(noise, _Blocks):
        draws = {place: number for number, block in enumerate(noise.blocks) for place in block}
    found = [(law, step, draws[place]) for place, (law, step) in enumerate(noise.parts)]
    return [(law, step, n) for law, step, n in found if isinstance(law, AdditiveMechanism)]


@dataclass(frozen=True, slots=True)
class Together:
    """Noises of parts that follow from one draw."""

    # The law of each part in steps, all combinations of one vector, and what a step is.
    parts: tuple[Part, ...]

    @property
    def even(self) -> bool:
        """Whether no two parts have a number of the vector in common, or a count and squares that
        go together.
        """
        combined = [_require_combined(law) for law, _ in self.parts]
        used = [
            law.law.moves_with(place)
            for law in combined
            for place, factor in enumerate(law.factors)
            if factor
        ]
        return len(set(used)) == len(used)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        if len(parts) == 1:
            return Independent((self.parts[parts[0]],))
        return Together(tuple(self.parts[part] for part in parts))

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        return _together(self.parts, miss)


def _require_combined(law: AdditiveMechanism) -> CombinedNoise:
    assert isinstance(law, CombinedNoise)
    return law


@lru_cache(maxsize=256)
def _together(parts: tuple[Part, ...], miss: float) -> Slices:
    laws = [_require_combined(law) for law, _ in parts]
    units = [float(step) for _, step in parts]
    rows = np.array([[f / law.divisor for f in law.factors] for law in laws])
    vector = laws[0].law
    boxes = vector.boxes(miss * SLIGHT)
    if boxes is None:
        return gaussian_slices(vector.variance_of_sum((1,)), rows, units, miss)
    if boxes.arches:
        return hull_slices(boxes, rows, units)
    return box_slices(boxes, rows, units)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Noises of parts that follow from several draws."""

    parts: tuple[Part, ...]  # The law of each part in steps, and what a step is
    blocks: tuple[tuple[int, ...], ...]  # Which parts are drawn jointly

    @property
    def even(self) -> bool:
        return all(self._law(block).even for block in self.blocks)

    def _law(self, block: tuple[int, ...]) -> JointNoise:
        parts = tuple(self.parts[place] for place in block)
        return Together(parts) if len(parts) > 1 else Independent(parts)

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        numbers = {place: n for n, block in enumerate(self.blocks) for place in block}
        return noise_law([(*self.parts[part], numbers[part]) for part in parts])

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        """The slices of the block of the first part, with all points of the other blocks."""
        own = next(block for block in self.blocks if 0 in block)
        pulls = dict(enumerate(pull, 1))
        first = self._law(own).slices(miss, tuple(pulls[place] for place in own[1:]))
        found = dict(zip(own[1:], first.others, strict=True))
        weights, size = first.weights, first.weights.size
        for block in self.blocks:
            if block is not own:
                masses, points = self._points(block, miss, pulls)
                found = {place: np.tile(values, masses.size) for place, values in found.items()}
                for place, values in zip(block, points, strict=True):
                    found[place] = np.repeat(values, weights.size)
                weights = np.outer(masses, weights).reshape(-1)
        return Slices(
            weights,
            tuple(found[place] for place in range(1, len(self.parts))),
            above=lambda x: first.above(x.reshape(-1, size)).reshape(x.shape),
            below=lambda x: first.below(x.reshape(-1, size)).reshape(x.shape),
        )

    def _points(
        self, block: tuple[int, ...], miss: float, pulls: dict[int, float]
    ) -> tuple[Floats, tuple[Floats, ...]]:
        """Points that stand for a block without the first part: its slices, with its own first
        noise cut into cells.
        """
        rest = tuple(pulls[place] for place in block[1:])
        slices = self._law(block).slices(miss, rest)
        lead = block[0]
        level = 1 - Fraction(miss * SLIGHT)
        reach = (self.reach(lead, level) + 1) * self.unit(lead)
        edges = np.linspace(-reach, reach, _CELLS + 1)
        beyond = slices.above(np.repeat(edges[:, None], slices.weights.size, axis=1))
        masses = np.maximum(beyond[:-1] - beyond[1:], 0.0) * slices.weights
        middles = np.repeat(((edges[:-1] + edges[1:]) / 2)[:, None], slices.weights.size, axis=1)
        others = [np.broadcast_to(values, masses.shape) for values in slices.others]
        kept = masses > miss * SLIGHT / masses.size
        found = masses[kept]
        return found / found.sum(), (middles[kept], *(values[kept] for values in others))


def noise_of(law: Mechanism, rebuilt: Rebuilt | None) -> Mechanism:
    """The mechanism of one part that follows from a draw."""
    if rebuilt is None:
        return law
    return CombinedNoise.of(law, rebuilt.factors, rebuilt.divisor)


# -- the noise of numbers of grouping sets that are rebuilt from several noisy tables -------------
# Let w_B be the weights of the tables B. W_A is the sum, over those with the columns A, of w_B
# times the number of cells in an entry of B. Then B's estimate for A counts w_B / W_A. Take an
# entry of B, and let M be the common columns of B and the set in which it agrees with the group.
# Its factor is a sum over A. Each term is w_B / W_A, times 1 - 1/n for each column of A in M and
# -1/n for each other column of A, over the product of the n of the set's columns outside of A.

Columns: TypeAlias = tuple[int, ...]
Sets: TypeAlias = tuple[Columns, ...]
Drawn: TypeAlias = "tuple[AdditiveMechanism, Fraction, int]"
"""The noise of one table, its step, and the number of its draw."""


@dataclass(frozen=True, slots=True)
class NoisyTables:
    """The tables that one number of each group is rebuilt from."""

    measured: Sets  # The columns of each
    weights: tuple[float, ...]  # The weights of these, in proportion to one over their variances
    drawn: tuple[Drawn, ...]  # What noise each has

    @property
    def laws(self) -> tuple[AdditiveMechanism, ...]:
        return tuple(law for law, _, _ in self.drawn)

    @property
    def step(self) -> Fraction:
        return self.drawn[0][1]


@lru_cache(maxsize=4096)
def noise_of_numbers(
    sizes: tuple[int, ...], kept: Columns, numbers: tuple[NoisyTables, ...]
) -> JointNoise:
    """The joint law of several numbers of a group by some columns, each in its steps. `sizes`: how
    many values each column has. `kept`: the columns. `numbers`: what each is rebuilt from.
    """
    together = {d for one in numbers for law, _, d in one.drawn if isinstance(law, CombinedNoise)}
    if together and all(one.measured == (kept,) for one in numbers):  # which are what is drawn
        return noise_law([one.drawn[0] for one in numbers])
    laws = tuple(rebuilt_noise(sizes, kept, n.measured, n.weights, n.laws) for n in numbers)
    parts = tuple(zip(laws, (one.step for one in numbers), strict=True))
    users = [{d for _, _, d in one.drawn if d in together} for one in numbers]
    if not any(a & b for a, b in itertools.combinations(users, 2)):
        return Independent(parts)
    return _mix(sizes, kept, numbers, parts)


def _mix(
    sizes: tuple[int, ...],
    kept: Columns,
    numbers: tuple[NoisyTables, ...],
    parts: tuple[tuple[WeightedNoise, Fraction], ...],
) -> MixedNoise:
    """The law where numbers are rebuilt from what is drawn jointly."""
    spread = [math.sqrt(max(law.spread, _NEXT_TO_NOTHING)) for law, _ in parts]
    excess = max(law.excess for law, _ in parts)
    terms = list(_terms(sizes, kept, numbers))
    correlations = []
    for a, b in itertools.combinations(range(len(numbers)), 2):
        found = []
        for sign in (1.0, -1.0):
            along = np.zeros(len(numbers))
            along[a], along[b] = 1.0 / spread[a], sign / spread[b]
            found.append(_cumulants(terms, along))
        (plus, plus_fourth), (minus, minus_fourth) = found
        correlation = (plus - minus) / 4.0
        correlations.append(0.0 if abs(correlation) < _NEXT_TO_NOTHING else correlation)
        for variance, fourth in ((plus, plus_fourth), (minus, minus_fourth)):
            if variance > _NEXT_TO_NOTHING:
                excess = max(excess, fourth / variance**2)
    return MixedNoise(parts, tuple(correlations), min(excess, 3.0))


_Term: TypeAlias = "tuple[CombinableNoise | AdditiveMechanism, Floats, int]"
"""A law, for each number its factors of the law's numbers, and how many such vectors there are."""


def _terms(
    sizes: tuple[int, ...], kept: Columns, numbers: Sequence[NoisyTables]
) -> Iterator[_Term]:
    """All noise that some numbers are made of; what is drawn jointly as one."""
    joint: dict[int, dict[int, tuple[CombinedNoise, list[tuple[float, int]]]]] = {}
    for place, one in enumerate(numbers):
        energies = _energies(sizes, one.measured, one.weights)
        for (law, _, draw), table, energy in zip(one.drawn, one.measured, energies, strict=True):
            factors = list(_factors(sizes, kept, table, one.measured, energies, energy))
            if isinstance(law, CombinedNoise):
                joint.setdefault(draw, {})[place] = law, factors
                continue
            for factor, times in factors:
                row = np.zeros((len(numbers), 1))
                row[place] = factor
                yield law, row, times
    for users in joint.values():
        yield from _of_draw(users, len(numbers))


def _of_draw(
    users: Mapping[int, tuple[CombinedNoise, list[tuple[float, int]]]], numbers: int
) -> Iterator[_Term]:
    """The vectors of one draw: one kind of entries after another."""
    first, factors = next(iter(users.values()))
    for kind, (_, times) in enumerate(factors):
        rows = np.zeros((numbers, len(first.factors)))
        for place, (law, own) in users.items():
            rows[place] = own[kind][0] * np.array(law.factors, dtype=float) / law.divisor
        yield first.law, rows, times


def _cumulants(terms: Sequence[_Term], along: Floats) -> tuple[float, float]:
    """The variance and the fourth cumulant of a sum of all numbers with factors."""
    variance = fourth = 0.0
    for law, rows, times in terms:
        more = cumulants_of_sum(law, along @ rows)
        variance += times * more[0]
        fourth += times * more[1]
    return variance, fourth


@lru_cache(maxsize=4096)
def rebuilt_noise(
    sizes: tuple[int, ...],
    kept: Columns,
    measured: Sets,
    weights: tuple[float, ...],
    laws: tuple[AdditiveMechanism, ...],
) -> WeightedNoise:
    """The noise of one number of a grouping set, and of making numbers whole."""
    spread = fourth = 0.0
    energies = _energies(sizes, measured, weights)
    for table, energy, law in zip(measured, energies, laws, strict=True):
        variance, excess = law.variance(), excess_of(law)
        for factor, times in _factors(sizes, kept, table, measured, energies, energy):
            spread += times * factor**2 * variance
            fourth += times * factor**4 * excess * variance**2
    rounding = (
        0.0 if len(measured) == 1 and set(measured[0]) >= set(kept) else _rounding(kept, sizes)
    )
    total = spread + rounding
    return WeightedNoise(total, fourth / total**2 if total > _NEXT_TO_NOTHING else 0.0)


def _energies(sizes: Sequence[int], measured: Sets, weights: Sequence[float]) -> list[float]:
    """The weight of each table times the cells that an entry of it stands for."""
    return [
        w * math.prod(n for i, n in enumerate(sizes) if i not in table)
        for w, table in zip(weights, measured, strict=True)
    ]


def _rounding(kept: Sequence[int], sizes: Sequence[int]) -> float:
    return rounding_variance([sizes[i] > 1 for i in kept])


def _factors(
    sizes: Sequence[int],
    kept: Sequence[int],
    table: tuple[int, ...],
    measured: Sequence[tuple[int, ...]],
    energies: Sequence[float],
    energy: float,
) -> Iterator[tuple[float, int]]:
    """The factors of the entries of a table, and how many entries have each."""
    shared = [i for i in table if i in kept]
    apart = math.prod(sizes[i] for i in table if i not in kept)
    told = {
        subset: energy
        / sum(e for t, e in zip(measured, energies, strict=True) if set(subset) <= set(t))
        for k in range(len(shared) + 1)
        for subset in itertools.combinations(shared, k)
    }
    for same in itertools.product((True, False), repeat=len(shared)):
        times = apart * math.prod(
            1 if alike else sizes[i] - 1 for i, alike in zip(shared, same, strict=True)
        )
        if not times:
            continue
        agree = dict(zip(shared, same, strict=True))
        factor = math.fsum(
            weight
            * math.prod((1.0 if agree[i] else 0.0) - 1.0 / sizes[i] for i in subset)
            / math.prod(sizes[i] for i in kept if i not in subset)
            for subset, weight in told.items()
        )
        yield factor, times
