"""Texts filled up to a constant number of characters (code points)."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds
from dpframe.rows.broadcast import unordered
from dpframe.rows.layouts import together
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import quoted, text_option, whole_option
from dpframe.rows.text import TextToText

WIDEST = 1_024
"""Characters to which a text is filled up at most: every row takes as much memory."""


class _Padded(TextToText):
    def check(self, options: Options) -> None:
        length = whole_option(options, "length")
        if not 0 <= length <= WIDEST:
            raise InvalidBounds(
                f"{self.method} fills up to at most {WIDEST} characters, and to no fewer than 0",
                remedy=f"use a length from 0 to {WIDEST}",
            )
        if len(text_option(options, "fill")) != 1:
            raise InvalidBounds(
                f"{self.method} fills with one character", remedy='use one, such as "0"'
            )

    def arguments(self, options: Options) -> str:
        fill = text_option(options, "fill")
        return f"{options['length']}" + ("" if fill == " " else f", {quoted(fill)}")


class _Pad(_Padded):
    """By the engine's method of the same name."""

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        filled = getattr(text.str, self.method.removeprefix("str."))
        made: pl.Expr = filled(whole_option(options, "length"), text_option(options, "fill"))
        return unordered(ns, made)


class PadStart(_Pad):
    name = "str_pad_start"
    method = "str.pad_start"
    summary = "The text filled up at its start to a constant length, at most 1024."
    examples = ('pl.col("s").str.pad_start(5, "0")', 'pl.col("sb").str.pad_start(3)')


class PadEnd(_Pad):
    name = "str_pad_end"
    method = "str.pad_end"
    summary = "The text filled up at its end to a constant length, at most 1024."
    examples = ('pl.col("s").str.pad_end(5, "é")', 'pl.col("e").cast(pl.String).str.pad_end(2)')


class ZFill(_Padded):
    """Older Polars counts bytes, newer ones characters; so it is put together of other methods."""

    name = "str_zfill"
    method = "str.zfill"
    summary = "The text filled up with zeros after its sign to a constant length, at most 1024."
    examples = (
        'pl.col("s").str.zfill(5)',
        'pl.col("i64").cast(pl.String).str.zfill(12)',
        'pl.col("sb").str.zfill(1)',
    )

    def check(self, options: Options) -> None:
        super().check({**options, "fill": "0"})

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        length = whole_option(options, "length")
        if length == 0:
            return text
        return unordered(ns, together(ns, [text], lambda found: _filled(ns, found, length)))

    def arguments(self, options: Options) -> str:
        return f"{options['length']}"


def _filled(ns: Namespace, text: pl.Expr, length: int) -> pl.Expr:
    has_sign = text.str.starts_with("-") | text.str.starts_with("+")
    after = text.str.head(1) + text.str.slice(1).str.pad_start(length - 1, "0")
    filled: pl.Expr = ns.when(has_sign).then(after).otherwise(text.str.pad_start(length, "0"))
    return filled


OPERATIONS: tuple[RowOperation, ...] = (PadStart(), PadEnd(), ZFill())
