"""Parts of texts, counted in characters (code points)."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds
from dpframe.rows.broadcast import unordered
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import whole_option
from dpframe.rows.text import TextToText


class Slice(TextToText):
    name = "str_slice"
    method = "str.slice"
    summary = "A part of the text from a constant offset; a negative one counts from the end."
    examples = (
        'pl.col("s").str.slice(1, 2)',
        'pl.col("s").str.slice(-3)',
        'pl.col("sb").str.slice(-3, 2)',
    )

    def check(self, options: Options) -> None:
        whole_option(options, "offset")
        if options.get("length") is not None and whole_option(options, "length") < 0:
            raise InvalidBounds(
                "the length of a slice is negative", remedy="use .str.head(-n) to drop the end"
            )

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        length = None if options.get("length") is None else whole_option(options, "length")
        return unordered(ns, text.str.slice(whole_option(options, "offset"), length))

    def arguments(self, options: Options) -> str:
        length = options.get("length")
        return str(options["offset"]) + ("" if length is None else f", {length!r}")


class _End(TextToText):
    """Some characters at one end; a negative number leaves out as many at the other."""

    def check(self, options: Options) -> None:
        whole_option(options, "n")

    def arguments(self, options: Options) -> str:
        return str(options["n"])


class Head(_End):
    name = "str_head"
    method = "str.head"
    summary = "The first n characters; for a negative n all but the last ones."
    examples = ('pl.col("s").str.head(2)', 'pl.col("s").str.head(-1)')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return unordered(ns, text.str.head(whole_option(options, "n")))


class Tail(_End):
    name = "str_tail"
    method = "str.tail"
    summary = "The last n characters; for a negative n all but the first ones."
    examples = ('pl.col("s").str.tail(2)', 'pl.col("s").str.tail(-1)')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return unordered(ns, text.str.tail(whole_option(options, "n")))


OPERATIONS: tuple[RowOperation, ...] = (Slice(), Head(), Tail())
