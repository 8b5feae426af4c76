"""Arithmetic that never raises and gives on every engine what it gives on Polars.

Whole numbers are Int64 and wrap. Where a result surely fits, the engine's own operator is used;
else it is computed in numbers of 126 bits and more, and wrapped by a remainder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dpframe.core.dtypes import FLOAT64, INT64, DType
from dpframe.lower.engines.made import End, GroupScope, Made, Scope, typed
from dpframe.rows.operands import INT64_LIMITS, INT128

_LEAST, _MOST = INT64_LIMITS
_WIDE = 2**126
_EXACT = (-(2**52), 2**52)
"""Whole numbers in here are exact as floats, and so are their quotients that are whole."""
_Ends = Callable[[Made, Made], tuple[End, End]]


def matched(scope: Scope, a: Made, b: Made) -> tuple[Made, Made]:
    """Two operands of one type: Python values take the type of what they meet, and so does null."""
    if a.dtype == b.dtype and not (a.untyped or b.untyped):
        return a, b
    if a.dtype.is_integer and b.untyped and b.dtype.is_float:
        return real(scope, a), _like(scope, b, FLOAT64)
    if b.untyped or b.dtype.name == "Null":
        return a, _like(scope, b, a.dtype)
    if a.untyped or a.dtype.name == "Null":
        return _like(scope, a, b.dtype), b
    if a.dtype.is_text and b.dtype.is_text:
        return a, b
    if a.dtype.is_integer and b.dtype.is_integer:
        wide = common_whole(a, b)
        return widened(scope, a, wide), widened(scope, b, wide)
    if a.dtype.is_float and b.dtype.is_float:
        return real(scope, a), real(scope, b)
    raise scope.ns.refused(f"{a.dtype} together with {b.dtype}")


def common_whole(a: Made, b: Made) -> DType:
    """The type that holds the values of two whole numbers."""
    wide = any(m.dtype.name in ("Int128", "UInt64") for m in (a, b))
    return INT128 if wide else INT64


def _like(scope: Scope, made: Made, dtype: DType) -> Made:
    if not made.constant or made.constant[0] is None:
        return scope.ns.constant(None, dtype)
    value: Any = made.constant[0]
    if dtype.is_float and isinstance(value, int):
        value = float(value)
    if dtype.is_integer and isinstance(value, float):
        raise scope.ns.refused("a whole number together with a constant that is none")
    if dtype.is_integer and dtype != INT128 and not _fits(value, dtype):
        raise scope.ns.refused(f"a constant that is no {dtype}")
    return scope.ns.constant(value, dtype)


def _fits(value: int, dtype: DType) -> bool:
    lo, hi = dtype.limits or INT64_LIMITS
    return lo <= value <= hi


def widened(scope: Scope, made: Made, dtype: DType) -> Made:
    """A whole number in a type that holds all of its values."""
    if made.dtype == dtype:
        return made
    return replace(
        made.having(made.expr.cast(scope.ns.native_type(dtype)), dtype), lo=made.lo, hi=made.hi
    )


def real(scope: Scope, made: Made) -> Made:
    """A number as Float64."""
    if made.dtype == FLOAT64:
        return made
    ends = (None if end is None else float(end) for end in (made.lo, made.hi))
    return made.having(made.expr.cast(scope.ns.nw.Float64), FLOAT64, *ends)


def _arithmetic(
    scope: Scope, a: Made, b: Made, function: Callable[[Any, Any], Any], ends: _Ends
) -> Made:
    a, b = matched(scope, a, b)
    if a.dtype.is_float:
        a, b = real(scope, a), real(scope, b)
        return typed(function(a.expr, b.expr), FLOAT64, a, b, **_rounded(*ends(a, b)))
    if not a.dtype.is_integer:
        raise scope.ns.refused(f"arithmetic on {a.dtype}")
    lo, hi = ends(a, b)
    if a.dtype == INT128:
        return _fitting(scope, a, b, function, INT128, lo, hi)
    a, b = widened(scope, a, INT64), widened(scope, b, INT64)
    if lo is not None and hi is not None and lo >= _LEAST and hi <= _MOST:
        return typed(function(a.expr, b.expr), INT64, a, b, lo=lo, hi=hi)
    wide = _fitting(
        scope, widened(scope, a, INT128), widened(scope, b, INT128), function, INT128, lo, hi
    )
    return wrapped(scope, wide)


def _rounded(lo: End, hi: End) -> dict[str, Any]:
    """The ends of floats computed from ends: rounding keeps the order, unless it is to infinity."""
    if lo is None or hi is None or not (math.isfinite(lo) and math.isfinite(hi)):
        return {}
    return {"lo": lo, "hi": hi}


def _fitting(
    scope: Scope,
    a: Made,
    b: Made,
    function: Callable[[Any, Any], Any],
    dtype: DType,
    lo: End,
    hi: End,
) -> Made:
    if lo is None or hi is None or lo < -_WIDE or hi > _WIDE:
        raise scope.ns.refused("numbers of more than 126 bits")
    return typed(function(a.expr, b.expr), dtype, a, b, lo=lo, hi=hi)


def wrapped(scope: Scope, wide: Made) -> Made:
    """A wide number modulo 2**64, as Int64; most fit, and remainders take long."""
    wide = scope.once(wide)
    half, whole = scope.ns.wide(2**63), scope.ns.wide(2**64)
    rest = (wide.expr + half) % whole - half
    fits = (wide.expr >= scope.ns.wide(_LEAST)) & (wide.expr <= scope.ns.wide(_MOST))
    made = scope.ns.nw.when(fits).then(wide.expr).otherwise(rest)
    return wide.having(made.cast(scope.ns.nw.Int64), INT64, _LEAST, _MOST)


_PART = 2**24


def summed_in_parts(scope: GroupScope, rows: Made) -> Made:
    """The sum of a group's whole numbers modulo 2**64, as Int64, from sums of their bits from 0 to
    23, from 24 to 47, and of the others, where they have others than these and a sign.

    A part is up to 2**24 in size, so the sums of fewer than 2**39 fit in Int64. Wide numbers hold
    a sum as it is, and take Spark several times as long.
    """
    rest, low = _parted(scope.rows, widened(scope.rows, rows, INT64))
    parts = [low, rest]
    if not rows.within(-(2**48), 2**48):
        parts = [low, *reversed(_parted(scope.rows, rest))]
    sums = []
    for part in parts:
        name, _ = scope.rows.name_of(part)
        sums.append(scope.column(scope.ns.nw.col(name).sum().cast(scope.ns.nw.Int64), INT64))
    carried, low = _parted(scope, sums[0])
    carried, middle = _parted(scope, typed(sums[1].expr + carried.expr, INT64, sums[1], carried))
    if len(sums) > 2:
        carried = typed(sums[2].expr + carried.expr, INT64, sums[2], carried)
    half, whole = (scope.ns.constant(n, INT64).expr for n in (2**15, 2**16))
    high = carried.having((carried.expr + half) % whole - half, INT64)
    part = scope.ns.constant(_PART, INT64).expr
    total = (high.expr * part + middle.expr) * part + low.expr
    return typed(total, INT64, low, middle, high, lo=_LEAST, hi=_MOST)


def _parted(scope: Scope, a: Made) -> tuple[Made, Made]:
    """A whole number divided by 2**24, floored, and the remainder."""
    a, nw = scope.once(a), scope.ns.nw
    rest = scope.once(remainder(scope, a, scope.ns.constant(_PART, INT64)))
    multiple = (a.expr - rest.expr).cast(nw.Float64)  # its 40 bits or fewer are exact
    whole = (multiple / float(_PART)).cast(nw.Int64)
    return scope.once(typed(whole, INT64, a, rest)), rest


def add(scope: Scope, a: Made, b: Made) -> Made:
    return _arithmetic(
        scope, a, b, lambda x, y: x + y, lambda x, y: (_sum(x.lo, y.lo), _sum(x.hi, y.hi))
    )


def sub(scope: Scope, a: Made, b: Made) -> Made:
    return _arithmetic(
        scope,
        a,
        b,
        lambda x, y: x - y,
        lambda x, y: (_sum(x.lo, _minus(y.hi)), _sum(x.hi, _minus(y.lo))),
    )


def mul(scope: Scope, a: Made, b: Made) -> Made:
    return _arithmetic(scope, a, b, lambda x, y: x * y, _products)


def _sum(a: End, b: End) -> End:
    return None if a is None or b is None else a + b


def _minus(end: End) -> End:
    return None if end is None else -end


def _products(a: Made, b: Made) -> tuple[End, End]:
    if a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return None, None
    found = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return min(found), max(found)


def negated(scope: Scope, a: Made) -> Made:
    if a.dtype.is_float:
        a = real(scope, a)
        return a.having(a.expr * -1.0, FLOAT64, _minus(a.hi), _minus(a.lo))
    return sub(scope, scope.ns.constant(0, a.dtype), a)


def absolute(scope: Scope, a: Made) -> Made:
    """The magnitude; the smallest Int64 has none and stays as it is."""
    if a.dtype.is_float:
        return a.having(a.expr.abs(), a.dtype)
    a = scope.once(a)
    minus = scope.once(negated(scope, a))
    below = a.expr < scope.ns.constant(0, a.dtype).expr
    made = scope.ns.nw.when(below).then(minus.expr).otherwise(a.expr)
    return typed(made, INT64, a, minus, lo=_LEAST, hi=_MOST)


def sign(scope: Scope, a: Made) -> Made:
    """-1, 0 or 1; NaN stays."""
    a, nw = scope.once(a), scope.ns.nw
    kind = int if a.dtype.is_integer else float
    minus, zero, one = (scope.ns.constant(kind(n), a.dtype).expr for n in (-1, 0, 1))
    above = a.expr > zero
    if a.dtype.is_float:
        above = above & ~a.expr.is_nan()
    below = nw.when(a.expr < zero).then(minus).otherwise(a.expr)
    return a.having(nw.when(above).then(one).otherwise(below), a.dtype, -1, 1)


def divided(scope: Scope, a: Made, b: Made) -> Made:
    """The quotient of floats; lowered operations make divisors null where they are zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_float:
        raise scope.ns.refused(f"division of {a.dtype}")
    return typed(a.expr / b.expr, FLOAT64, a, b)


