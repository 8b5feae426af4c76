"""Texts without what surrounds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, text, text_or_none
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextToText, method_of


@operation
class _StripChars(TextToText, ParametricOperation):
    """By the engine's method of the same name."""

    characters: str | None

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text_or_none(given, f"the characters of {method_of(cls.name)}")).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        stripped: pl.Expr = getattr(text.str, self.method.removeprefix("str."))(self.characters)
        return stripped

    def arguments(self) -> str:
        return "" if self.characters is None else quoted(self.characters)


@operation
class StripChars(_StripChars):
    name = "str_strip_chars"
    reads = ("StringExpr.StripChars",)
    engines = EVERYWHERE
    summary = "The text without white space, or a constant set of characters, at both ends."
    examples = ('pl.col("s").str.strip_chars()', 'pl.col("s").str.strip_chars("ab ")')


@operation
class StripCharsStart(_StripChars):
    name = "str_strip_chars_start"
    reads = ("StringExpr.StripCharsStart",)
    engines = EVERYWHERE
    summary = "The text without white space, or a constant set of characters, at its start."
    examples = ('pl.col("s").str.strip_chars_start("a")',)


@operation
class StripCharsEnd(_StripChars):
    name = "str_strip_chars_end"
    reads = ("StringExpr.StripCharsEnd",)
    engines = EVERYWHERE
    summary = "The text without white space, or a constant set of characters, at its end."
    examples = ('pl.col("s").str.strip_chars_end()',)


@operation
class StripPrefix(TextToText, ParametricOperation):
    name = "str_strip_prefix"
    reads = ("StringExpr.StripPrefix",)
    engines = EVERYWHERE
    summary = "The text without a constant prefix, where it has it."
    examples = ('pl.col("s").str.strip_prefix("a")',)
    prefix: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the argument of str.strip_prefix")).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.strip_prefix(self.prefix)

    def arguments(self) -> str:
        return quoted(self.prefix)


@operation
class StripSuffix(TextToText, ParametricOperation):
    name = "str_strip_suffix"
    reads = ("StringExpr.StripSuffix",)
    engines = EVERYWHERE
    summary = "The text without a constant suffix, where it has it."
    examples = ('pl.col("s").str.strip_suffix("a")',)
    suffix: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the argument of str.strip_suffix")).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.strip_suffix(self.suffix)

    def arguments(self) -> str:
        return quoted(self.suffix)


OPERATIONS: tuple[Kind, ...] = (
    StripChars,
    StripCharsStart,
    StripCharsEnd,
    StripPrefix,
    StripSuffix,
)
