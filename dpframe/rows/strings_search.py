"""Whether a text holds another, or matches a regular expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, text
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextToFlag, check_pattern


@operation
class Contains(TextToFlag, ParametricOperation):
    name = "str_contains"
    reads = ("StringExpr.Contains",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether a constant text, or a match of a constant regular expression, is found."
    examples = (
        'pl.col("s").str.contains("a", literal=True)',
        'pl.col("s").str.contains("^[a-m].*\\\\d$")',
        'pl.col("sb").str.contains("(?i)B")',
    )

    pattern: str
    literal: bool

    def check(self) -> None:
        if not self.literal:
            check_pattern(self.pattern)

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        pattern = text(given, "the pattern of str.contains")
        literal = bool(params["literal"])
        return cls(pattern, literal).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.contains(self.pattern, literal=self.literal)

    def arguments(self) -> str:
        literal = ", literal=True" if self.literal else ""
        return quoted(self.pattern) + literal


@operation
class StartsWith(TextToFlag, ParametricOperation):
    name = "str_starts_with"
    reads = ("StringExpr.StartsWith",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the text starts with a constant."
    examples = ('pl.col("s").str.starts_with("a")',)
    prefix: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the argument of str.starts_with")).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.starts_with(self.prefix)

    def arguments(self) -> str:
        return quoted(self.prefix)


@operation
class EndsWith(TextToFlag, ParametricOperation):
    name = "str_ends_with"
    reads = ("StringExpr.EndsWith",)
    engines = EVERYWHERE
    propagates_null = True
    summary = "Whether the text ends with a constant."
    examples = ('pl.col("s").str.ends_with("a")', 'pl.col("sb").str.ends_with("")')
    suffix: str

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the argument of str.ends_with")).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.ends_with(self.suffix)

    def arguments(self) -> str:
        return quoted(self.suffix)


OPERATIONS: tuple[Kind, ...] = (Contains, StartsWith, EndsWith)
