"""Means, variances and standard deviations, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Aggregate, BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.count import count_of, units_with
from dpframe.aggregates.error import ErrorRule, MeanError, NoErrorBound, VarianceError
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.noise import JointNoise, Slices, pulls
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.statistics import GridSum, SquareSum, is_per_unit, total_of
from dpframe.aggregates.values import (
    Value,
    as_series,
    bounds_of,
    number_of_time,
    numeric_value,
    show_value,
)
from dpframe.core.exact import show, weighted_sum
from dpframe.core.interval import Grid, grid_for, grid_of_squares
from dpframe.errors import UnsupportedOperation
from dpframe.frames.groups import SetGroups
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.rows.fold import domain, words

# -- means of many groups, moved towards their common mean by as much as their noise makes likely -
# For a small group the noisy mean S / N is usually noise, and its neighbours are more informative.
# With true means spread around mu with variance t, and noises X of S and Y of N,
#
#     S - mu N = n (mean - mu) + X - mu Y,
#
# so the least squares estimate of a group's mean is mu + n t (S - mu N) / (n**2 t + V), where V is
# the variance of X - mu Y. It is the noisy mean where n**2 t is far above V, and mu where the noise
# hides the group (Robbins 1956; Efron and Morris 1973). The values of mu and t maximise the
# likelihood of the released numbers, with noise and means taken as normal. N replaces n where N is
# above 0. All of this is post-processing: it uses only released numbers and the public law of their
# noise.

Floats: TypeAlias = "NDArray[np.float64]"

SHRUNK: Final = (
    "moved towards the mean of all groups by as much as its noise is above their spread, and so "
    "biased: groups come out more alike than they are, most of all small ones, and one whose noisy "
    "count is below 1 gets the mean of all"
)
UNKNOWN: Final = "null where the noisy count is below 1"
"""The words of plans for means that are moved, and for others."""
_LEAST_SHARE: Final = 2.0**-12
"""The least spread of means that is distinguished from 0, relative to half the bounds' width."""
_SPREADS: Final = 25
_STEPS: Final = 4
_FINER: Final = 12
_GOLDEN: Final = (5.0**0.5 - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Prior:
    """How the means of groups lie."""

    mean: float  # What they are spread around
    variance: float  # How far, squared; 0 where noise explains all their differences


def shrink_means(
    total: Floats, count: Floats, variances: tuple[float, float], half: float
) -> Floats:
    """Means around the middle of the bounds, from noisy centred sums and counts, one per group.
    `total`, `count`: the noisy numbers. `variances`: the variances of the noise of a sum, and of a
    count. `half`: half the width of the bounds, above 0.
    """
    prior = prior_of(total, count, variances, half)
    size = np.maximum(count, 0.0)
    spread = size * size * prior.variance + _noise(prior.mean, variances)
    moved = np.zeros(total.shape)
    np.divide(
        size * prior.variance * (total - prior.mean * count), spread, where=spread > 0, out=moved
    )
    found: Floats = np.clip(prior.mean + moved, -half, half)
    return found


def prior_of(total: Floats, count: Floats, variances: tuple[float, float], half: float) -> Prior:
    """The common mean and the spread under which the noisy numbers are most likely.

    Likelihoods may have several maxima: the largest of a grid of spreads is followed by golden
    section between its neighbours. A spread that is not more likely than 0 counts as 0.
    """
    spreads = [0.0, *(half * np.geomspace(_LEAST_SHARE, 1.0, _SPREADS)).tolist()]
    tried = [_at(spread, total, count, variances, half) for spread in spreads]
    best = min(range(len(tried)), key=lambda i: tried[i][0])
    if best == 0:
        return Prior(tried[0][1], 0.0)
    low, high = spreads[best - 1], spreads[min(best + 1, _SPREADS)]
    found = (*tried[best], spreads[best])
    for _ in range(_FINER):
        inner = (high - (high - low) * _GOLDEN, low + (high - low) * _GOLDEN)
        left, right = (_at(spread, total, count, variances, half) for spread in inner)
        found = min(found, (*left, inner[0]), (*right, inner[1]))
        low, high = (low, inner[1]) if left[0] <= right[0] else (inner[0], high)
    return Prior(found[1], found[2] ** 2)


def _at(
    spread: float, total: Floats, count: Floats, variances: tuple[float, float], half: float
) -> tuple[float, float]:
    """Minus twice the logarithm of the likelihood at the likeliest common mean, and that mean."""
    size = np.maximum(count, 0.0)
    between = size * size * spread**2
    mean = 0.0
    for _ in range(_STEPS):  # the mean is in the variance of the noise, where it matters little
        weights = 1.0 / (between + _noise(mean, variances))
        below = float((count * count * weights).sum())
        above = float((count * total * weights).sum())
        mean = min(half, max(-half, above / below)) if below > 0 else 0.0
    variance = between + _noise(mean, variances)
    off = total - mean * count
    return float((off * off / variance + np.log(variance)).sum()), mean


def _noise(mean: float, variances: tuple[float, float]) -> float:
    """The variance of X - mean * Y, whose noises are uncorrelated."""
    return variances[0] + mean * mean * variances[1]


def shrink_offsets(
    values: Sequence[NDArray[np.int64]],
    noise: tuple[float, float],
    width: Fraction,
    step: Fraction,
) -> Floats:
    """Means less the middle of the bounds. `values`: the noisy sums, in steps, and counts. `noise`:
    the variances of their noise, in steps squared. `width`, `step`: the width of the bounds, and
    the step of a sum.
    """
    total, count = (part.reshape(-1).astype(np.float64) for part in values)
    half = float(width / 2 / step)  # in steps, which no bounds make too large for floats
    return shrink_means(total, count, noise, half) * float(step)


def variances_of(noise: Sequence[Mechanism]) -> tuple[float, float]:
    """The variances of the noise of a sum and of a count, in steps squared; 0 if none exists."""
    if not noise:
        return 0.0, 0.0
    total, count = noise
    assert isinstance(total, AdditiveMechanism)
    assert isinstance(count, AdditiveMechanism)
    return total.variance(), count.variance()


def no_bound(name: str) -> NoErrorBound:
    """Why the error of a mean that is moved towards others has no bound."""
    return NoErrorBound(
        f"{name!r} is biased towards the mean of all groups, by how much depends on the data",
        "ask for interval=0.95, which holds the exact mean all the same, simulate it on public "
        "data, or leave shrink=True out",
    )


def require_groups(request: Request, scope: QueryScope) -> None:
    """Refuse to shrink where there are no means to move towards. Raises `UnsupportedOperation`
    without groups, and by several sets of columns.
    """
    if scope.groups is None or isinstance(scope.groups, SetGroups):
        what = "there is one mean" if scope.groups is None else "those of several sets differ"
        raise UnsupportedOperation(
            f"shrink=True moves means of groups towards their common mean, and here {what}",
            where=request.name,
            remedy=("leave shrink=True out", "use it in a group_by of one set of columns"),
        )


# -- where exact means lie, given noisy sums and counts -------------------------------------------
# With centred sum S' = n m + X and count N' = n + Y the number S' - m N' is X - m Y, whose law is
# known for every m. So {m : |S' - m N'| <= q(m)}, with q(m) the quantile of |X - m Y|, holds the
# exact mean with the given confidence, for any data (Fieller 1954). It needs no division, so it is
# as right where the noisy count is 0 or below, and where it is far from that it is no wider than
# the error of the mean is. Clamped results need no care: the set is of what is exact.

Ends: TypeAlias = "tuple[Floats, Floats]"

_CELLS: Final = 32
_UP: Final = 1.0 + 2e-3
_AT_ONCE: Final = 1 << 16


def mean_ends(total: Floats, count: Floats, noise: JointNoise, half: float, miss: Fraction) -> Ends:
    """The least and the largest mean, around the middle of the bounds; NaN if none exists.

    `total` has for each group the noisy sum around the middle, and `count` the noisy count; `noise`
    is their joint noise. `half` is half the width of the bounds, and `miss` is how often the exact
    mean may lie outside.
    """
    knots, reach = _reaches(noise, half, miss)
    ends = [
        _fieller(total[i : i + _AT_ONCE], count[i : i + _AT_ONCE], knots, reach)
        for i in range(0, max(1, total.size), _AT_ONCE)
    ]
    return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _fieller(total: Floats, count: Floats, knots: Floats, reach: Floats) -> Ends:
    """The ends of the union over cells of means; within a cell one half-width is enough for all
    means."""
    low, high = np.full(total.shape, np.inf), np.full(total.shape, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        for a, b, q in zip(knots[:-1], knots[1:], reach, strict=True):
            first, last = (total - q) / count, (total + q) / count
            least, most = np.minimum(first, last), np.maximum(first, last)
            every = (count == 0) & (np.abs(total) <= q)
            least = np.where(count == 0, np.where(every, a, np.inf), np.maximum(least, a))
            most = np.where(count == 0, np.where(every, b, -np.inf), np.minimum(most, b))
            found = least <= most
            low = np.where(found, np.minimum(low, least), low)
            high = np.where(found, np.maximum(high, most), high)
    empty = low > high
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


@lru_cache(maxsize=256)
def _reaches(noise: JointNoise, half: float, miss: Fraction) -> Ends:
    """Ends of cells of means, and for each cell a bound on the quantile of |X - m Y| in it.

    It rises with |m|: sums of symmetric unimodal noises spread more with larger coefficients.
    """
    slices = noise.slices(float(miss), pulls((half,)))
    (y,) = slices.others
    knots = np.linspace(-half, half, 2 * _CELLS + 1)
    sides = knots[_CELLS:] if noise.even else knots

    def chance_of_miss(q: Floats) -> Floats:
        shift = sides[:, None] * y
        return slices.outside(shift - q[:, None], shift + q[:, None])

    found = least_within(chance_of_miss, sides.size, float(miss), half) * _UP
    every = np.append(found[:0:-1], found) if noise.even else found
    return knots, np.maximum(every[:-1], every[1:])


def least_within(
    chance_of_miss: Callable[[Floats], Floats], size: int, allowed: float, unit: float
) -> Floats:
    """For each of `size` laws about the least q with chance_of_miss(q) <= allowed; never below it.

    Tails are about exponential: lines through their logarithms are followed, within a bracket.
    """
    low, over = np.zeros(size), np.full(size, np.nan)
    high = np.full(size, unit)
    under = chance_of_miss(high)
    while (short := under > allowed).any():
        low, over = np.where(short, high, low), np.where(short, under, over)
        high = np.where(short, high * 4, high)
        under = chance_of_miss(high)
    over = np.where(np.isnan(over), chance_of_miss(low), over)
    low = np.where(over > allowed, low, 0.0)
    high = np.where(over > allowed, high, 0.0)
    for _ in range(40):
        if (high <= low * _UP).all() or (high <= unit * 1e-13).all():
            break
        fall = np.log(np.maximum(over, 1e-300)) - np.log(np.maximum(under, 1e-300))
        rest = np.log(np.maximum(over, 1e-300)) - math.log(allowed)
        share = np.clip(rest / np.maximum(fall, 1e-12) + 0.01, 0.05, 0.95)
        middle = low + share * (high - low)
        at = chance_of_miss(middle)
        short = at > allowed
        low, over = np.where(short, middle, low), np.where(short, at, over)
        high, under = np.where(short, high, middle), np.where(short, under, at)
    return high


# -- where exact variances lie, given noisy sums of squares, noisy sums and noisy counts ----------
# In the terms of `derived_error`, with v' the plain noisy variance and m' the noisy mean,
#
#     N' v' - V (N' - ddof) = T - U^2 / N',
#     T = Z - 2 m X + (h^2/2 + m^2 - V) Y,    U = X - m Y.
#
# Were m known, V would be where this lies between quantiles of the right side, as for means. As m'
# is what is known, V is kept where
#
#     -k t(m', V) - var(U) / N'  <=  N' v' - V (N' - ddof)  <=  k t(m', V),
#
# with t the one-sided quantile of T. The joint law gives how often that fails, for means and
# variances all over the range. k, near 1, is the least with which it fails no more often than it
# may for any of them. It depends on the exact count; the largest for counts that are plausible is
# taken, at a fiftieth of what may go wrong (Berger and Boos 1994). Where the noisy count is not
# well above its noise, all variances that bounds allow are kept.

_MEANS: Final = 9
_VARIANCES: Final = 13
_FOR_COUNT: Final = Fraction(2, 100)
_RATIO: Final = 1.5
_CLOSE: Final = 3e-3
_TRIED: Final = 11
_LEAST_SCALE: Final = 2.0**-900
"""For smaller squares floats have too few digits to give more than their bound."""


def variance_ends(
    parts: tuple[Floats, Floats, Floats], noise: JointNoise, half: float, ddof: int, miss: Fraction
) -> Ends:
    """The least and the largest sample variance of each group. `parts`: the noisy sums of squares
    and of values around the middle, and the noisy counts. `noise`: the noise of the squares less
    half their largest value, of the sum and of the count. `half`: half the width of the bounds.
    `ddof`: delta degrees of freedom. `miss`: how often the exact variance may lie outside.
    """
    count = parts[2]
    rule = _Rule(noise, half, ddof, miss)
    fewest = np.maximum(count - rule.reach, ddof + 1.0)
    low, high = np.zeros(count.shape), half**2 * fewest / (fewest - ddof)
    known = (count >= rule.least) & (half**2 > _LEAST_SCALE)
    if known.any():
        ends = rule.ends(*(part[known] for part in parts))
        low[known] = np.clip(ends[0], 0.0, high[known])
        high[known] = np.clip(ends[1], 0.0, high[known])
    return low, high


@dataclass(frozen=True, slots=True)
class _Rule:
    """How ends follow from what is released."""

    # As for `variance_ends`.
    noise: JointNoise
    half: float
    ddof: int
    miss: Fraction

    @property
    def reach(self) -> float:
        """How far the exact count may plausibly be from the noisy one."""
        return float(self.noise.reach(2, 1 - self.miss * _FOR_COUNT))

    @property
    def least(self) -> float:
        """The least noisy count with a finite interval."""
        return max(self.ddof + 1.0, math.ceil(self.reach))

    @property
    def allowed_miss(self) -> float:
        return float(self.miss * (1 - _FOR_COUNT))

    @property
    def slices(self) -> Slices:
        return self.noise.slices(float(self.miss), pulls((2 * self.half, 1.5 * self.half**2)))

    def ends(self, squares: Floats, total: Floats, count: Floats) -> Ends:
        """Solutions V of the inequality of the module; between nodes t is linear in V."""
        means, variances, table = _table(self)
        over, plain = count - self.ddof, squares - total * total / count
        mean = np.clip(total / count, -self.half, self.half)
        factor = self._factors(count)
        extra = self._spread(mean) / count
        size = [factor * np.interp(mean, means, column) for column in table.T]
        low, high = np.full(count.shape, np.inf), np.full(count.shape, -np.inf)
        for a, b, t, u in zip(variances[:-1], variances[1:], size[:-1], size[1:], strict=True):
            slope = (u - t) / (b - a)
            start = t - slope * a
            steep = over <= np.abs(slope)
            with np.errstate(divide="ignore", invalid="ignore"):
                least = np.where(steep, a, np.maximum(a, (plain - start) / (over + slope)))
                most = np.where(steep, b, np.minimum(b, (plain + start + extra) / (over - slope)))
            found = least <= most
            low = np.where(found, np.minimum(low, least), low)
            high = np.where(found, np.maximum(high, most), high)
        nearest = plain / over
        empty = low > high
        return np.where(empty, nearest, low), np.where(empty, nearest, high)

    def _spread(self, mean: Floats) -> Floats:
        """The variance of U."""
        x, y = self.slices.others
        weights = self.slices.weights
        found: Floats = weights @ (x * x) - 2 * mean * (weights @ (x * y))
        return np.asarray(found + mean * mean * (weights @ (y * y)))

    def _factors(self, count: Floats) -> Floats:
        """k for each noisy count: the largest of the plausible exact counts."""
        first = max(self.ddof + 1.0, self.least - self.reach)
        last = self._rounds(np.array([max(first, 300.0 * self._size)]), first, up=True)[0]
        low = self._rounds(np.maximum(count - self.reach, first), first, up=False)
        high = np.minimum(self._rounds(count + self.reach, first, up=True), last)
        low = np.minimum(low, last)
        found = np.ones(count.shape)
        for pair in set(zip(low.tolist(), high.tolist(), strict=True)):
            sizes = (first * _RATIO**i for i in range(int(pair[0]), int(pair[1]) + 1))
            factor = max(_factor(self, size) for size in sizes)
            found[(low == pair[0]) & (high == pair[1])] = factor
        return found

    @property
    def _size(self) -> float:
        """Beyond some hundred times this U^2 / N' is equivalent to 0."""
        return math.sqrt(float(self._spread(np.array([self.half]))[0])) / self.half

    def _rounds(self, count: Floats, first: float, *, up: bool) -> Floats:
        """The number of the count among first, first * ratio, ..., rounded."""
        places = np.log(count / first) / math.log(_RATIO)
        found: Floats = np.ceil(places - 1e-9) if up else np.floor(places + 1e-9)
        return found


@lru_cache(maxsize=64)
def _table(rule: _Rule) -> tuple[Floats, Floats, Floats]:
    """Means, variances, and t for each of both."""
    slices, h = rule.slices, rule.half
    x, y = slices.others
    variances = np.append(np.linspace(0.0, h**2, _VARIANCES), h**2 * (rule.ddof + 1.0))
    variances = np.unique(variances)
    means = np.linspace(0.0 if rule.noise.even else -h, h, _MEANS)
    m, v = (grid.reshape(-1, 1) for grid in np.meshgrid(means, variances, indexing="ij"))
    shift = 2 * m * x - (h**2 / 2 + m * m - v) * y

    def chance_of_miss(q: Floats) -> Floats:
        return weighted_sum(slices.above(shift + q[:, None]), slices.weights)

    found = least_within(chance_of_miss, m.size, rule.allowed_miss / 2, h**2).reshape(
        means.size, -1
    )
    if rule.noise.even:
        return np.append(-means[:0:-1], means), variances, np.concatenate((found[:0:-1], found))
    return means, variances, found


@lru_cache(maxsize=256)
def _factor(rule: _Rule, count: float) -> float:
    """The least k, a little rounded up, that does for all data with this many values."""
    slices, h = rule.slices, rule.half
    x, y = slices.others
    means, variances, table = _table(rule)
    m, v = _trial_moments(rule, count)
    size = np.maximum(count + y, rule.least)
    left = x - m * y
    shift = 2 * m * x - (h**2 / 2 + m * m - v) * y + left * left / size
    place = np.clip((count * m + x) / size, -h, h)
    column = np.clip(np.searchsorted(variances, v.ravel(), side="right") - 1, 0, variances.size - 2)
    share = (v.ravel() - variances[column]) / (variances[column + 1] - variances[column])
    rows = (1 - share)[:, None] * table.T[column] + share[:, None] * table.T[column + 1]
    t = np.stack([np.interp(p, means, row) for p, row in zip(place, rows, strict=True)])
    extra = rule._spread(place) / size
    kept = count + y >= rule.least - 0.5

    def chance_of_miss(k: Floats) -> Floats:
        high = np.where(kept, shift + k[:, None] * t, np.inf)
        low = np.where(kept, shift - k[:, None] * t - extra, -np.inf)
        return np.asarray(slices.outside(low, high).max(keepdims=True))

    return float(least_within(chance_of_miss, 1, rule.allowed_miss, 1.0)[0]) * (1 + _CLOSE)


def _trial_moments(rule: _Rule, count: float) -> Ends:
    """Means and variances all over the range, as columns."""
    h, pairs = rule.half, []
    for m in np.linspace(0.0 if rule.noise.even else -h, h, _TRIED).tolist():
        room = (h * h - m * m) * count / (count - rule.ddof)
        pairs += [(m, room * part) for part in (0.0, 0.06, 0.3, 0.6, 1.0)]
    found = np.asarray(pairs)
    return found[:, :1], found[:, 1:]


# -- means, variances and standard deviations, from centred sums and one shared count -------------


@dataclass(frozen=True, slots=True, eq=False)
class _Centred(BoundAggregate):
    """What is made of sums around the middle of bounds, and a count."""

    # The values as numbers, what they are clamped to, and the grid of their distances from the
    # middle of the bounds.
    value: Value
    bounds: tuple[Fraction, Fraction]
    grid: Grid
    of_totals: bool  # Whether values are totals of individuals
    per: Per  # Whether that is requested: where each individual has one row, rows are totals

    @property
    def is_of_totals(self) -> bool:
        return self.of_totals

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return (Clamp(self.value.tree, self.bounds, self.per == "unit"),)

    @property
    def width(self) -> Fraction:
        """The width of the bounds."""
        return self.bounds[1] - self.bounds[0]

    @property
    def middle(self) -> Fraction:
        """The middle of the bounds."""
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def bias(self) -> Fraction:
        """How far rounding to the grid moves a mean at most."""
        exact = self.value.is_whole and self.grid.is_exact
        return Fraction(0) if exact else self.grid.bias_per_row

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return as_series(self.name, numbers[0], self.value.domain.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class BoundMean(_Centred):
    """The middle of the bounds, and a centred sum over a count."""

    shrink: bool = False  # Whether means of groups are moved towards their common mean
    # The variances of the noise of the sum and the count, in steps; 0 until they are known.
    noise: tuple[float, float] = (0.0, 0.0)

    @property
    def rests_on(self) -> int | None:
        return None if self.shrink else 1  # which moves means of few rows to the common one

    @property
    def depends_on_noise(self) -> bool:
        return self.shrink

    def knowing(self, noise: Sequence[Mechanism]) -> BoundMean:
        return replace(self, noise=variances_of(noise)) if self.shrink else self

    @property
    def note(self) -> str:
        dtype, centre = self.value.domain.dtype, self.grid.centre
        lo, hi = (show_value(end, dtype) for end in self.bounds)
        return (
            f"{f'{show_value(centre, dtype)} + ' if centre else ''}sum / count, "
            f"clamped to [{lo}, {hi}]; {SHRUNK if self.shrink else UNKNOWN}"
        )

    @property
    def error(self) -> ErrorRule:
        if self.shrink:
            return no_bound(self.name)
        return MeanError(self.width, self.middle)

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return () if column is None else (column.mean(),)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return as_series(self.name, self._mean(values), self.value.domain.dtype)

    def _mean(self, values: Sequence[Noisy]) -> Floats:
        lo, hi = map(float, self.bounds)
        if self.shrink and any(self.noise):
            offset = shrink_offsets(values, self.noise, self.width, self.grid.step)
        else:
            offset, _ = _ratio(values[0], values[1], self.grid.step)
        mean: Floats = np.clip(offset + float(self.grid.centre), lo, hi)
        return mean

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series]:
        dtype, half = self.value.domain.dtype, float(self.width) / 2
        total, count = (part.reshape(-1).astype(np.float64) for part in values)
        low, high = mean_ends(total * float(self.grid.step), count, noise, half, 1 - level)
        centre, bias = float(self.grid.centre), float(self.bias)
        low, high = centre + low - bias, centre + high + bias
        low, high = _holding(low, high, self._mean(values), *map(float, self.bounds))
        if dtype.is_temporal:  # which are whole
            low, high = np.floor(low), np.ceil(high)
        return as_series(self.name, low, dtype), as_series(self.name, high, dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Mean(Aggregate):
    """The mean of values clamped to bounds, over those that are neither null nor NaN.

    The sum is taken around the middle of the bounds, which halves its sensitivity, and divided by a
    noisy count: mean = c + S / N. At the worst true mean, an end of the bounds at distance h from
    c, the error is about (S's noise + h times N's noise) / N. Both noises have the same size when
    both parts cost the same; that split minimises their sum of squares. With `shrink` means of
    groups are moved towards their common mean, see `shrink_means`: less error, and a bias.

    Guarantee
    ---------
    S has values in [-h, h] with h half the width of the bounds: L1 = L2 = Linf = k h under
    add-remove adjacency, for change-one see the sum. N is a count. The quotient, clamped to the
    bounds and null where the noisy count is below 1 or within the 95% bound of its noise, is
    post-processing.

    Proof
    -----
    S is a sum over disjoint sets of rows, of values less the middle of public bounds, which the
    lowered expression clamps and centres itself. N is drawn with noise of its own or shared with
    another output that needs it; both are in the plan's cost.
    """

    bounds: GivenBounds = None
    per: Per = None
    shrink: bool = False

    kind: ClassVar[str] = "mean"
    positional: ClassVar[tuple[str, ...]] = ("bounds",)
    summary: ClassVar[str] = "mean of values clamped to bounds; nulls and NaN are skipped"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_mean((17, 90))',
        'pl.col("f64").dp_mean((-1.5, 0.1))',
        'pl.col("d").dp_mean((date(2000, 1, 1), date(2030, 1, 1)))',
    )

    def bind(self, request: Request, scope: QueryScope) -> BoundMean:
        if self.shrink:
            require_groups(request, scope)
        value, bounds, grid = _centre_grid(request, scope, self.bounds)
        of_totals = is_per_unit(request, scope, self.per, self.bounds, value.domain.dtype)
        total = Additive(Table(total_of(GridSum(value, grid), of_totals)))
        count = _count(request, scope, of_totals)
        uses = MeasurementUse(total, "mean.sum"), MeasurementUse(count, "mean.count")
        return BoundMean(request, uses, value, bounds, grid, of_totals, self.per, self.shrink)


@dataclass(frozen=True, slots=True, eq=False)
class BoundVariance(_Centred):
    """A variance, or its root, from a sum of squares, a sum and a count."""

    squares: Grid  # The grid of squared distances from the middle of the bounds
    ddof: int  # What the sum of squares is divided by, less than the count
    root: bool  # Whether it is the standard deviation

    @property
    def rests_on(self) -> int:
        return 2

    @property
    def note(self) -> str:
        what = "root of the variance" if self.root else "variance"
        lo, hi = map(show, self.bounds)
        return (
            f"{what} (ddof {self.ddof}) from sum of squares, sum and count, clamped to what values "
            f"in [{lo}, {hi}] allow; null where the noisy count is below {self.ddof + 1}"
        )

    @property
    def error(self) -> ErrorRule:
        return VarianceError(self.width, self.middle, self.ddof, self.root)

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        if column is None:
            return ()
        return (column.std(self.ddof) if self.root else column.var(self.ddof),)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        variance = self._variance(values)
        found = np.sqrt(variance) if self.root else variance
        return pl.Series(self.name, found).fill_nan(None)

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series]:
        low, high = self._variance_range(values, noise, 1 - level)
        if self.root:
            low, high = _down(np.sqrt(low)), _up(np.sqrt(high))
        return pl.Series(self.name, low), pl.Series(self.name, high)

    def _variance_range(
        self, values: Sequence[Noisy], noise: JointNoise, miss: Fraction
    ) -> tuple[Floats, Floats]:
        half, ddof = float(self.width) / 2, self.ddof
        square, total, count = (part.reshape(-1).astype(np.float64) for part in values)
        second = square * float(self.squares.step) + float(self.squares.centre) * count
        parts = (second, total * float(self.grid.step), count)
        low, high = variance_ends(parts, noise, half, ddof, miss)
        moved = 2 * half * float(self.bias)  # by a first moment that is off, squared
        bias = float(SquareSum(self.value, self.grid, self.squares).bias) + moved
        low, high = low - bias * (ddof + 1), high + bias * (ddof + 1)
        return _holding(low, high, self._variance(values), 0.0, half * half * (ddof + 1))

    def _variance(self, values: Sequence[Noisy]) -> Floats:
        second, count = _ratio(values[0], values[2], self.squares.step)
        first, _ = _ratio(values[1], values[2], self.grid.step)
        with np.errstate(divide="ignore", invalid="ignore"):
            bessel = np.where(count > self.ddof, count / (count - self.ddof), np.nan)
        largest = float(self.width**2 / 4)
        plain = second + float(self.squares.centre) - first * first
        clamped: Floats = np.clip(plain, 0.0, largest) * bessel
        return clamped


@dataclass(frozen=True, slots=True, eq=False)
class Variance(Aggregate):
    """The sample variance (ddof = 1 unless given) of values clamped to bounds.

    From three parts: the count, the sum of x - c and the sum of (x - c)^2 - h^2/2, where c is the
    middle of the bounds and h half their width. Count and sum are those of the mean, so a mean
    next to it costs nothing more. An error e of one row's size (h^2/2, h and 1) in these moves
    the variance by about h^2/2, h^2 and h^2/2 over N where the true mean is h/2 away from c; the
    split of the cost rests on that.

    Guarantee
    ---------
    Squares lie in [0, h^2] and are centred in turn, so their part has L1 = L2 = Linf = k h^2/2
    under add-remove adjacency. The variance, clamped to what the bounds allow and null where the
    noisy count is below 1, not above ddof or within the 95% bound of its noise, is post-processing.

    Proof
    -----
    Each of the three parts is a sum over disjoint sets of rows. Squares are those of the integers
    that values are placed at, clamped to [-h, h], so a row's addition is within its bounds for
    any rounding of floats.
    """

    bounds: GivenBounds = None
    ddof: int = 1
    per: Per = None

    kind: ClassVar[str] = "var"
    positional: ClassVar[tuple[str, ...]] = ("bounds",)
    summary: ClassVar[str] = "sample variance of values clamped to bounds"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("f64").dp_var((-2, 3))',)

    def bind(self, request: Request, scope: QueryScope) -> BoundVariance:
        value, bounds, grid = _centre_grid(request, scope, self.bounds)
        if value.domain.dtype.is_temporal:
            raise UnsupportedOperation(
                f"values of type {value.domain.dtype} have no {self.kind}",
                where=words(value.tree),
                remedy=number_of_time(value.domain.dtype),
            )
        of_totals = is_per_unit(request, scope, self.per, self.bounds, value.domain.dtype)
        squares = grid_of_squares(grid, scope.resolution)
        square = Additive(Table(total_of(SquareSum(value, grid, squares), of_totals)))
        total = Additive(Table(total_of(GridSum(value, grid), of_totals)))
        uses = (
            MeasurementUse(square, "var.sum_of_squares", Fraction(1, 4)),
            MeasurementUse(total, "var.sum"),
            MeasurementUse(_count(request, scope, of_totals), "var.count", Fraction(1, 4)),
        )
        about = value, bounds, grid, of_totals, self.per
        return BoundVariance(request, uses, *about, squares, self.ddof, self.kind == "std")


@dataclass(frozen=True, slots=True, eq=False)
class StandardDeviation(Variance):
    """The square root of the sample variance. It has the same parts, so in a query with a
    variance it is free.

    Guarantee
    ---------
    The guarantee of the variance.

    Proof
    -----
    The root of a released number is post-processing.
    """

    kind: ClassVar[str] = "std"
    summary: ClassVar[str] = "sample standard deviation of values clamped to bounds"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("i64").dp_std((0, 100))',)


def _centre_grid(
    request: Request, scope: QueryScope, given: GivenBounds
) -> tuple[Value, tuple[Fraction, Fraction], Grid]:
    """The value, its bounds, and the grid around their middle."""
    assert request.tree is not None
    value = numeric_value(request.tree, scope.facts.columns, request.kind)
    lo, hi = bounds_of(value, given, request.kind, distinct=True)
    whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
    return value, (lo, hi), grid_for(lo, hi, centred=True, integers=whole, bits=scope.resolution)


def _count(request: Request, scope: QueryScope, of_totals: bool) -> Additive:
    """Of values, or of individuals that have one."""
    assert request.tree is not None
    if of_totals:
        found = domain(request.tree, scope.facts.columns)
        return units_with(request.tree if found.nullable or found.nan else None)
    return count_of(request.tree, scope.facts.columns)


def _ratio(total: Noisy, count: Noisy, step: Fraction) -> tuple[Floats, Floats]:
    """total * step / count, NaN where the count is below 1; and the count as floats."""
    n = count.reshape(-1).astype(np.float64)
    n = np.where(n >= 1, n, np.nan)
    return total.reshape(-1).astype(np.float64) * float(step) / n, n


def _holding(
    low: Floats, high: Floats, released: Floats, least: float, most: float
) -> tuple[Floats, Floats]:
    """Ends within what bounds allow, rounded outwards, around what is released.

    Where no exact result is plausible (NaN) that is all that is left, or all that bounds allow
    where nothing is released either.
    """
    low, high = np.fmin(low, released), np.fmax(high, released)
    low, high = np.where(np.isnan(low), least, low), np.where(np.isnan(high), most, high)
    return np.clip(_down(low), least, most), np.clip(_up(high), least, most)


def _down(values: Floats) -> Floats:
    """A little less, by more than rounding errors."""
    return values - np.abs(values) * 2.0**-48


def _up(values: Floats) -> Floats:
    return values + np.abs(values) * 2.0**-48
