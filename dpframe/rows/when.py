"""One of two values, by a condition."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.rows.logic import condition, require_conditions
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.supertype import convert, merged, supertype


@operation
class When(PlainOperation):
    name = "when"
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


OPERATIONS: tuple[Kind, ...] = (When(),)
