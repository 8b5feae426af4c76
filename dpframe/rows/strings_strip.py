"""Texts without what surrounds them."""

from __future__ import annotations

import polars as pl

from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextToText


@operation
class _StripChars(TextToText, ParametricOperation):
    """By the engine's method of the same name."""

    characters: str | None

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        stripped: pl.Expr = getattr(text.str, self.method.removeprefix("str."))(self.characters)
        return stripped

    def arguments(self) -> str:
        return "" if self.characters is None else quoted(self.characters)


@operation
class StripChars(_StripChars):
    name = "str_strip_chars"
    summary = "The text without white space, or a constant set of characters, at both ends."
    examples = ('pl.col("s").str.strip_chars()', 'pl.col("s").str.strip_chars("ab ")')


@operation
class StripCharsStart(_StripChars):
    name = "str_strip_chars_start"
    summary = "The text without white space, or a constant set of characters, at its start."
    examples = ('pl.col("s").str.strip_chars_start("a")',)


@operation
class StripCharsEnd(_StripChars):
    name = "str_strip_chars_end"
    summary = "The text without white space, or a constant set of characters, at its end."
    examples = ('pl.col("s").str.strip_chars_end()',)


@operation
class StripPrefix(TextToText, ParametricOperation):
    name = "str_strip_prefix"
    summary = "The text without a constant prefix, where it has it."
    examples = ('pl.col("s").str.strip_prefix("a")',)
    prefix: str

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.strip_prefix(self.prefix)

    def arguments(self) -> str:
        return quoted(self.prefix)


@operation
class StripSuffix(TextToText, ParametricOperation):
    name = "str_strip_suffix"
    summary = "The text without a constant suffix, where it has it."
    examples = ('pl.col("s").str.strip_suffix("a")',)
    suffix: str

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
