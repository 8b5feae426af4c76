"""Each command with each exit code; what only a process shows, as a process of its own.

The slow suite runs all of them so: a process takes a second to start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe.ledger.approvals import KEY_VARIABLE, new_pair
from tests.cli.commands import (
    COMMAND,
    Done,
    Run,
    dpframe,
    environment,
    in_process,
    plan_file,
    python_job,
    toml_job,
)
from tests.ledger.ledgers import UNIT, opened, sql


@pytest.fixture(params=["here", pytest.param("in its own process", marks=pytest.mark.slow)])
def command(
    request: pytest.FixtureRequest,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs a command in the folder, with more variables in its environment."""
    if request.param != "here":
        return partial(dpframe, at=folder)

    def done(*arguments: object, env: Mapping[str, str] | None = None) -> Done:
        with monkeypatch.context() as patched:
            patched.chdir(folder)
            for name in [name for name in os.environ if name.startswith("DPFRAME_")]:
                patched.delenv(name)
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            return in_process(arguments, capsys)

    return done


def test_a_plan_is_written_reviewed_signed_run_and_inspected(command: Run, folder: Path) -> None:
    """0 and 4: the whole way, with the reviewer's private key and the job's public one."""
    private, public = new_pair()
    job = {KEY_VARIABLE: public}
    python_job(folder, approval=True)

    refused = command("run", "job.py", env=job)
    assert (refused.code, refused.out) == (4, "")
    assert refused.said.startswith("PlanMismatch: the plan ")

    written = command("explain", "job.py", "--output", "plan.json")
    assert written.code == 0
    plan = dp.Plan.from_json(folder / "plan.json")
    assert written.out.endswith(f"\nfingerprint {plan.fingerprint}\n")
    assert plan.explain() in written.out

    arguments = ("approve", "plan.json", "--create", "--by", "Ann", "--ledger", "budget.db")
    cannot = command(*arguments, env=job)
    assert cannot.code == 6
    assert "but not sign" in cannot.err
    unsigned = command(*arguments)
    assert unsigned.code == 0
    assert command("run", "job.py", env=job).code == 4
    signed = command(*arguments, env={KEY_VARIABLE: private})
    assert signed.code == 0
    assert "one row is protected, and 'person'" in signed.out
    assert signed.out.endswith(
        f"approved {plan.fingerprint}, signed, for budget 'default', by Ann\n"
        "  of epsilon 1 in pure DP; epsilon 1 remains, "
        f"in {(folder / 'budget.db').resolve()}\n"
        "  costs epsilon 0.25 each time it runs; the first plan that is approved for it\n"
    )

    done = command("run", "job.py", "--output", "result.parquet", "--json", env=job)
    assert done.code == 0
    assert done.json == {
        "fingerprint": plan.fingerprint,
        "cost": "epsilon 0.25",
        "cost_decimal": {"epsilon": 0.25, "delta": 0.0},
        "output": "result.parquet",
        "remaining": {"measure": "pure DP", "epsilon": "3/4", "delta": "0"},
        "remaining_decimal": {"epsilon": 0.75, "delta": 0.0},
    }
    assert pl.read_parquet(folder / "result.parquet")["sex"].to_list() == ["f", "m"]
    shown = command("inspect", "result.parquet", "--json")
    assert shown.code == 0
    assert (shown.json["unchanged"], shown.json["fingerprint"]) == (True, plan.fingerprint)
    assert dp.Plan.from_json(json.dumps(shown.json["plan"])).fingerprint == plan.fingerprint

    kept = command("ledger", "show", "--ledger", "budget.db", "--json", env=job)
    budget = kept.json["default"]
    assert [a["signature"] for a in budget["approvals"]] == ["unsigned", "signed"]
    assert [c["status"] for c in budget["charges"]] == ["released"]
    assert budget["spent"] == {"measure": "pure DP", "epsilon": "1/4", "delta": "0"}


def test_over_budget_is_3_and_charges_nothing(folder: Path) -> None:
    toml_job(folder, epsilon="0.6")
    opened(folder / "budget.db").charge(dp.PureDP("0.6"), "f", UNIT)
    done = dpframe("run", "job.toml", "--output", "result.csv", "--json", at=folder)
    assert done.code == 3
    assert done.json["error"] == "BudgetExceeded"
    assert "epsilon 0.2 too much" in done.json["message"]
    assert not (folder / "result.csv").exists()
    assert opened(folder / "budget.db").spent == dp.PureDP("0.6")
    assert sorted(p for p in os.listdir(folder) if not p.startswith("budget.db")) == [
        "job.toml",
        "people.parquet",
    ]


