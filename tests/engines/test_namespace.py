"""What the typed layer has no form for is refused in words, whatever asks for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import UnsupportedOperation
from dpframe.lower.engines.duckdb_engine import DuckDBEngine

SQL = """
    SELECT 1::TINYINT AS small, 2::BIGINT AS whole, 0.5::DOUBLE AS real,
        1.5::DECIMAL(4, 2) AS price, 'a.b' AS text
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


def test_a_pattern_is_not_taken_for_text(relation: Any) -> None:
    people, text = dp.Session(epsilon=1).protect(relation, dp.Rows()), pl.col("text").str
    for found in (
        text.contains("."),
        text.find("."),
        text.count_matches("."),
        text.replace(".", "-"),
        text.replace_all(".", "-"),
    ):
        with pytest.raises(UnsupportedOperation, match="a regular expression"):
            people.with_columns(found=found).dp_count()


def test_keys_are_what_the_engine_compares(relation: Any) -> None:
    people = dp.Session(epsilon=1).protect(relation, dp.Rows())
    with pytest.raises(UnsupportedOperation, match="the type Decimal"):
        people.group_by("price", keys=[Decimal("1.5")]).dp_count()
    with pytest.raises(UnsupportedOperation, match="the operation 'str_to_titlecase'"):
        people.group_by(key=pl.col("text").str.to_titlecase(), keys={"key": ["A.B"]}).dp_count()


def test_constant_moments_have_the_numbers_of_polars(relation: Any) -> None:
    numbers = {
        date(1969, 12, 31): -1,
        date(2020, 1, 2): 18_263,
        datetime(1969, 12, 31): -86_400_000_000,
        datetime(2020, 1, 2, microsecond=5): 1_577_923_200_000_005,
        None: None,
    }
    engine = DuckDBEngine(relation)
    made = [engine.ns.lit(one).cast(pl.Int64).alias(str(one)) for one in numbers]
    found = engine.collect([engine.frame(relation).select(*made)])[0]
    assert found.row(0) == tuple(numbers.values())
    assert found.row(0) == pl.select(pl.lit(m).cast(pl.Int64).alias(str(m)) for m in numbers).row(0)


def test_names_are_selected_beside_expressions(relation: Any) -> None:
    engine = DuckDBEngine(relation)
    frame, more = engine.frame(relation), (engine.ns.col("whole") + 1).alias("more")
    found = engine.collect([frame.select("small", more, "real"), frame.select("text", "small")])
    assert found[0].to_dicts() == [{"small": 1, "more": 3, "real": 0.5}]
    assert found[1].to_dicts() == [{"text": "a.b", "small": 1}]


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
