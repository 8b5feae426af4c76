"""Results: from noisy integers to the frame that a user gets. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import BoundAggregate, Clamp, MeasurementKey, Noisy, Output, Query
from dpframe.aggregates.cells import Cells, PositionCells
from dpframe.aggregates.count import BoundCount
from dpframe.aggregates.draw import Draw
from dpframe.aggregates.histogram import BoundHistogram
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.mean import BoundMean
from dpframe.aggregates.measurement import COUNT, Additive, Measurement, Selection
from dpframe.aggregates.quantile import POINTS, BoundQuantile, QuantileChoice
from dpframe.aggregates.ratio import BoundRatio
from dpframe.aggregates.shapes import ONE, Column, Ends
from dpframe.aggregates.sum import MOST_ROWS, BoundSum
from dpframe.aggregates.values import as_series, decimal_series, show_value
from dpframe.core.dtypes import Columns
from dpframe.core.interval import EVERYTHING, UNIT, Interval, interval
from dpframe.core.tree import Call, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.frames.groups import Groups, SetGroups
from dpframe.ledger.ledger import Beginning
from dpframe.mechanisms import AdditiveMechanism, Mechanism
from dpframe.release.arithmetic import can_compute, compute_formula
from dpframe.release.intervals import (
    Intervals,
    MissingRows,
    interval_of,
    plain_aggregate,
    unknown_sampling,
)
from dpframe.rows.failures import FAILURES
from dpframe.rows.fold import domain, words
from dpframe.rows.operands import INT64_LIMITS

# Quantiles of one column in their order.


def in_order(noisy: Mapping[MeasurementKey, Noisy]) -> dict[MeasurementKey, Noisy]:
    """The same results where a larger quantile of the same candidates is no smaller: the codes of
    each group are sorted, which brings them nearer to the exact ones and is post-processing.
    """
    result = dict(noisy)
    families: dict[Cells, list[tuple[QuantileChoice, str]]] = {}
    for part, mechanism in noisy:
        if isinstance(part, QuantileChoice):
            families.setdefault(part.cells, []).append((part, mechanism))
    for keys in families.values():
        rising = sorted(keys, key=lambda key: key[0].q)
        codes = np.sort(np.concatenate([noisy[key] for key in rising], axis=1), axis=1)
        result |= {key: codes[:, i : i + 1] for i, key in enumerate(rising)}
    return result


# Doubts that follow from noisy numbers: results rest on no rows, or are at bounds of values.
#
# All of it is computed from noisy numbers and from the laws of their noise: post-processing, which
# costs nothing and reads no data.


Laws: TypeAlias = "Mapping[MeasurementKey, Mechanism]"
Floats: TypeAlias = "NDArray[np.float64]"
Bools: TypeAlias = "NDArray[np.bool_]"

LEVEL: Final = Fraction(95, 100)
"""A number that noise alone stays above no oftener than 1 in 20 says nothing."""
_SURE: Final = Fraction(999, 1000)
"""The probability that a mean of values that are all clamped is within noise of the bound."""
_NEAR: Final = 0.05
"""Noise of more than this share of the bounds says nothing about what is at them."""
_CLIPS: Final = ("clip", "clip_between")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A doubt about a result.

    Parameters
    ----------
    kind
        The name of a class of warnings.
    words
        A sentence.
    """

    kind: str
    words: str


def null_within_noise(
    aggregate: BoundAggregate, found: pl.Series, noisy: Mapping[MeasurementKey, Noisy], laws: Laws
) -> pl.Series:
    """A result without the numbers whose noisy count is within its noise of 0: those would be one
    noise divided by another.
    """
    if aggregate.rests_on is None:
        return found
    rests = ~_within_noise(aggregate.keys[aggregate.rests_on], noisy, laws)
    if rests.all():
        return found
    frame = pl.DataFrame([found.alias("number"), pl.Series("rests", rests)])
    return frame.select(pl.when("rests").then("number").alias(found.name)).to_series()


