"""A Spark session on this machine, where there is Java."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

NO_JAVA = "Spark needs Java, which is not installed"


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    if shutil.which("java") is None:
        pytest.skip(NO_JAVA)
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    made = (
        sql.SparkSession.builder.master("local[2]")
        .appName("dpframe")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")  # asked by 3.5
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def frames(session: Any, folder: Path, data: dict[str, pl.DataFrame]) -> dict[str, Any]:
    """Polars frames as Spark DataFrames, by way of files."""
    found = {}
    for name, frame in data.items():
        frame.write_parquet(folder / f"{name}.parquet")
        found[name] = session.read.parquet(str(folder / f"{name}.parquet"))
    return found
