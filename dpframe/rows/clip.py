"""Clamping between constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import FLOAT64, INT64, INT128, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.exact import as_given
from dpframe.core.interval import Interval
from dpframe.core.tree import Literal, Tree
from dpframe.errors import InvalidBounds
from dpframe.rows.clip_between import ClipBetween, unlike_bounds
from dpframe.rows.constants import constant_type, constant_words
from dpframe.rows.given import Operand, constant, operand
from dpframe.rows.literal import physical
from dpframe.rows.operands import (
    INT64_LIMITS,
    INT128_LIMITS,
    as_type,
    reach,
    require_numbers,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.polars_dtypes import to_polars


@operation
class Clip(ParametricOperation):
    name = "clip"
    reads = ("Clip",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Values below `lo` become `lo`, above `hi` become `hi`; null and NaN stay."
    examples = (
        'pl.col("i32").clip(0, 10)',
        'pl.col("i64").clip(-5, 5)',
        'pl.col("i64").clip(upper_bound=3)',
        'pl.col("u64").clip(0, 100)',
        'pl.col("i8").clip(-0.5, 0.5)',
        'pl.col("f64").clip(-1.0, 1.0)',
        'pl.col("f32").clip(lower_bound=0)',
        'pl.col("dec").clip(0, 1000)',
        'pl.col("d").clip(date(2000, 1, 1), date(2020, 12, 31))',
        'pl.col("dt").clip(lower_bound=datetime(2000, 1, 1))',
        'pl.col("dur").clip(timedelta(0), timedelta(days=7))',
        'pl.col("t").clip(time(9), time(17))',
    )
    lo: Scalar
    hi: Scalar

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, *bounds = operands
        has_lo, has_hi = bool(params["has_min"]), bool(params["has_max"])
        if any(not isinstance(operand(bound), Literal) for bound in bounds):
            for bound in bounds:
                if isinstance(operand(bound), Literal):
                    _given_bound(bound)
            return ClipBetween(has_lo, has_hi).of(source, *bounds)
        ends = [_given_bound(bound) for bound in bounds]
        lo = ends.pop(0) if has_lo else None
        hi = ends.pop(0) if has_hi else None
        if lo is not None and hi is not None and _reversed(lo, hi):
            raise _not_in_order(lo, hi)
        return cls(None if lo == -math.inf else lo, None if hi == math.inf else hi).of(source)

    def domain(self, args: Sequence[Domain]) -> Domain:
        clamped = self._result(args[0])
        bounds = self._bounds(clamped.dtype)
        dtype, inside = clamped.dtype, _clamped(clamped.interval, bounds)
        if dtype == INT128:
            most = _clamped(reach(args[0]), bounds)
            dtype, inside = (INT64, inside) if most.within(INT64_LIMITS) else (INT128, most)
        return Domain(dtype, nullable=clamped.nullable, nan=clamped.nan, interval=inside)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = self._result(domains[0]).dtype
        bounds = self._bounds(dtype)
        if dtype == FLOAT64:
            real = widen_to_float(args[0], domains[0])
            return _clamp(real, *(None if e is None else float(e) for e in (bounds.lo, bounds.hi)))
        # What does not fit in Int64 is clamped before it would be lost, also where it was declared
        # to fit.
        carrier = INT128 if domains[0].dtype.name in ("UInt64", "Int128") else INT64
        whole = as_type(args[0], carrier)
        clamp = _clamp(whole, *(_whole_end(ns, e) for e in (bounds.lo, bounds.hi)))
        result = self.domain(domains).dtype
        return clamp if result == INT128 else as_type(as_type(clamp, INT64), result)

    def words(self, args: Sequence[str]) -> str:
        lo, hi = self.lo, self.hi
        shown = [
            f"{name}={constant_words(value)}"
            for name, value in (("lower_bound", lo), ("upper_bound", hi))
            if value is not None
        ]
        if len(shown) == 2:
            shown = [constant_words(lo), constant_words(hi)]
        return f"{args[0]}.clip({', '.join(shown)})"

    def _result(self, domain: Domain) -> Domain:
        """The facts about the operand in the type in which it is clamped."""
        kinds = [constant_type(bound) for bound in (self.lo, self.hi) if bound is not None]
        if domain.dtype.is_temporal:
            for kind in kinds:
                _require_same_kind(domain.dtype, kind)
            return domain
        require_numbers("clip", [domain])
        for kind in kinds:
            if not (kind.is_numeric or kind.is_boolean):
                raise unlike_bounds(domain.dtype, kind)
        wide = widened(domain)
        if wide.dtype != FLOAT64 and all(kind.is_integer or kind.is_boolean for kind in kinds):
            return wide
        return widened_to_float(domain)

    def _bounds(self, dtype: DType) -> Interval:
        """The bounds as values of the type: floored to its unit, or rounded to Float64.

        Raises
        ------
        InvalidBounds
            When a bound is not finite, the two are reversed, or one is out of the type's reach.
        """
        lo = _bound(self.lo, dtype, missing_above=False)
        hi = _bound(self.hi, dtype, missing_above=True)
        if lo is not None and hi is not None and lo > hi:
            raise _not_in_order(self.lo, self.hi)
        return Interval(lo, hi)


def _require_same_kind(dtype: DType, bound: DType) -> None:
    if dtype.name != bound.name or (dtype.zone is None) != (bound.zone is None):
        raise unlike_bounds(dtype, bound)


def _bound(value: Scalar, dtype: DType, missing_above: bool) -> Fraction | None:
    if value is None:
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        number = None
    else:
        number = physical(value, dtype)
    if number is None:
        raise InvalidBounds(
            f"{constant_words(value)} is not a bound",
            remedy=("write a finite number", "leave the bound out"),
        )
    if dtype == FLOAT64:
        rounded = Interval(number, number).as_float().lo
        assert rounded is not None  # constants have at most 128 bits or 38 digits
        return rounded
    whole = Fraction(math.floor(number))
    least, most = INT128_LIMITS if dtype == INT128 else INT64_LIMITS
    if least <= whole <= most:
        return whole
    if (whole > 0) == missing_above:
        return None  # no value lies beyond it
    raise InvalidBounds(f"a bound does not fit in {dtype}", remedy="write a bound nearer to 0")


def _clamped(known: Interval, bounds: Interval) -> Interval:
    """The image of an interval under clamping."""

    def clamp(end: Fraction | None, other: Fraction | None) -> Fraction | None:
        if end is None:
            return other
        low = end if bounds.lo is None else max(end, bounds.lo)
        return low if bounds.hi is None else min(low, bounds.hi)

    return Interval(clamp(known.lo, bounds.lo), clamp(known.hi, bounds.hi))


def _whole_end(ns: Namespace, end: Fraction | None) -> Any:
    """A bound of whole numbers; Polars before 1.33 takes a plain one beyond Int64 for null."""
    if end is None:
        return None
    number = int(end)
    beyond = not INT64_LIMITS[0] <= number <= INT64_LIMITS[1]
    return ns.lit(number, dtype=to_polars(INT128)) if beyond and ns is pl else number


def _clamp(expression: pl.Expr, lo: Any, hi: Any) -> pl.Expr:
    if lo is None and hi is None:
        return expression
    return expression.clip(lo, hi)


def _given_bound(bound: Operand) -> Scalar:
    value = constant(bound, "a bound of clip")
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)):
        raise InvalidBounds(
            "a bound of clip is missing or NaN", remedy=("leave the bound out", "write a number")
        )
    return value


def _not_in_order(lo: Scalar, hi: Scalar) -> InvalidBounds:
    return InvalidBounds(
        f"the bounds of clip are reversed: {as_given(lo)} is above {as_given(hi)}",
        remedy="write the lower bound first",
    )


def _reversed(lo: Any, hi: Any) -> bool:
    try:
        return bool(lo > hi)
    except TypeError:
        if isinstance(lo, date) and isinstance(hi, date):  # one date and one datetime
            return _as_day(lo) > _as_day(hi)
        return False


def _as_day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


OPERATIONS: tuple[Kind, ...] = (Clip,)
