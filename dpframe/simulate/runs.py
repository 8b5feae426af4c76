"""Many runs of one plan on public data, which are aggregated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import MeasurementKey, Noisy, Query
from dpframe.aggregates.draw import Draw, Places
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import (
    CellCounts,
    Integers,
    Measurement,
    Rebuilt,
    Responses,
    Selection,
)
from dpframe.aggregates.shapes import Column
from dpframe.errors import UnsupportedOperation
from dpframe.frames.contribution_limits import has_limits, without_limits
from dpframe.frames.relation import Relation
from dpframe.kernel import plan as kernel
from dpframe.lower import (
    Execution,
    Frames,
    PartWanted,
    PlanTables,
    find_keys,
    has_plain,
    run_plain,
    tables_of_plan,
)
from dpframe.optimise.physical import Lists, alone, translate
from dpframe.optimise.prepared import Prepared
from dpframe.progress import Progress, progress
from dpframe.release import aggregate_column, in_order, output_column, shown_groups
from dpframe.release.draws import CandidateScores, chooser_of, draw, draw_node, numbers_of_groups
from dpframe.release.numbers import PointRuns, exact_numbers, first_choice, scores_of
from dpframe.simulate.simulation import (
    Entries,
    Outcome,
    Simulation,
    choices_in,
    entries_of,
    numbers_in,
    simulation_of,
)

# Vectors without noise, from exact tables of public frames: for simulations and audits


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """Vectors of a plan without noise: those that are drawn, and those that follow from them. The
    kernel does not check the plan: an audit may be of one that is wrong.

    Parameters
    ----------
    places
        The physical plan, and the places of draws and tables in it.
    nodes
        What each vector is in it.
    tables
        The tables, read from the plan.
    """

    places: Places
    nodes: Mapping[Measurement, kernel.What]
    tables: tuple[PlanTables, ...]

    @classmethod
    def of(cls, prepared: Prepared, salt: int | None = None) -> Exact:
        """All that a plan draws, and what follows from that.

        Parameters
        ----------
        prepared
            The plan.
        salt
            By which limits choose among an individual's rows, the same for all frames; None for a
            choice of each run.
        """
        lists, query = Lists(), prepared.query
        translation = translate(alone(prepared), lists)
        plan, (places,) = translation.plan, translation.parts
        keys = [key for one in prepared.draws for key in one.keys]
        parts = [*(one.measurement for one in prepared.draws), *(part for part, _ in keys)]
        parts += [part.first for part in parts if isinstance(part, Selection)]
        nodes = {part: lists.what(part, query) for part in dict.fromkeys(parts)}
        assert len(lists.tables) == len(plan.tables)  # all parts are of tables that are drawn
        salt = query.relation.salt if salt is None else salt
        (read,) = tables_of_plan(plan, lists.handles, [(places.draw_tables, salt)])
        by_place = {place: table for one in read for place, table in one.tables.items()}
        return cls(replace(places, tables=by_place), nodes, tuple(read))

    def without_limits(self) -> Exact:
        """The same of frames that no limit drops rows of."""
        return replace(
            self,
            tables=tuple(replace(t, relation=without_limits(t.relation)) for t in self.tables),
        )

    def count(self, frames: Frames, keys: pl.DataFrame | None = None) -> ExactTables:
        """The exact tables of public frames, by their tokens.

        Parameters
        ----------
        frames
            These.
        keys
            The groups, where the plan is to find them.

        Raises
        ------
        EngineError
            When the engine fails.
        """
        listed = [
            one
            if one.groups is None or not one.groups.discovered or keys is None
            else replace(one, groups=one.groups.with_keys(keys))
            for one in self.tables
        ]
        (counted,) = Execution.of_public(frames).run_parts([PartWanted(listed)])
        return ExactTables(self, counted.tables)


@dataclass(frozen=True, slots=True, eq=False)
class ExactTables:
    """The exact tables of public frames.

    Parameters
    ----------
    exact
        What they are of.
    tables
        These, by their places in its plan.
    """

    exact: Exact
    tables: Mapping[int, CellCounts] = field(repr=False)

    def of(self, part: Measurement) -> list[CellCounts]:
        """The tables of a vector."""
        return [self.tables[place] for place in kernel.tables_of(self.exact.nodes[part])]

    def numbers(self, part: Measurement) -> Integers:
        """What a vector is without noise; of choices the best candidates."""
        plan, node = self.exact.places.plan, self.exact.nodes[part]
        if isinstance(node, kernel.Reports):
            return exact_numbers(plan, node, self.of(part))
        numbers = draw_node(plan, node, kernel.Exact(), self.of(part))
        flat = isinstance(part, Margin) and part.is_by_sets
        return numbers.reshape(-1, 1) if flat else numbers

    def scores(self, part: Selection, first: int, end: int) -> Integers | PointRuns:
        """The scores of a choice in groups `first` to `end` - 1, which depend on no other one."""
        node = self.exact.nodes[part]
        assert isinstance(node, kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels)
        return scores_of(self.exact.places.plan, first_choice(node), self.of(part), first, end)


# Noise, again and again, for exact tables that anybody may see.

NoisyParts = dict[tuple[Measurement, str], Noisy]


def with_all_groups(query: Query, free: Relation, frames: Frames) -> Query:
    """The query with every group of the public frame, where groups are to be found."""
    if query.groups is None or not query.groups.discovered:
        return query
    return replace(query, groups=query.groups.with_keys(find_keys(free, query.groups, frames)))


def noiseless(query: Query, draws: Sequence[Draw], counted: ExactTables) -> NoisyParts:
    """The exact integers of all parts."""
    keys = [key for one in draws for key in one.keys]
    return exact_parts(query, [k for k in keys if not isinstance(k[0], KeySelection)], counted)


def exact_parts(query: Query, keys: Sequence[MeasurementKey], counted: ExactTables) -> NoisyParts:
    """What some parts of a query would be without noise."""
    found = {key: counted.numbers(key[0]) for key in keys}
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
    counted: Mapping[int, CellCounts],
    ballots: CandidateScores,
) -> tuple[NoisyParts, NDArray[np.bool_] | None]:
    """Noisy integers of all parts, and which groups appear where they are to be found. Exact tables
    are given by their places.
    """
    noisy: NoisyParts = {}
    kept = None
    chooser = chooser_of(draws, places)
    if chooser is not None:
        (table,) = (place for place, one in places.tables.items() if one is chooser.table)
        numbers = counted[table].dense(1).reshape(-1)
        kept, chosen = chooser.keep(numbers)
        kept = kept & (numbers > 0)  # a release never sees a group without rows
        noisy = numbers_of_groups(draws, places, chosen)
    for one in draws:
        if not isinstance(one.measurement, KeySelection) and one.keys[0] not in noisy:
            noisy |= draw(one, places, counted, ballots)
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


# Many runs of one plan on public data. The data are aggregated once; noise is drawn each time.

MOST_RUNS = 100_000
"""More are probably a mistake."""
MOST_RESULTS = 20_000_000
"""This many results of all runs together fit in memory."""


def simulate(prepared: Prepared, frames: Frames, runs: int) -> Simulation:
    """Draw the results of a plan on public data, again and again.

    Parameters
    ----------
    prepared
        The plan and what is needed to run it.
    frames
        Public frames of the schemas that the plan was made for.
    runs
        How often noise is drawn.

    Raises
    ------
    UnsupportedOperation
        When there would be more results than fit in memory.
    EngineError
        When the engine fails.
    """
    with progress() as shown:
        shown.stage("reading public data")
        return _simulated(prepared, frames, runs, shown)


def _simulated(prepared: Prepared, frames: Frames, runs: int, shown: Progress) -> Simulation:
    free = without_limits(prepared.query.relation)
    query = with_all_groups(prepared.query, free, frames)
    plan, keys = Exact.of(prepared), None if query.groups is None else query.groups.keys
    counted = plan.count(frames, keys)
    exact = columns_of(query.knowing(None), noiseless(query, prepared.draws, counted))
    entries = [entries_of(o, c) for o, c in zip(query.outputs, exact, strict=True)]
    _require_room(sum(e.size for e in entries) * _size(query), runs)
    plain = _arrays(_plain(query, free, frames, counted), entries, query)
    drawn, ballots = [], CandidateScores()
    for run in range(runs):
        shown.stage(f"simulating, run {run + 1} of {runs}")
        noisy, kept = draw_parts(plan.places, prepared.draws, counted.tables, ballots)
        arrays = _arrays(columns_of(query, noisy), entries, query)
        drawn.append(arrays if kept is None else [_where(kept, array) for array in arrays])
    outcomes = [
        Outcome(e, plain[i], array, np.stack([arrays[i] for arrays in drawn]))
        for i, (e, array) in enumerate(zip(entries, _arrays(exact, entries, query), strict=True))
    ]
    groups = shown_groups(query.groups)
    shown_keys = None if groups is None or query.chooses_groups else groups.keys
    return simulation_of(prepared.plan, runs, shown_keys, outcomes)


def _plain(query: Query, free: Relation, frames: Frames, counted: ExactTables) -> list[Column]:
    """The results of plain Polars: without bounds and limits, and without noise."""
    bounded = [a for a in query.aggregates if has_plain(a)]
    parts = {key for a in query.aggregates if not has_plain(a) for key in a.keys}
    if parts and has_limits(query.relation):
        keys = None if query.groups is None else query.groups.keys
        counted = counted.exact.without_limits().count(frames, keys)
    noisy = exact_parts(replace(query, relation=free), list(parts), counted)
    numbers = run_plain(free, query.groups, bounded, frames) if bounded else []
    found = {
        id(a): Column(a.of_plain(made), a.shape) for a, made in zip(bounded, numbers, strict=True)
    }
    return [
        output_column(
            output,
            {
                placeholder: found.get(id(a)) or aggregate_column(a, noisy)
                for placeholder, a in output.aggregates.items()
            },
        )
        for output in query.outputs
    ]


def _arrays(
    columns: Sequence[Column], entries: Sequence[Entries], query: Query
) -> list[NDArray[np.generic]]:
    return [
        choices_in(column, e, query) if e.choices else numbers_in(column, e)
        for column, e in zip(columns, entries, strict=True)
    ]


def _where(kept: NDArray[np.bool_], array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Results of the groups that appear; none for the others."""
    nothing = None if array.dtype == np.object_ else np.nan
    return np.where(kept[:, None], array, np.array(nothing, dtype=array.dtype))


def _size(query: Query) -> int:
    groups = shown_groups(query.groups)
    return 1 if groups is None or query.chooses_groups else groups.size


def _require_room(results: int, runs: int) -> None:
    if runs * results > MOST_RESULTS:
        raise UnsupportedOperation(
            f"{runs} runs of {results} results are more than fit in memory",
            where=f"simulate(..., runs={runs})",
            remedy=(f"ask for at most {max(1, MOST_RESULTS // results)} runs", "use fewer keys"),
        )
