"""Sessions whose budget is kept in a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import runner
from dpframe.ledger import chain
from tests.api.test_session import FRAME, Source


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def count(session: dp.Session, frame: Any = FRAME, unit: Any = None) -> dp.PrivateQuery:
    return session.protect(frame, dp.Rows() if unit is None else unit).dp_count()


def test_a_new_session_has_what_the_last_one_left(place: Path | str) -> None:
    for done in range(5):
        session = dp.Session(epsilon=1.0, ledger=place)
        assert session.spent.exact_epsilon * 5 == done
        count(session).collect(epsilon=0.1)
        count(session).collect(epsilon=0.1)
    source = Source()
    with pytest.raises(dp.BudgetExceeded, match="the budget of epsilon 1 has epsilon 0 left"):
        count(dp.Session(epsilon=1.0, ledger=place), source.frame).collect(epsilon=0.1)
    assert source.reads == 0
    session = dp.Session(epsilon=1.0, ledger=place)
    assert session.remaining == dp.PureDP(0)
    assert session.history.height == 10
    assert set(session.history["status"]) == {"released"}


SPENDING = """
import sys, polars as pl, dpframe as dp
frame = pl.DataFrame({"a": [1, 2, 3]})
query = dp.Session(epsilon=1.0, ledger=sys.argv[1]).protect(frame, dp.Rows()).dp_count()
for _ in range(4):
    query.collect(epsilon=0.1)
"""


def test_a_new_process_gets_no_fresh_budget(path: Path) -> None:
    """Nor does a copy of the notebook, somewhere else, on another day."""
    script = path.with_name("notebook.py")
    script.write_text(SPENDING)
    ends = []
    for place in ("a", "b", "c"):
        (path.parent / place).mkdir()
        copied = shutil.copy(script, path.parent / place)
        done = subprocess.run(
            [sys.executable, copied, str(path)], cwd=path.parent / place, capture_output=True
        )
        ends.append((done.returncode, b"BudgetExceeded" in done.stderr))
    assert ends == [(0, False), (0, False), (1, True)]
    assert dp.Session(epsilon=1.0, ledger=path).spent == dp.PureDP(1)


def test_a_new_day_gets_no_fresh_budget(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget that was reset every day: here it is not."""
    day = datetime(2026, 1, 1, tzinfo=UTC)

    class Clock:
        fromisoformat = datetime.fromisoformat

        @staticmethod
        def now(_: object) -> datetime:
            return day

    monkeypatch.setattr(chain, "datetime", Clock)
    for _ in range(4):
        count(dp.Session(epsilon=1, ledger=path)).collect(epsilon="0.25")
        day += timedelta(days=1)
    with pytest.raises(dp.BudgetExceeded):
        count(dp.Session(epsilon=1, ledger=path)).collect(epsilon="0.25")
    days = dp.Session(epsilon=1, ledger=path).history["time"].dt.day().to_list()
    assert days == [1, 2, 3, 4]


@pytest.mark.always
def test_the_averaging_attack_is_stopped(path: Path) -> None:
    """The mean of n answers has a noise of 1 / sqrt(n); the budget ends before it is small."""
    ages = pl.DataFrame({"age": [30] * 100})
    answers: list[int] = []
    for _ in range(100):
        session = dp.Session(epsilon=1.0, ledger=path)
        try:
            answers.append(count(session, ages).collect(epsilon=0.05).item())
        except dp.BudgetExceeded:
            continue
    assert len(answers) == 20
    assert session.spent == dp.PureDP(1)


def test_each_name_has_a_budget(place: Path | str) -> None:
    for name, budget in [("census", dp.PureDP(1)), ("survey", dp.ZCDP("0.5")), (None, dp.ZCDP(1))]:
        session = dp.Session(budget, ledger=place, name=name)
        count(session).collect(**{session.budget.currency: "0.1"})
    assert dp.Session(epsilon=1, ledger=place, name="census").spent == dp.PureDP("0.1")
    assert dp.Session(rho="0.5", ledger=place, name="survey").spent == dp.ZCDP("0.1")
    assert dp.Session(rho=1, ledger=place, name="default").spent == dp.ZCDP("0.1")
    with pytest.raises(dp.LedgerError, match="'census' was opened with epsilon 1"):
        dp.Session(epsilon=2, ledger=place, name="census")


