"""Powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.rows.broadcast import unsigned_zero
from dpframe.rows.constants import sole_integer, sole_number
from dpframe.rows.forms import Infix
from dpframe.rows.operands import (
    as_result,
    require_numbers,
    whole_result,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import Kind, Namespace, operation

_LARGEST_EXPONENT = 2**31


@operation
class Pow(Infix):
    name = "pow"
    symbol = "**"
    reads = ("Pow.Generic",)
    engines = EVERYWHERE
    propagates_null = True
    summary = (
        "Power: Int64 (wrapping) for integers to a constant whole power of zero or more, exact "
        "for those beyond 64 bits, else Float64."
    )
    examples = (
        'pl.col("i8") ** 2',
        'pl.col("i64") ** 3',
        'pl.col("u8") ** 0',
        'pl.col("f64") ** 2',
        'pl.col("f64") ** -1',
        'pl.col("u8") ** 0.5',
        'pl.col("i8") ** -2',
        'pl.col("f64") ** pl.col("f64b")',
        '2 ** pl.col("i8")',
        'pl.col("i8").pow(pl.col("u8"))',
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
        size = ns.when(size.is_between(1.0, 2.0**44)).then(size.round()).otherwise(size)
    size = ns.when((exponent == 0) | (base.abs() == 1)).then(one).otherwise(size)
    half = exponent * 0.5
    integral = exponent.floor() == exponent
    negative = ns.when(integral & (half.floor() != half)).then(-size)
    undefined = ns.lit(math.nan, dtype=ns.Float64)
    negative = negative.when(~integral & base.is_finite()).then(undefined).otherwise(size)
    known = base.is_not_null() & exponent.is_not_null()
    power: pl.Expr = ns.when(known).then(ns.when(base < 0).then(negative).otherwise(size))
    return power


def whole_exponent(base: Domain, exponent: Domain) -> int | None:
    """The exponent of a power that stays whole, or None when it is computed in floats."""
    power = sole_integer(exponent)
    if power is None or not 0 <= power < _LARGEST_EXPONENT:
        return None
    return power if widened(base).dtype != FLOAT64 else None


def _whole_powers(base: Interval, power: int) -> Interval:
    if power == 0:
        return interval(1, 1)
    if not base.bounded:
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
    return raised.widened(4).intersect(floor) or UNIT


def _raise(base: Fraction, power: Fraction) -> Fraction:
    """A power as the maths library computes it, or a number that no float reaches."""
    try:
        return Fraction(math.pow(float(base), float(power)))
    except OverflowError:
        return Fraction(2) ** 1100 * (-1 if base < 0 else 1)


OPERATIONS: tuple[Kind, ...] = (Pow(),)
