"""Where exact variances lie, given noisy sums of squares, noisy sums and noisy counts.

In the terms of `derived_error`, with v' the plain noisy variance and m' the noisy mean,

    N' v' - V (N' - ddof) = T - U^2 / N',
    T = Z - 2 m X + (h^2/2 + m^2 - V) Y,    U = X - m Y.

Were m known, V would be where this lies between quantiles of the right side, as for means. As m' is
what is known, V is kept where

    -k t(m', V) - var(U) / N'  <=  N' v' - V (N' - ddof)  <=  k t(m', V),

with t the one-sided quantile of T. The joint law gives how often that fails, for means and
variances all over the range. k, near 1, is the least with which it fails no more often than it
may for any of them. It depends on the exact count; the largest for counts that are plausible is
taken, at a fiftieth of what may go wrong (Berger and Boos 1994). Where the noisy count is not
well above its noise, all variances that bounds allow are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import JointNoise, Slices, pulls
from dpframe.aggregates.mean_interval import least_within
from dpframe.core.sums import weighted_sum

__all__ = ["variance_ends"]

Floats: TypeAlias = "NDArray[np.float64]"
Ends: TypeAlias = "tuple[Floats, Floats]"

_MEANS: Final = 9
_VARIANCES: Final = 13
_FOR_COUNT: Final = Fraction(2, 100)
_RATIO: Final = 1.5
_CLOSE: Final = 3e-3
_TRIED: Final = 11
_LEAST: Final = 2.0**-900
"""For smaller squares floats have too few digits to give more than their bound."""


def variance_ends(
    parts: tuple[Floats, Floats, Floats], noise: JointNoise, half: float, ddof: int, miss: Fraction
) -> Ends:
    """The least and the largest sample variance of each group.

    Parameters
    ----------
    parts
        The noisy sums of squares and of values around the middle, and the noisy counts.
    noise
        The noise of the squares less half their largest value, of the sum and of the count.
    half
        Half the width of the bounds.
    ddof
        Delta degrees of freedom.
    miss
        How often the exact variance may lie outside.
    """
    count = parts[2]
    rule = _Rule(noise, half, ddof, miss)
    fewest = np.maximum(count - rule.reach, ddof + 1.0)
    low, high = np.zeros(count.shape), half**2 * fewest / (fewest - ddof)
    known = (count >= rule.least) & (half**2 > _LEAST)
    if known.any():
        ends = rule.ends(*(part[known] for part in parts))
        low[known] = np.clip(ends[0], 0.0, high[known])
        high[known] = np.clip(ends[1], 0.0, high[known])
    return low, high


@dataclass(frozen=True, slots=True)
class _Rule:
    """How ends follow from what is released.

    Parameters
    ----------
    noise, half, ddof, miss
        As for `variance_ends`.
    """

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
    def allowed(self) -> float:
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

    def missed(q: Floats) -> Floats:
        return weighted_sum(slices.above(shift + q[:, None]), slices.weights)

    found = least_within(missed, m.size, rule.allowed / 2, h**2).reshape(means.size, -1)
    if rule.noise.even:
        return np.append(-means[:0:-1], means), variances, np.concatenate((found[:0:-1], found))
    return means, variances, found


@lru_cache(maxsize=256)
def _factor(rule: _Rule, count: float) -> float:
    """The least k, a little rounded up, that does for all data with this many values."""
    slices, h = rule.slices, rule.half
    x, y = slices.others
    means, variances, table = _table(rule)
    m, v = _tried(rule, count)
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

    def missed(k: Floats) -> Floats:
        high = np.where(kept, shift + k[:, None] * t, np.inf)
        low = np.where(kept, shift - k[:, None] * t - extra, -np.inf)
        return np.asarray(slices.outside(low, high).max(keepdims=True))

    return float(least_within(missed, 1, rule.allowed, 1.0)[0]) * (1 + _CLOSE)


def _tried(rule: _Rule, count: float) -> Ends:
    """Means and variances all over the range, as columns."""
    h, pairs = rule.half, []
    for m in np.linspace(0.0 if rule.noise.even else -h, h, _TRIED).tolist():
        room = (h * h - m * m) * count / (count - rule.ddof)
        pairs += [(m, room * part) for part in (0.0, 0.06, 0.3, 0.6, 1.0)]
    found = np.asarray(pairs)
    return found[:, :1], found[:, 1:]
