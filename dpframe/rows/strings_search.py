"""Whether a text holds another, or matches a regular expression."""

from __future__ import annotations

import polars as pl

from dpframe.core.tree import Options
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import flag_option, quoted, text_option
from dpframe.rows.text import TextToFlag, check_pattern


class Contains(TextToFlag):
    name = "str_contains"
    method = "str.contains"
    summary = "Whether a constant text, or a match of a constant regular expression, is found."
    examples = (
        'pl.col("s").str.contains("a", literal=True)',
        'pl.col("s").str.contains("^[a-m].*\\\\d$")',
        'pl.col("sb").str.contains("(?i)B")',
    )

    def check(self, options: Options) -> None:
        if not flag_option(options, "literal"):
            check_pattern(text_option(options, "pattern"))

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        literal = flag_option(options, "literal")
        return text.str.contains(text_option(options, "pattern"), literal=literal)

    def arguments(self, options: Options) -> str:
        literal = ", literal=True" if flag_option(options, "literal") else ""
        return quoted(text_option(options, "pattern")) + literal


class StartsWith(TextToFlag):
    name = "str_starts_with"
    method = "str.starts_with"
    summary = "Whether the text starts with a constant."
    examples = ('pl.col("s").str.starts_with("a")',)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.starts_with(text_option(options, "prefix"))

    def arguments(self, options: Options) -> str:
        return quoted(text_option(options, "prefix"))


class EndsWith(TextToFlag):
    name = "str_ends_with"
    method = "str.ends_with"
    summary = "Whether the text ends with a constant."
    examples = ('pl.col("s").str.ends_with("a")', 'pl.col("sb").str.ends_with("")')

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.ends_with(text_option(options, "suffix"))

    def arguments(self, options: Options) -> str:
        return quoted(text_option(options, "suffix"))


OPERATIONS: tuple[RowOperation, ...] = (Contains(), StartsWith(), EndsWith())
