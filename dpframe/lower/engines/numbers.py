"""Arithmetic that never raises and gives on every engine what it gives on Polars.

Whole numbers are Int64 and wrap. Where a result surely fits, the engine's own operator is used;
else it is computed in numbers of 126 bits and more, and wrapped by a remainder."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from fractions import Fraction
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, DType, Scalar
from dpframe.core.interval import Interval, interval
from dpframe.lower.engines.engine_expr import (
    INT64_RANGE,
    ROWS,
    EngineExpr,
    EngineScope,
    GroupScope,
    Node,
    combined,
    hull,
)
from dpframe.rows.operands import INT64_LIMITS
from dpframe.rows.polars_dtypes import from_polars

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


# Constants that values are looked up in, by bisection: no engine's own list or map is needed.


_MOST = 4096
"""Longer lists are refused: the text of the query would grow out of hand."""


def place(scope: EngineScope, a: EngineExpr, edges: Sequence[Scalar], or_equal: bool) -> EngineExpr:
    """How many of some sorted constants are below a number, or equal to it as well."""
    a = scope.once(a)
    _require_few(scope, edges)
    found = _place(scope, a, edges, or_equal, 0)
    return combined(found, INT64, a, known=interval(0, len(edges)))


def _place(
    scope: EngineScope, a: EngineExpr, edges: Sequence[Scalar], or_equal: bool, before: int
) -> nw.Expr:
    if not edges:
        return nw.lit(before, nw.Int64)
    middle = len(edges) // 2
    edge = scope.dialect.constant(edges[middle], a.dtype).expr
    beyond = a.expr >= edge if or_equal else a.expr > edge
    above = _place(scope, a, edges[middle + 1 :], or_equal, before + middle + 1)
    below = _place(scope, a, edges[:middle], or_equal, before)
    return nw.when(beyond).then(above).otherwise(below)


def chosen(
    scope: EngineScope,
    a: EngineExpr,
    old: pl.Series,
    new: Sequence[Scalar],
    default: Scalar,
    dtype: DType,
) -> EngineExpr:
    """The constant of a type that goes with a value, or the default."""
    listed = from_polars(old.dtype)
    if listed.is_integer and a.dtype.is_integer and listed != a.dtype:
        a = widened(scope, a, common_whole(a.dtype, listed))
    scope.dialect.require_comparable(a.dtype)
    a = scope.once(a)
    constants = [scope.dialect.constant(n, dtype) for n in new]
    pairs = [(o, made.expr) for o, made in zip(old.to_list(), constants, strict=True)]
    _require_few(scope, pairs)
    other = scope.dialect.constant(default, dtype)
    numbers = sorted((p for p in pairs if not _is_nan(p[0])), key=lambda p: _sort_key(p[0]))
    found = _found(scope, a, numbers, other.expr)
    for _, made in (p for p in pairs if _is_nan(p[0])):
        found = nw.when(a.expr.is_nan()).then(made).otherwise(found)
    result = nw.when(~a.expr.is_null()).then(found).otherwise(other.expr)
    return combined(result, dtype, a, known=hull(*constants, other))


def _found(
    scope: EngineScope, a: EngineExpr, pairs: Sequence[tuple[Scalar, nw.Expr]], rest: nw.Expr
) -> nw.Expr:
    if not pairs:
        return rest
    if len(pairs) == 1 or a.dtype.is_boolean:
        value, made = pairs[0]
        equal = a.expr == scope.dialect.constant(value, a.dtype).expr
        return nw.when(equal).then(made).otherwise(_found(scope, a, pairs[1:], rest))
    middle = len(pairs) // 2
    below = a.expr < scope.dialect.constant(pairs[middle][0], a.dtype).expr
    first, second = _found(scope, a, pairs[:middle], rest), _found(scope, a, pairs[middle:], rest)
    return nw.when(below).then(first).otherwise(second)


def _require_few(scope: EngineScope, values: Sized) -> None:
    if len(values) > _MOST:
        raise scope.dialect.refused(f"a list of more than {_MOST} constants")


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _sort_key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


# Aggregates of a group's rows, as Int64. Sums wrap, as those of Polars do.


_SAFE = (-(2**31), 2**31)
"""Sums of fewer than 2**32 numbers up to this size fit in Int64."""
_PART = 2**24
_TWO_PARTS = (-(2**48), 2**48)


def aggregated(scope: EngineScope, rows: Node | None, how: str) -> EngineExpr:
    """An aggregate of what each row has, or the number of rows; made once."""
    assert isinstance(scope, GroupScope), "aggregates are made in a group-by"
    if (rows, how) not in scope.found:
        made = None if rows is None else scope.rows.made(rows)
        scope.found[rows, how] = _aggregate(scope, made, how)
    return scope.found[rows, how]


def _aggregate(scope: GroupScope, rows: EngineExpr | None, how: str) -> EngineExpr:
    if rows is None:
        return scope.column(nw.len().cast(nw.Int64), INT64, ROWS)
    column = nw.col(str(scope.rows.held(rows).column))
    match how:
        case "count":
            return scope.column(column.count().cast(nw.Int64), INT64, ROWS)
        case "max" | "min" if rows.dtype.is_numeric or rows.dtype.is_temporal:
            extreme = column.max() if how == "max" else column.min()
            return scope.column(extreme, rows.dtype, rows.interval)
        case "n_unique":
            return _distinct(scope, column)
        case "sum" if rows.dtype.is_integer and rows.interval.within(_SAFE):
            return scope.column(column.sum().cast(nw.Int64), INT64, INT64_RANGE)
        case "sum" if rows.dtype.is_integer and rows.dtype != INT128:
            return wrapped_sum(scope, rows)
        case _:
            raise scope.dialect.refused(f"{how} of {rows.dtype}")


def _distinct(scope: GroupScope, column: nw.Expr) -> EngineExpr:
    """Distinct values but null, which Narwhals counts as one."""
    every = scope.column(column.n_unique().cast(nw.Int64), INT64)
    known = scope.column(column.count().cast(nw.Int64), INT64)
    rows = scope.column(nw.len().cast(nw.Int64), INT64)
    null = nw.when(rows.expr > known.expr).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))
    return combined(every.expr - null, INT64, known=ROWS)


def wrapped_sum(scope: GroupScope, rows: EngineExpr) -> EngineExpr:
    """The sum of a group's whole numbers modulo 2**64, as Int64."""
    if not scope.dialect.sums_wide:
        return summed_in_parts(scope, rows)
    total = nw.col(str(scope.rows.held(rows).column)).sum()
    return wrapped(scope, scope.column(total, INT128, interval(-(2**95), 2**95)))


