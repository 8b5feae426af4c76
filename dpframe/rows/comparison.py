"""Comparisons of two values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, ClassVar

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.rows.comparable import comparable
from dpframe.rows.forms import Infix
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Kind, Namespace, operation

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Comparison(Infix):
    """A comparison that is null when an operand is."""

    __slots__ = ()

    ordered: ClassVar[bool] = True

    def compare(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The engine's comparison of two operands of one type."""
        compared: pl.Expr = _OPERATORS[self.symbol](a, b)
        return compared

    def mirrored(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The same comparison with the second operand first."""
        compared: pl.Expr = _OPERATORS[_MIRRORED.get(self.symbol, self.symbol)](b, a)
        return compared

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, self.ordered)
        a, b = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        # Polars yields one row where a constant comes first and all rows of a column hold one value
        return self.compare(a, b) if a.meta.root_names() else self.mirrored(a, b)


@operation
class Eq(Comparison):
    name = "eq"
    reads = ("Operator.Eq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether two values are equal; null when one is null."
    symbol = "=="
    ordered = False
    examples = (
        'pl.col("i64") == 1',
        'pl.col("u64") == pl.col("i64")',
        'pl.col("f64") == pl.col("i64")',
        'pl.col("f64") == float("nan")',
        'pl.col("b") == pl.col("bb")',
        'pl.col("s") == "a"',
        'pl.col("e") == pl.col("s")',
        'pl.col("dec") == 1.5',
        'pl.col("dt") == pl.col("dtms")',
        'pl.col("dt") == pl.col("d")',
        'pl.col("i64") == None',
    )


@operation
class Ne(Comparison):
    name = "ne"
    reads = ("Operator.NotEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether two values differ; null when one is null."
    symbol = "!="
    ordered = False
    examples = (
        'pl.col("i32") != 0',
        'pl.col("f64") != pl.col("f64b")',
        'pl.col("e") != "a"',
        'pl.col("dt") != date(1970, 1, 1)',
    )


@operation
class Lt(Comparison):
    name = "lt"
    reads = ("Operator.Lt",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is below the second; null when one is null."
    symbol = "<"
    examples = (
        'pl.col("i32") < pl.col("u8")',
        'pl.col("f64") < pl.col("f64b")',
        'pl.col("s") < pl.col("sb")',
        'pl.col("d") < date(2020, 1, 1)',
        'pl.col("dt") < date(2024, 3, 31)',
        'pl.col("u64") < pl.col("i64")',
    )


@operation
class Le(Comparison):
    name = "le"
    reads = ("Operator.LtEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is at most the second; null when one is null."
    symbol = "<="
    examples = (
        'pl.col("i64") <= 10',
        'pl.col("f32") <= pl.col("f64")',
        'pl.col("dur") <= pl.col("durb")',
        'pl.col("t") <= time(12)',
        'pl.col("d") <= pl.col("dtms")',
    )


@operation
class Gt(Comparison):
    name = "gt"
    reads = ("Operator.Gt",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is above the second; null when one is null."
    symbol = ">"
    examples = (
        'pl.col("i64") > 0.5',
        'pl.col("b") > pl.col("bb")',
        'pl.col("dec") > pl.col("dec")',
        'pl.col("dtms") > pl.col("dt")',
        'pl.col("dtz") > pl.col("dtz")',
        'pl.col("d") > datetime(1969, 12, 31, 23, 59)',
    )


@operation
class Ge(Comparison):
    name = "ge"
    reads = ("Operator.GtEq",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the first is at least the second; null when one is null."
    symbol = ">="
    examples = (
        'pl.col("i32") >= 40',
        'pl.col("f64") >= pl.col("f64b")',
        'pl.col("dt") >= datetime(2020, 1, 1)',
        'pl.col("dt") >= date(2020, 1, 1)',
        'pl.col("s") >= "m"',
    )


class MissingComparison(Comparison):
    """A comparison that treats null as a value like any other."""

    __slots__ = ()

    ordered = False

    def compare(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        compared: pl.Expr = getattr(a, self.name)(b)
        return compared

    def mirrored(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        return self.compare(b, a)

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, self.ordered)
        return boolean(nullable=False)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.name}({args[1]})"


@operation
class EqMissing(MissingComparison):
    name = "eq_missing"
    reads = ("Operator.EqValidity",)
    engines = EVERYWHERE
    summary = "Whether two values are equal, where null equals null; never null."
    examples = (
        'pl.col("i64").eq_missing(pl.col("i64b"))',
        'pl.col("f64").eq_missing(float("nan"))',
        'pl.col("s").eq_missing(None)',
        'pl.col("u64").eq_missing(pl.col("i8"))',
        'pl.col("d").eq_missing(pl.col("dt"))',
    )


@operation
class NeMissing(MissingComparison):
    name = "ne_missing"
    reads = ("Operator.NotEqValidity",)
    engines = EVERYWHERE
    summary = "Whether two values differ, where null equals null; never null."
    examples = (
        'pl.col("b").ne_missing(pl.col("bb"))',
        'pl.col("f32").ne_missing(pl.col("f64"))',
        'pl.col("e").ne_missing("a")',
        'pl.col("dtms").ne_missing(date(1970, 1, 1))',
    )


OPERATIONS: tuple[Kind, ...] = (Eq(), Ne(), Lt(), Le(), Gt(), Ge(), EqMissing(), NeMissing())
