"""Processes that are forked after Polars was used: they answer, or refuse at once; never hang."""

from __future__ import annotations

import multiprocessing.process
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.lower.engines import forked
from tests.cli.commands import environment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")

PEOPLE = pl.DataFrame({"age": [31, 64, 20, 45], "sex": ["f", "m", "f", "m"]})
ANSWERED, REFUSED, HUNG = 7, 8, 9


def ask(place: Path) -> int:
    """All that a worker does, on groups so that Polars needs its threads."""
    session = dp.Session(epsilon=1, ledger=place)
    people = session.protect(PEOPLE, unit=dp.Rows())
    return run(people.group_by("sex", keys=["f", "m"]).agg(n=dp.count(), a=dp.sum("age", (0, 99))))


def run(query: dp.PrivateQuery) -> int:
    assert query.collect(epsilon="0.1").height == 2
    return ANSWERED


def in_child(work: Callable[[], int], seconds: float = 30) -> int:
    """What a forked process comes to, within a time."""
    process = os.fork()
    if not process:
        code = 99
        try:
            code = work()
        except dp.EngineError as error:
            text = str(error)
            known = "forked" in text and 'get_context("spawn"), and protect' in text
            code = REFUSED if known else 98
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return HUNG


def spent(place: Path) -> dp.PureDP:
    return dp.Session(epsilon=1, ledger=place).spent  # type: ignore[return-value]


def test_a_forked_process_refuses_before_the_charge_once_the_parent_has_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "budget.db"
    assert ask(place) == ANSWERED
    monkeypatch.setattr(forked, "_answers", lambda: os._exit(97))  # what is known is not tried
    assert in_child(lambda: ask(place)) == REFUSED
    assert spent(place) == dp.PureDP("0.1")


def test_a_query_of_the_parent_is_refused_before_the_charge(tmp_path: Path) -> None:
    """`collect` itself refuses, not only what comes before it."""
    place = tmp_path / "budget.db"
    session = dp.Session(epsilon=1, ledger=place)
    people = session.protect(PEOPLE, unit=dp.Rows())
    query = people.group_by("sex", keys=["f", "m"]).agg(n=dp.count(), a=dp.sum("age", (0, 99)))
    assert run(query) == ANSWERED
    assert in_child(lambda: run(query)) == REFUSED
    assert in_child(lambda: in_child(lambda: run(query))) == REFUSED, "and so does a grandchild"
    assert session.spent == dp.PureDP("0.1")
    assert run(query) == ANSWERED, "the parent goes on"


