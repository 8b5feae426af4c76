"""What the typed layer has no form for is refused in words, whatever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.duckdb_engine import DuckDBEngine

SQL = """
    SELECT 1::TINYINT AS small, 2::BIGINT AS whole, 0.5::DOUBLE AS real, 1.5::DECIMAL(4, 2) AS price
"""


@pytest.fixture(scope="module")
def relation() -> Any:
    connection = duckdb.connect()
    yield connection.sql(SQL)
    connection.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda ns: ns.arctan2(ns.col("real"), 1.0),
        lambda ns: ns.col("real").arctan(),
        lambda ns: ns.col("real").dt.nanosecond(),
        lambda ns: ns.col("small") < 300,
        lambda ns: ns.col("small").clip(-129, 5),
        lambda ns: ns.col("whole") + 2**63,
        lambda ns: ns.col("whole") + ns.col("real"),
        lambda ns: ns.col("real") < ns.col("whole"),
        lambda ns: ns.col("whole").clip(0.5, 2),
        lambda ns: ns.col("whole") / 2,
        lambda ns: ns.col("real") // 2,
    ],
)
def test_there_is_no_such_form(relation: Any, ask: Callable[[Any], Any]) -> None:
    engine = DuckDBEngine(relation)
    with pytest.raises(UnsupportedOperation, match="DuckDB"):
        engine.frame(relation).select(ask(engine.ns).alias("x"))


def test_public_frames_have_columns_that_the_engine_compares(relation: Any) -> None:
    people = dp.Session(epsilon=1).protect(relation, dp.Rows())
    public = pl.DataFrame({"whole": [1], "made": [Decimal("1.5")]})
    with pytest.raises(UnsupportedOperation, match="Decimal"):
        people.join(public, on="whole").dp_count().plan(epsilon=1)
    with pytest.raises(UnsupportedOperation, match="Decimal"):
        DuckDBEngine(relation).ns.public(public)
    assert people.join(public.drop("made"), on="whole").dp_count().plan(epsilon=1)


def test_columns_that_a_step_does_not_use_may_be_of_any_type(relation: Any) -> None:
    people = dp.Session(epsilon=1).protect(relation, dp.Rows())
    assert people.filter(pl.col("whole") > 0).dp_count().plan(epsilon=1)
    owned = dp.Session(epsilon=1).protect(relation, unit="whole")
    assert owned.limit_groups(1, by="small").agg(pl.col("whole").dp_n_unique()).plan(epsilon=1)
    for wide in (lambda: owned.limit_rows(1), lambda: people.concat(people)):
        with pytest.raises(UnsupportedOperation, match="the type Decimal"):
            wide().dp_count()


def test_a_run_is_interrupted_where_its_connection_is_known(relation: Any) -> None:
    class Connection:
        interrupted = 0

        def interrupt(self) -> None:
            self.interrupted += 1

    engine = DuckDBEngine(relation)
    engine._connection = connection = Connection()  # type: ignore[assignment]
    engine._interrupt()
    assert connection.interrupted == 1
    engine._connection, engine._relation = None, None  # type: ignore[assignment]
    engine._interrupt()
