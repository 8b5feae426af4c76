"""Aggregates over several columns of one row."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import ClassVar

import polars as pl

from dpframe.core.dtypes import FLOAT64, STRING, Domain
from dpframe.core.interval import EVERYTHING, ZERO, Interval
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
from dpframe.rows.arithmetic import sum_domain
from dpframe.rows.layouts import divided
from dpframe.rows.logic import condition, require_conditions
from dpframe.rows.operands import (
    as_result,
    as_type,
    boolean,
    compute,
    convert,
    converted,
    merged,
    require_numbers,
    supertype,
    whole_or_real,
    whole_result,
    widen_to_float,
    widened_to_float,
)
from dpframe.rows.operation import Function, Namespace, operation, spell_out


class Extreme(Function):
    """The smallest or largest operand; null and NaN are skipped."""

    __slots__ = ()

    @abstractmethod
    def narrowed(self, hull: Interval, never_skipped: Sequence[Interval]) -> Interval:
        """Where the result lies, from where operands lie, and those that are never skipped."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        _require_ordered(self.name, args)
        both = merged(args)
        parts = [converted(d, both.dtype) for d in args]
        numbers = [p for p in parts if p.categories != ()] or parts
        hull = reduce(Interval.hull, (p.interval for p in numbers))
        return Domain(
            both.dtype,
            nullable=all(p.nullable for p in parts),
            nan=any(p.nan for p in parts) and all(p.nan or p.nullable for p in parts),
            interval=self.narrowed(
                hull, [p.interval for p in numbers if not p.nullable and not p.nan]
            ),
            categories=both.categories,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]
        extreme = getattr(ns, self.name)  # which skips null
        if not dtype.is_float:
            return as_type(extreme(*operands), dtype)
        numbers = [ns.when(e.is_not_nan()).then(e) for e in operands]
        # A row without numbers is NaN if it has a NaN, and null otherwise.
        missing = ns.coalesce(*operands)
        return as_type(ns.coalesce(extreme(*numbers), missing), dtype)


def _require_ordered(name: str, args: Sequence[Domain]) -> None:
    types = [d.dtype for d in args]
    all_text = all(t.name in ("String", "Null") for t in types)
    if not all_text and all(t.is_text or t.name == "Null" for t in types):
        raise UnsupportedOperation(
            f"the order of {next(t for t in types if t.is_text and t != STRING)} is not that of "
            "its text",
            remedy="take the text, with .cast(pl.String)",
        )
    for domain in args:
        if domain.dtype.is_boolean:
            raise UnsupportedOperation(
                f"{name} takes numbers, dates or times, not Booleans",
                remedy="use pl.all_horizontal or pl.any_horizontal",
            )
        if not domain.dtype.is_temporal and not all_text:
            require_numbers(name, [domain])


@operation
class MinHorizontal(Extreme):
    """The smallest of several numbers, dates, times or strings; null and NaN are skipped."""

    engines = EVERYWHERE
    examples = spell_out(
        'pl.min_horizontal("i32", "u8"); pl.min_horizontal("i64", "i64b", 5); '
        'pl.min_horizontal("u64", "i64"); pl.min_horizontal("f64", "f64b", "f32"); '
        'pl.min_horizontal("f64", "i64"); pl.min_horizontal("dt", "dtb"); '
        'pl.min_horizontal("dur", "durb"); pl.min_horizontal("s", "sb")'
    )

    def narrowed(self, hull: Interval, never_skipped: Sequence[Interval]) -> Interval:
        ends = [known.hi for known in never_skipped if known.hi is not None]
        return Interval(hull.lo, min(ends, default=hull.hi))


@operation
class MaxHorizontal(Extreme):
    """The largest of several numbers, dates, times or strings; null and NaN are skipped."""

    engines = EVERYWHERE
    examples = spell_out(
        'pl.max_horizontal("i32", "u8"); pl.max_horizontal("i64", 0); '
        'pl.max_horizontal("f64", "f64b"); pl.max_horizontal("dec", "dec"); '
        'pl.max_horizontal("d", date(2000, 1, 1)); pl.max_horizontal("dt", "dtms"); '
        'pl.max_horizontal("s", "sb", pl.lit("b"))'
    )

    def narrowed(self, hull: Interval, never_skipped: Sequence[Interval]) -> Interval:
        ends = [known.lo for known in never_skipped if known.lo is not None]
        return Interval(max(ends, default=hull.lo), hull.hi)