def test_diff_is_0_or_1(command: Run, folder: Path) -> None:
    plan_file(folder, "a.json")
    plan_file(folder, "b.json", "0.5")
    same = command("diff", "a.json", "a.json")
    assert (same.code, same.out) == (0, "no difference\n")
    other = command("diff", "a.json", "b.json")
    assert other.code == 1
    assert "epsilon of the plan 0.25 -> 0.5" in other.out
    as_json = command("diff", "a.json", "b.json", "--json")
    assert as_json.code == 1
    assert as_json.json == {"same": False, "differences": other.out.splitlines()}


def test_an_edited_plan_is_5(command: Run, folder: Path) -> None:
    plan_file(folder)
    text = (folder / "plan.json").read_text().replace('"people"', '"nobody"')
    (folder / "plan.json").write_text(text)
    done = command("explain", "plan.json")
    assert (done.code, done.out) == (5, "")
    assert done.said.startswith("PlanMismatch: the plan was edited or damaged")


def test_what_is_no_command_is_2(command: Run, folder: Path) -> None:
    done = command("burn", "people.parquet")
    assert done.code == 2
    assert "usage: dpframe" in done.err


def test_a_ledger_that_does_not_verify_is_6(command: Run, folder: Path) -> None:
    python_job(folder)
    opened(folder / "budget.db")
    sql(folder / "budget.db", "UPDATE records SET main = '1000'")
    done = command("run", "job.py")
    assert (done.code, done.out) == (6, "")
    assert done.said.startswith("LedgerError: the ledger does not verify: record 1 was changed")


def test_an_engine_that_fails_is_6_without_its_text(command: Run, folder: Path) -> None:
    """The data changes after its schema was read: a row is no number any more."""
    (folder / "people.csv").write_text("age\n" + "31\n" * 200 + "secretname\n")
    job = "import polars as pl\nimport dpframe as dp\n"
    job += 'session = dp.Session(epsilon=1, ledger="budget.db", create=True)\n'
    job += 'scanned = pl.scan_csv("people.csv")\n'
    job += 'query = session.protect(scanned, unit=dp.Rows()).dp_sum("age", (0, 9))\n'
    (folder / "job.py").write_text(job + 'spend = {"epsilon": 0.5}\n')
    done = command("run", "job.py")
    assert (done.code, done.out) == (6, "")
    assert done.said.startswith("EngineError: ")
    assert "secretname" not in done.err
    assert [e.status for e in opened(folder / "budget.db").entries] == ["failed"]


def test_the_result_is_on_stdout_and_the_rest_on_stderr(folder: Path) -> None:
    toml_job(folder)
    done = dpframe("run", "job.toml", at=folder)
    assert done.code == 0
    assert "shape: (2, 2)" in done.out
    assert "released" not in done.out
    said = done.said.splitlines()
    # by chance all numbers may lie within their noise, which is said first
    warned = [line for line in said if "are within the 95% bound of their noise" in line]
    assert len(warned) <= 1
    assert said[: len(warned)] == warned
    assert said[len(warned)].startswith("released: cost epsilon 0.25, plan ")


def test_python_and_toml_make_the_same_plan(command: Run, folder: Path) -> None:
    plan = plan_file(folder)
    for job in (python_job(folder), toml_job(folder)):
        done = command("explain", job, "--json")
        assert dp.Plan.from_json(done.out).fingerprint == plan.fingerprint


SLOW = """
import pathlib, time, polars as pl, dpframe as dp
from dpframe.lower import Execution

session = dp.Session(epsilon=1, ledger="budget.db", create=True)
query = session.protect("people.parquet", unit=dp.Rows()).dp_count()
spend = {"epsilon": 0.5}
running = Execution.run_all

def slow(*arguments):
    pathlib.Path("charged").touch()
    time.sleep(150)
    return running(*arguments)

Execution.run_all = slow
"""


