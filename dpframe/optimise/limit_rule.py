"""Which limit a noisy histogram of individuals gives, and how much it may drop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import AdditiveMechanism
from dpframe.plan.data import REACH

# -- how likely laws of the number of rows are, given a noisy histogram of individuals ------------
# Under the best limit one or two individuals have more rows, and noise of the histogram is some
# tens of individuals: they are invisible. So all noisy counts are compared with expectations under
# laws of the number of rows (Pareto, Lomax, log-normal, Weibull and uniform laws, of many sizes and
# shapes). The weight of each law is the likelihood of the counts. Beforehand the five families
# weigh the same.
#
# No law is exact. The number in a bin may be off what a law expects by who happens to be there, and
# by `_MISFIT` of it. So the number is taken to be between what the law expects and the noisy count,
# nearer to that which is surer; within a bin individuals lie as the law says. If fewer than
# `_NOBODY` are expected to have more rows, no individual is assumed to.
#
# All floats here come from noisy counts, so privacy does not rest on them.

Floats = NDArray[np.float64]

_MISFIT = 0.06
_NOBODY = 0.5
_FARTHEST = 10.0**6
"""No individual is expected to have more rows, or more than ten times the last limit."""
_POINTS = 150
"""How many numbers of rows, in addition to the limits, laws are computed at."""
_LIKELY = 1e-3
"""Laws that are less likely than this much of the likeliest one count for nothing."""
_LEAST_LOG = -700.0
"""The exponential of less is no number that a float holds in full."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """What laws of the number of rows expect, given noisy counts."""

    weights: Floats  # How likely each law is; 1 in all
    above: Floats  # The individuals with more than each limit, by law
    dropped: Floats  # How many rows each limit drops, by law

    def median(self, numbers: Floats) -> float:
        """The median over the laws of a number that each has."""
        order = np.argsort(numbers, kind="stable")
        place = int(np.searchsorted(np.cumsum(self.weights[order]), 0.5))
        return float(numbers[order[min(place, len(order) - 1)]])


@lru_cache(maxsize=32)
def tail_of(ends: tuple[int, ...], counts: tuple[int, ...], law: AdditiveMechanism | None) -> Tail:
    """The laws that fit noisy counts, and what they expect. `ends`: at which the bins end, in
    rising order. `counts`: the noisy number of individuals in each bin, and last of those above
    all. `law`: the noise of each count; None if none exists.
    """
    points, shares_above, prior = _laws(ends)
    limits, numbers = np.array(ends, dtype=np.float64), np.array(counts, dtype=np.float64)
    at = np.searchsorted(points, limits)
    edges = np.pad(shares_above[:, at], ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
    shares = edges[:, :-1] - edges[:, 1:]
    expected = max(1.0, float(sum(counts))) * shares
    spread = expected * (1 - shares) + (_MISFIT * expected) ** 2 + 1e-6
    off = numbers - expected
    fits = _log_density(off, spread, law).sum(axis=1) + prior
    likely = np.exp(np.maximum(fits - fits.max(), _LEAST_LOG))
    keep = likely > _LIKELY
    weights = likely[keep] / likely[keep].sum()
    trust = spread / (spread + _variance(law))
    inside = np.maximum(0.0, expected + off * trust)[keep]
    beyond = np.pad(np.cumsum(inside[:, :0:-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    place = np.searchsorted(limits, points)  # the bin of each point
    part = shares_above[keep] - edges[keep][:, place + 1]
    part = np.clip(part / np.maximum(shares[keep], 1e-300)[:, place], 0.0, 1.0)
    above = np.maximum(0.0, beyond[:, place] + inside[:, place] * part)
    above[above < _NOBODY] = 0.0
    parts = _between(above[:, :-1], above[:, 1:], np.diff(points))
    lost = np.pad(np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    return Tail(weights, above[:, at], lost[:, at])


@lru_cache(maxsize=4)
def _laws(ends: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    """Numbers of rows, the share of individuals with more than each by every law, and the logarithm
    of the weight of each law beforehand.
    """
    farthest = max(_FARTHEST, 10.0 * ends[-1])
    limits = np.array(ends, dtype=np.float64)
    points = np.unique(np.concatenate([limits, np.geomspace(limits[0], farthest, _POINTS)]))
    powers = np.concatenate([np.arange(0.8, 2.01, 0.1), np.arange(2.25, 4.01, 0.25)])
    deviations = np.concatenate([np.arange(0.3, 1.91, 0.1), [2.1, 2.3, 2.6]])
    shapes = [0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1, 1.3, 2, 4]
    start, pareto = _pairs(np.geomspace(0.5, 100, 24), powers)
    size, lomax = _pairs(np.geomspace(0.5, 300, 28), powers)
    middle, deviation = _pairs(np.arange(-2, 6.01, 0.2), deviations)
    scale, weibull = _pairs(np.geomspace(0.3, 1000, 37), shapes)
    most = np.array([*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500])
    families = [
        (np.maximum(points, start) / start) ** -pareto,
        (1 + points / size) ** -lomax,
        _erfc((np.log(points) - middle) / (deviation * math.sqrt(2))) / 2,
        np.exp(np.maximum(-((points / scale) ** weibull), _LEAST_LOG)),
        np.maximum(1 - points / most[:, None], 0.0),
    ]
    prior = [np.full(len(family), -math.log(len(family))) for family in families]
    return points, np.concatenate(families), np.concatenate(prior)


def _pairs(sizes: Floats, shapes: Floats | list[float]) -> list[Floats]:
    """Each size with each shape, as two columns."""
    return [part.reshape(-1, 1) for part in np.meshgrid(sizes, shapes)]


def _variance(law: AdditiveMechanism | None) -> float:
    return 0.0 if law is None else law.variance()


def _log_density(off: Floats, spread: Floats, law: AdditiveMechanism | None) -> Floats:
    """The logarithm of the density of noise and normal noise together at `off`, up to a constant.

    `spread` is the variance of the normal part. The noise is taken to be normal where it is
    Gaussian, and else Laplace noise of scale b. With v the variance of the normal part and x >= 0
    the density is then, times 4 b,

        exp(v / 2b^2 - x / b) erfc((v / b - x) / r) + exp(v / 2b^2 + x / b) erfc((v / b + x) / r),

    with r = sqrt(2 v), and exp(v / 2b^2 + x / b) = exp(((v / b + x) / r)^2 - x^2 / 2v).
    """
    variance = _variance(law)
    if law is None or not variance or law.is_normal:
        both = spread + variance
        normal: Floats = -(off**2 / both + np.log(both)) / 2
        return normal
    b, x, r = math.sqrt(variance / 2), np.abs(off), np.sqrt(2 * spread)
    near, middle = (spread / b - x) / r, -(x**2) / (2 * spread)
    first = np.where(
        near >= 0,
        middle + _log_erfcx(np.abs(near)),
        spread / (2 * b**2) - x / b + np.log(_erfc(np.minimum(near, 0.0))),
    )
    laplace: Floats = np.logaddexp(first, middle + _log_erfcx((spread / b + x) / r))
    return laplace


def _erfc(x: Floats) -> Floats:
    size = np.abs(x)
    tail = np.exp(np.maximum(_log_erfcx(size) - size**2, _LEAST_LOG))
    both: Floats = np.where(x >= 0, tail, 2 - tail)
    return both


_CHEBYSHEV = (
    *(-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806),
    *(0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277),
)


def _log_erfcx(x: Floats) -> Floats:
    """log(exp(x^2) erfc(x)) for x >= 0, to 2e-7 (Press et al., Numerical Recipes, erfcc)."""
    t = 1 / (1 + x / 2)
    series = np.zeros_like(t)
    for factor in reversed(_CHEBYSHEV):
        series = series * t + factor
    logarithm: Floats = series + np.log(t)
    return logarithm


def _between(many: Floats, few: Floats, width: Floats) -> Floats:
    """What those lose between two numbers of rows who have more than the first: the sum over l of
    those with more than l (Abel), which are taken half way between their means, arithmetic and
    geometric.
    """
    middle = (many + few) / 4 + np.sqrt(many * few) / 2
    sums: Floats = np.minimum(width, 1.0) * many + np.maximum(width - 1.0, 0.0) * middle
    return sums


# -- which limit a noisy histogram of individuals gives, and how much it may drop -----------------
# The limit is the one that has the least error by what it drops and by noise together. All of it is
# computed from noisy counts and from plans, so it is post-processing, and privacy does not rest on
# it.
#
# *Which limit.* `tail_of` compares the counts with laws of the number of rows, and gives the
# likelihood of each law and what each limit drops under it. A limit has a regret under each law:
# the logarithm of its median error over that of the limit that is best under the law. The limit
# whose mean regret is least is taken. docs/benchmarks.md has the errors.
#
# *How much it may drop.* Let h(i) be the individuals with more than n(i-1) and up to n(i) rows, and
# h(i) + e(i) the noisy numbers. One of them loses at most n(i) - L under a limit L. If no
# individual has more than R = n(r) rows, then with sums over i <= r
#
#     dropped(L) <= sum of h(i) (n(i) - L)+ <= sum of (h(i) + e(i)) (n(i) - L)+  +  Z,
#
#     Z = sum of n(i) max(0, -e(i)),
#
# because 0 <= (n(i) - L)+ <= n(i). Z depends neither on L nor on the counts, so its quantile gives
# a bound that holds for whichever limit the same noisy counts give. Likewise no more individuals
# have more than L rows than the sum of h(i) + e(i) over all bins above L and the sum of max(0,
# -e(i)) over all bins. Half of what may go wrong is for that. R is chosen by the counts as well,
# among fixed levels, so the k-th of these may fail with 2^-(k + 1) of it, which adds up to the
# other half (union bound). Z is a sum of independent numbers; `quantile_of_losses` adds up their
# laws on a grid, each rounded up.
#
# A bound of this kind cannot be much smaller. A search at epsilon s hides k individuals with R rows
# each up to a factor of exp(k s), so on most runs without them the bound has to be above k R for
# any k up to about 1 / s.

BLIND: Final = 10
"""The least limit that is taken where noise hides who has more."""
GROUPS: Final = 10
"""How many groups there are taken to be, where groups are not listed."""
MUCH: Final = 0.1
"""A larger share that is dropped, or may be, is worth a warning."""
_MISS: Final = Fraction(1, 1000)
"""The probability that more is dropped than stated."""
_BLINDING = 20
"""This many standard deviations are more than all individuals where noise hides who has more."""
_LAPLACE, _NORMAL = math.log(20), 1.96
"""The error by noise that holds with 95%, in scales of Laplace noise and standard deviations."""


@dataclass(frozen=True, slots=True)
class MostDropped:
    """How much a limit may drop."""

    rows: int  # At most this many rows, or groups of individuals
    reach: int  # If no individual has more than these
    individuals: int  # How many have more than the limit at most, however many


@dataclass(frozen=True, slots=True)
class LossOfLimit:
    """The loss of a limit, within noise."""

    place: int  # Which of the limits, from 0
    dropped: float  # About how many rows it drops (or groups of individuals)
    every: float  # About how many there are
    noise: float  # The error by noise under it, with 95%, as a number of rows
    most: MostDropped  # How many it may drop, with 99.9%

    @property
    def share(self) -> float:
        """Which share of all it drops, about."""
        return min(1.0, self.dropped / self.every)

    @property
    def most_share(self) -> float:
        """Which share of all it may drop."""
        most = max(self.dropped, self.most.rows)
        return most / max(1.0, self.every - self.dropped + most)

    @property
    def is_much(self) -> bool:
        """Whether more than a tenth is dropped, or may be."""
        return self.most_share > MUCH

    @property
    def seems_little(self) -> bool:
        """Whether about a tenth is dropped at most: only people whom noise hides could add more."""
        return self.share <= MUCH


@dataclass(frozen=True, slots=True)
class LimitRule:
    """How a limit is found."""

    limits: tuple[int, ...]  # At which the bins of the histogram end, in rising order
    # The error of the query by noise under each that may be found, with 95%, as a number of rows:
    # of one group times the number of groups. These are the first of `limits`, or all.
    noise: tuple[float, ...]
    # The number of individuals that a group needs to appear almost always under each limit, where
    # groups are not listed; else empty.
    sizes: tuple[int, ...] = ()
    # The noise of each count, independent of the others; None if none exists.
    law: AdditiveMechanism | None = None
    # Whether the noise of the query is normal; else it is taken to be Laplace noise.
    is_normal: bool = False

    def best_loss(self, counts: Sequence[int]) -> LossOfLimit:
        """The limit that has the least error, and what it loses; `counts` are those of
        `place`."""
        return self.loss(counts, self.place(counts))

    def place(self, counts: Sequence[int]) -> int:
        """Which limit has the least error.

        Where two standard deviations are more than a tenth of all individuals, noise hides who has
        more, and no limit below `BLIND` is taken. If groups are not listed, it is a limit under
        which a group of a usual size appears; if none exists, the limit with the smallest such
        size.

        `counts`: the noisy number of individuals up to each limit and above the one before it, and
        last of those above all.
        """
        tail = self._tail(counts)
        places = [*range(len(self.noise))]
        variance = 0.0 if self.law is None else self.law.variance()
        if _BLINDING * math.sqrt(variance) > max(1.0, float(sum(counts))):
            places = [p for p in places if self.limits[p] >= BLIND] or places[-1:]
        if self.sizes:
            usual = self.usual_size(counts)
            appears = [p for p in places if self.sizes[p] <= usual]
            places = appears or [min(places, key=lambda p: self.sizes[p])]
        noise = np.clip(self.noise, 1e-9, 1e100)
        errors = np.log(
            median_error(tail.dropped[:, : noise.size], noise, is_normal=self.is_normal)
        )
        regret = ((errors - errors.min(axis=1)[:, None]) * tail.weights[:, None]).sum(axis=0)
        rounded = [round(float(each), 9) for each in regret]  # the same on every machine
        place: int = min(places, key=rounded.__getitem__)
        return place

    def loss(self, counts: Sequence[int], place: int) -> LossOfLimit:
        """What a limit loses; `counts` are those of `place`."""
        tail = self._tail(counts)
        dropped = tail.median(tail.dropped[:, place])
        most = self.most(counts, place, _MISS)
        return LossOfLimit(place, dropped, self._every(counts, tail), self.noise[place], most)

    def most(self, counts: Sequence[int], place: int, miss: Fraction) -> MostDropped:
        """How much a limit drops at most, with probability 1 - `miss`, if no individual has more
        than a number of rows that comes with it; see above for why that holds. `counts`: as for
        `place`. `place`: which of the limits. `miss`: how often more may be dropped.
        """
        times, least = REACH
        levels = [p for p, n in enumerate(self.limits) if n >= least] or [len(self.limits) - 1]
        wanted = times * self.limits[place]
        number, last = next(
            ((k, p) for k, p in enumerate(levels) if self.limits[p] >= wanted),
            (len(levels) - 1, levels[-1]),
        )
        seen = sum(
            int(counts[p]) * (self.limits[p] - self.limits[place])
            for p in range(place + 1, last + 1)
        )
        hidden, others = 0, 0
        if self.law is not None:
            ends = self.limits[: last + 1]
            hidden = quantile_of_losses(self.law, ends, miss / 2 ** (number + 2))
            others = quantile_of_losses(self.law, (1,) * len(counts), miss / 2)
        above = sum(map(int, counts[place + 1 :])) + others
        most = max(0, seen + hidden) if last > place else 0
        return MostDropped(most, self.limits[last], max(0, above))

    def share(self, counts: Sequence[int], place: int) -> float:
        """About which share of all rows a limit drops."""
        tail = self._tail(counts)
        return min(1.0, tail.median(tail.dropped[:, place]) / self._every(counts, tail))

    def above(self, counts: Sequence[int]) -> list[float]:
        """About how many individuals have more than each limit."""
        tail = self._tail(counts)
        return [tail.median(tail.above[:, place]) for place in range(len(self.limits))]

    def _tail(self, counts: Sequence[int]) -> Tail:
        return tail_of(self.limits, tuple(map(int, counts)), self.law)

    def _every(self, counts: Sequence[int], tail: Tail) -> float:
        """About how many rows all individuals have; 1 at least."""
        whole, above = max(1.0, float(sum(counts))), tail.median(tail.above[:, 0])
        first = whole + (self.limits[0] - 1) * (whole + above) / 2
        return max(1.0, tail.median(tail.dropped[:, 0]) + first)

    def usual_size(self, counts: Sequence[int]) -> float:
        """About how many individuals a group has, if there are `GROUPS` and rows fall into all
        alike: one who has t rows is in a group with probability 1 - (1 - 1 / GROUPS)^t. In each bin
        it is taken half way between its ends.
        """
        tail, places = self._tail(counts), range(len(self.limits))
        individuals = max(1.0, float(sum(counts)))
        above = [individuals, *(tail.median(tail.above[:, place]) for place in places)]
        missed = [(1 - 1 / GROUPS) ** n for n in (1, *self.limits)]
        size = above[-1]
        for place in places:
            share = 1 - (missed[place] + missed[place + 1]) / 2
            size += (above[place] - above[place + 1]) * share
        return size


def median_error(dropped: Floats, noise: Floats, *, is_normal: bool) -> Floats:
    """The median of the absolute error of a number that lacks this much and has noise.

    Of |e - d| for Laplace noise e of scale b it is d + b log(1 + exp(-2 d / b)), because e is
    within m >= d >= 0 of d with probability 1 - exp(-m / b) cosh(d / b). For normal noise
    (d^p + m^p)^(1 / p) with its own median m and p = 3.2 is within 4%.

    `dropped`: how much it lacks. `noise`: the error by noise, with 95%. `is_normal`: whether noise
    is normal, or else Laplace noise.
    """
    if is_normal:
        own, power = noise * (0.6745 / _NORMAL), 3.2
        most = np.maximum(dropped, own)
        normal: Floats = most * ((dropped / most) ** power + (own / most) ** power) ** (1 / power)
        return normal
    scale = noise / _LAPLACE
    laplace: Floats = dropped + scale * np.log1p(np.exp(-np.minimum(2 * dropped / scale, 700.0)))
    return laplace


@lru_cache(maxsize=256)
def quantile_of_losses(law: AdditiveMechanism, ends: tuple[int, ...], miss: Fraction) -> int:
    """A z with P(sum of ends[i] max(0, -e[i]) > z) <= miss, for independent noise e of a law that
    is symmetric about 0; rounded up.

    Each term is rounded up to a grid, and their laws are convolved: so what comes out is at least
    the quantile, and at most about a twentieth above it.
    """
    largest = ends[-1]
    top = largest * law.quantile(1 - miss / 4)
    cells, step = 2048, max(1.0, top / 512)
    whole = np.zeros(cells)
    whole[0] = 1.0
    edges = np.arange(cells, dtype=np.float64) * step
    for end in ends:
        above = law.above(edges / end)
        masses = np.concatenate([[1 - above[0]], above[:-1] - above[1:]])
        used = int(np.max(np.nonzero(above > 1e-18)[0], initial=0)) + 2
        whole = np.convolve(whole, masses[:used])[:cells]
    reached = np.cumsum(whole)
    place = int(np.searchsorted(reached, 1 - float(miss) * (1 - 1e-9)))
    return math.ceil(place * step)


def remark_of(loss: LossOfLimit, limit: str, by_groups: bool) -> str:
    """What was found, in words. `loss`: what it loses. `limit`: the limit as an analyst writes it.
    `by_groups`: whether groups of individuals are limited, or rows.
    """
    what, of = ("groups of individuals", "groups") if by_groups else ("rows", "rows")
    most = max(loss.dropped, loss.most.rows)
    return (
        f"dpframe chose {limit}, which drops about {loss.dropped:,.0f} {what} "
        f"({_percent(loss.share)}); the noise would hide a few people with very many {of}: if some "
        f"have up to {loss.most.reach:,} each, up to {most:,.0f} {what} may be missing "
        f"({_percent(loss.most_share)})"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
