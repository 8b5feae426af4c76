"""Casts that never raise: what the type cannot hold is null, floats are cut off towards zero."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from dpframe.core.dtypes import BOOLEAN, FLOAT32, FLOAT64, INT64, STRING, DType
from dpframe.lower.engines.made import Made, Scope
from dpframe.lower.engines.numbers import floored, real
from dpframe.lower.engines.search import chosen
from dpframe.rows.operands import INT64_LIMITS, INT128

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
_WHOLE = 2**53
"""Beyond this size all floats are whole."""
_BEYOND_FLOAT32 = 2.0**128 - 2.0**103
"""From here on floats are rounded to infinity."""


def cast(scope: Scope, a: Made, target: DType) -> Made:
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
    if a.constant and target.is_temporal and source.is_integer:
        return _moment(scope, a, target)
    if source.is_boolean:
        return _from_boolean(scope, a, target)
    if source.is_integer:
        return _from_whole(scope, a, target)
    if source.is_float:
        return _from_real(scope, a, target)
    return _refuse(scope, source, target)


def _category(scope: Scope, a: Made, target: DType) -> Made:
    """Text that is a category, as text; null for other text."""
    listed = list(target.categories or ())
    values = pl.Series(listed, dtype=pl.String)
    return chosen(scope, a, values, listed, None, target)


def _constant(scope: Scope, a: Made, target: DType) -> Made:
    value = a.constant[0] if a.constant else None
    if value is None:
        return scope.ns.constant(None, target)
    return cast(scope, scope.ns.constant(value, a.dtype), target)


def _moment(scope: Scope, a: Made, target: DType) -> Made:
    number = a.constant[0]
    if target.name == "Datetime" and (target.zone is not None or target.unit != "us"):
        return _refuse(scope, a.dtype, target)
    if target.name not in ("Date", "Datetime"):
        return _refuse(scope, a.dtype, target)
    if number is None:
        return scope.ns.constant(None, target)
    try:
        if target.name == "Date":
            return scope.ns.constant(_EPOCH.date() + timedelta(days=number), target)
        return scope.ns.constant(_EPOCH + timedelta(microseconds=number), target)
    except OverflowError:
        raise scope.ns.refused(f"a {target} outside the years 1 to 9999") from None


def _from_boolean(scope: Scope, a: Made, target: DType) -> Made:
    nw, native = scope.ns.nw, scope.ns.native_type
    if target == STRING:
        a = scope.once(a)
        text = nw.when(a.expr).then(nw.lit("true")).when(~a.expr).then(nw.lit("false"))
        return a.having(text.otherwise(nw.lit(None, nw.String)), STRING)
    if not target.is_integer and not target.is_float:
        return _refuse(scope, BOOLEAN, target)
    number = a.expr.cast(nw.Int64)
    number = number if target == INT64 else number.cast(native(target))
    return a.having(number, target, 0, 1)


def _from_whole(scope: Scope, a: Made, target: DType) -> Made:
    native = scope.ns.native_type(target)
    if target.is_integer:
        lo, hi = target.limits or INT64_LIMITS
        if a.within(lo, hi):
            return a.having(a.expr.cast(native), target, a.lo, a.hi)
        return _guarded(scope, a, target, max(lo, int(a.lo or lo)), min(hi, int(a.hi or hi)))
    if target == FLOAT64:
        return real(scope, a)
    if target == FLOAT32 and a.dtype != INT128:
        return a.having(a.expr.cast(native), FLOAT32)
    if target.is_boolean:
        zero = scope.ns.constant(0, a.dtype)
        return a.having(a.expr != zero.expr, BOOLEAN)
    if target == STRING and a.dtype != INT128:
        return a.having(a.expr.cast(native), STRING)
    return _refuse(scope, a.dtype, target)


def _guarded(scope: Scope, a: Made, target: DType, lo: int, hi: int) -> Made:
    """Where it is from `lo` to `hi`, else null; elsewhere a cast that would fail is given zero."""
    nw = scope.ns.nw
    a = scope.once(a)
    zero = scope.ns.constant(0, a.dtype).expr
    inside = a.expr == a.expr
    if a.lo is None or a.lo < lo:
        inside = inside & (a.expr >= scope.ns.constant(lo, a.dtype).expr)
    if a.hi is None or a.hi > hi:
        inside = inside & (a.expr <= scope.ns.constant(hi, a.dtype).expr)
    ok = scope.once(a.having(inside, BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(zero).cast(scope.ns.native_type(target))
    known = nw.when(ok.expr).then(safe)
    return replace(ok.having(known, target, lo, hi), stage=ok.stage)


def _from_real(scope: Scope, a: Made, target: DType) -> Made:
    nw = scope.ns.nw
    if target == FLOAT64:
        return real(scope, a)
    if target == FLOAT32:
        return _narrowed(scope, a)
    if target.is_boolean:
        return a.having(a.expr != 0.0, BOOLEAN)
    if not target.is_integer or target == INT128:
        return _refuse(scope, a.dtype, target)
    lo, hi = target.limits or INT64_LIMITS
    a = scope.once(real(scope, a))
    ok = scope.once(a.having(_is_held(a, lo, hi), BOOLEAN))
    safe = nw.when(ok.expr).then(a.expr).otherwise(nw.lit(0.0, nw.Float64))
    small = a.within(-_WHOLE, _WHOLE)
    number = ok.having(safe, FLOAT64)
    if a.is_whole:
        cut = number
    elif small and a.lo is not None and a.lo >= 0:
        cut = number.having(safe.floor(), FLOAT64)
    else:
        number = scope.once(number)
        size = number.having(number.expr.abs(), FLOAT64)
        size = size.having(size.expr.floor(), FLOAT64) if small else floored(scope, size)
        whole = nw.when(number.expr < 0).then(size.expr * -1.0).otherwise(size.expr)
        cut = replace(size, expr=whole)
    known = nw.when(ok.expr).then(cut.expr.cast(scope.ns.native_type(target)))
    first, last = (
        None if end is None or not math.isfinite(end) else math.trunc(end) for end in (a.lo, a.hi)
    )
    known_lo = lo if first is None else max(lo, first)
    known_hi = hi if last is None else min(hi, last)
    return cut.having(known, target, known_lo, known_hi)


def _is_held(a: Made, lo: int, hi: int) -> Any:
    """Whether the whole part of a float is a number from `lo` to `hi`."""
    held = ~a.expr.is_nan()
    if a.hi is None or a.hi >= hi + 1:
        held = held & (a.expr < float(hi + 1))
    if a.lo is None or a.lo < lo:
        least = float(lo - 1)  # for the limits of Int64 the same float as they are
        held = held & (a.expr >= least if least == float(lo) else a.expr > least)
    return held


def _narrowed(scope: Scope, a: Made) -> Made:
    """Float64 as Float32, to infinity where it is too large."""
    nw = scope.ns.nw
    a = scope.once(a)
    beyond = (a.expr.abs() >= _BEYOND_FLOAT32) & ~a.expr.is_nan()
    safe = nw.when(beyond).then(nw.lit(0.0, nw.Float64)).otherwise(a.expr).cast(nw.Float32)
    endless = nw.when(a.expr > 0).then(nw.lit(math.inf, nw.Float32))
    endless = endless.otherwise(nw.lit(-math.inf, nw.Float32))
    return a.having(nw.when(beyond).then(endless).otherwise(safe), FLOAT32)


def _refuse(scope: Scope, source: DType, target: DType) -> Made:
    raise scope.ns.refused(f"a cast from {source} to {target}")
