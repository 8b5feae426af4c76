"""Streams: planned as one query, drawn night after night, and what follows from what was drawn.

::

    plan    a query by keys and periods      -> Prepared
    draw    the rows that are due, once      -> Drawn, which is kept before anything is handed out
    total   estimates from all rows so far   -> RunningResults

`draw` alone touches data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Final

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.draw import Draw, Places
from dpframe.aggregates.nightly import NightlySums
from dpframe.choose import Split
from dpframe.core.budget import Budget
from dpframe.core.regular import canonical
from dpframe.core.units import Identifier
from dpframe.errors import EngineError, UnsupportedOperation
from dpframe.frames.definition import definition
from dpframe.frames.nights import before_first_limits
from dpframe.frames.schedule import Schedule
from dpframe.kernel.plan import tables_of
from dpframe.lower import Execution, PlanTables, mark_used
from dpframe.parse.parts import of_first_periods
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.types_read import TypesRead, types_read
from dpframe.planning import Prepared
from dpframe.release import Drawn, RunningResults
from dpframe.release.draws import draw_period
from dpframe.rows.failures import FAILURES

__all__ = [
    "definition_of",
    "draw",
    "plan_stream",
    "rehearse",
    "results_of",
    "types_of",
    "with_rising_totals",
]

_REASON = "noise of its own on each sum, by the norm of a column of coefficients"
_RISING: Final = (
    "totals never fall: each estimate of a running total is raised to the largest before it, which "
    "biases totals upwards where they grow slowly"
)


def plan_stream(
    query: Query,
    schedule: Schedule,
    spend: Budget,
    remaining: Budget | None,
    split: Split = "least error",
    *,
    charged_in: type[Budget] | None = None,
) -> Prepared:
    """The plan of a stream, from its query by keys and periods."""
    prepared = pipeline.plan(query, spend, remaining, split, charged_in=charged_in)
    plan = prepared.plan
    releases = tuple(replace(release, reason=_REASON) for release in plan.releases)
    remarks = (*plan.remarks, _promise(query, schedule))
    return replace(prepared, plan=replace(plan, releases=releases, remarks=remarks))


def _promise(query: Query, schedule: Schedule) -> str:
    if isinstance(query.relation.facts.unit, Identifier):
        words = [step.words() for step in before_first_limits(query.relation, schedule.by)]
        steady = f"; nor may what {', '.join(words)} makes of them change" if words else ""
        return (
            "a stream: rows of one individual must neither vanish nor get another date from "
            f"night to night{steady}, a promise of the data owner; they may come late"
        )
    return (
        "a stream: the rows of one individual are counted over all nights, and one that gets "
        "another date is another row, a promise of the data owner; they may come late"
    )


def definition_of(prepared: Prepared, schedule: Schedule, monotone: bool) -> str:
    """A digest of everything that identifies a stream."""
    names = [output.name for output in prepared.query.outputs]
    remarks = tuple(remark for remark in prepared.plan.remarks if remark != _RISING)
    said = [
        earlier_fingerprint(replace(prepared.plan, remarks=remarks)),
        prepared.plan.source,
        schedule.by,
        schedule.every,
        schedule.start.isoformat(),
        schedule.periods,
        names,
        monotone,
    ]
    if prepared.query.relation.owners is not None:
        said.append(prepared.query.relation.owners.told())
    return hashlib.sha256(canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


def types_of(prepared: Prepared, schedule: Schedule) -> TypesRead:
    """The types of all columns that a stream reads."""
    query = prepared.query
    by = None if query.groups is None else definition(query.groups.by)
    asked = [output.definition for output in prepared.plan.outputs]
    return types_read(query.relation, by, schedule.by, *asked)


def rehearse(
    prepared: Prepared, schedule: Schedule, execution: Execution
) -> tuple[Places, PlanTables]:
    """Try what will be run on empty frames. Where the draws stand in the verified plan, and its
    tables.

    Raises
    ------
    Unsound
        When the kernel refuses the plan.
    UnsupportedOperation
        When the engine refuses the query.
    EngineError
        When the data cannot be read, or have other columns.
    """
    translation = pipeline.require_verified(pipeline.alone(prepared))
    (places,), ((tables,),) = translation.parts, translation.tables
    execution.rehearse_all([_of_first_periods(tables, schedule, 1)])
    execution.require_same_columns()
    return places, tables


def draw(
    prepared: Prepared, schedule: Schedule, execution: Execution, first: int, last: int
) -> Drawn:
    """The noisy rows of some periods, from one read of the data.

    Raises
    ------
    EngineError
        When the engine fails, without its text.
    """
    places, tables = rehearse(prepared, schedule, execution)
    mark_used()
    due = _of_first_periods(tables, schedule, last + 1)
    found = _drawn(prepared.draws, places, due, execution, (first, last))
    if isinstance(found, Drawn):
        return found
    if isinstance(found, EngineError):
        raise found
    if not issubclass(found, FAILURES):
        raise found
    raise EngineError(
        f"the stream failed after it read the data ({found.__name__})",
        why="its message is withheld because it may quote private data",
        remedy="release the period again, which costs nothing",
    )


def _of_first_periods(tables: PlanTables, schedule: Schedule, count: int) -> PlanTables:
    return replace(tables, groups=of_first_periods(tables.groups, schedule, count))


def _drawn(
    draws: Iterable[Draw],
    places: Places,
    due: PlanTables,
    execution: Execution,
    span: tuple[int, int],
) -> Drawn | EngineError | type[BaseException]:
    """The rows, or the kind of failure. The failure itself is not passed on, because the frames
    of its traceback hold exact tables; an error of the engine is made again without them.
    """
    first, last = span
    try:
        tables = execution.run(due.relation, due.groups, list(due.tables.values()))
        periods = []
        for period in range(first, last + 1):
            vectors = []
            for node in map(places.node, draws):
                (place,) = tables_of(node.what)
                table = tables[due.tables[place]].dense(1).reshape(-1, last + 1)
                vectors.append(tuple(draw_period(node, table, period).reshape(-1).tolist()))
            periods.append(tuple(vectors))
        return Drawn(first, tuple(periods))
    except EngineError as error:
        return copy(error)  # without its traceback
    except BaseException as error:
        return type(error)


def with_rising_totals(prepared: Prepared) -> Prepared:
    """A stream whose totals never fall, which its plan says.

    Raises
    ------
    UnsupportedOperation
        When one may fall; names the output.
    """
    query, plan = prepared.query, prepared.plan
    for aggregate in query.aggregates:
        (use,) = aggregate.uses
        assert isinstance(use.part, NightlySums)
        if query.scope.rules.addition(use.part.table).lo < 0:
            raise UnsupportedOperation(
                f"the running total of {aggregate.name!r} may fall",
                where="monotone=True",
                why="rows may add negative values",
                remedy=("leave monotone= out", "use bounds from 0 on: bounds=(0, high)"),
            )
    return replace(prepared, plan=replace(plan, remarks=(*plan.remarks, _RISING)))


def results_of(prepared: Prepared, schedule: Schedule, monotone: bool) -> RunningResults:
    """What follows from what was drawn."""
    return RunningResults(prepared.query, prepared.draws, schedule, monotone)
