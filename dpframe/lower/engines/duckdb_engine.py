"""DuckDB: relations of one connection."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from glob import escape, glob, iglob
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import Any, Final, TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import duckdb
import narwhals.stable.v2 as nw
import polars as pl

from dpframe.core.interval import interval
from dpframe.errors import UnsupportedOperation, require
from dpframe.lower.engines.engine import Engine
from dpframe.lower.engines.engine_expr import COMMON_TYPES, Dialect
from dpframe.lower.engines.frames import EngineFrame, EngineNamespace, as_declared
from dpframe.lower.text_files import no_file, require_readable

# Columns in the names of folders, such as ``year=2026``, that DuckDB reads: text, or refused.
#
# DuckDB guesses their types from all names, so one row with a folder of its own could change a
# type; and with `hive_types` a name that is no value of the type makes a query fail. Neither plans
# nor settings show which files a relation reads, and how. Its own SQL does, and so does the SQL of
# views and of macros.

_READERS: Final = (
    "SELECT DISTINCT function_name FROM duckdb_functions() "
    "WHERE list_contains(parameters, 'hive_partitioning')"
)
_VIEWS: Final = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
_MACROS: Final = (
    "SELECT function_name, macro_definition FROM duckdb_functions() "
    "WHERE function_type = 'table_macro' AND NOT internal"
)
_WILDCARD: Final = re.compile(r"[*?\[]")

Relation: TypeAlias = "duckdb.DuckDBPyRelation"
Opened: TypeAlias = "tuple[duckdb.DuckDBPyRelation, duckdb.DuckDBPyConnection]"
_Tree: TypeAlias = Any
"""A part of a query or of a plan as DuckDB writes it in JSON, which differs between versions."""
Row: TypeAlias = tuple[Any, ...]
Fetch = Callable[[str], list[Row]]


def require_text_of_folders(sql: str, fetch: Fetch) -> None:
    """Refuse a query that reads columns off the names of folders as anything but text.

    Parameters
    ----------
    fetch
        Gives the rows of a query on the same connection.

    Raises
    ------
    UnsupportedOperation
        Saying which options to write.
    """
    readers, bodies = set[str](), dict[str, list[str]]()
    seen, texts = {sql}, [sql]
    while texts:
        text = texts.pop()
        sources = _sources_in(text, fetch)
        if sources != [] and not readers:
            readers = {str(name).lower() for (name,) in fetch(_READERS)}
            for name, body in [*fetch(_VIEWS), *fetch(_MACROS)]:
                bodies.setdefault(str(name).lower(), []).append(body)
        if sources is None:
            if any(reader in text.lower() for reader in readers):
                raise _guess_refusal(
                    "DuckDB does not show how a part of the query reads its files, and "
                )
            continue
        for source in sources:
            is_call = source["type"] == "TABLE_FUNCTION"
            call = source["function"] if is_call else source
            name = str(call["function_name" if is_call else "table_name"])
            if is_call and name.lower() in readers:
                _require_text(call.get("arguments") or call.get("children") or [])
            elif not is_call and name.lower() not in bodies:
                _require_text([{"literal": {"text": name}}])  # a path, or a table
            new = [body for body in bodies.get(name.lower(), []) if body not in seen]
            seen.update(new)
            texts += new


def _sources_in(sql: str, fetch: Fetch) -> list[_Tree] | None:
    """What a query, or that of a view, reads from; None where DuckDB does not parse it, or has no
    JSON to say so.
    """
    starts = [0]
    if sql.lstrip().upper().startswith("CREATE"):
        starts = [place.end() for place in re.finditer(r"\sAS\s", sql, re.IGNORECASE)]
    for start in starts:
        text = sql[start:].replace("'", "''")
        try:
            ((tree,),) = fetch(f"SELECT json_serialize_sql('{text}')")
        except duckdb.Error:
            return None
        found = json.loads(tree)
        if not found.get("error"):
            return list(_sources(found))
    return None


def _sources(tree: object) -> Iterator[_Tree]:
    """What a query reads from, in each of its parts."""
    if isinstance(tree, list):
        for part in tree:
            yield from _sources(part)
    if isinstance(tree, dict):
        if tree.get("type") in ("TABLE_FUNCTION", "BASE_TABLE"):
            yield tree
        for part in tree.values():
            yield from _sources(part)


def _require_text(arguments: list[_Tree]) -> None:
    positional: list[_Tree] = []
    options: dict[str, _Tree] = {}
    for argument in arguments:
        value = argument.get("expression", argument)
        name = argument.get("name") or value.get("alias")
        if value.get("class") == "COMPARISON" and "column_names" in value.get("left", {}):
            name, value = value["left"]["column_names"][-1], value["right"]
        if name:
            options[str(name).lower()] = value
        else:
            positional.append(value)
    if "hive_partitioning" in options and _is_false(options["hive_partitioning"]):
        return
    is_text = "hive_types_autocast" in options and _is_false(options["hive_types_autocast"])
    if is_text and "hive_types" not in options:
        return
    paths = list(_texts(positional[:1]))
    stated = "hive_partitioning" in options or "hive_types" in options
    if paths and not any(_names_columns(path, stated=stated) for path in paths):
        return
    raise _guess_refusal()


def _guess_refusal(but: str = "") -> UnsupportedOperation:
    """The refusal of columns whose types depend on the names of folders."""
    return UnsupportedOperation(
        f"{but}DuckDB guesses the types of columns in the names of folders, so one row "
        "could change them",
        where="session.protect(relation, ...)",
        remedy=(
            "in read_parquet write hive_partitioning = true, hive_types_autocast = false, and "
            "TRY_CAST a column to another type",
            "write hive_partitioning = false, which leaves these columns out",
        ),
    )


def _names_columns(path: str, *, stated: bool) -> bool:
    """Whether folders that a path leaves open name columns."""
    if os.path.isdir(path):
        path = os.path.join(escape(path), "**", "*")
    folder, _, _ = path.replace("\\", "/").rpartition("/")
    if _WILDCARD.search(folder) is None:
        return False
    if stated or "://" in path:
        return True
    # DuckDB reads columns off names only if all files have them
    files = (file for file in iglob(os.path.expanduser(path), recursive=True))
    first = next((file for file in files if os.path.isfile(file)), "")
    return "=" in os.path.dirname(first)


def _texts(tree: object) -> Iterator[str]:
    """Constant texts in a part of a query, as DuckDB 1 and 2 write them."""
    if isinstance(tree, list):
        for part in tree:
            yield from _texts(part)
    if isinstance(tree, dict):
        text = _constant(tree)
        if isinstance(text, str):
            yield text
        for part in tree.values():
            yield from _texts(part)


def _is_false(value: _Tree) -> bool:
    return _constant(value.get("child", value)) in ("false", "f", False)


def _constant(value: _Tree) -> _Tree:
    for key, inner in (("literal", "text"), ("value", "value")):
        if isinstance(value.get(key), dict) and inner in value[key]:
            return value[key][inner]
    return None


# The border between what a DuckDB relation holds and what is computed from it: no optimiser.
#
# DuckDB decides about rows by what it knows of stored values: it folds conditions, skips row groups
# and pages, and narrows scans and joins by minima and maxima, bloom filters and dictionaries. What
# is known need not hold for a row. Writers of Parquet leave NaN out of minima and maxima, and
# footers may be stale, so whether a row counts depended on the values of others. All of this is the
# optimiser's work. While a query runs, the optimiser of its connection is off: no condition, be it
# the plan's or the data owner's, reaches a scan, and no statistic leaves one (decision 24).


T = TypeVar("T")

_WHERE = "session.protect(relation, ...)"
_LEAVES_VIEWS = int(duckdb.__version__.split(".")[0]) < 2
"""There `relation.query` makes a temporary view of the relation."""
_STATISTICS = "SELECT stats(i) FROM range(3) AS t(i)"
"""What DuckDB knows of values at the moment, as its own function says."""
_NONE = (None, "No statistics")
_TO_RESTORE = 10
"""Seconds in which the optimiser can be turned on again although interruptions keep coming."""
_MARK = 0x0123_4567_89AB_CDEF
_PROBE = """
SELECT (SELECT count(*) FROM {file} WHERE x > 5), (SELECT count(*) FROM {file} WHERE x <> 1),
    (SELECT count(*) FROM (SELECT * FROM {file} WHERE isnan(x)) WHERE x > 5),
    (SELECT sum(CASE WHEN x > 5 THEN 1 ELSE 0 END) FROM {file}),
    (SELECT count(*) FROM {file} WHERE i > 5), (SELECT count(*) FROM {file} WHERE i <> 0),
    (SELECT max(i) FROM {file})
