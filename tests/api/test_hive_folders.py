"""Types of columns in the names of folders are stated, or text; never guessed from the names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected

FOLDERS = ["year=2024/city=A", "year=2025/city=a%20b", "year=__HIVE_DEFAULT_PARTITION__/city=7"]


def _write(at: Path, *folders: str) -> Path:
    for folder in folders:
        (at / folder).mkdir(parents=True)
        pl.DataFrame({"x": [1, 2]}).write_parquet(at / folder / "part.parquet")
    return at


@pytest.mark.parametrize("last", ["", "/**/*.parquet"])
def test_stated_types(last: str, tmp_path: Path) -> None:
    at = _write(tmp_path / "visits.parquet", *FOLDERS)
    people = protected(f"{at}{last}", schema={"x": pl.Int64, "year": pl.Int64, "city": pl.String})
    assert people.schema == {"x": pl.Int64, "year": pl.Int64, "city": pl.String}
    years = people.group_by("year", keys=[2024, 2025, None]).agg(dp.count())
    assert exactly(years)["len"].to_list() == [2, 2, 2]
    assert exactly(people.filter(pl.col("city") == "a b").dp_count()).item() == 2


@pytest.mark.parametrize("more", [[], ["year=secret/city=B"]])
def test_one_folder_more_changes_no_type(more: list[str], tmp_path: Path) -> None:
    at = _write(tmp_path / "visits", *FOLDERS, *more)
    text = protected(at)
    assert text.schema == {"x": pl.Int64, "year": pl.String, "city": pl.String}
    assert exactly(text.filter(pl.col("year") == "2024").dp_count()).item() == 2
    stated = protected(at, schema={"year": pl.Int64, "city": pl.String})
    assert stated.schema["year"] == pl.Int64
    nulls = exactly(stated.filter(pl.col("year").is_null()).dp_count()).item()
    assert nulls == 2 + 2 * len(more)


@pytest.mark.parametrize("more", [[], ["year=secret/city=B"]])
def test_on_duckdb_one_folder_more_changes_no_type(more: list[str], tmp_path: Path) -> None:
    at = _write(tmp_path / "visits", "year=01/city=A", "year=2024/city=A", *more)
    pattern = f"{at}/**/*.parquet"
    assert protected(pattern, engine="duckdb").columns == ["x"]
    stated = {"year": "String", "x": "Int64"}
    people = protected(pattern, engine="duckdb", schema=stated)
    assert people.schema == {"year": pl.String, "x": pl.Int64}
    assert exactly(people.filter(pl.col("year") == "01").dp_count()).item() == 2
    guessed = protected(pattern, engine="duckdb", schema={"year": "Int64"})
    with pytest.raises(dp.UnsupportedOperation, match="'year' is String, and stated as Int64"):
        exactly(guessed.dp_count())


def test_without_a_schema_a_pattern_reads_what_files_hold(tmp_path: Path) -> None:
    at = _write(tmp_path / "visits", *FOLDERS)
    assert protected(f"{at}/**/*.parquet").columns == ["x"]


def test_a_scan_that_guesses_is_refused_whatever_it_guesses(tmp_path: Path) -> None:
    for name, folder in (("a", "year=2024/city=B"), ("b", "year=secret/city=B")):
        at = _write(tmp_path / name, folder)
        with pytest.raises(dp.UnsupportedOperation, match="guessed from these names") as caught:
            protected(pl.scan_parquet(at).filter(pl.col("x") > 0))
        assert "hive_schema=" in str(caught.value)
        types = {"year": pl.String, "city": pl.String}
        assert protected(pl.scan_parquet(at, hive_schema=types)).schema["year"] == pl.String


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        ({"yeer": pl.Int64}, dp.UnknownColumn, "the files have no column 'yeer'"),
        ({"x": pl.Int32}, dp.UnsupportedOperation, "'x' is Int64, and stated as Int32"),
        ({"year": pl.Datetime("us", "UTC")}, dp.UnsupportedOperation, "cannot be parsed"),
        ({}, dp.UnsupportedOperation, "a schema is a dict"),
    ],
)
def test_schemas_that_make_no_sense(
    schema: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    at = _write(tmp_path / "visits", *FOLDERS)
    with pytest.raises(error, match=words):
        protected(at, schema=schema).dp_count().collect(epsilon=1)


def test_folders_with_different_columns_are_refused(tmp_path: Path) -> None:
    at = _write(tmp_path / "visits", "year=2024", "city=A")
    with pytest.raises(dp.UnsupportedOperation, match="name different columns"):
        protected(at)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dp.UnsupportedOperation, match="there is no file"):
        protected(tmp_path)
