"""Membership in a range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.comparable import comparable
from dpframe.rows.given import Operand
from dpframe.rows.operands import boolean
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation

Closed: TypeAlias = Literal["left", "right", "both", "none"]
_CLOSED: dict[str, Closed] = {"Both": "both", "Left": "left", "Right": "right", "None": "none"}


@operation
class IsBetween(ParametricOperation):
    name = "is_between"
    reads = ("Boolean.IsBetween",)
    engines = EVERYWHERE
    summary = "Whether a value lies in a range, by default with both ends."
    examples = (
        'pl.col("i32").is_between(0, 10)',
        'pl.col("i64").is_between(pl.col("i8"), pl.col("i64b"), closed="left")',
        'pl.col("f64").is_between(-1, 1, closed="none")',
        'pl.col("f64").is_between(pl.col("f64b"), 1e300, closed="right")',
        'pl.col("u64").is_between(0, pl.col("i64"))',
        'pl.col("s").is_between(pl.lit("a"), pl.lit("c"))',
        'pl.col("d").is_between(date(1970, 1, 1), date(2020, 1, 1))',
        'pl.col("dt").is_between(date(1970, 1, 1), pl.col("d"), closed="left")',
    )
    closed: Closed

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls(_CLOSED[params["closed"]]).of(*operands)

    def domain(self, args: Sequence[Domain]) -> Domain:
        comparable(args, ordered=True)
        return boolean(nullable=any(d.nullable for d in args))

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        common = comparable(domains, ordered=True)
        value, lo, hi = (common.lower(e, d.dtype) for e, d in zip(args, domains, strict=True))
        return value.is_between(lo, hi, closed=self.closed)

    def words(self, args: Sequence[str]) -> str:
        how = "" if self.closed == "both" else f', closed="{self.closed}"'
        return f"{args[0]}.is_between({args[1]}, {args[2]}{how})"


OPERATIONS: tuple[Kind, ...] = (IsBetween,)
