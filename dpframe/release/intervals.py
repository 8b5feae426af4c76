"""Intervals that hold the exact results with a given confidence: post-processing, so they are free.

A number that noise is added to lies within the noise's exact quantile of what is released. Means
and variances have sets of their own, from the joint law of their parts' noise (`mean_ends`,
`variance_ends`). Sums with public factors and ratios of these, such as a sum over a count, are
taken whole as well (`ratio_ends`). The ends of other arithmetic follow by interval arithmetic
from those of its aggregates; each aggregate gets an equal share of the miss probability (union
bound).

All that holds of groups that are listed, and of those that a draw of its own has found. A group
that was found by its noisy number appears because that is large, so intervals of groups near the
threshold hold less often than they say; plans with such groups warn of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import (
    BoundAggregate,
    MeasurementKey,
    Noisy,
    Output,
    Query,
    shift_by,
)
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.draw import Draw
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.mean import BoundMean, BoundVariance
from dpframe.aggregates.measurement import COUNT, Additive
from dpframe.aggregates.noise import JointNoise, noise_law
from dpframe.aggregates.ratio import BoundRatio, ratio_ends
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.shapes import Ends
from dpframe.aggregates.statistics import (
    DistinctIndividuals,
    RowCount,
    Statistic,
    UnitCount,
    UnitRows,
    ValueCount,
)
from dpframe.aggregates.sum import BoundSum
from dpframe.core.dtypes import FLOAT64, Domain
from dpframe.core.exact import Number, exact, nearest
from dpframe.core.interval import EVERYTHING, ZERO, Interval
from dpframe.core.tree import Call, Column, Literal, Tree, walk
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import LimitGroups
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.plan import confidence_of
from dpframe.rows.arithmetic import FloorDiv, Mod, Neg, TrueDiv
from dpframe.rows.fold import domain

# The intervals that are requested with results.


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of each number.

    Parameters
    ----------
    confidence
        How often they hold what they are of.
    sampling
        Whether they also hold what would be found of the population that the data are a sample of.
    """

    confidence: Fraction
    sampling: bool = False

    @property
    def words(self) -> str:
        """The identity of results with such intervals."""
        return f"{self.confidence}{' with sampling' if self.sampling else ''}"


def read_intervals(confidence: Number | None, sampling: object = False) -> Intervals | None:
    """The request; None for no intervals.

    Raises
    ------
    UnsupportedOperation
        When sampling is to be covered by no interval, or is no truth value.
    """
    if not isinstance(sampling, bool):
        raise UnsupportedOperation(
            "sampling= is True or False",
            where="sampling=...",
            remedy="write interval=0.95, sampling=True",
        )
    if confidence is None:
        if sampling:
            raise UnsupportedOperation(
                "sampling=True needs interval=",
                where="sampling=True",
                remedy="write interval=0.95, sampling=True",
            )
        return None
    return Intervals(confidence_of(confidence, "interval"), sampling)


# Arithmetic of noisy numbers as a sum with public factors, or as a ratio of two such sums.


