"""One of two values, by a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.fill_null import FillNan
from dpframe.rows.given import Operand, operand
from dpframe.rows.logic import Or, condition, require_conditions
from dpframe.rows.null_checks import IsNotNan, IsNull
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.supertype import convert, merged, supertype


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


OPERATIONS: tuple[Kind, ...] = (When(),)
