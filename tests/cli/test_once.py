"""Runs that are made once: whatever is killed when, and however many there are at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger.ledger import Keeping
from tests.cli.commands import COMMAND, Done, Run, dpframe, environment, python_job, toml_job
from tests.ledger.ledgers import Place, opened, store_at

JOB = """
import os, signal, time
import polars as pl
import dpframe as dp

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

point = os.environ.get("KILLED_WHEN")
if point == "charged":
    from dpframe import runner
    runner._count_parts = killed
elif point == "computed":
    from dpframe.ledger.contents import FolderContents
    FolderContents.write = killed
    try:
        from dpframe.ledger.postgres import PostgresContents
        PostgresContents.write = killed
    except ImportError:
        pass
elif point == "half kept":
    from dpframe.ledger import contents
    from dpframe.ledger.postgres import PostgresTables
    contents.os = type("Os", (), {**vars(os), "replace": killed})
    PostgresTables.put = killed
elif point == "kept":
    from dpframe.ledger.ledger import Ledger
    Ledger.settle = killed
elif point == "recorded":
    from dpframe.cli import run
    run.write = killed
elif point == "written":
    from dpframe.cli import run
    whole = run.write
    def write(*given):
        whole(*given)
        killed()
    run.write = write
elif point == "slow":
    from dpframe import runner
    counted = runner._count_parts
    def slow(*given):
        time.sleep(float(os.environ["SLOW"]))
        return counted(*given)
    runner._count_parts = slow

session = dp.Session(epsilon=1, ledger=os.environ["WHERE"], create=True)
people = session.protect("people.parquet", unit=dp.Rows(), name="people")
grouped = people.filter(pl.col("age") >= 40).group_by("sex", keys=["f", "m"])
query = grouped.agg(dp.count().alias("n"))
spend = {"epsilon": os.environ.get("SPEND", "0.25")}
output = "result.parquet"
"""
LOST = ("charged", "computed", "half kept")
KEPT = ("kept", "recorded", "written")


@pytest.fixture
def job(folder: Path, place: Place, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job whose ledger is at the place, and which is killed when it is told."""
    (folder / "job.py").write_text(JOB)
    monkeypatch.setenv("WHERE", str(place))
    return folder


def apart(folder: Path, *arguments: str, **variables: str) -> Done:
    """The job in a process of its own."""
    env = {"WHERE": os.environ["WHERE"]} | variables
    return dpframe("run", "job.py", *arguments, at=folder, env=env)


def spent(place: Place) -> dp.PureDP:
    return opened(place).spent  # type: ignore[return-value]


def hidden(folder: Path, place: Place) -> list[str]:
    """What was left behind, beside the output and beside the ledger."""
    places = [folder]
    if isinstance(place, Path):
        places.append(place.with_name(f"{place.name}.releases"))
    return [name for one in places for name in os.listdir(one) if name.startswith(".")]


def test_a_second_run_gets_the_result_of_the_first(job: Path, place: Place, run: Run) -> None:
    first = run("run", "job.py", "--run-id", "monday")
    assert first.code == 0
    assert first.said.startswith("released to result.parquet: cost epsilon 0.25")
    frame, bytes_ = pl.read_parquet(job / "result.parquet"), (job / "result.parquet").read_bytes()
    again = run("run", "job.py", "--run-id", "monday")
    assert again.code == 0
    assert again.err.startswith(
        "released before, and returned to result.parquet: cost epsilon 0.25"
    )
    assert "in the run 'monday', and nothing was charged for it" in again.err
    assert (job / "result.parquet").read_bytes() == bytes_
    (job / "result.parquet").unlink()  # a lost disk
    lost = run("run", "job.py", "--run-id", "monday", "--json")
    assert lost.json["reused"] is True
    assert pl.read_parquet(job / "result.parquet").equals(frame)
    assert run("inspect", "result.parquet").code == 0
    assert spent(place) == dp.PureDP("0.25")
    tuesday = run("run", "job.py", "--run-id", "tuesday", "--json")
    assert tuesday.json["reused"] is False
    assert spent(place) == dp.PureDP("0.5")
    assert not hidden(job, place)


