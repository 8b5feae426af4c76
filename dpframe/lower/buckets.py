"""Exact tables in little memory: of some people at a time.

People are divided into buckets by a salted hash of their identifier, so that all rows of a person
are in one bucket. The tables of each bucket are computed like those of the whole and added up.

Guarantee
---------
The exact tables equal those of all people at once, bit by bit, for any number of buckets.

Proof
-----
Rows without an identifier belong to no individual and are dropped either way. The kept rows and
weights of a person depend on that person's rows, public values and the salt of the release alone
(`dpframe.frames.sampling`), which is the same for all buckets. Frames are joined by the
identifier, and the hash is of its value in a form that all frames have. So the rows after all
steps are those of the buckets together, each in one of them, and so are the pairs of person and
group. Statistics that are sums over rows or over pairs are therefore sums over buckets, of
integers modulo 2**64. Others, such as the number of different values of a column, are computed of
all people at once.

How many buckets there are follows from what was stated and from the sizes of files. No table shows
it. How long a query takes, and how large temporary files are, depends on rows as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import polars as pl

from dpframe.aggregates.statistics import DistinctIndividuals, Statistic
from dpframe.core.dtypes import DType
from dpframe.frames.relation import Relation, frames_of
from dpframe.lower.engines.polars_engine import PolarsEngine
from dpframe.lower.pair_limits import adds_up_over_people
from dpframe.lower.read_once import Frames, Lower, columns_read, hold_rows, read_once, unsure
from dpframe.lower.spill import Sink, Spill, can_sink, can_spill, put_aside
from dpframe.lower.tables import Lowered
from dpframe.progress import part
from dpframe.rows.layouts import grouped

__all__ = ["in_buckets", "people_of"]

Results = list[tuple[tuple[Lowered, ...], list[pl.DataFrame]]]
_VALUE: Final = r"^v\d+$"
"""The columns of an exact result that hold integers; the others identify its group."""


@dataclass(frozen=True, slots=True)
class People:
    """How the people of a frame are distinguished.

    Parameters
    ----------
    identifier, dtype
        The column, and its type.
    """

    identifier: str
    dtype: DType

    def bucket(self, salt: int, buckets: int) -> pl.Expr:
        """The number of the bucket of a row's owner: the same for equal values of any types."""
        key = grouped(pl, pl.col(self.identifier), self.dtype)
        if self.dtype.is_integer and self.dtype.name != "Int128":
            key = key.cast(pl.Int64, strict=False)
        return key.hash(salt) % buckets


def people_of(relations: Sequence[Relation]) -> dict[int, People] | None:
    """Whose rows some frames have, by the token of each; None where some have no identifier."""
    found = dict[int, People]()
    for relation in (frame for one in relations for frame in frames_of(one)):
        who = relation.source.identifier
        if who is None:
            return None
        found[relation.token] = People(who, relation.source.columns[who].dtype)
    return found


def in_buckets(
    engine: PolarsEngine, lower: Lower, frames: Frames, people: Mapping[int, People], salt: int
) -> Results:
    """The results of lowered queries, as `engine.collect` gives them of all people at once."""
    assert engine.room is not None
    by_request = lower(frames)
    queries = [query for found in by_request for query in found]
    chosen = [i for i, query in enumerate(queries) if _adds_up(query)]
    totals: dict[int, pl.DataFrame] = {}
    if chosen:

        def additive(frames: Frames, like: Frames | None = None) -> list[tuple[Lowered, ...]]:
            lowered = [query for found in lower(frames, like) for query in found]
            return [tuple(lowered[i] for i in chosen)]

        with _divide(engine, additive, frames, people, salt) as buckets:
            for lowered, results in _each(engine, (additive(rows)[0] for rows in buckets)):
                for i, query, result in zip(chosen, lowered, results, strict=True):
                    queries[i] = query
                    totals[i] = _add(totals.get(i), query.group(result))
    rest = [i for i in range(len(queries)) if i not in totals]
    if rest:
        with read_once(engine, lower, frames, disk=engine.room.spills) as again:
            anew = [query for found in lower(again) for query in found]
            for i in rest:
                queries[i] = anew[i]
            results = engine.collect([queries[i].frame for i in rest])
        totals |= {i: queries[i].group(found) for i, found in zip(rest, results, strict=True)}
    return _regroup(by_request, queries, totals)


