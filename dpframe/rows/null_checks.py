"""Whether a value is null, NaN or finite."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.tree import Options
from dpframe.rows.operands import boolean, require_numbers
from dpframe.rows.operation import Namespace, RowOperation


class IsNull(RowOperation):
    name = "is_null"
    summary = "Whether the value is null; never null itself."
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").is_null()',
        'pl.col("s").is_null()',
        'pl.col("st").is_null()',
    )

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        return boolean(nullable=False)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        return args[0].is_null()

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.name}()"


class IsNotNull(IsNull):
    name = "is_not_null"
    summary = "Whether the value is not null; never null itself."
    examples = ('pl.col("f64").is_not_null()', 'pl.col("li").is_not_null()')

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        return args[0].is_not_null()


class NumberCheck(RowOperation):
    """A question about a float, whose answer for every other number is known."""

    otherwise: ClassVar[bool]

    @abstractmethod
    def check(self, number: pl.Expr) -> pl.Expr:
        """The engine's check of a float."""

    def domain(self, args: Sequence[Domain], options: Options) -> Domain:
        require_numbers(self.name, args)
        return boolean(nullable=args[0].nullable)

    def lower(
        self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain], options: Options
    ) -> pl.Expr:
        if domains[0].dtype.is_float:
            return self.check(args[0])
        answer: pl.Expr = ns.when(args[0].is_not_null()).then(ns.lit(self.otherwise))
        return answer

    def words(self, args: Sequence[str], options: Options) -> str:
        return f"{args[0]}.{self.name}()"


class IsNan(NumberCheck):
    name = "is_nan"
    summary = "Whether the value is NaN; null stays null."
    examples = ('pl.col("f64").is_nan()', 'pl.col("f32").is_nan()', 'pl.col("i64").is_nan()')
    otherwise = False

    def check(self, number: pl.Expr) -> pl.Expr:
        return number.is_nan()


class IsNotNan(NumberCheck):
    name = "is_not_nan"
    summary = "Whether the value is not NaN; null stays null."
    examples = ('pl.col("f64").is_not_nan()', 'pl.col("u8").is_not_nan()')
    otherwise = True

    def check(self, number: pl.Expr) -> pl.Expr:
        return number.is_not_nan()


class IsFinite(NumberCheck):
    name = "is_finite"
    summary = "Whether the value is neither infinite nor NaN; null stays null."
    examples = ('pl.col("f64").is_finite()', 'pl.col("dec").is_finite()')
    otherwise = True

    def check(self, number: pl.Expr) -> pl.Expr:
        return number.is_finite()


class IsInfinite(NumberCheck):
    name = "is_infinite"
    summary = "Whether the value is infinite; null stays null."
    examples = ('pl.col("f64").is_infinite()', 'pl.col("i32").is_infinite()')
    otherwise = False

    def check(self, number: pl.Expr) -> pl.Expr:
        return number.is_infinite()


OPERATIONS: tuple[RowOperation, ...] = (
    IsNull(),
    IsNotNull(),
    IsNan(),
    IsNotNan(),
    IsFinite(),
    IsInfinite(),
)
