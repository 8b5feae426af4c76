"""Texts with parts replaced, and parts taken out by a regular expression."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import STRING
from dpframe.core.tree import Options
from dpframe.errors import InvalidBounds
from dpframe.rows.operation import Namespace, RowOperation
from dpframe.rows.options import flag_option, quoted, text_option, whole_option
from dpframe.rows.text import TextOperation, TextToText, bounded, check_pattern, known_results

_LONGEST_VALUE = 256


class Replace(TextToText):
    """The first n matches, or all of them when n is negative."""

    name = "str_replace"
    method = "str.replace"
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

    def check(self, options: Options) -> None:
        whole_option(options, "n")
        if len(text_option(options, "value")) > _LONGEST_VALUE:
            raise InvalidBounds(
                f"the replacement is longer than {_LONGEST_VALUE} characters",
                remedy="replace by something shorter",
            )
        if not flag_option(options, "literal"):
            check_pattern(_pattern(options))

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        pattern, value = _pattern(options), text_option(options, "value")
        literal, n = flag_option(options, "literal"), whole_option(options, "n")
        text = bounded(text)
        if n < 0:
            return bounded(text.str.replace_all(pattern, value, literal=literal))
        return bounded(text.str.replace(pattern, value, literal=literal, n=n))

    def words(self, args: Sequence[str], options: Options) -> str:
        n = whole_option(options, "n")
        constants = [quoted(text_option(options, "pattern")), quoted(text_option(options, "value"))]
        constants += ["literal=True"] if flag_option(options, "literal") else []
        constants += [f"n={n}"] if n not in (-1, 1) else []
        method = "replace_all" if n < 0 else "replace"
        return f"{args[0]}.str.{method}({', '.join(constants)})"


def _pattern(options: Options) -> str:
    pattern, value = text_option(options, "pattern"), text_option(options, "value")
    if "$" not in value or flag_option(options, "literal"):
        return pattern
    # Older Polars takes a pattern without special characters as a literal, and then copies
    # references such as $0 instead of resolving them. The empty group prevents that.
    return "(?:)" + pattern


class Extract(TextOperation):
    """Null where the expression does not match, or matches without the group."""

    name = "str_extract"
    method = "str.extract"
    summary = "A constant group of the first match of a constant regular expression, else null."
    examples = (
        'pl.col("s").str.extract("([a-z]+)", 1)',
        'pl.col("s").str.extract("a(b)?", 1)',
        'pl.col("sb").str.extract("[^a]+", 0)',
    )

    def check(self, options: Options) -> None:
        groups = check_pattern(text_option(options, "pattern"))
        if not 0 <= whole_option(options, "group") < groups:
            raise InvalidBounds(
                f"the regular expression has no group {options['group']}",
                remedy="put what you want in parentheses, or ask for group 0, the whole match",
            )

    def result(self, operand: Domain, options: Options) -> Domain:
        results = known_results(self, operand, options)
        found = None if results is None else tuple(v for v in results if v is not None)
        categories = None if found is None else tuple(dict.fromkeys(found))
        return Domain(STRING, nullable=True, categories=categories)

    def apply(self, ns: Namespace, text: pl.Expr, options: Options) -> pl.Expr:
        return text.str.extract(text_option(options, "pattern"), whole_option(options, "group"))

    def arguments(self, options: Options) -> str:
        return f"{quoted(text_option(options, 'pattern'))}, {options['group']}"


OPERATIONS: tuple[RowOperation, ...] = (Replace(), Extract())
