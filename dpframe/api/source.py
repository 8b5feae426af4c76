"""The trust boundary: what a data owner hands over, and nothing raw that comes out again."""

from __future__ import annotations

import json
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fnmatch import fnmatchcase
from functools import cache
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl

from dpframe import pipeline
from dpframe.aggregates.aggregate import Query
from dpframe.aggregates.measurement import CellCounts
from dpframe.api import functions as dp
from dpframe.api.expressions import DPExpr
from dpframe.api.readers import (
    ALL_TEXT,
    from_arrow,
    from_delta,
    from_files,
    missing_file,
    remarks_of,
)
from dpframe.core.dtypes import columns, domain_of_dtype
from dpframe.core.exact import show_input
from dpframe.core.units import Identifier
from dpframe.errors import (
    DPFrameError,
    EngineError,
    MissingKeys,
    UnknownColumn,
    UnsupportedOperation,
    location,
)
from dpframe.frames.contribution_limits import LimitRows
from dpframe.frames.facts import protected_facts
from dpframe.frames.joins import join_frames
from dpframe.frames.relation import Relation
from dpframe.lower import Execution, require_threads
from dpframe.lower.buckets import can_sink
from dpframe.lower.engines.choice import ENGINES, native_engine, of_one, placed, planning_engine
from dpframe.lower.engines.engine import Engine, OfEngine
from dpframe.lower.engines.polars_engine import (
    NOT_PUSHING,
    POLARS,
    PolarsEngine,
    bytes_of,
    has_disk,
    room_for,
)
from dpframe.lower.engines.scans import guarded, kinds_of, require_no_pushdown
from dpframe.lower.text_files import (
    WITHOUT_DATA,
    no_file,
    read_types,
    text_files,
    text_kind,
    text_types,
    type_words,
)
from dpframe.optimise.measurements import measurements_of
from dpframe.rows.failures import FAILURES
from dpframe.rows.layouts import unordered
from dpframe.rows.polars_dtypes import from_polars, schema_from_polars

# Check once, on constants and before it gets data, that an engine computes as expected.
#
# Other programs speak the protocols of an engine, and settings change what expressions mean. So a
# fixed query on awkward values is run on each session, and its exact tables are compared with those
# of Polars. No private data is read, and nothing is charged.

_NAN, _INF = math.nan, math.inf
_WHOLE = [0, 1, -7, 7, 2**63 - 1, -(2**63), None, 2**53 + 1, 3, -3, 100, 2**31, -1, 5]
_OTHER = [3, 0, 2, -2, 1, -1, 4, 1, None, 2**62, 0, 2, -(2**63), 2**63 - 1]
_REAL = [0.5, -0.0, _NAN, _INF, -_INF, 1.5, 2.5, -1.5, None, 1e300, 5e-324, 49.0, 9.3e18, -2.5]
_REALS = [_NAN, 0.0, 1.0, -1.0, 49.0, 0.0, -0.0, 2.5, 3.0, 1e-300, _INF, 49.0, None, 0.1]
_TEXT = ["a", "A", " a", "a ", "", None, "é", "e\u0301", "ß", "ab" * 9, "12", "🙂", "a%b", "x'y"]
_DAYS = [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None, date(2026, 1, 1)]
_MOMENTS = [datetime(1969, 12, 31, 23, 59, 59, 999_999), None, datetime(2024, 3, 31, 2, 30, 5)]
_ROWS = len(_WHOLE)


def require_equal(engine: Engine) -> None:
    """Refuse a session on which the fixed query gives other tables than Polars."""
    if engine is POLARS or engine.is_accepted:
        return
    try:
        same = _tables(engine, engine.ns.dialect.native_frame(_rows())) == _expected()
        why = "gives other numbers than Polars for constants"
        if same and not engine.has_border():
            same, why = False, "lets statistics of stored values decide which rows there are"
    except FAILURES as error:  # of constants
        same, why = False, f"does not run a query of constants ({type(error).__name__})"
    if not same:
        raise UnsupportedOperation(
            f"the session looks like {engine.label}, and it {why}: its results would be wrong",
            where="session.protect(frame, ...)",
            remedy=(
                f"use a session of {engine.label} itself with its default settings",
                "write Parquet and protect its path",
            ),
        )
    engine.accept()


