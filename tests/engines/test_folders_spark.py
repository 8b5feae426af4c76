"""Types of columns in the names of folders are stated on Spark, never guessed from the names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected
from tests.engines.spark import session

__all__ = ["session"]

pytestmark = pytest.mark.spark

GUESSES = "spark.sql.sources.partitionColumnTypeInference.enabled"
VERSION = "spark.sql.sources.useV1SourceList"


def _write(at: Path, *folders: str) -> str:
    for folder in folders:
        (at / folder).mkdir(parents=True)
        pl.DataFrame({"x": [1, 2]}).write_parquet(at / folder / "part.parquet")
    return str(at)


@pytest.mark.parametrize("folder", ["year=2024", "year=secret"])
@pytest.mark.parametrize("version", ["parquet", ""])
def test_a_frame_states_types_or_is_refused(
    folder: str, version: str, session: Any, tmp_path: Path
) -> None:
    at = _write(tmp_path / "visits", folder)
    session.conf.set(VERSION, version)
    try:
        guessed = session.read.parquet(at)
        guessed.createOrReplaceTempView("visits")
        for frame in (
            guessed,
            guessed.select("x"),
            guessed.cache(),
            session.sql("SELECT x FROM visits UNION ALL SELECT 1"),
            session.sql(f"SELECT * FROM parquet.`{at}`"),
            session.read.schema("x bigint").parquet(at),
            session.read.option("basePath", at).parquet(f"{at}/{folder}"),
        ):
            with pytest.raises(dp.UnsupportedOperation, match="guessed the type") as caught:
                protected(frame)
            assert "secret" not in str(caught.value)
        guessed.unpersist()
        assert protected(session.read.parquet(f"{at}/{folder}")).columns == ["x"]
        stated = protected(session.read.schema("x bigint, Year string").parquet(at))
        assert stated.schema == {"x": pl.Int64, "Year": pl.String}
        session.conf.set(GUESSES, "false")
        text = protected(session.read.parquet(at))
        assert text.schema == {"x": pl.Int64, "year": pl.String}
        years = text.group_by("year", keys=[folder.partition("=")[2]]).agg(dp.count())
        assert exactly(years)["len"].to_list() == [2]
        if folder == "year=2024":  # it was made before
            with pytest.raises(dp.UnsupportedOperation, match="guessed the type"):
                protected(guessed)
    finally:
        session.conf.unset(VERSION)
        session.conf.unset(GUESSES)


@pytest.mark.parametrize("more", [[], ["year=secret"]])
def test_by_path_one_folder_more_changes_no_type(
    more: list[str], session: Any, tmp_path: Path
) -> None:
    at = _write(tmp_path / "visits.parquet", "year=01", "year=2024", *more)
    with pytest.raises(dp.UnsupportedOperation, match="guesses the types") as caught:
        protected(at, engine="spark")
    assert 'schema={"x": "Int64", "year": "String"}' in str(caught.value)
    stated = {"year": "String", "x": "Int64"}
    people = protected(at, engine="spark", schema=stated)
    assert people.schema == {"year": pl.String, "x": pl.Int64}
    assert exactly(people.filter(pl.col("year") == "01").dp_count()).item() == 2
    guessed = protected(at, engine="spark", schema={"year": "Int64"})
    with pytest.raises(dp.UnsupportedOperation, match="'year' is String, and stated as Int64"):
        exactly(guessed.dp_count())
    missing = protected(at, engine="spark", schema={"day": "String"})
    with pytest.raises(dp.UnknownColumn, match="no column 'day'"):
        exactly(missing.dp_count())


def test_a_path_is_planned_before_there_is_a_file(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "later.parquet"
    stated = protected(path, engine="spark", schema={"x": "Int64", "a b": "String"})
    query = stated.filter(pl.col("a b") == "q").dp_count()
    planned = query.plan(epsilon=1).fingerprint
    pl.DataFrame({"more": [1.5, 2.5], "a b": ["q", "r"], "x": [1, 2]}).write_parquet(path)
    assert query.plan(epsilon=1).fingerprint == planned
    assert exactly(query).item() == 1
    with pytest.raises(dp.UnsupportedOperation, match="'x' is Int64, and stated as Int32"):
        exactly(protected(path, engine="spark", schema={"x": "Int32"}).dp_count())
