"""Sums, differences, products, quotients, remainders and powers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import polars as pl

from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING, UINT64, Domain, DType
from dpframe.core.interval import EVERYTHING, UNIT, ZERO, Interval, interval
from dpframe.core.units import EVERYWHERE
from dpframe.rows.constants import sole_integer, sole_number
from dpframe.rows.layouts import divided, unsigned_zero
from dpframe.rows.operands import (
    INT64_LIMITS,
    as_result,
    as_type,
    compute,
    infinite_sides,
    is_wide,
    may_be_infinite,
    reach,
    require_numbers,
    when,
    whole_or_real,
    whole_result,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import Infix, Namespace, RowMethod, operation, spell_out
from dpframe.rows.strings import bounded
from dpframe.rows.temporal import add_moments, added, is_temporal_sum

# Sums, differences, products and negation.
#
# Whole numbers are computed in Int64, where a result that does not fit wraps, or in Int128 where an
# operand may lie beyond Int64, and then exactly (`operands`); everything else in Float64. Text is
# joined by `+`. Moments and durations are added exactly, see `temporal`.

MAX_JOINED_CATEGORIES = 64


def sum_domain(a: Domain, b: Domain) -> Domain:
    """The facts about the sum of two numbers.

    A float sum is NaN when both terms are infinite with opposite signs.
    """
    if whole_or_real([a, b]) != FLOAT64:
        return whole_result("sum", [a, b], operator.add)
    x, y = widened_to_float(a), widened_to_float(b)
    total = x.interval + y.interval
    nullable = x.nullable or y.nullable
    (a_low, a_high), (b_low, b_high) = infinite_sides(a), infinite_sides(b)
    nan = a.nan or b.nan or (a_low and b_high) or (a_high and b_low)
    return Domain(FLOAT64, nullable=nullable, nan=nan, interval=total.as_float())


class Arithmetic(Infix):
    """An operator whose result is null where an operand is."""

    __slots__ = ()
    propagates_null = True


@operation
class Add(Arithmetic):
    """Sum of two numbers, two strings joined, or a date or datetime moved by a duration."""

    symbol = "+"
    reads = ("Operator.Plus",)
    engines = EVERYWHERE
    examples = spell_out(
        'i32 + u8; i64 + 1; i64 + i64b; u64 + b; f64 + f64b; i8 + 0.5; f32 + dec; s + "-" + sb; '
        "d + dur; dt + dur; dur + dtz; dtms + dur; dur + durb"
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        a, b = args
        if _is_joined(a, b):
            categories = None
            if a.categories is not None and b.categories is not None:
                pairs = [str(x) + str(y) for x in a.categories for y in b.categories]
                if len(pairs) <= MAX_JOINED_CATEGORIES:
                    categories = tuple(dict.fromkeys(pairs))
            return Domain(STRING, nullable=a.nullable or b.nullable, categories=categories)
        if is_temporal_sum(a, b):
            return added(a, b, 1)
        require_numbers("sum", args)
        return sum_domain(a, b)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        a, b = domains
        if _is_joined(a, b):
            return bounded(bounded(as_type(args[0], STRING)) + bounded(as_type(args[1], STRING)))
        if is_temporal_sum(a, b):
            return add_moments(args, domains, 1)
        x, y = compute(args, domains)
        return as_result(x + y, domains, self.domain(domains).dtype)


@operation
class Sub(Arithmetic):
    """Difference of two numbers, dates or datetimes, or a date or datetime moved back by a
    duration.
    """

    symbol = "-"
    reads = ("Operator.Minus",)
    engines = EVERYWHERE
    examples = spell_out(
        "i32 - u8; i64 - i64b; u32 - 7; f64 - f64b; f32 - i64; b - bb; d - date(2020, 1, 1); "
        "d - dt; d - dur; dt - dtb; dt - dtms; dtz - dur; dur - durb; t - t"
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        a, b = args
        if is_temporal_sum(a, b):
            return added(a, b, -1)
        require_numbers("difference", args)
        if whole_or_real(args) != FLOAT64:
            return whole_result("difference", args, operator.sub)
        minus = widened(b)
        return sum_domain(a, replace(minus, interval=-minus.interval, categories=None))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if is_temporal_sum(*domains):
            return add_moments(args, domains, -1)
        x, y = compute(args, domains)
        return as_result(x - y, domains, self.domain(domains).dtype)


@operation
class Mul(Arithmetic):
    """Product of two numbers."""

    symbol = "*"
    reads = ("Operator.Multiply",)
    engines = EVERYWHERE
    examples = spell_out("i32 * u8; i64 * i64b; i8 * b; f64 * f64b; f64 * u32; dec * 1.21")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("product", args)
        a, b = args
        if whole_or_real(args) != FLOAT64:
            return whole_result("product", args, operator.mul)
        x, y = widened_to_float(a), widened_to_float(b)
        undefined = any(
            may_be_infinite(one) and other.interval.contains(0) for one, other in ((a, y), (b, x))
        )
        return Domain(
            FLOAT64,
            nullable=x.nullable or y.nullable,
            nan=a.nan or b.nan or undefined,
            interval=(x.interval * y.interval).as_float(),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = compute(args, domains)
        return as_result(x * y, domains, self.domain(domains).dtype)


@operation
class Neg(RowMethod):
    """The number with its sign changed."""

    propagates_null = True
    reads = ("Negate",)
    engines = EVERYWHERE
    examples = ('-pl.col("i64")', '-pl.col("u8")', '-pl.col("f64")', '-pl.col("i32")')

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("negation", args)
        wide = widened(args[0])
        if wide.dtype == INT128:
            return whole_result("negation", args, lambda x: -x)
        known = -wide.interval
        if wide.dtype == INT64 and not known.within(INT64_LIMITS):
            # -2**63 has no opposite in Int64, and is unchanged
            known = known if known.hi is not None and known.hi < 2**63 else EVERYTHING
        return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if not is_wide(domains[0]):
            return -widen(args[0], domains[0])
        minus = widen(args[0], domains[0]) * -1  # Polars does not negate Int128
        return as_result(minus, domains, self.domain(domains).dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"-{args[0]}"


def _is_joined(a: Domain, b: Domain) -> bool:
    return (a.dtype.is_text or b.dtype.is_text) and all(
        d.dtype.is_text or d.dtype.name == "Null" for d in (a, b)
    )


# Quotients and remainders, null where the divisor is zero.


def quotient(a: Interval, b: Interval, whole: bool) -> Interval:
    """All a / b for b other than zero, before rounding; `whole` when b holds whole numbers only.

    A divisor near zero leaves the quotient unbounded, one without end brings it near zero.
    """
    parts = [
        a * _reciprocals(part) if sign > 0 else -(a * _reciprocals(-part))
        for sign, part in _signed_parts(b, whole)
    ]
    if not parts:
        return ZERO
    return parts[0].hull(parts[-1])


def _signed_parts(b: Interval, whole: bool) -> list[tuple[int, Interval]]:
    """The positive and the negative part of a divisor; an end at zero means just next to it."""
    near = Fraction(1) if whole else Fraction(0)
    parts = [
        (1, b.intersect(Interval(near, None))),
        (-1, b.intersect(Interval(None, -near))),
    ]
    return [(sign, part) for sign, part in parts if part is not None and part != ZERO]


def _reciprocals(positive: Interval) -> Interval:
    lo, hi = positive.lo, positive.hi
    return Interval(Fraction(0) if hi is None else 1 / hi, None if not lo else 1 / lo)


def _floored(known: Interval) -> Interval:
    return known.increasing(lambda end: Fraction(math.floor(end)))


@operation
class TrueDiv(Arithmetic):
    """Quotient in Float64; null where the divisor is zero (Polars: infinity or NaN)."""

    name = "truediv"
    symbol = "/"
    reads = ("Operator.TrueDivide",)
    engines = EVERYWHERE
    examples = spell_out("i32 / u8; i64 / i64b; f64 / f64b; u8 / 7; i32 / 0; 1 / f32")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("quotient", args)
        return _of_floats(args, lambda a, b, whole: quotient(a, b, whole).as_float(), all)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = (widen_to_float(e, d) for e, d in zip(args, domains, strict=True))
        return divided(ns, x, y, lambda a, b: a / b)


@operation
class FloorDiv(Arithmetic):
    """Floored quotient; null where the divisor is zero, also for floats."""

    name = "floordiv"
    symbol = "//"
    reads = ("Operator.FloorDivide",)
    engines = EVERYWHERE
    examples = spell_out("i32 // u8; i64 // i64b; i8 // -3; f64 // f64b; u32 // 0.25")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("quotient", args)
        if whole_or_real(args) != FLOAT64:
            known = whole_result("quotient", args, lambda a, b: _floored(quotient(a, b, True)))
            return known.with_null(known.nullable or args[1].interval.contains(0))
        return _of_floats(args, lambda a, b, whole: _floored(quotient(a, b, whole).as_float()), all)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = _operands(ns, args, domains)
        if whole_or_real(domains) != FLOAT64:  # null where y is zero
            return _result(ns, x // y, domains, self.domain(domains).dtype)
        return divided(ns, x, y, lambda a, b: (a / b).floor())


@operation
class Mod(Arithmetic):
    """Remainder with the divisor's sign, a - b * floor(a / b); null where b is zero."""

    symbol = "%"
    reads = ("Operator.Modulus",)
    engines = EVERYWHERE
    examples = spell_out("i32 % u8; i64 % i64b; i64 % 24; i8 % -5; f64 % f64b; u8 % 2.5")

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("remainder", args)
        if whole_or_real(args) != FLOAT64:
            known = whole_result("remainder", args, _remainders)
            return known.with_null(known.nullable or args[1].interval.contains(0))
        real = _of_floats(args, _float_remainders, any)
        return replace(real, nan=real.nan or real.interval == EVERYTHING)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = _operands(ns, args, domains)
        if whole_or_real(domains) != FLOAT64:  # null where y is zero
            return _result(ns, x % y, domains, self.domain(domains).dtype)
        return divided(ns, x, y, lambda a, b: a % b)


