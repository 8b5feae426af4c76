"""Every stage, in order: the first file to read.

::

    read    dp expressions and groups        -> Query               (parse)
    infer   which vectors, how sensitive     -> PlannedMeasurement  (infer)
    choose  mechanism and noise of each      -> Plan                (choose)
    charge  against the budget               -> ledger              (charge; before data is read)
    run     exact integers per group         -> CellCounts          (lower)
    release noise, selection, results        -> DataFrame           (release)

`plan` is everything up to the charge and touches no data; `run` is the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.aggregates.bound import MeasurementKey, Noisy
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.measurement import CellCounts, Measurement, Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.spec import OutputSpec
from dpframe.aggregates.ways import least_expected, ways_to_measure
from dpframe.choose import (
    AskedWay,
    ComposedChoice,
    Split,
    choose_together,
    choose_with_keys,
    in_mu,
    in_rho,
    least_error_way,
    least_error_weights,
)
from dpframe.core.budget import GDP, Budget
from dpframe.core.exact import Number
from dpframe.core.tree import Named
from dpframe.describe import described, entries_of
from dpframe.errors import EngineError, LedgerError, UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.infer import (
    PlannedDraw,
    PlannedMeasurement,
    Way,
    effects_of,
    measurements_of,
    ways_of,
)
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.bound import StatedBudget
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import Share
from dpframe.lower import Execution, mark_used, require_threads
from dpframe.mechanisms import Mechanism
from dpframe.parse.grouping_sets import SetsAsked, read_sets
from dpframe.parse.groups import MOST_GROUPS, read_groups
from dpframe.parse.outputs import polars_schema, read_outputs
from dpframe.parse.parts import read_parts
from dpframe.parse.reader import read
from dpframe.plan import confidence_of
from dpframe.progress import Progress, progress
from dpframe.release import (
    Draw,
    assemble,
    check_post,
    chooser_of,
    draw,
    drawn_with_groups,
    number_of,
    rehearse,
    with_some_key,
)
from dpframe.report import Plan
from dpframe.rows.failures import FAILURES


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A plan and what is needed to run it.

    Parameters
    ----------
    plan
        What reviewers read.
    query
        What is asked.
    parts
        The parts in the order of `plan.releases`.
    draws
        What is drawn for them.
    """

    plan: Plan
    query: Query
    parts: tuple[PlannedMeasurement, ...]
    draws: tuple[Draw, ...]

    @property
    def tables(self) -> list[Table]:
        """The exact tables that it needs, each once."""
        return _tables(draw.measurement for draw in self.draws)

    @property
    def laws(self) -> dict[MeasurementKey, Mechanism]:
        """The mechanism of each part by itself, whatever else is drawn with it."""
        return {key: law for draw in self.draws for key, law in draw.noises().items()}


def read_rows(
    expressions: Iterable[Any], named: Mapping[str, Any], relation: Relation, what: str
) -> tuple[Named, ...]:
    """Row-wise expressions over a frame, keywords naming their outputs."""
    schema = polars_schema(relation.facts.columns)
    found = [n for e in expressions for n in read(e, schema, what=what)]
    for name, expression in named.items():
        made = read(expression, schema, what=what)
        if len(made) != 1:
            raise UnsupportedOperation(
                f"{name!r} is one column, and its expression makes {len(made)}",
                where=f"{what}({name}=...)",
                remedy="name one column",
            )
        found.append(Named(name, made[0].tree))
    return tuple(found)


def group(
    relation: Relation,
    by: Sequence[Any],
    named: Mapping[str, Any],
    keys: object,
    discover: bool = False,
) -> Groups:
    """A group-by with public keys; with `discover` keys that nobody knows are to be chosen."""
    require_threads()
    return read_groups(by, named, keys, relation.facts.columns, discover)


def group_sets(relation: Relation, asked: SetsAsked, keys: object) -> SetGroups:
    """A group-by of several sets of columns."""
    return read_sets(asked, keys, relation.facts.columns)


def divide(relation: Relation, by: Sequence[Any], keys: object) -> tuple[dict[Any, Relation], int]:
    """Disjoint parts of a frame, by public key, and in how many of them neighbours can differ."""
    require_threads()
    return read_parts(relation, by, keys)


