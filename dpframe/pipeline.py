"""Every stage, in order: the first file to read.

::

    read    dp expressions and groups        -> Query               (parse)
    infer   which vectors, how sensitive     -> PlannedMeasurement  (infer)
    choose  mechanism and noise of each      -> Plan                (choose)
    charge  against the budget               -> ledger              (charge, before data is read)
    run     exact integers per group         -> CellCounts          (lower)
    release noise, selection, results        -> DataFrame           (release)

`plan` is everything up to the charge and touches no data; `run` is the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, TypeVar

import polars as pl

from dpframe.aggregates.aggregate import MeasurementKey, Noisy, OutputSpec, Query
from dpframe.aggregates.keys import KeySelection, with_weights
from dpframe.aggregates.request import QueryScope
from dpframe.choose import Split
from dpframe.core.budget import Budget
from dpframe.core.tree import Column, Named, Tree
from dpframe.describe import (
    cost_of_forcing,
    described_together,
    entries_of,
    is_forced,
    unforced,
)
from dpframe.errors import DPFrameError, EngineError, LedgerError, UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import GroupByIndividual
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.partition import require_due
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import own_columns
from dpframe.frames.schedule import Waits
from dpframe.infer import Place, PlannedMeasurement, Queries, measurements_of, merge
from dpframe.infer.several import queries_by_place
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.scopes import Level
from dpframe.lower import (
    CountedPart,
    Execution,
    PartWanted,
    PlanTables,
    mark_used,
    require_threads,
)
from dpframe.parse.groups import MOST_GROUPS, SetsAsked, read_groups, read_sets
from dpframe.parse.individual_aggregates import read_group, read_row
from dpframe.parse.key_sets import origin_in
from dpframe.parse.outputs import polars_schema, read_outputs
from dpframe.parse.parts import read_parts
from dpframe.parse.reader import Each, read
from dpframe.planning import (
    Planning,
    Prepared,
    PreparedTogether,
    Translation,
    alone,
    given,
    on_part,
    planned_with_limit,
    require_sound,
    require_verified,
    stating,
    tables_of,
    translate,
    with_physical,
    with_remaining,
)
from dpframe.progress import Progress, progress
from dpframe.release import (
    Doubt,
    Intervals,
    Keep,
    MissingRows,
    assemble,
    check_post,
    chooser_of,
    doubts_of,
    draw,
    drawn_with_groups,
    laws_of,
    rehearse,
    with_some_key,
)
from dpframe.rows.failures import FAILURES

__all__ = [
    "Prepared",
    "PreparedTogether",
    "alone",
    "given",
    "on_part",
    "require_sound",
    "require_verified",
    "stating",
    "translate",
    "with_physical",
    "with_remaining",
]

Made = TypeVar("Made", Prepared, PreparedTogether)
FOR_DROPPED: Final = Fraction(1, 5)
"""The part of what may go wrong of an interval that is for what a limit drops; noise has the rest.
"""


def read_rows(
    expressions: Iterable[Any],
    named: Mapping[str, Any],
    relation: Relation,
    what: str,
    each: Each | None = None,
) -> tuple[Named, ...]:
    """Expressions over a frame, keywords naming their outputs; row-wise ones, unless `each` reads
    others.
    """
    schema = polars_schema(relation.facts.columns)
    found = [n for e in expressions for n in read(e, schema, what=what, each=each)]
    for name, expression in named.items():
        made = read(expression, schema, what=what, each=each)
        if len(made) != 1:
            raise UnsupportedOperation(
                f"the expression for {name!r} expands to {len(made)} columns",
                where=f"{what}({name}=...)",
                remedy="name one column",
            )
        found.append(Named(name, made[0].tree))
    return tuple(found)


def read_rows_of_individuals(
    expressions: Iterable[Any], named: Mapping[str, Any], relation: Relation, what: str
) -> tuple[Named, ...]:
    """Expressions of rows, in which aggregates of an individual's rows may stand, with ``over``."""
    return read_rows(expressions, named, relation, what, partial(_read_row, relation.facts))


def _read_row(facts: FrameFacts, node: Any, schema: Mapping[str, pl.DataType]) -> Tree:
    return read_row(node, facts, schema)


