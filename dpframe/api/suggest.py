"""Contribution limits that fit the data, found privately."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.api.expressions import output_of
from dpframe.api.functions import histogram
from dpframe.core.exact import Number, exact
from dpframe.core.units import Identifier
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, PerIndividual
from dpframe.frames.relation import Relation

_POWERS = 20
"""Numbers of rows are told apart up to 2 to this."""


def suggested(
    released: pl.DataFrame, asked: Query, numbers: Sequence[str], coverage: Number
) -> pl.DataFrame:
    """Limits from noisy histograms: one row each, see `PrivateQuery.suggest_limits`."""
    share = share_of(coverage)
    by = [] if asked.groups is None else list(asked.groups.names)
    limits = {ROWS: ("limit_rows", []), GROUPS: ("limit_groups", by), FULLEST: ("limit_rows", by)}
    rows = []
    for number in numbers:
        alone = len(numbers) == 1  # then it is a table by itself
        found = released if alone else released[number].item().struct.unnest()
        n, covered = _least(found["upper"].to_list(), found["count"].to_numpy(), share)
        rows.append((*limits[number], n, covered))
    return pl.DataFrame(
        rows,
        schema={"limit": pl.String, "by": pl.List(pl.String), "n": pl.Int64, "covered": pl.Float64},
        orient="row",
    )


def share_of(coverage: Number) -> Fraction:
    """A share as a fraction.

    Raises
    ------
    InvalidBounds
        When it does not lie between 0 and 1.
    """
    share = exact(coverage)
    if not 0 < share < 1:
        raise InvalidBounds(
            f"a share lies between 0 and 1, and {coverage!r} does not",
            where="coverage",
            remedy="write for example coverage=0.95",
        )
    return share


def counting(asked: Query) -> tuple[Query, list[str]]:
    """How many individuals have so many rows and groups, on the frame without its limits."""
    facts = asked.relation.facts
    if not isinstance(facts.unit, Identifier) or facts.identifier is None:
        raise UnsupportedOperation(
            "limits are of individuals, and unit=dp.Rows() does not say whose rows they are",
            where="suggest_limits(...)",
            remedy='protect the frame with unit="user_id"',
        )
    relation = Relation(
        asked.relation.name,
        asked.relation.source,
        (),
        asked.relation.source,
        asked.relation.salt,
        asked.relation.token,
    )
    for step, _ in asked.relation.steps:
        if not isinstance(step, (LimitRows, LimitGroups)):
            relation = relation.then(step)
    by = () if asked.groups is None else asked.groups.by
    relation = relation.then(PerIndividual(by))
    who = relation.facts.identifier
    assert who is not None
    numbers = [ROWS] if asked.groups is None else [ROWS, GROUPS, FULLEST]
    edges = [1 << k for k in range(_POWERS + 1)]
    outputs = [
        output_of(histogram(PerIndividual.name_of(number, who), edges, other=True), number)
        for number in numbers
    ]
    return pipeline.ask(relation, None, outputs), numbers


def _least(
    ends: Sequence[Any], counts: np.ndarray[Any, np.dtype[np.int64]], share: Fraction
) -> tuple[int, float]:
    """The least number under which so large a share of individuals stays, and their share."""
    noisy = np.maximum(counts, 0).astype(np.float64)
    total = max(1.0, float(noisy.sum()))
    below = np.cumsum(noisy) / total
    place = (
        int(np.argmax(below >= float(share))) if (below >= float(share)).any() else len(ends) - 1
    )
    end = ends[place]
    return (1 << _POWERS if end is None else int(end) - 1), float(below[place])
