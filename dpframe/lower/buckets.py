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

import io
import os
import re
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Final, Protocol, Self

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.aggregates.statistics import DistinctIndividuals, Statistic
from dpframe.core.dtypes import DType
from dpframe.frames.relation import Relation, frames_of
from dpframe.lower.engines.polars_engine import POLARS, PolarsEngine
from dpframe.lower.pair_limits import adds_up_over_people
from dpframe.lower.tables import Lowered
from dpframe.progress import part
from dpframe.rows.layouts import grouped

__all__ = [
    "BucketFiles",
    "Sink",
    "Spill",
    "can_sink",
    "can_spill",
    "columns_read",
    "hold_rows",
    "in_buckets",
    "people_of",
    "put_aside",
    "read_once",
    "unsure",
]

# Rows that are put aside in temporary files, divided into buckets.
#
# The files have no names from before the first row is written (`O_TMPFILE` on Linux, elsewhere a
# name that is taken away at once; Windows removes them with their last handle). So no other process
# can open them, and nothing is left of them after any end of the process: by an error, a kill, or a
# power cut.

# Rows that Polars itself puts aside in temporary files, in one streaming scan for all buckets.
#
# It is a sink in parts, each of them a file without a name. Files are
# not compressed: to write rows and to read them again takes a sixth of the time of one private
# query then, and a third where they are. They are read through the handles that this process has.

_HANDLES: Final = "/proc/self/fd"
_BUCKET: Final = "bucket"


def can_sink() -> bool:
    """Whether this Polars writes to files in parts that have no names, and they can be read."""
    major = int(re.findall(r"\d+", pl.__version__)[0])
    return major >= 2 and hasattr(pl, "PartitionBy") and os.path.isdir(_HANDLES)


class BucketFiles(ABC):
    """The rows of one frame in temporary files that have no names, divided into buckets. As a
    context it closes them, and with that they are gone.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    """

    __slots__ = ("_open", "schema")

    def __init__(self, schema: pl.Schema) -> None:
        self.schema = schema
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def write(
        self,
        frame: pl.LazyFrame,
        bucket: pl.Expr,
        columns: Sequence[str],
        optimizations: pl.QueryOptFlags,
    ) -> None:
        """Divide the rows of a frame: `bucket` is the number of each one's file. Some of its
        columns are kept. One scan, and little memory however many rows there are.
        """
        name = _free_name(columns)
        marked = frame.select(*columns, bucket.cast(pl.UInt16).alias(name))
        self._divide(marked, name, optimizations)

    @abstractmethod
    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        """Write the rows of a frame, each with the number of its bucket under a name."""

    def _open_file(self) -> IO[bytes]:
        file: Any = tempfile.TemporaryFile(prefix="dpframe-")  # noqa: SIM115
        self._open.enter_context(file)
        return file  # type: ignore[no-any-return]


class Sink(BucketFiles):
    """One or more files for each bucket, which Polars writes itself.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    buckets
        How many there are.
    """

    __slots__ = ("files",)

    def __init__(self, schema: pl.Schema, buckets: int) -> None:
        super().__init__(schema)
        self.files: list[list[IO[bytes]]] = [[] for _ in range(buckets)]

    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        parts: Any = pl.PartitionBy(
            tempfile.gettempdir(),  # where nothing is written, as all files are given
            file_path_provider=self._open_bucket,
            key=name,
            include_key=False,
            approximate_bytes_per_file=None,
        )
        marked.sink_ipc(parts, maintain_order=False, optimizations=optimizations)

    def _open_bucket(self, part: Any) -> IO[bytes]:
        """A new file for a bucket."""
        file = self._open_file()
        self.files[part.partition_keys.item()].append(file)
        return file

    def size(self, number: int) -> int:
        """The bytes of one bucket."""
        return sum(os.fstat(file.fileno()).st_size for file in self.files[number])

    def bucket(self, number: int) -> pl.LazyFrame:
        """The rows of one bucket, read from its files as they are requested. Columns that were
        not kept are null.
        """
        rows = self._scan(number)
        if rows is None:
            return pl.LazyFrame(schema=self.schema)
        return rows.with_columns(*self._missing(rows.collect_schema())).select(*self.schema)

    def hold(self, number: int) -> pl.LazyFrame:
        """The same in memory, or in the part of the files that the system keeps there."""
        rows = self._scan(number)
        found = pl.DataFrame(schema=self.schema) if rows is None else rows.collect()
        return found.with_columns(*self._missing(found.schema)).select(*self.schema).lazy()

    def _scan(self, number: int) -> pl.LazyFrame | None:
        places = [f"{_HANDLES}/{file.fileno()}" for file in self.files[number]]
        return pl.scan_ipc(places, glob=False) if places else None

    def _missing(self, there: pl.Schema) -> list[pl.Expr]:
        """Nulls for columns that were not kept."""
        missing = {name: dtype for name, dtype in self.schema.items() if name not in there}
        return [pl.lit(None, dtype=dtype).alias(name) for name, dtype in missing.items()]


