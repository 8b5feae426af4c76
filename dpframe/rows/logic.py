"""Conditions joined and negated, with null as "unknown" (Kleene's logic).

Integers are joined and negated bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import and_, or_, xor
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import BOOLEAN, INT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import UNIT, Interval
from dpframe.errors import UnsupportedOperation
from dpframe.rows.bits import are_whole, combined
from dpframe.rows.forms import Infix
from dpframe.rows.operands import as_result, as_type, boolean, compute, whole_result, widen
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation


def require_conditions(what: str, domains: Sequence[Domain]) -> None:
    """Refuse operands that are not Boolean.

    Raises
    ------
    UnsupportedOperation
        When a domain's type is neither Boolean nor Null.
    """
    for domain in domains:
        if not domain.dtype.is_boolean and domain.dtype.name != "Null":
            raise UnsupportedOperation(
                f"{what} takes Booleans{_or_integers(what)}, not {domain.dtype}",
                remedy="compare it first, for example x != 0"
                if domain.dtype.is_numeric
                else "write a comparison, for example x == value",
            )


def _or_integers(what: str) -> str:
    return ", or integers," if what in ("&", "|", "^", "~") else ""


def condition(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A Boolean operand, typed also when it is a null constant."""
    return expression if domain.dtype.is_boolean else as_type(expression, BOOLEAN)


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {"&": and_, "|": or_, "^": xor}


class Junction(Infix):
    """Two conditions joined, or two integers bit by bit; among integers a Boolean is 0 or 1."""

    __slots__ = ()

    def join(self, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The engine's operator."""
        joined: pl.Expr = _OPERATORS[self.symbol](a, b)
        return joined

    def domain(self, args: Sequence[Domain]) -> Domain:
        if are_whole(args):
            return combined(self.symbol, args)
        require_conditions(self.symbol, args)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if are_whole(domains):
            joined = self.join(*compute(args, domains))
            return as_result(joined, domains, self.domain(domains).dtype)
        a, b = (condition(e, d) for e, d in zip(args, domains, strict=True))
        return self.join(a, b)


@operation
class And(Junction):
    name = "and"
    reads = ("Operator.And", "Operator.LogicalAnd")
    engines = EVERYWHERE
    summary = (
        "Whether both hold; False when one does not, even if the other is null. Of integers: the "
        "bits that both have."
    )
    symbol = "&"
    examples = (
        'pl.col("b") & pl.col("bb")',
        '(pl.col("i64") > 0) & (pl.col("f64") < 1)',
        'pl.col("i64") & 7',
        'pl.col("u64") & pl.col("i8")',
        'pl.col("u8") & pl.col("i32")',
    )


@operation
class Or(Junction):
    name = "or"
    reads = ("Operator.Or", "Operator.LogicalOr")
    engines = EVERYWHERE
    summary = (
        "Whether one holds; True when one does, even if the other is null. Of integers: the bits "
        "that one has."
    )
    symbol = "|"
    examples = (
        'pl.col("b") | pl.col("bb")',
        'pl.col("b") | pl.lit(None)',
        'pl.col("i64") | pl.col("i64b")',
        'pl.col("u8") | pl.col("u32")',
        'pl.col("i8") | 4',
    )


@operation
class Xor(Junction):
    name = "xor"
    reads = ("Operator.Xor",)
    engines = EVERYWHERE
    summary = "Whether exactly one holds; null when one is null. Of integers: the bits that differ."
    symbol = "^"
    examples = (
        'pl.col("b") ^ pl.col("bb")',
        'pl.col("i64") ^ pl.col("i32")',
        'pl.col("u8") ^ pl.col("b")',
    )

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if ns is not pl or are_whole(domains):
            return Junction.lower(self, ns, args, domains)
        # before 1.36 Polars takes one null for False where the other operand is rows of True
        a, b = (as_type(condition(e, d), INT64) for e, d in zip(args, domains, strict=True))
        return a + b == 1


@operation
class Not(PlainOperation):
    name = "not"
    reads = ("Boolean.Not",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the condition does not hold; null stays null. Of an integer: -1 - x."
    examples = (
        '~pl.col("b")',
        '~(pl.col("i64") > pl.col("i64b"))',
        '~pl.col("i64")',
        '~pl.col("u8")',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        if are_whole(args):
            return whole_result("bits (~)", args, lambda a: -a - Interval(UNIT.hi, UNIT.hi))
        require_conditions("~", args)
        return boolean(nullable=args[0].nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if are_whole(domains):  # which no Int64 is too large or too small for
            inverted = widen(args[0], domains[0]) * -1 - 1
            return as_result(inverted, domains, self.domain(domains).dtype)
        return ~condition(args[0], domains[0])

    def words(self, args: Sequence[str]) -> str:
        return f"~{args[0]}"


OPERATIONS: tuple[Kind, ...] = (And(), Or(), Xor(), Not())
