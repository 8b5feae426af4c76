"""Noise, again and again, for exact tables that anybody may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.bound import Noisy
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import CellCounts, Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.shapes import Column
from dpframe.frames.relation import Relation
from dpframe.lower import Frames, found_keys
from dpframe.release import (
    CandidateScores,
    Draw,
    aggregate_column,
    chooser_of,
    draw,
    drawn_with_groups,
    in_order,
    output_column,
    without_noise,
)

Counted = Mapping[Table, CellCounts]
NoisyParts = dict[tuple[Measurement, str], Noisy]


def with_all_groups(query: Query, free: Relation, frames: Frames) -> Query:
    """The query with every group of the public frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    return replace(query, groups=query.groups.found(found_keys(free, query.groups, frames)))


def noiseless(query: Query, draws: Sequence[Draw], counted: Counted) -> NoisyParts:
    """The exact integers of all parts."""
    return {
        key: without_noise(key[0], counted, query.scope)
        for one in draws
        for key in one.keys
        if not isinstance(key[0], KeySelection)
    }


def draw_parts(
    query: Query,
    draws: Sequence[Draw],
    counted: Counted,
    ballots: CandidateScores,
) -> tuple[NoisyParts, NDArray[np.bool_] | None]:
    """Noisy integers of all parts, and which groups appear where they are to be found."""
    noisy: NoisyParts = {}
    kept = None
    chooser = chooser_of(draws)
    if chooser is not None:
        numbers = counted[chooser.table].dense(1).reshape(-1)
        kept, chosen = chooser.keep(numbers)
        kept = kept & (numbers > 0)  # a release never sees a group without rows
        noisy = drawn_with_groups(draws, chosen)
    for one in draws:
        if not isinstance(one.measurement, KeySelection) and one.keys[0] not in noisy:
            noisy |= draw(one, counted, query.scope, ballots)
    return noisy, kept


def columns_of(query: Query, noisy: NoisyParts) -> list[Column]:
    noisy = in_order(noisy)
    return [
        output_column(
            output,
            {p: aggregate_column(a, noisy) for p, a in output.aggregates.items()},
        )
        for output in query.outputs
    ]
