"""Equal values give equal results on DuckDB too, however its vectors hold them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pytest

from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from tests.engines.layouts import check
from tests.engines.operations import awkward

ROWS = 4


@pytest.fixture
def connection() -> Iterator[Any]:
    opened = duckdb.connect()
    yield opened
    opened.close()


def constant(connection: Any, seed: int) -> tuple[Any, pl.DataFrame]:
    """Rows of which some columns are one value, by a join with the one row that has them."""
    rng = random.Random(seed)
    frame = awkward("duckdb").sample(ROWS, seed=seed).drop("row")
    names = [name for name in frame.columns if rng.random() < 0.5]
    rest = [name for name in frame.columns if name not in names]
    one = frame[:1].select(names)
    rows = frame.select(rest).with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    connection.register("one", one.to_arrow())
    connection.register("rest", rows.to_arrow())
    connection.execute("CREATE TABLE held AS FROM rest")
    relation = connection.sql("SELECT * FROM held CROSS JOIN one")
    return relation, rows.join(one, how="cross").select(relation.columns)


def picked(connection: Any, seed: int) -> tuple[Any, pl.DataFrame]:
    """Rows picked from a longer table, and repeated, which DuckDB keeps as positions in it."""
    frame = awkward("duckdb")
    rng = random.Random(seed)
    chosen = [rng.randrange(frame.height) for _ in range(ROWS)]
    connection.register("longer", frame.rename({"row": "place"}).to_arrow())
    connection.execute("CREATE TABLE kept AS FROM longer")
    wanted = ", ".join(f"({i}, {at})" for i, at in enumerate(chosen))
    relation = connection.sql(
        f"SELECT CAST(w.row AS BIGINT) AS row, kept.* EXCLUDE (place) "
        f"FROM (VALUES {wanted}) AS w(row, wanted) JOIN kept ON place = wanted"
    )
    rows = frame[chosen].drop("row").with_row_index("row")
    return relation, rows.with_columns(pl.col("row").cast(pl.Int64)).select(relation.columns)


@pytest.mark.parametrize("way", [constant, picked])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_operations(way: Any, seed: int, connection: Any) -> None:
    relation, frame = way(connection, seed)
    assert check(DuckDBEngine(relation), relation, frame) >= 150
