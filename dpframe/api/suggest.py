"""Contribution limits and bounds that fit the data, found privately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.api.expressions import output_of
from dpframe.api.functions import bounds, histogram
from dpframe.core.exact import Number, as_given, exact
from dpframe.core.units import Identifier
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, Extremes, PerIndividual
from dpframe.rows.fold import domain

_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
_ROUND = tuple(int(step * 10**power) for power in range(1, 6) for step in _STEPS)
_LIMITS = (*range(1, 10), *_ROUND, 10**6)
"""Limits that are suggested."""


@dataclass(frozen=True, slots=True)
class SuggestionQuery:
    """What histograms of individuals are to tell.

    Parameters
    ----------
    query
        The histograms.
    numbers
        The numbers whose limits are sought: of rows, of groups, of rows in a group.
    names
        The outputs whose bounds are sought.
    """

    query: Query
    numbers: tuple[str, ...]
    names: tuple[str, ...]


def read_suggestion(
    released: pl.DataFrame, asked: Query, sought: SuggestionQuery, coverage: Number
) -> pl.DataFrame:
    """Limits and bounds from noisy histograms: one row each, see `PrivateQuery.suggest_limits`."""
    share = share_of(coverage)
    by = [] if asked.groups is None else list(asked.groups.names)
    limits = {ROWS: ("limit_rows", []), GROUPS: ("limit_groups", by), FULLEST: ("limit_rows", by)}
    rows: list[tuple[Any, ...]] = []
    for number in sought.numbers:
        alone = released.width > 1 and "upper" in released.columns  # then it is a table by itself
        found = released if alone else released[number].item().struct.unnest()
        n, covered = _least(found["count"].to_numpy(), share)
        rows.append((*limits[number], n, covered, None))
    for place, name in enumerate(sought.names):
        least, largest = (released[f"{end} {place}"].item() for end in ("least", "largest"))
        ends = None if least is None or largest is None else _ends(least[0], largest[1])
        rows.append(("bounds", [name], None, None, ends))
    return pl.DataFrame(
        rows,
        schema={
            "limit": pl.String,
            "by": pl.List(pl.String),
            "n": pl.Int64,
            "covered": pl.Float64,
            "bounds": pl.List(pl.Float64),
        },
        orient="row",
    )


def _ends(lo: float, hi: float) -> list[float]:
    """Bounds; a lower one far below the upper is 0, which costs nothing and clamps nobody up."""
    return [0.0 if 0 < lo <= hi / 64 else lo, hi]


def share_of(coverage: Number) -> Fraction:
    """A share as a fraction.

    Raises
    ------
    InvalidBounds
        When it does not lie between 0 and 1.
    """
    try:
        share = exact(coverage)
    except (TypeError, ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidBounds(
            f"a share lies between 0 and 1, and {as_given(coverage)} does not",
            where="coverage",
            remedy="write for example coverage=0.95",
        )
    return share


def build_suggestion_query(asked: Query, *, with_bounds: bool = True) -> SuggestionQuery:
    """How many individuals have so many rows and groups, and between what their values lie if that
    is wanted, on the frame without its limits.
    """
    facts = asked.relation.facts
    if not isinstance(facts.unit, Identifier) or facts.identifier is None:
        raise UnsupportedOperation(
            "limits are of individuals, and unit=dp.Rows() does not say whose rows they are",
            where="suggest_limits(...)",
            remedy='protect the frame with unit="user_id"',
        )
    relation = replace(asked.relation, steps=(), facts=asked.relation.source)
    for step, _ in asked.relation.steps:
        if not isinstance(step, (LimitRows, LimitGroups, LimitNorm)):
            relation = relation.then(step)
    by = () if asked.groups is None else asked.groups.by
    clamped = _clamped(asked) if with_bounds else {}
    relation = relation.then(PerIndividual(by, tuple(clamped)))
    numbers = (ROWS,) if asked.groups is None else (ROWS, GROUPS, FULLEST)
    edges = [1, *(limit + 1 for limit in _LIMITS)]
    outputs = [
        output_of(
            histogram(PerIndividual.name_of(number, relation.facts), edges, other=True), number
        )
        for number in numbers
    ]
    for place in range(len(clamped)):
        for end in (f"least {place}", f"largest {place}"):
            outputs.append(output_of(bounds(PerIndividual.name_of(end, relation.facts)), end))
    return SuggestionQuery(pipeline.ask(relation, None, outputs), numbers, tuple(clamped.values()))


def _clamped(asked: Query) -> dict[Extremes, str]:
    """The numbers that outputs clamp, each with the first output that does."""
    found: dict[Extremes, str] = {}
    columns = asked.relation.facts.columns
    for aggregate in asked.aggregates:
        for clamp in aggregate.clamps:
            is_number = domain(clamp.tree, columns).dtype.is_numeric
            if is_number and not aggregate.shape.is_choice:
                found.setdefault(Extremes(clamp.tree, clamp.per_unit), aggregate.name)
    return found


def _least(counts: np.ndarray[Any, np.dtype[np.int64]], share: Fraction) -> tuple[int, float]:
    """The least limit under which so large a share of individuals stays, and their share."""
    total = max(1.0, float(counts.sum()))
    below = np.clip(np.cumsum(counts) / total, 0.0, 1.0)[: len(_LIMITS)]
    enough = np.flatnonzero(below >= float(share))
    place = int(enough[0]) if enough.size else len(_LIMITS) - 1
    return _LIMITS[place], float(below[place])
