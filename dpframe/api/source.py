"""The trust boundary: what a data owner hands over, and nothing raw that comes out again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from dpframe.api.batches import from_arrow
from dpframe.api.origins import origins_of
from dpframe.api.probe import require_equal
from dpframe.api.readers import from_delta, from_files, missing_file
from dpframe.api.sizes import scans, sizes_of
from dpframe.api.text_scans import ALL_TEXT, remarks_of
from dpframe.core.exact import as_given
from dpframe.errors import DPFrameError, EngineError, UnknownColumn, UnsupportedOperation
from dpframe.frames.joins import joined
from dpframe.lower import Execution, require_threads
from dpframe.lower.engines.choice import ENGINES, native_engine, of_one, placed, planning_engine
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.polars_engine import (
    NOT_PUSHING,
    POLARS,
    PolarsEngine,
    bytes_of,
    has_disk,
    room_for,
)
from dpframe.lower.engines.scans import guarded, require_no_pushdown
from dpframe.lower.sink import can_sink
from dpframe.lower.text_files import (
    WITHOUT_DATA,
    declared_types,
    no_file,
    text_files,
    text_kind,
    text_types,
    type_words,
)
from dpframe.redaction import location
from dpframe.rows.failures import FAILURES
from dpframe.rows.layouts import unordered
from dpframe.rows.polars_dtypes import from_polars, schema_from_polars


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
        data: Any,
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
        """The source with its data, which is opened once.

        Raises
        ------
        DPFrameError
            When it cannot be read, or has other columns than those that were stated.
        """
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

        Raises
        ------
        InvalidBounds
            For what is no amount of memory.
        UnsupportedOperation
            On another engine than Polars, which has a limit of its own.
        """
        if not isinstance(spill, bool):
            raise UnsupportedOperation(
                f"{as_given(spill)} is neither True nor False",
                where="session.protect(..., spill=...)",
                remedy="write spill=True or spill=False",
            )
        size = None if memory is None else bytes_of(memory)
        if size is not None and not isinstance(self.engine, PolarsEngine):
            raise UnsupportedOperation(
                f"{self.engine.label} keeps within a limit of its own",
                where=f"session.protect(..., memory={as_given(memory)})",
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
        if size is None:
            return self._within_machine(spill)
        return self._in_room(size, sizes_of(self._given, self._data), spill)

    def _within_machine(self, spill: bool) -> Source:
        if not isinstance(self.engine, PolarsEngine) or not scans(self._given, self._data):
            return self
        sizes = sizes_of(self._given, self._data)
        return self._in_room(bytes_of("auto"), sizes, spill) if sizes else self

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

        Raises
        ------
        UnsupportedOperation
            On another engine than Polars.
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
        data = joined(self._data, pairs, [key], types, {who: who}, "inner", pl)
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


def opened_together(
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

    Raises
    ------
    UnsupportedOperation
        For anything else.
    EngineError
        In a process that was forked from one that had used Polars.
    """
    require_threads()
    _require_engine(engine)
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
    types = text_types(path, schema) if is_text else declared_types(schema)
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

    Raises
    ------
    UnknownColumn
        Naming columns that are not there.
    UnsupportedOperation
        Naming columns of another type, with both types.
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


def _require_engine(engine: str | None) -> None:
    if engine is not None and engine not in ENGINES:
        raise UnsupportedOperation(
            f"there is no engine {engine!r}",
            where="session.protect(frame, engine=...)",
            remedy=f"use one of {', '.join(map(repr, ENGINES))}",
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
