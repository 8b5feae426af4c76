"""Quotients and remainders, null where the divisor is zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT128, UINT64, DType
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, ZERO, Interval, interval
from dpframe.rows.forms import Infix
from dpframe.rows.layouts import divided
from dpframe.rows.operands import (
    as_result,
    as_type,
    compute,
    may_be_infinite,
    reach,
    require_numbers,
    whole_or_real,
    whole_result,
    widen_to_float,
    widened_to_float,
)
from dpframe.rows.operation import Kind, Namespace, operation


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
class TrueDiv(Infix):
    name = "truediv"
    symbol = "/"
    reads = ("Operator.TrueDivide",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Quotient in Float64; null where the divisor is zero (Polars: infinity or NaN)."
    examples = (
        'pl.col("i32") / pl.col("u8")',
        'pl.col("i64") / pl.col("i64b")',
        'pl.col("f64") / pl.col("f64b")',
        'pl.col("u8") / 7',
        'pl.col("i32") / 0',
        '1 / pl.col("f32")',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("quotient", args)
        a, b = args
        x, y = widened_to_float(a), widened_to_float(b)
        return Domain(
            FLOAT64,
            nullable=x.nullable or y.nullable or y.interval.contains(0),
            nan=a.nan or b.nan or (may_be_infinite(a) and may_be_infinite(b)),
            interval=quotient(x.interval, y.interval, _is_whole(b)).as_float(),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = (widen_to_float(e, d) for e, d in zip(args, domains, strict=True))
        return divided(ns, x, y, lambda a, b: a / b)


@operation
class FloorDiv(Infix):
    name = "floordiv"
    symbol = "//"
    reads = ("Operator.FloorDivide",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Floored quotient; null where the divisor is zero, also for floats."
    examples = (
        'pl.col("i32") // pl.col("u8")',
        'pl.col("i64") // pl.col("i64b")',
        'pl.col("i8") // -3',
        'pl.col("f64") // pl.col("f64b")',
        'pl.col("u32") // 0.25',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("quotient", args)
        a, b = args
        if whole_or_real(args) != FLOAT64:
            known = whole_result("quotient", args, _whole_quotients)
            return known.with_null(known.nullable or b.interval.contains(0))
        x, y = widened_to_float(a), widened_to_float(b)
        nullable = x.nullable or y.nullable or y.interval.contains(0)
        ratio = quotient(x.interval, y.interval, _is_whole(b))
        return Domain(
            FLOAT64,
            nullable=nullable,
            nan=a.nan or b.nan or (may_be_infinite(a) and may_be_infinite(b)),
            interval=_floored(ratio.as_float()),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = _operands(ns, args, domains)
        if whole_or_real(domains) != FLOAT64:  # null where y is zero
            return _result(ns, x // y, domains, self.domain(domains).dtype)
        return divided(ns, x, y, lambda a, b: (a / b).floor())


@operation
class Mod(Infix):
    name = "mod"
    symbol = "%"
    reads = ("Operator.Modulus",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Remainder with the divisor's sign, a - b * floor(a / b); null where b is zero."
    examples = (
        'pl.col("i32") % pl.col("u8")',
        'pl.col("i64") % pl.col("i64b")',
        'pl.col("i64") % 24',
        'pl.col("i8") % -5',
        'pl.col("f64") % pl.col("f64b")',
        'pl.col("u8") % 2.5',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("remainder", args)
        a, b = args
        if whole_or_real(args) != FLOAT64:
            found = whole_result("remainder", args, _remainders)
            return found.with_null(found.nullable or b.interval.contains(0))
        x, y = widened_to_float(a), widened_to_float(b)
        nullable = x.nullable or y.nullable or y.interval.contains(0)
        nan = a.nan or b.nan or may_be_infinite(a) or may_be_infinite(b)
        known = _float_remainders(x.interval, y.interval, _is_whole(b))
        return Domain(FLOAT64, nullable=nullable, nan=nan or known == EVERYTHING, interval=known)

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


def _whole_quotients(a: Interval, b: Interval) -> Interval:
    return _floored(quotient(a, b, whole=True))


def _is_whole(domain: Domain) -> bool:
    return not domain.dtype.is_float and not domain.dtype.is_decimal


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
    if not quotient(a, b, whole).as_float().bounded:
        return EVERYTHING
    error = (a.magnitude + b.magnitude) / 2**50 + Fraction(1, 2**1060)
    lo, hi = b.ends
    return interval(min(Fraction(0), lo) - error, max(Fraction(0), hi) + error).as_float()


OPERATIONS: tuple[Kind, ...] = (TrueDiv(), FloorDiv(), Mod())
