"""Means, variances and standard deviations, from centred sums and one shared count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Aggregate
from dpframe.aggregates.bound import BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.count import count_of, units_with
from dpframe.aggregates.error_rules import ErrorRule, MeanError, VarianceError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.mean_interval import mean_ends
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.per_unit import is_per_unit, total_of
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.shrunk import (
    SHRUNK,
    UNKNOWN,
    no_bound,
    require_groups,
    shrunk_offsets,
    variances_of,
)
from dpframe.aggregates.statistics import GridSum, SquareSum
from dpframe.aggregates.values import (
    Value,
    as_series,
    bounds_of,
    number_of_time,
    numeric_value,
    show_value,
)
from dpframe.aggregates.variance_interval import variance_ends
from dpframe.core.exact import show
from dpframe.core.grid import Grid, grid_for, grid_of_squares
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import Mechanism
from dpframe.rows.fold import domain, words

Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True, eq=False)
class _Centred(BoundAggregate):
    """What is made of sums around the middle of bounds, and a count.

    Parameters
    ----------
    value, bounds, grid
        The values as numbers, what they are clamped to, and the grid of their distances from the
        middle of the bounds.
    of_totals
        Whether values are totals of individuals.
    per
        Whether that is requested: where each individual has one row, rows are totals.
    """

    value: Value
    bounds: tuple[Fraction, Fraction]
    grid: Grid
    of_totals: bool
    per: Per

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
    """The middle of the bounds, and a centred sum over a count.

    Parameters
    ----------
    shrink
        Whether means of groups are moved towards their common mean.
    noise
        The variances of the noise of the sum and the count, in steps; 0 until they are known.
    """

    shrink: bool = False
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
            offset = shrunk_offsets(values, self.noise, self.width, self.grid.step)
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
    groups are moved towards their common mean, see `shrunk_means`: less error, and a bias.

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
        value, bounds, grid = _centred(request, scope, self.bounds)
        of_totals = is_per_unit(request, scope, self.per, self.bounds, value.domain.dtype)
        total = Additive(Table(total_of(GridSum(value, grid), of_totals)))
        count = _count(request, scope, of_totals)
        uses = MeasurementUse(total, "mean.sum"), MeasurementUse(count, "mean.count")
        return BoundMean(request, uses, value, bounds, grid, of_totals, self.per, self.shrink)


@dataclass(frozen=True, slots=True, eq=False)
class BoundVariance(_Centred):
    """A variance, or its root, from a sum of squares, a sum and a count.

    Parameters
    ----------
    squares
        The grid of squared distances from the middle of the bounds.
    ddof
        What the sum of squares is divided by, less than the count.
    root
        Whether it is the standard deviation.
    """

    squares: Grid
    ddof: int
    root: bool

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
        value, bounds, grid = _centred(request, scope, self.bounds)
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


def _centred(
    request: Request, scope: QueryScope, given: GivenBounds
) -> tuple[Value, tuple[Fraction, Fraction], Grid]:
    """The value, its bounds, and the grid around their middle."""
    assert request.tree is not None
    value = numeric_value(request.tree, domain(request.tree, scope.facts.columns), request.kind)
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
