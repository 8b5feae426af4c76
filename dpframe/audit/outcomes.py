"""What a plan releases on two frames, run after run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.level_sums import CellSums
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import (
    Additive,
    CellCounts,
    Measurement,
    Responses,
    Selection,
)
from dpframe.aggregates.own_sets import AdditiveOfSet, SelectionOfSet
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.audit.neighbours import Neighbours
from dpframe.audit.reach import Counted, differing_groups, entries_of
from dpframe.audit.stated import StatedRatios
from dpframe.planning import Exact
from dpframe.release import CandidateScores
from dpframe.simulate.drawing import NoisyParts, draw_parts, places_of

Floats = NDArray[np.float64]
_MOST_PLACES = 48
"""The most places of one part: few differ, and the first ones are enough."""
_MOST_ENTRIES = 1 << 20
"""This many noisy numbers are drawn at once."""
_TUPLES = 1 << 10
"""This many choices of several quantiles are, which take milliseconds each."""

Place = tuple[tuple[Measurement, str], int, int]


def outcomes(
    prepared: pipeline.Prepared,
    pair: Neighbours,
    runs: int,
    shown: Callable[[int], None] = lambda _: None,
    at_once: int | None = None,
) -> tuple[Floats, Floats]:
    """What is drawn where neighbours differ, of shape (runs, 1 + numbers) on each side.

    These are the noisy numbers and choices from which results are computed, without another look
    at data: results reveal no more than they do. The first column is the log-likelihood ratio of
    the numbers on the two sides if all noise has the stated law: no event is more informative
    about numbers that are drawn jointly.

    Parameters
    ----------
    prepared
        The plan.
    pair
        The neighbours.
    runs
        How often the plan runs on each.
    shown
        Receives the number of finished runs.
    at_once
        How many runs are drawn in one call of the noise; as many as there is room for by default.
    """
    places = list(_places(prepared, pair))
    draws, drawing = prepared.draws, places_of(prepared)
    most = min(runs, at_once or runs_at_once(prepared, pair))
    stated = StatedRatios(prepared, pair.counted)
    copies = [(repeated(counted, most), CandidateScores()) for counted in pair.counted]
    made: tuple[list[Floats], list[Floats]] = ([], [])
    for start in range(0, runs, most):
        if most >= _TUPLES or not start // most % 256:
            shown(start)
        for (counted, ballots), side in zip(copies, made, strict=True):
            noisy, kept = draw_parts(drawing, draws, counted, ballots)
            ratios = stated.of(noisy, kept, most)
            side.append(np.column_stack([ratios, _numbers(noisy, kept, places, most)]))
    one, other = (np.concatenate(side)[:runs] for side in made)
    return one, other


def runs_at_once(prepared: pipeline.Prepared, pair: Neighbours) -> int:
    """How many runs are drawn at once: noise of one run does not depend on another's."""
    query = pair.query
    size = next(iter(pair.counted[0].values())).size
    entries = 0
    for part in (one.measurement for one in prepared.draws):
        if isinstance(part, (Responses, AdditiveOfSet, SelectionOfSet)):
            return 1
        if isinstance(part, Selection):
            if part.entries(query.scope) != size:  # groups are the candidates
                return 1
            slow = isinstance(part, QuantilesAtOnce)
            each = _MOST_ENTRIES // _TUPLES if slow else 1 if part.weighted else part.candidates
            entries += size * each
        elif isinstance(part, Margin):
            entries += size * part.cells
        elif isinstance(part, CellSums):
            entries += size * part.numbers
        elif isinstance(part, JointSums):
            entries += size * len(part.widths)
        else:
            cells = part.tables[0].cells
            entries += size * (1 if cells is None else cells.size)
    return max(1, _MOST_ENTRIES // max(1, entries))


def repeated(counted: Counted, times: int) -> Counted:
    """The same exact tables several times, as if all were one with more groups."""
    if times == 1:
        return counted
    made = {}
    for table, found in counted.items():
        size = found.size * times
        values = np.tile(found.values, times)
        if found.groups is None or found.cells is None:
            made[table] = CellCounts(None, None, values, size)
        else:
            shift = np.repeat(np.arange(times) * found.size, found.groups.size)
            groups = np.tile(found.groups, times) + shift
            made[table] = CellCounts(groups, np.tile(found.cells, times), values, size)
    return made


def _places(prepared: pipeline.Prepared, pair: Neighbours) -> Iterator[Place]:
    """The noisy numbers that the individual moves."""
    query, (one, other) = pair.query, pair.counted
    exact = Exact.of(prepared.query, (one_draw.measurement for one_draw in prepared.draws))
    for one_draw in prepared.draws:
        part = one_draw.measurement
        key = one_draw.keys[0] if one_draw.rebuilt is None else one_draw.vector
        if isinstance(part, JointSums):
            for group in differing_groups(exact, part, query, one, other)[:_MOST_PLACES]:
                for number in range(len(part.widths)):
                    yield key, group, number
        elif isinstance(part, (Additive, CellSums, Margin, Responses)):
            a, b = entries_of(exact, part, one), entries_of(exact, part, other)
            moved = sorted({place for place, _ in a.items() ^ b.items()})
            for group, cell in moved[:_MOST_PLACES]:
                yield key, group, cell
        elif isinstance(part, KeySelection):
            for group in differing_groups(exact, part, query, one, other)[:_MOST_PLACES]:
                yield key, group, 0
        else:
            for group in differing_groups(exact, part, query, one, other)[:_MOST_PLACES]:
                for winner in range(getattr(part, "chosen", 1)):
                    yield key, group, winner


def _numbers(
    noisy: NoisyParts, kept: NDArray[np.bool_] | None, places: Sequence[Place], runs: int
) -> Floats:
    """The numbers of some runs that were drawn at once, of shape (runs, places)."""
    columns = []
    appear = None if kept is None else kept.reshape(runs, -1)
    for key, group, entry in places:
        if isinstance(key[0], KeySelection):
            assert appear is not None
            columns.append(appear[:, group].astype(np.float64))
            continue
        found = noisy[key].reshape(runs, -1, noisy[key].shape[1])[:, group, entry]
        values = found.astype(np.float64)
        columns.append(values if appear is None else np.where(appear[:, group], values, np.nan))
    return np.array(columns, dtype=np.float64).reshape(len(places), runs).T
