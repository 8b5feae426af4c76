"""DuckDB relations and files under protection, from the data owner's and the analyst's side."""

from __future__ import annotations

import builtins
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import ENOUGH

_OPEN: list[Any] = []
FRAME = pl.DataFrame(
    {
        "user": [1, 1, 2, 3, None],
        "x": [1.5, 2.5, None, 4.0, 9.0],
        "city": ["a", "b", "a", None, "a"],
    }
)


def connected() -> Any:
    """A new connection, which stays open: older versions close it with its last name."""
    _OPEN.append(duckdb.connect())
    return _OPEN[-1]


def relation(frame: pl.DataFrame = FRAME) -> Any:
    connection = connected()
    connection.register("given", frame.to_arrow())
    return connection.table("given")


def protected(given: Any, unit: Any = "user", **more: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=ENOUGH * 9).protect(given, unit, **more)


def test_a_query_on_a_relation() -> None:
    query = (
        protected(relation())
        .filter(pl.col("x") > 1)
        .limit_groups(2, by="city")
        .group_by("city", keys=["a", "b", "c"])
        .agg(people=dp.n_unique("user"), total=pl.col("x").dp_sum((0, 3), per="unit"))
    )
    assert query.collect(epsilon=ENOUGH).rows() == [("a", 1, 1.5), ("b", 1, 2.5), ("c", 0, 0.0)]


def test_the_plan_is_that_of_polars() -> None:
    def plan(frame: dp.PrivateFrame) -> Any:
        return frame.limit_rows(2).agg(pl.col("x").dp_mean((0, 9))).plan(epsilon=1)

    assert plan(protected(relation())).fingerprint == plan(protected(FRAME)).fingerprint


def test_files_run_where_the_owner_says(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "1.parquet")
    FRAME.write_parquet(tmp_path / "2.parquet")
    FRAME.write_csv(tmp_path / "1.csv")
    for path, rows in [("*.parquet", 8), ("1.csv", 4)]:
        for engine in ("duckdb", "polars", None):
            frame = protected(str(tmp_path / path), engine=engine)
            counted = frame.limit_rows(9).dp_count().collect(epsilon=ENOUGH).item()
            assert counted == rows


def test_what_cannot_be_read_by_duckdb(tmp_path: Path) -> None:
    for given in (tmp_path / "no.parquet", tmp_path / "x.ipc", FRAME, 7):
        with pytest.raises(dp.UnsupportedOperation):
            protected(given, engine="duckdb")
    with pytest.raises(dp.UnsupportedOperation, match="does not run on polars"):
        protected(relation(), engine="polars")
    with pytest.raises(dp.UnsupportedOperation, match="there is no engine"):
        protected(relation(), engine="sqlite")


def test_a_relation_runs_on_its_own_engine_only() -> None:
    query = protected(relation(), dp.Rows()).dp_count()
    assert query.collect(epsilon=ENOUGH, engine="duckdb").item() == 5  # type: ignore[arg-type]
    for engine in ("streaming", "in-memory", lambda frame: frame.collect()):
        with pytest.raises(dp.UnsupportedOperation, match="frame belongs to DuckDB"):
            query.collect(epsilon=1, engine=engine)  # type: ignore[arg-type]


def test_refusals_name_the_engine_and_come_before_anything_is_charged() -> None:
    people = protected(relation(), dp.Rows())
    for expression in (
        pl.col("city").str.to_uppercase() == "A",
        pl.col("x").log() > 1,
        pl.col("x").exp() > 1,
        pl.col("x") % 2 > 1,
        pl.col("city").str.contains("^a"),
        pl.col("city").cast(pl.Int64) > 1,
    ):
        with pytest.raises(dp.UnsupportedOperation, match="is not supported on DuckDB"):
            people.filter(expression).dp_count()
    assert people.session.history.is_empty()


def test_frames_of_different_engines_or_connections_do_not_meet() -> None:
    session = dp.Session(epsilon=1)
    one, other = (session.protect(relation(), "user") for _ in range(2))
    plain = session.protect(FRAME, "user")
    for second in (other, plain):
        with pytest.raises(dp.UnsupportedOperation, match="different engines or connections"):
            one.concat(second)
        with pytest.raises(dp.UnsupportedOperation, match="different engines or connections"):
            second.join(one, on="user")


