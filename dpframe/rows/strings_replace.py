"""Texts with parts replaced, and parts taken out by a regular expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import STRING
from dpframe.core.engines import EVERYWHERE
from dpframe.core.tree import Tree
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.rows.given import Operand, text
from dpframe.rows.operation import Kind, Namespace, ParametricOperation, operation
from dpframe.rows.quoted import quoted
from dpframe.rows.text import TextOperation, TextToText, bounded, check_pattern, known_results

_LONGEST_VALUE = 256


@operation
class Replace(TextToText, ParametricOperation):
    """The first n matches, or all of them when n is negative."""

    name = "str_replace"
    reads = ("StringExpr.Replace",)
    engines = EVERYWHERE
    summary = (
        "The text with matches of a constant, or of a constant regular expression, replaced; cut "
        "before and after to 65536 characters."
    )
    examples = (
        'pl.col("s").str.replace("a", "b", literal=True)',
        'pl.col("s").str.replace_all("[aeiou]", "")',
        'pl.col("s").str.replace_all("(a)(b)", "$2$1")',
        'pl.col("sb").str.replace_all("a", "$0")',
    )

    pattern: str
    value: str
    literal: bool
    n: int

    def check(self) -> None:
        if len(self.value) > _LONGEST_VALUE:
            raise UnsupportedOperation(
                f"the replacement is longer than {_LONGEST_VALUE} characters",
                remedy=f"write at most {_LONGEST_VALUE} characters",
            )
        if not self.literal:
            check_pattern(self.pattern)
            check_pattern(self._pattern())

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given, new = operands
        literal, n = bool(params["literal"]), int(params["n"])
        pattern = text(given, "the pattern of str.replace")
        value = text(new, "the replacement of str.replace")
        if n < 0:
            n = -1
        elif n != 1 and not literal:
            raise UnsupportedOperation(
                f"str.replace of a pattern with n={n} does not exist in Polars",
                remedy="use n=1, .str.replace_all(...), or literal=True",
            )
        return cls(pattern, value, literal, n).of(source)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        pattern, value, literal = self._pattern(), self.value, self.literal
        text = bounded(text)
        if self.n < 0:
            return bounded(text.str.replace_all(pattern, value, literal=literal))
        return bounded(text.str.replace(pattern, value, literal=literal, n=self.n))

    def words(self, args: Sequence[str]) -> str:
        constants = [quoted(self.pattern), quoted(self.value)]
        constants += ["literal=True"] if self.literal else []
        constants += [f"n={self.n}"] if self.n not in (-1, 1) else []
        method = "replace_all" if self.n < 0 else "replace"
        return f"{args[0]}.str.{method}({', '.join(constants)})"

    def _pattern(self) -> str:
        if "$" not in self.value or self.literal:
            return self.pattern
        # Older Polars takes a pattern without special characters as a literal, and then copies
        # references such as $0 instead of resolving them. The empty group prevents that.
        return "(?:)" + self.pattern


@operation
class Extract(TextOperation, ParametricOperation):
    """Null where the expression does not match, or matches without the group."""

    name = "str_extract"
    reads = ("StringExpr.Extract",)
    summary = "A constant group of the first match of a constant regular expression, else null."
    examples = (
        'pl.col("s").str.extract("([a-z]+)", 1)',
        'pl.col("s").str.extract("a(b)?", 1)',
        'pl.col("sb").str.extract("[^a]+", 0)',
    )

    pattern: str
    group: int

    def check(self) -> None:
        groups = check_pattern(self.pattern)
        if not 0 <= self.group < groups:
            raise InvalidBounds(
                f"the regular expression has no group {self.group}",
                remedy=("put what you want in parentheses", "ask for group 0, the whole match"),
            )

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, given = operands
        return cls(text(given, "the pattern of str.extract"), int(params)).of(source)

    def result(self, operand: Domain) -> Domain:
        results = known_results(self, operand)
        found = None if results is None else tuple(v for v in results if v is not None)
        categories = None if found is None else tuple(dict.fromkeys(found))
        return Domain(STRING, nullable=True, categories=categories)

    def apply(self, ns: Namespace, text: pl.Expr) -> pl.Expr:
        return text.str.extract(self.pattern, self.group)

    def arguments(self) -> str:
        return f"{quoted(self.pattern)}, {self.group}"


OPERATIONS: tuple[Kind, ...] = (Replace, Extract)
