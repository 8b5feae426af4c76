"""Casts that never raise: what the type cannot hold is null, floats are cut off towards zero."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import BOOLEAN, FLOAT32, FLOAT64, INT64, INT128, STRING, DType
from dpframe.core.interval import UNIT, Interval, interval
from dpframe.lower.engines.calendar import moment_of, reach
from dpframe.lower.engines.engine_expr import DURATION, EngineExpr, EngineScope, combined, hull
from dpframe.lower.engines.numbers import chosen, floored, matched, real
from dpframe.rows.operands import INT64_LIMITS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_SMALL = (-(2**53), 2**53)
"""Beyond this size all floats are whole."""
_BEYOND_FLOAT32 = 2.0**128 - 2.0**103
"""From here on floats are rounded to infinity."""


def cast(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """The value in another type; null where it does not fit."""
    source = a.dtype
    if a.untyped or source.name == "Null":
        return _constant(scope, a, target)
    if source == target:
        return a
    if source.is_text and target.is_text:
        if target.name == "Enum":
            return _category(scope, a, target)
        return replace(a, dtype=STRING) if target == STRING else _refuse(scope, source, target)
    if source == DURATION and target.is_integer:
        return _from_whole(scope, a.having(a.expr, INT64, a.interval), target)
    if target == DURATION and source.is_integer:
        number = cast(scope, a, INT64)
        return number.having(number.expr, DURATION, number.interval)
    if a.constant and target.is_temporal and source.is_integer:
        return _moment(scope, a, target)
    if a.constant and source.is_temporal and target.is_integer:
        return cast(scope, _number(scope, a), target)
    if source.is_integer and _is_near(scope, a, target):
        return moment_of(scope, a, target)
    if source.is_boolean:
        return _from_boolean(scope, a, target)
    if source.is_integer:
        return _from_whole(scope, a, target)
    if source.is_float:
        return _from_real(scope, a, target)
    return _refuse(scope, source, target)


def _number(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """The physical number of a constant moment."""
    scope.dialect.require_comparable(a.dtype)
    value: Any = a.constant[0]
    if isinstance(value, datetime):
        value = (value - _EPOCH) // timedelta(microseconds=1)
    elif value is not None:
        value = (value - _EPOCH.date()).days
    return scope.dialect.constant(value, INT64)


def _is_near(scope: EngineScope, a: EngineExpr, target: DType) -> bool:
    """Whether numbers are surely those of moments that all engines have."""
    is_moment = target.name in ("Date", "Datetime") and scope.dialect.has_type(target)
    return is_moment and a.interval.within(reach(target))


def _category(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """Text that is a category, as text; null for other text."""
    listed = list(target.categories or ())
    values = pl.Series(listed, dtype=pl.String)
    return chosen(scope, a, values, listed, None, target)


def _constant(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    value = a.constant[0] if a.constant else None
    if value is None:
        return scope.dialect.constant(None, target)
    return cast(scope, scope.dialect.constant(value, a.dtype), target)


def _moment(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    number: Any = a.constant[0]
    if target.name == "Datetime" and (target.zone is not None or target.unit != "us"):
        return _refuse(scope, a.dtype, target)
    if target.name not in ("Date", "Datetime"):
        return _refuse(scope, a.dtype, target)
    if number is None:
        return scope.dialect.constant(None, target)
    try:
        if target.name == "Date":
            return scope.dialect.constant(_EPOCH.date() + timedelta(days=number), target)
        return scope.dialect.constant(_EPOCH + timedelta(microseconds=number), target)
    except OverflowError:
        raise scope.dialect.refused(f"a {target} outside the years 1 to 9999") from None


def _from_boolean(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    if target == STRING:
        a = scope.once(a)
        text = nw.when(a.expr).then(nw.lit("true")).when(~a.expr).then(nw.lit("false"))
        return a.having(text.otherwise(nw.lit(None, nw.String)), STRING)
    if not target.is_integer and not target.is_float:
        return _refuse(scope, BOOLEAN, target)
    number = a.expr.cast(nw.Int64)
    number = number if target == INT64 else number.cast(scope.dialect.native_type(target))
    return a.having(number, target, UNIT)


def _from_whole(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    native = scope.dialect.native_type(target)
    if target.is_integer:
        if a.interval.within(_limits(target)):
            return a.having(a.expr.cast(native), target, a.interval)
        return _guarded(scope, a, target)
    if target == FLOAT64:
        return real(a)
    if target == FLOAT32 and a.dtype != INT128:
        return a.having(a.expr.cast(native), FLOAT32)
    if target.is_boolean:
        zero = scope.dialect.constant(0, a.dtype)
        return a.having(a.expr != zero.expr, BOOLEAN)
    if target == STRING and a.dtype != INT128:
        return a.having(a.expr.cast(native), STRING)
    return _refuse(scope, a.dtype, target)


def _guarded(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    """Null where it does not fit; there a cast that would fail is given zero."""
    a = scope.once(a)
    (lo, hi), known = _limits(target), a.interval
    zero = scope.dialect.constant(0, a.dtype).expr
    inside = a.expr == a.expr
    if known.lo is None or known.lo < lo:
        inside = inside & (a.expr >= scope.dialect.constant(lo, a.dtype).expr)
    if known.hi is None or known.hi > hi:
        inside = inside & (a.expr <= scope.dialect.constant(hi, a.dtype).expr)
    ok = scope.once(a.having(inside, BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(zero).cast(scope.dialect.native_type(target))
    return ok.having(nw.when(ok.expr).then(safe), target, _held(known, target))


def _limits(target: DType) -> tuple[int, int]:
    return target.limits or INT64_LIMITS


def _held(known: Interval, target: DType) -> Interval:
    """What of an interval a type of whole numbers holds; all of the type where that is nothing."""
    limits = interval(*_limits(target))
    return known.intersect(limits) or limits


def _from_real(scope: EngineScope, a: EngineExpr, target: DType) -> EngineExpr:
    if target == FLOAT64:
        return real(a)
    if target == FLOAT32:
        return _narrowed(scope, a)
    if target.is_boolean:
        return a.having(a.expr != 0.0, BOOLEAN)
    if not target.is_integer or target == INT128:
        return _refuse(scope, a.dtype, target)
    a = scope.once(real(a))
    ok = scope.once(a.having(_is_held(a, *_limits(target)), BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(nw.lit(0.0, nw.Float64))
    number = ok.having(safe, FLOAT64)
    cut = number if a.is_whole else _cut_off(scope, number, a.interval)
    known = nw.when(ok.expr).then(cut.expr.cast(scope.dialect.native_type(target)))
    whole = a.interval.increasing(lambda end: Fraction(math.trunc(end)))
    return cut.having(known, target, _held(whole, target))


def _cut_off(scope: EngineScope, number: EngineExpr, known: Interval) -> EngineExpr:
    """A float without what is after the point; it lies in `known`, or is zero."""
    small = known.within(_SMALL)
    if small and known.lo is not None and known.lo >= 0:
        return number.having(number.expr.floor(), FLOAT64)
    number = scope.once(number)
    size = number.having(number.expr.abs(), FLOAT64)
    size = size.having(size.expr.floor(), FLOAT64) if small else floored(scope, size)
    whole = nw.when(number.expr < 0).then(size.expr * -1.0).otherwise(size.expr)
    return size.having(whole, FLOAT64)


def _is_held(a: EngineExpr, lo: int, hi: int) -> nw.Expr:
    """Whether the whole part of a float is a number from `lo` to `hi`."""
    held, known = ~a.expr.is_nan(), a.interval
    if known.hi is None or known.hi >= hi + 1:
        held = held & (a.expr < float(hi + 1))
    if known.lo is None or known.lo < lo:
        least = float(lo - 1)  # for the limits of Int64 the same float as they are
        held = held & (a.expr >= least if least == float(lo) else a.expr > least)
    return held


def _narrowed(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """Float64 as Float32, to infinity where it is too large."""
    a = scope.once(a)
    beyond = (a.expr.abs() >= _BEYOND_FLOAT32) & ~a.expr.is_nan()
    safe = nw.when(beyond).then(nw.lit(0.0, nw.Float64)).otherwise(a.expr).cast(nw.Float32)
    plus, minus = nw.lit(math.inf, nw.Float32), nw.lit(-math.inf, nw.Float32)
    endless = nw.when(a.expr > 0).then(plus).otherwise(minus)
    return a.having(nw.when(beyond).then(endless).otherwise(safe), FLOAT32)


def _refuse(scope: EngineScope, source: DType, target: DType) -> EngineExpr:
    raise scope.dialect.refused(f"a cast from {source} to {target}")


# Values that depend on a condition, or on which values are null.


def chosen_by(
    scope: EngineScope, condition: EngineExpr, yes: EngineExpr, no: EngineExpr
) -> EngineExpr:
    """One value where a condition holds, else another."""
    yes, no = matched(scope, yes, no)
    if condition.dtype != BOOLEAN:
        condition = cast(scope, condition, BOOLEAN)
    made = nw.when(condition.expr).then(yes.expr).otherwise(no.expr)
    dtype = STRING if yes.dtype.is_text and yes.dtype != no.dtype else yes.dtype
    return combined(made, dtype, condition, yes, no, known=hull(yes, no))


def coalesced(scope: EngineScope, *values: EngineExpr) -> EngineExpr:
    """The first value that is not null."""
    like = next((m for m in values if m.dtype.name != "Null" and not m.untyped), values[0])
    parts = [matched(scope, like, m)[1] for m in values]
    expr = nw.coalesce(*(m.expr for m in parts))
    return combined(expr, like.dtype, *parts, known=hull(*parts))
