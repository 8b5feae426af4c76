"""Plans on Polars: whatever its engine and however many threads, the same tables."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.rows.failures import _optimizations
from tests.engines.plans import PLANS
from tests.engines.running import on_polars, one_hash

__all__ = ["one_hash"]

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.usefixtures("one_hash")
def test_streaming_gives_the_tables_of_the_engine_in_memory(name: str) -> None:
    assert on_polars(name, "streaming") == on_polars(name)


@cache
def _of_one_thread() -> dict[str, str]:
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-m", "tests.engines.running"]
    done = subprocess.run(
        command, env=environment, cwd=_ROOT, capture_output=True, text=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.usefixtures("one_hash")
def test_one_thread_gives_the_same_tables() -> None:
    assert _of_one_thread() == {
        name: hashlib.sha256(json.dumps(on_polars(name), default=str).encode()).hexdigest()
        for name in PLANS
    }


def test_there_are_enough_plans() -> None:
    assert len(PLANS) >= 40


# -- how a Polars frame is run ------------------------------------------------------------------

FRAME = pl.DataFrame({"x": [1, 2, 3], "g": ["a", "b", "a"]})


@pytest.mark.parametrize("mode", ["auto", "in-memory", "streaming", "polars"])
def test_the_engine_of_a_run_can_be_chosen(mode: str) -> None:
    session = dp.Session(epsilon=10**15)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    assert query.collect(epsilon=10**14, engine=mode).item() == 3  # type: ignore[arg-type]
    assert query.release(epsilon=10**14, engine=mode).frame.item() == 3  # type: ignore[arg-type]
    assert session.collect(query, epsilon=10**14, engine=mode).item() == 3


def test_a_function_may_run_the_frame() -> None:
    given: list[pl.LazyFrame] = []

    def elsewhere(frame: pl.LazyFrame) -> pl.DataFrame:
        given.append(frame)
        return frame.collect(engine="in-memory")

    session = dp.Session(epsilon=10**15)
    people = session.protect(FRAME, dp.Rows())
    query = people.agg(dp.count(), pl.col("g").dp_histogram(["a", "b"]).alias("h"))
    released = query.collect(epsilon=10**15, engine=elsewhere)
    assert released["len"].item() == 3
    assert [row["count"] for row in released["h"].item()] == [2, 1]
    assert len(given) == 2  # one for each set of cells, and none for the rehearsal


def test_a_function_that_fails_releases_nothing_and_says_nothing() -> None:
    def broken(frame: pl.LazyFrame) -> pl.DataFrame:
        raise ValueError("secret-ssn-123")

    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    with pytest.raises(dp.EngineError) as caught:
        query.collect(epsilon=0.5, engine=broken)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert session.history["status"].to_list() == ["failed"]
    with pytest.raises(dp.EngineError):
        query.collect(epsilon=0.5, engine=lambda frame: frame)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("version", "shares"),
    [
        ("1.32.0", False),
        ("1.35.2", False),
        ("1.36.0", True),
        ("1.36.0-beta.1", True),
        ("2.0", True),
    ],
)
def test_constants_are_shared_where_polars_does_that_right(
    version: str, shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pl, "__version__", version)
    assert _optimizations().comm_subexpr_elim is shares


@pytest.mark.parametrize("mode", ["duckdb", "spark", "fast", 7])
def test_other_engines_do_not_run_polars_frames(mode: object) -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(FRAME, dp.Rows()).dp_count()
    with pytest.raises(dp.UnsupportedOperation, match="Polars has no engine"):
        query.collect(epsilon=0.5, engine=mode)  # type: ignore[arg-type]
    assert session.history.is_empty()


def test_polars_needs_none_of_the_other_engines() -> None:
    code = (
        "import sys, polars as pl, dpframe as dp; s = dp.Session(epsilon=1); "
        "f = s.protect(pl.DataFrame({'x': [1], 'u': [1]}), 'u').limit_rows(1); "
        "f.agg(dp.sum('x', (0, 1))).collect(epsilon=1); "
        "assert not {'narwhals', 'duckdb', 'pyspark'} & set(sys.modules), 'imported'"
    )
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