def total_within(scope: EngineScope, rows: EngineExpr, within: Sequence[EngineExpr]) -> EngineExpr:
    """The sum of whole numbers over all rows that have the same values, modulo 2**64, as Int64, for
    each of these rows.
    """
    if isinstance(scope, GroupScope) or not rows.dtype.is_integer or rows.dtype == INT128:
        raise scope.dialect.refused(f"a sum over rows of {rows.dtype}")

    def total(part: EngineExpr) -> EngineExpr:
        return scope.total_within(part, within)

    return _from_parts(scope, _parts_of(scope, rows), total)


def summed_in_parts(scope: GroupScope, rows: EngineExpr) -> EngineExpr:
    """The same from sums of the numbers' bits from 0 to 23, from 24 to 47, and of the others, where
    they have others than these and a sign.

    A part is up to 2**24 in size, so the sums of fewer than 2**39 fit in Int64. Wide numbers hold
    a sum exactly, and take Spark several times as long.
    """

    def total(part: EngineExpr) -> EngineExpr:
        column = nw.col(str(scope.rows.held(part).column))
        return scope.column(column.sum().cast(nw.Int64), INT64)

    return _from_parts(scope, _parts_of(scope.rows, rows), total)


def _parts_of(scope: EngineScope, rows: EngineExpr) -> list[EngineExpr]:
    """The parts of whole numbers, from the lowest."""
    rest, low = _parted(scope, widened(scope, rows, INT64))
    if rows.interval.within(_TWO_PARTS):
        return [low, rest]
    return [low, *reversed(_parted(scope, rest))]


def _from_parts(
    scope: EngineScope, parts: Sequence[EngineExpr], total: Callable[[EngineExpr], EngineExpr]
) -> EngineExpr:
    """The sum of numbers from the totals of their parts."""
    sums = [total(part) for part in parts]
    carried, low = _parted(scope, sums[0])
    carried, middle = _parted(scope, combined(sums[1].expr + carried.expr, INT64, sums[1], carried))
    if len(sums) > 2:
        carried = combined(sums[2].expr + carried.expr, INT64, sums[2], carried)
    half, whole, part = (scope.dialect.constant(n, INT64).expr for n in (2**15, 2**16, _PART))
    high = carried.having((carried.expr + half) % whole - half, INT64)
    made = (high.expr * part + middle.expr) * part + low.expr
    return combined(made, INT64, low, middle, high, known=INT64_RANGE)


def _parted(scope: EngineScope, a: EngineExpr) -> tuple[EngineExpr, EngineExpr]:
    """A whole number divided by 2**24, floored, and the remainder."""
    a = scope.once(a)
    rest = scope.once(remainder(scope, a, scope.dialect.constant(_PART, INT64)))
    multiple = (a.expr - rest.expr).cast(nw.Float64)  # its 40 bits or fewer are exact
    whole = (multiple / float(_PART)).cast(nw.Int64)
    return scope.once(combined(whole, INT64, a, rest)), rest
