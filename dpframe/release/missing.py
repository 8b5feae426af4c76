"""The effect of missing rows on results: intervals under a limit that was found.

A limit that was found drops no more than this many rows (or groups of individuals), as
`dpframe.planning.limit_rule` says, unless with a small probability. The ends of an interval are
moved by what this many may do at most, so that it holds what all rows would give.

- Sums, counts, numbers of distinct values and of cells: one row adds no less than min(lo, 0) and no
  more than max(hi, 0). Of totals of individuals, one more row moves the total within its bounds,
  and an individual has one total in each group: so it is the number of individuals that counts.
- Means: with k rows left and d missing ones, m = m_k + d / (k + d) (m_d - m_k), and both means are
  within the bounds. So with s = D / (k + D) the ends are moved towards the bounds by the share s,
  where D >= d is how many are missing at most and k how many are left at least.
- Variances: V = (1 - s) V_k + s V_d + s (1 - s) (m_k - m_d)^2 with the same s or less, where
  V_d <= w^2 / 4 and |m_k - m_d| <= w for the width w of the bounds.
- Ratios: those of the ends of both totals.

Where none of these is known, as of means by grouping sets, all that the bounds allow is left; where
that has no ends they are null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate, Noisy, Query, shifted
from dpframe.aggregates.mean import BoundMean, BoundVariance
from dpframe.aggregates.measurement import Additive
from dpframe.aggregates.noise import JointNoise
from dpframe.aggregates.ratio import BoundRatio
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import Ends
from dpframe.aggregates.statistics import Statistic, UnitCount, UnitRows
from dpframe.frames.contribution_limits import LimitGroups

__all__ = ["MissingRows"]

Floats = NDArray[np.float64]
_OUT = 2.0**-48
"""Ends are moved outwards by more than a few roundings."""
_ADDS_UP = ("count", "sum", "n_unique", "histogram", "cdf")


@dataclass(frozen=True, slots=True, eq=False)
class MissingRows:
    """How much a query may lack.

    Parameters
    ----------
    most
        This many rows at most, or all rows of individuals in this many groups.
    individuals
        This many individuals at most lack any.
    by_groups
        Whether it is groups of individuals.
    scope
        The frame and the groups of the query.
    """

    most: int
    individuals: int
    by_groups: bool
    scope: QueryScope

    @classmethod
    def of(cls, query: Query, most: int, individuals: int) -> MissingRows | None:
        """How much a query lacks under the limit that was found for it; None where none was."""
        if not query.finds_limit:
            return None
        by_groups = isinstance(query.relation.steps[-1][0], LimitGroups)
        return cls(most, individuals, by_groups, query.scope)

    def widen(
        self,
        aggregate: BoundAggregate,
        ends: Ends,
        values: Sequence[Noisy],
        noise: JointNoise,
        level: Fraction,
    ) -> Ends:
        """The ends with what is missing.

        Parameters
        ----------
        aggregate, values, noise
            What the result is made of.
        ends
            The ends between which the result without the missing rows is with probability (1 +
            `level`) / 2.
        level
            With which probability the ends that come out hold, apart from `most`: half of what may
            go wrong is left for how many rows there are.
        """
        if not self.most:
            return ends
        if (
            self.scope.facts.norm is not None
        ):  # rows that are left count more where others are missing
            return _unknown(ends)
        half = (1 + level) / 2
        if isinstance(aggregate, BoundMean):
            share, _ = self._share(aggregate, values[1], noise.reach(1, half))
            return _between(ends, share, aggregate.bounds)
        if isinstance(aggregate, BoundVariance):
            share, left = self._share(aggregate, values[2], noise.reach(2, half))
            return _spread(aggregate, ends, share, left)
        if isinstance(aggregate, BoundRatio):
            return self._ratio(aggregate, values, noise, half)
        kind = aggregate.request.kind
        if kind in _ADDS_UP:
            low, high = self._moves(plain_aggregate(aggregate))
            return _moved(ends[0], math.floor(low)), _moved(ends[1], math.ceil(high))
        inner = plain_aggregate(aggregate)
        if isinstance(inner, BoundMean):
            return _between(ends, np.ones(len(ends[0])), inner.bounds)
        if isinstance(inner, BoundVariance):
            nobody = np.zeros(len(ends[0]))
            return _spread(inner, ends, np.ones(len(ends[0])), nobody)
        return _unknown(ends)

    def _moves(self, aggregate: BoundAggregate, number: int = 0) -> tuple[Fraction, Fraction]:
        """The least and the most that what is missing would add to a number of a part."""
        part = aggregate.uses[number].part
        table = part.tables[0]
        statistic = table.statistic
        adds = self.scope.rules.addition(table)
        low = min(adds.lo, 0) * statistic.step
        high = max(adds.hi, 0) * statistic.step
        of_cells = table.cells is not None and table.cells.of_individuals
        if not statistic.of_individuals and not of_cells:
            times = self.most * self._rows_of_one(statistic)
            return low * times, high * times
        times = min(self.most, self.individuals)  # each of them is once in a group
        if not self.by_groups and (of_cells or not _rises(statistic)):
            # with all of its rows an individual has another total, or is in another cell
            return (low - high) * times, (high - low) * times
        return low * times, high * times

    def _rows_of_one(self, statistic: Statistic) -> int:
        """How many rows one of the missing has."""
        if not self.by_groups or statistic.of_individuals:
            return 1
        spread = self.scope.rules.spread
        return spread.tight[2] if spread.is_bounded else 1

    def _share(
        self, aggregate: BoundMean | BoundVariance, count: Noisy, reach: int
    ) -> tuple[Floats, Floats]:
        """Which share of all values is missing at most, and how many are left at least."""
        part = aggregate.uses[-1].part
        assert isinstance(part, Additive)
        statistic = part.table.statistic
        most = float(self.most * self._rows_of_one(statistic))
        if statistic.of_individuals:
            most = float(min(self.most, self.individuals))
        left = np.maximum(0.0, count.reshape(-1).astype(np.float64) - reach)
        if statistic.of_individuals and not self.by_groups:
            return np.ones(left.shape), left  # those that are left may have other totals
        return most / (left + most), left

    def _ratio(
        self, aggregate: BoundRatio, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> Ends:
        """By interval arithmetic: no ends where the total below the line may be 0."""
        ends = list[tuple[Floats, Floats]]()
        for number, use in enumerate(aggregate.uses):
            step, reach = float(use.part.step), noise.reach(number, level)
            least, most = self._moves(aggregate, number)
            total = values[number].reshape(-1).astype(np.float64)
            ends.append(
                (
                    (total - reach) * step + float(least),
                    (total + reach) * step + float(most),
                )
            )
        (a_low, a_high), (b_low, b_high) = ends
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = np.stack([a / b for a in (a_low, a_high) for b in (b_low, b_high)])
        known = (b_low > 0) | (b_high < 0)
        low, high = np.where(known, corners.min(0), np.nan), np.where(known, corners.max(0), np.nan)
        found = (low - np.abs(low) * _OUT, high + np.abs(high) * _OUT)
        lower, upper = (pl.Series(aggregate.name, end).fill_nan(None) for end in found)
        return lower, upper


def plain_aggregate(aggregate: BoundAggregate) -> BoundAggregate:
    """The aggregate that is rebuilt from other tables."""
    inner = getattr(aggregate, "inner", None)
    if isinstance(inner, tuple):
        inner = inner[0]
    return plain_aggregate(inner) if isinstance(inner, BoundAggregate) else aggregate


def _rises(statistic: Statistic) -> bool:
    """Whether more rows of an individual never lower what it adds."""
    return isinstance(statistic, (UnitCount, UnitRows))


def _unknown(ends: Ends) -> Ends:
    low, high = (pl.Series(end.name, [None] * len(end), dtype=end.dtype) for end in ends)
    return low, high


def _moved(end: pl.Series, by: int) -> pl.Series:
    """Numbers moved by a whole number outwards, and held at the limits of their type."""
    whole = end.to_physical()
    if whole.dtype.is_integer():
        numbers = whole.cast(pl.Int64).fill_null(0).to_numpy()
        series = pl.Series(end.name, shifted(numbers, by), dtype=pl.Int64)
        return pl.select(pl.when(whole.is_not_null()).then(series)).to_series().cast(end.dtype)
    moved = whole + float(by)
    return moved + moved.abs() * math.copysign(_OUT, by)


def _between(ends: Ends, share: Floats, bounds: tuple[Fraction, Fraction]) -> Ends:
    """Ends that are moved towards bounds by a share of the way."""
    found = []
    for end, bound, down in zip(ends, map(float, bounds), (True, False), strict=True):
        number = end.to_physical().cast(pl.Float64).to_numpy()
        moved = number + share * (bound - number)
        moved = moved + np.abs(moved) * (-_OUT if down else _OUT)
        moved = np.clip(moved, float(bounds[0]), float(bounds[1]))
        found.append(_like(end, moved, down=down))
    return found[0], found[1]


def _like(end: pl.Series, numbers: Floats, *, down: bool) -> pl.Series:
    """Numbers as a series of the type of another, rounded outwards where that is whole."""
    physical = end.to_physical().dtype
    if physical.is_integer():
        numbers = np.floor(numbers) if down else np.ceil(numbers)
    found = pl.Series(end.name, numbers).fill_nan(None)
    return found.cast(physical).cast(end.dtype)


def _spread(aggregate: BoundVariance, ends: Ends, share: Floats, left: Floats) -> Ends:
    """Ends of a variance, or of its root, with this many values left at least."""
    low, high = (end.to_numpy().astype(np.float64) for end in ends)
    if aggregate.root:
        low, high = low**2, high**2
    width, ddof = float(aggregate.width), aggregate.ddof
    enough = left > ddof
    with np.errstate(divide="ignore", invalid="ignore"):
        fewer = np.where(enough, (left - ddof) / left, 0.0)
        bessel = np.where(enough, left / (left - ddof), 1.0 + ddof)
    largest = width**2 / 4
    low = (1 - share) * low * fewer
    high = np.minimum(largest, high + share * 1.25 * width**2) * bessel
    if aggregate.root:
        low, high = np.sqrt(low), np.sqrt(high)
    lower = pl.Series(ends[0].name, low * (1 - _OUT)).fill_nan(None)
    return lower, pl.Series(ends[1].name, high * (1 + _OUT)).fill_nan(None)
