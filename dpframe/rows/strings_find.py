"""Where a text holds another, or a match of a regular expression, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64
from dpframe.core.engines import EVERYWHERE
from dpframe.core.interval import interval
from dpframe.core.tree import Tree
from dpframe.rows.given import Operand, text
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextOperation, TextToCount, check_pattern, known_results, method_of

_FARTHEST = 2**32 - 1


@operation
class _Searched(TextOperation, ParametricOperation):
    """Looks for a constant text, or for matches of a constant regular expression."""

    pattern: str
    literal: bool

    def check(self) -> None:
        if not self.literal:
            check_pattern(self.pattern)

    @classmethod
    def _read(cls, operands: Sequence[Operand], literal: bool) -> Tree:
        source, given = operands
        pattern = text(given, f"the pattern of {method_of(cls.name)}")
        return cls(pattern, literal).of(source)

    def arguments(self) -> str:
        literal = ", literal=True" if self.literal else ""
        return quoted(self.pattern) + literal


@operation
class Find(_Searched):
    name = "str_find"
    reads = ("StringExpr.Find",)
    engines = EVERYWHERE
    summary = (
        "Where a constant text, or the first match of a constant regular expression, begins: the "
        "bytes before it, as Int64; null where there is none."
    )
    examples = (
        'pl.col("s").str.find("a", literal=True)',
        'pl.col("s").str.find("[0-9]")',
        'pl.col("sb").str.find("")',
    )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls._read(operands, bool(params["literal"]))

    def result(self, operand: Domain) -> Domain:
        results = known_results(self, operand)
        known = None
        if results is not None:
            known = tuple(dict.fromkeys(v for v in results if isinstance(v, int)))
        ends = (min(known), max(known)) if known else (0, _FARTHEST)
        return Domain(INT64, nullable=True, interval=interval(*ends), categories=known)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return as_type(text.str.find(self.pattern, literal=self.literal), INT64)


@operation
class CountMatches(_Searched, TextToCount):
    name = "str_count_matches"
    reads = ("StringExpr.CountMatches",)
    engines = EVERYWHERE
    summary = (
        "How often a constant text, or a constant regular expression, is found without overlap, as "
        "Int64."
    )
    examples = (
        'pl.col("s").str.count_matches("a", literal=True)',
        'pl.col("s").str.count_matches("[aeiou]")',
        'pl.col("sb").str.count_matches("aa", literal=True)',
    )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        return cls._read(operands, bool(params))

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return as_type(text.str.count_matches(self.pattern, literal=self.literal), INT64)


OPERATIONS: tuple[Kind, ...] = (Find, CountMatches)
