"""How stored rows come to DuckDB: files, views, tables and frames, filtered by the owner or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.dataset as ds

from tests.storage.law import VIEWS, Reader, View
from tests.storage.rows import SCHEMA
from tests.storage.writers import Stored

_WHERE = tuple(name for name, view in VIEWS.items() if view.where is not None)
_SQL_TYPES = {"g": "VARCHAR", "k": "INTEGER"}
"""Of columns in the names of folders."""


def _connect(*settings: str) -> Any:
    connection = duckdb.connect()
    for setting in ("TimeZone = 'UTC'", "threads = 2", *settings):
        connection.execute(f"SET {setting}")
    return connection


def _files(stored: Stored, options: str = "") -> str:
    """The rows of files, in SQL."""
    if stored.hive:
        options += ", hive_partitioning = true, hive_types_autocast = false"
    path = stored.path + "/**/*.parquet" if stored.form == "hive" else stored.path
    files = f"read_parquet('{path}'{options})"
    if not stored.hive:
        return files
    typed = ", ".join(f"TRY_CAST({name} AS {_SQL_TYPES[name]}) AS {name}" for name in stored.hive)
    return f"(SELECT * REPLACE ({typed}) FROM {files})"


def _query(
    select: str, *settings: str, options: str = ""
) -> Callable[[Stored, View], tuple[Any, dict[str, Any]]]:
    """A query over files: `{files}` stands for these, `{where}` for the owner's filter."""

    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        files = _files(stored, options)
        return _connect(*settings).sql(select.format(files=files, where=view.where)), {}

    return read


def _beside(stored: Stored) -> Path:
    """A folder for other files of the same rows: neighbours have different ones."""
    place = Path(stored.path.removesuffix("*.parquet"))
    if not place.is_dir():
        return place.parent
    made = place.with_name(f"{place.name}-beside")
    made.mkdir(exist_ok=True)
    return made


def _relation(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    return _connect().read_parquet(stored.path).filter(view.where), {}


def _path(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    return stored.path, {"engine": "duckdb"}


def _made(
    *statements: str, then: str = "rows", where: bool = True
) -> Callable[[Stored, View], tuple[Any, dict[str, Any]]]:
    """A table or view that some statements make."""

    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        connection = _connect()
        place = _beside(stored)
        for statement in statements:
            connection.execute(
                statement.format(files=_files(stored), where=view.where, place=place)
            )
        made = connection.table(then)
        return made.filter(view.where) if where else made, {}

    return read


def _stored_table(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    """A table of a database file, opened again."""
    path = str(_beside(stored) / "rows.db")
    with duckdb.connect(path) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE rows AS FROM {_files(stored)}")
        connection.execute("CHECKPOINT")
    connection = duckdb.connect(path, read_only=True)
    connection.execute("SET TimeZone = 'UTC'")
    return connection.sql(f"FROM rows WHERE {view.where}"), {}


def _in_memory(
    make: Callable[[pl.DataFrame], Any],
) -> Callable[[Stored, View], tuple[Any, dict[str, Any]]]:
    """A frame in memory that the connection reads."""

    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        rows = pl.scan_ipc(stored.path) if stored.form == "ipc" else pl.scan_parquet(stored.path)
        connection = _connect()
        connection.register("rows", make(rows.collect()))
        return connection.sql(f"FROM rows WHERE {view.where}"), {}

    return read


def _dataset(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    files = sorted(Path(stored.path).parent.glob(Path(stored.path).name))
    kind = "parquet" if stored.form == "parquet" else stored.form
    connection = _connect()
    connection.register("rows", ds.dataset([str(file) for file in files], format=kind))
    return connection.sql(f"FROM rows WHERE {view.where}"), {}


_PARQUET = frozenset({"parquet"})
_BOTH = frozenset({"parquet", "hive"})
_COLUMNS = ", ".join(SCHEMA)

READERS = [
    Reader("a path", _PARQUET, _path),
    Reader("a relation", _PARQUET, _relation, _WHERE),
    Reader("a query", _BOTH, _query("FROM {files} WHERE {where}"), _WHERE),
    Reader(
        "a query with options",
        _BOTH,
        _query(
            f"SELECT {_COLUMNS} FROM {{files}} WHERE {{where}}",
            "parquet_metadata_cache = true",
            "preserve_insertion_order = false",
            options=", union_by_name = true, file_row_number = true, filename = true",
        ),
        _WHERE,
    ),
    Reader(
        "a query of queries",
        _BOTH,
        _query(
            "WITH a AS MATERIALIZED (FROM {files}), b AS (SELECT *, x > 5 AS w FROM a) "
            "SELECT * EXCLUDE w FROM (FROM b WHERE {where} UNION ALL FROM b WHERE FALSE)"
        ),
        _WHERE,
    ),
    Reader(
        "a semi-join",
        _BOTH,
        _query(
            "WITH f AS (FROM {files}) SELECT f.* FROM f SEMI JOIN "
            "(SELECT DISTINCT u FROM f) AS people ON f.u = people.u WHERE {where}"
        ),
        _WHERE,
    ),
    Reader("a view", _BOTH, _made("CREATE VIEW rows AS FROM {files}"), _WHERE),
    Reader(
        "views over views",
        _BOTH,
        _made(
            "CREATE VIEW a AS SELECT * FROM {files}",
            "CREATE VIEW b AS SELECT *, x > 5 AS w FROM a WHERE {where}",
            "CREATE VIEW rows AS SELECT * EXCLUDE w FROM b",
            where=False,
        ),
        _WHERE,
    ),
    Reader("a table", _BOTH, _made("CREATE TABLE rows AS FROM {files}"), _WHERE),
    Reader(
        "a table that had other rows",
        _BOTH,
        _made(
            "CREATE TABLE rows AS FROM {files}",
            "INSERT INTO rows (u, i, x, s) VALUES (-1, 1000, 'NaN', 'zz'), (-1, -1000, 7, '')",
            "CREATE INDEX found ON rows (i)",
            "DELETE FROM rows WHERE u = -1",
        ),
        _WHERE,
    ),
    Reader("a table in a file", _BOTH, _stored_table, _WHERE),
    Reader(
        "a table of an attached file",
        _BOTH,
        _made(
            "ATTACH '{place}/other.db' AS other",
            "CREATE TABLE other.rows AS FROM {files}",
            "CHECKPOINT other",
            then="other.rows",
        ),
        _WHERE,
    ),
    Reader(
        "an Arrow table",
        frozenset({"parquet", "ipc"}),
        _in_memory(lambda frame: frame.to_arrow()),
        _WHERE,
    ),
    Reader("a Polars frame", frozenset({"parquet", "ipc"}), _in_memory(lambda f: f), _WHERE),
    Reader("a dataset", frozenset({"parquet", "ipc", "orc"}), _dataset, _WHERE),
]