@dataclass(frozen=True, slots=True)
class Sum:
    """A constant, and factors by placeholder."""

    constant: Fraction
    factors: Mapping[str, Fraction]

    @property
    def is_constant(self) -> bool:
        return not any(self.factors.values())

    def times(self, factor: Fraction) -> Sum:
        """All of it, this many times."""
        return Sum(self.constant * factor, {p: f * factor for p, f in self.factors.items()})

    def plus(self, other: Sum) -> Sum:
        """Both together."""
        names = dict.fromkeys((*self.factors, *other.factors))
        zero = Fraction(0)
        factors = {p: self.factors.get(p, zero) + other.factors.get(p, zero) for p in names}
        return Sum(self.constant + other.constant, factors)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One sum over another, which is the constant 1 where there is no division."""

    above: Sum
    below: Sum


_ONE = Sum(Fraction(1), {})


def ratio_of(tree: Tree) -> Ratio | None:
    """What a formula is; None for one that is neither a sum nor a ratio of two."""
    match tree:
        case Column(name):
            return Ratio(Sum(Fraction(0), {name: Fraction(1)}), _ONE)
        case Literal(value):
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            try:
                return Ratio(Sum(exact(value), {}), _ONE)
            except ValueError:
                return None
        case Call(Neg(), (arg,)):
            found = ratio_of(arg)
            return None if found is None else Ratio(found.above.times(Fraction(-1)), found.below)
        case Call(op, (left, right)):
            a, b = ratio_of(left), ratio_of(right)
            return None if a is None or b is None else _combine(op.name, a, b)
        case _:
            return None


def _combine(op: str, a: Ratio, b: Ratio) -> Ratio | None:
    if op in ("add", "sub"):
        other = b.above if op == "add" else b.above.times(Fraction(-1))
        if a.below == b.below:
            return Ratio(a.above.plus(other), a.below)
        if b.below == _ONE and b.above.is_constant:  # a / b + c
            return Ratio(a.above.plus(a.below.times(other.constant)), a.below)
        if a.below == _ONE and a.above.is_constant:
            return Ratio(b.below.times(a.above.constant).plus(other), b.below)
        return None
    if op == "mul":
        for one, two in ((a, b), (b, a)):
            if two.below == _ONE and two.above.is_constant:
                return Ratio(one.above.times(two.above.constant), one.below)
        return None
    if op != "truediv":
        return None
    if b.below == _ONE and b.above.is_constant:
        factor = b.above.constant
        return None if factor == 0 else Ratio(a.above.times(1 / factor), a.below)
    if a.below == _ONE and b.below == _ONE:
        return Ratio(a.above, b.above)
    return None


# The effect of missing rows on results: intervals under a limit that was found.
#
# A limit that was found drops no more than this many rows (or groups of individuals), as
# `dpframe.optimise.limit_rule` says, unless with a small probability. The ends of an interval are
# moved by what this many may do at most, so that it holds what all rows would give.
#
# - Sums, counts, numbers of distinct values and of cells: one row adds no less than min(lo, 0) and
#   no more than max(hi, 0). One more row of an individual moves its total within the bounds, and an
#   individual has one total in each group. So the number of individuals counts here.
#
# - Means: with k rows left and d missing ones, m = m_k + d / (k + d) (m_d - m_k), and both means
#   are within the bounds. So with s = D / (k + D) the ends are moved towards the bounds by the
#   share s, where D >= d is how many are missing at most and k how many are left at least.
#
# - Variances: V = (1 - s) V_k + s V_d + s (1 - s) (m_k - m_d)^2 with the same s or less, where
#   V_d <= w^2 / 4 and |m_k - m_d| <= w for the width w of the bounds.
#
# - Ratios: those of the ends of both totals.
#
# Where none of these is known, as of means by grouping sets, all that the bounds allow is left;
# where that has no ends they are null.


Floats: TypeAlias = "NDArray[np.float64]"
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
            return _unknown_ends(ends)
        half = (1 + level) / 2
        if isinstance(aggregate, BoundMean):
            share, _ = self._share(aggregate, values[1], noise.reach(1, half))
            return _towards(ends, share, aggregate.bounds)
        if isinstance(aggregate, BoundVariance):
            share, left = self._share(aggregate, values[2], noise.reach(2, half))
            return _variance_ends(aggregate, ends, share, left)
        if isinstance(aggregate, BoundRatio):
            return self._ratio(aggregate, values, noise, half)
        kind = aggregate.request.kind
        if kind in _ADDS_UP:
            low, high = self._moves(plain_aggregate(aggregate))
            return _move_end(ends[0], math.floor(low)), _move_end(ends[1], math.ceil(high))
        inner = plain_aggregate(aggregate)
        if isinstance(inner, BoundMean):
            return _towards(ends, np.ones(len(ends[0])), inner.bounds)
        if isinstance(inner, BoundVariance):
            nobody = np.zeros(len(ends[0]))
            return _variance_ends(inner, ends, np.ones(len(ends[0])), nobody)
        return _unknown_ends(ends)

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


def _unknown_ends(ends: Ends) -> Ends:
    low, high = (pl.Series(end.name, [None] * len(end), dtype=end.dtype) for end in ends)
    return low, high


def _move_end(end: pl.Series, by: int) -> pl.Series:
    """Numbers moved by a whole number outwards, and held at the limits of their type."""
    whole = end.to_physical()
    if whole.dtype.is_integer():
        numbers = whole.cast(pl.Int64).fill_null(0).to_numpy()
        series = pl.Series(end.name, shift_by(numbers, by), dtype=pl.Int64)
        return pl.select(pl.when(whole.is_not_null()).then(series)).to_series().cast(end.dtype)
    moved = whole + float(by)
    return moved + moved.abs() * math.copysign(_OUT, by)


def _towards(ends: Ends, share: Floats, bounds: tuple[Fraction, Fraction]) -> Ends:
    """Ends that are moved towards bounds by a share of the way."""
    found = []
    for end, bound, down in zip(ends, map(float, bounds), (True, False), strict=True):
        number = end.to_physical().cast(pl.Float64).to_numpy()
        moved = number + share * (bound - number)
        moved = moved + np.abs(moved) * (-_OUT if down else _OUT)
        moved = np.clip(moved, float(bounds[0]), float(bounds[1]))
        found.append(_of_type(end, moved, down=down))
    return found[0], found[1]


def _of_type(end: pl.Series, numbers: Floats, *, down: bool) -> pl.Series:
    """Numbers as a series of the type of another, rounded outwards where that is whole."""
    physical = end.to_physical().dtype
    if physical.is_integer():
        numbers = np.floor(numbers) if down else np.ceil(numbers)
    found = pl.Series(end.name, numbers).fill_nan(None)
    return found.cast(physical).cast(end.dtype)


def _variance_ends(aggregate: BoundVariance, ends: Ends, share: Floats, left: Floats) -> Ends:
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


# How far results are from those of another sample of as many rows, or individuals.
#
# Rows, or individuals, are taken for independent draws from a larger population. The variance of a
# total T = sum of t(row) is then about the sum of t(row)^2, and that of a smooth function of totals
# the sum of squares of its linear form in each row. These sums are not released, so they are
# bounded by what is: for t in [lo, hi] the chord of the square gives
#
#     sum (t - r)^2  <=  n (lo - r)^2 + (lo + hi - 2 r) (T - n lo),
#
# which for a mean r is n (hi - r) (r - lo), the variance of a share where bounds are 0 and 1. Where
# the variance of the same values is released in the same query, it is taken instead if it is less.
# With k rows of one individual in a group squares of sums of k numbers are at most k times the sum
# of squares (Cauchy and Schwarz), so variances are taken k times. Bounds are taken at the worst
# values that intervals of the noise allow, widened as Wilson (1927) does for shares, so that few
# rows and shares near 0 or 1 are not taken for certain.
#
# Noise and sampling are independent, and their ends are combined as roots of sums of squares. At
# levels from 0.9 up this is no less than the quantile of the sum, since noise has tails no lighter
# than the normal's. All is computed from released numbers: post-processing.


@dataclass(frozen=True, slots=True, eq=False)
class Sampling:
    """The sampling error of the results of one query.

    Parameters
    ----------
    query
        The requested outputs.
    noisy, laws
        The noisy integers of each part, and their noise.
    level
        The confidence.
    """

    query: Query
    noisy: Mapping[MeasurementKey, Noisy]
    laws: Mapping[MeasurementKey, Mechanism]
    level: Fraction

    @property
    def z(self) -> float:
        """The quantile of the normal distribution."""
        return NormalDist().inv_cdf((1 + float(self.level)) / 2)

    def widen(self, column: pl.Series, ends: Ends, variance: Floats) -> Ends:
        """Ends of noise and of sampling together."""
        released = _floats(column)
        reach = self.z * np.sqrt(np.maximum(variance, 0.0))
        low, high = (_floats(end) for end in ends)
        middle = np.where(np.isnan(released), (low + high) / 2, released)
        below = middle - np.hypot(np.maximum(middle - low, 0.0), reach)
        above = middle + np.hypot(np.maximum(high - middle, 0.0), reach)
        return _like(ends[0], below, up=False), _like(ends[1], above, up=True)

    def ends(self, aggregate: BoundAggregate, ends: Ends) -> Ends | None:
        """Ends of one aggregate, given those of the noise; None where its sampling error is not
        known.
        """
        variance = self.variance(aggregate, ends)
        if variance is None:
            return None
        found = aggregate.combine([self.noisy[key] for key in aggregate.keys])
        widened = self.widen(found, ends, variance)
        if isinstance(aggregate, (BoundMean, BoundVariance, BoundRatio)):
            # variances, deviations and ratios of totals that are 0 or more are 0 or more
            least, most = 0.0, np.inf
            if isinstance(aggregate, BoundMean):
                least, most = map(float, aggregate.bounds)
            low, high = (np.clip(_floats(end), least, most) for end in widened)
            return _like(ends[0], low, up=False), _like(ends[1], high, up=True)
        return widened

    def variance(self, aggregate: BoundAggregate, ends: Ends) -> Floats | None:
        """A bound on the variance by sampling of one aggregate, for each number; None where none is
        known.
        """
        if unknown_sampling(aggregate, self.query):
            return None
        low, high = (_floats(end) for end in ends)
        match aggregate:
            case BoundCount() | BoundHistogram() | BoundDistribution():
                each = self._rows_each(aggregate)
                return each * (np.maximum(high, 0.0) + self.z**2 * each)
            case BoundSum():
                return self._of_sum(aggregate, low, high)
            case BoundMean():
                return self._of_mean(aggregate, low, high)
            case BoundVariance():
                return self._of_variance(aggregate, high)
            case BoundRatio():
                return self._of_ratio(aggregate, low, high)
        return None

    def of_formula(self, output: Output, each: Mapping[str, Ends], whole: Ends) -> Ends | None:
        """Ends of sums with public factors and of ratios of two such sums, given the ends of the
        noise of each number and of the whole; None for other formulas.
        """
        ratio = None if output.post_tree is None else ratio_of(output.post_tree)
        if ratio is None:
            return None
        variances = {p: self.variance(a, each[p]) for p, a in output.aggregates.items()}
        known = {p: found for p, found in variances.items() if found is not None}
        if len(known) < len(variances):
            return None
        released = {
            p: _floats(a.combine([self.noisy[key] for key in a.keys]))
            for p, a in output.aggregates.items()
        }
        above = _value(ratio.above, released)
        if ratio.below.is_constant:
            scale = float(ratio.below.constant)
            variance = self._of_sums(output, ratio.above, known) / scale**2
            return self.widen(pl.Series(above / scale), whole, variance)
        below = _value(ratio.below, released)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = above / below
            of_rows = self._of_share(output, ratio, whole, below)
            if of_rows is not None:
                variance = of_rows
            else:
                turned = ratio.above.plus(ratio.below.times(Fraction(-1)))
                sizes = {
                    p: np.abs(
                        float(ratio.above.factors.get(p, 0))
                        - share * float(ratio.below.factors.get(p, 0))
                    )
                    for p in turned.factors
                }
                variance = self._variance_of_sum(output, sizes, known) / below**2
        return self.widen(pl.Series(share), whole, np.nan_to_num(variance, nan=np.inf))

    def _of_sums(self, output: Output, form: Sum, known: Mapping[str, Floats]) -> Floats:
        sizes = {p: np.full(known[p].shape, abs(float(f))) for p, f in form.factors.items() if f}
        return self._variance_of_sum(output, sizes, known)

    def _variance_of_sum(
        self, output: Output, sizes: Mapping[str, Floats], known: Mapping[str, Floats]
    ) -> Floats:
        """The variance of a sum: squares add up where no row is in two of its parts, and no
        individual either; else deviations do.
        """
        parts = [sizes[p] * np.sqrt(known[p]) for p in sizes]
        aggregates = [output.aggregates[p] for p in sizes]
        apart = all(
            _rows_apart(a, b) for i, a in enumerate(aggregates) for b in aggregates[i + 1 :]
        )
        if apart and self._most == 1:
            return np.asarray(sum(part**2 for part in parts))
        return np.asarray(sum(parts) ** 2)

    def _of_share(self, output: Output, ratio: Ratio, whole: Ends, below: Floats) -> Floats | None:
        """For a total over the count of the same rows: the ends of a mean; None for other
        ratios."""
        numerator = [p for p, factor in ratio.above.factors.items() if factor]
        denominator = [p for p, factor in ratio.below.factors.items() if factor]
        if len(numerator) != 1 or len(denominator) != 1:
            return None
        if ratio.above.constant or ratio.below.constant:
            return None
        first, second = output.aggregates[numerator[0]], output.aggregates[denominator[0]]
        if not isinstance(first, (BoundCount, BoundSum)) or not isinstance(second, BoundCount):
            return None
        if _is_of_totals(first) or _is_of_totals(second) or not _same_rows(first, second):
            return None
        factor = float(ratio.above.factors[numerator[0]] / ratio.below.factors[denominator[0]])
        lo, hi = (0.0, 1.0) if isinstance(first, BoundCount) else map(float, first.bounds)
        lo, hi = min(lo, 0.0), max(hi, 0.0)  # a null adds nothing
        low, high = (_floats(end) / factor for end in whole)
        count = below / float(ratio.below.factors[denominator[0]])
        spread = self._variance(np.fmin(low, high), np.fmax(low, high), lo, hi, count)
        return factor**2 * spread * self._most

    @property
    def _most(self) -> int:
        """The most rows of one individual in a group."""
        return self.query.scope.spread.tight[2]

    def _rows_each(self, aggregate: BoundCount | BoundHistogram | BoundDistribution) -> int:
        """The most that one individual adds to one count."""
        part = aggregate.keys[0][0]
        statistic = part.tables[0].statistic
        if isinstance(statistic, UnitRows):
            return statistic.most
        if isinstance(statistic, (UnitCount, DistinctIndividuals)) or _is_of_totals(aggregate):
            return 1
        return self._most

    def _of_sum(self, aggregate: BoundSum, low: Floats, high: Floats) -> Floats:
        """sum t^2 <= (lo + hi) T - lo hi n, where the last term is only there for bounds on both
        sides of 0.
        """
        lo, hi = map(float, aggregate.bounds)
        each = 1 if aggregate.per == "unit" else self._most
        farthest = max(abs(lo), abs(hi))
        total = np.maximum((lo + hi) * low, (lo + hi) * high)
        if lo * hi < 0:
            key = _count_beside(aggregate, self.query)
            assert key is not None
            total = total - lo * hi * self._count_up_to(key)
        return each * (np.maximum(total, 0.0) + self.z**2 * each * farthest**2)

    def _count_up_to(self, key: MeasurementKey) -> Floats:
        law = self.laws[key]
        assert isinstance(law, AdditiveMechanism)
        return self.noisy[key].reshape(-1).astype(np.float64) + law.quantile(self.level)

    def _of_mean(self, aggregate: BoundMean, low: Floats, high: Floats) -> Floats:
        lo, hi = map(float, aggregate.bounds)
        count = self.noisy[aggregate.keys[1]].reshape(-1).astype(np.float64)
        found = self._variance(low, high, lo, hi, count)
        beside = _variance_beside(aggregate, self.query)
        if beside is not None:
            noise = beside.combine([self.noisy[key] for key in beside.keys])
            squared = _floats(noise) ** 2 if beside.root else _floats(noise)
            found = np.fmin(found, np.maximum(squared, 0.0) / np.maximum(count, 1.0))
        return found if aggregate.of_totals else found * self._most

    def _of_variance(self, aggregate: BoundVariance, high: Floats) -> Floats:
        """(fourth moment - v^2) / n, where the fourth moment is at most the squared width of the
        bounds times the variance v; of a root that over 4 v.
        """
        count = self.noisy[aggregate.keys[2]].reshape(-1).astype(np.float64)
        n, squared = np.maximum(count, 1.0), float(aggregate.width) ** 2
        most = squared / 4 if aggregate.root else squared * high
        found = most / n if aggregate.root else most / n + (self.z * squared / n) ** 2
        return found if aggregate.of_totals else found * self._most

    def _variance(self, low: Floats, high: Floats, lo: float, hi: float, count: Floats) -> Floats:
        """The largest (hi - r) (r - lo) / n for means r that noise and sampling allow."""
        n = np.maximum(count, 1.0)
        most = _product(low, high, lo, hi)
        wider = self.z * np.sqrt(most / n) + self.z**2 * (hi - lo) / n
        result: Floats = _product(low - wider, high + wider, lo, hi) / n
        return result

    def _of_ratio(self, aggregate: BoundRatio, low: Floats, high: Floats) -> Floats:
        """sum (a - r b)^2 <= sum a^2 + r^2 sum b^2 for a, b and r that are all 0 or above."""
        above, below = (
            self.noisy[key].reshape(-1).astype(np.float64) * float(key[0].step)
            for key in aggregate.keys
        )
        each = 1 if aggregate.per == "unit" else self._most
        r = np.fmax(np.abs(low), np.abs(high))
        squares = float(aggregate.bounds[1]) * np.maximum(above, 0.0)
        squares = squares + r**2 * float(aggregate.below_bounds[1]) * np.maximum(below, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            result: Floats = each * squares / below**2
        return result


def unknown_sampling(aggregate: BoundAggregate, query: Query) -> str:
    """Why nothing is known of the sampling error of an aggregate; empty where it is."""
    facts = query.relation.facts
    if facts.norm is not None:
        return "its rows are weighed"
    if facts.every is not None:
        return "an individual is a person in one window, and people are sampled"
    match aggregate:
        case BoundCount():
            statistics = (RowCount, ValueCount, UnitRows, UnitCount, DistinctIndividuals)
            part = aggregate.keys[0][0]
            if isinstance(part, Additive) and isinstance(part.table.statistic, statistics):
                return ""
            return (
                "numbers of distinct values, and counts that are rebuilt, have none that is known"
            )
        case BoundHistogram() | BoundDistribution():
            return "" if aggregate.monotone else "its counts are rebuilt from others"
        case BoundMean():
            return "means that are moved towards each other have none" if aggregate.shrink else ""
        case BoundVariance():
            return ""
        case BoundSum():
            lo, hi = aggregate.bounds
            if lo * hi >= 0 or _count_beside(aggregate, query) is not None:
                return ""
            return "of values on both sides of 0 it depends on how many there are: add dp.count()"
        case BoundRatio():
            if min(aggregate.bounds[0], aggregate.below_bounds[0]) >= 0:
                return ""
            return "the totals of a ratio have to be of numbers that are 0 or more"
    return "it is known of counts, sums, means, variances and their differences and ratios alone"


def _count_beside(aggregate: BoundSum, query: Query) -> MeasurementKey | None:
    """What counts the rows, or individuals, of a sum in the same query, if anything does."""
    for other in query.aggregates:
        if not isinstance(other, BoundCount) or len(other.keys) != 1:
            continue
        (key,) = other.keys
        if not isinstance(key[0], Additive):
            continue
        statistic = key[0].table.statistic
        if aggregate.per == "unit":
            if isinstance(statistic, (UnitCount, DistinctIndividuals)):
                return key
        elif key[0] == COUNT or statistic == ValueCount(aggregate.value.tree):
            return key
    return None


def _variance_beside(aggregate: BoundMean, query: Query) -> BoundVariance | None:
    """The variance of the same values, where it is released."""
    for other in query.aggregates:
        if isinstance(other, BoundVariance) and other.keys[1] == aggregate.keys[0]:
            return other
    return None


def _is_of_totals(aggregate: BoundAggregate) -> bool:
    if isinstance(aggregate, (BoundHistogram, BoundDistribution)):
        return aggregate.cells.of_individuals
    return aggregate.is_of_totals or (isinstance(aggregate, BoundSum) and aggregate.per == "unit")


def _conditions(tree: Tree | None) -> tuple[frozenset[Tree], Tree | None]:
    """The conditions on rows that an aggregate is of, and its values."""
    if isinstance(tree, Call) and tree.operation.name == "when":
        condition, values, rest = tree.args
        if isinstance(rest, Literal) and rest.value is None:
            found, inner = _conditions(values)
            return found | frozenset(_both(condition)), inner
    return frozenset(), tree


def _both(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, Call) and tree.operation.name == "and":
        for arg in tree.args:
            yield from _both(arg)
    else:
        yield tree


def _same_rows(part: BoundAggregate, whole: BoundAggregate) -> bool:
    """Whether all rows that a part is of are among those that the other counts."""
    some, values = _conditions(part.request.tree)
    most, counted = _conditions(whole.request.tree)
    every = counted is None or isinstance(counted, Literal) or counted == values
    return every and most <= some


def _rows_apart(first: BoundAggregate, second: BoundAggregate) -> bool:
    """Whether no row is in both, by conditions that exclude each other."""
    one, other = (_conditions(a.request.tree)[0] for a in (first, second))
    return any(_exclude(a, b) or _exclude(b, a) for a in one for b in other)


def _exclude(a: Tree, b: Tree) -> bool:
    if isinstance(b, Call) and b.operation.name == "not" and b.args == (a,):
        return True
    mine, theirs = _equals(a), _equals(b)
    return (
        mine is not None
        and theirs is not None
        and mine[0] == theirs[0]
        and mine[1].value != theirs[1].value
    )


def _equals(tree: Tree) -> tuple[Tree, Literal] | None:
    if not isinstance(tree, Call) or tree.operation.name != "eq":
        return None
    left, right = tree.args
    if isinstance(left, Literal):
        left, right = right, left
    return (left, right) if isinstance(right, Literal) else None


def _value(form: Sum, released: Mapping[str, Floats]) -> Floats:
    result = np.zeros(next(iter(released.values())).shape) + float(form.constant)
    for placeholder, factor in form.factors.items():
        result = result + float(factor) * released[placeholder]
    return result


def _product(low: Floats, high: Floats, lo: float, hi: float) -> Floats:
    """The largest (hi - r) (r - lo) for r from low to high, within the bounds."""
    r = np.clip((lo + hi) / 2, np.clip(low, lo, hi), np.clip(high, lo, hi))
    result: Floats = (hi - r) * (r - lo)
    return result


def _floats(column: pl.Series) -> Floats:
    numbers = column.explode() if isinstance(column.dtype, (pl.List, pl.Array)) else column
    return numbers.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()


def _like(end: pl.Series, numbers: Floats, *, up: bool) -> pl.Series:
    """Numbers as a column of the type of an end, whole ones rounded outwards."""
    if end.dtype == pl.Float64:
        return pl.Series(end.name, numbers).fill_nan(None)
    integers = np.ceil(numbers) if up else np.floor(numbers)
    series = pl.Series(end.name, integers).fill_nan(None).cast(pl.Int64, strict=False)
    if end.dtype == pl.Date:
        series = series.cast(pl.Int32, strict=False)
    return series.cast(end.dtype, strict=False)


Laws: TypeAlias = "Mapping[MeasurementKey, tuple[Mechanism, int]]"

_TOGETHER = 3
"""This many noises are taken together; more would need too many slices."""


def interval_of(
    output: Output,
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    draws: Sequence[Draw],
    asked: Intervals,
    missing: MissingRows | None = None,
) -> Ends | None:
    """The lower and upper ends of one output of a query, a value per row; None for what is no
    number, or has no sampling error that is known where that is requested.

    Ends of arithmetic are null where nothing is known. With `missing` rows they are those of the
    result with these.
    """
    confidence = asked.confidence
    laws = {k: (law, i) for i, d in enumerate(draws) for k, law in d.noises().items()}
    keys = {p: aggregate.keys for p, aggregate in output.aggregates.items()}
    if not all(
        isinstance(laws[key][0], AdditiveMechanism) for used in keys.values() for key in used
    ):
        return None  # the error of a selection is one of its score
    whole = None
    if output.post is not None and output.post_tree is not None and missing is None:
        whole = _whole(output, keys, noisy, laws, confidence)
        if whole is not None and not asked.sampling:
            return whole
    level = 1 - (1 - confidence) / len(set(keys.values()))
    pairs = {p: _aggregate(a, noisy, laws, level, missing) for p, a in output.aggregates.items()}
    if asked.sampling:
        known = {p: pair for p, pair in pairs.items() if pair is not None}
        if len(known) < len(pairs):
            return None
        by_law = {key: law for key, (law, _) in laws.items()}
        if output.post is not None and output.post_tree is not None:
            if whole is None:
                whole = _arithmetic(output.name, output.post_tree, known)
            about = Sampling(query, noisy, by_law, confidence)
            both = None if whole is None else about.of_formula(output, known, whole)
            if both is not None:
                return both
        sampled = Sampling(query, noisy, by_law, level)
        pairs = {p: sampled.ends(a, known[p]) for p, a in output.aggregates.items()}
    if output.post is None:
        return next(iter(pairs.values()))
    ends = {placeholder: pair for placeholder, pair in pairs.items() if pair is not None}
    if output.post_tree is None or len(ends) < len(pairs):
        return None
    return _arithmetic(output.name, output.post_tree, ends)


def _noise_of(keys: Sequence[MeasurementKey], laws: Laws) -> JointNoise:
    """The joint law of the noise of parts."""
    parts = list[tuple[AdditiveMechanism, Fraction, int]]()
    for key in keys:
        law, draw = laws[key]
        assert isinstance(law, AdditiveMechanism)
        if isinstance(key[0], Margin) and key[0].has_total:  # both have noise of their own
            draw = -1 - len(parts)
        parts.append((law, key[0].step, draw))
    return noise_law(parts)


def _aggregate(
    aggregate: BoundAggregate,
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    level: Fraction,
    missing: MissingRows | None,
) -> Ends | None:
    values, noise = [noisy[key] for key in aggregate.keys], _noise_of(aggregate.keys, laws)
    if missing is None:
        return aggregate.interval(values, noise, level)
    splits = isinstance(aggregate, (BoundMean, BoundVariance))  # which also need their number
    ends = aggregate.interval(values, noise, (1 + level) / 2 if splits else level)
    return None if ends is None else missing.widen(aggregate, ends, values, noise, level)


def _whole(
    output: Output,
    keys: Mapping[str, tuple[MeasurementKey, ...]],
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    confidence: Fraction,
) -> Ends | None:
    """The ends of a sum, or a ratio of sums, of numbers that noise is added to; else None."""
    assert output.post_tree is not None
    ratio = ratio_of(output.post_tree)
    parts = tuple(dict.fromkeys(key for used in keys.values() for key in used))
    if ratio is None or len(parts) > _TOGETHER:
        return None
    if not all(aggregate.is_plain_number for aggregate in output.aggregates.values()):
        return None
    places = {p: parts.index(used[0]) for p, used in keys.items()}
    noise, miss = _noise_of(parts, laws), float(1 - confidence)
    values = [noisy[key].reshape(-1).astype(np.float64) * float(key[0].step) for key in parts]
    above = _sum(ratio.above, places, values)
    factors = _factors(ratio, places, len(parts))
    low, high = ratio_ends(above, _sum(ratio.below, places, values), noise, factors, miss)
    return _series(output.name, low, high)


def _sum(form: Sum, places: Mapping[str, int], values: Sequence[Floats]) -> Floats:
    result = np.full(values[0].shape, float(form.constant))
    for placeholder, factor in form.factors.items():
        result = result + float(factor) * values[places[placeholder]]
    return result


def _factors(
    ratio: Ratio, places: Mapping[str, int], size: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """By part, of the sums above and below."""
    found = []
    for form in (ratio.above, ratio.below):
        row = [Fraction(0)] * size
        for placeholder, factor in form.factors.items():
            row[places[placeholder]] += factor
        found.append(tuple(map(float, row)))
    return found[0], found[1]


def _series(name: str, low: Floats, high: Floats) -> Ends:
    """Ends moved outwards by more than a few roundings, null if none exist."""
    margin = 2.0**-48
    ends = (low - np.abs(low) * margin, high + np.abs(high) * margin)
    lower, upper = (pl.Series(name, end, dtype=pl.Float64).fill_nan(None) for end in ends)
    return lower, upper


def _arithmetic(name: str, tree: Tree, ends: Mapping[str, Ends]) -> Ends | None:
    """The ends of a formula, row by row, by the interval arithmetic of expressions.

    That rounds each step as it should be; engines may be off by a last digit, such as Polars, which
    divides by a constant by multiplying with its reciprocal.
    """
    if not all(end.dtype.is_numeric() for pair in ends.values() for end in pair):
        return None
    size = len(next(iter(ends.values()))[0])
    columns = {p: (low.to_list(), high.to_list()) for p, (low, high) in ends.items()}
    lower, upper = list[float](), list[float]()
    for row in range(size):
        known = {
            p: Domain(FLOAT64, nullable=False, interval=_between(low[row], high[row]))
            for p, (low, high) in columns.items()
        }
        result = EVERYTHING if _divides_by_zero(tree, known) else domain(tree, known).interval
        lower.append(math.nan if result.lo is None else nearest(result.lo))
        upper.append(math.nan if result.hi is None else nearest(result.hi))
    return _series(name, np.array(lower), np.array(upper))


def _divides_by_zero(tree: Tree, known: Mapping[str, Domain]) -> bool:
    """Whether a divisor is surely 0. Then nothing is known of the result."""
    return any(
        isinstance(part, Call)
        and isinstance(part.operation, TrueDiv | FloorDiv | Mod)
        and domain(part.args[1], known).interval == ZERO
        for part in walk(tree)
    )


def _between(low: float | int | None, high: float | int | None) -> Interval:
    return Interval(
        None if low is None else Fraction(low), None if high is None else Fraction(high)
    )
