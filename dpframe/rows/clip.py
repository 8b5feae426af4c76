"""Clamping between constants, and between bounds that differ from row to row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, Domain, DType, Scalar
from dpframe.core.exact import show_input
from dpframe.core.interval import Interval
from dpframe.core.tree import Literal, Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.constants import constant_type, constant_words, physical
from dpframe.rows.layouts import together
from dpframe.rows.operands import (
    INT64_LIMITS,
    INT128_LIMITS,
    as_type,
    convert,
    converted,
    reach,
    require_numbers,
    supertype,
    when,
    whole_or_real,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import (
    Namespace,
    Node,
    Operand,
    RowMethod,
    constant,
    operand,
    operation,
    spell_out,
)
from dpframe.rows.polars_dtypes import to_polars

# Clamping between bounds that differ from row to row.


@operation
class ClipBetween(RowMethod):
    """Clip to bounds of the same row; a bound that is null or NaN does not clamp, null and NaN
    stay.

    Values below the lower bound become that bound, and values above the upper one become that.

    So the lower bound wins for a value below both where they are reversed. A bound that is null or
    NaN does not clamp.
    """

    reads = ()  # `Clip` is read into it where a bound is no constant
    engines = EVERYWHERE
    examples = spell_out(
        "i64.clip(i8, i64b); i32.clip(upper_bound=u8); u64.clip(0, i64); f64.clip(f64b, 100); "
        "i8.clip(f32, f32 + 1); dt.clip(lower_bound=dtb); d.clip(date(2000, 1, 1), d)"
    )
    has_lo: bool
    has_hi: bool

    def domain(self, args: Sequence[Domain]) -> Domain:
        dtype = _result_type(args)
        value, *bounds = (converted(d, dtype) for d in args)
        lo = bounds.pop(0) if self.has_lo else None
        hi = bounds.pop(0) if self.has_hi else None
        return Domain(
            dtype, nullable=value.nullable, nan=value.nan, interval=_interval_between(value, lo, hi)
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = _result_type(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]

        def present(bound: pl.Expr) -> pl.Expr:
            return when(ns, bound.is_not_nan(), bound) if dtype == FLOAT64 else bound

        def clamp(value: pl.Expr, *bounds: pl.Expr) -> pl.Expr:
            rest = list(bounds)
            result = value
            if self.has_hi:
                bound = present(rest.pop())
                result = when(ns, _below(bound, value), bound, result)
            if self.has_lo:
                bound = present(rest.pop())
                result = when(ns, _below(value, bound), bound, result)
            if not dtype.is_float:
                return result
            return when(ns, value.is_nan(), value, result)

        return together(ns, operands, clamp)

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


def _below(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    # Polars yields one row where a constant comes first and all rows of a column hold one value
    return a < b if a.meta.root_names() else b > a


def _interval_between(value: Domain, lo: Domain | None, hi: Domain | None) -> Interval:
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
    ends = (end if isinstance(end, Fraction) else None for end in (min(lows), max(highs)))
    return Interval(*ends)


def _ends(known: Domain) -> tuple[Fraction | float, Fraction | float]:
    lo, hi = known.interval.lo, known.interval.hi
    return -math.inf if lo is None else lo, math.inf if hi is None else hi


# Clamping between constants.


@operation
class Clip(RowMethod):
    """Values below `lo` become `lo`, above `hi` become `hi`; null and NaN stay."""

    engines = EVERYWHERE
    propagates_null = True
    examples = spell_out(
        "i32.clip(0, 10); i64.clip(-5, 5); i64.clip(upper_bound=3); u64.clip(0, 100); "
        "i8.clip(-0.5, 0.5); f64.clip(-1.0, 1.0); f32.clip(lower_bound=0); dec.clip(0, 1000); "
        "d.clip(date(2000, 1, 1), date(2020, 12, 31)); dt.clip(lower_bound=datetime(2000, 1, 1)); "
        "dur.clip(timedelta(0), timedelta(days=7)); t.clip(time(9), time(17))"
    )
    lo: Scalar
    hi: Scalar

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
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
        bounds = {"lower_bound": self.lo, "upper_bound": self.hi}
        shown = {name: constant_words(v) for name, v in bounds.items() if v is not None}
        both = len(shown) == 2
        texts = [text if both else f"{name}={text}" for name, text in shown.items()]
        return f"{args[0]}.clip({', '.join(texts)})"

    def _result(self, domain: Domain) -> Domain:
        """The facts about the operand in the type in which it is clamped."""
        kinds = [constant_type(bound) for bound in (self.lo, self.hi) if bound is not None]
        if domain.dtype.is_temporal:
            for kind in kinds:
                same_kind = (kind.name, kind.zone is None)
                if same_kind != (domain.dtype.name, domain.dtype.zone is None):
                    raise unlike_bounds(domain.dtype, kind)
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
        """The bounds as values of the type: floored to its unit, or rounded to Float64. Raises
        `InvalidBounds` when one is not finite or too large, or the two are reversed.
        """
        lo = _bound(self.lo, dtype, missing_above=False)
        hi = _bound(self.hi, dtype, missing_above=True)
        if lo is not None and hi is not None and lo > hi:
            raise _not_in_order(self.lo, self.hi)
        return Interval(lo, hi)


def _bound(value: Scalar, dtype: DType, missing_above: bool) -> Fraction | None:
    if value is None:
        return None
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


def _whole_end(ns: Namespace, end: Fraction | None) -> int | pl.Expr | None:
    """A bound of whole numbers; Polars before 1.33 takes a plain one beyond Int64 for null."""
    if end is None:
        return None
    number = int(end)
    beyond = not INT64_LIMITS[0] <= number <= INT64_LIMITS[1]
    return ns.lit(number, dtype=to_polars(INT128)) if beyond and ns is pl else number


def _clamp(expression: pl.Expr, lo: float | pl.Expr | None, hi: float | pl.Expr | None) -> pl.Expr:
    if lo is None and hi is None:
        return expression
    return expression.clip(lo, hi)


def _given_bound(bound: Operand) -> Scalar:
    value: Scalar = constant(bound, "a bound of clip")
    if value is None or (isinstance(value, (float, Decimal)) and math.isnan(value)):
        raise InvalidBounds(
            "a bound of clip is missing or NaN", remedy=("leave the bound out", "write a number")
        )
    return value


def _not_in_order(lo: Scalar, hi: Scalar) -> InvalidBounds:
    return InvalidBounds(
        f"the bounds of clip are reversed: {show_input(lo)} is above {show_input(hi)}",
        remedy="write the lower bound first",
    )


def _reversed(lo: Any, hi: Any) -> bool:
    try:
        return bool(lo > hi)
    except TypeError:
        days = [v.date() if isinstance(v, datetime) else v for v in (lo, hi)]
        are_days = all(isinstance(day, date) for day in days)  # one date and one datetime
        return bool(are_days and days[0] > days[1])


OPERATIONS = (ClipBetween, Clip)