@operation
class SumHorizontal(Function):
    """The sum of several numbers, from left to right; nulls count as zero."""

    engines = EVERYWHERE
    examples = spell_out(
        'pl.sum_horizontal("i32", "u8", "i8"); pl.sum_horizontal("i64", "i64b", "u64"); '
        'pl.sum_horizontal("f64", "f64b", "i32"); pl.sum_horizontal("b", "bb"); '
        'pl.sum_horizontal("f32", "dec", ignore_nulls=False)'
    )
    ignore_nulls: bool = True

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("sum", args)
        parts = list(map(_with_zero, args)) if self.ignore_nulls else args
        if whole_or_real(parts) != FLOAT64:
            return whole_result("sum", parts, lambda *known: reduce(operator.add, known))
        return replace(reduce(sum_domain, map(widened_to_float, parts)), categories=None)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        operands = compute(args, domains)
        if self.ignore_nulls:
            operands = [e.fill_null(0) for e in operands]
        total = reduce(operator.add, operands)
        return as_result(total, domains, self.domain(domains).dtype)


@operation
class MeanHorizontal(Function):
    """The mean of several numbers in Float64; nulls are skipped."""

    engines = EVERYWHERE
    examples = spell_out(
        'pl.mean_horizontal("i32", "u8", "i8"); pl.mean_horizontal("i64", "i64b"); '
        'pl.mean_horizontal("f64", "f64b", "b"); '
        'pl.mean_horizontal("i32", "f32", ignore_nulls=False)'
    )
    ignore_nulls: bool = True

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("mean", args)
        parts = [widened_to_float(d) for d in args]
        total = reduce(sum_domain, [_with_zero(p) for p in parts])
        hull = reduce(Interval.hull, (p.interval for p in parts))
        missing = [p.nullable for p in parts]
        return Domain(
            FLOAT64,
            nullable=all(missing) if self.ignore_nulls else any(missing),
            nan=total.nan,
            interval=_mean_interval(hull, len(parts)) if total.interval.is_bounded else EVERYTHING,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        numbers = [widen_to_float(e, d) for e, d in zip(args, domains, strict=True)]
        known = numbers
        count: pl.Expr = ns.lit(float(len(numbers)), dtype=ns.Float64)
        if self.ignore_nulls:
            known = [e.fill_null(0.0) for e in numbers]
            count = reduce(operator.add, [as_type(e.is_not_null(), FLOAT64) for e in numbers])
        return divided(ns, reduce(operator.add, known), count, lambda a, b: a / b)


def _mean_interval(hull: Interval, terms: int) -> Interval:
    """A mean lies among its terms, up to the rounding of their sum, relative to the largest."""
    lo, hi = hull.ends
    error = max(abs(lo), abs(hi)) * Fraction(2 * terms, 2**52) + Fraction(1, 2**1060)
    return Interval(lo - error, hi + error)


def _with_zero(domain: Domain) -> Domain:
    """The facts about a term that counts as zero where it is null."""
    if not domain.nullable:
        return domain
    return replace(domain, nullable=False, interval=domain.interval.hull(ZERO), categories=None)


@operation
class AnyHorizontal(Function):
    """Whether one of several conditions holds; null counts as unknown."""

    groups = ("Boolean",)
    engines = EVERYWHERE
    examples = spell_out('pl.any_horizontal("b", "bb"); pl.any_horizontal(i64 > 0, "b", "bb")')
    join: ClassVar[Callable[[pl.Expr, pl.Expr], pl.Expr]] = operator.or_

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_conditions(self.name, args)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return reduce(type(self).join, map(condition, args, domains))


@operation
class AllHorizontal(AnyHorizontal):
    """Whether all of several conditions hold; null counts as unknown."""

    engines = EVERYWHERE
    examples = ('pl.all_horizontal("b", "bb")', 'pl.all_horizontal(pl.col("s") == "a", "b")')
    join = operator.and_


OPERATIONS = (
    *(MinHorizontal, MaxHorizontal, SumHorizontal, MeanHorizontal),
    *(AnyHorizontal, AllHorizontal),
)
