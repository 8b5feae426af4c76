"""Upper and lower case."""

from __future__ import annotations

import polars as pl

from dpframe.rows.operation import Kind, Namespace, PlainOperation, operation
from dpframe.rows.text import TextToText


@operation
class ToLowercase(TextToText, PlainOperation):
    name = "str_to_lowercase"
    reads = ("StringExpr.Lowercase",)
    summary = "Text in lower case, by Unicode's rules."
    examples = ('pl.col("s").str.to_lowercase()', 'pl.col("ls").list.get(0).str.to_lowercase()')

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.to_lowercase()

    def reference(self, text: str) -> str:
        return text.lower()


@operation
class ToUppercase(TextToText, PlainOperation):
    name = "str_to_uppercase"
    reads = ("StringExpr.Uppercase",)
    summary = "Text in upper case, by Unicode's rules."
    examples = ('pl.col("s").str.to_uppercase()', 'pl.col("e").cast(pl.String).str.to_uppercase()')

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.to_uppercase()

    def reference(self, text: str) -> str:
        return text.upper()


@operation
class ToTitlecase(TextToText, PlainOperation):
    """Older Polars capitalises a few letters, such as ligatures, differently from newer."""

    name = "str_to_titlecase"
    reads = ("StringExpr.Titlecase",)
    summary = "Text with each word capitalised."
    examples = ('pl.col("s").str.to_titlecase()',)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.to_titlecase()


OPERATIONS: tuple[Kind, ...] = (ToLowercase(), ToUppercase(), ToTitlecase())
