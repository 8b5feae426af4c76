"""Types of columns in the names of folders are stated, or text; never guessed from the names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest

import dpframe as dp
from tests.api.exactly import exactly, protected

FOLDERS = ["year=2024/city=A", "year=2025/city=a%20b", "year=__HIVE_DEFAULT_PARTITION__/city=7"]


def _write(at: Path, *folders: str, suffix: str = "parquet") -> Path:
    rows = pl.DataFrame({"x": [1, 2]})
    for folder in folders:
        (at / folder).mkdir(parents=True)
        write = rows.write_parquet if suffix == "parquet" else rows.write_ipc
        write(at / folder / f"part.{suffix}")
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


SCANS = {"parquet": pl.scan_parquet, "arrow": pl.scan_ipc}


@pytest.mark.parametrize("suffix", SCANS)
@pytest.mark.parametrize("folder", ["year=2024", "year=secret"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "from these names"),
        ({"hive_partitioning": True}, "from these names"),
        *(
            ({"hive_schema": {"year": dtype}}, "other types than String")
            for dtype in (
                *(pl.Int64, pl.UInt8, pl.Float64, pl.Boolean, pl.Date, pl.Datetime("us"), pl.Time),
                *(pl.Decimal(10, 2), pl.Enum(["2024"]), pl.Categorical()),
            )
        ),
        ({"hive_schema": {"year": pl.Int64}, "try_parse_hive_dates": False}, "than String"),
    ],
    ids=str,
)
def test_a_scan_reads_folders_as_text_or_is_refused(
    options: dict[str, Any], words: str, folder: str, suffix: str, tmp_path: Path
) -> None:
    """With the same words for all names of folders, also those that Polars itself fails for."""
    at = _write(tmp_path / "a", folder, suffix=suffix)
    with pytest.raises(dp.UnsupportedOperation, match=words) as caught:
        protected(SCANS[suffix](at, **options).filter(pl.col("x") > 0))
    assert "secret" not in str(caught.value)
    assert "hive_schema=" in str(caught.value)


@pytest.mark.parametrize("suffix", SCANS)
def test_what_the_refusal_of_a_scan_says_is_right(suffix: str, tmp_path: Path) -> None:
    at = _write(tmp_path / "a", "year=2024", "year=secret", "year=07", "year=2e1", suffix=suffix)
    text = protected(SCANS[suffix](at, hive_schema={"year": pl.String}).filter(pl.col("x") > 0))
    cast = text.with_columns(pl.col("year").cast(pl.Int64, strict=False))
    ways = [cast]
    if suffix == "parquet":
        ways.append(protected(at, schema={"x": "Int64", "year": "Int64"}))
    for people in ways:
        assert people.schema == {"x": pl.Int64, "year": pl.Int64}
        years = people.group_by("year", keys=[7, 2024, None]).agg(dp.count())
        assert exactly(years)["len"].to_list() == [2, 2, 4]
    without = SCANS[suffix](at, hive_partitioning=False)
    assert protected(without).columns == ["x"]


@pytest.mark.parametrize("make", [lambda d: d, pl.scan_pyarrow_dataset])
@pytest.mark.parametrize("folder", ["year=2024", "year=secret"])
def test_a_dataset_states_types_or_is_refused(folder: str, make: Any, tmp_path: Path) -> None:
    at = _write(tmp_path / "a", folder)
    for guess in ("hive", ds.HivePartitioning.discover(infer_dictionary=True)):
        with pytest.raises(dp.UnsupportedOperation, match="pyarrow guesses the types"):
            protected(make(ds.dataset(at, format="parquet", partitioning=guess)))
    stated = ds.partitioning(pa.schema([("year", pa.string())]), flavor="hive")
    dataset = ds.dataset(at, format="parquet", partitioning=stated)
    assert protected(make(dataset)).schema["year"] == pl.String
    with pytest.raises(dp.UnsupportedOperation, match="does not say whether pyarrow guessed"):
        protected(make(ds.dataset([dataset, dataset])))
    flat = ds.dataset(at, format="parquet")
    assert protected(make(ds.dataset([flat, flat]))).columns == ["x"]


def test_a_relation_whose_folders_have_guessed_types_is_refused(tmp_path: Path) -> None:
    at = _write(tmp_path / "a", "year=2024")
    guessed = duckdb.connect().sql(f"FROM read_parquet('{at}/**/*.parquet')")
    with pytest.raises(dp.UnsupportedOperation, match="DuckDB guesses the types"):
        protected(guessed)


@pytest.mark.parametrize("folder", ["year=2024", "year=secret"])
def test_a_relation_reads_folders_as_text_or_is_refused(folder: str, tmp_path: Path) -> None:
    at = _write(tmp_path / "a", folder)
    files = f"{at}/**/*.parquet"
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW \"a AS b\" AS SELECT x FROM read_parquet('{files}')")
    connection.execute('CREATE VIEW again AS FROM "a AS b"')
    connection.execute("CREATE MACRO visits(p) AS TABLE FROM read_parquet(p)")
    connection.execute("CREATE MACRO inner_visits(p) AS TABLE FROM visits(p)")
    guessed = connection.sql(f"FROM read_parquet('{files}')")
    for relation in (
        guessed,
        guessed.filter("x > 0").project("x"),
        connection.read_parquet(files, hive_partitioning=True),
        connection.sql(f"FROM '{files}'"),
        connection.sql(f"FROM parquet_scan(['{files}'], hive_partitioning := true)"),
        connection.sql(f"WITH a AS (FROM read_parquet('{files}')) SELECT 1 AS x FROM a"),
        connection.sql(f"FROM read_parquet('{files}', hive_types = {{'year': INTEGER}})"),
        connection.sql(f"FROM read_parquet('{at}/year=*/*.parquet')"),
        connection.sql("FROM read_parquet(?)", params=[files]),
        connection.view("again"),
        connection.sql(f"FROM visits('{files}')"),
        connection.sql(f"FROM inner_visits('{files}')"),
    ):
        with pytest.raises(dp.UnsupportedOperation, match="DuckDB guesses the types") as caught:
            protected(relation)
        assert "secret" not in str(caught.value)
    text = "hive_partitioning = true, hive_types_autocast = false"
    connection.execute(
        f"CREATE VIEW typed AS SELECT x, TRY_CAST(year AS INTEGER) AS year "
        f"FROM read_parquet('{files}', {text})"
    )
    people = protected(connection.table("typed"))
    assert people.schema == {"x": pl.Int64, "year": pl.Int32}
    connection.execute("CREATE TABLE stored AS FROM typed")
    for relation, columns in (
        (connection.sql(f"FROM read_parquet('{files}', {text})"), ["x", "year"]),
        (connection.sql(f"FROM read_parquet('{files}', hive_partitioning = false)"), ["x"]),
        (connection.read_parquet(files), ["x"]),
        (connection.sql(f"SELECT x FROM read_parquet('{at}/{folder}/*.parquet')"), ["x"]),
        (connection.table("stored"), ["x", "year"]),
    ):
        assert protected(relation).columns == columns


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        ({"yeer": pl.Int64}, dp.UnknownColumn, "the files have no column 'yeer'"),
        ({"x": pl.Int32}, dp.UnsupportedOperation, "'x' is Int64, and stated as Int32"),
        ({"year": pl.Datetime("us", "UTC")}, dp.UnsupportedOperation, "cannot be parsed"),
        ({}, dp.UnsupportedOperation, "schema= is a dict"),
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


def test_a_name_opens_no_way_around(tmp_path: Path) -> None:
    """Constants, columns and folders may be called as Polars calls scans of Delta and Iceberg."""
    at = _write(tmp_path / "python_dataset", "year=2024")
    frame = pl.scan_parquet(at).with_columns(pl.lit("PythonDataset").alias("python_dataset"))
    for told in (frame, pl.scan_parquet(at), pl.concat([frame, frame])):
        with pytest.raises(dp.UnsupportedOperation, match="names of folders"):
            protected(told)


def test_a_table_beside_files_opens_no_way_around(tmp_path: Path) -> None:
    pl.DataFrame({"x": [1], "year": [2]}).write_delta(tmp_path / "table")
    table = pl.scan_delta(str(tmp_path / "table"))
    files = pl.scan_parquet(_write(tmp_path / "files", "year=2024"))
    both = pl.concat([table.select("x", "year"), files.select("x", pl.col("year").cast(pl.Int64))])
    with pytest.raises(dp.UnsupportedOperation, match=r"one frame|names of folders"):
        protected(both)
    assert exactly(protected(pl.concat([table, table])).dp_count()).item() == 2
