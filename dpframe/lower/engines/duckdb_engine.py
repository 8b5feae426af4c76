"""DuckDB: relations of one connection."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from glob import glob
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any
from uuid import uuid4

import duckdb
import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.interval import interval
from dpframe.errors import UnsupportedOperation, require
from dpframe.lower.engines.dialect import COMMON_TYPES, Dialect
from dpframe.lower.engines.duckdb_border import Border
from dpframe.lower.engines.duckdb_folders import require_text_of_folders
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.frames import EngineFrame
from dpframe.lower.engines.namespace import EngineNamespace
from dpframe.lower.engines.results import as_declared
from dpframe.lower.text import no_file, require_readable

_TYPES: Mapping[str, Any] = {
    "BOOLEAN": pl.Boolean(),
    "TINYINT": pl.Int8(),
    "SMALLINT": pl.Int16(),
    "INTEGER": pl.Int32(),
    "BIGINT": pl.Int64(),
    "HUGEINT": pl.Int128(),
    "UTINYINT": pl.UInt8(),
    "USMALLINT": pl.UInt16(),
    "UINTEGER": pl.UInt32(),
    "UBIGINT": pl.UInt64(),
    "FLOAT": pl.Float32(),
    "DOUBLE": pl.Float64(),
    "VARCHAR": pl.String(),
    "DATE": pl.Date(),
    "TIME": pl.Time(),
    "BLOB": pl.Binary(),
    "TIMESTAMP": pl.Datetime("us"),
    "TIMESTAMP_MS": pl.Datetime("ms"),
    "TIMESTAMP_NS": pl.Datetime("ns"),
    "TIMESTAMP WITH TIME ZONE": pl.Datetime("us", "UTC"),
}
_SETTINGS = (
    "current_setting('default_collation') = '' AND current_setting('ieee_floating_point_ops')"
)
"""Under others text would be grouped, and numbers divided, otherwise."""
_NO_MACROS = "NOT EXISTS (SELECT function_name FROM duckdb_functions() WHERE NOT internal)"
_FUNCTIONS = (
    "NOT EXISTS (SELECT function_name FROM duckdb_functions() WHERE NOT internal "
    "INTERSECT SELECT function_name FROM duckdb_functions() WHERE internal)"
)
"""A macro is called instead of a function of the same name, even ``sum`` or ``+``. Usually none
exists at all, which is known in half the time.
"""
_ALL_SETTINGS = "SELECT name, value FROM duckdb_settings()"
_ACCEPTED: set[frozenset[tuple[Any, ...]]] = set()
"""Settings of connections that gave what Polars gives."""
_PATIENCE = 5
"""Seconds in which a query is expected to stop on request."""


class DuckDBDialect(Dialect):
    """Expressions for DuckDB; wide numbers are HUGEINT, and so are sums."""

    label = "DuckDB"
    types = COMMON_TYPES | frozenset(("UInt8", "UInt16", "UInt32", "UInt64"))
    hashes = interval(0, 2**64 - 1)
    quotient = "//"
    octets = "strlen"
    divides_wide = True
    sums_wide = True

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    @property
    def wide_type(self) -> Any:
        return nw.Int128

    def from_micros(self, number: str) -> str:
        return f"make_timestamp({number})"

    def native_frame(self, frame: pl.DataFrame) -> Any:
        # found by its name, unless the connection has a table of that name
        dpframe_public_frame_of_a_join = frame.to_arrow()
        found = self._relation.query(
            f"dpframe_{uuid4().hex}", "SELECT * FROM dpframe_public_frame_of_a_join"
        )
        assert dpframe_public_frame_of_a_join is not None
        return found

    def positional(self, native: Any, names: Sequence[str]) -> Any:
        made = []
        for given, name, dtype in zip(native.columns, names, native.types, strict=True):
            column = quoted(given)
            if str(dtype) == "VARCHAR":
                column = f"decode(encode({column}))"  # a column may have a collation; this has none
            elif str(dtype).startswith("ENUM"):
                column = f"CAST({column} AS VARCHAR)"
            made.append(f"{column} AS {name}")
        return native.project(", ".join(made))

    def with_hash(self, native: Any, name: str, parts: Sequence[str], salt: int) -> Any:
        values = ", ".join([*parts, f"{salt % 2**64}::UBIGINT"])
        return native.project(f"*, hash({values}) AS {name}")

    def with_written(self, native: Any, columns: Mapping[str, str]) -> Any:
        made = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return native.project(f"*, {made}")

    def with_position(
        self, native: Any, name: str, within: Sequence[str], order: Sequence[str]
    ) -> Any:
        by = ", ".join(f"{column} ASC NULLS FIRST" for column in order)
        place = f"PARTITION BY {', '.join(within)} ORDER BY {by}"
        return native.project(f"*, row_number() OVER ({place}) AS {name}")


class DuckDBEngine(Engine):
    """Runs plans on the connection of a relation.

    Parameters
    ----------
    relation
        Any relation of it.
    connection
        Objects that must stay open as long as the engine is used.
    declared
        Types of columns that the relation has as text, and whether all their labels were
        declared.
    """

    name = "duckdb"
    label = "DuckDB"

    def __init__(
        self, relation: Any, connection: Any = None, declared: Mapping[str, pl.Enum] | None = None
    ) -> None:
        self._relation = relation
        self._declared = dict(declared or {})
        self._connection = connection
        self._border = Border(relation)
        self._ns = EngineNamespace(DuckDBDialect(relation))
        self.require_settings()
        if not self.is_accepted:
            self._border.require()
        require_text_of_folders(relation.sql_query(), self._border.fetch)
        self._border.require_joins(relation)
        folded = [column.casefold() for column in relation.columns]
        if len(set(folded)) < len(folded):
            raise UnsupportedOperation(
                "two columns have names that DuckDB does not distinguish",
                where="session.protect(relation, ...)",
                remedy="rename one of them first",
            )

    @property
    def ns(self) -> EngineNamespace:
        return self._ns

    @property
    def is_accepted(self) -> bool:
        """Whether a connection with the same settings was; of macros `require_settings` takes
        care.
        """
        return self._settings() in _ACCEPTED

    def accept(self) -> None:
        _ACCEPTED.add(self._settings())

    def _settings(self) -> frozenset[tuple[Any, ...]]:
        return frozenset(self._border.fetch(_ALL_SETTINGS))

    def require_settings(self) -> None:
        """Refuse a connection on which expressions mean something else."""
        if self._border.fetch(f"SELECT {_SETTINGS}") != [(True,)]:
            raise UnsupportedOperation(
                "the connection has a default collation, or arithmetic other than IEEE's",
                why="numbers of a plan could be wrong",
                where="session.protect(relation, ...)",
                remedy="run RESET default_collation; RESET ieee_floating_point_ops",
            )
        if not any(
            self._border.fetch(f"SELECT {e}") == [(True,)] for e in (_NO_MACROS, _FUNCTIONS)
        ):
            raise UnsupportedOperation(
                "the connection has a macro with the name of one of DuckDB's functions, which "
                "would be called instead",
                where="session.protect(relation, ...)",
                remedy="rename the macro",
            )

    def frame(self, data: Any) -> EngineFrame:
        return self._ns.frame(data, self.schema_of(data))

    @property
    def reads_all_columns(self) -> bool:
        return True  # without its optimiser

    def narrow(self, data: Any, columns: Collection[str]) -> Any:
        kinds = zip(data.columns, map(str, data.types), strict=True)
        made = [
            quoted(name) if name in columns else f"{_nothing(kind)} AS {quoted(name)}"
            for name, kind in kinds
        ]
        return data.project(", ".join(made))

    def schema_of(self, data: Any) -> dict[str, Any]:
        """Names and Polars types of a relation's columns, which need not be those of the data: the
        engine is first tried on constants.
        """
        pairs = zip(data.columns, data.types, strict=True)
        return {n: self._declared.get(n, _from_duckdb(str(dtype))) for n, dtype in pairs}

    def empty(self, data: Any, schema: pl.Schema) -> EngineFrame:
        self.require_settings()
        # made of types alone: a query without rows of the relation itself might read it
        kinds = zip(data.columns, map(str, data.types), strict=True)
        made = ", ".join(f"{_nothing(kind)} AS {quoted(name)}" for name, kind in kinds)
        return self._ns.frame(self._border.relation(f"SELECT {made} LIMIT 0"), dict(schema))

    def schema_now(self, data: Any) -> pl.Schema | None:
        return pl.Schema(self.schema_of(data))

    def collect(
        self, frames: Sequence[EngineFrame], *, rehearsed: bool = False
    ) -> list[pl.DataFrame]:
        def work() -> list[Any]:
            return self._border.run(lambda: [frame.native.to_arrow_table() for frame in frames])

        tables = _waited(work, self._interrupt)
        return [as_declared(frame, table) for frame, table in zip(frames, tables, strict=True)]

    def _interrupt(self) -> None:
        """Stop what runs on the connection, where it can be reached: not before DuckDB 2."""
        connection = self._connection or getattr(self._relation, "_con", None)
        if connection is not None:
            connection.interrupt()

    def shares(self, other: Engine) -> bool:
        if not isinstance(other, DuckDBEngine):
            return False
        try:
            self._relation.limit(0).set_alias("one").cross(
                other._relation.limit(0).set_alias("two")
            )
        except duckdb.Error:
            return False
        return True


def _waited(work: Callable[[], Any], interrupt: Callable[[], None]) -> Any:
    """The result of a query, from another thread: DuckDB does not always notice an interruption,
    and the waiting thread does. The query is stopped then, so that the connection can be used
    again.
    """
    done: list[tuple[bool, Any]] = []
    ended = Event()  # an interrupted join takes the thread for ended in some versions of Python

    def run() -> None:
        try:
            done.append((True, work()))
        except BaseException as error:
            done.append((False, error))
        finally:
            ended.set()

    Thread(target=run, name="dpframe duckdb", daemon=True).start()
    try:
        while not ended.wait(0.1):
            pass
    except BaseException:
        end = monotonic() + _PATIENCE
        while not ended.is_set() and monotonic() < end:
            interrupt()  # again: DuckDB forgets one that comes before a query has begun
            ended.wait(0.1)
        raise
    ((succeeded, result),) = done
    if not succeeded:
        raise result
    return result


def scanned(path: str | Path, kind: str, names: Collection[str] = ()) -> tuple[Any, Any]:
    """Files as a relation of a connection of their own, and that connection.

    Folders name no columns, but for those of `names` that are in no file, which are text: DuckDB
    guesses types from all names of folders, so one row could change them.
    """
    require(kind == "parquet", "DuckDB scans Parquet")
    place, where = os.path.expanduser(str(path)), "session.protect(path, engine='duckdb')"
    if "://" not in place:
        files = glob(place, recursive=True)
        if not files:
            raise no_file(path, where)
        for file in files:
            require_readable(file, where)
    connection = duckdb.connect()
    relation = connection.read_parquet(place, hive_partitioning=False)
    if set(names) <= set(relation.columns):
        return relation, connection
    text = "'" + place.replace("'", "''") + "'"
    options = "hive_partitioning = true, hive_types_autocast = false"
    in_folders = connection.sql(f"SELECT * FROM read_parquet({text}, {options})")
    return in_folders if set(names) <= set(in_folders.columns) else relation, connection


def select_columns(relation: Any, names: Sequence[str]) -> Any:
    """A relation with these columns alone; the same relation if it has them in this order,
    because then no query reads other columns.
    """
    if list(relation.columns) == list(names):
        return relation
    return relation.project(", ".join(map(quoted, names)))


def engine_without_files() -> DuckDBEngine:
    """An engine that plans what will run on files that are not looked at yet."""
    relation, connection = streamed(pl.DataFrame({"one": [1]}).to_arrow())
    return DuckDBEngine(relation, connection)


def streamed(rows: Any) -> tuple[Any, Any]:
    """What gives its rows as a stream for each scan, as a relation of a connection of its own, and
    that connection.
    """
    connection = duckdb.connect()
    return connection.from_arrow(rows), connection


def _nothing(kind: str) -> str:
    """A null of a type, in SQL; of types that no operation knows, of any."""
    return "NULL" if _from_duckdb(kind) == pl.Object() else f"CAST(NULL AS {kind})"


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _from_duckdb(written: str) -> Any:
    """The Polars type of a DuckDB type; Object, which no operation takes, if none exists."""
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", written)
    if found:
        return pl.Decimal(int(found[1]), int(found[2]))
    if written.startswith("ENUM("):  # its labels may come from the rows and be undeclared
        return pl.String()
    return _TYPES.get(written, pl.Object())
