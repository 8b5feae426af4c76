"""Aggregates over several columns of one row."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

import polars as pl

from dpframe.core.dtypes import FLOAT64, STRING, Domain
from dpframe.core.interval import EVERYTHING, ZERO, Interval
from dpframe.core.tree import Tree
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
from dpframe.rows.operation import (
    Kind,
    Namespace,
    Operand,
    ParametricOperation,
    PlainOperation,
    operation,
    require_some,
)


class Extreme(PlainOperation):
    """The smallest or largest operand; null and NaN are skipped."""

    __slots__ = ()

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        return self.of(*require_some(self.name, operands))

    @abstractmethod
    def known(self, parts: Sequence[Domain]) -> Interval:
        """Where the result lies, for operands of one type."""

    @abstractmethod
    def apply(self, ns: Namespace, operands: Sequence[pl.Expr]) -> pl.Expr:
        """The engine's function, which skips null."""

    def domain(self, args: Sequence[Domain]) -> Domain:
        _require_ordered(self.name, args)
        found = merged(args)
        parts = [converted(d, found.dtype) for d in args]
        numbers = [p for p in parts if p.categories != ()] or parts
        return Domain(
            found.dtype,
            nullable=all(p.nullable for p in parts),
            nan=any(p.nan for p in parts) and all(p.nan or p.nullable for p in parts),
            interval=self.known(numbers),
            categories=found.categories,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]
        if not dtype.is_float:
            return as_type(self.apply(ns, operands), dtype)
        numbers = [ns.when(e.is_not_nan()).then(e) for e in operands]
        # A row without numbers is NaN if it has a NaN, and null otherwise.
        missing = ns.coalesce(*operands)
        return as_type(ns.coalesce(self.apply(ns, numbers), missing), dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"{self.name}({', '.join(args)})"


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


def _always(parts: Sequence[Domain]) -> list[Domain]:
    """The operands that are never skipped."""
    return [p for p in parts if not p.nullable and not p.nan]


@operation
class MinHorizontal(Extreme):
    name = "min_horizontal"
    reads = ("MinHorizontal",)
    engines = EVERYWHERE
    summary = "The smallest of several numbers, dates, times or strings; null and NaN are skipped."
    examples = (
        'pl.min_horizontal("i32", "u8")',
        'pl.min_horizontal("i64", "i64b", 5)',
        'pl.min_horizontal("u64", "i64")',
        'pl.min_horizontal("f64", "f64b", "f32")',
        'pl.min_horizontal("f64", "i64")',
        'pl.min_horizontal("dt", "dtb")',
        'pl.min_horizontal("dur", "durb")',
        'pl.min_horizontal("s", "sb")',
    )

    def known(self, parts: Sequence[Domain]) -> Interval:
        hull = reduce(Interval.hull, (p.interval for p in parts))
        ends = [p.interval.hi for p in _always(parts) if p.interval.hi is not None]
        return Interval(hull.lo, min(ends) if ends else hull.hi)

    def apply(self, ns: Namespace, operands: Sequence[pl.Expr]) -> pl.Expr:
        result: pl.Expr = ns.min_horizontal(*operands)
        return result


@operation
class MaxHorizontal(Extreme):
    name = "max_horizontal"
    reads = ("MaxHorizontal",)
    engines = EVERYWHERE
    summary = "The largest of several numbers, dates, times or strings; null and NaN are skipped."
    examples = (
        'pl.max_horizontal("i32", "u8")',
        'pl.max_horizontal("i64", 0)',
        'pl.max_horizontal("f64", "f64b")',
        'pl.max_horizontal("dec", "dec")',
        'pl.max_horizontal("d", date(2000, 1, 1))',
        'pl.max_horizontal("dt", "dtms")',
        'pl.max_horizontal("s", "sb", pl.lit("b"))',
    )

    def known(self, parts: Sequence[Domain]) -> Interval:
        hull = reduce(Interval.hull, (p.interval for p in parts))
        ends = [p.interval.lo for p in _always(parts) if p.interval.lo is not None]
        return Interval(max(ends) if ends else hull.lo, hull.hi)

    def apply(self, ns: Namespace, operands: Sequence[pl.Expr]) -> pl.Expr:
        result: pl.Expr = ns.max_horizontal(*operands)
        return result


@operation
class SumHorizontal(ParametricOperation):
    name = "sum_horizontal"
    reads = ("SumHorizontal",)
    engines = EVERYWHERE
    summary = "The sum of several numbers, from left to right; nulls count as zero."
    examples = (
        'pl.sum_horizontal("i32", "u8", "i8")',
        'pl.sum_horizontal("i64", "i64b", "u64")',
        'pl.sum_horizontal("f64", "f64b", "i32")',
        'pl.sum_horizontal("b", "bb")',
        'pl.sum_horizontal("f32", "dec", ignore_nulls=False)',
    )
    ignore_nulls: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        ignore_nulls = bool(params["ignore_nulls"])
        return cls(ignore_nulls).of(*require_some(cls.name, operands))

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("sum", args)
        parts = [_with_zero(d) for d in args] if self.ignore_nulls else list(args)
        if whole_or_real(parts) != FLOAT64:
            return whole_result("sum", parts, lambda *known: reduce(operator.add, known))
        return replace(reduce(sum_domain, map(widened_to_float, parts)), categories=None)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        operands = compute(args, domains)
        if self.ignore_nulls:
            operands = [e.fill_null(0) for e in operands]
        total = reduce(lambda a, b: a + b, operands)
        return as_result(total, domains, self.domain(domains).dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"{self.name}({', '.join(args)}{_nulls_words(self.ignore_nulls)})"


@operation
class MeanHorizontal(ParametricOperation):
    name = "mean_horizontal"
    reads = ("MeanHorizontal",)
    engines = EVERYWHERE
    summary = "The mean of several numbers in Float64; nulls are skipped."
    examples = (
        'pl.mean_horizontal("i32", "u8", "i8")',
        'pl.mean_horizontal("i64", "i64b")',
        'pl.mean_horizontal("f64", "f64b", "b")',
        'pl.mean_horizontal("i32", "f32", ignore_nulls=False)',
    )
    ignore_nulls: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        ignore_nulls = bool(params["ignore_nulls"])
        return cls(ignore_nulls).of(*require_some(cls.name, operands))

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
            interval=_mean_interval(hull, len(parts)) if total.interval.bounded else EVERYTHING,
        )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        numbers = [widen_to_float(e, d) for e, d in zip(args, domains, strict=True)]
        if not self.ignore_nulls:
            total = reduce(lambda a, b: a + b, numbers)
            terms = ns.lit(float(len(numbers)), dtype=ns.Float64)
            return divided(ns, total, terms, lambda a, b: a / b)
        total = reduce(lambda a, b: a + b, [e.fill_null(0.0) for e in numbers])
        count = reduce(lambda a, b: a + b, [as_type(e.is_not_null(), FLOAT64) for e in numbers])
        return divided(ns, total, count, lambda a, b: a / b)

    def words(self, args: Sequence[str]) -> str:
        return f"{self.name}({', '.join(args)}{_nulls_words(self.ignore_nulls)})"


def _mean_interval(hull: Interval, terms: int) -> Interval:
    """A mean lies among its terms, up to the rounding of their sum, relative to the largest."""
    lo, hi = hull.ends
    error = max(abs(lo), abs(hi)) * Fraction(2 * terms, 2**52) + Fraction(1, 2**1060)
    return Interval(lo - error, hi + error)


def _nulls_words(ignore_nulls: bool) -> str:
    return "" if ignore_nulls else ", ignore_nulls=False"


def _with_zero(domain: Domain) -> Domain:
    """The facts about a term that counts as zero where it is null."""
    if not domain.nullable:
        return domain
    return replace(domain, nullable=False, interval=domain.interval.hull(ZERO), categories=None)


@operation
class AnyHorizontal(PlainOperation):
    """Conditions of one row joined."""

    name = "any_horizontal"
    reads = ("Boolean.AnyHorizontal",)
    engines = EVERYWHERE
    summary = "Whether one of several conditions holds; null counts as unknown."
    examples = (
        'pl.any_horizontal("b", "bb")',
        'pl.any_horizontal(pl.col("i64") > 0, "b", "bb")',
    )
    joined_by: ClassVar[str] = "or"

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        return self.of(*require_some(self.name, operands))

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_conditions(self.name, args)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        conditions = [condition(e, d) for e, d in zip(args, domains, strict=True)]
        if self.joined_by == "or":
            return reduce(lambda a, b: a | b, conditions)
        return reduce(lambda a, b: a & b, conditions)

    def words(self, args: Sequence[str]) -> str:
        return f"{self.name}({', '.join(args)})"


@operation
class AllHorizontal(AnyHorizontal):
    name = "all_horizontal"
    reads = ("Boolean.AllHorizontal",)
    engines = EVERYWHERE
    summary = "Whether all of several conditions hold; null counts as unknown."
    examples = ('pl.all_horizontal("b", "bb")', 'pl.all_horizontal(pl.col("s") == "a", "b")')
    joined_by = "and"


OPERATIONS: tuple[Kind, ...] = (
    MinHorizontal(),
    MaxHorizontal(),
    SumHorizontal,
    MeanHorizontal,
    AnyHorizontal(),
    AllHorizontal(),
)
