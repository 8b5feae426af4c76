"""Public keys that divide a frame into parts, and the periods of a stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any
from uuid import uuid4

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.nightly import nightly_output, of_individuals
from dpframe.aggregates.reconstructed_error import RunningError
from dpframe.core.tree import Column
from dpframe.core.units import Identifier
from dpframe.errors import DPFrameError, MissingKeys, UnsupportedOperation
from dpframe.frames.contributions import changed_groups
from dpframe.frames.definition import definition, steps_of
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.nights import (
    PERIOD,
    Schedule,
    Waits,
    require_rowwise,
    require_streamable,
    through_nights,
)
from dpframe.frames.partition import Part, first_parts, key_type
from dpframe.frames.relation import Relation, frames_of
from dpframe.ledger.scopes import Level
from dpframe.mechanisms.salt import fresh_salt
from dpframe.parse.groups import BoundKeys, plain_keys, read_groups, require_few
from dpframe.plan.types_read import types_read
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, outer_words
from dpframe.rows.polars_dtypes import to_polars
from dpframe.rows.suggest import unknown_column
from dpframe.workloads import best_tree

MOST_PARTS = 10_000

LONGEST_KEY = 200
"""Characters of a part's values that ledgers keep; of longer ones a digest."""


def read_parts(
    relation: Relation,
    by: Sequence[object],
    keys: object,
    waits: Waits | None = None,
    *,
    is_fixed: bool,
) -> dict[Any, tuple[Relation, Level]]:
    """The parts of a frame, by key (a value for one column, a tuple for several), and their
    identity in ledgers.

    Named frames are identified by their name, and their parts by the dividing expressions, so
    that the same division finds the earlier charges of a part again.

    Limits on an individual's groups choose the same groups for all parts: with a salt for each
    release an individual could be in other parts each time. `is_fixed` says whether the rows of
    the frame stay as they are meanwhile. Where rows may be added, an individual's new rows may
    change what a limit chooses of it, or its one row, and so bring it into any part. Then all
    parts add up, unless it keeps its first ones.

    `by` and `keys` take the same values as in group-by, and keys may also be parameters of jobs;
    a key that is given twice is one key. All keys must be distinct, in Python and in the engine,
    or all are refused. Parts that wait are those that they are without.
    """
    groups, bound = _keys_of(relation, by, keys)
    if waits is not None:
        _require_periods(relation, groups, waits)
    # an individual may have rows with all keys, and then parts save nothing: a limit is needed
    most = changed_groups(relation.facts, replace(groups, discovered=True))
    first, lasts = _lasting(relation, groups)
    if lasts:
        most = first or most
    elif relation.facts.identifier is not None and not is_fixed:
        most = max(1, groups.size)
    else:
        most = max(1, min(most, groups.size))
    name = _digest(relation, groups, most) if lasts else uuid4().hex
    if relation.facts.identifier is not None and relation.salt is None and not lasts:
        relation = replace(relation, salt=fresh_salt())
    computed = any(not isinstance(n.tree, Column) for n in groups.by) or any(
        step.computes for step, _ in relation.steps
    )
    try:
        made = {
            row[0] if len(row) == 1 else row: (
                relation.then(Part(groups.by, bound.named(row, groups), computed, waits)),
                # Parts of dates or whole numbers are charged in their order.
                Level(name, most, _key(row), None if first is None else _number(*row)),
            )
            for row in groups.keys.rows()
        }
        exact = len(made) == groups.size and _are_exact(groups, relation)
    except DPFrameError:
        raise
    except FAILURES:  # Python does not have all years, nor all moments in them
        exact, made = False, {}
    if not exact:
        raise UnsupportedOperation(
            "some keys are more precise in the frame than Python can hold, so parts could not be "
            "distinguished",
            where=f"partition(frame, {_by(groups)}, keys=...)",
            remedy=("partition by pl.col('t').dt.truncate('1us')", "partition by text"),
        )
    return made