def test_another_unit_is_refused_when_it_is_asked_for(place: Path | str) -> None:
    count(dp.Session(epsilon=1, ledger=place)).collect(epsilon="0.1")
    source = Source()
    session = dp.Session(epsilon=1, ledger=place)
    query = count(session, source.frame, dp.Rows("change-one"))
    for ask in (query.plan, query.collect):
        with pytest.raises(dp.LedgerError, match="rows, add-remove"):
            ask(epsilon="0.1")
    assert session.spent == dp.PureDP("0.1")
    assert source.reads == 0
    count(dp.Session(epsilon=1, ledger=place), unit=dp.Rows(contributions=2)).plan(epsilon="0.1")


def test_a_refused_first_query_fixes_no_unit(place: Path | str) -> None:
    session = dp.Session(epsilon=1, ledger=place)
    people = session.protect(FRAME, dp.Rows("change-one"))
    with pytest.raises(dp.BudgetExceeded):
        people.dp_sum("age", (0, 9)).collect(epsilon=2)
    count(dp.Session(epsilon=1, ledger=place)).collect(epsilon=1)


def test_a_ledger_may_be_given_as_url(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for ledger in (path, str(path), "budget.db", "sqlite:///budget.db", f"sqlite:///{path}"):
        count(dp.Session(epsilon=1, ledger=ledger)).collect(epsilon="0.1")
    assert dp.Session(epsilon=1, ledger=path).spent == dp.PureDP("0.5")


def test_a_session_says_where_its_budget_is(path: Path) -> None:
    session = dp.Session(epsilon=1, ledger=path, name="census")
    count(session).collect(epsilon="0.25")
    assert repr(session) == (
        f"<Session 'census': epsilon 0.75 of epsilon 1 remains, kept in {path}>"
    )
    path.write_bytes(b"no ledger any more")
    assert "kept in" in repr(session)
    assert "remains" not in repr(session)


# -- failures ---------------------------------------------------------------------------------


def test_nothing_is_read_when_the_charge_fails(path: Path) -> None:
    source = Source()
    session = dp.Session(epsilon=1, ledger=path)
    query = count(session, source.frame)
    path.rename(path.with_name("moved.db"))
    with pytest.raises(dp.LedgerError, match="moved, deleted or replaced"):
        query.collect(epsilon="0.1")
    assert source.reads == 0


def test_nothing_is_read_when_the_ledger_was_changed(path: Path) -> None:
    source = Source()
    session = dp.Session(epsilon=1, ledger=path)
    query = count(session, source.frame)
    query.collect(epsilon="0.5")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE records SET main = '0' WHERE act = 'charged'")
    connection.commit()
    connection.close()
    with pytest.raises(dp.LedgerError, match="does not verify"):
        query.collect(epsilon="0.1")
    with pytest.raises(dp.LedgerError, match="does not verify"):
        dp.Session(epsilon=1, ledger=path)
    assert source.reads == 1


def test_nothing_comes_out_when_the_release_cannot_be_recorded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = dp.Session(epsilon=1, ledger=path)
    query = count(session)
    real = runner.assemble

    def then_full(*arguments: Any) -> Any:
        session._payer.ledger._store._connected().execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]
        return real(*arguments)

    monkeypatch.setattr(runner, "assemble", then_full)
    with pytest.raises(dp.LedgerError, match="cannot be written"):
        query.collect(epsilon="0.1")
    assert session.history["status"].to_list() == ["charged"]
    assert dp.Session(epsilon=1, ledger=path).spent == dp.PureDP("0.1")


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_a_failure_is_recorded_and_keeps_its_charge(
    place: Path | str, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def broken(*_: object) -> None:
        raise kind("42 people")

    session = dp.Session(epsilon=1, ledger=place)
    query = count(session)
    monkeypatch.setattr(runner, "draw", broken)
    with pytest.raises((dp.EngineError, KeyboardInterrupt)):
        query.collect(epsilon="0.5")
    again = dp.Session(epsilon=1, ledger=place)
    assert again.history["status"].to_list() == ["failed"]
    assert again.remaining == dp.PureDP("0.5")


def test_a_session_in_a_forked_process_spends_the_same_budget(place: Path | str) -> None:
    session = dp.Session(epsilon=1, ledger=place)
    session._payer.ledger.charge(dp.PureDP("0.5"), "parent")
    process = os.fork()
    if not process:
        try:
            session._payer.ledger.charge(dp.PureDP("0.5"), "child")
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    assert session.remaining == dp.PureDP(0)
    assert session.history["fingerprint"].to_list() == ["parent", "child"]
