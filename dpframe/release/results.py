"""Results: from noisy integers to the frame that a user gets. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import Noisy
from dpframe.aggregates.part import Part, Selection
from dpframe.aggregates.query import Output, Query
from dpframe.aggregates.registry import BY_KIND
from dpframe.aggregates.request import Request, Scope
from dpframe.errors import UnsupportedOperation
from dpframe.release.intervals import Ends, Laws, interval_of
from dpframe.rows.failures import FAILURES


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A result.

    Parameters
    ----------
    values
        One entry per group, or for tables one per group and row of `expanded`.
    expanded
        The public columns beside it, for tables.
    ends
        Its interval.
    """

    values: pl.Series
    expanded: pl.DataFrame | None
    ends: Ends | None = None


def assemble(
    query: Query,
    noisy: Mapping[tuple[Part, str], Noisy],
    laws: Laws | None = None,
    confidence: Fraction | None = None,
) -> pl.DataFrame:
    """The released frame.

    Parameters
    ----------
    query
        What was asked.
    noisy
        The noisy integers of each part, by part and mechanism that was asked for.
    laws, confidence
        The parts' mechanisms, and the confidence of intervals; None for no intervals.

    Returns
    -------
    polars.DataFrame
        Group keys in their public order, then the outputs. One histogram, or one argmax with
        several winners, alone makes a table with a row per category or rank; beside other outputs
        it becomes a column of lists. With a confidence, columns `<name>_low` and `<name>_high`
        follow each number.
    """
    scope = query.scope
    columns = [_output(output, scope, noisy) for output in query.outputs]
    if laws is not None and confidence is not None:
        columns = [
            replace(column, ends=interval_of(output, scope, noisy, laws, confidence))
            for column, output in zip(columns, query.outputs, strict=True)
        ]
    only = query.outputs[0]
    if len(columns) == 1 and only.post is None:
        (request,) = only.requests.values()
        if request.parameters.get("best_group"):
            return _winners(query, columns[0])
        if columns[0].expanded is not None:
            return _table(query, columns[0])
    keys = [] if query.groups is None else query.groups.keys.get_columns()
    size = 1 if query.groups is None else query.groups.size
    made: list[pl.Series] = []
    for column, output in zip(columns, query.outputs, strict=True):
        if column.expanded is None:
            made += _with_ends(column.values, column.ends)
            continue
        made.append(_nested(column, size, output))
        if column.ends is not None:
            rows = column.expanded.height
            made += [_lists(end, rows, name) for end, name in _named_ends(output.name, column.ends)]
    return pl.DataFrame([*keys, *made])


def _with_ends(values: pl.Series, ends: Ends | None) -> list[pl.Series]:
    """A column, with the ends of its interval after it."""
    if ends is None:
        return [values]
    return [values, *(end.alias(name) for end, name in _named_ends(values.name, ends))]


def _named_ends(name: str, ends: Ends) -> tuple[tuple[pl.Series, str], ...]:
    return (ends[0], f"{name}_low"), (ends[1], f"{name}_high")


def check_post(query: Query) -> None:
    """Try the post-processing of each output on zeros, before anything is charged.

    Raises
    ------
    UnsupportedOperation
        When it cannot be computed from results of such types.
    """
    scope = query.scope
    _check_names(query)
    for output in query.outputs:
        if output.post is None:
            continue
        zeros: dict[tuple[Part, str], Noisy] = {}
        for request in output.requests.values():
            if BY_KIND[request.kind].expand(request, scope) is not None:
                raise UnsupportedOperation(
                    f"arithmetic with a table, such as a {request.kind} has, is not defined",
                    where=output.words,
                    remedy="compute on the released table instead: it is post-processing and free",
                )
            for use in BY_KIND[request.kind].uses(request, scope):
                zeros[(use.part, request.mechanism)] = np.zeros((1, 1), dtype=np.int64)
        try:
            _output(output, scope, zeros)
        except FAILURES as error:
            raise UnsupportedOperation(
                f"the results cannot be combined like this ({type(error).__name__})",
                where=output.words,
                remedy="combine numbers with numbers; everything else can be done after release",
            ) from None


def _check_names(query: Query) -> None:
    """Refuse a table, or a list of structs, that would have two columns of one name."""
    alone = len(query.outputs) == 1
    for output in query.outputs:
        names = _table_names(output, query.scope)
        if names and alone and query.groups is not None:
            names += query.groups.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UnsupportedOperation(
                f"the table would have two columns named {twice!r}",
                where=output.words,
                remedy="rename the column before, with .rename({...}) or .alias(...)",
            )


def _table_names(output: Output, scope: Scope) -> list[str]:
    """The columns of a table beside its keys; none for an output that is no table."""
    if output.post is not None:
        return []
    (request,) = output.requests.values()
    expanded = BY_KIND[request.kind].expand(request, scope)
    if expanded is None:
        return []
    if request.kind == "argmax":
        return ["rank"] if request.parameters.get("best_group") else [output.name, "rank"]
    binned = expanded.width > 1
    return [output.name, *(("lower", "upper") if binned else ()), "count"]


