"""Sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import (
    BoundAggregate,
    Clamp,
    MeasurementUse,
    Noisy,
    ScoringAggregate,
)
from dpframe.aggregates.count import sign_note
from dpframe.aggregates.measurement import Additive, Table
from dpframe.aggregates.request import GivenBounds, Per, QueryScope, Request
from dpframe.aggregates.statistics import (
    GridSum,
    Statistic,
    is_per_unit,
    require_rows_scored,
    total_of,
)
from dpframe.aggregates.values import (
    DIGITS,
    Value,
    as_series,
    bounds_of,
    numeric_value,
    whole_series,
)
from dpframe.core.dtypes import Columns, duration_type
from dpframe.core.interval import RESOLUTION_BITS, Grid, grid_for
from dpframe.core.tree import Call, Literal, Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.fold import domain, words

_INT64 = 2**63 - 1
MOST_ROWS = 2**32
"""The number of rows whose sum surely fits; a grid holds the integers of twice as many."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundSum(BoundAggregate):
    """A sum of clamped values on a grid."""

    # The values as numbers, what they are clamped to, and the grid of what is summed.
    value: Value
    bounds: tuple[Fraction, Fraction]
    grid: Grid
    per: Per  # Whether it is totals of individuals that are clamped
    nonnegative: bool  # Whether negative results become 0
    # The decimal places of a sum of Decimals; None for other types, and where its largest number
    # has more than 38 digits.
    scale: int | None = None

    monotone: ClassVar[bool] = True

    @property
    def is_plain_number(self) -> bool:
        temporal = self.value.domain.dtype.is_temporal
        return not temporal and not self.nonnegative

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return (Clamp(self.value.tree, self.bounds, self.per == "unit"),)

    @property
    def is_nonnegative(self) -> bool:
        return self.nonnegative

    @property
    def note(self) -> str:
        return sign_note(self.nonnegative)

    def decimals(self, values: Sequence[Noisy]) -> list[Fraction]:
        """The numbers that `combine` gives as floats, exactly."""
        noisy = values[0].reshape(-1).tolist()
        return [self.grid.step * (max(0, v) if self.nonnegative else v) for v in noisy]

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        noisy = values[0].reshape(-1)
        if self.nonnegative:
            noisy = np.maximum(noisy, 0)
        dtype, step = self.value.domain.dtype, self.grid.step
        if self.value.is_whole and step.denominator == 1:
            if step == 1:
                return whole_series(self.name, noisy, dtype)
            whole = [v * int(step) for v in noisy.tolist()]
            if fits_int64(self.bounds):
                return whole_series(self.name, [max(-_INT64, min(_INT64, v)) for v in whole], dtype)
            if dtype.is_temporal:
                per = dtype.units_per_second // 1_000
                held = [max(-_INT64, min(_INT64, v // per)) for v in whole]
                return whole_series(self.name, held, duration_type("ms"))
            return pl.Series(self.name, map(Decimal, whole), dtype=pl.Decimal(DIGITS, 0))
        return as_series(self.name, noisy.astype(np.float64) * float(step), dtype)

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        if column is None:
            return ()
        if self.value.is_whole and not fits_int64(self.bounds):
            column = column.cast(pl.Float64)
        return (column.sum(),)

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return as_series(self.name, numbers[0], self.value.domain.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Sum(ScoringAggregate):
    """The sum of an expression, each row clamped to bounds; nulls and NaN contribute 0.

    With ``per="unit"`` the total of each individual in a group is clamped instead.

    Guarantee
    ---------
    With b = max(|lo|, |hi|), w = max(hi, 0) - min(lo, 0) and k rows per individual. Add-remove:
    L1 = L2 = Linf = k b. Change-one: k w for one sum; for grouped sums L1 = 2 k b, Linf = k w and
    L2 = k max(sqrt(2) b, w). With an identifier, at most r rows and m of them in each of g groups:
    L1 = b min(r, g m), Linf = b min(r, m), L2 = b sqrt(q m^2 + (r - q m)^2) with q = floor(r / m).
    Totals of individuals: L1 = g b, Linf = b, L2 = sqrt(g) b.

    Values are rounded to a power-of-two grid of at most 2**-30 of the bounds (integers
    exactly, up to bounds of 2**30), which biases a sum of n rows by at most n/2 grid steps.

    A sum of integers is Int64 where bounds are below 2**31, else Decimal(38, 0), so that no sum of
    up to 2**32 rows is beyond its type. A sum of durations is in milliseconds if their own unit
    might not hold it, and refused if milliseconds might not either. A sum of a Decimal column,
    also where it is clipped or filtered, is a Decimal of its scale: the noisy number is rounded to
    it, and the ends of its interval are rounded outwards.

    Proof
    -----
    The lowered expression itself clamps and rounds each row to an integer number of steps within
    the bounds, and makes null and NaN add 0, so b and w hold of any data. Integers are summed, so
    order does not matter. They are at most 2**30 in size, so sums of up to 2**33 rows fit in
    Int64, and are put in the units of the result after noise was added, as exact integers. A sum of
    more rows would wrap, and noise is added modulo 2**64, so distances stay what they were. The
    rest is the rule for sums over disjoint sets of rows (`dpframe.kernel.moves.norms_of`).
    """

    bounds: GivenBounds = None
    per: Per = None
    nonnegative: bool = False

    kind: ClassVar[str] = "sum"
    positional: ClassVar[tuple[str, ...]] = ("bounds",)
    summary: ClassVar[str] = "sum of values clamped to bounds; nulls and NaN add nothing"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_sum((-5, 10))',
        'pl.col("f64").dp_sum((0.0, 0.1))',
        'pl.col("u8").dp_sum()',
        'pl.col("b").dp_sum()',
        'pl.col("i64").dp_sum((-(2**40), 2**62))',
    )

    def bind(self, request: Request, scope: QueryScope) -> BoundSum:
        assert request.tree is not None
        value = numeric_value(request.tree, scope.facts.columns, "sum")
        dtype = value.domain.dtype
        if dtype.is_temporal and dtype.name != "Duration":
            raise UnsupportedOperation(
                f"values of type {dtype} have no sum",
                where=words(request.tree),
                remedy=("use .dp_mean() of it", "sum a number or a duration"),
            )
        per_unit = is_per_unit(request, scope, self.per, self.bounds, dtype)
        bounds = bounds_of(value, self.bounds, "sum")
        _require_room(value, bounds)
        statistic = grid_sum(value, bounds, scope.resolution)
        use = MeasurementUse(Additive(Table(total_of(statistic, per_unit))), "sum")
        grid = statistic.grid
        scale = decimal_scale(request.tree, scope.facts.columns)
        if scale is not None and grid.step * 2**63 * 10**scale >= 10**DIGITS:
            scale = None
        return BoundSum(request, (use,), value, bounds, grid, self.per, self.nonnegative, scale)

    def score(self, request: Request, scope: QueryScope) -> Statistic:
        assert request.tree is not None
        require_rows_scored(request, scope, self.per, self.bounds)
        value = numeric_value(request.tree, scope.facts.columns, "sum")
        return grid_sum(value, bounds_of(value, self.bounds, "sum"))


_KEEP_DECIMALS = {"clip", "neg", "abs", "add", "sub", "when", "fill_null", "coalesce"}
"""Operations whose result has the decimal places of its operands, as in Polars."""


def decimal_scale(tree: Tree, columns: Columns) -> int | None:
    """The decimal places of an expression of Decimals and integers; None for every other."""
    if isinstance(tree, Call) and tree.operation.name in _KEEP_DECIMALS:
        parts = tree.args[1:] if tree.operation.name == "when" else tree.args
        missing = [isinstance(part, Literal) and part.value is None for part in parts]
        scales = [
            _scale(part, columns) for part, none in zip(parts, missing, strict=True) if not none
        ]
        known = [scale for scale in scales if scale is not None]
        decimals = any(decimal_scale(part, columns) is not None for part in parts)
        return max(known) if decimals and len(known) == len(scales) else None
    dtype = domain(tree, columns).dtype
    return (dtype.scale or 0) if dtype.is_decimal else None


def _scale(tree: Tree, columns: Columns) -> int | None:
    """As `decimal_scale`, and 0 for integers."""
    return 0 if domain(tree, columns).dtype.is_integer else decimal_scale(tree, columns)


def fits_int64(bounds: tuple[Fraction, Fraction]) -> bool:
    """Whether a sum of values within bounds fits in Int64, by the bounds alone."""
    return max(abs(end) for end in bounds) * MOST_ROWS < 2**63


def _require_room(value: Value, bounds: tuple[Fraction, Fraction]) -> None:
    """Refuse whole numbers whose sum the type of the result might not hold. Raises `InvalidBounds`
    when bounds are too large for a Decimal of 38 digits, or durations for milliseconds.
    """
    if not value.is_whole:
        return
    dtype = value.domain.dtype
    if not dtype.is_temporal:
        if max(abs(end) for end in bounds) * MOST_ROWS >= 10**DIGITS:
            raise InvalidBounds(
                "a sum of integers within these bounds may have more than 38 digits",
                where=words(value.tree),
                remedy=("give smaller bounds", "sum floats, with .cast(pl.Float64)"),
            )
        return
    per = Fraction(1_000, dtype.units_per_second)
    if not fits_int64(bounds) and not fits_int64((bounds[0] * per, bounds[1] * per)):
        raise InvalidBounds(
            "a sum of durations of more than 24 days may be longer than a Duration can hold",
            where=words(value.tree),
            remedy="sum seconds: .dt.total_seconds().dp_sum((low, high))",
        )


def grid_sum(
    value: Value, bounds: tuple[Fraction, Fraction], bits: int = RESOLUTION_BITS
) -> GridSum:
    """The sum of values clamped to bounds, whole where both are."""
    lo, hi = bounds
    whole = value.is_whole and lo.denominator == 1 and hi.denominator == 1
    return GridSum(value, grid_for(lo, hi, centred=False, integers=whole, bits=bits))
