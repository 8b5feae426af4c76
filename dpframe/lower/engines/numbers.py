"""Arithmetic that never raises and gives on every engine what it gives on Polars.

Whole numbers are Int64 and wrap. Where a result surely fits, the engine's own operator is used;
else it is computed in numbers of 126 bits and more, and wrapped by a remainder.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import FLOAT64, INT64, INT128, DType
from dpframe.core.interval import Interval, interval
from dpframe.lower.engines.engine_expr import INT64_RANGE, EngineExpr, combined, hull
from dpframe.lower.engines.engine_scope import EngineScope
from dpframe.rows.operands import INT64_LIMITS

_WIDE = (-(2**126), 2**126)
_WIDE_RANGE = interval(*_WIDE)
_ADDED = (-(2**125), 2**125)
_EXACT = (-(2**52), 2**52)
"""Whole numbers in here are exact as floats, and so are their quotients that are whole."""
_MOST_DECIMALS = 22
"""Powers of ten up to this one are exact as floats."""
_MOST_FACTORS = 64
Apply = Callable[[Any, Any], Any]
"""An operator, of expressions and of intervals alike."""


def matched(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> tuple[EngineExpr, EngineExpr]:
    """Two operands of one type: Python values take the type of what they meet, and so does null."""
    if a.dtype == b.dtype and not (a.untyped or b.untyped):
        return a, b
    if a.dtype.is_integer and b.untyped and b.dtype.is_float:
        return real(a), _like(scope, b, FLOAT64)
    if b.untyped or b.dtype.name == "Null":
        return a, _like(scope, b, a.dtype)
    if a.untyped or a.dtype.name == "Null":
        return _like(scope, a, b.dtype), b
    if a.dtype.is_text and b.dtype.is_text:
        return a, b
    if a.dtype.is_integer and b.dtype.is_integer:
        wide = common_whole(a.dtype, b.dtype)
        return widened(scope, a, wide), widened(scope, b, wide)
    if a.dtype.is_float and b.dtype.is_float:
        return real(a), real(b)
    raise scope.dialect.refused(f"{a.dtype} together with {b.dtype}")


def common_whole(*dtypes: DType) -> DType:
    """The type that holds the values of some types of whole numbers."""
    return INT128 if any(t.name in ("Int128", "UInt64") for t in dtypes) else INT64


def _like(scope: EngineScope, made: EngineExpr, dtype: DType) -> EngineExpr:
    value: Any = made.constant[0] if made.constant else None
    if value is None:
        return scope.dialect.constant(None, dtype)
    if dtype.is_float and isinstance(value, int):
        value = float(value)
    if dtype.is_integer and isinstance(value, float):
        raise scope.dialect.refused("an integer together with a constant that is not an integer")
    lo, hi = dtype.limits or INT64_LIMITS
    if dtype.is_integer and dtype != INT128 and not lo <= value <= hi:
        raise scope.dialect.refused(f"a constant outside the range of {dtype}")
    return scope.dialect.constant(value, dtype)


def widened(scope: EngineScope, made: EngineExpr, dtype: DType) -> EngineExpr:
    """A whole number in a type that holds all of its values."""
    if made.dtype == dtype:
        return made
    return made.having(made.expr.cast(scope.dialect.native_type(dtype)), dtype, made.interval)


def real(made: EngineExpr) -> EngineExpr:
    """A number as Float64."""
    if made.dtype == FLOAT64:
        return made
    return made.having(made.expr.cast(nw.Float64), FLOAT64, made.interval.as_float())


def _arithmetic(scope: EngineScope, a: EngineExpr, b: EngineExpr, apply: Apply) -> EngineExpr:
    a, b = matched(scope, a, b)
    if a.dtype.is_float:
        a, b = real(a), real(b)
        known = apply(a.interval, b.interval).as_float()  # rounding keeps the order
        return combined(apply(a.expr, b.expr), FLOAT64, a, b, known=known)
    if not a.dtype.is_integer:
        raise scope.dialect.refused(f"arithmetic on {a.dtype}")
    if a.dtype == INT128:
        return _wide(scope, a, b, apply)
    known = apply(a.interval, b.interval)
    a, b = widened(scope, a, INT64), widened(scope, b, INT64)
    if known.within(INT64_LIMITS):
        return combined(apply(a.expr, b.expr), INT64, a, b, known=known)
    return wrapped(scope, _wide(scope, widened(scope, a, INT128), widened(scope, b, INT128), apply))


def _wide(scope: EngineScope, a: EngineExpr, b: EngineExpr, apply: Apply) -> EngineExpr:
    known: Interval = apply(a.interval, b.interval)
    if not known.within(_WIDE):
        raise scope.dialect.refused("numbers of more than 126 bits")
    return combined(apply(a.expr, b.expr), INT128, a, b, known=known)


def wrapped(scope: EngineScope, wide: EngineExpr) -> EngineExpr:
    """A wide number modulo 2**64, as Int64; most fit, and remainders take long."""
    wide, number = scope.once(wide), scope.dialect.wide
    half, least, most = 2**63, *INT64_LIMITS
    rest = (wide.expr + number(half)) % number(2 * half) - number(half)
    fits = (wide.expr >= number(least)) & (wide.expr <= number(most))
    made = nw.when(fits).then(wide.expr).otherwise(rest)
    return wide.having(made.cast(nw.Int64), INT64, INT64_RANGE)


def add(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    return _arithmetic(scope, a, b, operator.add)


def sub(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    return _arithmetic(scope, a, b, operator.sub)


def mul(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    return _arithmetic(scope, a, b, operator.mul)


def negated(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    if a.dtype.is_float:
        a = real(a)
        return a.having(a.expr * -1.0, FLOAT64, -a.interval)
    return sub(scope, scope.dialect.constant(0, a.dtype), a)


def absolute(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """The magnitude; the smallest Int64 has none and is unchanged."""
    known = a.interval.abs()
    if a.dtype.is_float:
        return a.having(a.expr.abs(), a.dtype, known)
    a = scope.once(a)
    minus = scope.once(negated(scope, a))
    below = a.expr < scope.dialect.constant(0, a.dtype).expr
    made = nw.when(below).then(minus.expr).otherwise(a.expr)
    return combined(made, INT64, a, minus, known=within_int64(known))


def within_int64(known: Interval) -> Interval:
    """The interval of an Int64 that may have wrapped."""
    return known if known.within(INT64_LIMITS) else INT64_RANGE


def sign(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """-1, 0 or 1; NaN stays."""
    a = scope.once(a)
    kind = int if a.dtype.is_integer else float
    minus, zero, one = (scope.dialect.constant(kind(n), a.dtype).expr for n in (-1, 0, 1))
    above = a.expr > zero
    if a.dtype.is_float:
        above = above & ~a.expr.is_nan()
    below = nw.when(a.expr < zero).then(minus).otherwise(a.expr)
    return a.having(nw.when(above).then(one).otherwise(below), a.dtype, interval(-1, 1))


def divided(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """The quotient of floats; lowered operations make divisors null where they are zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_float:
        raise scope.dialect.refused(f"division of {a.dtype}")
    return combined(a.expr / b.expr, FLOAT64, a, b)


