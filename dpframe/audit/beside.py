"""The other people next to whom an individual is easiest to distinguish, for several quantiles
chosen jointly, at once or nested.

The movement of scores is not enough for such a choice: what it reveals depends on which tuples
are about as likely as others. Its law is known, so frames are ranked by what it would prove, and
none is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpframe import pipeline
from dpframe.aggregates.measurement import CellCounts, Table
from dpframe.aggregates.quantile_tree import QuantileTree
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.audit.claims import claims_of
from dpframe.audit.evidence import expected_share
from dpframe.audit.people import Person, Picks
from dpframe.audit.tuple_law import choices_apart

Counted = Mapping[Table, CellCounts]
Counting = Callable[[Sequence[Person]], Counted]
_TRIES = 480
"""Over how many quantiles there are: laws of more take longer."""
_TRIES_INSIDE = 2400
"""The same of quantiles one inside the other, whose laws take less."""
_RUNS = 10_000
"""Frames are ranked by what this many runs prove."""
_MOST = 60
"""The most people of one kind."""
_FEW = 10
"""The same of quantiles one inside the other: points with many rows are known less well."""
_KEPT = 3


@dataclass(frozen=True, slots=True)
class Crowd:
    """An individual by its number, and how many others of each kind there are."""

    individual: int
    others: tuple[int, ...]


def at_once(prepared: pipeline.Prepared) -> list[QuantilesAtOnce | QuantileTree]:
    """The choices of several quantiles of a plan."""
    parts = (one.measurement for one in prepared.draws)
    return [part for part in parts if isinstance(part, (QuantilesAtOnce, QuantileTree))]


def rows_in(prepared: pipeline.Prepared, counted: Counted) -> tuple[tuple[int, ...], ...]:
    """Where rows are for these choices, and how many."""
    found = []
    for part in at_once(prepared):
        one = counted[part.tables[0]]
        found += [tuple(e.tolist()) for e in (one.groups, one.cells, one.values) if e is not None]
    return tuple(found)


def expected_of(prepared: pipeline.Prepared, one: Counted, other: Counted) -> float:
    """About how much of a plan's claim its choices of several quantiles prove, by their laws."""
    claims = claims_of(prepared.plan)
    shares = (
        expected_share(*apart.masses, _RUNS, claims)
        for _, _, apart in choices_apart(prepared, (one, other))
    )
    return max(shares, default=0.0)


def worst_crowds(
    prepared: pipeline.Prepared,
    individuals: Sequence[tuple[Person, Person | None]],
    kinds: Sequence[Person],
    counted: Counting,
) -> list[Crowd]:
    """The crowds that reveal most, the best one first.

    Exact tables are taken to add up, which they do but for limits: frames that come out are counted
    again, as any other.

    Parameters
    ----------
    prepared
        The plan.
    individuals
        Individuals, and who may be there instead of each, under change-one adjacency.
    kinds
        Others that may be there.
    counted
        The exact tables of some people.
    """
    picks = Picks()
    tables = [counted([kind]) for kind in kinds]
    sides = [
        (counted([person]), counted([] if instead is None else [instead]))
        for person, instead in individuals
    ]
    known: dict[Crowd, float] = {}

    def tried(crowd: Crowd) -> None:
        if crowd not in known and any(crowd.others):
            beside = [(table, count) for table, count in zip(tables, crowd.others, strict=True)]
            pair = (_added([(side, 1), *beside]) for side in sides[crowd.individual])
            known[crowd] = expected_of(prepared, *pair)

    inside = all(isinstance(one, QuantileTree) for one in at_once(prepared))
    each = _TRIES_INSIDE if inside else _TRIES
    tries, most = each // max(one.chosen for one in at_once(prepared)), _FEW if inside else _MOST
    for number in range(tries):
        if number < tries // 4 or not known:
            some = tuple(picks.below(most) * (picks.below(3) > 0) for _ in kinds)
            tried(Crowd(picks.below(len(sides)), some))
        else:
            few = sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]
            tried(_near(picks, few[number % len(few)], len(sides), most))
    return sorted(known, key=lambda crowd: known[crowd], reverse=True)[:_KEPT]


def _near(picks: Picks, crowd: Crowd, individuals: int, most: int) -> Crowd:
    """Another individual, or another number of one or two kinds."""
    if not picks.below(6):
        return replace(crowd, individual=picks.below(individuals))
    others = list(crowd.others)
    for _ in range(1 + picks.below(2)):
        place = picks.below(len(others))
        change = picks.below(13) - 6
        others[place] = picks.below(most) if not change else max(0, others[place] + change)
    return Crowd(crowd.individual, tuple(others))


def _added(tables: Sequence[tuple[Counted, int]]) -> Counted:
    """Sums of exact tables, each this many times."""
    found: dict[Table, CellCounts] = {}
    for table, first in tables[0][0].items():
        if first.groups is None or first.cells is None:
            found[table] = first
            continue
        some = [(each[table], times) for each, times in tables if times]
        groups = np.concatenate([one.groups for one, _ in some if one.groups is not None])
        cells = np.concatenate([one.cells for one, _ in some if one.cells is not None])
        values = np.concatenate([one.values * times for one, times in some])
        found[table] = CellCounts.of_cells(groups, cells, values, first.size)
    return found
