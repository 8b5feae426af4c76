"""From Polars expressions to a plan: every stage before the charge, in order.

::

    read    dp expressions and groups        -> Query               (parse)
    infer   which vectors, how sensitive     -> PlannedMeasurement  (infer)
    choose  mechanism and noise of each      -> Plan                (choose)

Nothing here touches data. `dpframe.runner` is the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from dpframe.aggregates.aggregate import OutputSpec, Query
from dpframe.aggregates.keys import with_weights
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.request import QueryScope
from dpframe.core.budget import Budget
from dpframe.core.tree import Column, Named, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import GroupByIndividual
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.nights import Waits
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import own_columns
from dpframe.ledger.scopes import Level
from dpframe.lower.engines.forked import require_threads
from dpframe.optimise.description import cost_of_forcing, entries_of, is_forced, without_mechanisms
from dpframe.optimise.measurements import PlannedMeasurement, measurements_of
from dpframe.optimise.mechanisms import Split
from dpframe.optimise.physical import (
    alone,
    on_part,
    stating,
    translate,
    with_parameters,
    with_physical,
    with_remaining,
)
from dpframe.optimise.planning import Planning, plan_with_limit
from dpframe.optimise.prepared import Prepared, PreparedTogether, tables_of
from dpframe.optimise.queries import Queries, queries_by_place
from dpframe.parse.groups import MOST_GROUPS, SetsAsked, origin_in, read_groups, read_sets
from dpframe.parse.individual_aggregates import read_group, read_row
from dpframe.parse.outputs import polars_schema, read_outputs
from dpframe.parse.parts import read_parts
from dpframe.parse.reader import Each, read
from dpframe.release import (
    check_post,
)
from dpframe.soundness import require_sound, require_verified

__all__ = [
    "Prepared",
    "PreparedTogether",
    "alone",
    "on_part",
    "require_sound",
    "require_verified",
    "stating",
    "translate",
    "with_parameters",
    "with_physical",
    "with_remaining",
]


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
    outputs = [n for e in expressions for n in read(e, schema, what=what, each=each)]
    for name, expression in named.items():
        columns = read(expression, schema, what=what, each=each)
        if len(columns) != 1:
            raise UnsupportedOperation(
                f"the expression for {name!r} expands to {len(columns)} columns",
                where=f"{what}({name}=...)",
                remedy="name one column",
            )
        outputs.append(Named(name, columns[0].tree))
    return tuple(outputs)


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
    require_runs: Callable[[Relation, Groups | None, Sequence[Table]], None] | None = None,
) -> Query:
    """A query, checked for everything that does not depend on its cost. `require_runs` refuses what
    the engine cannot do, where it is known which one it will be.
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
    if require_runs is not None:
        require_runs(relation, groups, tables_of(use.part for use in parts))
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
    """The plan of one query; see `plan_several`.

    Raises
    ------
    DPFrameError
        When the query cannot be answered within the measure.
    """
    whole = plan_several(
        Queries((query,)), spend, remaining, split, charged_in=charged_in, compared=compared
    )
    return replace(whole.parts[0], plan=whole.plan)


def plan_several(
    queries: Queries,
    spend: Budget,
    remaining: Budget | None,
    split: Split = "least error",
    *,
    charged_in: type[Budget] | None = None,
    compared: bool = True,
) -> PreparedTogether:
    """One plan of several queries, which share the cost. Touches no data: only schemas.

    Queries of the same rows and groups become one, so that their outputs share draws. So do
    queries whose tables are margins of another query's table, if that has a smaller error.

    Parameters
    ----------
    queries
        The queries.
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
        When a query cannot be answered within the measure.
    """
    require_threads()
    if queries.search is not None:
        return plan_with_limit(queries.search, spend, remaining, split, charged_in)
    queries = replace(queries, queries=queries_by_place(queries.queries))
    prepared = Planning(spend, remaining, split, charged_in).together(queries)
    if not compared or not is_forced(queries.queries, prepared.plan.split):
        return prepared
    free = replace(queries, queries=tuple(map(without_mechanisms, queries.queries)))
    try:
        least = plan_several(free, spend, remaining, charged_in=charged_in, compared=False)
        forced = cost_of_forcing(queries.queries, prepared.plan, least.plan)
    except DPFrameError:  # there is nothing beyond the request
        return prepared
    return replace(prepared, plan=replace(prepared.plan, forced=forced))


def schema_of(relation: Relation) -> dict[str, Any]:
    """Names and Polars types of a frame's columns."""
    return polars_schema(relation.facts.columns)
