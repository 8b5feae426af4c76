"""Means, variances and standard deviations, from centred sums and one shared count."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import Aggregate, Noisy, Use
from dpframe.aggregates.count import count_of, units_with
from dpframe.aggregates.error_rules import ErrorRule, MeanError, VarianceError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.mean_interval import mean_ends
from dpframe.aggregates.part import Additive, Table
from dpframe.aggregates.per_unit import is_per_unit, total_of
from dpframe.aggregates.request import Request, Scope
from dpframe.aggregates.statistics import GridSum, SquareSum, Statistic
from dpframe.aggregates.values import Value, as_series, bounds_of, numeric_value, show_value
from dpframe.aggregates.variance_interval import variance_ends
from dpframe.core.exact import show
from dpframe.core.grid import Grid, grid_for
from dpframe.errors import UnsupportedOperation
from dpframe.rows.fold import domain, words

Floats = NDArray[np.float64]


class Mean(Aggregate):
    """The mean of values clamped to bounds, over those that are neither null nor NaN.

    The sum is taken around the middle of the bounds, which halves its sensitivity, and divided by a
    noisy count: mean = c + S / N. At the worst true mean, an end of the bounds at distance h from
    c, the error is about (S's noise + h times N's noise) / N, and both noises have the same size
    when both parts cost the same; that split minimises their sum of squares.

    Guarantee
    ---------
    S has values in [-h, h] with h half the width of the bounds: L1 = L2 = Linf = k h under
    add-remove adjacency, for change-one see the sum. N is a count. The quotient, clamped to the
    bounds and null where the noisy count is below 1, is post-processing.

    Proof
    -----
    S is a sum over disjoint sets of rows, of values less the middle of public bounds, which the
    lowered expression clamps and centres itself. N is drawn with noise of its own or shared with
    another output that needs it; both are in the plan's cost.
    """

    kind: ClassVar[str] = "mean"
    clamps: ClassVar[bool] = True
    summary: ClassVar[str] = "mean of values clamped to bounds; nulls and NaN are skipped"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_mean((17, 90))',
        'pl.col("f64").dp_mean((-1.5, 0.1))',
        'pl.col("d").dp_mean((date(2000, 1, 1), date(2030, 1, 1)))',
    )

    def uses(self, request: Request, scope: Scope) -> tuple[Use, ...]:
        value, centred, _ = _centred(request, scope, "mean")
        return (
            Use(Additive(Table(_total(request, scope, GridSum(value, centred)))), "mean.sum"),
            Use(_count(request, scope), "mean.count"),
        )

    def plain(self, request: Request, scope: Scope, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return () if column is None else (column.mean(),)

    def combine(self, request: Request, scope: Scope, values: Sequence[Noisy]) -> pl.Series:
        value, centred, (lo, hi) = _centred(request, scope, "mean")
        offset, _ = _ratio(values[0], values[1], centred.step)
        mean = np.clip(offset + float(centred.centre), float(lo), float(hi))
        return as_series(request.name, mean, value.domain.dtype)

    def interval(
        self,
        request: Request,
        scope: Scope,
        values: Sequence[Noisy],
        noise: JointNoise,
        level: Fraction,
    ) -> tuple[pl.Series, pl.Series]:
        value, centred, (lo, hi) = _centred(request, scope, "mean")
        dtype, half = value.domain.dtype, float(hi - lo) / 2
        total, count = (part.reshape(-1).astype(np.float64) for part in values)
        low, high = mean_ends(total * float(centred.step), count, noise, half, 1 - level)
        bias = 0.0 if value.is_whole and centred.is_exact else float(centred.bias_per_row)
        low, high = float(centred.centre) + low - bias, float(centred.centre) + high + bias
        released = _ratio(values[0], values[1], centred.step)[0] + float(centred.centre)
        released = np.clip(released, float(lo), float(hi))
        low, high = _holding(low, high, released, float(lo), float(hi))
        if dtype.is_temporal:  # which are whole
            low, high = np.floor(low), np.ceil(high)
        return as_series(request.name, low, dtype), as_series(request.name, high, dtype)

    def note(self, request: Request, scope: Scope) -> str:
        value, centred, (lo, hi) = _centred(request, scope, "mean")
        dtype = value.domain.dtype
        centre = f"{show_value(centred.centre, dtype)} + " if centred.centre else ""
        return (
            f"{centre}sum / count, clamped to [{show_value(lo, dtype)}, {show_value(hi, dtype)}]; "
            "null where the noisy count is below 1"
        )

    def error(self, request: Request, scope: Scope) -> ErrorRule:
        _, _, (lo, hi) = _centred(request, scope, "mean")
        return MeanError(hi - lo, (lo + hi) / 2)


class Variance(Aggregate):
    """The sample variance (ddof = 1 unless given) of values clamped to bounds.

    From three parts: the count, the sum of x - c and the sum of (x - c)^2 - h^2/2, where c is the
    middle of the bounds and h half their width; count and sum are those of the mean, so a mean
    beside it costs nothing more. An error e of one row's size (h^2/2, h and 1) in these moves the
    variance by about h^2/2, h^2 and h^2/2 over N where the true mean is h/2 away from c; the split
    of the cost rests on that.

    Guarantee
    ---------
    Squares lie in [0, h^2] and are centred in turn, so their part has L1 = L2 = Linf = k h^2/2
    under add-remove adjacency. The variance, clamped to what the bounds allow and null where the
    noisy count is below 1 or not above ddof, is post-processing.

    Proof
    -----
    Each of the three parts is a sum over disjoint sets of rows. Squares are made of values that are
    already clamped to [-h, h], in floats, and are clamped again and rounded to the grid afterwards,
    so what a row adds is within its bounds whatever the floats did.
    """

    kind: ClassVar[str] = "var"
    clamps: ClassVar[bool] = True
    summary: ClassVar[str] = "sample variance of values clamped to bounds"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("f64").dp_var((-2, 3))',)

    def uses(self, request: Request, scope: Scope) -> tuple[Use, ...]:
        value, centred, _ = _centred(request, scope, self.kind)
        if value.domain.dtype.is_temporal:
            raise UnsupportedOperation(
                f"a {self.kind} of values of type {value.domain.dtype} has no meaning",
                where=words(value.tree),
                remedy="convert it to a number first, for example with .dt.total_seconds()",
            )
        squares = _square_grid(centred)
        return (
            Use(
                Additive(Table(_total(request, scope, SquareSum(value, centred, squares)))),
                "var.sum_of_squares",
                Fraction(1, 4),
            ),
            Use(Additive(Table(_total(request, scope, GridSum(value, centred)))), "var.sum"),
            Use(_count(request, scope), "var.count", Fraction(1, 4)),
        )

    def plain(self, request: Request, scope: Scope, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return () if column is None else (column.var(int(request.parameters.get("ddof", 1))),)

    def combine(self, request: Request, scope: Scope, values: Sequence[Noisy]) -> pl.Series:
        return pl.Series(request.name, self._variance(request, scope, values)).fill_nan(None)

    def note(self, request: Request, scope: Scope) -> str:
        _, _, (lo, hi) = _centred(request, scope, self.kind)
        root = "root of the variance" if self.kind == "std" else "variance"
        ddof = int(request.parameters.get("ddof", 1))
        return (
            f"{root} (ddof {ddof}) from sum of squares, sum and count, clamped to what values in "
            f"[{show(lo)}, {show(hi)}] allow; null where the noisy count is below {ddof + 1}"
        )

    def interval(
        self,
        request: Request,
        scope: Scope,
        values: Sequence[Noisy],
        noise: JointNoise,
        level: Fraction,
    ) -> tuple[pl.Series, pl.Series]:
        low, high = self._variance_range(request, scope, values, noise, 1 - level)
        return pl.Series(request.name, low), pl.Series(request.name, high)

    def _variance_range(
        self,
        request: Request,
        scope: Scope,
        values: Sequence[Noisy],
        noise: JointNoise,
        miss: Fraction,
    ) -> tuple[Floats, Floats]:
        value, centred, (lo, hi) = _centred(request, scope, self.kind)
        squares, half = _square_grid(centred), float(hi - lo) / 2
        ddof = int(request.parameters.get("ddof", 1))
        square, total, count = (part.reshape(-1).astype(np.float64) for part in values)
        second = square * float(squares.step) + float(squares.centre) * count
        parts = (second, total * float(centred.step), count)
        low, high = variance_ends(parts, noise, half, ddof, miss)
        exact = value.is_whole and centred.is_exact
        bias = float(squares.bias_per_row) + (0 if exact else half * float(centred.step))
        low, high = low - bias * (ddof + 1), high + bias * (ddof + 1)
        released = self._variance(request, scope, values)
        return _holding(low, high, released, 0.0, half * half * (ddof + 1))

    def _variance(self, request: Request, scope: Scope, values: Sequence[Noisy]) -> Floats:
        _, centred, (lo, hi) = _centred(request, scope, self.kind)
        squares = _square_grid(centred)
        second, count = _ratio(values[0], values[2], squares.step)
        first, _ = _ratio(values[1], values[2], centred.step)
        ddof = int(request.parameters.get("ddof", 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            bessel = np.where(count > ddof, count / (count - ddof), np.nan)
        largest = float((hi - lo) ** 2 / 4)
        plain = second + float(squares.centre) - first * first
        clamped: Floats = np.clip(plain, 0.0, largest) * bessel
        return clamped

    def error(self, request: Request, scope: Scope) -> ErrorRule:
        _, _, (lo, hi) = _centred(request, scope, self.kind)
        ddof = int(request.parameters.get("ddof", 1))
        return VarianceError(hi - lo, (lo + hi) / 2, ddof, self.kind == "std")


class StandardDeviation(Variance):
    """The square root of the sample variance; the same parts, so beside a variance it is free.

    Guarantee
    ---------
    That of the variance.

    Proof
    -----
    The root of a released number is post-processing.
    """

    kind: ClassVar[str] = "std"
    summary: ClassVar[str] = "sample standard deviation of values clamped to bounds"
    examples: ClassVar[tuple[str, ...]] = ('pl.col("i64").dp_std((0, 100))',)

    def plain(self, request: Request, scope: Scope, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return () if column is None else (column.std(int(request.parameters.get("ddof", 1))),)

    def combine(self, request: Request, scope: Scope, values: Sequence[Noisy]) -> pl.Series:
        root = np.sqrt(self._variance(request, scope, values))
        return pl.Series(request.name, root).fill_nan(None)

    def interval(
        self,
        request: Request,
        scope: Scope,
        values: Sequence[Noisy],
        noise: JointNoise,
        level: Fraction,
    ) -> tuple[pl.Series, pl.Series]:
        low, high = self._variance_range(request, scope, values, noise, 1 - level)
        return (
            pl.Series(request.name, _down(np.sqrt(low))),
            pl.Series(request.name, _up(np.sqrt(high))),
        )


def _centred(
    request: Request, scope: Scope, aggregate: str
) -> tuple[Value, Grid, tuple[Fraction, Fraction]]:
    """The value, its grid around the middle of the bounds, and the bounds."""
    assert request.tree is not None
    value = numeric_value(request.tree, domain(request.tree, scope.facts.columns), aggregate)
    lo, hi = bounds_of(value, request.parameters.get("bounds"), aggregate, distinct=True)
    whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
    return value, grid_for(lo, hi, centred=True, integers=whole), (lo, hi)


def _total(request: Request, scope: Scope, statistic: GridSum | SquareSum) -> Statistic:
    """Over rows, or over the totals of individuals."""
    return total_of(statistic, is_per_unit(request, scope, statistic.value.domain.dtype))


def _count(request: Request, scope: Scope) -> Additive:
    """Of values, or of individuals that have one."""
    assert request.tree is not None
    if is_per_unit(request, scope):
        found = domain(request.tree, scope.facts.columns)
        return units_with(request.tree if found.nullable or found.nan else None)
    return count_of(request.tree, scope.facts.columns)


def _square_grid(inner: Grid) -> Grid:
    reach = max(abs(inner.lo), abs(inner.hi)) * inner.step
    return grid_for(Fraction(0), reach * reach, centred=True, integers=False)


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
