"""Where a text holds another, or a match of a regular expression, and how often."""

from __future__ import annotations

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import INT64
from dpframe.core.interval import interval
from dpframe.core.tree import Options
from dpframe.rows.operands import as_type
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import flag_option, quoted, text_option
from dpframe.rows.text import TextOperation, TextToCount, check_pattern, known_results

_FARTHEST = 2**32 - 1


class _Searched(TextOperation):
    """Looks for a constant text, or for matches of a constant regular expression."""

    def check(self, options: Options) -> None:
        if not flag_option(options, "literal"):
            check_pattern(text_option(options, "pattern"))

    def arguments(self, options: Options) -> str:
        literal = ", literal=True" if flag_option(options, "literal") else ""
        return quoted(text_option(options, "pattern")) + literal


class Find(_Searched):
    name = "str_find"
    method = "str.find"
    summary = (
        "Where a constant text, or the first match of a constant regular expression, begins: the "
        "bytes before it, as Int64; null where there is none."
    )
    examples = (
        'pl.col("s").str.find("a", literal=True)',
        'pl.col("s").str.find("[0-9]")',
        'pl.col("sb").str.find("")',
    )

    def result(self, operand: Domain, options: Options) -> Domain:
        results = known_results(self, operand, options)
        known = None
        if results is not None:
            known = tuple(dict.fromkeys(v for v in results if isinstance(v, int)))
        ends = (min(known), max(known)) if known else (0, _FARTHEST)
        return Domain(INT64, nullable=True, interval=interval(*ends), categories=known)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        literal = flag_option(options, "literal")
        return as_type(text.str.find(text_option(options, "pattern"), literal=literal), INT64)


class CountMatches(_Searched, TextToCount):
    name = "str_count_matches"
    method = "str.count_matches"
    summary = (
        "How often a constant text, or a constant regular expression, is found without overlap, as "
        "Int64."
    )
    examples = (
        'pl.col("s").str.count_matches("a", literal=True)',
        'pl.col("s").str.count_matches("[aeiou]")',
        'pl.col("sb").str.count_matches("aa", literal=True)',
    )

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        pattern, literal = text_option(options, "pattern"), flag_option(options, "literal")
        return as_type(text.str.count_matches(pattern, literal=literal), INT64)


OPERATIONS: tuple[RowOperation, ...] = (Find(), CountMatches())
