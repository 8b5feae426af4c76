"""How long texts are."""

from __future__ import annotations

import polars as pl

from dpframe.core.dtypes import INT64
from dpframe.core.engines import EVERYWHERE
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, PlainOperation, on, operation
from dpframe.rows.text import TextToCount


@operation
class LenChars(TextToCount, PlainOperation):
    """Code points, as Polars counts them: a letter and its combining accent are two."""

    name = "str_len_chars"
    reads = ("StringExpr.LenChars",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Number of characters (code points), as Int64."
    examples = ('pl.col("s").str.len_chars()', 'pl.col("e").cast(pl.String).str.len_chars()')

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return as_type(text.str.len_chars(), INT64)

    def reference(self, text: str) -> int:
        return len(text)


@operation
class LenBytes(TextToCount, PlainOperation):
    name = "str_len_bytes"
    reads = ("StringExpr.LenBytes",)
    engines = EVERYWHERE
    summary = "Number of bytes in UTF-8, as Int64."
    examples = on("s sb", "str.len_bytes()")

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return as_type(text.str.len_bytes(), INT64)

    def reference(self, text: str) -> int:
        return len(text.encode())


OPERATIONS: tuple[Kind, ...] = (LenChars(), LenBytes())
