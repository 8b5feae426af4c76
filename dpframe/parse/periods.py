"""The query of a stream, by public keys and by periods."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from dpframe.aggregates.aggregate import Output, Query
from dpframe.aggregates.nightly import nightly_output, of_individuals
from dpframe.aggregates.reconstructed_error import RunningError
from dpframe.core.units import Identifier
from dpframe.errors import MissingKeys, UnsupportedOperation
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.nights import require_rowwise, require_streamable, through_nights
from dpframe.frames.schedule import PERIOD, Schedule
from dpframe.parse.groups import read_groups, require_few
from dpframe.rows.suggest import unknown_column
from dpframe.workloads import best_tree

__all__ = ["of_first_periods", "read_stream"]


def read_stream(query: Query, schedule: Schedule, pure: bool) -> Query:
    """The query by public keys and periods, whose outputs are drawn night after night: for pure
    epsilon sums of a tree, else those of the square root.

    Raises
    ------
    UnsupportedOperation
        When the query, the frame or the column does not suit a stream.
    MissingKeys
        When keys are not public.
    UnboundedSensitivity
        When no limit holds through all nights.
    """
    relation, keys = query.relation, query.groups
    where = f"stream(..., by={schedule.by!r})"
    require_streamable(relation.facts.unit, schedule.by)
    require_rowwise(relation)
    _require_names(query, where)
    tree = best_tree(schedule.periods) if pure else None
    rule = RunningError(schedule.periods, *((tree.branching, tree.levels) if tree else (0, 0)))
    groups = _groups(query, schedule)
    outputs = tuple(_output(output, rule, query, keys, schedule) for output in query.outputs)
    return Query(relation, groups, outputs)


def _output(
    output: Output, rule: RunningError, query: Query, keys: Groups | None, schedule: Schedule
) -> Output:
    nightly = nightly_output(output, rule, None)
    if not isinstance(query.relation.facts.unit, Identifier):
        return nightly
    through = through_nights(query.relation, keys, schedule, of_individuals(output))
    return nightly_output(output, rule, through)


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
