"""Conditions joined and negated, where null is "unknown" (Kleene), and values chosen by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import and_, or_, xor
from typing import Any

import polars as pl

from dpframe.core.dtypes import BOOLEAN, INT64, Domain
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.core.tree import Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
from dpframe.rows.nulls import FillNan, IsNotNan, IsNull
from dpframe.rows.operands import (
    as_result,
    as_type,
    boolean,
    compute,
    convert,
    merged,
    supertype,
    whole_result,
    widen,
    widened,
)
from dpframe.rows.operation import (
    Infix,
    Kind,
    Namespace,
    Operand,
    PlainOperation,
    operand,
    operation,
)

# Whole numbers combined bit by bit, as Int64 or Int128 in two's complement.
#
# A Boolean counts as 0 or 1.


def are_whole(domains: Sequence[Domain]) -> bool:
    """Whether operands are combined as whole numbers rather than as conditions."""
    types = [d.dtype for d in domains]
    whole = all(t.is_integer or t.is_boolean or t.name == "Null" for t in types)
    return whole and any(t.is_integer for t in types)


def combined(op: str, args: Sequence[Domain]) -> Domain:
    """The facts about two whole numbers combined by `&`, `|` or `^`."""
    found = whole_result(f"bits ({op})", args, lambda a, b: _combined(op, a, b))
    if found.dtype != INT64:
        return found
    x, y = (widened(d).interval for d in args)
    return replace(found, interval=_combined(op, x, y))  # no bit leaves Int64: nothing wraps


def _combined(op: str, a: Interval, b: Interval) -> Interval:
    positive = [known for known in (a, b) if known.lo is not None and known.lo >= 0]
    if op == "&" and positive:  # no bit is set that is not set in a number without a sign
        return interval(0, min((k.hi for k in positive if k.hi is not None), default=None))
    if not (a.bounded and b.bounded):
        return interval(0, None) if len(positive) == 2 else EVERYTHING
    power = 2 ** max(_bits(a), _bits(b))
    least = 0 if len(positive) == 2 else -power
    if op == "|" and len(positive) == 2:  # no bit is lost
        return interval(max(known.ends[0] for known in positive), power - 1)
    return interval(least, power - 1)


def _bits(known: Interval) -> int:
    """The number of bits of the numbers without their sign."""
    lo, hi = (int(end) for end in known.ends)
    return max(hi.bit_length(), (~lo).bit_length() if lo < 0 else lo.bit_length())


# Conditions joined and negated, with null as "unknown" (Kleene's logic).
#
# Integers are joined and negated bit by bit.


def require_conditions(what: str, domains: Sequence[Domain]) -> None:
    """Refuse operands that are not Boolean. Raises `UnsupportedOperation` when a domain's type is
    neither Boolean nor Null.
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


# One of two values, by a condition.


@operation
class When(PlainOperation):
    name = "when"
    reads = ("Node.Ternary",)
    engines = EVERYWHERE
    summary = "`then` where the condition holds, `otherwise` where it does not or is null."
    examples = (
        'pl.when(pl.col("b")).then(pl.col("i32")).otherwise(0)',
        'pl.when(pl.col("i64") > 0).then(pl.col("u64")).otherwise(pl.col("i64"))',
        'pl.when(pl.col("b")).then(pl.col("f32")).otherwise(pl.col("i64"))',
        'pl.when(pl.col("s") == "a").then(1).otherwise(2.5)',
        'pl.when(pl.col("b")).then(pl.lit("yes")).otherwise(pl.lit("no"))',
        'pl.when(pl.col("b")).then(pl.col("e")).otherwise(pl.lit("a"))',
        'pl.when(pl.col("b")).then(pl.col("d"))',
        'pl.when(pl.col("bb")).then(pl.col("dt")).otherwise(pl.col("dtms"))',
        'pl.when(pl.col("b")).then(1).when(pl.col("bb")).then(2).otherwise(3)',
        'pl.when(pl.col("b")).then(pl.col("li")).otherwise(None)',
    )

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        predicate, then, otherwise = map(operand, operands)
        if _is_fill_nan(predicate, then):
            return FillNan().of(then, otherwise)
        return self.of(predicate, then, otherwise)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_conditions("when", args[:1])
        return merged(args[1:])

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains[1:])
        yes, no = (convert(e, d, dtype) for e, d in zip(args[1:], domains[1:], strict=True))
        result: pl.Expr = ns.when(condition(args[0], domains[0])).then(yes).otherwise(no)
        return result

    def words(self, args: Sequence[str]) -> str:
        return f"when({args[0]}).then({args[1]}).otherwise({args[2]})"


def _is_fill_nan(predicate: Tree, then: Tree) -> bool:
    """Whether a choice is what Polars writes for `fill_nan`."""
    return predicate == Or().of(IsNotNan().of(then), IsNull().of(then))


OPERATIONS: tuple[Kind, ...] = (
    *(And(), Or(), Xor(), Not()),
    When(),
)
