"""Upper and lower case."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Options
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.text import TextToText


class ToLowercase(TextToText):
    name = "str_to_lowercase"
    method = "str.to_lowercase"
    summary = "Text in lower case, by Unicode's rules."
    examples = ('pl.col("s").str.to_lowercase()', 'pl.col("ls").list.get(0).str.to_lowercase()')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.to_lowercase()


class ToUppercase(TextToText):
    name = "str_to_uppercase"
    method = "str.to_uppercase"
    summary = "Text in upper case, by Unicode's rules."
    examples = ('pl.col("s").str.to_uppercase()', 'pl.col("e").cast(pl.String).str.to_uppercase()')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.to_uppercase()


class ToTitlecase(TextToText):
    """Older Polars capitalises a few letters, such as ligatures, differently from newer."""

    name = "str_to_titlecase"
    method = "str.to_titlecase"
    summary = "Text with each word capitalised."
    examples = ('pl.col("s").str.to_titlecase()',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.to_titlecase()


OPERATIONS: tuple[RowOperation, ...] = (ToLowercase(), ToUppercase(), ToTitlecase())