def remainder(scope: Scope, a: Made, b: Made) -> Made:
    """The remainder of whole numbers that has the divisor's sign; null where that is zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_integer or a.dtype == INT128:
        raise scope.ns.refused(f"remainders of {a.dtype}")
    if _divides(b):
        a, b = widened(scope, a, INT64), widened(scope, b, INT64)
        return typed(a.expr % b.expr, INT64, a, b, lo=0, hi=b.constant[0] - 1)
    a, b = widened(scope, a, INT128), scope.once(widened(scope, b, INT128))
    divisor = scope.ns.nw.when(b.expr != scope.ns.wide(0)).then(b.expr)
    rest = (a.expr % divisor).cast(scope.ns.nw.Int64)
    return typed(rest, INT64, a, b, lo=_LEAST, hi=_MOST)


def floor_divided(scope: Scope, a: Made, b: Made) -> Made:
    """The floored quotient of whole numbers; null where the divisor is zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_integer or a.dtype == INT128:
        raise scope.ns.refused(f"floored quotients of {a.dtype}")
    if _divides(b) and a.within(*_EXACT):
        return _exactly_divided(scope, a, b)
    a = scope.once(widened(scope, a, INT128))
    b = scope.once(widened(scope, b, INT128))
    known = scope.ns.nw.when(b.expr != scope.ns.wide(0)).then(b.expr)
    divisor = scope.once(b.having(known, INT128))
    multiple = scope.once(typed(a.expr - a.expr % divisor.expr, INT128, a, divisor))
    return wrapped(scope, scope.ns.exact_quotient(scope, multiple, divisor))