def test_text_is_compared_byte_by_byte_whatever_the_table_says() -> None:
    connection = connected()
    connection.execute("CREATE TABLE t(s VARCHAR COLLATE NOCASE, x INTEGER)")
    connection.execute("INSERT INTO t VALUES ('A', 1), ('a', 2), ('á', 3)")
    people = protected(connection.table("t"), dp.Rows())
    grouped = people.group_by("s", keys=["a", "A", "á"]).agg(pl.col("x").dp_sum((0, 9)))
    assert grouped.collect(epsilon=ENOUGH)["x"].to_list() == [2, 1, 3]
    assert people.filter(pl.col("s") == "a").dp_count().collect(epsilon=ENOUGH).item() == 1


@pytest.mark.parametrize("setting", ["default_collation='nocase'", "ieee_floating_point_ops=false"])
def test_a_connection_that_computes_otherwise_is_refused(setting: str) -> None:
    connection = connected()
    given = connection.sql("SELECT 'a' AS s")
    query = protected(given, dp.Rows()).dp_count()
    connection.execute(f"SET {setting}")
    with pytest.raises(dp.UnsupportedOperation, match="default collation"):
        query.collect(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="default collation"):
        protected(given, dp.Rows())


@pytest.mark.parametrize("name", ["sum(x) AS 1", "hash(a, b) AS 7", '"+"(a, b) AS 1'])
def test_a_connection_with_macros_for_functions_is_refused(name: str) -> None:
    connection = connected()
    connection.execute("CREATE MACRO my_own(x) AS x + 1")
    given = connection.sql("SELECT 1 AS x, 2 AS user")
    session = dp.Session(epsilon=1)
    query = session.protect(given, "user").dp_sum("x", (0, 9), per="unit")
    connection.execute(f"CREATE MACRO {name}")
    with pytest.raises(dp.UnsupportedOperation, match="macro"):
        query.collect(epsilon=1)
    with pytest.raises(dp.UnsupportedOperation, match="macro"):
        protected(given)
    assert session.history.is_empty()


def test_a_table_of_the_connection_is_not_taken_for_a_public_frame() -> None:
    connection = connected()
    for name in ("held", "frame", "public", "given"):
        connection.execute(f"CREATE TABLE {name} AS SELECT 'a' AS s, 50 AS w FROM range(100)")
    people = protected(connection.sql("SELECT 'a' AS s"), dp.Rows())
    joined = people.join(pl.DataFrame({"s": ["a"], "w": [3]}), on="s")
    assert joined.dp_sum("w", (0, 99)).collect(epsilon=ENOUGH).item() == 3


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(2**31, pl.Date), (-(10**6), pl.Date), (2**63 - 1, pl.Date), (2**62, pl.Datetime("us"))],
)
def test_constants_that_are_no_dates_of_the_calendar_are_refused(number: int, dtype: Any) -> None:
    people = protected(relation(), dp.Rows())
    with pytest.raises(dp.UnsupportedOperation, match="the years 1 to 9999"):
        people.filter(pl.lit(number).cast(dtype).is_null()).dp_count()


def test_a_null_that_becomes_a_date() -> None:
    none = pl.lit(None, dtype=pl.Int64).floor().cast(pl.Date)
    dated = protected(relation(), dp.Rows()).with_columns(d=none).filter(pl.col("d").is_null())
    assert dated.dp_count().collect(epsilon=ENOUGH).item() == 5


def test_names_that_sql_reads_otherwise() -> None:
    frame = pl.DataFrame({'a"b': [1], "select": [2], "é 'x'": [3], "c0": [4], "a.b": [5]})
    people = protected(relation(frame), dp.Rows())
    sums = [pl.col(name).dp_sum((0, 9)) for name in frame.columns]
    assert people.agg(*sums).collect(epsilon=ENOUGH).row(0) == (1, 2, 3, 4, 5)
    upper = people.with_columns(SELECT=pl.col("select") * 2)
    asked = upper.agg(dp.sum("select", (0, 9)), dp.sum("SELECT", (0, 9)))
    assert asked.collect(epsilon=ENOUGH).row(0) == (2, 4)