def ask(
    relation: Relation,
    groups: Groups | None,
    specs: Iterable[OutputSpec],
    execution: Execution | None = None,
) -> Query:
    """A query, read and checked as far as that is possible without knowing what it may cost.

    `execution` is where it will run, if that is known; its data are not needed.
    """
    require_threads()
    outputs = read_outputs(specs, QueryScope(relation.facts, groups))
    query = Query(relation, groups, outputs)
    parts = measurements_of(query)  # refusals come when the query is built
    for use in parts:
        _require_room(use, query)
    check_post(query)
    if execution is not None:
        execution.require_runs(relation, groups, _tables(use.part for use in parts))
    return query


def _tables(parts: Iterable[Measurement]) -> list[Table]:
    """The exact tables of some vectors, each once."""
    return list(dict.fromkeys(table for part in parts for table in part.tables))


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
) -> Prepared:
    """The plan of a query at a given cost. Touches no data: only schemas.

    Parameters
    ----------
    query
        What is asked.
    spend, remaining
        What it may cost, and what the session has left.
    split
        How the cost is divided where no weight is given.
    charged_in
        The measure, of rho or mu, in which the plan is charged; it satisfies its spend in any case.

    Raises
    ------
    DPFrameError
        When the query cannot be answered within the measure.
    """
    require_threads()
    ways = ways_to_measure(query, spend)
    return least_expected([_planned(w, spend, remaining, split, charged_in) for w in ways])


def _planned(
    query: Query,
    spend: Budget,
    remaining: Budget | None,
    split: Split,
    charged_in: type[Budget] | None,
) -> Prepared:
    parts = measurements_of(query)
    by = "weights" if any(request.weight != 1 for request in query.requests) else split
    ways = ways_of(query, parts, by)
    asked = [_asked(query, parts, way, by) for way in ways]
    chosen = least_error_way(
        asked, lambda way: _together(query, ways[asked.index(way)], way, spend)
    )
    way, tasks = ways[chosen.number], asked[chosen.number].tasks
    allowed = chosen.together.cost
    if charged_in is not None:
        charge = (in_mu if charged_in is GDP else in_rho)(tasks, chosen.together)
        chosen = replace(chosen, together=charge)
    made = described(query, parts, way, chosen, allowed, spend, remaining, by)
    laws = [choice.law for choice in chosen.together.choices]
    draws = tuple(_draw_of(draw, law, parts) for draw, law in zip(way.draws, laws, strict=True))
    if query.depends_on_noise:
        query = query.knowing({key: law for one in draws for key, law in one.noises().items()})
    return Prepared(made, query, parts, draws)


def on_part(prepared: Prepared, share: Share) -> Prepared:
    """A plan that says that its frame is one of several parts, and what that costs the whole."""
    return replace(prepared, plan=replace(prepared.plan, share=share))


def stating(prepared: Prepared, budget: StatedBudget) -> Prepared:
    """A plan that says which budget it is to be charged to."""
    return replace(prepared, plan=replace(prepared.plan, budget=budget))


def run(
    prepared: Prepared,
    execution: Execution,
    ledger: Ledger,
    interval: Number | None = None,
    approval: Requirement | None = None,
) -> pl.DataFrame:
    """Charge, compute, release; with intervals of the given confidence, if any, and only by an
    approval where one is needed.

    Raises
    ------
    BudgetExceeded
        Before any data is read; nothing is charged then.
    PlanMismatch
        When no approval counts that it needs; nothing is charged then either.
    LedgerError
        When the charge, or that its release is done, cannot be recorded.
    EngineError
        When the engine fails. The charge stays. Before it in a process that was forked from one
        that had used Polars, where no query would end.
    """
    require_threads()
    mark_used()
    query = prepared.query
    tables = prepared.tables
    execution.rehearse(query.relation, query.groups, tables)
    execution.require_same_columns()
    confidence = None if interval is None else confidence_of(interval, "interval")
    draws = prepared.draws
    rehearse(with_some_key(query), draws, confidence)
    unit = query.relation.facts.unit.kind
    with progress() as shown:
        shown.stage("charging the budget")
        entry = ledger.charge(prepared.plan.cost, prepared.plan.fingerprint, unit, approval)
        result = _released(prepared, execution, tables, confidence, shown)
    if isinstance(result, pl.DataFrame):
        ledger.settle(entry, "released")  # if this fails, nothing comes out
        return result
    with suppress(LedgerError):  # the charge stays open then, and counts as before
        ledger.settle(entry, "failed")
    if isinstance(result, EngineError):  # which says nothing but that
        raise EngineError(result.what, where=result.where, remedy=result.remedy)
    if not issubclass(result, FAILURES):
        raise result
    raise EngineError(
        f"the release failed after it was charged ({result.__name__}); the message is withheld "
        "because it may quote private data",
        remedy="spend a query on fewer groups or simpler arithmetic; the charge stays",
    )


