"""An engine's session is tried on constants before it gets data."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe.api import source as probe
from dpframe.lower.engines import duckdb_engine
from dpframe.lower.engines.duckdb_engine import Border, DuckDBEngine
from dpframe.lower.engines.polars_engine import POLARS
from tests.engines.spark import session

__all__ = ["session"]


@pytest.fixture(autouse=True)
def nothing_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_engine, "_ACCEPTED", set())


def _relation(*settings: str) -> Any:
    connection = duckdb.connect()
    for setting in settings:
        connection.execute(setting)
    return connection.sql("SELECT range AS a FROM range(10)")


def _protect(relation: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(relation, unit=dp.Rows())


def test_each_row_of_the_probe_is_seen_by_itself() -> None:
    (table,) = {len(found[2]) for found in probe._expected() if found[2] is not None}
    assert table == probe._rows().height
    assert probe._tables(POLARS, probe._rows().reverse().lazy()) == probe._expected()


@pytest.mark.parametrize("column", ["i", "n", "x", "y", "b", "s", "d", "t"])
def test_the_probe_sees_any_column_that_is_read_otherwise(column: str) -> None:
    changed = probe._rows().with_columns(pl.col(column).reverse())
    assert probe._tables(POLARS, changed.lazy()) != probe._expected()


@pytest.mark.parametrize(
    "setting",
    [
        "SET threads = 1",
        "SET default_null_order = 'NULLS_FIRST'",
        "SET TimeZone = 'America/New_York'",
        "SET preserve_insertion_order = false",
    ],
)
def test_settings_that_change_no_meaning_are_accepted(setting: str) -> None:
    assert _protect(_relation(setting)).columns == ["a"]


@pytest.mark.parametrize(
    "setting",
    [
        "CREATE MACRO floor(x) AS x",
        "CREATE MACRO isnan(x) AS false",
    ],
)
def test_sessions_that_compute_otherwise_are_refused(
    setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no other check finds them."""
    monkeypatch.setattr(DuckDBEngine, "require_settings", lambda self: None)
    monkeypatch.setattr(Border, "require", lambda self: None)
    with pytest.raises(dp.UnsupportedOperation, match="looks like DuckDB, and") as caught:
        _protect(_relation(setting))
    assert "other numbers than Polars" in str(caught.value)
    assert "default settings" in str(caught.value)


def test_a_session_is_tried_where_labels_of_columns_are_declared(tmp_path: Path) -> None:
    """The constants have no such column."""
    (tmp_path / "x.csv").write_text("city\nOslo\n")
    schema = {"city": pl.Enum(["Oslo", "Moss"])}
    session = dp.Session(epsilon=10**15)
    people = session.protect(tmp_path / "x.csv", dp.Rows(), schema=schema, engine="duckdb")
    assert people.dp_count().collect(epsilon=10**14).item() == 1


def test_a_session_that_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such function")

    monkeypatch.setattr(DuckDBEngine, "collect", fails)
    with pytest.raises(dp.UnsupportedOperation, match="does not run a query of constants"):
        _protect(_relation())


def test_settings_are_probed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _protect(_relation())
    run: list[Any] = []
    monkeypatch.setattr(probe, "_tables", lambda *given: run.append(given) or probe._expected())
    probe._expected()
    run.clear()
    _protect(_relation())
    assert not run
    _protect(_relation("SET default_null_order = 'NULLS_FIRST'"))
    assert len(run) == 1


# -- Spark ------------------------------------------------------------------------------------


@pytest.mark.spark
def test_spark_is_accepted_and_a_session_that_prints_is_not(session: Any) -> None:
    frame = session.range(3)
    assert _protect(frame).columns == ["id"]
    session.sparkContext.setLogLevel("WARN")
    try:
        with pytest.raises(dp.UnsupportedOperation, match="standard error") as caught:
            _protect(frame)
        assert "setLogLevel" in str(caught.value)
    finally:
        session.sparkContext.setLogLevel("OFF")
    assert _protect(frame).columns == ["id"]


@pytest.mark.spark
def test_reviewers_are_warned_of_text_that_spark_scans(session: Any, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "x.json").write_text('{"a": 1}\n')
    session.range(3).write.parquet(str(tmp_path / "x.parquet"))
    read = session.read
    frames = {
        read.csv(str(tmp_path / "x.csv"), header=True): True,
        read.json(str(tmp_path / "x.json")).filter("a > 0"): True,
        read.text(str(tmp_path / "x.csv")): True,
        read.parquet(str(tmp_path / "x.parquet")): False,
        session.range(3): False,
    }
    for frame, warned in frames.items():
        warnings = _protect(frame).dp_count().plan(epsilon=1).warnings
        assert any("scanned from a text file" in w for w in warnings) == warned


_CONNECT = """
import sys
from pyspark.sql import SparkSession
made = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
made = made.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
if sys.argv[1] == "quiet":
    made = made.config("spark.log.level", "OFF")
spark = made.getOrCreate()
import dpframe as dp
text = "SELECT CAST(concat('secret-ssn-', id) AS INT) AS x FROM range(0, 1000, 1, 4)"
session = dp.Session(epsilon=10)
try:
    people = session.protect(spark.sql(text), unit=dp.Rows())
    print("accepted", flush=True)
    people.dp_sum("x", (0, 9)).collect(epsilon=1)
except dp.DPFrameError as error:
    print(type(error).__name__, error.remedy)
"""


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)

    def run(kind: str) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", _CONNECT, kind],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            cwd=tmp_path,
        )
        return done.stdout, done.stderr

    return run  # type: ignore[return-value]


@pytest.mark.spark
def test_connect_in_this_process_prints_no_values(connect: Any) -> None:
    """Refused where it would, with a remedy that works there."""
    out, _ = connect("loud")
    assert out.startswith("UnsupportedOperation make the session with .config")
    out, errors = connect("quiet")
    assert out.startswith("accepted\nEngineError")
    assert "secret" not in out + errors


@pytest.mark.spark
def test_what_only_speaks_the_protocol_is_refused() -> None:
    """A server that is another engine."""
    sail = pytest.importorskip("pysail.spark")
    sql = pytest.importorskip("pyspark.sql")
    server = sail.SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    try:
        _, port = server.listening_address
        try:
            spark = sql.SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
            frame = spark.createDataFrame([(1, 2.0)], "a int, x double")
        except Exception as error:
            pytest.skip(f"this client cannot talk to it ({type(error).__name__})")
        with pytest.raises(dp.UnsupportedOperation, match="looks like Spark"):
            _protect(frame)
    finally:
        server.stop()
