"""No statistic of what is stored decides which rows a frame on Polars has: each way by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe.api.frame import rows_of
from dpframe.lower.engines import scans
from dpframe.lower.engines.polars_engine import NOT_PUSHING, POLARS
from dpframe.rows.failures import OPTIMIZATIONS
from tests.api.exactly import exactly, protected
from tests.storage import footers

X = pl.col("x")


def _file(folder: Path, *more: float) -> Path:
    """1,000 rows of NaN, a 1.0, and others."""
    path = folder / "rows.parquet"
    pq.write_table(pa.table({"x": [math.nan] * 1_000 + [1.0, *more]}), path)
    return path


def _count(people: dp.PrivateFrame, condition: pl.Expr) -> int:
    return int(exactly(people.filter(condition).dp_count()).item())


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a path": lambda path: path,
    "a scan": lambda path: pl.scan_parquet(path),
    "a dataset": lambda path: ds.dataset(path),
    "a scan of a dataset": lambda path: pl.scan_pyarrow_dataset(ds.dataset(path)),
    "a scan beside rows in memory": lambda path: pl.concat(
        [pl.scan_pyarrow_dataset(ds.dataset(path)), pl.LazyFrame({"x": []}, {"x": pl.Float64})]
    ),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("more", [[], [10.0]])
def test_one_more_row_moves_a_count_by_one(source: str, more: list[float], tmp_path: Path) -> None:
    people = protected(SOURCES[source](_file(tmp_path, *more)))
    assert _count(people, X > 5) == 1_000 + len(more)
    assert _count(people, X != 1) == 1_000 + len(more)
    assert _count(people, X.is_nan()) == 1_000


@pytest.mark.parametrize("more", [[], [10.0]])
def test_filters_that_the_owner_wrote_before(more: list[float], tmp_path: Path) -> None:
    dataset = ds.dataset(_file(tmp_path, *more))
    scanned = pl.scan_pyarrow_dataset(dataset).filter(X != 1).select("x")
    assert exactly(protected(scanned).dp_count()).item() == 1_000 + len(more)
    filtered = dataset.filter(ds.field("x") != 1)
    assert exactly(protected(filtered).dp_count()).item() == 1_000 + len(more)


def test_a_dataset_whose_filter_is_not_told_is_refused() -> None:
    class Newer(ds.InMemoryDataset):  # type: ignore[misc]
        __module__ = "pyarrow.dataset"
        _scan_options = None

    with pytest.raises(dp.UnsupportedOperation, match="does not show how the dataset is filtered"):
        protected(Newer(pa.table({"x": [1.0]})))


def test_a_query_of_duckdb_behind_a_lazy_frame_is_refused(tmp_path: Path) -> None:
    try:
        lazy = duckdb.connect().sql(f"FROM '{_file(tmp_path)}' WHERE x > 5").pl(lazy=True)
    except TypeError:
        pytest.skip("this DuckDB does not work with this Polars")
    with pytest.raises(dp.UnsupportedOperation, match="DuckDB may decide") as caught:
        protected(lazy)
    assert "protect the relation itself" in str(caught.value)


def test_wrong_footers_are_not_believed(tmp_path: Path) -> None:
    path = _file(tmp_path)
    footers.edit(path, lambda f: footers.state_extremes(f, low=True, high=False))
    for source in (path, pl.scan_parquet(path), pl.scan_parquet(path).filter(X > 0)):
        assert _count(protected(source), X > 0) == 1_001


@pytest.mark.parametrize("mode", ["in-memory", "streaming"])
def test_orders_that_a_footer_states_are_not_believed(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"i": [5, 1, 9, 2, 7, 0, 3, 8]}), path)
    footers.edit(path, lambda f: footers.state_order(f, 0, descending=False))
    for source in (path, pl.scan_parquet(path)):
        people = protected(source)
        big = people.with_columns(big=pl.col("i") > 4).dp_sum("big", (0, 1))
        assert people.session.collect(big, epsilon=10**14, engine=mode).item() == 4
    with pytest.raises(dp.UnsupportedOperation, match="state that their rows are sorted"):
        protected(pl.scan_parquet(path).filter(pl.col("i") > 4))


def test_filters_are_pushed_where_that_is_safe(tmp_path: Path) -> None:
    def engine(source: Any) -> Any:
        return rows_of(protected(source)).source.engine

    path = _file(tmp_path)
    assert engine(path) is POLARS
    assert engine(pl.scan_parquet(path).filter(X > 1)) is POLARS
    assert engine(pl.read_parquet(path)) is POLARS
    assert engine(pl.scan_pyarrow_dataset(ds.dataset(path))) is NOT_PUSHING


def test_frames_brought_together_push_nothing_if_one_does_not(tmp_path: Path) -> None:
    session = dp.Session(epsilon=1)
    path = _file(tmp_path)
    frames = [pl.scan_parquet(path), pl.scan_pyarrow_dataset(ds.dataset(path))]
    one, other = (session.protect(f.with_columns(u=pl.lit(1)), "u") for f in frames)
    for pair in ((one, other), (other, one)):
        both: Any = rows_of(pair[0].limit_rows(1).concat(pair[1].limit_rows(1))).source
        assert not both.engine.pushes


def test_a_function_does_not_run_what_must_not_be_pushed(tmp_path: Path) -> None:
    people = protected(pl.scan_pyarrow_dataset(ds.dataset(_file(tmp_path))))
    with pytest.raises(dp.UnsupportedOperation, match="engine= cannot be a function"):
        people.dp_count().collect(epsilon=1, engine=lambda frame: frame.collect())
    assert people.session.history.is_empty()


def test_a_polars_that_pushes_although_it_is_told_not_to_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scans.require_no_pushdown.cache_clear()
    monkeypatch.setattr(scans, "NOTHING_PUSHED", OPTIMIZATIONS)
    with pytest.raises(dp.UnsupportedOperation, match="passes filters to what reads the rows"):
        scans.require_no_pushdown()
    monkeypatch.undo()
    scans.require_no_pushdown()
