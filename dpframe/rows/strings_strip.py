"""Texts without what surrounds them."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Options
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import optional_text, quoted, text_option
from dpframe.rows.text import TextToText


class _StripChars(TextToText):
    def check(self, options: Options) -> None:
        optional_text(options, "characters")

    def arguments(self, options: Options) -> str:
        characters = optional_text(options, "characters")
        return "" if characters is None else quoted(characters)


class StripChars(_StripChars):
    name = "str_strip_chars"
    method = "str.strip_chars"
    summary = "The text without white space, or a constant set of characters, at both ends."
    examples = ('pl.col("s").str.strip_chars()', 'pl.col("s").str.strip_chars("ab ")')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.strip_chars(optional_text(options, "characters"))


class StripCharsStart(_StripChars):
    name = "str_strip_chars_start"
    method = "str.strip_chars_start"
    summary = "The text without white space, or a constant set of characters, at its start."
    examples = ('pl.col("s").str.strip_chars_start("a")',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.strip_chars_start(optional_text(options, "characters"))


class StripCharsEnd(_StripChars):
    name = "str_strip_chars_end"
    method = "str.strip_chars_end"
    summary = "The text without white space, or a constant set of characters, at its end."
    examples = ('pl.col("s").str.strip_chars_end()',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.strip_chars_end(optional_text(options, "characters"))


class StripPrefix(TextToText):
    name = "str_strip_prefix"
    method = "str.strip_prefix"
    summary = "The text without a constant prefix, where it has it."
    examples = ('pl.col("s").str.strip_prefix("a")',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.strip_prefix(text_option(options, "prefix"))

    def arguments(self, options: Options) -> str:
        return quoted(text_option(options, "prefix"))


class StripSuffix(TextToText):
    name = "str_strip_suffix"
    method = "str.strip_suffix"
    summary = "The text without a constant suffix, where it has it."
    examples = ('pl.col("s").str.strip_suffix("a")',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.strip_suffix(text_option(options, "suffix"))

    def arguments(self, options: Options) -> str:
        return quoted(text_option(options, "suffix"))


OPERATIONS: tuple[RowOperation, ...] = (
    StripChars(),
    StripCharsStart(),
    StripCharsEnd(),
    StripPrefix(),
    StripSuffix(),
)