def individuals(
    relation: Relation, by: Sequence[Any], named: Mapping[str, Any]
) -> tuple[str, tuple[Named, ...]] | None:
    """What a group-by of the identifier calls it, and its further keys; None for others."""
    who = relation.facts.identifier
    if who is None:
        return None
    keys = read_rows(by, named, relation, "group_by")
    own = [n for n in keys if n.tree == Column(who)]
    if not own:
        return None
    return own[0].name, tuple(n for n in keys if n is not own[0])


def one_row_each(
    relation: Relation,
    who: str,
    by: tuple[Named, ...],
    expressions: Iterable[Any],
    named: Mapping[str, Any],
) -> GroupByIndividual:
    """The step to one row for each individual, and value of further keys, with aggregates."""

    def each(node: Any, schema: Mapping[str, pl.DataType]) -> Tree:
        return read_group(node, relation.facts, schema)

    outputs = read_rows(expressions, named, relation, "agg", each)
    return GroupByIndividual(who, by, outputs)


def group(
    relation: Relation, by: Sequence[Any], named: Mapping[str, Any], keys: object, discover: bool
) -> Groups:
    """A group-by with public keys; with `discover` unknown keys are chosen privately."""
    require_threads()
    columns, own = relation.facts.columns, own_columns(relation)
    return read_groups(by, named, keys, columns, discover, origin_in(relation), own)


def group_sets(relation: Relation, asked: SetsAsked, keys: object) -> SetGroups:
    """A group-by of several sets of columns."""
    return read_sets(asked, keys, relation.facts.columns, origin_in(relation))


def divide(
    relation: Relation, by: Sequence[Any], keys: object, waits: Waits | None, is_fixed: bool
) -> dict[Any, tuple[Relation, Level]]:
    """Disjoint parts of a frame, by public key, and their names in ledgers."""
    require_threads()
    return read_parts(relation, by, keys, waits, is_fixed=is_fixed)


def ask(
    relation: Relation,
    groups: Groups | None,
    specs: Iterable[OutputSpec],
    execution: Execution | None = None,
) -> Query:
    """A query, checked for everything that does not depend on its cost.

    `execution` is where it will run, if that is known; its data are not needed.
    """
    require_threads()
    asked = list(specs)
    outputs = read_outputs(asked, QueryScope(relation.facts, groups))
    weighed = with_weights(relation, groups, outputs)
    if weighed is not relation:
        relation = weighed
        outputs = read_outputs(asked, QueryScope(relation.facts, groups))
    query = Query(relation, groups, outputs)
    parts = measurements_of(query)  # refusals come when the query is built
    for use in parts:
        _require_room(use, query)
    check_post(query)
    if execution is not None:
        execution.require_runs(relation, groups, tables_of(use.part for use in parts))
    return query


def _require_room(use: PlannedMeasurement, query: Query) -> None:
    """Refuse more results than fit in memory."""
    entries = entries_of(use.part, query)
    if entries > MOST_GROUPS:
        raise UnsupportedOperation(
            f"{use.name} would have {entries} results, more than {MOST_GROUPS}",
            remedy="use fewer keys or fewer bins",
        )


def plan(
    query: Query,
    spend: Budget,
    remaining: Budget | None,
    split: Split = "least error",
    *,
    charged_in: type[Budget] | None = None,
    compared: bool = True,
) -> Prepared:
    """The plan of a query at a given cost. Touches no data: only schemas.

    Parameters
    ----------
    query
        The query.
    spend, remaining
        The most that the plan may cost, and the session's remaining budget.
    split
        How the cost is divided where no weight is given.
    charged_in
        The measure, rho or mu, in which the plan is charged. The plan satisfies its spend in any
        case.
    compared
        Whether the plan states the cost of forced mechanisms or a forced split.

    Raises
    ------
    DPFrameError
        When the query cannot be answered within the measure.
    """
    require_threads()
    (query,) = queries_by_place([query])
    (prepared,) = Planning(spend, remaining, split, charged_in).least([query])
    if not compared or not is_forced([query], prepared.plan.split):
        return prepared
    return _compared(
        prepared,
        [query],
        lambda: plan(unforced(query), spend, remaining, charged_in=charged_in, compared=False),
    )