def remainder(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """The remainder of whole numbers that has the divisor's sign; null where that is zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_integer:
        raise scope.dialect.refused(f"remainders of {a.dtype}")
    if a.dtype == INT128:
        return _wide_remainder(scope, a, b)
    divisor = _divisor(b)
    if divisor is not None:
        a, b = widened(scope, a, INT64), widened(scope, b, INT64)
        return combined(a.expr % b.expr, INT64, a, b, known=interval(0, divisor - 1))
    a, b = widened(scope, a, INT128), scope.once(widened(scope, b, INT128))
    known = nw.when(b.expr != scope.dialect.wide(0)).then(b.expr)
    return combined((a.expr % known).cast(nw.Int64), INT64, a, b, known=INT64_RANGE)


def floor_divided(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """The floored quotient of whole numbers; null where the divisor is zero."""
    a, b = matched(scope, a, b)
    if not a.dtype.is_integer:
        raise scope.dialect.refused(f"floored quotients of {a.dtype}")
    if a.dtype == INT128:
        by = scope.once(b)
        rest = scope.once(_wide_remainder(scope, scope.once(a), by))
        multiple = scope.once(combined(a.expr - rest.expr, INT128, a, rest))
        divides = scope.once(
            by.having(nw.when(by.expr != scope.dialect.wide(0)).then(by.expr), INT128)
        )
        return replace(_exact_quotient(scope, multiple, divides), interval=_WIDE_RANGE)
    divisor = _divisor(b)
    if divisor is not None and a.interval.within(_EXACT):
        return _exactly_divided(scope, a, b, divisor)
    if divisor is not None and (a.interval - interval(0, divisor)).within(INT64_LIMITS):
        return _divided_whole(scope, a, b, divisor)
    a = scope.once(widened(scope, a, INT128))
    b = scope.once(widened(scope, b, INT128))
    known = nw.when(b.expr != scope.dialect.wide(0)).then(b.expr)
    by = scope.once(b.having(known, INT128))
    multiple = scope.once(combined(a.expr - a.expr % by.expr, INT128, a, by))
    return wrapped(scope, _exact_quotient(scope, multiple, by))


def _wide_remainder(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """The remainder of wide numbers, which a sum of two as large must still hold."""
    _require_room(scope, a)
    _require_room(scope, b)
    b = scope.once(b)
    known = nw.when(b.expr != scope.dialect.wide(0)).then(b.expr)
    least, most = b.interval.lo, b.interval.hi
    ends = Interval(
        None if least is None else min(Fraction(0), least),
        None if most is None else max(Fraction(0), most),
    )
    return combined(a.expr % known, INT128, a, b, known=ends)


def _require_room(scope: EngineScope, a: EngineExpr) -> None:
    if not a.interval.within(_ADDED):
        raise scope.dialect.refused("numbers of more than 125 bits")


def _divisor(made: EngineExpr) -> int | None:
    """A constant above zero, small enough to be added to a remainder in Int64, which is how
    remainders are made to have the divisor's sign.
    """
    value = made.constant[0] if made.constant else None
    return value if isinstance(value, int) and 0 < value < 2**62 else None


def _exactly_divided(scope: EngineScope, a: EngineExpr, b: EngineExpr, by: int) -> EngineExpr:
    """A floored quotient by way of a multiple of the divisor, which floats divide exactly."""
    a, b = scope.once(widened(scope, a, INT64)), widened(scope, b, INT64)
    multiple = (a.expr - a.expr % b.expr).cast(nw.Float64)
    quotient = (multiple / float(by)).cast(nw.Int64)
    return combined(quotient, INT64, a, known=a.interval.increasing(lambda n: Fraction(n // by)))


def _divided_whole(scope: EngineScope, a: EngineExpr, b: EngineExpr, by: int) -> EngineExpr:
    """A floored quotient by way of a multiple of the divisor, which fits in Int64."""
    a, b = scope.once(widened(scope, a, INT64)), widened(scope, b, INT64)
    multiple = a.having(a.expr - a.expr % b.expr, INT64)
    sql = f"CAST({{}} {scope.dialect.quotient} {by} AS BIGINT)".format
    known = a.interval.increasing(lambda n: Fraction(n // by))
    return scope.written(sql, [multiple], INT64, known)


def _exact_quotient(scope: EngineScope, multiple: EngineExpr, by: EngineExpr) -> EngineExpr:
    """A wide number divided by one that divides it: nearly, as floats, where the engine has no
    exact way, and what is left of it once more, which is small enough.
    """
    if scope.dialect.divides_wide:
        return combined(multiple.expr // by.expr, INT128, multiple, by)
    near = scope.once(_near_quotient(scope, multiple, by))
    left = combined(multiple.expr - near.expr * by.expr, INT128, multiple, near)
    more = _near_quotient(scope, left, by)
    return replace(more, expr=near.expr + more.expr)


def _near_quotient(scope: EngineScope, a: EngineExpr, b: EngineExpr) -> EngineExpr:
    """The nearest whole number to a quotient, within the precision of floats."""
    ratio = a.expr.cast(nw.Float64) / b.expr.cast(nw.Float64)
    return combined(ratio.cast(scope.dialect.wide_type), INT128, a, b)


def clamped(scope: EngineScope, a: EngineExpr, lo: Scalar, hi: Scalar) -> EngineExpr:
    """Clamping between constants; null and NaN stay."""
    if lo is None and hi is None:
        return a
    a = scope.once(a)
    made, bounds = a.expr, []
    known: Interval | None = a.interval
    if hi is not None:
        high = _like(scope, scope.dialect.python(hi), a.dtype)
        above = a.expr > high.expr
        if a.dtype.is_float:
            above = above & ~a.expr.is_nan()
        made = nw.when(above).then(high.expr).otherwise(made)
        known = known and known.intersect(Interval(None, high.interval.hi))
        bounds.append(high)
    if lo is not None:
        low = _like(scope, scope.dialect.python(lo), a.dtype)
        made = nw.when(a.expr < low.expr).then(low.expr).otherwise(made)
        known = known and known.intersect(Interval(low.interval.lo, None))
        bounds.append(low)
    return a.having(made, a.dtype, known or hull(a, *bounds))


def root(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """The square root, which is rounded exactly on all engines; NaN of a negative number, for which
    one fails.
    """
    a = scope.once(real(a))
    lo, hi = a.interval.lo, a.interval.hi
    known = interval(0, None if hi is None else max(Fraction(1), hi))
    if lo is not None and lo >= 0:
        return a.having(a.expr.sqrt(), FLOAT64, known)
    below = (a.expr < 0.0) & ~a.expr.is_nan()
    safe = nw.when(below).then(nw.lit(0.0, nw.Float64)).otherwise(a.expr)
    undefined = scope.dialect.constant(math.nan, FLOAT64).expr
    return a.having(nw.when(below).then(undefined).otherwise(safe.sqrt()), FLOAT64, known)


def rounded(scope: EngineScope, a: EngineExpr, decimals: int) -> EngineExpr:
    """The product with a power of ten, rounded to a whole number and divided again, as Polars does
    it; halves go to the even neighbour.
    """
    if decimals > _MOST_DECIMALS:
        raise scope.dialect.refused(f"rounding to more than {_MOST_DECIMALS} decimals")
    a, times = scope.once(real(a)), 10.0**decimals
    scaled = scope.once(a.having(a.expr * times, FLOAT64))
    below = scope.once(floored(scope, scaled))
    half = scope.once(floored(scope, below.having(below.expr * 0.5, FLOAT64)))
    rest = scope.once(combined(scaled.expr - below.expr, FLOAT64, scaled, below))
    odd = below.expr - half.expr * 2.0 > 0.5
    up = (rest.expr > 0.5) | ((rest.expr == 0.5) & odd)
    whole = nw.when(up).then(below.expr + 1.0).otherwise(below.expr) / times
    endless = ~scaled.expr.is_finite() & a.expr.is_finite()
    return combined(
        nw.when(endless).then(a.expr).otherwise(whole), FLOAT64, a, scaled, below, half, rest
    )


def raised(scope: EngineScope, a: EngineExpr, power: int) -> EngineExpr:
    """A whole number to a whole power, which wraps as products do."""
    if power > _MOST_FACTORS:
        raise scope.dialect.refused(f"a power of more than {_MOST_FACTORS}")
    square = scope.once(widened(scope, a, INT64))
    made = add(scope, mul(scope, square, scope.dialect.python(0)), scope.dialect.python(1))
    while power:
        if power % 2:
            made = scope.once(mul(scope, made, square))
        power //= 2
        if power:
            square = scope.once(mul(scope, square, square))
    return made


def floored(scope: EngineScope, a: EngineExpr) -> EngineExpr:
    """The largest whole number that is not above, as Float64; NaN and infinities stay."""
    a = scope.once(real(a))
    inside = (a.expr > -(2.0**53)) & (a.expr < 2.0**53)  # others are whole, infinite or NaN
    ok = ~a.expr.is_nan() if a.interval.within(_EXACT) else inside
    safe = nw.when(ok).then(a.expr).otherwise(nw.lit(0.0, nw.Float64))
    whole = safe.floor().cast(nw.Float64)  # some engines floor to whole numbers
    known = a.interval.increasing(lambda end: Fraction(math.floor(end)))
    made = a.having(nw.when(ok).then(whole).otherwise(a.expr), FLOAT64, known)
    return replace(made, is_whole=True)
