"""Clamping between bounds that differ from row to row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import Interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.layouts import together
from dpframe.rows.operands import require_numbers, whole_or_real
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.supertype import convert, converted, supertype


@operation
class ClipBetween(ParametricOperation):
    """Values below the lower bound become that bound, and values above the upper one become that.

    So the lower bound wins for a value below both where they are reversed. A bound that is null or
    NaN does not clamp.
    """

    name = "clip_between"
    reads = ()  # `Clip` is read into it where a bound is no constant
    engines = EVERYWHERE
    summary = (
        "Clip to bounds of the same row; a bound that is null or NaN does not clamp, null and NaN "
        "stay."
    )
    examples = (
        'pl.col("i64").clip(pl.col("i8"), pl.col("i64b"))',
        'pl.col("i32").clip(upper_bound=pl.col("u8"))',
        'pl.col("u64").clip(0, pl.col("i64"))',
        'pl.col("f64").clip(pl.col("f64b"), 100)',
        'pl.col("i8").clip(pl.col("f32"), pl.col("f32") + 1)',
        'pl.col("dt").clip(lower_bound=pl.col("dtb"))',
        'pl.col("d").clip(date(2000, 1, 1), pl.col("d"))',
    )
    has_lo: bool
    has_hi: bool

    def domain(self, args: Sequence[Domain]) -> Domain:
        dtype = _result_type(args)
        value, *bounds = (converted(d, dtype) for d in args)
        lo = bounds.pop(0) if self.has_lo else None
        hi = bounds.pop(0) if self.has_hi else None
        return Domain(
            dtype, nullable=value.nullable, nan=value.nan, interval=_clamped(value, lo, hi)
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _result_type(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]

        def clamped(value: pl.Expr, *bounds: pl.Expr) -> pl.Expr:
            rest = list(bounds)
            result = value
            if self.has_hi:
                bound = _bound(ns, rest.pop(), dtype)
                result = ns.when(_below(bound, value)).then(bound).otherwise(result)
            if self.has_lo:
                bound = _bound(ns, rest.pop(), dtype)
                result = ns.when(_below(value, bound)).then(bound).otherwise(result)
            if not dtype.is_float:
                return result
            kept: pl.Expr = ns.when(value.is_nan()).then(value).otherwise(result)
            return kept

        return together(ns, operands, clamped)

    def words(self, args: Sequence[str]) -> str:
        value, *bounds = args
        if len(bounds) == 2:
            return f"{value}.clip({', '.join(bounds)})"
        return f"{value}.clip({'lower' if self.has_lo else 'upper'}_bound={bounds[0]})"


def _result_type(domains: Sequence[Domain]) -> DType:
    """Int64 or Float64 for numbers; moments of one kind stay, in the finer unit."""
    if domains[0].dtype.is_temporal:
        dtype = supertype(domains)
        if dtype.name != domains[0].dtype.name:
            raise unlike_bounds(domains[0].dtype, dtype)
        return dtype
    require_numbers("clip", domains)
    return whole_or_real(domains)


def unlike_bounds(dtype: DType, bound: DType) -> UnsupportedOperation:
    """The refusal of bounds that values of a type cannot be compared with."""
    kind = "numbers" if dtype.is_numeric else f"{dtype.name} values"
    zone = " of the same kind of time zone" if dtype.name == bound.name else ""
    return UnsupportedOperation(
        f"{dtype} cannot be clamped to {bound}", remedy=f"write bounds that are {kind}{zone}"
    )


def _bound(ns: Namespace, bound: pl.Expr, dtype: DType) -> pl.Expr:
    """A bound, null where it is NaN."""
    if dtype != FLOAT64:
        return bound
    known: pl.Expr = ns.when(bound.is_not_nan()).then(bound)
    return known


def _below(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    # Polars yields one row where a constant comes first and all rows of a column hold one value
    return a < b if a.meta.root_names() else b > a


def _clamped(value: Domain, lo: Domain | None, hi: Domain | None) -> Interval:
    """Where the value lies that is left, or the bound that took its place."""
    least, most = _ends(value)
    lows, highs = [least], [most]
    if lo is not None:
        low, high = _ends(lo)
        lows, highs = [max(least, low)], [*highs, high]
        lows += [least] if lo.nullable or lo.nan else []
    if hi is not None:
        low, high = _ends(hi)
        lows.append(low)
        if not (hi.nullable or hi.nan):
            highs[0] = min(most, high)
    return Interval(_end(min(lows)), _end(max(highs)))


def _ends(known: Domain) -> tuple[Fraction | float, Fraction | float]:
    lo, hi = known.interval.lo, known.interval.hi
    return -math.inf if lo is None else lo, math.inf if hi is None else hi


def _end(end: Fraction | float) -> Fraction | None:
    return end if isinstance(end, Fraction) else None


OPERATIONS: tuple[Kind, ...] = (ClipBetween,)