def _free_name(columns: Sequence[str]) -> str:
    """A free name for the column of bucket numbers."""
    name = _BUCKET
    while name in columns:
        name += "_"
    return name


_AT_ONCE: Final = 1 << 18
"""Rows that are held at a time."""


def can_spill() -> bool:
    """Whether this Polars hands out rows piece by piece; 1.32 does not."""
    return can_sink() or hasattr(pl.LazyFrame, "collect_batches")


def put_aside(schema: pl.Schema, buckets: int) -> Sink | Spill:
    """Files for the rows of a frame, which Polars writes itself where it can."""
    return Sink(schema, buckets) if can_sink() else Spill(schema, buckets)


@dataclass(slots=True, eq=False)
class _Pieces:
    """One bucket: where its pieces are in its file."""

    file: IO[bytes]
    places: list[tuple[int, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, rows: pl.DataFrame) -> None:
        """Write a piece."""
        start = self.file.tell()
        rows.write_ipc_stream(self.file, compression="lz4")
        self.places.append((start, self.file.tell() - start))

    def read(self, place: tuple[int, int]) -> pl.DataFrame:
        """Read a piece, from any thread."""
        start, size = place
        with self.lock:
            self.file.seek(start)
            content = self.file.read(size)
        return pl.read_ipc_stream(io.BytesIO(content))


class Spill(BucketFiles):
    """One file for each bucket, written piece by piece.

    Parameters
    ----------
    schema
        All columns of the frame; files may have only some.
    buckets
        How many files there are.
    """

    __slots__ = ("_files",)

    def __init__(self, schema: pl.Schema, buckets: int) -> None:
        super().__init__(schema)
        self._files = [_Pieces(self._open_file()) for _ in range(buckets)]

    def _divide(self, marked: pl.LazyFrame, name: str, optimizations: pl.QueryOptFlags) -> None:
        rows = _AT_ONCE if len(marked.collect_schema()) <= 20 else _AT_ONCE // 4
        pieces = marked.collect_batches(
            chunk_size=rows, maintain_order=False, optimizations=optimizations
        )
        for batch in pieces:
            for (number,), piece in batch.partition_by(name, as_dict=True).items():
                self._files[number].add(piece.drop(name))
        for bucket_file in self._files:
            bucket_file.file.flush()
            os.fstat(bucket_file.file.fileno())

    def bucket(self, number: int) -> pl.LazyFrame:
        """The rows of one bucket, read from its file as they are requested."""
        pieces, schema = self._files[number], self.schema

        def read(
            columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
        ) -> Iterator[pl.DataFrame]:
            wanted, left = columns or list(schema), rows
            for batch in _gather(pieces):
                found = batch.select(wanted) if left is None else batch.select(wanted).head(left)
                left = None if left is None else left - found.height
                yield found if predicate is None else found.filter(predicate)
                if left == 0:
                    return

        return register_io_source(read, schema=schema)


def _gather(pieces: _Pieces) -> Iterator[pl.DataFrame]:
    """Pieces, put together where they are small."""
    waiting, rows = list[pl.DataFrame](), 0
    for place in pieces.places:
        waiting.append(pieces.read(place))
        rows += waiting[-1].height
        if rows >= _AT_ONCE:
            yield pl.concat(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pl.concat(waiting)


# Frames whose rows may differ between two reads: a query reads them once.
#
# A limit separates the rows that are surely kept from those that have to be ranked, and combines
# both afterwards. If each part read the source separately, and the source gave other rows the
# second time, an individual could have its full limit in both parts, twice as much as allowed.
# Engines often compute common parts once, but they do not guarantee it. Rows may differ between
# reads if a Python function makes or changes them, or if they depend on chance or on an arbitrary
# order. A query that would read such rows more than once stores them first: in a temporary file
# without a name, or in memory if files are not allowed.
#
# Files and tables of other engines are taken to stay as they are while a query runs.

Frames = Mapping[int, pl.LazyFrame]


class Lower(Protocol):
    """Makes the exact queries of frames, in the form that they have for others, if some are given
    (see `dpframe.lower.tables.lower_query`).
    """

    def __call__(
        self, frames: Frames, like: Frames | None = None, /
    ) -> Sequence[tuple[Lowered, ...]]: ...


_FUNCTION: Final = "python"
"""What plans call a source that is a function."""
_UNSURE: Final = re.compile(
    r"python|shuffle\(|sample|random|map_groups|fold\(|reduce\(|rolling_map|strategy: any|slice"
    r"|maintain_order: false|rank\(",
    re.IGNORECASE,
)
"""Signs in plans of rows that a function or chance makes, or that are the first of several in an
arbitrary order. Of ranks they do not say whether chance decides between equals.
"""
_ANY_ORDER: Final = re.compile(r"join|sort|aggregate|union|unique", re.IGNORECASE)
"""What rows come out of in an order that may be any."""
_BY_ORDER: Final = re.compile(
    r"row.index|int_range|cum_|is_first|is_last|shift|first\(|last\(|fill_null_with|interpolate"
    r"|mode|\.unique|value_counts|gather|\.get\(|diff|ewm|rolling|rle|arg_|index_of|top_k|bottom_k"
    r"|asof|implode|pct_change|map",
    re.IGNORECASE,
)
"""What makes values of the order of rows."""
_KEPT: Final = re.compile(r"cache\[id: ([^\],]+)")


def unsure(frame: pl.LazyFrame) -> bool:
    """Whether a frame has rows that may be others the next time."""
    told = _explain(frame)
    if _UNSURE.search(told):
        return True
    return bool(_ANY_ORDER.search(told) and _BY_ORDER.search(told))


def _explain(frame: pl.LazyFrame) -> str:
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    return frame.clone().explain(optimized=False)


@contextmanager
def read_once(
    engine: PolarsEngine, lower: Lower, frames: Frames, *, disk: bool = True
) -> Iterator[Frames]:
    """The frames, with the rows put aside of those that are unsure and would be read repeatedly.
    What runs queries elsewhere gets them as they are.
    """
    doubtful = [] if engine.is_function else [t for t, frame in frames.items() if unsure(frame)]
    repeated = [token for token in doubtful if _times_read(lower, frames, token) > 1]
    if not repeated:
        yield frames
        return
    needed = columns_read(lower, frames, {})
    with ExitStack() as stack:
        found = dict(frames)
        for token in repeated:
            schema = frames[token].collect_schema()
            columns = needed[token] or schema.names()[:1]
            if disk and can_spill():
                spill: Sink | Spill = put_aside(schema, 1)
                stack.enter_context(spill)
                spill.write(frames[token], pl.lit(0), columns, engine.optimizations)
                found[token] = spill.bucket(0)
            else:
                found[token] = hold_rows(frames[token], columns, engine.optimizations)
        yield found


def hold_rows(
    frame: pl.LazyFrame, columns: Sequence[str], optimizations: pl.QueryOptFlags
) -> pl.LazyFrame:
    """The rows of a frame in memory; unneeded columns have no values."""
    schema = frame.collect_schema()
    rows = frame.select(columns).collect(optimizations=optimizations).lazy()
    others = (pl.lit(None, dtype=t).alias(n) for n, t in schema.items() if n not in columns)
    return rows.with_columns(*others).select(*schema)


def _times_read(lower: Lower, frames: Frames, token: int) -> int:
    """How often queries name a frame or its derivatives, for any engine plan: Polars 2.1 computes
    some parts more than once that it should keep.
    """
    schemas = {t: frame.collect_schema() for t, frame in frames.items()}
    empty = {t: pl.LazyFrame(schema=schema) for t, schema in schemas.items()}
    empty[token] = _watch(schemas[token], set())
    plans = [_explain(query.frame).lower() for found in lower(empty) for query in found]
    return sum(plan.count(_FUNCTION) + _count_repeats(plan) for plan in plans if _FUNCTION in plan)


def _count_repeats(plan: str) -> int:
    """How often a plan names again what is to be kept; it is shown once only."""
    kept = _KEPT.findall(plan)
    return len(kept) - len(set(kept))


def columns_read(
    lower: Lower, frames: Frames, always: Mapping[int, str], like: Frames | None = None
) -> dict[int, list[str]]:
    """The columns of each frame that queries read, found by running them on frames without rows.

    Parameters
    ----------
    always
        A column of each of some frames, asked for or not.
    like
        Frames whose form queries may have as well, in which they may ask for others.
    """
    seen = {token: {always[token]} if token in always else set() for token in frames}
    schemas = {token: frame.collect_schema() for token, frame in frames.items()}
    empty = {token: _watch(schemas[token], seen[token]) for token in frames}
    forms = [lower(empty)] if like is None else [lower(empty), lower(empty, like)]
    queries = [query.frame for form in forms for found in form for query in found]
    POLARS.collect(queries, rehearsed=True)
    return {t: [n for n in schemas[t] if n in names] for t, names in seen.items()}


def _watch(schema: pl.Schema, seen: set[str]) -> pl.LazyFrame:
    """A frame without rows that notes which of its columns are read."""

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted: list[str] = columns or list(schema)
        seen.update(wanted)
        found: Any = pl.DataFrame(schema=schema).select(wanted)
        yield found if predicate is None else found.filter(predicate)

    return register_io_source(read, schema=schema)


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
