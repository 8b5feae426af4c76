"""Runs of several jobs in one budget, and results that are given up."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger.kept import Begun
from dpframe.ledger.owners import move, prune
from tests.cli.commands import Run
from tests.ledger.ledgers import Place, opened, sql, store_at, verify

JOB = """
import polars as pl
import dpframe as dp
day = dp.parameter("day", pl.Int64, default=1)
session = dp.Session(epsilon=1, ledger=WHERE, create=True)
people = session.protect("people.parquet", unit=dp.Rows(), name="people")
query = people.filter(pl.col("age") >= day).agg(OUTPUT)
spend = {"epsilon": SPEND}
"""


def job(folder: Path, place: Place, name: str, output: str, spend: str = '"0.125"') -> None:
    text = JOB.replace("WHERE", repr(str(place))).replace("OUTPUT", output)
    (folder / name).write_text(text.replace("SPEND", spend))


def table(place: Place) -> str:
    return "records" if isinstance(place, Path) else "dpframe_ledger.records"


def test_two_jobs_have_runs_of_one_name(folder: Path, place: Place, run: Run) -> None:
    job(folder, place, "one.py", "n=dp.count()")
    job(folder, place, "two.py", "m=dp.count()")
    for again in (False, True):
        for name in ("one.py", "two.py"):
            done = run("run", name, "--run-id", "monday", "--json")
            assert (done.code, done.json["reused"]) == (0, again), done.err
    assert opened(place).spent == dp.PureDP("0.25")
    for changed in ({"spend": '"0.25"'},):  # the same job, and something else
        job(folder, place, "one.py", "n=dp.count()", **changed)
        assert run("run", "one.py", "--run-id", "monday").code == 4
    job(folder, place, "one.py", "n=dp.count()")
    refused = run("run", "one.py", "--run-id", "monday", "--param", "day=2")
    assert refused.code == 4
    assert "another fingerprint" not in refused.err
    assert "with another plan and parameters" in refused.err
    assert opened(place).spent == dp.PureDP("0.25")
    verify(place)


def test_runs_that_earlier_versions_made(
    folder: Path, place: Place, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no job: the same plan gets its result, and any other is refused, as it was then."""
    job(folder, place, "one.py", "n=dp.count()")
    job(folder, place, "two.py", "m=dp.count()")
    real = Begun.draft

    def without(self: Begun, *given: Any) -> Any:
        return real(dataclasses.replace(self, job=None), *given)

    with monkeypatch.context() as patched:
        patched.setattr(Begun, "draft", without)
        assert run("run", "one.py", "--run-id", "monday").code == 0
    ((why,),) = sql(place, f"SELECT why FROM {table(place)} WHERE act = 'begun'")
    assert "job" not in json.loads(why)
    assert run("run", "one.py", "--run-id", "monday", "--json").json["reused"] is True
    assert run("run", "two.py", "--run-id", "monday").code == 4
    assert opened(place).spent == dp.PureDP("0.125")


def kept(place: Place) -> tuple[dp.Session, dp.PrivateQuery]:
    session = dp.Session(epsilon=1, ledger=place, keep_releases=True)
    people = session.protect(pl.DataFrame({"x": [1, 2]}), unit=dp.Rows(), name="people")
    return session, people.dp_count()


LATER = date(9000, 1, 1)


def test_what_is_pruned_is_said_and_not_paid_again(place: Place) -> None:
    session, query = kept(place)
    query.collect(epsilon="0.1", reuse="same")
    (found,) = prune(store_at(place), "default", "Ann", LATER)
    assert len(found.attempts) == 1
    with pytest.raises(dp.LedgerError, match=r"it was pruned on .* by Ann") as refused:
        kept(place)[1].collect(epsilon="0.1", reuse="same")
    assert 'reuse="never"' in str(refused.value)
    assert session.spent == dp.PureDP("0.1")
    assert kept(place)[0].releases().height == 0
    assert prune(store_at(place), "default", "Ann", LATER) == []
    query.collect(epsilon="0.1")
    assert session.spent == dp.PureDP("0.2")
    assert kept(place)[0].releases().height == 1
    query.collect(epsilon="0.1", reuse="same")  # the newest of the same is there
    assert session.spent == dp.PureDP("0.2")
    verify(place)


def test_which_are_pruned(place: Place, run: Run, folder: Path) -> None:
    session, query = kept(place)
    for _ in range(4):
        query.collect(epsilon="0.1")
    where = ("ledger", "prune", "--ledger", str(place), "--by", "Ann")
    assert run(*where, "--before", "2020-01-01").code == 0
    assert session.releases().height == 4
    assert "pruned 3 results" in run(*where, "--before", "9000-01-01", "--keep-last", "1").out
    assert session.releases()["number"].to_list() == [max(session.releases()["number"])]
    listed = run("ledger", "releases", "--ledger", str(place), "--json").json
    assert [row["status"] for row in listed] == ["pruned", "pruned", "pruned", "kept"]
    digest = listed[0]["fingerprint"][:16]
    number = str(listed[0]["number"])
    restored = run(
        "ledger",
        "restore",
        digest,
        "--ledger",
        str(place),
        "--number",
        number,
        "--output",
        "x.parquet",
    )
    assert restored.code == 6
    assert "it was pruned on" in restored.err
    assert run(*where, "--before", "9000-01-01", "--name", "none").code == 9
    assert run(*where, "--before", "9000-01-01", "--keep-last", "-1").code == 6
    assert run(*where, "--before", "9000-01-01", "--json").json[0]["name"] == "default"
    assert run(*where, "--before", "9000-01-01").out.startswith("nothing is kept")
    verify(place)


def test_a_prune_that_is_interrupted_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the record nothing is handed out; the next call deletes what was left."""
    _, query = kept(place)
    query.collect(epsilon="0.1", reuse="same")
    contents = store_at(place).contents
    with monkeypatch.context() as patched:
        patched.setattr(type(contents), "remove", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            prune(store_at(place), None, "Ann", LATER)
    (one,) = kept(place)[0]._payer.ledger.keeping.every()
    assert contents.read(one.number, 1) is not None
    with pytest.raises(dp.LedgerError, match="pruned"):
        kept(place)[1].collect(epsilon="0.1", reuse="same")
    assert prune(store_at(place), None, "Ann", LATER) == []
    assert contents.read(one.number, 1) is None


def test_what_is_pruned_does_not_move(tmp_path: Path) -> None:
    place, there = tmp_path / "b.db", tmp_path / "moved.db"
    _, query = kept(place)
    query.collect(epsilon="0.1", reuse="same")
    prune(store_at(place), None, "Ann", LATER)
    move(store_at(place), store_at(there), "Ann")
    with pytest.raises(dp.LedgerError, match="pruned"):
        kept(there)[1].collect(epsilon="0.1", reuse="same")
    with pytest.raises(dp.LedgerError, match="was moved to"):  # nothing is missing there
        move(store_at(place), store_at(there), "Ann")
