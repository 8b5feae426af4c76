"""Texts split into lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import STRING, list_type
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, text
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextOperation


@operation
class Split(TextOperation, ParametricOperation):
    name = "str_split"
    reads = ("StringExpr.Split",)
    summary = "A list of the parts between a constant text; of the characters, where that is empty."
    examples = (
        'pl.col("s").str.split("a")',
        'pl.col("s").str.split("-").list.get(1)',
        'pl.col("sb").str.split("a", inclusive=True)',
        'pl.col("s").str.split("")',
        'pl.col("e").cast(pl.String).str.split("b").list.len()',
    )
    by: str
    inclusive: bool

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the separator of str.split"), bool(params)).of(source)

    def result(self, operand: Domain) -> Domain:
        part = Domain(STRING, nullable=False)
        return Domain(list_type(STRING), nullable=operand.nullable, inner=part)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.split(self.by, inclusive=self.inclusive)

    def arguments(self) -> str:
        inclusive = ", inclusive=True" if self.inclusive else ""
        return quoted(self.by) + inclusive


OPERATIONS: tuple[Kind, ...] = (Split,)