def _within_noise(key: MeasurementKey, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Bools:
    """Whether the noisy count of each group is no larger than noise alone, with 95%."""
    return noisy[key].reshape(-1) <= _reach(laws[key])


def _reach(law: Mechanism, cells: int = 1, level: Fraction = LEVEL) -> int:
    assert isinstance(law, AdditiveMechanism)
    return law.quantile(level, cells)


def doubts_of(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> tuple[Doubt, ...]:
    """The doubts about results that follow from a query's noisy numbers, each once."""
    found = [*_of_no_rows(query, noisy, laws), *_of_bounds(query, noisy, laws)]
    return tuple(dict.fromkeys(found))


def _of_no_rows(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Iterator[Doubt]:
    for output in query.outputs:
        for aggregate in output.aggregates.values():
            if (small := _without_rows(aggregate, query, noisy, laws)) is not None and small.any():
                verb = "rests on no rows" if isinstance(aggregate, BoundQuantile) else "is null"
                yield Doubt(
                    "NoRows",
                    f"{output.name!r} {verb}{_where(small)}, where its noisy count is within the "
                    "95% bound of its noise: perhaps no row has a value there. Check casts, date "
                    "formats, filters and keys, which may fit no row, or spend more",
                )
        if output.only is not None and (size := _all_small(output.only, noisy, laws)):
            yield Doubt(
                "NoRows",
                f"all {size} numbers of {output.name!r} are within the 95% bound of their noise: "
                "perhaps no row is in any of these groups. Check casts, date formats, filters "
                "and keys, which may fit no row, or spend more",
            )


def _without_rows(
    aggregate: BoundAggregate, query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws
) -> Bools | None:
    """The groups in which an aggregate rests on no rows within noise; None if there are none."""
    if aggregate.rests_on is not None:
        return _within_noise(aggregate.keys[aggregate.rests_on], noisy, laws)
    if isinstance(aggregate, BoundRatio):
        return aggregate.combine([noisy[key] for key in aggregate.keys]).is_null().to_numpy()
    if isinstance(aggregate, BoundQuantile):
        key = _count_beside(aggregate, query)
        return None if key is None else _within_noise(key, noisy, laws)
    return None


def _count_beside(aggregate: BoundAggregate, query: Query) -> MeasurementKey | None:
    """What counts the rows of an aggregate's values in the same query, if anything does."""
    for other in query.aggregates:
        if isinstance(other, BoundCount) and not other.of_totals:
            (key,) = other.keys
            same = other.request.tree == aggregate.request.tree
            if isinstance(key[0], Additive) and (same or key[0] == COUNT):
                return key
    return None


def _all_small(aggregate: BoundAggregate, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> int:
    """How many counts an aggregate has, if there are several and all are within their noise."""
    if not isinstance(aggregate, (BoundCount, BoundHistogram)):
        return 0
    (key,) = aggregate.keys
    law = laws[key]
    if not isinstance(key[0], Additive) or not isinstance(law, AdditiveMechanism):
        return 0
    numbers = noisy[key]
    if numbers.size < 2 or (np.abs(numbers) > _reach(law, numbers.size)).any():
        return 0
    return int(numbers.size)


def _of_bounds(query: Query, noisy: Mapping[MeasurementKey, Noisy], laws: Laws) -> Iterator[Doubt]:
    columns = query.relation.facts.columns
    for output in query.outputs:
        for aggregate in output.aggregates.values():
            if not isinstance(aggregate, (BoundMean, BoundSum, BoundQuantile)):
                continue
            for clamp in aggregate.clamps:
                for upper in (False, True):
                    if not _may_exceed(clamp, columns, upper=upper):
                        continue
                    at = _at_bound(aggregate, query, noisy, laws, upper=upper)
                    if 2 * at.sum() < max(at.size, 1):  # of few groups noise alone may do it
                        continue
                    end = show_value(clamp.bounds[upper], aggregate.value.domain.dtype)
                    which = "upper" if upper else "lower"
                    at_it = f"at its {which} bound {end}, or within noise of it"
                    if isinstance(aggregate, BoundSum):
                        at_it = f"what it would be if all values were {end}, within noise"
                    yield Doubt(
                        "ValuesAtBounds",
                        f"{output.name!r} is {at_it}"
                        f"{_where(at)}: many values are at this bound or beyond it, or the bounds "
                        "are far wider than the values; give bounds in the unit of the column",
                    )


def _may_exceed(clamp: Clamp, columns: Columns, *, upper: bool) -> bool:
    """Whether something may be clamped to a bound, by the aggregate or by a clip that it is of."""
    end = clamp.bounds[upper]
    if clamp.per_unit:
        return True
    tree: Tree = clamp.tree
    while True:
        known = domain(tree, columns)
        limit = known.interval.hi if upper else known.interval.lo
        if known.dtype.is_boolean:
            return False
        if limit is None or (limit > end if upper else limit < end):
            return True
        if not isinstance(tree, Call) or tree.operation.name not in _CLIPS:
            return False
        tree = tree.args[0]


def _at_bound(
    aggregate: BoundMean | BoundSum | BoundQuantile,
    query: Query,
    noisy: Mapping[MeasurementKey, Noisy],
    laws: Laws,
    *,
    upper: bool,
) -> Bools:
    """In which groups the result is at a bound, or within noise of it."""
    if isinstance(aggregate, BoundQuantile):
        return _where_at_bound(aggregate, noisy, upper=upper)
    lo, hi = map(float, aggregate.bounds)
    if isinstance(aggregate, BoundMean):
        total_key, count_key = aggregate.keys
        centre = float(aggregate.grid.centre)
    else:
        found = None if aggregate.per == "unit" else _count_beside(aggregate, query)
        if found is None:
            return np.zeros(0, dtype=np.bool_)
        (total_key,), count_key, centre = aggregate.keys, found, 0.0
    step = float(total_key[0].step)
    total = noisy[total_key].reshape(-1).astype(np.float64) * step
    count = noisy[count_key].reshape(-1).astype(np.float64)
    farthest = max(abs(lo - centre), abs(hi - centre))
    noise = _reach(laws[total_key], level=_SURE) * step
    noise += farthest * _reach(laws[count_key], level=_SURE)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, reach = centre + total / count, noise / count
        near = mean + reach >= hi if upper else mean - reach <= lo
        known = (count > _reach(laws[count_key])) & (reach <= _NEAR * (hi - lo))
    return near & known


def _where_at_bound(
    aggregate: BoundQuantile, noisy: Mapping[MeasurementKey, Noisy], *, upper: bool
) -> Bools:
    """In which groups a chosen value that is not meant to be the least or greatest is a bound."""
    if aggregate.bounds is None:
        return np.zeros(0, dtype=np.bool_)
    found = aggregate.combine([noisy[key] for key in aggregate.keys])
    dtype = aggregate.value.domain.dtype
    inner = [q not in (0, 1) for q in aggregate.quantiles]
    numbers = found.explode() if aggregate.is_list else found
    ends = as_series("ends", np.array([*map(float, aggregate.bounds)]), dtype)
    lo, hi = ends.to_physical().cast(pl.Float64).to_list()
    values = numbers.to_physical().cast(pl.Float64).to_numpy().reshape(-1, len(inner))
    step = (hi - lo) / POINTS
    at = values >= hi - step if upper else values <= lo + step
    return np.asarray((at & np.array(inner)).any(axis=1), dtype=np.bool_)


def _where(groups: Bools) -> str:
    """In how many groups, where there are several."""
    if groups.size < 2:
        return ""
    return f" in {int(groups.sum()):,} of {groups.size:,} groups"


# How results are stored, as the code that runs queries sees it.


Doubts: TypeAlias = "tuple[tuple[Doubt, ...], ...]"

Written: TypeAlias = "Callable[[int, Sequence[pl.DataFrame], Doubts, int | None], str | None]"


@dataclass(frozen=True, slots=True)
class Keep:
    """Results to be stored.

    Parameters
    ----------
    beginning
        The record that is written together with the charge.
    write
        Stores the results of a charge, by its number, with doubts about them and the limit that
        the query found. Returns the digest of the content; None if it could not be stored.
    """

    beginning: Beginning
    write: Written


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


def with_some_key(query: Query) -> Query:
    """The query with a made-up key if none exist so far."""
    groups = query.groups
    if groups is None or not groups.discovered:
        return query
    none = {name: [None] for name in groups.keys.columns}
    return replace(query, groups=groups.with_keys(pl.DataFrame(none, schema=groups.keys.schema)))


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


def make_up_result(query: Query) -> pl.DataFrame:
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
    sets = isinstance(query.groups, SetGroups) or any(  # related tables are margins, too
        isinstance(part, Margin) and part.is_by_sets
        for aggregate in query.aggregates
        for part, _ in aggregate.keys
    )
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
        if not all(isinstance(part, (Additive, Margin, RootSums)) for part, _ in aggregate.keys):
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
    for aggregate in query.aggregates:
        for part, mechanism in aggregate.keys:
            value = place % part.candidates if isinstance(part, Selection) else number
            trial[part, mechanism] = np.full(part.shape(groups, scope), value, dtype=np.int64)
    return trial


def shown_groups(groups: Groups | None) -> Groups | None:
    """The groups as they stand in a result: those of all grouping sets."""
    return groups.result_groups() if isinstance(groups, SetGroups) else groups


def _least_shape(part: Measurement, query: Query) -> tuple[int, int]:
    """Of numbers on which post-processing can be tried."""
    margin = isinstance(part, Margin) and part.is_by_sets
    several = margin or isinstance(query.groups, SetGroups)
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
