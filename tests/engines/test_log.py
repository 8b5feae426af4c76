"""What engines say goes nowhere, unless the data owner names a file for it."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp

SECRET = "Zanzibar-918273"


def failing() -> pl.LazyFrame:
    def read(*_: object) -> Iterator[pl.DataFrame]:
        raise ValueError(SECRET)
        yield

    return register_io_source(read, schema={"x": pl.Int64})


def run() -> None:
    with pytest.raises(dp.EngineError) as caught:
        dp.Session(epsilon=1).protect(failing(), dp.Rows()).dp_count().collect(epsilon=1)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_nothing_is_logged_by_default(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("DPFRAME_ENGINE_LOG", raising=False)
    with caplog.at_level(logging.DEBUG):
        run()
    out, err = capfd.readouterr()
    assert not caplog.records
    assert SECRET not in out + err


def test_the_owner_may_name_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "engine.log"
    monkeypatch.setenv("DPFRAME_ENGINE_LOG", str(path))
    with caplog.at_level(logging.DEBUG):
        run()
        run()
    assert not caplog.records  # only the file has it
    assert path.read_text().count(SECRET) >= 2
    assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_a_log_that_cannot_be_written_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPFRAME_ENGINE_LOG", str(tmp_path / "no" / "folder.log"))
    run()


@pytest.mark.parametrize("name", ["SQLQueryContextLogger", "DataFrameQueryContextLogger"])
def test_what_pyspark_logs_of_a_query_is_withheld_and_nothing_else(name: str) -> None:
    logs = pytest.importorskip("pyspark.logger")
    spark = pytest.importorskip("dpframe.lower.engines.spark_engine")
    logger = logs.PySparkLogger.getLogger(name)
    record = logging.LogRecord(name, logging.ERROR, "x.py", 1, SECRET, None, None)
    assert logger.filter(record)
    with spark._withheld():
        assert not logger.filter(record)
    assert logger.filter(record)
