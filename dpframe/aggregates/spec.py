"""What a dp expression records, before it meets a frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from dpframe.aggregates.aggregate import Aggregate
from dpframe.core.tree import Named

PLACEHOLDER = "__dpframe_"
_PAIRS = ("bounds", "denominator_bounds")


@dataclass(frozen=True, slots=True, eq=False)
class AggregateSpec:
    """One dp aggregate as it was written: most often the Polars expression is not read yet.

    Parameters
    ----------
    aggregate
        An aggregate with all its arguments except the column.
    expression
        The Polars expression, or what it was read into; None for a count of rows.
    weight, mechanism
        As given.
    score
        For a selection: another aggregate, a row-wise expression, or None.
    denominator
        For a ratio: the row-wise expression below the line.
    """

    aggregate: Aggregate
    expression: pl.Expr | Named | None
    weight: Fraction = Fraction(1)
    mechanism: str = "auto"
    score: AggregateSpec | pl.Expr | None = None
    denominator: pl.Expr | None = None

    @property
    def counts_missing(self) -> bool:
        """Whether a row without a value counts for something all the same, so that a null is not
        the same as a row that was left out.
        """
        beside = self.score is not None or self.denominator is not None
        return beside or self.aggregate.counts_missing


@dataclass(frozen=True, slots=True, eq=False)
class OutputSpec:
    """One output: its aggregates, and what is done with their results.

    Parameters
    ----------
    aggregates
        Each under the placeholder column that stands for its result.
    post
        Polars expression over the placeholders, None when the output is a single aggregate.
    words
        The whole as the analyst wrote it, with ``{placeholder}`` where an aggregate stands.
    alias
        The output's name, where one was given.
    prefix, suffix
        What is put before and after the name that it has.
    interval_optional
        Whether ``interval=`` leaves its interval out where there is none, instead of refusing.
    """

    aggregates: Mapping[str, AggregateSpec]
    post: pl.Expr | None
    words: str
    alias: str | None = None
    prefix: str = ""
    suffix: str = ""
    interval_optional: bool = False


def written_arguments(aggregate: Aggregate) -> list[str]:
    """The arguments of an aggregate as they were written, defaults left out."""
    shown = []
    for name, value in aggregate.arguments().items():
        if value is None or value is False or (name in ("k", "ddof") and value == 1):
            continue
        if isinstance(value, pl.DataFrame):
            shown.append(f"{name}=<{value.height} rows of {', '.join(value.columns)}>")
            continue
        said = _short(value if name in _PAIRS or not isinstance(value, tuple) else list(value))
        shown.append(said if name in aggregate.positional else f"{name}={said}")
    return shown


_MOST = 80
"""This many characters of a list are shown; one of more items is longer."""


def _short(value: object) -> str:
    if not isinstance(value, (list, tuple)):
        return repr(value)
    if len(value) <= _MOST and len(text := repr(value)) <= _MOST:
        return text
    first: list[str] = []
    for item in value:
        first.append(repr(item))
        if sum(len(f) + 2 for f in first) > 60:
            break
    return f"[{', '.join(first)}, ... {len(value)} in all]"
