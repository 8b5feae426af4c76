"""Whether a value is null, NaN or finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.rows.forms import Method
from dpframe.rows.operands import boolean, require_numbers
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation


class NullCheck(Method, PlainOperation):
    """Never null itself."""

    __slots__ = ()

    def domain(self, args: Sequence[Domain]) -> Domain:
        return boolean(nullable=False)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        checked: pl.Expr = getattr(args[0], self.name)()
        return checked


@operation
class IsNull(NullCheck):
    name = "is_null"
    reads = ("Boolean.IsNull",)
    engines = EVERYWHERE
    summary = "Whether the value is null; never null itself."
    examples = (
        'pl.col("i64").is_null()',
        'pl.col("s").is_null()',
        'pl.col("st").is_null()',
    )


@operation
class IsNotNull(NullCheck):
    name = "is_not_null"
    reads = ("Boolean.IsNotNull",)
    engines = EVERYWHERE
    summary = "Whether the value is not null; never null itself."
    examples = ('pl.col("f64").is_not_null()', 'pl.col("li").is_not_null()')


class NumberCheck(Method, PlainOperation):
    """A question about a float, whose answer for every other number is known."""

    __slots__ = ()

    otherwise: ClassVar[bool]

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        return boolean(nullable=args[0].nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if domains[0].dtype.is_float:
            answer: pl.Expr = getattr(args[0], self.name)()
        else:
            answer = ns.when(args[0].is_not_null()).then(ns.lit(self.otherwise))
        return answer


@operation
class IsNan(NumberCheck):
    name = "is_nan"
    reads = ("Boolean.IsNan",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the value is NaN; null stays null."
    examples = ('pl.col("f64").is_nan()', 'pl.col("f32").is_nan()', 'pl.col("i64").is_nan()')
    otherwise = False


@operation
class IsNotNan(NumberCheck):
    name = "is_not_nan"
    reads = ("Boolean.IsNotNan",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the value is not NaN; null stays null."
    examples = ('pl.col("f64").is_not_nan()', 'pl.col("u8").is_not_nan()')
    otherwise = True


@operation
class IsFinite(NumberCheck):
    name = "is_finite"
    reads = ("Boolean.IsFinite",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the value is neither infinite nor NaN; null stays null."
    examples = ('pl.col("f64").is_finite()', 'pl.col("dec").is_finite()')
    otherwise = True


@operation
class IsInfinite(NumberCheck):
    name = "is_infinite"
    reads = ("Boolean.IsInfinite",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the value is infinite; null stays null."
    examples = ('pl.col("f64").is_infinite()', 'pl.col("i32").is_infinite()')
    otherwise = False


OPERATIONS: tuple[Kind, ...] = (
    IsNull(),
    IsNotNull(),
    IsNan(),
    IsNotNan(),
    IsFinite(),
    IsInfinite(),
)
