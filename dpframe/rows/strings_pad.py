"""Texts filled up to a constant number of characters (code points)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds
from dpframe.rows.broadcast import unordered
from dpframe.rows.given import Operand, integer
from dpframe.rows.layouts import together
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextToText, method_of

WIDEST = 1_024
"""Characters to which a text is filled up at most: every row takes as much memory."""


@operation
class _Padded(TextToText, ParametricOperation):
    length: int

    def check(self) -> None:
        if not 0 <= self.length <= WIDEST:
            raise InvalidBounds(
                f"{self.method} fills up to at most {WIDEST} characters, and to no fewer than 0",
                remedy=f"use a length from 0 to {WIDEST}",
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(integer(given, f"the length of {method_of(cls.name)}")).of(source)

    def arguments(self) -> str:
        return f"{self.length}"


@operation
class _Pad(_Padded):
    """By the engine's method of the same name."""

    fill: str

    def check(self) -> None:
        _Padded.check(self)
        if len(self.fill) != 1:
            raise ValueError(f"{self.method} fills with one character")

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        length = integer(given, f"the length of {method_of(cls.name)}")
        return cls(length, str(params["fill_char"])).of(source)

    def arguments(self) -> str:
        return f"{self.length}" + ("" if self.fill == " " else f", {quoted(self.fill)}")

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        filled = getattr(text.str, self.method.removeprefix("str."))
        made: pl.Expr = filled(self.length, self.fill)
        return unordered(ns, made)


@operation
class PadStart(_Pad):
    name = "str_pad_start"
    reads = ("StringExpr.PadStart",)
    engines = EVERYWHERE
    summary = "The text filled up at its start to a constant length, at most 1024."
    examples = ('pl.col("s").str.pad_start(5, "0")', 'pl.col("sb").str.pad_start(3)')


@operation
class PadEnd(_Pad):
    name = "str_pad_end"
    reads = ("StringExpr.PadEnd",)
    engines = EVERYWHERE
    summary = "The text filled up at its end to a constant length, at most 1024."
    examples = ('pl.col("s").str.pad_end(5, "é")', 'pl.col("e").cast(pl.String).str.pad_end(2)')


@operation
class ZFill(_Padded):
    """Older Polars counts bytes, newer ones characters; so it is put together of other methods."""

    name = "str_zfill"
    reads = ("StringExpr.ZFill",)
    engines = EVERYWHERE
    summary = "The text filled up with zeros after its sign to a constant length, at most 1024."
    examples = (
        'pl.col("s").str.zfill(5)',
        'pl.col("i64").cast(pl.String).str.zfill(12)',
        'pl.col("sb").str.zfill(1)',
    )

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        length = self.length
        if length == 0:
            return text
        return unordered(ns, together(ns, [text], lambda found: _filled(ns, found, length)))


def _filled(ns: Namespace, text: pl.Expr, length: int) -> pl.Expr:
    has_sign = text.str.starts_with("-") | text.str.starts_with("+")
    after = text.str.head(1) + text.str.slice(1).str.pad_start(length - 1, "0")
    filled: pl.Expr = ns.when(has_sign).then(after).otherwise(text.str.pad_start(length, "0"))
    return filled


OPERATIONS: tuple[Kind, ...] = (PadStart, PadEnd, ZFill)
