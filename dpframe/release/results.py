"""Results: from noisy integers to the frame that a user gets. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import BoundAggregate, MeasurementKey, Noisy, Output, Query
from dpframe.aggregates.cells import PositionCells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.grouping_sets import AdditiveOfSet
from dpframe.aggregates.margins import CellSums, Margin
from dpframe.aggregates.mean import BoundMean
from dpframe.aggregates.measurement import Additive, Measurement, Selection
from dpframe.aggregates.quantile import BoundQuantile
from dpframe.aggregates.shapes import ONE, Column, Ends
from dpframe.aggregates.sum import MOST_ROWS, BoundSum
from dpframe.aggregates.values import decimal_series
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.groups import Groups, SetGroups
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.release.arithmetic import can_compute, compute_formula
from dpframe.release.asked import Intervals
from dpframe.release.doubts import null_within_noise
from dpframe.release.draw import Draw
from dpframe.release.intervals import interval_of
from dpframe.release.keys import with_some_key
from dpframe.release.missing import MissingRows, plain_aggregate
from dpframe.release.order import in_order
from dpframe.release.sampling import unknown_sampling
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import words
from dpframe.rows.operands import INT64_LIMITS

_TRIED = 1000
"""This many rows are missing on trial."""
_SURELY = 64
"""Noise surely lies within this many deviations, see `_range_of`."""


def assemble(
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    draws: Sequence[Draw] | None = None,
    asked: Intervals | None = None,
    missing: MissingRows | None = None,
) -> pl.DataFrame:
    """The released frame.

    Parameters
    ----------
    query
        The requested intervals.
    noisy
        The noisy integers of each part, by part and mechanism that is requested.
    draws, asked
        What was drawn, and the intervals that are requested; None for none.
    missing
        The rows that a found limit may drop, for intervals.

    Returns
    -------
    polars.DataFrame
        Group keys in their public order, then the outputs. One histogram, or one argmax with
        several winners, alone makes a table with a row per category or rank; with other outputs
        it becomes a column of lists. With intervals, columns `<name>_low` and `<name>_high`
        follow each number.
    """
    noisy = in_order(noisy)
    laws = laws_of(draws or ())
    columns = [_output(output, noisy, laws) for output in query.outputs]
    if draws is not None and asked is not None:
        columns = [
            replace(column, ends=_ends(column, output, query, noisy, draws, asked, missing))
            for column, output in zip(columns, query.outputs, strict=True)
        ]
    columns = [
        _in_scale(column, output.only, noisy)
        for column, output in zip(columns, query.outputs, strict=True)
    ]
    groups = shown_groups(query.groups)
    if len(columns) == 1:
        return columns[0].shape.frame(columns[0], groups)
    keys = [] if groups is None else groups.keys.get_columns()
    made = [series for column in columns for series in column.shape.columns(column, groups)]
    return pl.DataFrame([*keys, *made])


def _ends(
    column: Column,
    output: Output,
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    draws: Sequence[Draw],
    asked: Intervals,
    missing: MissingRows | None,
) -> Ends | None:
    """The interval of an output. For arithmetic it is widened until it holds the result, which may
    lie just outside where Decimals in it were rounded before.
    """
    ends = interval_of(output, query, noisy, draws, asked, missing)
    if ends is None or output.post is None or not column.values.dtype.is_numeric():
        return ends
    low, value, high = map(pl.col, ("low", "value", "high"))
    number = column.values.cast(pl.Float64).alias("value")
    frame = pl.DataFrame([ends[0].alias("low"), number, ends[1].alias("high")]).select(
        low=pl.when(value.is_finite() & (value < low)).then(value).otherwise(low),
        high=pl.when(value.is_finite() & (value > high)).then(value).otherwise(high),
    )
    return frame["low"].alias(ends[0].name), frame["high"].alias(ends[1].name)


def check_post(query: Query) -> None:
    """Try the post-processing of each output on zeros, before anything is charged.

    Raises
    ------
    UnsupportedOperation
        When it cannot be computed from results of such types.
    """
    _check_names(query)
    for output in query.outputs:
        if output.post is None:
            continue
        for aggregate in output.aggregates.values():
            if aggregate.shape.is_table:
                raise UnsupportedOperation(
                    f"arithmetic with the result of {aggregate.request.kind}, which is "
                    "a table, is not possible",
                    where=output.words,
                    remedy="compute on the released table, which costs nothing",
                )
        keys = [key for aggregate in output.aggregates.values() for key in aggregate.keys]
        try:
            _output(output, {key: np.zeros(_least_shape(key[0], query), np.int64) for key in keys})
        except DPFrameError:
            raise
        except FAILURES as error:
            raise UnsupportedOperation(
                f"the results cannot be combined like this ({type(error).__name__})",
                where=output.words,
                remedy="compute it from the released table, which costs nothing",
            ) from None


def _check_names(query: Query) -> None:
    """Refuse a table, or a list of structs, that would have two columns of one name."""
    alone = len(query.outputs) == 1
    for output in query.outputs:
        names = [] if output.only is None else output.only.shape.names(output.name)
        if names and alone and query.groups is not None:
            names += query.groups.names
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UnsupportedOperation(
                f"the table would have two columns named {twice!r}",
                where=output.words,
                remedy="rename the column before, with .rename({...}) or .alias(...)",
            )


def rehearse(queries: Iterable[tuple[Query, Sequence[Draw]]], asked: Intervals | None) -> None:
    """Assemble the released frames from made-up numbers, for the first keys: what fails would do so
    after the charge.

    Parameters
    ----------
    queries
        The queries, and what is drawn for each.
    asked
        The intervals that are requested, if any.

    Raises
    ------
    UnsupportedOperation
        When the results have no place in a frame, or one has no interval that is requested.
    """
    for query, draws in queries:
        _try(query, draws, asked)


def made_up_result(query: Query) -> pl.DataFrame:
    """A result of made-up numbers for one key, with the columns and types that results have."""
    query = with_some_key(query)
    sets = isinstance(query.groups, SetGroups)
    if query.groups is not None and query.groups.size > 1 and not sets and not query.chooses_groups:
        query = replace(query, groups=replace(query.groups, keys=query.groups.keys.head(1)))
    made = assemble(query, _trial(query, 1000, 0))
    # a Decimal of 0 fails where it divides
    return made.with_columns(
        pl.lit(1000).cast(dtype).alias(name)
        for name, dtype in made.schema.items()
        if isinstance(dtype, pl.Decimal)
    )


def _try(query: Query, draws: Sequence[Draw], asked: Intervals | None) -> None:
    """Assemble the frame of one query on trial."""
    several = query.groups is not None and query.groups.size > 1
    margins = any(isinstance(part, Margin) for a in query.aggregates for part, _ in a.keys)
    sets = margins or isinstance(query.groups, SetGroups)  # related tables are margins, too
    if several and not sets and not query.chooses_groups:
        assert query.groups is not None
        query = replace(query, groups=replace(query.groups, keys=query.groups.keys.head(1)))
    posts = any(output.post is not None for output in query.outputs)
    missing = MissingRows.of(query, _TRIED, _TRIED)
    trials = ((0, 0), (1000, 0), (-1000, -1))[:: 1 if posts else 2]
    lacking = list[Output]()
    try:
        for trial in trials:
            assemble(query, _trial(query, *trial), draws, asked, missing)
        if asked is not None:
            noisy = in_order(_trial(query, 0, 0))
            lacking = [
                output
                for output in query.outputs
                if not output.interval_optional
                and interval_of(output, query, noisy, draws, asked, missing) is None
            ]
    except DPFrameError:
        raise
    except FAILURES as error:
        raise UnsupportedOperation(
            f"the results do not fit into a table ({type(error).__name__}); nothing was charged",
            remedy=("simplify the query", "compute on the released results"),
        ) from None
    if lacking and asked is not None:
        raise no_interval(lacking[0], query, asked)


def no_interval(output: Output, query: Query, asked: Intervals) -> UnsupportedOperation:
    """The refusal of intervals where an output has none, with what to write instead."""
    apart = "leave interval= out, or ask for it in a query of its own without interval="
    for aggregate in output.aggregates.values():
        if isinstance(aggregate, BoundQuantile):
            column = words(aggregate.value.tree)
            return UnsupportedOperation(
                f"{output.name!r} has no interval",
                where=output.words,
                why="a quantile is chosen by ranks, and the distance of ranks in values "
                "is not released",
                remedy=(
                    f"release quantiles on either side of it: {column}.dp_quantile([q "
                    "- d, q, q + d], bounds)",
                    f"{apart}",
                ),
            )
        if not all(isinstance(part, (Additive, Margin, CellSums)) for part, _ in aggregate.keys):
            return UnsupportedOperation(
                f"{output.name!r} has no interval",
                where=output.words,
                why="only the chosen value is released, and not the numbers that decide",
                remedy=(
                    "count the candidates, group_by(column, "
                    "keys=[...]).agg(dp.count()), which have intervals",
                    f"{apart}",
                ),
            )
    if asked.sampling:
        for aggregate in output.aggregates.values():
            if why := unknown_sampling(aggregate, query):
                return UnsupportedOperation(
                    f"{output.name!r} has no known sampling error: {why}",
                    where=output.words,
                    remedy=(
                        "leave sampling= out: the interval then covers the noise alone",
                        "collect it in its own query",
                    ),
                )
    return UnsupportedOperation(
        f"{output.name!r} has no interval",
        where=output.words,
        why="its error does not follow from those of its parts",
        remedy=(
            "leave interval= out",
            "release its numbers, which have intervals, and compute it from them",
        ),
    )


def _trial(query: Query, number: int, place: int) -> dict[MeasurementKey, Noisy]:
    """Noisy integers that are all one number, and the first or the last candidates."""
    scope = query.scope
    groups = 1 if query.groups is None else query.groups.size
    trial: dict[MeasurementKey, Noisy] = {}
    for part, mechanism in (key for aggregate in query.aggregates for key in aggregate.keys):
        if isinstance(part, Selection):
            shape, value = (part.entries(scope), part.chosen), place % part.candidates
        elif isinstance(part, (Margin, AdditiveOfSet)):
            shape, value = (part.entries(scope), 1), number
        elif isinstance(part, CellSums):
            shape, value = (groups, part.numbers), number
        else:
            cells = part.tables[0].cells
            shape, value = (groups, 1 if cells is None else cells.size), number
        trial[part, mechanism] = np.full(shape, value, dtype=np.int64)
    return trial


def shown_groups(groups: Groups | None) -> Groups | None:
    """The groups as they stand in a result: those of all grouping sets."""
    return groups.shown() if isinstance(groups, SetGroups) else groups


def _least_shape(part: Measurement, query: Query) -> tuple[int, int]:
    """Of numbers on which post-processing can be tried."""
    several = isinstance(part, Margin) or isinstance(query.groups, SetGroups)
    return (part.entries(query.scope), 1) if several else (1, 1)


def laws_of(draws: Iterable[Draw]) -> dict[MeasurementKey, Mechanism]:
    """The mechanism of each part on its own."""
    return {key: law for one in draws for key, law in one.noises().items()}


def _output(
    output: Output,
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Mapping[MeasurementKey, Mechanism] = MappingProxyType({}),
) -> Column:
    columns = {p: aggregate_column(a, noisy) for p, a in output.aggregates.items()}
    if laws:
        columns = {
            p: replace(column, values=null_within_noise(a, column.values, noisy, laws))
            for (p, column), a in zip(columns.items(), output.aggregates.values(), strict=True)
        }
    if output.post is not None:
        columns = {p: _in_scale(c, output.aggregates[p], noisy) for p, c in columns.items()}
    return output_column(output, columns, laws)


def _in_scale(
    column: Column, aggregate: BoundAggregate | None, noisy: Mapping[MeasurementKey, Noisy]
) -> Column:
    """A sum of a Decimal column as Decimal; other columns unchanged."""
    summed = None if aggregate is None else plain_aggregate(aggregate)
    if aggregate is None or not isinstance(summed, BoundSum) or summed.scale is None:
        return column
    floats = column.values.to_list()
    keys = aggregate.keys
    exact = summed.decimals([noisy[key] for key in keys]) if summed is aggregate else floats
    numbers = [None if old is None else new for old, new in zip(floats, exact, strict=True)]
    values = decimal_series(column.values.name, numbers, summed.scale)
    if column.ends is None:
        return replace(column, values=values)
    low, high = column.ends
    ends = (
        decimal_series(low.name, low.to_list(), summed.scale, up=False),
        decimal_series(high.name, high.to_list(), summed.scale, up=True),
    )
    return replace(column, values=values, ends=ends)


def output_column(
    output: Output,
    columns: Mapping[str, Column],
    laws: Mapping[MeasurementKey, Mechanism] = MappingProxyType({}),
) -> Column:
    """An output from the results of its aggregates, by placeholder.

    Raises
    ------
    UnsupportedOperation
        When the results cannot be combined, or no type surely holds what comes out.
    """
    if output.post is None:
        (column,) = columns.values()
        return replace(column, values=column.values.alias(output.name))
    frame = pl.DataFrame([c.values.alias(p) for p, c in columns.items()])
    if output.post_tree is None or not can_compute(frame):
        return Column(frame.select(output.post.alias(output.name)).to_series(), ONE)
    ranges = {p: _range_of(a, frame.schema[p], laws) for p, a in output.aggregates.items()}
    try:
        values = compute_formula(output.post_tree, frame, ranges)
    except DPFrameError as error:
        raise error.at(output.words) from None
    return Column(values.alias(output.name), ONE)


def _range_of(
    aggregate: BoundAggregate, dtype: pl.DataType, laws: Mapping[MeasurementKey, Mechanism]
) -> Interval:
    """Between what a result surely lies, in the units of its type: the exact result for as many
    rows as an engine groups, and noise, where its law is known.

    Noise of a log-concave law is within `_SURELY` deviations with odds of 1 - 2**-90 and more
    (Lovasz and Vempala 2007, lemma 5.17).
    """
    plain = plain_aggregate(aggregate)
    match plain:
        case BoundSum():
            most = max(map(abs, plain.bounds)) * MOST_ROWS
            if dtype == pl.Duration("ms"):
                most = most * 1_000 / plain.value.domain.dtype.units_per_second
        case BoundCount():
            most = Fraction(MOST_ROWS)
        case BoundMean():
            return Interval(*plain.bounds)
        case BoundQuantile(cells=PositionCells(candidates=listed)):
            return Interval(listed[0], listed[-1])
        case BoundQuantile() if plain.bounds is not None:
            return Interval(*plain.bounds)
        case _ if dtype == pl.Boolean:
            return UNIT
        case _:
            return interval(*INT64_LIMITS) if dtype.is_integer() else EVERYTHING
    for part, mechanism in aggregate.keys:
        law = laws.get((part, mechanism))
        if isinstance(law, AdditiveMechanism):
            most += _SURELY * math.ceil(math.sqrt(law.variance())) * part.step
    return Interval(-most, most)


def aggregate_column(aggregate: BoundAggregate, noisy: Mapping[MeasurementKey, Noisy]) -> Column:
    """The result of one aggregate."""
    return Column(aggregate.combine([noisy[key] for key in aggregate.keys]), aggregate.shape)