def plan_several(
    queries: Queries,
    spend: Budget,
    remaining: Budget | None,
    split: Split = "least error",
    *,
    charged_in: type[Budget] | None = None,
    compared: bool = True,
) -> PreparedTogether:
    """One plan of several queries, which share the cost; see `plan`.

    Queries of the same rows and groups become one, so that their outputs share draws. So do
    queries whose tables are margins of another query's table, if that has a smaller error.

    Raises
    ------
    DPFrameError
        When a query cannot be answered within the measure.
    """
    require_threads()
    if queries.search is not None:
        return planned_with_limit(queries.search, spend, remaining, split, charged_in)
    queries = replace(queries, queries=queries_by_place(queries.queries))
    if len(queries.queries) == 1:  # which is planned as if alone
        (query,) = queries.queries
        alone = plan(query, spend, remaining, split, charged_in=charged_in, compared=compared)
        return PreparedTogether(alone.plan, (alone,), (Place.whole(query),))
    blocks, places = merge(queries)
    by = split if queries.weights is None else "weights"
    made, places = Planning(spend, remaining, by, charged_in).related(blocks, places)
    whole = described_together([one.plan for one in made], places)
    prepared = PreparedTogether(whole, made, places)
    if not compared or not is_forced(queries.queries, whole.split):
        return prepared

    def least() -> PreparedTogether:
        free = replace(queries, queries=tuple(map(unforced, queries.queries)))
        return plan_several(free, spend, remaining, charged_in=charged_in, compared=False)

    return _compared(prepared, queries.queries, least)


def _compared(made: Made, queries: Sequence[Query], least: Callable[[], Made]) -> Made:
    """A plan that states the cost of a forced choice."""
    try:
        forced = cost_of_forcing(queries, made.plan, least().plan)
    except DPFrameError:  # there is nothing beyond the request
        return made
    return replace(made, plan=replace(made.plan, forced=forced))


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
    prepared: Prepared,
    execution: Execution,
    ledger: Ledger,
    interval: Intervals | None = None,
    approval: Requirement | None = None,
) -> pl.DataFrame:
    """Charge, compute, release; with the requested intervals, if any, and only with an approval
    where one is needed.

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
    return run_several(alone(prepared), [execution], ledger, interval, approval).frames[0]


def run_several(
    prepared: PreparedTogether,
    executions: Sequence[Execution],
    ledger: Ledger,
    interval: Intervals | None = None,
    approval: Requirement | None = None,
    keep: Keep | None = None,
) -> Results:
    """The same of several queries, which are one charge: results in order, with `keep` kept first.

    `executions` are where each of `prepared.parts` runs; those that run at one place are one
    request to its engine.
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
    rehearse(prepared.asked(map(with_some_key, prepared.queries)), interval)
    unit = parts[0].query.relation.facts.unit.kind
    with progress() as shown:
        shown.stage("charging the budget")
        beginning = None if keep is None else keep.beginning
        scope = prepared.scope(ledger.per)
        entry = ledger.charge(plan.cost, plan.fingerprint, unit, approval, scope, beginning)
        result = _released(prepared, translation, executions, interval, shown)
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


def _released(
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
    counted = _counted(prepared.parts, translation, executions)
    shown.stage("adding noise")
    queries, noisy = list[Query](), list[dict[MeasurementKey, Noisy]]()
    for part, places, found in zip(prepared.parts, translation.parts, counted, strict=True):
        groups = part.query.groups
        if groups is not None and found.keys is not None:
            groups = groups.found(found.keys)
        query = replace(part.query, groups=groups)
        drawn = drawn_with_groups(part.draws, places, found.chosen)
        for one in part.draws:
            if not isinstance(one.measurement, KeySelection) and one.keys[0] not in drawn:
                drawn |= draw(one, places, found.tables)
        queries.append(query)
        noisy.append(drawn)
    frames, doubts = list[pl.DataFrame](), list[tuple[Doubt, ...]]()
    for place, (query, draws) in zip(prepared.places, prepared.asked(queries), strict=True):
        numbers, missing = noisy[place.block], MissingRows.of(query, *dropped)
        frames.append(assemble(query, numbers, draws, interval, missing))
        doubts.append(doubts_of(query, numbers, laws_of(draws)))
    return Results(frames, tuple(doubts))


def _tables_that_may_run(translation: Translation) -> Iterator[tuple[PlanTables, ...]]:
    """The tables of each query, under the largest limit where one is sought."""
    yield from translation.tables
    if translation.options:
        yield from translation.options[-1].tables


def _counted(
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


def schema_of(relation: Relation) -> dict[str, Any]:
    """Names and Polars types of a frame's columns."""
    return polars_schema(relation.facts.columns)
