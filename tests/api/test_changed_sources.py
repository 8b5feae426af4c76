"""Files that changed between `protect` and `collect` are refused before anything is charged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp

BEFORE = pl.DataFrame({"x": [1, 2], "y": [0.5, 1.5]})
CHANGES: dict[str, Callable[[Path], None]] = {
    "another type": lambda path: BEFORE.cast({"x": pl.String}).write_parquet(path),
    "another width": lambda path: BEFORE.cast({"x": pl.Int8}).write_parquet(path),
    "a column less": lambda path: BEFORE.drop("x").write_parquet(path),
    "a column more": lambda path: BEFORE.with_columns(z=1).write_parquet(path),
    "no Parquet": lambda path: path.write_bytes(b"nothing"),
    "gone": Path.unlink,
}
PROTECTED: dict[str, Callable[[dp.Session, Path], dp.PrivateFrame]] = {
    "path": lambda s, path: s.protect(path, dp.Rows()),
    "pattern": lambda s, path: s.protect(str(path.with_name("*.parquet")), dp.Rows()),
    "scan": lambda s, path: s.protect(pl.scan_parquet(path), dp.Rows()),
    "steps": lambda s, path: s.protect(
        pl.scan_parquet(path).with_columns(pl.col("x") + 1).filter(pl.col("y") > 0), dp.Rows()
    ),
}


@pytest.mark.parametrize("kind", PROTECTED)
@pytest.mark.parametrize("change", CHANGES)
def test_other_columns_are_refused_before_the_charge(
    change: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "people.parquet"
    BEFORE.write_parquet(path)
    session = dp.Session(epsilon=1)
    query = PROTECTED[kind](session, path).dp_sum("x", (0, 3))
    query.plan(epsilon="0.1")
    CHANGES[change](path)
    with pytest.raises(dp.EngineError, match="nothing was charged"):
        query.collect(epsilon="0.1")
    assert session.spent == dp.PureDP(0)
    assert session.history.is_empty()


@pytest.mark.parametrize("kind", PROTECTED)
def test_other_rows_are_no_other_columns(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    BEFORE.write_parquet(path)
    session = dp.Session(epsilon=1)
    query = PROTECTED[kind](session, path).dp_sum("x", (0, 3))
    query.collect(epsilon="0.1")
    assert session.spent == dp.PureDP("0.1")


def test_columns_of_frames_in_memory_and_of_functions_stay(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    BEFORE.write_parquet(path)
    for frame in (
        BEFORE,
        BEFORE.lazy(),
        pl.scan_parquet(path).map_batches(lambda f: f, projection_pushdown=False),
        pl.concat([pl.scan_parquet(path), BEFORE.lazy()]),
    ):
        session = dp.Session(epsilon=1)
        session.protect(frame, dp.Rows()).dp_sum("x", (0, 3)).collect(epsilon="0.1")
        assert session.spent == dp.PureDP("0.1")


def test_relations_of_duckdb(tmp_path: Path) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    path = tmp_path / "people.parquet"
    BEFORE.write_parquet(path)
    session = dp.Session(epsilon=1)
    frame = session.protect(duckdb.connect().sql(f"from '{path}'"), dp.Rows())
    frame.dp_sum("x", (0, 3)).collect(epsilon="0.1")
    assert session.spent == dp.PureDP("0.1")