def test_queries_of_duckdb_are_refused_too(tmp_path: Path) -> None:
    """Noise and results are made with Polars, which must not be found out after the charge."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql("SELECT range % 2 AS sex, range AS age FROM range(100)")
    session = dp.Session(epsilon=1, ledger=tmp_path / "budget.db")
    people = session.protect(relation, unit=dp.Rows())
    query = people.group_by("sex", keys=[0, 1]).agg(n=dp.count())
    assert run(query) == ANSWERED
    assert in_child(lambda: run(query)) == REFUSED
    assert session.spent == dp.PureDP("0.1")


def test_a_session_of_spark_is_not_shared_with_a_forked_process() -> None:
    pytest.importorskip("pyspark")
    from dpframe.lower.engines.spark_engine import SparkEngine

    engine = SparkEngine.__new__(SparkEngine)
    engine._process = os.getpid()
    engine.require_process()
    assert in_child(lambda: engine.require_process() or 0) == 98, "it may be asked nothing"


ALONE = """
import os, sys
import polars as pl
{before}
import dpframe as dp
{used}
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.lower.test_forks import ask, in_child
print(in_child(lambda: ask(Path({place!r}))))
"""


def alone(place: Path, *, before: str = "", used: str = "") -> int:
    """What the forked child of a process of its own comes to."""
    root = str(Path(__file__).parents[2])
    script = ALONE.format(before=before, used=used, root=root, place=str(place))
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_a_forked_process_works_when_polars_was_only_imported(tmp_path: Path) -> None:
    assert alone(tmp_path / "budget.db") == ANSWERED
    assert spent(tmp_path / "budget.db") == dp.PureDP("0.1")


@pytest.mark.slow
def test_a_use_of_polars_without_dpframe_is_found(tmp_path: Path) -> None:
    use = "pl.DataFrame({'a': [1, 2]}).group_by('a').agg(pl.len(), pl.col('a').sum().alias('b'))"
    assert alone(tmp_path / "budget.db", used=use) == REFUSED
    assert not (tmp_path / "budget.db").exists() or spent(tmp_path / "budget.db").is_zero


def work_in_pool(place: str) -> int:
    return ask(Path(place))


@pytest.mark.parametrize(
    "start",
    [
        "fork",
        pytest.param("spawn", marks=pytest.mark.slow),
        pytest.param("forkserver", marks=pytest.mark.slow),
    ],
)
def test_workers_of_a_pool_answer_or_refuse(tmp_path: Path, start: str) -> None:
    place = tmp_path / "budget.db"
    assert ask(place) == ANSWERED
    with ProcessPoolExecutor(1, mp_context=get_context(start)) as pool:
        asked = pool.submit(work_in_pool, str(place))
        if start == "fork":
            with pytest.raises(dp.EngineError, match="forked"):
                asked.result(timeout=60)
        else:
            assert asked.result(timeout=60) == ANSWERED
    assert spent(place) == dp.PureDP("0.1" if start == "fork" else "0.2")


def test_a_process_tries_whether_polars_answers() -> None:
    before = forked._Threads.work
    forked._Threads.work = None
    forked.require_threads()
    assert forked._Threads.work is True
    forked._Threads.work = before


@pytest.mark.parametrize(
    "act",
    [
        lambda people: people.group_by("x", keys=[1]),
        lambda people: people.session.partition(people, "x", [1]),
        lambda people: people.session.protect(pl.DataFrame({"x": [1]}), dp.Rows()),
        lambda people: people.dp_count().collect(epsilon=0.1),
    ],
    ids=["group", "divide", "protect", "collect"],
)
def test_whatever_uses_polars_is_refused_where_it_would_hang(
    act: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), dp.Rows())
    monkeypatch.setattr(forked._Threads, "work", False)
    with pytest.raises(dp.EngineError, match="forked"):
        act(people)
    assert people.session.spent.epsilon == 0


def test_whoever_waits_in_vain_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked._Threads, "work", None)
    monkeypatch.setattr(forked, "_PATIENCE", 0.0)
    tried, frame = Event(), pl.LazyFrame

    def late(data: dict[str, list[int]]) -> pl.LazyFrame:
        tried.wait(60)
        return frame(data)

    monkeypatch.setattr(pl, "LazyFrame", late)
    with pytest.raises(dp.EngineError, match="spawn"):
        forked.require_threads()
    tried.set()
    assert forked._Threads.work is False


@pytest.mark.parametrize(
    ("used", "before", "after"),
    [(False, True, None), (False, None, None), (False, False, False), (True, True, False)],
)
def test_a_forked_process_has_no_threads_where_its_parent_had_used_or_lost_them(
    used: bool, before: bool | None, after: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is not known, and tried."""
    monkeypatch.setattr(forked._Threads, "used", used)
    monkeypatch.setattr(forked._Threads, "work", before)
    forked._forked()
    assert forked._Threads.work is after


@pytest.mark.parametrize(("parent", "known"), [(None, True), (object(), None)], ids=["not", "is"])
def test_a_process_that_may_have_been_forked_before_is_found_out(
    parent: object, known: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiprocessing.process, "parent_process", lambda: parent)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    assert runpy.run_path(forked.__file__)["_Threads"].work is known
