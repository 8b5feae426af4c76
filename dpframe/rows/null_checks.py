"""Whether a value is null, NaN or finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.rows.method import MethodOperation
from dpframe.rows.operands import boolean, require_numbers
from dpframe.rows.operation import Kind, Namespace, on, operation


class NullCheck(MethodOperation):
    """Never null itself."""

    __slots__ = ()
    groups = ("Boolean",)

    def domain(self, args: Sequence[Domain]) -> Domain:
        return boolean(nullable=False)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        return self.apply(ns, args[0])


@operation
class IsNull(NullCheck):
    """Whether the value is null; never null itself."""

    engines = EVERYWHERE
    examples = on("i64 s st", "is_null()")


@operation
class IsNotNull(NullCheck):
    """Whether the value is not null; never null itself."""

    engines = EVERYWHERE
    examples = on("f64 li", "is_not_null()")


class NumberCheck(MethodOperation):
    """A question about a float, whose answer for every other number is known."""

    __slots__ = ()
    groups = ("Boolean",)
    propagates_null = True
    otherwise: ClassVar[bool]

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers(self.name, args)
        return boolean(nullable=args[0].nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if domains[0].dtype.is_float:
            return self.apply(ns, args[0])
        answer: pl.Expr = ns.when(args[0].is_not_null()).then(ns.lit(self.otherwise))
        return answer


@operation
class IsNan(NumberCheck):
    """Whether the value is NaN; null stays null."""

    engines = EVERYWHERE
    examples = on("f64 f32 i64", "is_nan()")
    otherwise = False


@operation
class IsNotNan(NumberCheck):
    """Whether the value is not NaN; null stays null."""

    engines = EVERYWHERE
    examples = on("f64 u8", "is_not_nan()")
    otherwise = True


@operation
class IsFinite(NumberCheck):
    """Whether the value is neither infinite nor NaN; null stays null."""

    engines = EVERYWHERE
    examples = on("f64 dec", "is_finite()")
    otherwise = True


@operation
class IsInfinite(NumberCheck):
    """Whether the value is infinite; null stays null."""

    engines = EVERYWHERE
    examples = on("f64 i32", "is_infinite()")
    otherwise = False


OPERATIONS: tuple[Kind, ...] = (IsNull, IsNotNull, IsNan, IsNotNan, IsFinite, IsInfinite)
