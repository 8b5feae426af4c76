"""Parts of texts, counted in characters (code points)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds
from dpframe.rows.broadcast import unordered
from dpframe.rows.given import Operand, integer, integer_or_none
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.text import TextToText, method_of


@operation
class Slice(TextToText, ParametricOperation):
    name = "str_slice"
    reads = ("StringExpr.Slice",)
    engines = EVERYWHERE
    summary = "A part of the text from a constant offset; a negative one counts from the end."
    examples = (
        'pl.col("s").str.slice(1, 2)',
        'pl.col("s").str.slice(-3)',
        'pl.col("sb").str.slice(-3, 2)',
    )

    offset: int
    length: int | None

    def check(self) -> None:
        if self.length is not None and self.length < 0:
            raise InvalidBounds(
                "the length of a slice is negative",
                remedy=("write a length of 0 or more", "drop the end: .str.head(-n)"),
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, offset, length = operands
        count = integer_or_none(length, "the length of str.slice")
        return cls(integer(offset, "the offset of str.slice"), count).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return unordered(ns, text.str.slice(self.offset, self.length))

    def arguments(self) -> str:
        return f"{self.offset}" + ("" if self.length is None else f", {self.length}")


@operation
class _End(TextToText, ParametricOperation):
    """Some characters at one end; a negative number leaves out as many at the other."""

    n: int

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(integer(given, f"the length of {method_of(cls.name)}")).of(source)

    def arguments(self) -> str:
        return f"{self.n}"


@operation
class Head(_End):
    name = "str_head"
    reads = ("StringExpr.Head",)
    engines = EVERYWHERE
    summary = "The first n characters; for a negative n all but the last ones."
    examples = ('pl.col("s").str.head(2)', 'pl.col("s").str.head(-1)')

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return unordered(ns, text.str.head(self.n))


@operation
class Tail(_End):
    name = "str_tail"
    reads = ("StringExpr.Tail",)
    engines = EVERYWHERE
    summary = "The last n characters; for a negative n all but the first ones."
    examples = ('pl.col("s").str.tail(2)', 'pl.col("s").str.tail(-1)')

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return unordered(ns, text.str.tail(self.n))


OPERATIONS: tuple[Kind, ...] = (Slice, Head, Tail)
