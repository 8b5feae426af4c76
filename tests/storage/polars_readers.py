"""How stored rows come to Polars: by paths, by its own scans, through pyarrow, DuckDB, deltalake
and pyiceberg.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from polars.io.plugins import register_io_source

from tests.storage.law import VIEWS, Reader, View
from tests.storage.rows import SCHEMA
from tests.storage.writers import Stored

_ALL = tuple(VIEWS)
_FILES = frozenset({"parquet", "ipc", "hive"})
_TEXT = {name: SCHEMA[name] for name in ("u", "i", "k", "x", "y", "z", "d", "dec")}
_DATASETS = {"parquet": "parquet", "hive": "parquet", "ipc": "ipc", "orc": "orc"}


def _path(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    if stored.form == "csv":
        return stored.path, {"schema": _TEXT}
    if stored.form == "hive":
        typed = any(SCHEMA[name] != pl.String() for name in stored.hive)
        return stored.path, {"schema": {n: SCHEMA[n] for n in stored.columns}} if typed else {}
    return stored.path, {}


def _scanned(stored: Stored, **options: Any) -> pl.LazyFrame:
    match stored.form:
        case "parquet":
            return pl.scan_parquet(stored.path, **options)
        case "hive":
            types = {name: SCHEMA[name] for name in stored.hive}
            return pl.scan_parquet(stored.path, hive_schema=types, **options)
        case "ipc":
            return pl.scan_ipc(stored.path)
        case "delta":
            return pl.scan_delta(stored.path)
    assert stored.form == "iceberg"
    return pl.scan_iceberg(stored.table)


def _doubting(stored: Stored) -> dict[str, Any]:
    """What an owner says who believes no footer."""
    return {} if stored.form == "ipc" else {"use_statistics": False}


def _dataset(stored: Stored) -> Any:
    kind = _DATASETS[stored.form]
    if stored.form != "hive":
        files = sorted(Path(stored.path).parent.glob(Path(stored.path).name))
        return ds.dataset([str(file) for file in files], format=kind)
    fields = [
        (name, pa.string() if SCHEMA[name] == pl.String() else pa.int32()) for name in stored.hive
    ]
    return ds.dataset(
        stored.path, format=kind, partitioning=ds.partitioning(pa.schema(fields), flavor="hive")
    )


def _frame(make: Callable[[Stored], pl.LazyFrame]) -> Any:
    """A LazyFrame, and what the owner made of it."""

    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        return view.polars(make(stored)), {}

    return read


def _of_arrow(make: Callable[[Any], Any]) -> Any:
    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        return make(_dataset(stored)), {}

    return read


def _reader_of(dataset: Any) -> Any:
    return dataset.scanner(batch_size=7).to_reader()


def _relation(stored: Stored) -> pl.LazyFrame:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    hive = ", hive_partitioning = true, hive_types_autocast = false" if stored.hive else ""
    path = stored.path + "/**/*.parquet" if stored.hive else stored.path
    relation = connection.sql(f"FROM read_parquet('{path}'{hive})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return relation.pl(lazy=True)


def _table(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
    import deltalake

    return deltalake.DeltaTable(stored.path), {}


def _arrow_delta(stored: Stored) -> pl.LazyFrame:
    return pl.scan_delta(stored.path, use_pyarrow=True)


def _forms(*names: str) -> frozenset[str]:
    return frozenset(names)


READERS = [
    Reader("a path", _forms("parquet", "ipc", "hive", "delta", "csv"), _path),
    Reader("a scan", _FILES | {"delta"}, _frame(_scanned), _ALL, may_refuse=True),
    Reader(
        "a scan without statistics",
        _forms("parquet", "hive"),
        _frame(lambda stored: _scanned(stored, use_statistics=False)),
        _ALL,
        may_refuse=True,
    ),
    Reader(
        "a scan in pieces",
        _forms("parquet"),
        _frame(lambda stored: _scanned(stored, parallel="prefiltered")),
        _ALL,
        may_refuse=True,
    ),
    Reader(
        "rows in memory",
        _FILES,
        lambda stored, view: (_scanned(stored, **_doubting(stored)).collect(), {}),
    ),
    Reader("a dataset", _forms("parquet", "hive", "ipc", "orc"), _of_arrow(lambda d: d)),
    Reader("a table", _forms("parquet", "ipc", "orc"), _of_arrow(lambda d: d.to_table())),
    Reader("batches", _forms("parquet", "hive", "ipc", "orc"), _of_arrow(_reader_of)),
    Reader(
        "a scan of a dataset",
        _forms("parquet", "hive", "ipc", "orc"),
        _frame(lambda stored: pl.scan_pyarrow_dataset(_dataset(stored))),
        _ALL,
        may_refuse=True,
    ),
    *(
        [Reader("a relation", _forms("parquet"), _frame(_relation), _ALL, may_refuse=True)]
        if "is_pure" in signature(register_io_source).parameters  # which DuckDB 2 needs
        else []
    ),
    *(
        [
            Reader("a Delta table", _forms("delta"), _table),
            Reader(
                "a Delta table through pyarrow",
                _forms("delta"),
                _frame(_arrow_delta),
                _ALL,
                may_refuse=True,
            ),
        ]
        if find_spec("deltalake") is not None
        else []
    ),
    *(
        [Reader("a scan of Iceberg", _forms("iceberg"), _frame(_scanned), _ALL, may_refuse=True)]
        if find_spec("pyiceberg") is not None
        else []
    ),
]
