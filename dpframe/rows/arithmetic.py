"""Sums, differences, products and negation.

Whole numbers are computed in Int64, where a result that does not fit wraps, or in Int128 where an
operand may lie beyond Int64, and then exactly (`operands`); everything else in Float64. Text is
joined by `+`. Moments and durations are added exactly, see `temporal_arithmetic`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64, INT128, STRING
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.rows.forms import Infix
from dpframe.rows.operands import (
    INT64_LIMITS,
    as_result,
    as_type,
    compute,
    infinite_sides,
    is_wide,
    require_numbers,
    whole_or_real,
    whole_result,
    widen,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.temporal_arithmetic import add_moments, added, is_temporal_sum
from dpframe.rows.text import bounded

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


def product_interval(a: Interval, b: Interval) -> Interval:
    """Products of values in Float64, rounded."""
    return (a * b).as_float()


@operation
class Add(Infix):
    name = "add"
    symbol = "+"
    reads = ("Operator.Plus",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Sum of two numbers, two strings joined, or a date or datetime moved by a duration."
    examples = (
        'pl.col("i32") + pl.col("u8")',
        'pl.col("i64") + 1',
        'pl.col("i64") + pl.col("i64b")',
        'pl.col("u64") + pl.col("b")',
        'pl.col("f64") + pl.col("f64b")',
        'pl.col("i8") + 0.5',
        'pl.col("f32") + pl.col("dec")',
        'pl.col("s") + "-" + pl.col("sb")',
        'pl.col("d") + pl.col("dur")',
        'pl.col("dt") + pl.col("dur")',
        'pl.col("dur") + pl.col("dtz")',
        'pl.col("dtms") + pl.col("dur")',
        'pl.col("dur") + pl.col("durb")',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        a, b = args
        if _is_joined(a, b):
            return _joined(a, b)
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
class Sub(Infix):
    name = "sub"
    symbol = "-"
    reads = ("Operator.Minus",)
    engines = EVERYWHERE
    propagates_null = True
    summary = (
        "Difference of two numbers, dates or datetimes, or a date or datetime moved back by a "
        "duration."
    )
    examples = (
        'pl.col("i32") - pl.col("u8")',
        'pl.col("i64") - pl.col("i64b")',
        'pl.col("u32") - 7',
        'pl.col("f64") - pl.col("f64b")',
        'pl.col("f32") - pl.col("i64")',
        'pl.col("b") - pl.col("bb")',
        'pl.col("d") - date(2020, 1, 1)',
        'pl.col("d") - pl.col("dt")',
        'pl.col("d") - pl.col("dur")',
        'pl.col("dt") - pl.col("dtb")',
        'pl.col("dt") - pl.col("dtms")',
        'pl.col("dtz") - pl.col("dur")',
        'pl.col("dur") - pl.col("durb")',
        'pl.col("t") - pl.col("t")',
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
class Mul(Infix):
    name = "mul"
    symbol = "*"
    reads = ("Operator.Multiply",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Product of two numbers."
    examples = (
        'pl.col("i32") * pl.col("u8")',
        'pl.col("i64") * pl.col("i64b")',
        'pl.col("i8") * pl.col("b")',
        'pl.col("f64") * pl.col("f64b")',
        'pl.col("f64") * pl.col("u32")',
        'pl.col("dec") * 1.21',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("product", args)
        a, b = args
        if whole_or_real(args) != FLOAT64:
            return whole_result("product", args, operator.mul)
        x, y = widened_to_float(a), widened_to_float(b)
        nullable = x.nullable or y.nullable
        undefined = _infinite_times_zero(a, y) or _infinite_times_zero(b, x)
        return Domain(
            FLOAT64,
            nullable=nullable,
            nan=a.nan or b.nan or undefined,
            interval=product_interval(x.interval, y.interval),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = compute(args, domains)
        return as_result(x * y, domains, self.domain(domains).dtype)


@operation
class Neg(PlainOperation):
    name = "neg"
    reads = ("Negate",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "The number with its sign changed."
    examples = ('-pl.col("i64")', '-pl.col("u8")', '-pl.col("f64")', '-pl.col("i32")')

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("negation", args)
        return negated(args[0])

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if not is_wide(domains[0]):
            return -widen(args[0], domains[0])
        minus = widen(args[0], domains[0]) * -1  # Polars does not negate Int128
        return as_result(minus, domains, self.domain(domains).dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"-{args[0]}"


def negated(domain: Domain) -> Domain:
    """The facts about minus a number."""
    wide = widened(domain)
    if wide.dtype == INT128:
        return whole_result("negation", [domain], lambda x: -x)
    known = -wide.interval
    if wide.dtype == INT64:
        known = _negated_whole(known) if not known.within(INT64_LIMITS) else known
    return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)


def _negated_whole(known: Interval) -> Interval:
    """Minus an Int64 that is bounded on one side: -2**63 has no opposite and is unchanged."""
    return known if known.hi is not None and known.hi < 2**63 else EVERYTHING


def _infinite_times_zero(maybe_infinite: Domain, other: Domain) -> bool:
    return any(infinite_sides(maybe_infinite)) and other.interval.contains(0)


def _is_joined(a: Domain, b: Domain) -> bool:
    return (a.dtype.is_text or b.dtype.is_text) and all(
        d.dtype.is_text or d.dtype.name == "Null" for d in (a, b)
    )


def _joined(a: Domain, b: Domain) -> Domain:
    categories = None
    if a.categories is not None and b.categories is not None:
        pairs = [str(x) + str(y) for x in a.categories for y in b.categories]
        if len(pairs) <= MAX_JOINED_CATEGORIES:
            categories = tuple(dict.fromkeys(pairs))
    return Domain(STRING, nullable=a.nullable or b.nullable, categories=categories)


OPERATIONS: tuple[Kind, ...] = (Add(), Sub(), Mul(), Neg())