def test_types_without_rules_matter_only_where_they_are_used() -> None:
    connection = connected()
    given = connection.sql(
        "SELECT 1 AS x, [1] AS l, {'a': 1} AS s, TIMESTAMPTZ '2026-01-01 00:00:00+00' AS t, "
        "1.5::DECIMAL(5, 2) AS d, 'u'::BLOB AS b, uuid() AS id, INTERVAL 1 DAY AS i"
    )
    people = protected(given, dp.Rows())
    assert people.dp_sum("x", (0, 9)).collect(epsilon=ENOUGH).item() == 1
    for column in ("l", "s", "t", "d", "b", "id", "i"):
        with pytest.raises(dp.DPFrameError):
            people.filter(pl.col(column) == pl.col(column)).dp_count()
    with pytest.raises(dp.DPFrameError):
        people.dp_sum("d", (0, 1))


def test_durations_are_computed_filtered_joined_and_keys() -> None:
    """They are whole numbers there; intervals of DuckDB's own have months, and are refused."""
    first, hour = datetime(2026, 1, 1), timedelta(hours=1)
    frame = pl.DataFrame({"user": [1, 2, 3], "t": [first, first + hour, first + 26 * hour]})
    fees = pl.DataFrame({"late": [hour, 26 * hour], "fee": [1, 5]})
    for given in (relation(frame), frame):
        late = protected(given).with_columns(late=pl.col("t") - first).limit_rows(1)
        by = late.group_by("late", keys=[hour, 2 * hour]).agg(dp.count())
        assert by.collect(epsilon=ENOUGH).rows() == [(hour, 1), (2 * hour, 0)]
        assert late.filter(pl.col("late") > hour).dp_count().collect(epsilon=ENOUGH).item() == 1
        joined = late.join(fees, on="late").dp_sum("fee", (0, 9))
        assert joined.collect(epsilon=ENOUGH).item() == 6
        days = late.dp_sum(pl.col("late").dt.total_hours(), (0, 30))
        assert days.collect(epsilon=ENOUGH).item() == 27


def test_an_engine_that_fails_says_nothing_and_the_next_run_works() -> None:
    connection = connected()
    connection.execute("CREATE TABLE t(s VARCHAR)")
    given = connection.sql("SELECT CAST(s AS INTEGER) AS x FROM t")
    session = dp.Session(epsilon=ENOUGH)
    query = session.protect(given, dp.Rows()).dp_sum("x", (0, 9))
    connection.execute("INSERT INTO t VALUES ('1'), ('secret-ssn-123')")
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=1)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert session.history["status"].to_list() == ["failed"]
    connection.execute("DELETE FROM t WHERE s <> '1'")
    assert query.collect(epsilon=10**14).item() == 1
    assert session.history["status"].to_list() == ["failed", "released"]


