"""Ctrl-C while an engine runs: nothing is released, the charge stays, and the ledger says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from threading import Event

import polars as pl
import pytest

import dpframe as dp
from dpframe.lower.engines import duckdb_engine

_ROOT = Path(__file__).parents[2]
_SLOW = """
import sys
import polars as pl, dpframe as dp
ledger, engine, ready = sys.argv[1:]
session = dp.Session(epsilon=1, ledger=ledger)
if engine == "duckdb":
    import duckdb
    connection = duckdb.connect()
    rows = connection.sql(
        "SELECT a.range % 7 AS x FROM range(3000000) a, range(1000000) b "
        "WHERE (a.range * b.range) % 1000003 <> 1"
    )
else:
    n = pl.LazyFrame({"i": pl.int_range(200000, eager=True)})
    slow = pl.col("i_right") * pl.col("i") % 1000003
    rows = n.join(n, how="cross").filter(slow != 1).select(x=pl.col("i") % 7)
people = session.protect(rows, dp.Rows())
query = people.dp_sum("x", (0, 6))
open(ready, "w").close()
try:
    print("released", query.collect(epsilon=0.5))
except dp.EngineError:
    print("engine error")
except KeyboardInterrupt:
    print("interrupted")
if engine == "duckdb":  # the connection is free
    rows = dp.Session(epsilon=1).protect(connection.sql("SELECT 1 AS x"), dp.Rows())
    rows.dp_count().collect(epsilon=0.25)
"""


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version(name).split(".")[:2])


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_interrupted_run_keeps_its_charge(engine: str, tmp_path: Path) -> None:
    if engine == "duckdb" and _version("duckdb") < (2, 0):
        pytest.skip("older versions of DuckDB notice an interruption when the query is done")
    _skip_cross_joins(engine)
    ledger, ready = tmp_path / "budget.db", tmp_path / "ready"
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW, str(ledger), engine, str(ready)],
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        _until(lambda: ready.exists() and _statuses(ledger) == ["charged"])
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert said.strip() in ("interrupted", "engine error")
    assert process.returncode == 0
    assert _statuses(ledger) == ["failed"]
    _runs_again(ledger, "failed")


def test_a_query_that_missed_an_interruption_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever interrupts a query that has not begun yet is not heard."""
    told: list[int] = []
    stopped = Event()

    class Interrupted(Event):
        def wait(self, timeout: float | None = None) -> bool:
            if not told:
                told.append(0)
                raise KeyboardInterrupt
            return super().wait(timeout)

    def interrupt() -> None:
        told.append(len(told))
        if len(told) > 3:
            stopped.set()

    monkeypatch.setattr(duckdb_engine, "Event", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        duckdb_engine._waited(lambda: stopped.wait(60), interrupt)
    assert stopped.is_set()


def _skip_cross_joins(engine: str) -> None:
    if engine == "polars" and _version("polars") < (2, 0):
        pytest.skip("older versions of Polars hold a cross join in memory")


def _runs_again(ledger: Path, before: str) -> None:
    """What remains can be spent, and no more."""
    again = dp.Session(epsilon=1, ledger=ledger)
    assert again.remaining == dp.PureDP("0.5")
    query = again.protect(pl.DataFrame({"x": [1, 2]}), dp.Rows()).dp_sum("x", (0, 6))
    with pytest.raises(dp.BudgetExceeded):
        query.collect(epsilon="0.6")
    assert query.collect(epsilon="0.5").height == 1
    assert _statuses(ledger) == [before, "released"]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_killed_run_keeps_its_charge(engine: str, tmp_path: Path) -> None:
    _skip_cross_joins(engine)
    ledger, ready = tmp_path / "budget.db", tmp_path / "ready"
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW, str(ledger), engine, str(ready)],
        env=os.environ | {"PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
    )
    try:
        _until(lambda: ready.exists() and _statuses(ledger) == ["charged"])
    finally:
        process.kill()
    process.communicate(timeout=60)
    assert _statuses(ledger) == ["charged"]
    _runs_again(ledger, "charged")


def _statuses(ledger: Path) -> list[str]:
    if not ledger.exists():
        return []
    return dp.Session(epsilon=1, ledger=ledger).history["status"].to_list()


def _until(condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the run did not begin in time"
        time.sleep(0.1)