def _divides(made: Made) -> bool:
    """Whether it is a constant above zero, small enough to be added to a remainder in Int64, which
    is how remainders are made to have the divisor's sign.
    """
    value = made.constant[0] if made.constant else None
    return value is not None and 0 < value < 2**62


def _exactly_divided(scope: Scope, a: Made, b: Made) -> Made:
    """A floored quotient by way of a multiple of the divisor, which floats divide exactly."""
    a, b = scope.once(widened(scope, a, INT64)), widened(scope, b, INT64)
    nw, by = scope.ns.nw, b.constant[0]
    multiple = (a.expr - a.expr % b.expr).cast(nw.Float64)
    quotient = (multiple / float(by)).cast(nw.Int64)
    lo, hi = (a.lo or 0) / by, (a.hi or 0) / by
    return typed(quotient, INT64, a, lo=math.floor(lo) - 1, hi=math.ceil(hi))


def clamped(scope: Scope, a: Made, lo: Any, hi: Any) -> Made:
    """Clamping between constants; null and NaN stay."""
    if lo is None and hi is None:
        return a
    a = scope.once(a)
    nw = scope.ns.nw
    bounds = [
        None if end is None else _like(scope, scope.ns.python(end), a.dtype) for end in (lo, hi)
    ]
    low, high = bounds
    made = a.expr
    if high is not None:
        above = a.expr > high.expr
        if a.dtype.is_float:
            above = above & ~a.expr.is_nan()
        made = nw.when(above).then(high.expr).otherwise(made)
    if low is not None:
        made = nw.when(a.expr < low.expr).then(low.expr).otherwise(made)
    least = _larger(a.lo, None if low is None else low.constant[0])
    most = _smaller(a.hi, None if high is None else high.constant[0])
    if least is not None and most is not None and least > most:
        least = most = None
    return a.having(made, a.dtype, least, most)


def _larger(end: End, bound: End) -> End:
    if end is None or bound is None:
        return bound if end is None else end
    return max(end, bound)


def _smaller(end: End, bound: End) -> End:
    if end is None or bound is None:
        return bound if end is None else end
    return min(end, bound)


def floored(scope: Scope, a: Made) -> Made:
    """The largest whole number that is not above, as Float64; NaN and infinities stay."""
    a = scope.once(real(scope, a))
    nw = scope.ns.nw
    is_small = a.within(-(2**52), 2**52)
    inside = (a.expr > -(2.0**53)) & (a.expr < 2.0**53)  # others are whole, infinite or NaN
    ok = ~a.expr.is_nan() if is_small else inside
    safe = nw.when(ok).then(a.expr).otherwise(nw.lit(0.0, nw.Float64))
    whole = safe.floor().cast(nw.Float64)  # some engines floor to whole numbers
    made = a.having(nw.when(ok).then(whole).otherwise(a.expr), FLOAT64)
    lo, hi = (None if end is None or not is_small else math.floor(end) for end in (a.lo, a.hi))
    return replace(made, lo=lo, hi=hi, is_whole=True)
