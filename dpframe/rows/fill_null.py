"""Values in place of null or NaN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.rows.operands import as_type, require_numbers, widen_to_float, widened_to_float
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.supertype import convert, converted, merged, supertype


@operation
class FillNull(PlainOperation):
    name = "fill_null"
    reads = ("FillNull",)
    engines = EVERYWHERE
    summary = "The value, or another in place of null. NaN is not null."
    examples = (
        'pl.col("i32").fill_null(0)',
        'pl.col("i8").fill_null(1000)',
        'pl.col("u64").fill_null(0)',
        'pl.col("u64").fill_null(-1)',
        'pl.col("i64").fill_null(pl.col("f64"))',
        'pl.col("f64").fill_null(0)',
        'pl.col("s").fill_null("")',
        'pl.col("e").fill_null("a")',
        'pl.col("e").fill_null("other")',
        'pl.col("b").fill_null(False)',
        'pl.col("d").fill_null(date(1970, 1, 1))',
        'pl.col("dtms").fill_null(pl.col("dt"))',
        'pl.col("dec").fill_null(0)',
        'pl.col("i64").fill_null(pl.lit(None))',
    )

    def domain(self, args: Sequence[Domain]) -> Domain:
        both = merged(args)
        fill = converted(args[1], both.dtype)
        return replace(both, nullable=both.nullable and fill.nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        value, fill = (convert(e, d, dtype) for e, d in zip(args, domains, strict=True))
        return as_type(value.fill_null(fill), dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.fill_null({args[1]})"


@operation
class FillNan(PlainOperation):
    name = "fill_nan"
    reads = ()
    engines = EVERYWHERE
    summary = "The value, or another in place of NaN; integers have no NaN."
    examples = (
        'pl.col("f64").fill_nan(0.0)',
        'pl.col("f64").fill_nan(None)',
        'pl.col("f32").fill_nan(None)',
        'pl.col("f32").fill_nan(1)',
        'pl.col("f64").fill_nan(pl.col("i64"))',
        'pl.col("i32").fill_nan(0)',
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
            known: pl.Expr = ns.when(args[0].is_not_nan()).then(args[0])
            return known
        number = widen_to_float(args[0], value)
        result: pl.Expr = (
            ns.when(number.is_nan()).then(widen_to_float(args[1], fill)).otherwise(number)
        )
        return result

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.fill_nan({args[1]})"


OPERATIONS: tuple[Kind, ...] = (FillNull(), FillNan())