@cache
def _rows() -> pl.DataFrame:
    """A frame of constants, one individual and one key for each two rows."""
    days = [_DAYS[i % len(_DAYS)] for i in range(_ROWS)]
    moments = [_MOMENTS[i % len(_MOMENTS)] for i in range(_ROWS)]
    numbers = pl.DataFrame({"row": range(_ROWS), "i": _WHOLE, "n": _OTHER}, schema_overrides=_INTS)
    return numbers.with_columns(
        pl.Series("who", [i // 2 for i in range(_ROWS)], dtype=pl.Int64),
        pl.Series("x", _REAL, dtype=pl.Float64),
        pl.Series("y", _REALS, dtype=pl.Float64),
        pl.Series("b", [[True, False, None][i % 3] for i in range(_ROWS)], dtype=pl.Boolean),
        pl.Series("s", _TEXT, dtype=pl.String),
        pl.Series("d", days, dtype=pl.Date),
        pl.Series("t", moments, dtype=pl.Datetime("us")),
    )


_INTS: Mapping[str, type[pl.DataType]] = {"row": pl.Int64, "i": pl.Int64, "n": pl.Int64}


@cache
def _expected() -> list[object]:
    return _tables(POLARS, _rows().lazy())


@cache
def _query() -> Query:
    table = {n: domain_of_dtype(t) for n, t in schema_from_polars(_rows().schema).items()}
    relation = Relation.of("constants", protected_facts(columns(table), Identifier("who")))
    relation = relation.then(LimitRows(_ROWS))
    keys = {"row": list(range(_ROWS))}
    groups = pipeline.group(relation, [pl.col("row")], {}, keys, False)
    specs = [output.alias(f"o{i}") for i, output in enumerate(_outputs())]
    return pipeline.ask(relation, groups, [spec._spec for spec in specs])


def _tables(engine: Engine, data: object) -> list[object]:
    """The exact tables of the query."""
    query = _query()
    tables = list(
        dict.fromkeys(table for use in measurements_of(query) for table in use.part.tables)
    )
    token = query.relation.token
    found = Execution(engine, {token: data}, {token: _rows().schema}).run(
        query.relation, query.groups, tables
    )
    return [_plain(found[table]) for table in tables]


def _plain(cells: CellCounts) -> list[object]:
    parts = (cells.groups, cells.cells, cells.values, cells.size)
    return [p if p is None or isinstance(p, int) else np.asarray(p).tolist() for p in parts]


def _outputs() -> Iterator[DPExpr]:
    """A sum of each expression for each row, so that each value is checked separately."""
    for truth in _truths():
        yield dp.sum(pl.when(truth).then(1).otherwise(2), (0, 2))
    for number in _numbers():
        yield dp.sum(number, (-1000, 1000))


def _truths() -> Iterator[pl.Expr]:
    i, n, x, y, b, s = map(pl.col, ("i", "n", "x", "y", "b", "s"))
    yield from (x > 1, x == y, x <= y, x.is_nan(), x.is_finite(), x != 0, x.is_between(0, 2))
    yield from (i > n, i.eq_missing(n), i.is_in([7, 3]), b & (i > 0), b | (i > 0), b ^ (x > 0), ~b)
    yield from (s == "a", s > "a", s.is_in(["a ", "ß"]), s.str.starts_with("a"))
    yield from (s.str.contains("b", literal=True), s.str.slice(1, 1) == "a", s.is_null())
    yield from (s.str.strip_chars() == "a", s.str.slice(-2).str.pad_start(3, "é") == "ébb")


def _numbers() -> Iterator[pl.Expr]:
    i, n, x, y, b, s = map(pl.col, ("i", "n", "x", "y", "b", "s"))
    d, t = pl.col("d"), pl.col("t")
    yield from (x.clip(-3, 3), x.floor(), x.ceil(), x.fill_nan(7.0), x.fill_null(5.0), x / y)
    yield from (i + n, i - n, i * n, -i, i // n, i % n, i.abs(), x.sign(), i / n)
    yield from (x.cast(pl.Int64), x.cast(pl.Int8), i.cast(pl.Int8), i.cast(pl.Float64) / 2**60)
    yield from (b.cast(pl.Int64), pl.when(x > 0).then(i).otherwise(n), pl.coalesce(i, n))
    yield from (pl.min_horizontal(x, y), pl.max_horizontal(x, y), pl.sum_horizontal(i, n))
    yield from (s.str.len_chars(), d.dt.year(), d.dt.weekday(), d.dt.ordinal_day())
    yield from (t.dt.hour(), t.dt.second(), t.dt.month(), x.sqrt())
    yield s.str.find("b", literal=True)


_PATHS = re.compile(r"SCAN \[(.*)\]$", re.MULTILINE)
_LISTED = re.compile(r'"Paths":\[([^]]*)\]')
_MAPPED = Path("/proc/self/maps")


@dataclass(frozen=True, slots=True)
class Origins:
    """Where rows come from."""

    # Places of files, links followed, and what the file system calls each file.
    files: frozenset[object] = frozenset()
    memory: frozenset[int] = frozenset()  # Addresses of columns' values
    # Whether the origin of some part is unknown: a scan in Python, bytes, a newer Polars.
    unknown: bool = False

    def __or__(self, other: Origins) -> Origins:
        unknown = self.unknown or other.unknown
        return Origins(self.files | other.files, self.memory | other.memory, unknown)

    def meets(self, other: Origins) -> bool:
        """Whether something is in both."""
        return not (self.files.isdisjoint(other.files) and self.memory.isdisjoint(other.memory))


UNKNOWN = Origins(unknown=True)


def origins_of(frame: object) -> Origins:
    """Where the rows of anything come from that can be protected."""
    package = type(frame).__module__.partition(".")[0]
    try:
        if isinstance(frame, (str, Path)):
            return of_files([str(frame)])
        if isinstance(frame, pl.DataFrame):
            return _of_memory(frame)
        if isinstance(frame, pl.LazyFrame):
            return _of_plan(frame)
        other: Any = frame
        if package == "pyarrow" and hasattr(other, "files"):
            return of_files(list(other.files))
        if package == "pyarrow" and hasattr(other, "to_pandas"):
            return _of_memory(pl.DataFrame(other))  # which shares what it can
        if package == "deltalake" and hasattr(other, "file_uris"):
            return of_files(list(other.file_uris()))
    except FAILURES:
        return UNKNOWN
    return UNKNOWN


def of_files(places: list[str]) -> Origins:
    """What paths, patterns and addresses lead to."""
    return Origins(frozenset(mark for place in places for mark in _marks(place)))


def _marks(place: str) -> Iterator[object]:
    parts = urlsplit(place)
    if parts.scheme == "file":
        place = unquote(parts.path)
    elif "://" in place:
        yield location(place)  # credentials are not part of the source's identity
        return
    place = os.path.expanduser(place)
    for found in (place, *glob(place, recursive=True)):
        yield os.path.realpath(found)
        try:
            status = os.stat(found)
        except (OSError, ValueError):
            continue
        if not os.path.isdir(found):
            yield (status.st_dev, status.st_ino)
            continue
        for folder, _, names in os.walk(found):
            for name in names:
                yield from _marks_of_file(os.path.join(folder, name))


def _marks_of_file(path: str) -> Iterator[object]:
    yield os.path.realpath(path)
    try:
        status = os.stat(path)
    except OSError:
        return
    yield (status.st_dev, status.st_ino)


def _of_plan(frame: pl.LazyFrame) -> Origins:
    """The leaves of a plan. Its nodes can be seen since Polars 1; what cannot be is unknown."""
    if "pythondataset" in kinds_of(frame):  # Polars would wait for Python, and Python for Polars
        return UNKNOWN
    nodes = frame._ldf.visit()
    found, waiting, only_named = Origins(), [nodes.get_node()], False
    while waiting:
        nodes.set_node(waiting.pop())
        inputs = nodes.get_inputs()
        waiting += inputs
        if not inputs and _is_only_named(nodes):
            only_named = True
        elif not inputs:
            found |= _of_leaf(nodes.view_current_node())
    if only_named:
        found |= _of_words(frame, holds_rows=bool(found.memory))
    return found


def _is_only_named(nodes: Any) -> bool:
    """Whether a leaf cannot be seen: the scan of an IPC file, which the plan's words name."""
    try:
        nodes.view_current_node()
    except NotImplementedError as error:
        if "ipc" in str(error):
            return True
        raise
    return False


def _of_leaf(node: Any) -> Origins:
    match type(node).__name__:
        case "Scan":
            return of_files([str(path) for path in node.paths])
        case "DataFrameScan":
            return _of_memory(pl.DataFrame._from_pydf(node.df))
    return UNKNOWN


def _of_words(frame: pl.LazyFrame, *, holds_rows: bool) -> Origins:
    """The files that the words of a plan name, or where these leave some out its document, which
    is not made of a plan that holds rows.
    """
    listed = _PATHS.findall(frame.explain(optimized=False))
    if not any(" other " in names for names in listed):
        return of_files([place for names in listed for place in names.split(", ")])
    if holds_rows:
        return UNKNOWN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its form may change
        document = frame.serialize(format="json")
    found = [json.loads(f"[{names}]") for names in _LISTED.findall(document)]
    return of_files([place for names in found for entry in names for place in entry.values()])


def _of_memory(frame: pl.DataFrame) -> Origins:
    """Where the values of columns are, and the files that are mapped there. Identified by
    pyarrow, where it is installed: up to here rows are neither copied nor read.
    """
    if find_spec("pyarrow") is None:
        return Origins()
    newest = pl.CompatLevel.newest()
    found: set[int] = set()
    for column in frame.get_columns():
        if column.len() and not column.dtype.is_nested() and column.dtype != pl.Object:
            for chunk in column.get_chunks():
                _, *values = chunk.to_arrow(compat_level=newest).buffers()
                found |= {b.address for b in values if b is not None and b.size}
    return Origins(frozenset(_mapped(found)), frozenset(found))


def _mapped(addresses: set[int]) -> Iterator[object]:
    """The files that are mapped at some addresses."""
    try:
        lines = _MAPPED.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        span, _, _, _, _, *path = line.split(maxsplit=5)
        if path and path[0].startswith("/"):
            low, high = (int(end, 16) for end in span.split("-"))
            if any(low <= address < high for address in addresses):
                yield from _marks_of_file(path[0])


def sizes_of(given: object, data: object) -> list[object]:
    """The files that rows come from, or how many bytes they take in memory; empty if unknown."""
    if isinstance(given, pl.DataFrame):
        return [int(given.estimated_size())]
    origins = origins_of(given) | origins_of(data)
    if origins.unknown or origins.memory:
        return []
    return [place for place in origins.files if isinstance(place, str) and os.path.isfile(place)]


def scans(given: object, data: object) -> bool:
    """Whether rows come from files on a disk, if that is known at once. A store would have to be
    queried for its files, and a Delta table would list its files through Python, which may wait
    for this thread.
    """
    if isinstance(given, pl.DataFrame) or not isinstance(data, pl.LazyFrame):
        return False
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    told = data.clone().explain(optimized=False)
    return " SCAN " in told and "://" not in told and "PythonDataset" not in told


# -- The source -----------------------------------------------------------------------------------


class Source:
    """A protected frame. Its data can be reached by the pipeline only.

    If its columns are stated, nothing is read until a query runs. Then `reader` opens the data, and
    refuses files that do not have the stated columns.
    """

    __slots__ = (
        *("_at_hand", "_data", "_given", "_options", "_owners", "_reader"),
        *("engine", "remarks", "schema"),
    )

    def __init__(
        self,
        data: OfEngine,
        engine: Engine = POLARS,
        schema: pl.Schema | None = None,
        given: object = None,
        remarks: tuple[str, ...] = (),
        options: object = None,
        owners: tuple[Source, tuple[str, str]] | None = None,
        reader: Callable[[], Source] | None = None,
    ) -> None:
        self._reader = reader
        self._at_hand: Source | None = None
        self.remarks = remarks
        self._options = options
        self._owners = owners
        self._data = data
        self._given = data if given is None else given
        self.engine = engine
        if schema is not None:
            self.schema = schema
            return
        try:
            self.schema = data.collect_schema()
            return
        except FAILURES as error:
            kind, missing = type(error).__name__, missing_file(error)
        if missing is not None:
            raise no_file(missing, "session.protect(frame, ...)")
        raise EngineError(
            f"the schema of the frame cannot be read ({kind}); the message is withheld because it "
            "may quote private data",
            where="session.protect(frame, ...)",
            remedy=f"see frame.collect_schema() for the reason; {WITHOUT_DATA}"
            if isinstance(given, (str, Path))
            else "see frame.collect_schema() for the reason",
        )

    def opened(self, token: int, engine: object = "auto") -> Execution:
        """Where queries run, for the pipeline."""
        here = self.at_hand()
        return Execution(_asked(here.engine, engine), {token: here._data}, here.schemas(token))

    def at_hand(self) -> Source:
        """The source with its data, which is opened once."""
        if self._reader is None:
            return self
        if self._at_hand is None:
            self._at_hand = self._reader()
        return self._at_hand

    def blueprint(self, token: int) -> Execution:
        """Where queries will run, without the data."""
        return Execution(self.engine, {}, self.schemas(token))

    def schemas(self, token: int) -> dict[int, pl.Schema]:
        """Its schema."""
        return {token: self.schema}

    def _unread(
        self, schema: pl.Schema, reader: Callable[[], Source], remarks: tuple[str, ...], owners: Any
    ) -> Source:
        """A source whose data `reader` opens when a query runs."""
        return Source(
            None, self.engine, schema, self._given, remarks, self._options, owners, reader
        )

    def within(self, memory: object, spill: object) -> Source:
        """The same source with a limit on the memory of its queries. The default is the machine's
        memory, if the sizes of the files are known.
        """
        if not isinstance(spill, bool):
            raise UnsupportedOperation(
                f"{show_input(spill)} is neither True nor False",
                where="session.protect(..., spill=...)",
                remedy="write spill=True or spill=False",
            )
        size = None if memory is None else bytes_of(memory)
        if size is not None and not isinstance(self.engine, PolarsEngine):
            raise UnsupportedOperation(
                f"{self.engine.label} keeps within a limit of its own",
                where=f"session.protect(..., memory={show_input(memory)})",
                remedy="leave memory= out, and set the limit in the engine, such as SET "
                "memory_limit = '2GB' on DuckDB",
            )
        if self._reader is not None:
            return self._unread(
                self.schema,
                lambda: self.at_hand().within(memory, spill),
                self.remarks,
                self._owners,
            )
        if size is None and not (
            isinstance(self.engine, PolarsEngine) and scans(self._given, self._data)
        ):
            return self
        sizes = sizes_of(self._given, self._data)
        if size is None and not sizes:
            return self
        return self._in_room(bytes_of("auto") if size is None else size, sizes, spill)

    def _in_room(self, memory: int, sizes: list[object], spill: bool) -> Source:
        room = room_for(memory, sizes, spill and has_disk(sizes, self.schema), can_sink())
        if room is None:
            return self
        about = self._given, self.remarks, self._options, self._owners
        pushes = isinstance(self.engine, PolarsEngine) and self.engine.pushes
        return Source(self._data, PolarsEngine(room=room, pushes=pushes), self.schema, *about)

    def owned_by(self, owners: Source, key: tuple[str, str], who: str, remark: str) -> Source:
        """The rows with the identifier of each individual who has their key.

        Parameters
        ----------
        owners
            The frame that has both.
        key
            The key here, and there.
        who
            The identifier there, and here afterwards.
        remark
            What reviewers should know of it.
        """
        for engine in (self.engine, owners.engine):
            if not isinstance(engine, PolarsEngine):
                raise UnsupportedOperation(
                    f"a frame of {engine.label} cannot be protected through another frame",
                    where="session.protect(..., unit=dp.Through(...))",
                    remedy="join the tables before session.protect(...)",
                )
        types = schema_from_polars(self.schema)
        remarks = tuple(dict.fromkeys((*self.remarks, *owners.remarks, remark)))
        if self._reader is not None or owners._reader is not None:

            def read() -> Source:
                return self.at_hand().owned_by(owners.at_hand(), key, who, remark)

            schema = pl.Schema({**self.schema, who: owners.schema[who]})
            return self._unread(schema, read, remarks, (owners, key))
        pairs = owners._data.select(key[1], who).drop_nulls().unique()
        data = join_frames(self._data, pairs, [key], types, {who: who}, "inner", pl)
        data = data.select(unordered(pl, pl.col(name)).alias(name) for name in (*types, who))
        about = self._given, remarks, self._options, (owners, key)
        return Source(data, of_one([self.engine, owners.engine]), None, *about)

    def holds(self, frame: object) -> bool:
        """Whether it is what was protected, or has rows from the same place; also a file that
        would be among those that were protected if it was there.
        """
        if frame is self._given or (self._data is not None and frame is self._data):
            return True
        paths = isinstance(frame, (str, Path)) and isinstance(self._given, (str, Path))
        if paths and _is_among(str(frame), str(self._given)):
            return True
        return origins_of(frame).meets(origins_of(self._given) | origins_of(self._data))

    @property
    def is_fixed(self) -> bool:
        """Whether its rows stay as they are while it is in use, because all are in memory."""
        origins = origins_of(self._given)
        if self._data is not None:
            origins |= origins_of(self._data)
        return not (origins.unknown or origins.files)

    def is_same(self, other: Source) -> bool:
        """Whether another one is of the very object, or the same path in the same store, and its
        rows are of the same individuals.
        """
        if not self._has_owners_of(other) or self._options != other._options:
            return False
        if other._given is self._given:
            return True
        if not isinstance(self._given, (str, Path)) or not isinstance(other._given, (str, Path)):
            return False
        return os.path.abspath(self._given) == os.path.abspath(other._given)

    def _has_owners_of(self, other: Source) -> bool:
        """Whether the same frame determines the owners of rows by the same keys, or none does."""
        if self._owners is None or other._owners is None:
            return self._owners is other._owners
        (mine, my_key), (theirs, their_key) = self._owners, other._owners
        return my_key == their_key and mine.is_same(theirs)

    def __repr__(self) -> str:
        return "<protected data>"

    def __reduce__(self) -> NoReturn:
        raise _not_copied()


class Sources:
    """Several protected frames that were joined."""

    __slots__ = ("_at_hand", "_sources", "engine")

    def __init__(self, *parts: tuple[int, Source | Sources]) -> None:
        self._at_hand: Sources | None = None
        self._sources: dict[int, Source] = {}
        for token, part in parts:
            if isinstance(part, Sources):
                self._sources |= part._sources
            else:
                self._sources[token] = part
        self.engine = of_one([source.engine for source in self._sources.values()])

    def opened(self, token: int, engine: object = "auto") -> Execution:
        """Where queries run, for the pipeline."""
        here = self.at_hand()
        return Execution(
            _asked(here.engine, engine),
            {t: s._data for t, s in here._sources.items()},
            here.schemas(token),
        )

    def at_hand(self) -> Sources:
        """The sources with their data, as for `Source`."""
        if self._at_hand is None:
            opened = {token: source.at_hand() for token, source in self._sources.items()}
            same = all(opened[token] is source for token, source in self._sources.items())
            self._at_hand = self if same else Sources(*opened.items())
        return self._at_hand

    def blueprint(self, token: int) -> Execution:
        """Where queries will run, without the data."""
        return Execution(self.engine, {}, self.schemas(token))

    def schemas(self, token: int) -> dict[int, pl.Schema]:
        """Their schemas."""
        return {t: s.schema for t, s in self._sources.items()}

    @property
    def is_fixed(self) -> bool:
        """Whether the rows of all stay as they are while they are in use."""
        return all(source.is_fixed for source in self._sources.values())

    def holds(self, frame: object) -> bool:
        """Whether it is one of the very objects that were protected, or names such a file."""
        return any(source.holds(frame) for source in self._sources.values())

    def __repr__(self) -> str:
        return "<protected data>"

    def __reduce__(self) -> NoReturn:
        raise _not_copied()


def open_together(
    sources: Sequence[Source | Sources], tokens: Sequence[int], engine: object = "auto"
) -> list[Execution]:
    """Where several queries run: queries of one engine and place run together."""
    sources = [source.at_hand() for source in sources]
    opened = [source.opened(token, engine) for source, token in zip(sources, tokens, strict=True)]
    places: dict[int, Execution] = {}
    for source, found in zip(sources, opened, strict=True):
        at = places.setdefault(id(source.engine), found)
        places[id(source.engine)] = at.beside(found)
    return [places[id(source.engine)] for source in sources]


def _not_copied() -> TypeError:
    return TypeError("protected data cannot be pickled or copied out of its session")


def _asked(own: Engine, engine: object) -> Engine:
    """The engine of a frame, run as `collect(engine=...)` asks."""
    if engine == "auto" or engine == own.name:
        return own
    if isinstance(own, PolarsEngine):
        return PolarsEngine(engine, own.room, pushes=own.pushes)
    raise UnsupportedOperation(
        f"the frame belongs to {own.label}, and its queries run there",
        where=f"engine={engine!r}",
        remedy="leave engine= out",
    )


def protected_source(
    frame: object,
    engine: str | None = None,
    schema: object = None,
    storage_options: object = None,
) -> Source:
    """A source from any of the accepted kinds of frame; only its schema is read, or nothing of a
    path whose columns are stated.
    """
    require_threads()
    if engine is not None and engine not in ENGINES:
        raise UnsupportedOperation(
            f"there is no engine {engine!r}",
            where="session.protect(frame, engine=...)",
            remedy=f"use one of {', '.join(map(repr, ENGINES))}",
        )
    if storage_options is not None:
        _require_store(frame, engine)
    if schema is not None:
        return _stated(frame, engine, schema, storage_options)
    if isinstance(frame, (str, Path)) and text_kind(frame) is not None:
        return _text_source(frame, engine, None)
    if native_engine(frame) is not None or engine in ("duckdb", "spark"):
        return _placed(frame, engine)
    match frame:
        case pl.LazyFrame():
            return _lazy(frame, given=frame, remarks=remarks_of(frame))
        case pl.DataFrame():
            return Source(frame.lazy(), given=frame)
        case str() | Path():
            data = from_files(frame, storage_options)
            return _lazy(data, given=frame, options=storage_options)
        case _ if type(frame).__module__.split(".")[0] == "pyarrow":
            return Source(from_arrow(frame), given=frame)
        case _ if type(frame).__module__.split(".")[0] == "pandas" and hasattr(frame, "columns"):
            converted = _from_pandas(frame)
            return Source(converted.lazy(), given=converted)
        case _ if type(frame).__module__.split(".")[0] == "deltalake":
            return _lazy(from_delta(frame), given=frame)
        case _:
            raise UnsupportedOperation(
                f"a {_kind_of(frame)} cannot be protected",
                where="session.protect(frame, ...)",
                remedy=(
                    "pass a Polars or pandas DataFrame, a LazyFrame, a path, or a "
                    "pyarrow Table or dataset",
                    "pass a DuckDB relation, a Spark DataFrame or a Delta table",
                ),
            )


def _from_pandas(frame: Any) -> pl.DataFrame:
    """A DataFrame of pandas as one of Polars, without its index."""
    try:
        return pl.from_pandas(frame)
    except Exception as error:  # what pandas and pyarrow raise quotes values
        kind = type(error).__name__
    raise EngineError(
        f"the pandas DataFrame cannot be converted ({kind})",
        where="session.protect(frame, ...)",
        why="its message is withheld because it may quote private data",
        remedy="give each column one type; pl.from_pandas shows which one has several",
    )


def _lazy(frame: pl.LazyFrame, **about: Any) -> Source:
    """A source of Polars that uses no stored statistics to decide which rows there are."""
    try:
        guard = guarded(frame)
    except DPFrameError:
        raise
    except FAILURES:
        guard = None
    if guard is None:  # outside of the handler, whose error would be the context of these
        Source(
            frame, NOT_PUSHING, **about
        )  # the schema usually cannot be read, and the error explains why
        raise UnsupportedOperation(
            "dpframe cannot see what the lazy frame reads",
            where="session.protect(frame, ...)",
            remedy=(
                "protect the path of the files",
                "protect the DataFrame that frame.collect() gives",
            ),
        )
    data, pushes = guard
    if pushes:
        return Source(data, **about)
    require_no_pushdown()
    return Source(data, NOT_PUSHING, **about)


def _stated(frame: object, engine: str | None, schema: object, storage_options: object) -> Source:
    """Files whose columns are stated, which are not looked at until a query runs."""
    if not isinstance(frame, (str, Path)):
        raise UnsupportedOperation(
            f"schema= is for files, and this is a {_kind_of(frame)}, which has a schema",
            where="session.protect(frame, ..., schema=...)",
            remedy="leave schema= out",
        )
    path, is_text = frame, text_kind(frame) is not None
    if is_text:
        _require_no_spark(engine)
    types = text_types(path, schema) if is_text else read_types(schema)
    planning = planning_engine(path, engine)

    def read() -> Source:
        if is_text:
            return _text_source(path, engine, types)
        if engine in ("duckdb", "spark"):
            source = _placed(path, engine, list(types))
        else:
            data = from_files(path, storage_options, types)
            source = _lazy(data, given=path, options=storage_options)
        _require_types(source.schema, types, source.engine.label, path)
        if isinstance(source.engine, PolarsEngine):
            # once the plan is guarded, which a step that leaves columns out might seem to change
            source._data = source._data.select(pl.col(name) for name in types)
            source.schema = pl.Schema({name: source.schema[name] for name in types})
        return source

    return Source(None, planning, types, path, (), storage_options, None, read)


def _require_types(here: pl.Schema, stated: pl.Schema, engine: str, path: str | Path) -> None:
    """Refuse files that have not the columns that were stated, before anything is charged. Others
    that they have are not read.
    """
    where = f"the schema that is stated for {location(path)!r}"
    missing = [name for name in stated if name not in here]
    if missing:
        raise UnknownColumn(
            f"the files have no column {', '.join(map(repr, missing))}; nothing was charged",
            where=where,
            remedy="state columns that the files have",
        )
    pairs = [(name, from_polars(here[name]), from_polars(dtype)) for name, dtype in stated.items()]
    other = [
        f"{name!r} is {type_words(there)}, and stated as "
        + (
            f"another Enum of {len(said.categories or ())} categories"
            if said.name == "Enum" and there.name == "Enum"
            else type_words(said)
        )
        for name, there, said in pairs
        if there != said
    ]
    if other:
        raise UnsupportedOperation(
            f"columns of the files have other types on {engine} than those that are stated: "
            f"{'; '.join(other)}; nothing was charged",
            where=where,
            remedy="write the types that the files have, and plan again",
        )


def _require_store(frame: object, engine: str | None) -> None:
    """Refuse options of an object store for what Polars does not read from one."""
    if engine in ("duckdb", "spark"):
        what, remedy = f"files on {engine}", "give its connection or session the credentials"
    elif not isinstance(frame, (str, Path)):
        what, remedy = f"a {_kind_of(frame)}", "give them where the frame is made"
    elif text_kind(frame) is not None:
        what, remedy = "text files", "write them as Parquet first"
    else:
        return
    raise UnsupportedOperation(
        f"storage options are for paths of Parquet, IPC and Delta, not for {what}",
        where="session.protect(..., storage_options=...)",
        remedy=remedy,
    )


def _require_no_spark(engine: str | None) -> None:
    if engine == "spark":
        raise UnsupportedOperation(
            "Spark does not read text files here",
            where="session.protect(path, engine='spark')",
            why="one record could change how others are read",
            remedy=("write them as Parquet first", "leave engine= out"),
        )


def _text_source(path: str | Path, engine: str | None, schema: object) -> Source:
    """Text files, which dpframe itself reads on every engine."""
    _require_no_spark(engine)
    files = text_files(path, schema)
    remarks = (ALL_TEXT,) if schema is None else ()
    if engine != "duckdb":
        return Source(files.lazy(), schema=files.schema, given=path, remarks=remarks)
    made = _placed(files, engine)
    return Source(made._data, made.engine, made.schema, path, remarks)


def _kind_of(frame: object) -> str:
    """The name of its type; of a package that is neither Python's nor ours, with the package."""
    package = type(frame).__module__.split(".")[0]
    name = type(frame).__name__
    return name if package in ("builtins", "dpframe", "polars") else f"{package} {name}"


def _is_among(file: str, pattern: str) -> bool:
    """Whether a pattern matches a file, be it there or not."""
    wanted = os.path.abspath(os.path.expanduser(pattern))
    forms = (wanted, wanted.replace("/**/", "/"))  # which stands for no folder, too
    places = {os.path.realpath(file), os.path.abspath(file)}
    return any(
        fnmatchcase(place, form) and ("**" in form or place.count("/") == form.count("/"))
        for place in places
        for form in forms
    )


def _placed(frame: object, engine: str | None, names: Sequence[str] | None = None) -> Source:
    """A frame of another engine; of files `names` alone, if these are given."""
    try:
        made, data, schema = placed(frame, engine, names)
        require_equal(made)
        return Source(data, made, schema, frame, remarks_of(frame))
    except DPFrameError:
        raise
    except FAILURES as error:
        kind = type(error).__name__
    raise EngineError(
        f"the schema of the frame cannot be read ({kind}); the message is withheld because it may "
        "quote private data",
        where="session.protect(frame, ...)",
        remedy=(
            "see whether the engine can show one row of it, without dpframe",
            "write it to Parquet, and protect the path",
        ),
    )


def refuse_protected_keys(keys: object, source: Source | Sources, where: str) -> None:
    """Refuse a lazy frame of keys with rows of the protected data: the groups that appear would
    reveal single rows.
    """
    if isinstance(keys, pl.LazyFrame) and source.holds(keys):
        raise MissingKeys(
            "these keys come from the protected data: the groups that appear would "
            "reveal single individuals",
            where=where,
            remedy=(
                'list public values, for example keys=["a", "b"]',
                "leave keys= out and spend a delta: groups with enough individuals are "
                "then found privately",
            ),
        )