def rehearse(query: Query, laws: Laws, confidence: Fraction | None) -> None:
    """Assemble the released frame from made-up numbers, for the first keys: what fails would do so
    after the charge.

    Raises
    ------
    UnsupportedOperation
        When the results have no place in a frame.
    """
    most = max(
        (int(r.parameters.get("k", 1)) for o in query.outputs for r in o.requests.values()),
        default=1,
    )
    if query.groups is not None and query.groups.size > most:
        first = replace(query.groups, keys=query.groups.keys.head(most))
        query = replace(query, groups=first)
    posts = any(output.post is not None for output in query.outputs)
    trials = ((0, 0), (1000, 0), (-1000, -1))[:: 1 if posts else 2]
    try:
        made = [assemble(query, _trial(query, *trial), laws, confidence) for trial in trials]
    except FAILURES as error:
        raise UnsupportedOperation(
            f"the results cannot be put into a frame ({type(error).__name__}); nothing was charged",
            remedy="compute on the released results instead, or simplify the query",
        ) from None
    if confidence is not None and made[0].width == assemble(query, _trial(query, 0, 0)).width:
        raise UnsupportedOperation(
            "no result of the query has an interval",
            where=query.outputs[0].words,
            remedy="leave interval= out; plan.accuracy(...) says how far the score of a selection "
            "may be from the best",
        )


def _trial(query: Query, number: int, place: int) -> dict[tuple[Part, str], Noisy]:
    """Noisy integers that are all one number, and the first or the last candidates."""
    scope = query.scope
    groups = 1 if query.groups is None else query.groups.size
    trial: dict[tuple[Part, str], Noisy] = {}
    for output in query.outputs:
        for request in output.requests.values():
            for use in BY_KIND[request.kind].uses(request, scope):
                part = use.part
                if isinstance(part, Selection):
                    shape, value = (part.entries(scope), part.rounds), place % part.candidates
                else:
                    cells = part.tables[0].cells
                    shape, value = (groups, 1 if cells is None else cells.size), number
                trial[(part, request.mechanism)] = np.full(shape, value, dtype=np.int64)
    return trial


def _is_ranking(output: Output) -> bool:
    """Whether a table holds winners and their ranks, not categories and their counts."""
    return all(request.kind == "argmax" for request in output.requests.values())


def _output(output: Output, scope: Scope, noisy: Mapping[tuple[Part, str], Noisy]) -> Column:
    return output_column(
        output, {p: request_column(r, scope, noisy) for p, r in output.requests.items()}
    )


def output_column(output: Output, columns: Mapping[str, Column]) -> Column:
    """An output from the results of its requests, by placeholder."""
    if output.post is None:
        (column,) = columns.values()
        if column.expanded is None:
            return Column(column.values.alias(output.name), None)
        return column
    frame = pl.DataFrame([c.values.alias(p) for p, c in columns.items()])
    values = frame.select(output.post.alias(output.name)).to_series()
    return Column(values, None)


def request_column(
    request: Request, scope: Scope, noisy: Mapping[tuple[Part, str], Noisy]
) -> Column:
    """The result of one aggregate."""
    aggregate = BY_KIND[request.kind]
    uses = aggregate.uses(request, scope)
    values = [noisy[(use.part, request.mechanism)] for use in uses]
    return Column(aggregate.combine(request, scope, values), aggregate.expand(request, scope))


def _table(query: Query, column: Column) -> pl.DataFrame:
    """One row per group and category (or winner, with its rank)."""
    assert column.expanded is not None
    rows = column.expanded.height
    (only,) = query.outputs
    ranking = _is_ranking(only)
    made = _with_ends(column.values.alias(only.name if ranking else "count"), column.ends)
    size = 1 if query.groups is None else query.groups.size
    tiled = pl.concat([column.expanded] * size) if size else column.expanded.clear()
    table = tiled.select(*made, pl.all()) if ranking else tiled.with_columns(made)
    if query.groups is None:
        return table
    keys = query.groups.keys
    repeated = keys.select(pl.all().repeat_by(rows).explode()) if keys.height else keys
    return pl.concat([repeated, table], how="horizontal")


def _nested(column: Column, size: int, output: Output) -> pl.Series:
    """A column with one list per group: of structs for histograms, of winners for ranks."""
    assert column.expanded is not None
    rows = column.expanded.height
    if _is_ranking(output):
        flat = column.values
    else:
        tiled = pl.concat([column.expanded] * size) if size else column.expanded.clear()
        flat = tiled.with_columns(column.values).to_struct()
    return _lists(flat, rows, output.name)


def _lists(flat: pl.Series, rows: int, name: str) -> pl.Series:
    """One list of `rows` values per group."""
    numbers = pl.int_range(len(flat), eager=True) // rows
    frame = pl.DataFrame({"i": numbers, "v": flat})
    return frame.group_by("i", maintain_order=True).agg("v")["v"].alias(name)


def _winners(query: Query, column: Column) -> pl.DataFrame:
    """The keys of the best groups, in order of selection."""
    assert query.groups is not None
    rows = query.groups.keys[column.values.to_list()]
    return rows if column.expanded is None else rows.with_columns(column.expanded)