def _keys_of(relation: Relation, by: Sequence[object], keys: object) -> tuple[Groups, BoundKeys]:
    """What divides a frame, with its keys, and which of these are values of parameters."""
    plain, bound = plain_keys(keys)
    try:
        groups = read_groups(by, {}, plain, relation.facts.columns)
    except DPFrameError as error:  # as of the call that was made
        called = ("group_by(", "partition(frame, ")
        where = error.where and error.where.replace(*called)
        remedy = error.remedy and error.remedy.replace(*called)
        raise type(error)(error.what, where=where, why=error.why, remedy=remedy) from None
    bound.require_all(groups)
    if groups.size > MOST_PARTS:
        raise UnsupportedOperation(
            f"there would be {groups.size} parts, more than {MOST_PARTS}",
            where=f"partition(frame, {_by(groups)}, ...)",
            remedy=("use group_by", "partition by a column with fewer values"),
        )
    return groups, bound


def _require_periods(relation: Relation, groups: Groups, waits: Waits) -> None:
    """Refuse delays of parts whose end is unknown."""
    types = [domain(named.tree, relation.facts.columns).dtype for named in groups.by]
    dates = [n for n, dtype in enumerate(types) if dtype.name in ("Date", "Datetime")]
    if len(dates) != 1:
        raise UnsupportedOperation(
            "parts wait for a time after a date, and their keys have "
            + ("no date" if not dates else "several"),
            where="partition(..., delay=...)",
            remedy=("divide by one date or datetime", "leave delay= out"),
        )
    keys = groups.keys.to_series(dates[0])
    if keys.null_count():
        raise UnsupportedOperation(
            "a part of rows without a date never ends, so it would wait for ever",
            where="partition(..., delay=...)",
            remedy=("leave null out of keys", "leave delay= out"),
        )
    try:
        if keys.len():
            waits.due(keys.max(), types[dates[0]].zone)  # type: ignore[arg-type]
    except FAILURES:
        raise UnsupportedOperation(
            "the last of the parts could not be released before the year 9999 ends",
            where="partition(..., delay=...)",
            remedy='use earlier keys or a shorter delay, such as delay="2d"',
        ) from None


def _lasting(relation: Relation, groups: Groups) -> tuple[int | None, bool]:
    """In how many parts an individual's first ones are, where these are kept; and whether what
    parts were charged goes on in other processes.
    """
    named = relation.salt is None and all(frame.named for frame in frames_of(relation))
    if not named or relation.facts.identifier is None:
        return None, named
    if groups.keys.to_series().null_count():
        return None, False
    first = first_parts(relation, groups.by)
    return first, first is not None


def _number(value: date | int) -> int:
    return value.toordinal() if isinstance(value, date) else int(value)


def _digest(relation: Relation, groups: Groups, most: int) -> str:
    """What divides which frame, and how: all that decides in which part a row is, but the keys.

    The types of the columns that are read are among it: a day of the same moment is another one in
    another time zone. Divisions of earlier versions had the types of keys alone; what these
    charged stays, and the same parts begin at zero next to it, which counts too much rather than
    too little.
    """
    by, unit = definition(groups.by), relation.facts.unit
    parts = ["dpframe division 2", relation.name, unit.kind, unit.words(), most]
    whole = [*parts, steps_of(relation), by, types_read(relation, by)]
    if relation.owners is not None:
        whole.append(relation.owners.parts())
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _key(row: tuple[object, ...]) -> str:
    """The values of a part, as JSON; of long ones their digest."""
    text = json.dumps(definition(row), sort_keys=True)
    if len(text) <= LONGEST_KEY:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _are_exact(groups: Groups, relation: Relation) -> bool:
    """Whether keys are the same once Python has held them: nanoseconds are not, nor is the hour
    that comes twice when clocks go back.
    """
    for named, column in zip(groups.by, groups.keys.iter_columns(), strict=True):
        dtype = to_polars(key_type(domain(named.tree, relation.facts.columns).dtype))
        given = column.cast(dtype).drop_nulls()
        try:
            values = given.to_list()
        except FAILURES:  # a date that Python's calendar does not have
            return False
        written = [pl.lit(v, dtype=dtype).alias(str(i)) for i, v in enumerate(values)]
        for i, made in enumerate(pl.select(written).iter_columns()):
            if not made.equals(given[i : i + 1], check_dtypes=True):
                return False
    return True


