"""Statistics of what is stored decide nothing on Spark, wherever a condition stands."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.documentation import ROOT
from tests.engines.spark import session

__all__ = ["session"]

pytestmark = pytest.mark.spark

ROWS = pl.DataFrame({"x": [math.nan] * 100 + [1.0], "k": range(101)})
MORE = pl.concat([ROWS, pl.DataFrame({"x": [10.0], "k": [101]})])
FRAMES = {"rows": ROWS, "more": MORE}
CONDITIONS = ("x > 5", "x != 1", "isnan(x)")
NUMBERS = {"rows": [100, 100, 100], "more": [101, 101, 100]}
VERSION = "spark.sql.sources.useV1SourceList"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Both frames as files, of which no statistic has NaN; and the second one in folders."""
    folder = tmp_path_factory.mktemp("border")
    for name, frame in FRAMES.items():
        frame.write_parquet(folder / f"{name}.parquet")
    for day, part in enumerate((ROWS[:50], ROWS[50:])):
        (folder / "days" / f"day={day}").mkdir(parents=True)
        part.write_parquet(folder / "days" / f"day={day}" / "1.parquet")
    return {name: str(folder / f"{name}.parquet") for name in FRAMES} | {
        "days": str(folder / "days")
    }


@pytest.fixture(scope="module")
def sources(session: Any, files: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Both frames in several stores, by the name of the frame and the store."""
    made: dict[str, Any] = {}
    for name in FRAMES:
        stored = session.read.parquet(files[name])
        stored.createOrReplaceTempView(f"{name}_view")
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name}_twice AS SELECT * FROM {name}_view")
        session.conf.set(VERSION, "")
        made |= {
            f"{name}, files": stored,
            f"{name}, files by the second version": session.read.parquet(files[name]),
            f"{name}, view of a view": session.table(f"{name}_twice"),
            f"{name}, cached": stored.coalesce(1).cache(),
        }
        session.conf.unset(VERSION)
    yield made
    session.catalog.clearCache()


def _numbers(frames: Sequence[Any]) -> list[int]:
    """How many rows each frame has, in one job."""
    numbered = [frame.selectExpr(f"{i} AS i") for i, frame in enumerate(frames)]
    both = reduce(lambda one, other: one.union(other), numbered)
    counted = {row.i: row["count"] for row in both.groupBy("i").count().collect()}
    return [counted.get(i, 0) for i in range(len(frames))]


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_conditions_of_dpframe_and_of_the_owner(sources: dict[str, Any]) -> None:
    from dpframe.lower.engines.spark_engine import border

    of_dpframe = [border(f).filter(c) for f in sources.values() for c in CONDITIONS]
    of_owner = [border(f.filter(c)) for f in sources.values() for c in CONDITIONS]
    expected = [n for source in sources for n in NUMBERS[source.split(",")[0]]]
    assert _numbers(of_dpframe + of_owner) == 2 * expected


@pytest.mark.parametrize("store", ["files", "cached"])
def test_one_row_more_is_one_more_in_a_count(store: str, sources: dict[str, Any]) -> None:
    budget = dp.Session(epsilon=10**15)
    found = []
    for name in FRAMES:
        rows = budget.protect(sources[f"{name}, {store}"], dp.Rows())
        found.append(rows.filter(pl.col("x") > 5).dp_count().collect(epsilon=10**14).item())
    assert found == [100, 101]


def test_no_scan_is_told_a_condition_but_of_folders(session: Any, files: dict[str, str]) -> None:
    """Also where others are written beside it, in an order that fails where it is not kept."""
    from dpframe.lower.engines.spark_engine import border

    days = session.read.schema("k bigint, x double, day int").parquet(files["days"])
    rows = border(days.filter("day = 1 AND x > 5").select("k", "day").filter("day < 7"))
    plan = _plan(rows.filter("k > 0"))
    assert "PushedFilters: []" in plan
    assert "DataFilters: []" in plan
    assert "(day" in plan.partition("PartitionFilters: ")[2].partition("]")[0]
    assert "PartitionFilters: []" in _plan(border(days.select("day", "k")).filter("day = 1"))
    assert rows.count() == 50
    grouped = border(days.groupBy("day").count().filter("day = 1"))
    assert "PartitionFilters: []" in _plan(grouped)


def test_only_columns_that_are_used_are_read(session: Any, files: dict[str, str]) -> None:
    from dpframe.lower.engines.spark_engine import border

    plan = _plan(border(session.read.parquet(files["rows"])).filter("x > 5").selectExpr("1 AS a"))
    assert "ReadSchema: struct<x:double>" in plan


def test_caches_are_used_where_they_have_all_rows(session: Any, files: dict[str, str]) -> None:
    from dpframe.lower.engines.spark_engine import border

    stored = session.read.parquet(files["rows"])
    for make, is_used in {
        (lambda f: f): True,
        (lambda f: f.selectExpr("x", "k + 1 AS k")): True,
        (lambda f: f.filter("k >= 0")): False,
        (lambda f: f.join(f.select("k"), "k")): False,
        (lambda f: f.groupBy("x").count()): False,
    }.items():
        kept = make(stored).cache()
        assert ("InMemoryTableScan" in _plan(border(kept))) == is_used
        kept.unpersist()


def test_frames_that_cannot_be_seen_through_are_refused(
    session: Any, files: dict[str, str]
) -> None:
    from dpframe.lower.engines.spark_engine import border

    stored = session.read.parquet(files["rows"])
    stored.createOrReplaceTempView("seen")
    for frame in (
        stored.rdd.map(lambda row: (row.k,)).toDF("k int"),
        session.createDataFrame(stored.filter("x > 5").rdd, stored.schema),
        session.createDataFrame(stored.rdd, stored.schema).coalesce(1).cache(),
    ):
        with pytest.raises(dp.UnsupportedOperation, match="made of an RDD"):
            border(frame)
    for text in (
        "SELECT * FROM seen WHERE k IN (SELECT k FROM seen WHERE x > 5)",
        "SELECT k, (SELECT count(*) FROM seen WHERE x > 5) AS n FROM seen",
    ):
        with pytest.raises(dp.UnsupportedOperation, match="query inside an expression"):
            dp.Session(epsilon=1).protect(session.sql(text), dp.Rows())
    twice = "WITH f AS (SELECT * FROM seen WHERE x > 5) SELECT * FROM f UNION ALL SELECT * FROM f"
    rows = session.sparkContext.parallelize([(1,)]).toDF("k int")
    assert _numbers([border(session.sql(twice)), border(rows)]) == [200, 1]


def test_a_session_without_a_border_is_refused(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one would be whose optimiser moves conditions across what it should not."""
    from dpframe.api import source as probe
    from dpframe.lower.engines import spark_engine

    settings = session.sparkContext.getConf().getAll(), session.sql("SET").collect()
    assert spark_engine.holds(session)
    assert settings == (session.sparkContext.getConf().getAll(), session.sql("SET").collect())
    monkeypatch.setattr(spark_engine, "_EVERY", "true")
    monkeypatch.setattr(spark_engine, "_ACCEPTED", set())
    monkeypatch.setattr(probe, "_tables", lambda *_: probe._expected())
    with pytest.raises(dp.UnsupportedOperation, match="statistics of stored values"):
        dp.Session(epsilon=1).protect(session.range(3), dp.Rows())


_CONNECT = """
import sys
from pyspark.sql import SparkSession
made = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
made = made.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
spark = made.config("spark.log.level", "OFF").getOrCreate()
import dpframe as dp
import polars as pl
stored = spark.read.parquet(sys.argv[1])
stored.createOrReplaceTempView("stored")
for text in ("stored", "(SELECT x, k + 1 AS k FROM stored)"):
    frame = spark.sql(f"SELECT * FROM {text}")
    rows = dp.Session(epsilon=10**15).protect(frame, dp.Rows())
    print(rows.filter(pl.col("x") > 5).dp_count().collect(epsilon=10**14).item())
stored.filter("x > 5").createOrReplaceTempView("fewer")
for frame in (stored.filter("x > 5"), spark.table("fewer"), stored.groupBy("x").count()):
    try:
        dp.Session(epsilon=1).protect(frame, dp.Rows())
    except dp.UnsupportedOperation as error:
        print("on Spark Connect" in str(error))
"""


def test_on_connect_rows_are_those_that_are_stored(files: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.connect.session", exc_type=ImportError)
    done = subprocess.run(
        [sys.executable, "-c", _CONNECT, files["rows"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["100", "100", "True", "True", "True"]