def test_once_goes_by_plan_and_names(
    job: Path, run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for spend, reused in (("0.25", False), ("0.25", True), ("0.125", False), ("0.125", True)):
        monkeypatch.setenv("SPEND", spend)
        done = run("run", "job.py", "--once", "--json")
        assert (done.code, done.json["reused"]) == (0, reused)
    assert spent(place) == dp.PureDP("0.375")
    text = (job / "job.py").read_text()
    (job / "job.py").write_text(text.replace('name="people"', "name=None"))
    refused = run("run", "job.py", "--once")
    assert refused.code == 5
    assert 'name = "people" in [source]' in refused.err
    assert spent(place) == dp.PureDP("0.375")


def test_once_of_a_job_in_toml(folder: Path, run: Run) -> None:
    toml_job(folder)
    first, again = (run("run", "job.toml", "--once", "--json") for _ in range(2))
    assert (first.json["reused"], again.json["reused"]) == (False, True)
    assert again.json["result"] == first.json["result"]
    assert "reused" not in run("run", "job.toml", "--json").json
    assert spent(folder / "budget.db") == dp.PureDP("0.5")


def test_another_plan_of_the_same_run_is_refused(
    job: Path, run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("run", "job.py", "--run-id", "monday")
    monkeypatch.setenv("SPEND", "0.5")
    for more in ((), ("--again",)):
        refused = run("run", "job.py", "--run-id", "monday", *more)
        assert refused.code == 4
        assert refused.err.startswith("PlanMismatch: the run 'monday' was begun on ")
        assert "with another plan: people.filter" in refused.err
    assert spent(place) == dp.PureDP("0.25")


@pytest.mark.parametrize("point", LOST)
def test_what_is_killed_before_it_is_kept_is_said(
    job: Path, place: Place, run: Run, point: str
) -> None:
    died = apart(job, "--run-id", "monday", KILLED_WHEN=point)
    assert died.code == -signal.SIGKILL
    assert spent(place) == dp.PureDP("0.25")
    for _ in range(2):
        refused = run("run", "job.py", "--run-id", "monday")
        assert refused.code == 6
        assert "the run 'monday' was charged epsilon 0.25 on " in refused.err
        assert "who computed it ended before it was kept" in refused.err
        assert "--again" in refused.err
        assert spent(place) == dp.PureDP("0.25")
    assert not (job / "result.parquet").exists()
    listed = run("ledger", "releases", "--ledger", place)
    assert "  lost  epsilon 0.25  " in listed.out
    assert "--again" in listed.out

    anew = run("run", "job.py", "--run-id", "monday", "--again", "--json")
    assert (anew.code, anew.json["reused"]) == (0, False)
    assert spent(place) == dp.PureDP("0.5")
    for more in ((), ("--again",)):
        assert run("run", "job.py", "--run-id", "monday", "--json", *more).json["reused"] is True
    assert spent(place) == dp.PureDP("0.5")
    listed = run("ledger", "releases", "--ledger", place)
    assert [line.split("  ")[3] for line in listed.out.splitlines()] == ["lost, paid anew", "kept"]
    shown = run("ledger", "show", "--ledger", place, "--json").json["default"]["charges"]
    assert [charge["status"] for charge in shown] == ["failed", "released"]
    assert run("ledger", "verify", "--ledger", place).code == 0
    assert not hidden(job, place)


@pytest.mark.parametrize("point", KEPT)
def test_what_is_killed_after_it_was_kept_is_finished(
    job: Path, place: Place, run: Run, point: str
) -> None:
    died = apart(job, "--run-id", "monday", KILLED_WHEN=point)
    assert died.code == -signal.SIGKILL
    assert not (job / "result.parquet").exists()
    assert bool([name for name in hidden(job, place) if "result" in name])
    again = run("run", "job.py", "--run-id", "monday", "--json")
    assert (again.code, again.json["reused"]) == (0, True)
    assert ("had ended before it could be handed out" in again.err) == (point == "kept")
    frame = pl.read_parquet(job / "result.parquet")
    assert frame["sex"].to_list() == ["f", "m"]
    once_more = run("run", "job.py", "--run-id", "monday", "--output", "other.parquet")
    assert once_more.code == 0
    assert pl.read_parquet(job / "other.parquet").equals(frame)
    assert spent(place) == dp.PureDP("0.25")
    assert opened(place).entries[0].status == "released"
    assert run("ledger", "verify", "--ledger", place).code == 0
    # The lock of who was killed is removed by who computes next.
    assert run("run", "job.py", "--run-id", "tuesday").code == 0
    assert not hidden(job, place)


def started(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "run", "job.py", *arguments],
        cwd=folder,
        env=environment({"WHERE": os.environ["WHERE"]} | variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_four_at_once_charge_once(job: Path, place: Place, run: Run) -> None:
    opened(place)  # so that they meet at the run, and not at making the ledger
    slow = {"KILLED_WHEN": "slow", "SLOW": "1.5"}
    running = [
        started(job, "--run-id", "monday", "--output", f"{n}.parquet", **slow) for n in range(4)
    ]
    ended = [(p.communicate(timeout=120)[1], p.returncode) for p in running]
    codes = [code for _, code in ended]
    assert set(codes) <= {0, 7}
    released = [err for err, _ in ended if re.search(r"^released to", err, re.M)]
    assert len(released) == 1
    for err, code in ended:
        if code == 7:
            assert "UnderWay: the same is being computed in the run 'monday' since " in err
    assert spent(place) == dp.PureDP("0.25")
    assert len(opened(place).entries) == 1
    frames = [pl.read_parquet(path) for path in job.glob("[0-9].parquet")]
    assert len(frames) == codes.count(0)
    assert all(frame.equals(frames[0]) for frame in frames)
    assert run("run", "job.py", "--run-id", "monday", "--json").json["reused"] is True
    assert run("ledger", "verify", "--ledger", place).code == 0


def until(done: Callable[[], Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_who_lives_is_told_from_who_died(job: Path, place: Place, run: Run) -> None:
    """However long it takes: a process that computes is never taken for dead, nor the reverse."""
    ledger = opened(place)
    process = started(job, "--run-id", "monday", KILLED_WHEN="slow", SLOW="600")
    try:
        until(lambda: Keeping(store_at(place), "default").every())
        for arguments in (("--run-id", "monday"), ("--run-id", "monday", "--again"), ("--once",)):
            refused = run("run", "job.py", *arguments, "--json")
            assert refused.code == 7
            assert json.loads(refused.out)["error"] == "UnderWay"
        listed = run("ledger", "releases", "--ledger", place, "--json")
        assert [row["status"] for row in listed.json] == ["under way"]
    finally:
        process.kill()
        process.communicate(timeout=60)

    def is_seen() -> bool:  # a server needs a moment to see that a connection has ended
        return run("run", "job.py", "--run-id", "monday").code == 6

    until(is_seen)
    assert ledger.spent == dp.PureDP("0.25")


def test_a_failure_is_said_and_not_paid_again(
    job: Path, place: Place, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpframe import runner

    with monkeypatch.context() as patched:
        patched.setattr(runner, "_count_parts", lambda *_: 1 / 0)
        assert run("run", "job.py", "--run-id", "monday").code == 6
    refused = run("run", "job.py", "--run-id", "monday")
    assert refused.code == 6
    assert "cannot be handed out: it failed" in refused.err
    assert spent(place) == dp.PureDP("0.25")
    assert run("run", "job.py", "--run-id", "monday", "--again").code == 0
    assert spent(place) == dp.PureDP("0.5")


def test_what_is_over_budget_may_be_run_later(
    job: Path, place: Place, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPEND", "2")
    assert run("run", "job.py", "--run-id", "monday").code == 3
    monkeypatch.setenv("SPEND", "1")
    assert run("run", "job.py", "--run-id", "monday").code == 0
    assert run("run", "job.py", "--run-id", "monday").code == 0  # nothing remains
    assert spent(place) == dp.PureDP(1)


def test_an_approval_is_used_once(folder: Path, run: Run) -> None:
    python_job(folder, approval=True)
    run("explain", "job.py", "--output", "plan.json")
    approve = (
        "approve",
        "plan.json",
        "--create",
        "--by",
        "Ann",
        "--ledger",
        "budget.db",
        "--runs",
        "1",
    )
    assert run(*approve).code == 0
    for _ in range(2):
        assert run("run", "job.py", "--run-id", "monday").code == 0
    assert run("run", "job.py", "--run-id", "tuesday").code == 4
    assert run("ledger", "verify", "--ledger", "budget.db").code == 0


def test_a_budget_in_memory_knows_no_runs(folder: Path, run: Run) -> None:
    path = python_job(folder)
    path.write_text(path.read_text().replace('ledger="budget.db", ', ""))
    for once in (("--run-id", "monday"), ("--once",)):
        refused = run("run", "job.py", *once)
        assert refused.code == 5
        assert "in memory" in refused.err


@pytest.mark.parametrize("name", ["", " ", "x" * 201, "two\nlines"])
def test_a_run_has_a_name(folder: Path, run: Run, name: str) -> None:
    python_job(folder)
    refused = run("run", "job.py", "--run-id", name)
    assert refused.code == 5
    assert "the name of a run" in refused.err


def test_again_is_of_something(folder: Path, run: Run) -> None:
    python_job(folder)
    refused = run("run", "job.py", "--again")
    assert refused.code == 5
    assert "add --run-id ID" in refused.err
    assert run("run", "job.py", "--once", "--run-id", "monday").code == 2


def test_the_environment_only_names_a_run(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of a scheduler has many jobs, and asks many queries."""
    python_job(folder)
    monkeypatch.setenv("DPFRAME_RUN_ID", "monday")
    for _ in range(2):
        assert run("run", "job.py").code == 0
    entries = opened(folder / "budget.db").entries
    assert [entry.caller.run for entry in entries] == ["monday"] * 2
    assert not (folder / "budget.db.releases").exists()


def test_results_of_several_queries_are_restored(folder: Path, run: Run) -> None:
    path = python_job(folder)
    path.write_text(f"{path.read_text()}\nquery = [query, people.dp_count()]\n")
    run("run", "job.py", "--run-id", "monday", "--output", "out.parquet")
    frames = [pl.read_parquet(folder / f"out-{n}.parquet") for n in (1, 2)]
    print_ = dp.Session(epsilon=1, ledger="budget.db").releases()["fingerprint"][0]
    restore = ("ledger", "restore", print_, "--ledger", "budget.db", "--output")
    done = run(*restore, "new.parquet", "--json")
    assert done.json["output"] == ["new-1.parquet", "new-2.parquet"]
    for number, frame in enumerate(frames, start=1):
        assert pl.read_parquet(folder / f"new-{number}.parquet").equals(frame)
        found = run("inspect", f"new-{number}.parquet", "--json").json
        assert (found["unchanged"], found["query"]) == (True, number)
    again = run("run", "job.py", "--run-id", "monday", "--output", "out.parquet")
    assert again.code == 0
    (folder / "new-1.parquet").write_text("mine")
    assert run(*restore, "new.parquet").code == 5
    assert (folder / "new-1.parquet").read_text() == "mine"


def test_restore_writes_what_was_kept_or_nothing(folder: Path, run: Run) -> None:
    python_job(folder)
    run("run", "job.py", "--run-id", "monday", "--output", "out.parquet")
    run("run", "job.py", "--run-id", "tuesday", "--output", "out2.parquet")
    listed = run("ledger", "releases", "--ledger", "budget.db", "--json").json
    assert [(row["run"], row["status"]) for row in listed] == [
        ("monday", "kept"),
        ("tuesday", "kept"),
    ]
    print_ = listed[0]["fingerprint"]
    restore = ("ledger", "restore", print_[:10], "--ledger", "budget.db", "--output", "new.csv")
    assert run(*restore).code == 0
    newest = pl.read_parquet(folder / "out2.parquet")
    assert pl.read_csv(folder / "new.csv").equals(newest)
    number = ("--number", str(listed[0]["number"]))
    assert run(*restore, *number).code == 0
    assert pl.read_csv(folder / "new.csv").equals(pl.read_parquet(folder / "out.parquet"))
    for kept in (folder / "budget.db.releases").iterdir():
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    (folder / "new.csv").unlink()
    refused = run(*restore)
    assert refused.code == 6
    assert "it was changed since it was kept" in refused.err
    assert not (folder / "new.csv").exists()
    for wrong, code in (("ab", 5), ("ab" * 32, 6), ("", 5)):
        changed = ("ledger", "restore", wrong, "--ledger", "budget.db", "--output", "new.csv")
        assert run(*changed).code == code
    statuses = run("ledger", "releases", "--ledger", "budget.db").out
    assert statuses.count("  CHANGED  ") == 2
    assert opened(folder / "budget.db").spent == dp.PureDP("0.5")
