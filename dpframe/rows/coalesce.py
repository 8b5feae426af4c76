"""The first value that is not null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, require_some
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.supertype import convert, converted, merged, supertype


@operation
class Coalesce(PlainOperation):
    name = "coalesce"
    reads = ("Coalesce",)
    engines = EVERYWHERE
    summary = "The first operand that is not null."
    examples = (
        'pl.coalesce("i64", "i64b", 0)',
        'pl.coalesce("i32", "u64")',
        'pl.coalesce("f32", "i64")',
        'pl.coalesce("s", "e", pl.lit("none"))',
        'pl.coalesce("dt", "dtms")',
        'pl.coalesce(pl.lit(None), "b")',
    )

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        return self.of(*require_some(self.name, operands))

    def domain(self, args: Sequence[Domain]) -> Domain:
        found = merged(args)
        nullable = all(converted(d, found.dtype).nullable for d in args)
        return replace(found, nullable=nullable)

    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        dtype = supertype(domains)
        operands = [convert(e, d, dtype) for e, d in zip(args, domains, strict=True)]
        result: pl.Expr = ns.coalesce(*operands)
        return as_type(result, dtype)

    def words(self, args: Sequence[str]) -> str:
        return f"coalesce({', '.join(args)})"


OPERATIONS: tuple[Kind, ...] = (Coalesce(),)
