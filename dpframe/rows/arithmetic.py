"""Sums, differences, products and negation.

Whole numbers are computed in Int64, where a result that does not fit wraps; everything else in
Float64. Text is joined by `+`. Moments and durations are added exactly, see `temporal_arithmetic`.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import FLOAT64, INT64, STRING
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import EVERYTHING, Interval
from dpframe.rows.forms import Infix
from dpframe.rows.operands import (
    as_type,
    compute,
    computed,
    infinite_sides,
    require_numbers,
    widen,
    widened,
    within_int64,
)
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.temporal_arithmetic import add_moments, added, is_temporal_sum
from dpframe.rows.text import bounded

MAX_JOINED_CATEGORIES = 64


def sum_domain(a: Domain, b: Domain) -> Domain:
    """The facts about the sum of two numbers.

    A float sum is NaN when both terms are infinite with opposite signs.
    """
    x, y = computed([a, b])
    total = x.interval + y.interval
    nullable = x.nullable or y.nullable
    if x.dtype == INT64:
        return Domain(INT64, nullable=nullable, interval=within_int64(total))
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
        return x + y


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
        return sum_domain(a, negated(b))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if is_temporal_sum(*domains):
            return add_moments(args, domains, -1)
        x, y = compute(args, domains)
        return x - y


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
        x, y = computed(args)
        nullable = x.nullable or y.nullable
        if x.dtype == INT64:
            product = within_int64(x.interval * y.interval)
            return Domain(INT64, nullable=nullable, interval=product)
        undefined = _infinite_times_zero(a, y) or _infinite_times_zero(b, x)
        return Domain(
            FLOAT64,
            nullable=nullable,
            nan=a.nan or b.nan or undefined,
            interval=product_interval(x.interval, y.interval),
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        x, y = compute(args, domains)
        return x * y


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
        return -widen(args[0], domains[0])

    def words(self, args: Sequence[str]) -> str:
        return f"-{args[0]}"


def negated(domain: Domain) -> Domain:
    """The facts about minus a number."""
    wide = widened(domain)
    known = -wide.interval
    if wide.dtype == INT64:
        known = within_int64(known) if known.bounded else _negated_whole(known)
    return Domain(wide.dtype, nullable=wide.nullable, nan=wide.nan, interval=known)


def _negated_whole(known: Interval) -> Interval:
    """Minus an Int64 that is bounded on one side: -2**63 has no opposite and stays as it is."""
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
