"""`python -m tests.engines.on_cluster MASTER PLANS...`: plans on a cluster of Spark, compared.

A process has one context, so each cluster is tried in a process of its own. What it prints are
lines of JSON. In place of plans, `release` runs a query that takes half a minute twice, with the
ledger in the folder that is named next.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.frames import sampling
from tests.engines.plans import FRAMES, PLANS, query
from tests.engines.running import exact, on_polars, portable_hash
from tests.engines.spark import frames

ROWS, TASKS, MILLIS = 40, 20, 500


CONNECT = "connect:"
"""Before a master, for a server of Spark Connect that PySpark starts in this process."""


def is_remote(master: str) -> bool:
    """Whether a session is one of Spark Connect."""
    return master.startswith(("sc://", CONNECT))


def opened(master: str) -> Any:
    """A session on a cluster, or on a server of Spark Connect."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("dpframe")
    where = master.removeprefix(CONNECT)
    builder = builder.remote(where) if is_remote(master) else builder.master(where)
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.dpframe.executors.wait": os.environ.get("EXECUTORS_WAIT", "120"),
    }
    served = master.startswith("sc://")
    for key, value in settings.items():
        if not served or key.startswith("spark.sql"):
            builder = builder.config(key, value)
    made = builder.getOrCreate()
    if not is_remote(master):
        made.sparkContext.setLogLevel("OFF")
    return made


def main(master: str, *names: str) -> None:
    """Print what each plan gave."""
    made = opened(master)
    if names[0] == "release":
        for _ in range(2):
            _release(made, names[1])
    else:
        _compare(made, names)
    if not master.startswith("sc://"):  # of a server that is a process of its own
        made.stop()


def _compare(made: Any, names: tuple[str, ...]) -> None:
    from dpframe.lower.engines.spark_engine import SparkEngine

    sampling.row_hash = portable_hash
    with tempfile.TemporaryDirectory() as folder:
        given = frames(made, Path(folder), FRAMES)
        for name in names or PLANS:
            asked, tokens = query(PLANS[name])
            equal = exact(asked, tokens, SparkEngine(given["f"]), given) == on_polars(name)
            print(json.dumps({"plan": name, "equal": equal}), flush=True)


def _release(made: Any, folder: str) -> None:
    """Rows that take half a second each, counted and added up by which group they are in."""
    rows = made.range(0, ROWS, 1, TASKS).selectExpr(
        "id AS u",
        "id % 2 AS g",
        f"reflect('java.lang.Thread', 'sleep', CAST({MILLIS} AS BIGINT)) IS NOT NULL AS slept",
    )
    session = dp.Session(epsilon=10**9, ledger=Path(folder) / "budget.db")
    slow = session.protect(rows, dp.Rows()).filter(pl.col("slept"))  # or Spark would not ask for it
    asked = slow.group_by("g", keys=[0, 1]).agg(n=dp.count(), s=dp.sum("u", (0, ROWS)))
    try:
        found = asked.collect(epsilon=10**8)
    except dp.EngineError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    else:
        print(json.dumps({"released": found.to_dict(as_series=False)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
