"""What a dp expression records, before it meets a frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

PLACEHOLDER = "__dpframe_"


@dataclass(frozen=True, slots=True, eq=False)
class AggregateSpec:
    """One dp aggregate as it was written: the Polars expression is not read yet.

    Parameters
    ----------
    kind
        The aggregate's name.
    expression
        The Polars expression, None for a count of rows.
    parameters
        What was said beside it.
    weight, mechanism
        As given.
    score
        For a selection: another aggregate, a row-wise expression, or None.
    """

    kind: str
    expression: pl.Expr | None
    parameters: Mapping[str, Any]
    weight: Fraction = Fraction(1)
    mechanism: str = "auto"
    score: AggregateSpec | pl.Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutputSpec:
    """One output: its aggregates, and what is done with their results.

    Parameters
    ----------
    aggregates
        Each under the placeholder column that stands for its result.
    post
        Polars expression over the placeholders, None when the output is one aggregate as it is.
    words
        The whole as the analyst wrote it, with ``{placeholder}`` where an aggregate stands.
    alias
        The output's name, where one was given.
    """

    aggregates: Mapping[str, AggregateSpec]
    post: pl.Expr | None
    words: str
    alias: str | None = None