def _released(
    prepared: Prepared,
    execution: Execution,
    tables: list[Table],
    confidence: Fraction | None,
    shown: Progress,
) -> pl.DataFrame | EngineError | type[BaseException]:
    """The result, or what kind of failure there was. The failure itself is not handed on: the
    frames of its traceback hold exact tables.
    """
    query = prepared.query
    try:
        shown.stage("reading the data")
        counted, query, noisy = _counted(query, execution, tables, prepared.draws)
        shown.stage("adding noise")
        for one in prepared.draws:
            if not isinstance(one.measurement, KeySelection) and one.keys[0] not in noisy:
                noisy |= draw(one, counted, query.scope)
        return assemble(query, noisy, prepared.draws, confidence)
    except EngineError as error:
        return EngineError(error.what, where=error.where, remedy=error.remedy)
    except BaseException as error:
        return type(error)


def _asked(query: Query, parts: Sequence[PlannedMeasurement], way: Way, by: str) -> AskedWay:
    """What mechanisms are asked for."""
    weights, rho_weights = _weights(way.draws, by)
    rebuilt = {
        part: (number, None if draw.rebuilt is None else draw.rebuilt[place])
        for number, draw in enumerate(way.draws)
        for place, part in enumerate(draw.parts)
    }
    return AskedWay(
        [
            draw.measurement.task(draw.name, draw.sensitivity, draw.mechanism, query.scope)
            for draw in way.draws
        ],
        weights,
        rho_weights,
        [rebuilt[number] for number in range(len(parts))],
        effects_of(query, parts),
    )


def _draw_of(draw: PlannedDraw, law: Mechanism, parts: Sequence[PlannedMeasurement]) -> Draw:
    keys = tuple((parts[number].part, parts[number].mechanism) for number in draw.parts)
    return Draw(draw.measurement, law, keys, draw.rebuilt)


def _together(query: Query, way: Way, asked: AskedWay, spend: Budget) -> ComposedChoice:
    about = asked.tasks, asked.weights, spend, asked.rho_weights
    if query.groups is None or not query.groups.discovered:
        return choose_together(*about)
    measured = [draw.measurement for draw in way.draws]
    return choose_with_keys(*about, number_of(measured[0], measured))


def _counted(
    query: Query, execution: Execution, tables: list[Table], draws: Sequence[Draw]
) -> tuple[dict[Table, CellCounts], Query, dict[MeasurementKey, Noisy]]:
    """The exact tables, the query with the groups that appear, and what is noisy already."""
    chooser = chooser_of(draws)
    if query.groups is None or chooser is None:
        return execution.run(query.relation, query.groups, tables), query, {}
    counted, groups, chosen = execution.run_choosing(query.relation, query.groups, tables, chooser)
    return counted, replace(query, groups=groups), drawn_with_groups(draws, chosen)


def _weights(draws: Sequence[PlannedDraw], by: str) -> tuple[list[Fraction], list[Fraction]]:
    """Relative costs of what is drawn, of epsilon and of rho."""
    if by != "least error":
        weights = [draw.weight for draw in draws]
        return weights, weights
    return (
        least_error_weights([draw.impact for draw in draws], shares_rho=False),
        least_error_weights([draw.rho_impact for draw in draws], shares_rho=True),
    )


def schema_of(relation: Relation) -> dict[str, Any]:
    """Names and Polars types of a frame's columns."""
    return polars_schema(relation.facts.columns)
