"""How far results are from those of another sample of as many rows, or individuals.

Rows, or individuals, are taken for independent draws from a larger population. The variance of a
total T = sum of t(row) is then about the sum of t(row)^2, and that of a smooth function of totals
the sum of squares of its linear form in each row. These sums are not released, so they are bounded
by what is: for t in [lo, hi] the chord of the square gives

    sum (t - r)^2  <=  n (lo - r)^2 + (lo + hi - 2 r) (T - n lo),

which for a mean r is n (hi - r) (r - lo), the variance of a share where bounds are 0 and 1. Where
the variance of the same values is released in the same query, it is taken instead if it is less.
With k rows of one individual in a group squares of sums of k numbers are at most k times the sum of
squares (Cauchy and Schwarz), so variances are taken k times. Bounds are taken at the worst values
that intervals of the noise allow, widened as Wilson (1927) does for shares, so that few rows and
shares near 0 or 1 are not taken for certain.

Noise and sampling are independent, and their ends are combined as roots of sums of squares. At
levels from 0.9 up this is no less than the quantile of the sum, since noise has tails no lighter
than the normal's. All is computed from released numbers: post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate, MeasurementKey, Noisy, Output, Query
from dpframe.aggregates.cdf import BoundDistribution
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.mean import BoundMean, BoundVariance
from dpframe.aggregates.measurement import COUNT, Additive
from dpframe.aggregates.ratio import BoundRatio
from dpframe.aggregates.shapes import Ends
from dpframe.aggregates.statistics import (
    DistinctIndividuals,
    RowCount,
    UnitCount,
    UnitRows,
    ValueCount,
)
from dpframe.aggregates.sum import BoundSum
from dpframe.core.tree import Call, Literal, Tree
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.release.formula import Ratio, Sum, ratio_of

__all__ = ["Sampling", "unknown_sampling"]

Floats: TypeAlias = "NDArray[np.float64]"
Laws: TypeAlias = "Mapping[MeasurementKey, Mechanism]"


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
    laws: Laws
    level: Fraction

    @property
    def z(self) -> float:
        """The quantile of the normal distribution."""
        return NormalDist().inv_cdf((1 + float(self.level)) / 2)

    def widened(self, column: pl.Series, ends: Ends, variance: Floats) -> Ends:
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
        widened = self.widened(found, ends, variance)
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
            return self.widened(pl.Series(above / scale), whole, variance)
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
                variance = self._added(output, sizes, known) / below**2
        return self.widened(pl.Series(share), whole, np.nan_to_num(variance, nan=np.inf))

    def _of_sums(self, output: Output, form: Sum, known: Mapping[str, Floats]) -> Floats:
        sizes = {p: np.full(known[p].shape, abs(float(f))) for p, f in form.factors.items() if f}
        return self._added(output, sizes, known)

    def _added(
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
        spread = self._spread(np.fmin(low, high), np.fmax(low, high), lo, hi, count)
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
        found = self._spread(low, high, lo, hi, count)
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

    def _spread(self, low: Floats, high: Floats, lo: float, hi: float, count: Floats) -> Floats:
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
    whole = np.ceil(numbers) if up else np.floor(numbers)
    made = pl.Series(end.name, whole).fill_nan(None).cast(pl.Int64, strict=False)
    if end.dtype == pl.Date:
        made = made.cast(pl.Int32, strict=False)
    return made.cast(end.dtype, strict=False)
