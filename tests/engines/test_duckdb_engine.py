"""Plans on DuckDB give the tables that they give on Polars, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from tests.engines.plans import FRAMES, PLANS, query
from tests.engines.running import exact, on_polars, one_hash

__all__ = ["one_hash"]


@pytest.fixture(scope="module")
def relations() -> Iterator[dict[str, Any]]:
    connection = duckdb.connect()
    for name, frame in FRAMES.items():
        connection.register(name, frame.to_arrow())
    yield {name: connection.table(name) for name in FRAMES}
    connection.close()


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.usefixtures("one_hash")
def test_duckdb_gives_the_tables_of_polars(name: str, relations: dict[str, Any]) -> None:
    asked, tokens = query(PLANS[name])
    found = exact(asked, tokens, DuckDBEngine(relations["f"]), relations)
    assert found == on_polars(name)