def _each(
    engine: PolarsEngine, buckets: Iterable[tuple[Lowered, ...]]
) -> Iterator[tuple[tuple[Lowered, ...], list[pl.DataFrame]]]:
    """The queries of each bucket and their results: of one after another, or of all at once where a
    function asks for that.
    """
    assert engine.room is not None
    if engine.takes_all:
        every = list(buckets)
        results = iter(engine.collect([query.frame for made in every for query in made]))
        yield from ((made, [next(results) for _ in made]) for made in every)
        return
    for number, made in enumerate(buckets, start=1):
        part("reading the data", number, engine.room.buckets)
        yield made, engine.collect([query.frame for query in made])


def _regroup(
    whole: Sequence[tuple[Lowered, ...]],
    queries: Sequence[Lowered],
    results: Mapping[int, pl.DataFrame],
) -> Results:
    """Queries and their results by what they are requested."""
    made: Results = []
    start = 0
    for asked in whole:
        places = range(start, start + len(asked))
        made.append((tuple(queries[i] for i in places), [results[i] for i in places]))
        start += len(asked)
    return made


def _adds_up(query: Lowered) -> bool:
    """Whether its integers are sums over people."""
    return all(_is_sum(statistic) for statistic in query.statistics)


def _is_sum(statistic: Statistic) -> bool:
    return isinstance(statistic, DistinctIndividuals) or adds_up_over_people(statistic)


def _add(total: pl.DataFrame | None, more: pl.DataFrame) -> pl.DataFrame:
    """The integers of two disjoint sets of people together."""
    if total is None:
        return more
    both = pl.concat([total, more])
    values = pl.col(_VALUE).sum()
    by = [name for name in both.columns if not name.startswith("v")]
    return both.group_by(by).agg(values) if by else both.select(values)


@contextmanager
def _divide(
    engine: PolarsEngine, lower: Lower, frames: Frames, people: Mapping[int, People], salt: int
) -> Iterator[Iterator[dict[int, pl.LazyFrame]]]:
    """The frames with the rows of each bucket, one after another."""
    room = engine.room
    assert room is not None
    count = room.buckets
    own = {token: people[token].bucket(salt, count) for token in frames if token in people}
    if not room.spills or not can_spill() or engine.is_function:
        needed = _held_columns(engine, lower, frames, people)
        yield (
            {**frames, **{t: _of(engine, frames[t], own[t] == k, needed.get(t)) for t in own}}
            for k in range(count)
        )
        return
    form = _held_form(lower, frames) if room.held and can_sink() else None
    needed = columns_read(lower, frames, _identifiers(people), form)
    with ExitStack() as stack:
        spills: dict[int, Sink | Spill] = {}
        for token, bucket in own.items():
            frame, who = frames[token], people[token].identifier
            spill: Sink | Spill = put_aside(frame.collect_schema(), count)
            stack.enter_context(spill)
            known = frame.filter(pl.col(who).is_not_null())
            spill.write(known, bucket, needed[token], engine.optimizations)
            spills[token] = spill
        most = 0 if form is None else room.held
        yield (
            {**frames, **{t: _bucket(s, k, most) for t, s in spills.items()}} for k in range(count)
        )


def _held_form(lower: Lower, frames: Frames) -> Frames | None:
    """Frames in memory without rows, where queries group rows in memory if they have these; None
    where they do not.
    """
    empty = {t: pl.DataFrame(schema=frame.collect_schema()).lazy() for t, frame in frames.items()}
    queries = [query for found in lower(empty) for query in found]
    return empty if all(query.later is not None for query in queries) else None


def _bucket(spill: Sink | Spill, number: int, most: int) -> pl.LazyFrame:
    """The rows of a bucket, in memory where they take no more than this many bytes."""
    if most and isinstance(spill, Sink) and spill.size(number) <= most:
        return spill.hold(number)
    return spill.bucket(number)


def _identifiers(people: Mapping[int, People]) -> dict[int, str]:
    return {token: who.identifier for token, who in people.items()}


def _held_columns(
    engine: PolarsEngine, lower: Lower, frames: Frames, people: Mapping[int, People]
) -> dict[int, list[str]]:
    """The columns read from frames that may have other rows when a pass reads them twice."""
    if engine.is_function or not any(map(unsure, frames.values())):
        return {}
    needed = columns_read(lower, frames, _identifiers(people))
    return {token: names for token, names in needed.items() if unsure(frames[token])}


def _of(
    engine: PolarsEngine, frame: pl.LazyFrame, bucket: pl.Expr, columns: list[str] | None
) -> pl.LazyFrame:
    """The rows of a bucket, in memory if columns are given."""
    rows = frame.filter(bucket)
    return rows if columns is None else hold_rows(rows, columns, engine.optimizations)
