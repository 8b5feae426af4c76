"""Whether a value is null, NaN or finite, and values in place of those that are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import polars as pl

from dpframe.core.dtypes import Domain
from dpframe.core.units import EVERYWHERE
from dpframe.rows.operands import (
    as_type,
    boolean,
    convert,
    converted,
    merged,
    require_numbers,
    supertype,
    when,
    widen_to_float,
    widened_to_float,
)
from dpframe.rows.operation import Function, Namespace, RowMethod, on, operation, spell_out

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


OPERATIONS = (
    *(IsNull, IsNotNull, IsNan, IsNotNan, IsFinite, IsInfinite),
    *(FillNull, FillNan),
    Coalesce,
)
