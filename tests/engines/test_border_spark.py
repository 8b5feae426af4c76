"""Statistics of what is stored decide nothing on Spark, wherever a condition stands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.engines.spark import session

__all__ = ["session"]

pytestmark = pytest.mark.spark

ROWS = pl.DataFrame({"x": [math.nan] * 100 + [1.0], "k": range(101), "y": [0.0] * 101})
MORE = pl.concat([ROWS, pl.DataFrame({"x": [10.0], "k": [101], "y": [1.0]})])
FRAMES = {"rows": ROWS, "more": MORE}
CONDITIONS = ("x > 5", "x != 1", "isnan(x)")
NUMBERS = {"rows": [100, 100, 100], "more": [101, 101, 100]}


@pytest.fixture(scope="module")
def sources(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Both frames in each kind of store, by the name of the frame and the kind."""
    folder = tmp_path_factory.mktemp("border")
    made: dict[str, Any] = {}
    for name, frame in FRAMES.items():
        path = folder / f"{name}.parquet"
        frame.write_parquet(path, row_group_size=1000)
        for day, part in (
            frame.with_columns(day=pl.col("k") % 2)
            .partition_by("day", as_dict=True, include_key=False)
            .items()
        ):
            (folder / f"{name}-days" / f"day={day[0]}").mkdir(parents=True)
            part.write_parquet(folder / f"{name}-days" / f"day={day[0]}" / "1.parquet")
        stored = session.read.parquet(str(path))
        stored.write.orc(str(folder / f"{name}-orc"))
        stored.createOrReplaceTempView(f"{name}_view")
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name}_twice AS SELECT * FROM {name}_view")
        made |= {
            f"{name}, parquet": stored,
            f"{name}, hive": session.read.parquet(str(folder / f"{name}-days")).drop("day"),
            f"{name}, orc": session.read.orc(str(folder / f"{name}-orc")),
            f"{name}, view of a view": session.table(f"{name}_twice"),
            f"{name}, cached": session.read.parquet(str(path)).coalesce(1).cache(),
            f"{name}, columns cached": stored.selectExpr("x", "k", "y", "k + 1 AS z").cache(),
            f"{name}, cached after a filter": stored.filter("y >= 0").cache(),
            f"{name}, joined": stored.join(stored.selectExpr("k", "x AS z"), "k").drop("z"),
        }
    session.conf.set("spark.sql.sources.useV1SourceList", "")
    for name in FRAMES:
        made[f"{name}, version 2"] = session.read.parquet(str(folder / f"{name}.parquet"))
    session.conf.unset("spark.sql.sources.useV1SourceList")
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


@pytest.mark.parametrize("whose", ["dpframe", "the owner"])
def test_conditions_on_every_store(whose: str, sources: dict[str, Any]) -> None:
    from dpframe.lower.engines.spark_border import border

    tried = [
        border(frame).filter(condition) if whose == "dpframe" else border(frame.filter(condition))
        for frame in sources.values()
        for condition in CONDITIONS
    ]
    found = _numbers(tried)
    expected = {name: NUMBERS[name.split(",")[0]] for name in sources}
    width = len(CONDITIONS)
    assert {name: found[i * width : (i + 1) * width] for i, name in enumerate(sources)} == expected
