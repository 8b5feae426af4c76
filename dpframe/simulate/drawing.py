"""Noise, again and again, for exact tables that anybody may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.bound import MeasurementKey, Noisy
from dpframe.aggregates.joint_sums import Rebuilt
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import CellCounts, Measurement, Responses, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.shapes import Column
from dpframe.frames.relation import Relation
from dpframe.lower import Frames, found_keys
from dpframe.planning import Exact, Prepared, alone, translate
from dpframe.release import (
    CandidateScores,
    Draw,
    Places,
    aggregate_column,
    chooser_of,
    draw,
    drawn_with_groups,
    in_order,
    output_column,
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
    keys = [key for one in draws for key in one.keys]
    return exact_parts(query, [k for k in keys if not isinstance(k[0], KeySelection)], counted)


def exact_parts(query: Query, keys: Sequence[MeasurementKey], counted: Counted) -> NoisyParts:
    """What some parts of a query would be without noise."""
    exact = Exact.of(query, [part for part, _ in keys])
    found = {key: exact.numbers(key[0], counted) for key in keys}
    if query.scope.parts == 1:
        return found
    return {
        key: found[key]
        if isinstance(key[0], Responses)
        else _whole(Rebuilt((1,), query.scope.parts).of(found[key]))
        for key in keys
    }


def _whole(rounded: tuple[Noisy, Noisy]) -> Noisy:
    """The nearest integers, the upper of two."""
    whole, half = rounded
    return (whole + half).reshape(-1, 1)


def draw_parts(
    places: Places,
    draws: Sequence[Draw],
    counted: Counted,
    ballots: CandidateScores,
) -> tuple[NoisyParts, NDArray[np.bool_] | None]:
    """Noisy integers of all parts, and which groups appear where they are to be found."""
    noisy: NoisyParts = {}
    kept = None
    chooser = chooser_of(draws, places)
    if chooser is not None:
        numbers = counted[chooser.table].dense(1).reshape(-1)
        kept, chosen = chooser.keep(numbers)
        kept = kept & (numbers > 0)  # a release never sees a group without rows
        noisy = drawn_with_groups(draws, places, chosen)
    by_place = places.by_place(counted)
    for one in draws:
        if not isinstance(one.measurement, KeySelection) and one.keys[0] not in noisy:
            noisy |= draw(one, places, by_place, ballots)
    return noisy, kept


def places_of(prepared: Prepared) -> Places:
    """Where the tables and draws of a query stand in its physical plan."""
    (places,) = translate(alone(prepared)).parts
    return places.with_tables_of_draws()


def columns_of(query: Query, noisy: NoisyParts) -> list[Column]:
    noisy = in_order(noisy)
    return [
        output_column(
            output,
            {p: aggregate_column(a, noisy) for p, a in output.aggregates.items()},
        )
        for output in query.outputs
    ]
