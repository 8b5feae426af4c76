"""From a plan to its results: the only way on which data, noise and a charge meet.

::

    verify  the physical plan                -> Translation  (planning)
    try     tables of empty frames           -> or a refusal (lower)
    charge  the budget                       -> ledger
    count   exact integers for each group    -> CellCounts   (lower)
    draw    noise, and what follows from it  -> DataFrame    (release)

Import contracts in pyproject.toml hold that nothing else does this; streams draw in
`dpframe.streaming`, and simulations and audits run on public frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import polars as pl

from dpframe.aggregates.aggregate import MeasurementKey, Noisy, Query
from dpframe.aggregates.keys import KeySelection
from dpframe.errors import EngineError, LedgerError
from dpframe.frames.partition import require_due
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.ledger import Ledger
from dpframe.lower import (
    CountedPart,
    Execution,
    PartWanted,
    PlanTables,
    mark_used,
    require_threads,
)
from dpframe.optimise.physical import Translation, alone
from dpframe.optimise.prepared import Prepared, PreparedTogether
from dpframe.progress import Progress, progress
from dpframe.release import (
    Doubt,
    Intervals,
    Keep,
    MissingRows,
    assemble,
    doubts_of,
    laws_of,
    rehearse,
    with_some_key,
)
from dpframe.release.draws import chooser_of, draw, numbers_of_groups
from dpframe.rows.failures import FAILURES
from dpframe.soundness import require_sound

FOR_DROPPED: Final = Fraction(1, 5)
"""The part of what may go wrong of an interval that is for what a limit drops; noise has the rest.
"""


@dataclass(frozen=True, slots=True)
class Results:
    """What comes out of a plan.

    Parameters
    ----------
    frames
        The result of each query.
    doubts
        The doubts about each result that follow from its noisy numbers.
    place
        Which limit was found; None where none was sought.
    """

    frames: list[pl.DataFrame]
    doubts: tuple[tuple[Doubt, ...], ...]
    place: int | None = None

    def and_then(self, later: Results) -> Results:
        """These and others after them."""
        frames, doubts = [*self.frames, *later.frames], (*self.doubts, *later.doubts)
        return replace(self, frames=frames, doubts=doubts)


def run(
    prepared: PreparedTogether,
    executions: Sequence[Execution],
    ledger: Ledger,
    interval: Intervals | None = None,
    approval: Requirement | None = None,
    keep: Keep | None = None,
) -> Results:
    """Charge the budget, read the data and release the results of the queries of a plan.

    Parameters
    ----------
    prepared
        The plan.
    executions
        Where each of `prepared.parts` runs. Those that run at one place are one request to its
        engine.
    ledger
        What is charged.
    interval
        The intervals that are wanted.
    approval
        What approval the plan needs.
    keep
        Keeps the results before they are handed out.

    Raises
    ------
    BudgetExceeded
        Before any data is read; nothing is charged then.
    PlanMismatch
        When no approval counts that it needs; nothing is charged then either.
    Unsound
        When what would run is not what the plan says; nothing is charged then either.
    LedgerError
        When the charge, or that its release is done, cannot be recorded.
    EngineError
        When the engine fails. The charge stays. Before it in a process that was forked from one
        that had used Polars, where no query would end.
    """
    require_threads()
    require_due(query.relation for query in prepared.queries)
    translation = require_sound(prepared)
    mark_used()
    parts, plan = prepared.parts, prepared.plan
    for execution, tables in zip(executions, _tables_that_may_run(translation), strict=True):
        execution.rehearse_all(tables)
    for execution in dict.fromkeys(executions):
        execution.require_same_columns()
    rehearse(prepared.with_draws(map(with_some_key, prepared.queries)), interval)
    unit = parts[0].query.relation.facts.unit.kind
    with progress() as shown:
        shown.stage("charging the budget")
        beginning = None if keep is None else keep.beginning
        scope = prepared.scope(ledger.per)
        entry = ledger.charge(plan.cost, plan.fingerprint, unit, approval, scope, beginning)
        result = _release(prepared, translation, executions, interval, shown)
    if isinstance(result, Results):
        content = (
            None if keep is None else keep.write(entry, result.frames, result.doubts, result.place)
        )
        ledger.settle(entry, "released", content)  # if this fails, nothing comes out
        return result
    with suppress(LedgerError):  # the charge stays open then, and counts as before
        ledger.settle(entry, "failed")
    if isinstance(result, EngineError):  # which says nothing but that
        raise copy(result)
    if not issubclass(result, FAILURES):
        raise result
    raise EngineError(
        f"the release failed after it was charged ({result.__name__})",
        why="its message is withheld because it may quote private data",
        remedy="ask for fewer groups or simpler arithmetic; the charge stays",
    )


def _release(
    prepared: PreparedTogether,
    translation: Translation,
    executions: Sequence[Execution],
    interval: Intervals | None,
    shown: Progress,
) -> Results | EngineError | type[BaseException]:
    """The results, or what kind of failure there was. The failure itself is not handed on: the
    frames of its traceback hold exact tables.
    """
    try:
        if prepared.limits is None:
            return _results(prepared, translation, executions, interval, shown)
        search = alone(prepared.parts[0])
        limits = _results(search, translation, executions[:1], interval, shown)
        place = prepared.limits.place(limits.frames[0])
        query, most = prepared.option(place), (0, 0)
        if interval is not None:
            miss = 1 - interval.confidence
            dropped = prepared.limits.most(limits.frames[0], place, miss * FOR_DROPPED)
            most = dropped.rows, dropped.individuals
            interval = replace(interval, confidence=1 - miss * (1 - FOR_DROPPED))
        option = translation.options[place]
        later = _results(query, option, executions[1:], interval, shown, most)
        return replace(limits.and_then(later), place=place)
    except EngineError as error:
        return copy(error)  # without its traceback
    except BaseException as error:
        return type(error)


def _results(
    prepared: PreparedTogether,
    translation: Translation,
    executions: Sequence[Execution],
    interval: Intervals | None,
    shown: Progress,
    dropped: tuple[int, int] = (0, 0),
) -> Results:
    """Exact tables, noise, and what follows from both. Intervals hold what a limit that was found
    may have dropped.
    """
    shown.stage("reading the data")
    counted = _count_parts(prepared.parts, translation, executions)
    shown.stage("adding noise")
    queries, noisy = list[Query](), list[dict[MeasurementKey, Noisy]]()
    for part, places, found in zip(prepared.parts, translation.parts, counted, strict=True):
        groups = part.query.groups
        if groups is not None and found.keys is not None:
            groups = groups.with_keys(found.keys)
        query = replace(part.query, groups=groups)
        drawn = numbers_of_groups(part.draws, places, found.chosen)
        for one in part.draws:
            if not isinstance(one.measurement, KeySelection) and one.keys[0] not in drawn:
                drawn |= draw(one, places, found.tables)
        queries.append(query)
        noisy.append(drawn)
    frames, doubts = list[pl.DataFrame](), list[tuple[Doubt, ...]]()
    for place, (query, draws) in zip(prepared.places, prepared.with_draws(queries), strict=True):
        numbers, missing = noisy[place.block], MissingRows.of(query, *dropped)
        frames.append(assemble(query, numbers, draws, interval, missing))
        doubts.append(doubts_of(query, numbers, laws_of(draws)))
    return Results(frames, tuple(doubts))


def _tables_that_may_run(translation: Translation) -> Iterator[tuple[PlanTables, ...]]:
    """The tables of each query, under the largest limit where one is sought."""
    yield from translation.tables
    if translation.options:
        yield from translation.options[-1].tables


def _count_parts(
    parts: Sequence[Prepared], translation: Translation, executions: Sequence[Execution]
) -> list[CountedPart]:
    """The exact tables of each part, and the groups that appear; what runs at one place at once."""
    found: dict[int, CountedPart] = {}
    for execution in dict.fromkeys(executions):
        here = [number for number, other in enumerate(executions) if other is execution]
        wanted = [
            PartWanted(
                translation.tables[number],
                chooser_of(parts[number].draws, translation.parts[number]),
            )
            for number in here
        ]
        found |= zip(here, execution.run_parts(wanted), strict=True)
    return [found[number] for number in range(len(parts))]
