"""No row of a dataset of pyarrow makes a query fail after its charge: what could is refused before,
whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from tests.api.exactly import exactly, protected

FORMS: dict[str, Callable[[Any], Any]] = {
    "a dataset": lambda dataset: dataset,
    "a scan": pl.scan_pyarrow_dataset,
    "filtered": lambda dataset: dataset.filter(ds.field("x") > 0),
}
_LOW, _HIGH = -(2**31), 2**31 - 1
few = st.sampled_from([0, 1, 7, _LOW, _HIGH, None])
numbers = st.lists(few, max_size=9) | st.lists(st.none() | st.integers(_LOW, _HIGH), max_size=40)


def _by_duckdb(folder: Path, values: list[int | None], version: str) -> Path:
    path = folder / "rows.parquet"
    with duckdb.connect() as connection:
        connection.register("stored", pa.table({"x": pa.array(values, pa.int32())}))
        connection.execute(
            f"COPY (FROM stored) TO '{path}' (FORMAT parquet, PARQUET_VERSION {version})"
        )
    return path


def _refusal(data: Any) -> str:
    with pytest.raises(dp.UnsupportedOperation) as refused:
        dp.Session(epsilon=1).protect(data, unit=dp.Rows())
    return str(refused.value)


def _held(values: list[int | None]) -> pl.DataFrame:
    return pl.DataFrame({"x": values}, schema={"x": pl.Int32})


def _total(data: Any) -> int:
    people = protected(data)
    return int(exactly(people.agg(pl.col("x").dp_sum((0, 10)).alias("n"))).item())


@settings(max_examples=15, deadline=None)
@given(numbers.filter(bool))
def test_version_2_of_duckdb_is_refused_whatever_the_values(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None]
) -> None:
    path = _by_duckdb(tmp_path_factory.mktemp("rows"), values, "V2")
    assert {_refusal(form(ds.dataset(path))) for form in FORMS.values()} == {
        "the Parquet files may have differences of 32-bit integers with more than 32 bits, which "
        "DuckDB writes with PARQUET_VERSION V2 and pyarrow does not read, so one row could make a "
        "query fail that is paid for\n  in: session.protect(dataset, ...)\n"
        "  instead: protect the path of the files: session.protect(path, ...)"
    }
    assert _total(path) == _total(_held(values))


@settings(max_examples=15, deadline=None)
@given(numbers)
def test_version_1_is_read_whatever_the_values(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None]
) -> None:
    path = _by_duckdb(tmp_path_factory.mktemp("rows"), values, "V1")
    assert _total(ds.dataset(path)) == _total(_held(values))


@settings(max_examples=15, deadline=None)
@given(numbers)
def test_differences_of_pyarrow_have_32_bits(
    tmp_path_factory: pytest.TempPathFactory, values: list[int | None]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    table = pa.table({"x": pa.array(values, pa.int32())})
    pq.write_table(table, path, use_dictionary=False, column_encoding="DELTA_BINARY_PACKED")
    assert _total(ds.dataset(path)) == _total(_held(values))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ["x\n1\n", "x\n1\nz\n"])
def test_text_is_refused(form: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    stated = ds.CsvFileFormat(), "csv"
    for kind in stated:
        dataset = ds.dataset(tmp_path, schema=pa.schema([("x", pa.int64())]), format=kind)
        assert "stops at a line of csv" in _refusal(FORMS[form](dataset))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [1, 2**40])
def test_types_that_values_may_not_fit_are_refused(form: str, value: int, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [value]}), tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path, schema=pa.schema([("x", pa.int32())]))
    assert "columns of other types than the dataset" in _refusal(FORMS[form](dataset))


@pytest.mark.parametrize(
    ("stored", "stated"),
    [
        (pa.int32(), pa.int64()),
        (pa.null(), pa.int64()),
        (pa.uint8(), pa.uint8()),
        (pa.float32(), pa.float64()),
    ],
)
def test_types_that_all_values_fit_are_read(stored: Any, stated: Any, tmp_path: Path) -> None:
    values = [None] if pa.types.is_null(stored) else [5, 7]
    pq.write_table(pa.table({"x": pa.array(values, stored)}), tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path, schema=pa.schema([("x", stated)]))
    assert _total(dataset) == sum(v or 0 for v in values)


def test_columns_that_a_file_has_not_and_files_of_other_formats(tmp_path: Path) -> None:
    pq.write_table(pa.table({"y": [1]}), tmp_path / "rows.parquet")
    both = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    assert _total(ds.dataset(tmp_path, schema=both)) == 0
    orc.write_table(pa.table({"x": [4]}), tmp_path / "rows.orc")
    assert _total(ds.dataset(tmp_path / "rows.orc", format="orc")) == 4
    pl.DataFrame({"x": [3]}).write_ipc(tmp_path / "rows.arrow")
    assert _total(ds.dataset(tmp_path / "rows.arrow", format="ipc")) == 3
    assert _total(ds.dataset(pa.table({"x": [2]}))) == 2


def test_a_dataset_without_its_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises(dp.EngineError, match="files of the dataset cannot be read"):
        dp.Session(epsilon=1).protect(dataset, unit=dp.Rows())


@pytest.mark.parametrize("more", [[], [10.0]])
def test_a_scan_of_a_filtered_dataset_is_refused(more: list[float], tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [float("nan"), 1.0, *more]}), tmp_path / "rows.parquet")
    filtered = ds.dataset(tmp_path).filter(ds.field("x") != 1)
    assert "protect the dataset itself" in _refusal(pl.scan_pyarrow_dataset(filtered))
    assert exactly(protected(filtered).dp_count()).item() == 1 + len(more)
