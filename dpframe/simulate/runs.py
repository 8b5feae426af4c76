"""Many runs of one plan on public data. The data are aggregated once; noise is drawn each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import pipeline
from dpframe.aggregates.query import Query
from dpframe.aggregates.registry import BY_KIND
from dpframe.aggregates.request import Request
from dpframe.aggregates.values import as_series
from dpframe.errors import UnsupportedOperation
from dpframe.frames.relation import Relation
from dpframe.frames.without_limits import has_limits, without_limits
from dpframe.lower import Sources, has_plain, run_plain
from dpframe.lower import run as run_exact
from dpframe.progress import Progress, progress
from dpframe.release import Ballots, Column, output_column, request_column, without_noise
from dpframe.rows.fold import domain
from dpframe.simulate.drawing import (
    Counted,
    columns_of,
    draw_parts,
    is_best_group,
    noiseless,
    with_all_groups,
)
from dpframe.simulate.entries import Entries, choices_in, entries_of, numbers_in
from dpframe.simulate.simulation import Outcome, Simulation, simulation_of

MOST_RUNS = 100_000
"""More are hardly meant."""
MOST_RESULTS = 20_000_000
"""So many results of all runs together fit in memory."""


def simulate(prepared: pipeline.Prepared, source: Sources, runs: int) -> Simulation:
    """Draw the results of a plan on public data, again and again.

    Parameters
    ----------
    prepared
        The plan and what is needed to run it.
    source
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
        return _simulated(prepared, source, runs, shown)


def _simulated(
    prepared: pipeline.Prepared, source: Sources, runs: int, shown: Progress
) -> Simulation:
    free = without_limits(prepared.query.relation)
    query = with_all_groups(prepared.query, free, source)
    counted = run_exact(query.relation, query.groups, prepared.tables, source)
    exact = columns_of(query, noiseless(query, prepared.laws, counted))
    entries = [entries_of(o, c) for o, c in zip(query.outputs, exact, strict=True)]
    _require_room(sum(e.size for e in entries) * _size(query), runs)
    plain = _arrays(_plain(query, free, source, counted), entries, query)
    drawn, ballots = [], Ballots()
    for run in range(runs):
        shown.stage(f"simulating, run {run + 1} of {runs}")
        noisy, kept = draw_parts(query, prepared.laws, counted, ballots)
        arrays = _arrays(columns_of(query, noisy), entries, query)
        drawn.append(arrays if kept is None else [_where(kept, array) for array in arrays])
    outcomes = [
        Outcome(e, plain[i], array, np.stack([arrays[i] for arrays in drawn]))
        for i, (e, array) in enumerate(zip(entries, _arrays(exact, entries, query), strict=True))
    ]
    keys = None if query.groups is None or is_best_group(query) else query.groups.keys
    return simulation_of(prepared.plan, runs, keys, outcomes)


def _plain(query: Query, free: Relation, source: Sources, counted: Counted) -> list[Column]:
    """The results of plain Polars: without bounds and limits, and without noise."""
    scope = query.scope
    bounded = [r for r in query.requests if has_plain(r, scope)]
    others = [r for r in query.requests if not has_plain(r, scope)]
    parts = {(u.part, r.mechanism) for r in others for u in BY_KIND[r.kind].uses(r, scope)}
    if parts and has_limits(query.relation):
        tables = list(dict.fromkeys(t for part, _ in parts for t in part.tables))
        counted = run_exact(free, query.groups, tables, source)
    noisy = {key: without_noise(key[0], counted, scope) for key in parts}
    found = dict(
        zip(map(id, bounded), run_plain(free, query.groups, bounded, source), strict=True)
        if bounded
        else ()
    )
    return [
        output_column(
            output,
            {
                placeholder: _typed(request, query, found[id(request)])
                if id(request) in found
                else request_column(request, scope, noisy)
                for placeholder, request in output.requests.items()
            },
        )
        for output in query.outputs
    ]


def _typed(request: Request, query: Query, numbers: Sequence[pl.Series]) -> Column:
    """Physical numbers as the type that such a result has."""
    assert request.tree is not None or request.kind == "count"
    if request.tree is None or request.kind == "count":
        return Column(numbers[0].cast(pl.Int64).alias(request.name), None)
    dtype = domain(request.tree, query.relation.facts.columns).dtype
    made = [as_series(f"{i}", column, dtype) for i, column in enumerate(numbers)]
    if not isinstance(request.parameters.get("q"), tuple):
        return Column(made[0].alias(request.name), None)
    listed = pl.DataFrame(made).select(pl.concat_list(pl.all()).alias(request.name))
    return Column(listed.to_series(), None)


def _arrays(
    columns: Sequence[Column], entries: Sequence[Entries], query: Query
) -> list[NDArray[Any]]:
    return [
        choices_in(column, e, query) if e.choices else numbers_in(column, e)
        for column, e in zip(columns, entries, strict=True)
    ]


def _where(kept: NDArray[np.bool_], array: NDArray[Any]) -> NDArray[Any]:
    """Results of the groups that appear; none for the others."""
    nothing = None if array.dtype == np.object_ else np.nan
    return np.where(kept[:, None], array, np.array(nothing, dtype=array.dtype))


def _size(query: Query) -> int:
    return 1 if query.groups is None or is_best_group(query) else query.groups.size


def _require_room(results: int, runs: int) -> None:
    if runs * results > MOST_RESULTS:
        raise UnsupportedOperation(
            f"{runs} runs of {results} results are more than fit in memory",
            where=f"simulate(..., runs={runs})",
            remedy=f"ask for at most {max(1, MOST_RESULTS // results)} runs, or use fewer keys",
        )
