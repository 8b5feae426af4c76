"""Texts taken apart into lists."""

from __future__ import annotations

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import STRING, list_type
from dpframe.core.tree import Options
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import flag_option, quoted, text_option
from dpframe.rows.text import TextOperation


class Split(TextOperation):
    name = "str_split"
    method = "str.split"
    summary = "A list of the parts between a constant text; of the characters, where that is empty."
    examples = (
        'pl.col("s").str.split("a")',
        'pl.col("s").str.split("-").list.get(1)',
        'pl.col("sb").str.split("a", inclusive=True)',
        'pl.col("s").str.split("")',
        'pl.col("e").cast(pl.String).str.split("b").list.len()',
    )

    def result(self, operand: Domain, options: Options) -> Domain:
        part = Domain(STRING, nullable=False)
        return Domain(list_type(STRING), nullable=operand.nullable, inner=part)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        by = text_option(options, "by")
        return text.str.split(by, inclusive=flag_option(options, "inclusive"))

    def arguments(self, options: Options) -> str:
        inclusive = ", inclusive=True" if flag_option(options, "inclusive") else ""
        return quoted(text_option(options, "by")) + inclusive


OPERATIONS: tuple[RowOperation, ...] = (Split(),)
