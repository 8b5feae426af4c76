"""Groups are found in rounds on every engine: what is left out is left out, nulls too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.api.query import parts
from dpframe.lower.engines.polars_engine import PolarsEngine, Room
from dpframe.lower.execution import Execution, TablesWanted
from dpframe.release.draws import chooser_of
from dpframe.simulate import Exact
from tests.api.test_dp_groups import BY, SURE, table
from tests.engines.spark import session
from tests.laws.neighbours import tables_of
from tests.lower.test_buckets import needs_pieces

__all__ = ["session"]

ROWS = table().with_columns(pl.col("c").cast(pl.String))


def groups_on(frame: Any, by: list[Any], engine: Any = None) -> pl.DataFrame:
    """The groups that three rounds find with hardly any noise."""
    people = dp.Session(epsilon=10**6, delta="0.1").protect(frame, "who", name="visits")
    query = people.group_by(*by).dp_groups(rounds=3)
    if engine is None:
        return query.collect(**SURE)
    asked, _, _ = parts(query)
    prepared = pipeline.plan(asked, dp.ApproxDP(SURE["epsilon"], SURE["delta"]), None)
    token = asked.relation.token
    where = Execution(engine, {token: frame.lazy()}, {token: frame.schema})
    chooser = chooser_of(prepared.draws, Exact.of(prepared).places)
    wanted = TablesWanted(asked.relation, asked.groups, tables_of(asked), chooser)
    (counted,) = where.run_all([wanted])
    assert counted.groups is not None
    return counted.groups.keys


@pytest.mark.parametrize("name", BY)
def test_duckdb_finds_the_same(name: str) -> None:
    connection = duckdb.connect()
    connection.register("given", ROWS.to_arrow())
    here = groups_on(ROWS, BY[name])
    assert here.rows() == groups_on(connection.sql("SELECT * FROM given"), BY[name]).rows()
    assert here.height > 1


@needs_pieces
@pytest.mark.parametrize("name", ["two", "computed"])
def test_people_in_buckets_find_the_same(name: str) -> None:
    here = groups_on(ROWS, BY[name])
    assert here.rows() == groups_on(ROWS, BY[name], PolarsEngine("in-memory", Room(3))).rows()


@pytest.mark.spark
@pytest.mark.parametrize("name", ["two", "dates", "computed"])
def test_spark_finds_the_same(name: str, session: Any, tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "rows.parquet")
    there = session.read.parquet(str(tmp_path / "rows.parquet"))
    assert groups_on(ROWS, BY[name]).rows() == groups_on(there, BY[name]).rows()