def test_engines_are_not_needed_until_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    given = relation()
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.split(".")[0] == "narwhals":
            raise ModuleNotFoundError("no narwhals", name="narwhals")
        return real(name, *more)

    for name in [n for n in sys.modules if n.split(".")[0] == "narwhals" or ".engines." in n]:
        if "namespace" in name or "duckdb_engine" in name or name.startswith("narwhals"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(dp.UnsupportedOperation, match="narwhals, which is not installed") as caught:
        protected(given)
    assert 'pip install "dpframe[duckdb]"' in str(caught.value)


def test_dates_that_other_engines_lack_never_make_a_query_fail() -> None:
    given = connected().sql(
        "SELECT * FROM (VALUES (1, DATE 'infinity', TIMESTAMP '-infinity'), "
        "(2, DATE '5877642-06-25 (BC)', TIMESTAMP '290309-12-22 (BC) 00:00:00'), "
        "(3, DATE '5881580-07-10', TIMESTAMP '294247-01-10 04:00:54.775806'), "
        "(4, DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00'), (5, NULL, NULL)) v(x, d, t)"
    )
    people = protected(given, dp.Rows())
    days = (date(2000, 1, 1), date(2030, 1, 1))
    moments = (datetime(2000, 1, 1), datetime(2030, 1, 1))
    for query in (
        people.filter(pl.col("d").dt.year() > 3).dp_count(),
        people.filter(pl.col("t").dt.hour() > 3).dp_count(),
        people.filter(pl.col("t").dt.date() > date(2000, 1, 1)).dp_count(),
    ):
        assert query.collect(epsilon=ENOUGH).item() == 1
    grouped = people.group_by("t", keys=[datetime(2024, 1, 1, 10), None]).agg(dp.count())
    assert grouped.collect(epsilon=ENOUGH)["len"].to_list() == [1, 1]
    many = people.agg(
        pl.col("d").dp_mean(days), pl.col("t").dp_median(moments), k=pl.col("d").dp_n_unique()
    )
    assert many.collect(epsilon=ENOUGH)["k"].item() == 4


def test_an_infinite_date_is_a_day_of_its_own() -> None:
    """It shares no window with another date or with rows without one, and filters keep it."""
    given = connected().sql(
        "SELECT * FROM (VALUES (1, DATE 'infinity'), (1, DATE '-infinity'), (1, NULL), "
        "(1, DATE '5881580-07-10'), (1, DATE '5877642-06-25 (BC)'), (1, DATE '2026-01-03'), "
        "(2, DATE '2026-01-03')) v(id, d)"
    )
    people = protected(given, dp.Identifier("id", window="1d", time="d")).limit_rows(1)
    counts = {
        "all": people,
        "later": people.filter(pl.col("d") > date(2026, 1, 1)),
        "earlier": people.filter(pl.col("d") <= date(2026, 1, 1)),
        "none": people.filter(pl.col("d").is_null()),
    }
    found = {name: rows.dp_count().collect(epsilon=ENOUGH).item() for name, rows in counts.items()}
    assert found == {"all": 7, "later": 4, "earlier": 2, "none": 1}


def test_whole_numbers_wrap_as_on_polars_and_no_row_raises() -> None:
    frame = pl.DataFrame({"x": [2**63 - 1, -(2**63), 5], "y": [2, -1, 0]})
    expressions = {
        "a": pl.col("x") + pl.col("y"),
        "b": pl.col("x") * pl.col("x"),
        "c": pl.col("x") // pl.col("y"),
        "d": pl.col("x") % pl.col("y"),
        "e": -pl.col("x"),
        "f": pl.col("x").abs(),
    }
    sums = [pl.col(name).dp_sum((-(2**40), 2**40)) for name in expressions]
    found = [
        protected(given, dp.Rows()).with_columns(**expressions).agg(*sums).collect(epsilon=ENOUGH)
        for given in (frame, relation(frame))
    ]
    assert found[0].equals(found[1])


def test_limits_are_suggested_and_bounds_are_not() -> None:
    visits = pl.DataFrame({"who": [i // 3 for i in range(300)], "x": [1.5] * 300})
    assert visits.height  # DuckDB finds the frame by its name
    frame = dp.Session(epsilon=100).protect(duckdb.sql("SELECT * FROM visits"), "who")
    found = frame.limit_rows(9).dp_sum("x", (0, 9)).suggest_limits(epsilon=50, details=True)
    rows = found.filter(pl.col("covered").is_not_null()).select("limit", "n").rows()
    assert rows == [("limit_rows", 3)]


def test_ways_to_limit_are_compared_as_on_polars() -> None:
    rows = [(who, g) for who in range(300) for g in range(1 + who % 5)]
    rows += [(who, None) for who in range(0, 300, 2)]
    visits = pl.DataFrame(rows, {"who": pl.Int64, "g": pl.Int64}, orient="row")
    found = []
    for given in (visits, relation(visits)):
        groups = protected(given, "who").group_by("g", keys=[0, 1, 3, None])
        asked = groups.agg(dp.n_unique("who").alias("n"))
        found.append(
            asked.suggest_limits(epsilon=10**4, for_spend={"epsilon": "0.1"}, details=True)
        )
    assert found[0].equals(found[1])
    assert found[0]["bias"].drop_nulls().len() == 2
