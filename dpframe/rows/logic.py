"""Conditions and nulls: tests for null and NaN, "and", "or" and "not" where null is "unknown"
(Kleene), and values chosen by conditions.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import polars as pl

from dpframe.core.dtypes import BOOLEAN, INT64, Domain
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.core.tree import Tree
from dpframe.core.units import EVERYWHERE
from dpframe.errors import UnsupportedOperation
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
    when,
    whole_result,
    widen,
    widen_to_float,
    widened,
    widened_to_float,
)
from dpframe.rows.operation import (
    Function,
    Infix,
    Namespace,
    Operand,
    RowMethod,
    on,
    operand,
    operation,
    spell_out,
)

# Whether a value is null, NaN or finite, and values in place of those that are.

# Whether a value is null, NaN or finite.


class NullCheck(RowMethod):
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


class NumberCheck(RowMethod):
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
        return when(ns, args[0].is_not_null(), ns.lit(self.otherwise))


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


# Values in place of null or NaN.


@operation
class FillNull(RowMethod):
    """The value, or another in place of null. NaN is not null."""

    arity = 2
    engines = EVERYWHERE
    examples = spell_out(
        "i32.fill_null(0); i8.fill_null(1000); u64.fill_null(0); u64.fill_null(-1); "
        'i64.fill_null(f64); f64.fill_null(0); s.fill_null(""); e.fill_null("a"); '
        'e.fill_null("other"); b.fill_null(False); d.fill_null(date(1970, 1, 1)); '
        "dtms.fill_null(dt); dec.fill_null(0); i64.fill_null(pl.lit(None))"
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        both = merged(args)
        fill = converted(args[1], both.dtype)
        return replace(both, nullable=both.nullable and fill.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        value, fill = (convert(e, d, dtype) for e, d in zip(args, domains, strict=True))
        return as_type(value.fill_null(fill), dtype)


@operation
class FillNan(RowMethod):
    """The value, or another in place of NaN; integers have no NaN."""

    reads = ()
    arity = 2
    engines = EVERYWHERE
    examples = spell_out(
        "f64.fill_nan(0.0); f64.fill_nan(None); f32.fill_nan(None); f32.fill_nan(1); "
        "f64.fill_nan(i64); i32.fill_nan(0)"
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_numbers("NaN to fill", args)
        value, fill = args
        if not value.dtype.is_float:
            return value
        if fill.dtype.name == "Null":
            return replace(value, nullable=value.nullable or value.nan, nan=False)
        filled = widened_to_float(fill)
        both = merged([widened_to_float(value), filled])
        nullable = value.nullable or (value.nan and filled.nullable)
        return replace(both, nullable=nullable, nan=value.nan and filled.nan)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        value, fill = domains
        if not value.dtype.is_float:
            return args[0]
        if fill.dtype.name == "Null":
            return when(ns, args[0].is_not_nan(), args[0])
        number = widen_to_float(args[0], value)
        return when(ns, number.is_nan(), widen_to_float(args[1], fill), number)


# The first value that is not null.


@operation
class Coalesce(Function):
    """The first operand that is not null."""

    engines = EVERYWHERE
    examples = spell_out(
        'pl.coalesce("i64", "i64b", 0); pl.coalesce("i32", "u64"); pl.coalesce("f32", "i64"); '
        'pl.coalesce("s", "e", pl.lit("none")); pl.coalesce("dt", "dtms"); '
        'pl.coalesce(pl.lit(None), "b")'
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        found = merged(args)
        nullable = all(converted(d, found.dtype).nullable for d in args)
        return replace(found, nullable=nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]
        result: pl.Expr = ns.coalesce(*operands)
        return as_type(result, dtype)


# Conditions joined and negated, where null is "unknown" (Kleene), and values chosen by them.

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
    if not (a.is_bounded and b.is_bounded):
        return interval(0, None) if len(positive) == 2 else EVERYTHING
    power = 2 ** max(_bits(a), _bits(b))
    least = 0 if len(positive) == 2 else -power
    if op == "|" and len(positive) == 2:  # no bit is lost
        return interval(max(known.ends[0] for known in positive), power - 1)
    return interval(least, power - 1)


def _bits(known: Interval) -> int:
    """How many bits the numbers have without their sign."""
    lo, hi = (int(end) for end in known.ends)
    return max(hi.bit_length(), (~lo).bit_length() if lo < 0 else lo.bit_length())


# Conditions joined and negated, with null as "unknown" (Kleene's logic).
#
# Integers are joined and negated bit by bit.


def require_conditions(what: str, domains: Sequence[Domain]) -> None:
    """Refuse operands that are neither Boolean nor Null."""
    integers = ", or integers," if what in ("&", "|", "^", "~") else ""
    for domain in domains:
        if not domain.dtype.is_boolean and domain.dtype.name != "Null":
            raise UnsupportedOperation(
                f"{what} takes Booleans{integers}, not {domain.dtype}",
                remedy="compare it first, for example x != 0"
                if domain.dtype.is_numeric
                else "write a comparison, for example x == value",
            )


def condition(expression: pl.Expr, domain: Domain) -> pl.Expr:
    """A Boolean operand, typed also when it is a null constant."""
    return expression if domain.dtype.is_boolean else as_type(expression, BOOLEAN)


class Junction(Infix):
    """Two conditions joined, or two integers bit by bit; among integers a Boolean is 0 or 1."""

    __slots__ = ()

    def domain(self, args: Sequence[Domain]) -> Domain:
        if are_whole(args):
            return combined(self.symbol, args)
        require_conditions(self.symbol, args)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        join = {"&": operator.and_, "|": operator.or_, "^": operator.xor}[self.symbol]
        if are_whole(domains):
            joined: pl.Expr = join(*compute(args, domains))
            return as_result(joined, domains, self.domain(domains).dtype)
        conditions: pl.Expr = join(*map(condition, args, domains))
        return conditions


@operation
class And(Junction):
    """Whether both hold; False when one does not, even if the other is null. Of integers: the bits
    that both have.
    """

    reads = ("Operator.And", "Operator.LogicalAnd")
    engines = EVERYWHERE
    symbol = "&"
    examples = spell_out("b & bb; (i64 > 0) & (f64 < 1); i64 & 7; u64 & i8; u8 & i32")


@operation
class Or(Junction):
    """Whether one holds; True when one does, even if the other is null. Of integers: the bits that
    one has.
    """

    reads = ("Operator.Or", "Operator.LogicalOr")
    engines = EVERYWHERE
    symbol = "|"
    examples = spell_out("b | bb; b | pl.lit(None); i64 | i64b; u8 | u32; i8 | 4")


@operation
class Xor(Junction):
    """Whether exactly one holds; null when one is null. Of integers: the bits that differ."""

    engines = EVERYWHERE
    symbol = "^"
    examples = spell_out("b ^ bb; i64 ^ i32; u8 ^ b")

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        if ns is not pl or are_whole(domains):
            return Junction.lower(self, ns, args, domains)
        # before 1.36 Polars takes one null for False where the other operand is rows of True
        a, b = (as_type(joined, INT64) for joined in map(condition, args, domains))
        return a + b == 1


@operation
class Not(RowMethod):
    """Whether the condition does not hold; null stays null. For an integer it is -1 - x."""

    groups = ("Boolean",)
    engines = EVERYWHERE
    propagates_null = True
    examples = spell_out("~b; ~(i64 > i64b); ~i64; ~u8")

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
class When(RowMethod):
    """`then` where the condition holds, `otherwise` where it does not or is null."""

    reads = ("Node.Ternary",)
    arity = 3
    engines = EVERYWHERE
    examples = spell_out(
        "pl.when(b).then(i32).otherwise(0); pl.when(i64 > 0).then(u64).otherwise(i64); "
        'pl.when(b).then(f32).otherwise(i64); pl.when(s == "a").then(1).otherwise(2.5); '
        'pl.when(b).then(pl.lit("yes")).otherwise(pl.lit("no")); '
        'pl.when(b).then(e).otherwise(pl.lit("a")); pl.when(b).then(d); '
        "pl.when(bb).then(dt).otherwise(dtms); pl.when(b).then(1).when(bb).then(2).otherwise(3); "
        "pl.when(b).then(li).otherwise(None)"
    )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: object) -> Tree:
        predicate, then, otherwise = map(operand, operands)
        if predicate == Or().of(IsNotNan().of(then), IsNull().of(then)):  # Polars' fill_nan
            return FillNan().of(then, otherwise)
        return cls().of(predicate, then, otherwise)

    def domain(self, args: Sequence[Domain]) -> Domain:
        require_conditions("when", args[:1])
        return merged(args[1:])

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains[1:])
        yes, no = (convert(e, d, dtype) for e, d in zip(args[1:], domains[1:], strict=True))
        return when(ns, condition(args[0], domains[0]), yes, no)

    def words(self, args: Sequence[str]) -> str:
        return f"when({args[0]}).then({args[1]}).otherwise({args[2]})"


OPERATIONS = (
    *(IsNull, IsNotNull, IsNan, IsNotNan, IsFinite, IsInfinite),
    *(FillNull, FillNan),
    Coalesce,
    *(And, Or, Xor, Not),
    When,
)