def _by(groups: Groups) -> str:
    return ", ".join(outer_words(named.tree) for named in groups.by)


# -- Periods --------------------------------------------------------------------------------------


def read_stream(query: Query, schedule: Schedule, pure: bool) -> Query:
    """The query by public keys and periods, whose outputs are drawn night after night: for pure
    epsilon sums of a tree, else those of the square root.
    """
    relation, keys = query.relation, query.groups
    where = f"stream(..., by={schedule.by!r})"
    require_streamable(relation.facts.unit, schedule.by)
    require_rowwise(relation)
    _require_names(query, where)
    tree = best_tree(schedule.periods) if pure else None
    rule = RunningError(schedule.periods, *((tree.branching, tree.levels) if tree else (0, 0)))
    groups = _groups(query, schedule)
    outputs = []
    for output in query.outputs:
        through = None
        if isinstance(relation.facts.unit, Identifier):
            nightly_output(output, rule, None)  # refuses outputs that streams do not have
            through = through_nights(relation, keys, schedule, of_individuals(output))
        outputs.append(nightly_output(output, rule, through))
    return Query(relation, groups, tuple(outputs))


def _require_names(query: Query, where: str) -> None:
    keys = query.groups
    if isinstance(keys, SetGroups) or query.chooses_groups:
        raise UnsupportedOperation(
            "a stream has one grouping with public keys, and all its groups",
            where=where,
            remedy=("open one stream for each grouping", "add up the results"),
        )
    if keys is not None and keys.discovered:
        raise MissingKeys(
            "the keys of a stream are public, and the same through all nights",
            where=where,
            remedy="list them: group_by(..., keys={...})",
        )
    names = [PERIOD, *(() if keys is None else keys.names)]
    for output in query.outputs:
        names += [output.name, f"{output.name}_total"]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedOperation(
            f"the result of the stream would have two columns named {twice!r}",
            where=where,
            remedy="give the output or the key another name, with .alias(...)",
        )


def _groups(query: Query, schedule: Schedule) -> Groups:
    """Public keys and periods: the periods of a key follow one another."""
    columns, keys = query.relation.facts.columns, query.groups
    if schedule.by not in columns:
        raise unknown_column(schedule.by, columns, f"stream(..., by={schedule.by!r})")
    dtype = columns[schedule.by].dtype
    if dtype.name not in ("Date", "Datetime"):
        raise UnsupportedOperation(
            f"periods are those of dates, and {schedule.by!r} is of type {dtype}",
            where=f"stream(..., by={schedule.by!r})",
            remedy="parse it first: .with_columns(day=pl.col(...).str.to_date())",
        )
    day = pl.col(schedule.by)
    day = day.dt.date() if dtype.name == "Datetime" else day
    period = day if schedule.every == "1d" else day.dt.truncate(schedule.every)
    dates = pl.Series(PERIOD, schedule.dates(), dtype=pl.Date)
    by_period = read_groups([], {PERIOD: period}, dates, columns)
    words = f"{schedule.words()}, public because the query names them"
    if keys is None:
        return replace(by_period, origin=words)
    require_few(keys.size * schedule.periods, f"stream(..., periods={schedule.periods})")
    frame = keys.keys.join(by_period.keys, how="cross", maintain_order="left_right")
    return Groups((*keys.by, *by_period.by), frame, f"{keys.origin}; {words}")


def of_first_periods(groups: Groups | None, schedule: Schedule, count: int) -> Groups:
    """The groups of the first periods alone."""
    assert groups is not None
    last = schedule.first(count - 1)
    return replace(groups, keys=groups.keys.filter(pl.col(PERIOD) <= last))