def _operands(
    ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]
) -> Sequence[pl.Expr]:
    """As `compute`, but in UInt64, which divides faster than Int128, where it holds both."""
    if not _in_uint64(ns, domains):
        return compute(args, domains)
    return [as_type(e, UINT64) for e in args]


def _result(ns: Namespace, expression: pl.Expr, domains: Sequence[Domain], dtype: DType) -> pl.Expr:
    if _in_uint64(ns, domains):
        return as_type(expression, dtype)
    return as_result(expression, domains, dtype)


def _in_uint64(ns: Namespace, domains: Sequence[Domain]) -> bool:
    """Whether one of two whole numbers is wide, and UInt64 holds both."""
    if ns is not pl or whole_or_real(domains) != INT128:
        return False
    limits = UINT64.limits
    assert limits is not None
    return all(reach(d).within(limits) and d.dtype.name != "Int128" for d in domains)


def _of_floats(
    args: Sequence[Domain],
    image: Callable[[Interval, Interval, bool], Interval],  # The flag: `b` holds whole numbers only
    infinite: Callable[[Iterable[bool]], bool],  # Which operands must be infinite for NaN
) -> Domain:
    """The facts about a Float64 that is null where the divisor is zero."""
    a, b = args
    x, y = widened_to_float(a), widened_to_float(b)
    return Domain(
        FLOAT64,
        nullable=x.nullable or y.nullable or y.interval.contains(0),
        nan=a.nan or b.nan or infinite(map(may_be_infinite, (a, b))),
        interval=image(x.interval, y.interval, not b.dtype.is_float and not b.dtype.is_decimal),
    )