"""
_RIGHT = (3, 3, 3, 3, 4, 4, _MARK)
_COMPARES = re.compile(r" = |IS NOT DISTINCT FROM")
"""What the optimiser makes a join of."""
_LOCKS: WeakValueDictionary[int, Lock] = WeakValueDictionary()
_NEW_LOCK = Lock()


class Border:
    """The connection of a relation, and its optimiser.

    Parameters
    ----------
    relation
        Any relation of the connection.
    """

    def __init__(self, relation: Relation) -> None:
        # reads nothing of the relation, so it works for any data
        self._home = _ask(relation, "SELECT 1 AS one")
        ((number,),) = self.fetch("SELECT current_connection_id()")
        with _NEW_LOCK:
            # numbers are those of one database: others may share a lock, and wait for each other
            self._lock = _LOCKS.setdefault(number, Lock())

    def fetch(self, sql: str) -> list[Row]:
        """The rows of a query that names what it reads."""
        found: list[Row] = _ask(self._home, sql).fetchall()
        return found

    def relation(self, sql: str) -> Any:
        """A query that names what it reads, as a relation."""
        return _ask(self._home, sql)

    def run(self, work: Callable[[], T]) -> T:
        """What some work on the connection gives while the optimiser is off, as it was before
        afterwards. One thread after another: the setting is the connection's.

        Guarantee
        ---------
        The optimiser is off whenever `work` has DuckDB plan a query.

        Proof
        -----
        It is turned off before the work, and the result is used only after DuckDB confirms that
        it is still off. No other work of dpframe on this connection is under way, and other
        connections of the database have their own settings. (An owner who turns it on and off
        again meanwhile, from another thread on the same connection, is not noticed.)

        Raises
        ------
        UnsupportedOperation
            When it cannot be turned off.
        """
        with self._lock:
            was_on = self._is_on()
            if was_on:
                self._turn_off()
            try:
                result = work()
                if self._is_on():
                    raise _unsafe("cannot be turned off, or was turned on while a query ran")
                return result
            finally:
                if was_on:
                    self._turn_on()

    def _is_on(self) -> bool:
        return any(known not in _NONE for (known,) in self.fetch(_STATISTICS))

    def _turn_off(self) -> None:
        try:
            _ask(self._home, "PRAGMA disable_optimizer")
            return
        except duckdb.InvalidInputException:  # the only way to refuse a setting
            pass
        except BaseException:
            self._turn_on()
            raise
        raise UnsupportedOperation(
            "DuckDB's optimiser must be off while a query runs, and the configuration of the "
            "connection is locked",
            where=_WHERE,
            why="the optimiser decides about some rows by statistics of others",
            remedy="run PRAGMA disable_optimizer before SET lock_configuration = true",
        )

    def _turn_on(self) -> None:
        end = monotonic() + _TO_RESTORE
        while True:
            try:
                _ask(self._home, "PRAGMA enable_optimizer")
                return
            except duckdb.Error as error:
                interrupted = isinstance(error, duckdb.InterruptException)
            if not interrupted or monotonic() > end:
                warnings.warn(
                    "DuckDB's optimiser is still off on the connection, for example because a "
                    "query failed in a transaction: run ROLLBACK, then PRAGMA enable_optimizer",
                    RuntimeWarning,
                    stacklevel=2,
                )
                return
            sleep(0.01)

    # -- before a relation is used --------------------------------------------------------------

    def require(self) -> None:
        """Refuse a connection on which statistics act all the same: tried with a small file whose
        values are outside of what its footer says.

        Raises
        ------
        UnsupportedOperation
            Saying what to do instead.
        """
        rows, kind = None, ""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "values.parquet"
            _write_stale(path)
            file = "read_parquet('" + str(path).replace("'", "''") + "')"
            try:
                rows = self.run(lambda: self.fetch(_PROBE.format(file=file)))
            except duckdb.Error as error:  # of constants
                kind = type(error).__name__
        if rows is None:
            raise UnsupportedOperation(
                f"the connection cannot read a temporary file of dpframe ({kind})",
                where=_WHERE,
                remedy="use a connection whose enable_external_access is true, the default",
            )
        if rows != [_RIGHT]:
            raise _unsafe("is off, but statistics still decide about rows")

    def require_joins(self, relation: Any) -> None:
        """Refuse a relation that combines each row with each other one unless the optimiser turns
        that into a join: without the optimiser this may take forever. DuckDB before 2 is not
        asked.

        Raises
        ------
        UnsupportedOperation
            Saying how to write the join.
        """
        if _LEAVES_VIEWS:
            return
        name = _name()
        told = self.run(
            lambda: relation.query(name, f"EXPLAIN (FORMAT JSON) SELECT * FROM {name}").fetchall()
        )
        if any(_combines(json.loads(text)) for _, text in told):
            raise UnsupportedOperation(
                "the relation compares columns of two tables in WHERE, or in a subquery",
                where=_WHERE,
                why="DuckDB's optimiser, which would turn that into a join, is off while a "
                "query runs",
                remedy=(
                    "write FROM a JOIN b ON a.id = b.id, or a SEMI JOIN in place of EXISTS",
                    "write CREATE TABLE from the query, and protect that table",
                ),
            )


def _ask(relation: Relation, sql: str) -> Any:
    """The result of a statement on the connection of a relation; no row of the relation is read."""
    name = _name()
    rows = relation.query(name, sql)
    if _LEAVES_VIEWS:
        relation.query(name, f"DROP VIEW {name}")
    return rows


def _name() -> str:
    return f"dpframe_{uuid4().hex}"


def _write_stale(path: Path) -> None:
    """Three rows of NaN, which are outside of minimum and maximum, and a column whose footer
    claims that all values are 0.
    """
    columns = {"x": [math.nan, math.nan, math.nan, 1.0], "i": [_MARK] * 4}
    pl.DataFrame(columns).write_parquet(path, statistics=True, compression="uncompressed")
    written = path.read_bytes()
    footer = len(written) - 8 - int.from_bytes(written[-8:-4], "little")
    stale = written[footer:].replace(_MARK.to_bytes(8, "little"), bytes(8))
    path.write_bytes(written[:footer] + stale)


def _combines(node: _Tree) -> bool:
    """Whether an operator of a plan, or one below, filters all pairs of rows."""
    if isinstance(node, list):
        return any(map(_combines, node))
    children = node.get("children", [])
    pairs = _operator(node) == "FILTER" and any(_operator(c) == "CROSS_PRODUCT" for c in children)
    return (pairs and _COMPARES.search(json.dumps(node["extra_info"])) is not None) or _combines(
        children
    )


def _operator(node: _Tree) -> str:
    return str(node.get("name", "")).strip().upper().replace(" ", "_")


def _unsafe(what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"the optimiser of the DuckDB connection {what} (DuckDB {duckdb.__version__})",
        where=_WHERE,
        why="one row could decide what other rows count",
        remedy=(
            "use a connection of duckdb.connect() with its default settings",
            "write Parquet and protect its path",
        ),
    )


_TYPES: Mapping[str, pl.DataType] = {
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
_ACCEPTED: set[frozenset[Row]] = set()
"""Settings of connections that gave what Polars gives."""
_TO_STOP = 5
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

    def __init__(self, relation: Relation) -> None:
        self._relation = relation

    @property
    def wide_type(self) -> type[nw.Int128]:
        return nw.Int128

    def from_micros(self, number: str) -> str:
        return f"make_timestamp({number})"

    def native_frame(self, frame: pl.DataFrame) -> Relation:
        # found by its name, unless the connection has a table of that name
        dpframe_public_frame_of_a_join = frame.to_arrow()
        found = self._relation.query(
            f"dpframe_{uuid4().hex}", "SELECT * FROM dpframe_public_frame_of_a_join"
        )
        assert dpframe_public_frame_of_a_join is not None
        assert found is not None
        return found

    def positional(self, native: Relation, names: Sequence[str]) -> Relation:
        made = []
        for given, name, dtype in zip(native.columns, names, native.types, strict=True):
            column = quoted(given)
            if str(dtype) == "VARCHAR":
                column = f"decode(encode({column}))"  # a column may have a collation; this has none
            elif str(dtype).startswith("ENUM"):
                column = f"CAST({column} AS VARCHAR)"
            made.append(f"{column} AS {name}")
        return native.project(", ".join(made))

    def with_hash(self, native: Relation, name: str, parts: Sequence[str], salt: int) -> Relation:
        values = ", ".join([*parts, f"{salt % 2**64}::UBIGINT"])
        return native.project(f"*, hash({values}) AS {name}")

    def with_written(self, native: Relation, columns: Mapping[str, str]) -> Relation:
        made = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        return native.project(f"*, {made}")

    def with_position(
        self, native: Relation, name: str, within: Sequence[str], order: Sequence[str]
    ) -> Relation:
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

    def _settings(self) -> frozenset[Row]:
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

    def frame(self, data: Relation) -> EngineFrame:
        return self._ns.frame(data, self.schema_of(data))

    @property
    def reads_all_columns(self) -> bool:
        return True  # without its optimiser

    def narrow(self, data: Relation, columns: Collection[str]) -> Relation:
        kinds = zip(data.columns, map(str, data.types), strict=True)
        made = [
            quoted(name) if name in columns else f"{_nothing(kind)} AS {quoted(name)}"
            for name, kind in kinds
        ]
        return data.project(", ".join(made))

    def schema_of(self, data: Relation) -> dict[str, pl.DataType]:
        """Names and Polars types of a relation's columns, which need not be those of the data: the
        engine is first tried on constants.
        """
        pairs = zip(data.columns, data.types, strict=True)
        return {n: self._declared.get(n, _from_duckdb(str(dtype))) for n, dtype in pairs}

    def empty(self, data: Relation, schema: pl.Schema) -> EngineFrame:
        self.require_settings()
        # made of types alone: a query without rows of the relation itself might read it
        kinds = zip(data.columns, map(str, data.types), strict=True)
        made = ", ".join(f"{_nothing(kind)} AS {quoted(name)}" for name, kind in kinds)
        return self._ns.frame(self._border.relation(f"SELECT {made} LIMIT 0"), dict(schema))

    def schema_now(self, data: Relation) -> pl.Schema | None:
        return pl.Schema(self.schema_of(data))

    def collect(
        self, frames: Sequence[EngineFrame], *, rehearsed: bool = False
    ) -> list[pl.DataFrame]:
        def work() -> list[object]:
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


def _waited(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """The result of a query, from another thread: DuckDB does not always notice an interruption,
    and the waiting thread does. The query is stopped then, so that the connection can be used
    again.
    """
    done, failed = list[T](), list[BaseException]()
    ended = Event()  # an interrupted join takes the thread for ended in some versions of Python

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            ended.set()

    Thread(target=run, name="dpframe duckdb", daemon=True).start()
    try:
        while not ended.wait(0.1):
            pass
    except BaseException:
        end = monotonic() + _TO_STOP
        while not ended.is_set() and monotonic() < end:
            interrupt()  # again: DuckDB forgets one that comes before a query has begun
            ended.wait(0.1)
        raise
    if failed:
        raise failed[0]
    return done[0]


def scanned(path: str | Path, kind: str, names: Collection[str] = ()) -> Opened:
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


def select_columns(relation: Relation, names: Sequence[str]) -> Relation:
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


def streamed(rows: object) -> Opened:
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


def _from_duckdb(written: str) -> pl.DataType:
    """The Polars type of a DuckDB type; Object, which no operation takes, if none exists."""
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", written)
    if found:
        return pl.Decimal(int(found[1]), int(found[2]))
    if written.startswith("ENUM("):  # its labels may come from the rows and be undeclared
        return pl.String()
    return _TYPES.get(written, pl.Object())
