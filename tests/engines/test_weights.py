"""Weights of individuals are the same whole numbers on every engine."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.api.query import parts
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from dpframe.lower.tables import lower_query
from tests.engines.spark import session
from tests.engines.weights import check_weights
from tests.laws.amounts import examples
from tests.laws.neighbours import tables_of

__all__ = ["session"]


def relation(connection: Any, frame: pl.DataFrame) -> Any:
    connection.register("given", frame.to_arrow())
    return connection.sql("SELECT * FROM given")


def test_weights_are_the_largest_on_duckdb() -> None:
    connection = duckdb.connect()
    engine = DuckDBEngine(connection.sql("SELECT 1 AS x"))
    kept: list[Any] = []

    def native(frame: pl.DataFrame) -> Any:
        kept.append(frame.to_arrow())
        return connection.from_arrow(kept[-1])

    check_weights(engine, native)


@pytest.mark.spark
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_weights_are_the_largest_on_spark(ansi: str, session: Any) -> None:
    from dpframe.lower.engines.spark_engine import SparkDialect, SparkEngine

    session.conf.set("spark.sql.ansi.enabled", ansi)
    check_weights(SparkEngine(session.range(1)), SparkDialect(session).native_frame)


@examples(15, 120)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**62, -(2**63)]),
        ),
        max_size=12,
    )
)
def test_sums_over_rows_of_the_same_value_wrap(rows: list[tuple[int, int | None]]) -> None:
    connection = duckdb.connect()
    schema = {"g": pl.Int64, "n": pl.Int64}
    given_frame = relation(connection, pl.DataFrame(rows, schema=schema, orient="row"))
    engine = DuckDBEngine(given_frame)
    ns, frame = engine.ns, engine.frame(given_frame)
    total = ns.col("n").sum().over([ns.col("g")]).alias("total")
    (found,) = engine.collect([frame.select(ns.col("g").alias("g"), total)])
    for group, made in found.rows():
        exact = sum(n for g, n in rows if g == group and n is not None)
        assert made == (exact + 2**63) % 2**64 - 2**63
    assert found.height == len(rows)


def test_sums_of_floats_over_rows_are_refused() -> None:
    given_frame = duckdb.connect().sql("SELECT 1 AS g, 0.5::DOUBLE AS x")
    engine = DuckDBEngine(given_frame)
    ns, frame = engine.ns, engine.frame(given_frame)
    with pytest.raises(UnsupportedOperation, match="sum over rows"):
        frame.select(ns.col("x").sum().over([ns.col("g")]).alias("t"))


def weighed(given_frame: Any, engine: Any, data: Any) -> Any:
    """The exact query of weighed rows and individuals by a group."""
    people = dp.Session(epsilon=1).protect(given_frame, "u").limit_norm(2)
    query = people.group_by("g", keys=[0, 1]).agg(n=dp.count(), people=dp.n_unique("u"))
    asked = parts(query)[0]
    tables = tables_of(asked)
    (lowered,) = lower_query(asked.relation, asked.groups, tables, engine.frame(data), engine.ns)
    return lowered.frame


def test_data_are_read_once_on_duckdb() -> None:
    """So weights are of the rows that are weighed, even where data are not the same each time."""
    given_frame = duckdb.connect().sql("SELECT i AS u, i % 2 AS g FROM range(9) t(i)")
    lowered = weighed(given_frame, DuckDBEngine(given_frame), given_frame)
    assert lowered.native.explain().count(" RANGE ") == 1


@pytest.mark.spark
def test_data_are_read_once_on_spark(session: Any) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    given_frame = session.range(9).selectExpr("id AS u", "id % 2 AS g")
    lowered = weighed(given_frame, SparkEngine(given_frame), given_frame)
    plan = lowered.native._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("Range (") == 1
