"""How stored rows come to Spark: files by both versions of scans, views of views, and caches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from tests.storage.law import VIEWS, Reader, View
from tests.storage.rows import SCHEMA
from tests.storage.writers import Stored

_TYPES = {
    "Int64": "bigint",
    "Int32": "int",
    "Float64": "double",
    "Float32": "float",
    "Boolean": "boolean",
    "String": "string",
    "Date": "date",
    "Decimal(precision=12, scale=2)": "decimal(12, 2)",
    "Datetime(time_unit='us', time_zone=None)": "timestamp_ntz",
    "Datetime(time_unit='us', time_zone='UTC')": "timestamp",
}
_WHERE = tuple(name for name, view in VIEWS.items() if view.where is not None)
_NUMBERS = count()
VERSION = "spark.sql.sources.useV1SourceList"
"""The setting that says which files are read by the first version of scans."""


def readers(session: Any) -> list[Reader]:
    """All, on a session."""

    def files(stored: Stored) -> Any:
        columns = ", ".join(f"{name} {_TYPES[str(SCHEMA[name])]}" for name in stored.columns)
        kind = "orc" if stored.form == "orc" else "parquet"
        return session.read.schema(columns).format(kind).load(stored.path)

    def second_version(stored: Stored) -> Any:
        session.conf.set(VERSION, "")
        try:
            return files(stored)
        finally:
            session.conf.unset(VERSION)

    def view_of_views(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        name = f"stored_{next(_NUMBERS)}"
        files(stored).createOrReplaceTempView(name)
        session.sql(
            f"CREATE OR REPLACE TEMP VIEW {name}_where AS SELECT * FROM {name} WHERE {view.where}"
        )
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name}_again AS SELECT * FROM {name}_where")
        return session.table(f"{name}_again"), {}

    stores = frozenset({"parquet", "hive", "orc"})
    return [
        Reader("files of Spark", stores, _frame(files), _WHERE),
        Reader("files of Spark, version 2", stores, _frame(second_version), _WHERE),
        Reader("a view of views", stores, view_of_views, _WHERE),
        Reader("files that are cached", stores, _frame(lambda s: files(s).cache()), _WHERE),
        Reader(
            "columns that are cached",
            stores,
            _frame(lambda s: files(s).selectExpr("*", "1 AS more").cache()),
            _WHERE,
        ),
        Reader(
            "filters that are cached",
            stores,
            lambda stored, view: (files(stored).where(view.where).cache(), {}),
            _WHERE,
        ),
        Reader(
            "a union",
            stores,
            _frame(lambda s: files(s).union(files(s).where("FALSE"))),
            _WHERE,
        ),
    ]


def _frame(make: Callable[[Stored], Any]) -> Any:
    def read(stored: Stored, view: View) -> tuple[Any, dict[str, Any]]:
        return make(stored).where(view.where), {}

    return read