def _remainders(a: Interval, b: Interval) -> Interval:
    """Remainders of whole numbers: from zero to just before the divisor."""
    known = interval(
        None if b.lo is None else min(Fraction(0), b.lo + 1),
        None if b.hi is None else max(Fraction(0), b.hi - 1),
    )
    if a.lo is not None and a.lo >= 0 and b.lo is not None and b.lo >= 0:
        return known.intersect(interval(0, a.hi)) or known
    return known


def _float_remainders(a: Interval, b: Interval, whole: bool) -> Interval:
    """Remainders of floats: as of whole numbers, but rounding may carry them past the ends."""
    if a.magnitude is None or b.magnitude is None:
        return EVERYTHING
    if not quotient(a, b, whole).as_float().is_bounded:
        return EVERYTHING
    error = (a.magnitude + b.magnitude) / 2**50 + Fraction(1, 2**1060)
    lo, hi = b.ends
    return interval(min(Fraction(0), lo) - error, max(Fraction(0), hi) + error).as_float()


# Powers.

_LARGEST_EXPONENT = 2**31


@operation
class Pow(Arithmetic):
    """Power: Int64 (wrapping) for integers to a constant whole power of zero or more, exact for
    those beyond 64 bits, else Float64.
    """

    symbol = "**"
    reads = ("Pow.Generic",)
    engines = EVERYWHERE
    examples = spell_out(
        "i8 ** 2; i64 ** 3; u8 ** 0; f64 ** 2; f64 ** -1; u8 ** 0.5; i8 ** -2; f64 ** f64b; "
        "2 ** i8; i8.pow(u8)"
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("power", args)
        base, exponent = args
        whole = whole_exponent(base, exponent)
        if whole is not None:
            return whole_result("power", [base], lambda known: _whole_powers(known, whole))
        x, y = widened_to_float(base), widened_to_float(exponent)
        number = sole_number(y)
        whole_power = not (exponent.dtype.is_float or exponent.dtype.is_decimal) or (
            number is not None and number.denominator == 1
        )
        negative = x.interval.lo is None or x.interval.lo < 0
        return Domain(
            FLOAT64,
            nullable=x.nullable or y.nullable,
            nan=base.nan or exponent.nan or (negative and not whole_power),
            interval=_powers(x.interval, None if y.nullable else number),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        whole = whole_exponent(*domains)
        if whole is not None:
            # The constant itself, not the operand: a negative whole power would fail.
            raised = widen(args[0], domains[0]).pow(ns.lit(whole, dtype=ns.UInt32))
            return as_result(raised, domains[:1], self.domain(domains).dtype)
        base, exponent = (widen_to_float(e, d) for e, d in zip(args, domains, strict=True))
        number = sole_number(domains[1])
        if number is not None and not domains[1].nullable:
            return unsigned_zero(ns, base, FLOAT64).pow(ns.lit(float(number), dtype=ns.Float64))
        integers = not any(d.dtype.is_float or d.dtype.is_decimal for d in domains)
        return _by_logarithm(ns, base, exponent, integers)


def _by_logarithm(ns: Namespace, base: pl.Expr, exponent: pl.Expr, whole: bool) -> pl.Expr:
    """Powers whose exponent differs from row to row, as exp(y log |x|) with the right sign.

    Polars raises one row to a power by another algorithm than it uses for several, with other last
    digits, so its own power of two columns would depend on how many rows there are. With `whole`
    numbers, results are rounded to whole ones if a float can separate them from their neighbours.
    """
    one = ns.lit(1.0, dtype=ns.Float64)
    size = (exponent * base.abs().log()).exp()
    if whole:  # off by less than a tenth here: 2**44 * 44 log(2) / 2**51
        size = when(ns, size.is_between(1.0, 2.0**44), size.round(), size)
    size = when(ns, (exponent == 0) | (base.abs() == 1), one, size)
    half = exponent * 0.5
    integral = exponent.floor() == exponent
    negative = ns.when(integral & (half.floor() != half)).then(-size)
    undefined = ns.lit(math.nan, dtype=ns.Float64)
    negative = negative.when(~integral & base.is_finite()).then(undefined).otherwise(size)
    known = base.is_not_null() & exponent.is_not_null()
    return when(ns, known, when(ns, base < 0, negative, size))


def whole_exponent(base: Domain, exponent: Domain) -> int | None:
    """The exponent of a power that stays whole, or None when it is computed in floats."""
    power = sole_integer(exponent)
    if power is None or not 0 <= power < _LARGEST_EXPONENT:
        return None
    return power if widened(base).dtype != FLOAT64 else None


def _whole_powers(base: Interval, power: int) -> Interval:
    if power == 0:
        return interval(1, 1)
    if not base.is_bounded:
        return EVERYTHING
    lo, hi = base.ends
    if power > 64:  # would not fit, unless nothing but -1, 0 and 1 is raised
        return base.abs() if max(abs(lo), abs(hi)) <= 1 and power % 2 == 0 else EVERYTHING
    if power % 2 == 0:
        base = base.abs()
    return base.increasing(lambda end: end**power)


def _powers(base: Interval, power: Fraction | None) -> Interval:
    """Float powers; `power` when it is one constant."""
    positive = base.lo is not None and base.lo > 0
    if power is None:
        return Interval(Fraction(0), None) if positive else EVERYTHING
    if power == 0:
        return interval(1, 1)
    even = power.denominator == 1 and power % 2 == 0
    if base.lo == 0:  # 0.0 and -0.0 to a negative power are infinity
        positive = True
    if not positive and not even and (power < 0 or power.denominator != 1):
        return Interval() if power.denominator == 1 else Interval(Fraction(0), None)
    magnitudes = base.abs() if even or positive else base
    floor = interval(0, None) if even or positive else EVERYTHING
    if power > 0:
        raised = magnitudes.increasing(lambda end: _raise(end, power)).as_float()
    else:
        raised = Interval(
            _raise(magnitudes.hi, power) if magnitudes.hi else Fraction(0),
            None if not magnitudes.lo else _raise(magnitudes.lo, power),
        ).as_float()
    return raised.widen(4).intersect(floor) or UNIT


def _raise(base: Fraction, power: Fraction) -> Fraction:
    """A power as the maths library computes it, or a number that no float reaches."""
    try:
        return Fraction(math.pow(float(base), float(power)))
    except OverflowError:
        return Fraction(2) ** 1100 * (-1 if base < 0 else 1)


OPERATIONS = (*(Add, Sub, Mul, Neg, TrueDiv, FloorDiv, Mod, Pow),)
