"""Every row-wise operation, step, statistic and kind of cells: the same on DuckDB, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates import statistics
from dpframe.aggregates.cells import Cells
from dpframe.core.tree import Operation
from dpframe.frames.relation import Step
from dpframe.lower.engines.duckdb_engine import DuckDBEngine
from dpframe.lower.engines.engine import TYPES
from dpframe.rows.operation import Kind
from dpframe.rows.registry import OPERATIONS
from tests.engines.many import KINDS, check_all
from tests.engines.operations import awkward, check, check_refused

FRAME = awkward("duckdb")


@pytest.fixture(scope="module")
def relation() -> Iterator[Any]:
    connection = duckdb.connect()
    connection.register("given", FRAME.to_arrow())
    yield connection.table("given")
    connection.close()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
def test_an_operation_is_the_same_or_refused(operation: Kind, relation: Any) -> None:
    check(operation, DuckDBEngine(relation), relation, FRAME)


def test_durations_are_counted_in_nanoseconds() -> None:
    """DuckDB itself counts microseconds, as which it keeps them."""
    start = datetime(2026, 1, 1)
    rows = pl.DataFrame({"a": [start] * 4, "b": [start + timedelta(seconds=1)] * 4}).to_arrow()
    elapsed = pl.col("b") - pl.col("a")
    with duckdb.connect() as connection:
        people = dp.Session(epsilon=10**9).protect(connection.from_arrow(rows), dp.Rows())
        total = people.agg(elapsed.dt.total_nanoseconds().dp_sum((0, 2 * 10**9)))
        assert total.collect(epsilon=10**8).item() == pytest.approx(4 * 10**9, rel=1e-5)


@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if "duckdb" not in o.engines],
    ids=lambda o: o.name,
)
def test_what_is_not_listed_is_refused_by_name(operation: Kind, relation: Any) -> None:
    check_refused(operation, dp.Session(epsilon=1).protect(relation, dp.Rows()), "DuckDB")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_the_same_on_many_values(kind: str) -> None:
    frame, expressions = KINDS[kind][0](), KINDS[kind][1]
    with duckdb.connect() as connection:
        relation = connection.from_arrow(frame.to_arrow())
        check_all(DuckDBEngine(relation), relation, frame, expressions, 8)


def classes(kind: type) -> set[type]:
    """All classes of a kind that are not abstract."""
    found = {kind} if not getattr(kind, "__abstractmethods__", None) else set()
    return found.union(*(classes(k) for k in kind.__subclasses__()))


def test_what_runs_says_so_itself() -> None:
    """Not by way of a class that it is made from: a new one is refused until somebody looked."""
    every = classes(Step) | classes(statistics.Statistic) | classes(Cells)
    assert statistics.UnitTotal in every
    assert all("engines" in vars(kind) for kind in every)
    assert all(kind.engines <= {"polars", "duckdb", "spark"} for kind in every)
    for name in TYPES:
        assert {k.__name__ for k in every if name not in k.engines} == {"Explode"}


def test_no_operation_runs_on_an_engine_because_another_does() -> None:
    for operation in OPERATIONS:
        kind = operation if isinstance(operation, type) else type(operation)
        said_by = next(k for k in kind.__mro__ if "engines" in vars(k))
        assert said_by in (kind, Operation), operation.name
        assert "polars" in operation.engines
        assert operation.engines <= {"polars", "duckdb", "spark"}


def test_steps_that_are_not_listed_are_refused() -> None:
    connection = duckdb.connect()
    lists = connection.sql("SELECT [1, 2] AS l, 1 AS x")
    people = dp.Session(epsilon=1).protect(lists, dp.Rows())
    people.dp_sum("x", (0, 1))
    with pytest.raises(dp.DPFrameError):
        people.explode("l", max_length=2).dp_count()


def test_grouping_by_floats_is_refused(relation: Any) -> None:
    people = dp.Session(epsilon=1).protect(relation, dp.Rows())
    with pytest.raises(dp.UnsupportedOperation):
        people.group_by("f64", keys=[1.0]).agg(dp.count())
    assert pl.Float64 in FRAME.dtypes