@pytest.mark.parametrize(
    ("sent", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "asked to end")],
)
def test_an_interrupt_leaves_the_ledger_consistent(
    folder: Path, sent: signal.Signals, code: int, said: str
) -> None:
    (folder / "job.py").write_text(SLOW)
    process = subprocess.Popen(
        [*COMMAND, "run", "job.py", "--output", "result.parquet"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not (folder / "charged").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [p.name for p in folder.glob(".*")]  # what the result is written to first
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert out == ""
    assert err.endswith(f"\n{said}; what was charged stays charged\n")
    ledger = opened(folder / "budget.db")
    ledger.verify()
    assert [e.status for e in ledger.entries] == ["failed"]
    assert ledger.spent == dp.PureDP("0.5")
    assert [p.name for p in folder.glob("*.parquet")] == ["people.parquet"]
    assert not list(folder.glob(".*"))


def test_what_a_killed_run_left_is_removed_by_the_next(command: Run, folder: Path) -> None:
    """Nobody holds it any more; another file that begins so is not ours."""
    toml_job(folder)
    left = folder / f".result.parquet.{'0a' * 16}.part"
    other = folder / ".result.parquet.mine.part"
    for path in (left, other):
        path.write_bytes(b"half")
    assert command("run", "job.toml", "--output", "result.parquet").code == 0
    assert [p.name for p in folder.glob(".*")] == [other.name]


SCANS = (
    ('pl.scan_parquet("nowhere.parquet")', "nowhere.parquet"),
    ('pl.scan_csv("no*.csv")', "no*.csv"),
    ('pl.scan_ipc(["nowhere.ipc"]).filter(pl.col("age") > 7)', "nowhere.ipc"),
    ('pl.read_parquet("nowhere.parquet")', "nowhere.parquet"),
    ('pl.DataFrame({"age": [len(open("nowhere.txt").read())]})', "nowhere.txt"),
    ('"nowhere.parquet"', "nowhere.parquet"),
)


@pytest.mark.parametrize(("frame", "missing"), SCANS)
def test_a_missing_file_is_5_and_said(command: Run, folder: Path, frame: str, missing: str) -> None:
    (folder / "job.py").write_text(
        "import polars as pl\nimport dpframe as dp\n"
        'session = dp.Session(epsilon=1, ledger="budget.db", create=True)\n'
        f"query = session.protect({frame}, unit=dp.Rows()).dp_count()\n"
        'spend = {"epsilon": 0.5}\n'
    )
    if "*" in missing and pl.__version__.startswith("1.32"):
        pytest.skip("this version of Polars does not say which pattern")
    done = command("run", "job.py")
    assert (done.code, done.out) == (5, "")
    assert f"there is no file '{missing}'" in done.err
    assert opened(folder / "budget.db").spent == dp.PureDP(0)


def test_what_a_job_does_not_name_is_not_said(command: Run, folder: Path) -> None:
    """The name of a file may be made of what a job has read."""
    (folder / "job.py").write_text('open("".join(["sec", "ret"]))\n')
    done = command("run", "job.py")
    assert done.code == 5
    assert "FileNotFoundError in line 1" in done.err
    assert "secret" not in done.err


def test_a_reader_that_stops_is_no_failure_of_ours(folder: Path) -> None:
    plan_file(folder)
    process = subprocess.Popen(
        [*COMMAND, "explain", "plan.json"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr is not None
    assert process.stderr.read() == ""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_result_that_cannot_be_written_is_printed(
    command: Run, folder: Path, as_json: bool
) -> None:
    """It was charged, so it must not be lost: lists cannot be in CSV."""
    (folder / "job.py").write_text(
        "import dpframe as dp\n"
        'session = dp.Session(epsilon=1, ledger="budget.db", create=True)\n'
        'people = session.protect("people.parquet", unit=dp.Rows())\n'
        'query = people.agg(dp.histogram("hours", [0, 40, 80]).alias("h"), dp.count().alias("n"))\n'
        'spend = {"epsilon": 0.5}\n'
        'output = "result.csv"\n'
    )
    done = command("run", "job.py", *["--json"] * as_json)
    assert done.code == 5
    found = done.json["result"] if as_json else done.json
    assert found[0].keys() == {"h", "n"}
    assert len(found[0]["h"]) == 2
    assert "the result was charged, and is on the standard output" in done.err
    assert [e.status for e in opened(folder / "budget.db").entries] == ["released"]
    assert sorted(p.name for p in folder.iterdir() if "result" in p.name or p.name[0] == ".") == []
