"""What machines read of runs: amounts as decimals in JSON, lines of a log, metrics, exit codes."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.cli import output
from tests.cli.commands import TOML_JOB, Run, python_job
from tests.ledger.openmetrics import read

JOB = TOML_JOB.format(approval="false", epsilon="0.25")
LEFT = {"epsilon": 0.75, "delta": 0.0}
EXACT = {"measure": "pure DP", "epsilon": "3/4", "delta": "0"}


@pytest.fixture
def job(folder: Path) -> Path:
    (folder / "job.toml").write_text(JOB)
    return folder


def events(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines()]


def test_what_is_left_is_in_every_json(run: Run, job: Path) -> None:
    ran = run("run", "job.toml", "--json").json
    assert (ran["remaining"], ran["remaining_decimal"]) == (EXACT, LEFT)
    assert ran["cost_decimal"] == {"epsilon": 0.25, "delta": 0.0}
    where = ("--ledger", "budget.db")
    shown = run("ledger", "show", *where, "--json").json["default"]
    assert (shown["remaining"], shown["remaining_decimal"]) == (EXACT, LEFT)
    assert shown["budget_decimal"]["epsilon"] == 1
    assert shown["spent_decimal"]["epsilon"] == 0.25
    assert shown["charges"][0]["cost_decimal"]["epsilon"] == 0.25
    checked = run("ledger", "check", *where, "--at-least", "0.2", "--json").json
    assert checked["remaining_decimal"] == LEFT
    run("explain", "job.toml", "--output", "plan.json")
    approved = run("approve", "plan.json", "--by", "Ann", *where, "--json").json
    assert approved["remaining_decimal"] == LEFT
    audited = run("audit", "job.toml", "--runs", "100", "--json").json
    assert audited["remaining_decimal"] == LEFT
    granted = run(
        *("ledger", "grant", *where, "--name", "default", "--epsilon", "1"),
        *("--by", "Ann", "--reason", "more", "--json"),
    ).json
    assert granted["remaining_decimal"]["epsilon"] == 1.75


def test_a_plan_as_json_has_decimals_beside_it_that_are_checked(run: Run, job: Path) -> None:
    printed = run("explain", "job.toml", "--json")
    assert printed.json["remaining_decimal"] == {"epsilon": 1.0, "delta": 0.0}
    assert printed.json["cost_decimal"] == {"epsilon": 0.25, "delta": 0.0}
    plan = dp.Plan.from_json(printed.out)
    (job / "printed.json").write_text(printed.out)
    run("explain", "job.toml", "--output", "plan.json")
    assert run("diff", "plan.json", "printed.json").code == 0
    assert "remaining_decimal" not in plan.to_json()
    for name, wrong in [
        ("remaining_decimal", {"epsilon": 9.0, "delta": 0.0}),
        ("remaining_decimal", None),
        ("cost_decimal", {"epsilon": 0.2, "delta": 0.0}),
        ("cost_decimal", {"epsilon": 0.25}),
    ]:
        edited = json.dumps(printed.json | {name: wrong})
        with pytest.raises(dp.PlanMismatch, match="decimals"):
            dp.Plan.from_json(edited)
    with pytest.raises(dp.PlanMismatch, match="missing or unknown"):
        dp.Plan.from_json(json.dumps(printed.json | {"spent_decimal": {}}))


def test_check_by_exit_code(run: Run, job: Path) -> None:
    run("run", "job.toml")
    check = ("ledger", "check", "--ledger", "budget.db")
    assert run(*check, "--at-least", "0.75").code == 0
    assert run(*check, "--at-least", "0.76").code == 3
    assert run(*check, "--at-least", "0.2", "--name", "default").code == 0
    assert run(*check, "--at-least", "0.2", "--name", "other").code == 9


def test_metrics(run: Run, job: Path) -> None:
    run("run", "job.toml")
    done = run("ledger", "metrics", "--ledger", "budget.db", "--name", "default")
    assert done.code == 0
    found = read(done.out)
    labels = (("amount", "epsilon"), ("name", "default"))
    assert found["dpframe_remaining"].samples[labels] == 0.75
    assert run("ledger", "metrics", "--ledger", "none.db").code == 9


# -- lines of a log -------------------------------------------------------------------------------


def test_a_run_writes_a_line_for_each_step(run: Run, job: Path) -> None:
    done = run(
        "run", "job.toml", "--log", "json", "--run-id", "night 1", "--output", "result.parquet"
    )
    assert (done.code, done.out) == (0, "")
    found = events(done.err)
    names = [line["event"] for line in found if line["event"] != "message"]
    # few rows: by chance all numbers lie within their noise, and nothing else is warned of
    warnings = [line for line in found if line["event"] == "warning"]
    assert len({line["text"] for line in warnings}) == len(warnings)
    assert all("are within the 95% bound of their noise" in line["text"] for line in warnings)
    after = ["warning"] * len(warnings)
    assert names == ["start", "plan", "charge", "release", *after, "written", "end"]
    by = {line["event"]: line for line in found}
    for line in found:
        assert line["job"] == str(job / "job.toml")
        assert line["run"] == "night 1"
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
    plan = dp.Plan.from_json(run("explain", "job.toml", "--json").out)
    assert by["plan"]["fingerprint"] == by["charge"]["fingerprint"] == plan.fingerprint
    assert by["plan"]["remaining_decimal"]["epsilon"] == 1
    assert by["charge"]["budget"] == "default"
    assert by["release"]["record"] == by["charge"]["record"]
    assert by["written"]["outputs"] == ["result.parquet"]
    assert by["end"]["code"] == 0
    assert (by["end"]["remaining"], by["end"]["remaining_decimal"]) == (EXACT, LEFT)
    assert not output.is_logged()


def test_without_it_people_read_the_same_as_ever(run: Run, job: Path) -> None:
    done = run("run", "job.toml", "--log", "text")
    assert "released" in done.err
    assert "{" not in done.err


def test_failures_are_lines_too(run: Run, job: Path) -> None:
    for text, arguments, error, code in [
        (JOB, ("--param", "x=1"), "UnsupportedOperation", 5),
        (JOB.replace('"0.25"', '"1.5"'), (), "BudgetExceeded", 3),
        (JOB.replace("age >=", "agee >="), (), "UnknownColumn", 5),
        (JOB, ("--require-approval",), "PlanMismatch", 4),
        (JOB, ("--output", "no/result.csv"), None, 5),
    ]:
        (job / "job.toml").write_text(text)
        done = run("run", "job.toml", "--log", "json", *arguments)
        *_, last = events(done.err)
        assert (done.code, last["event"], last["code"]) == (code, "failure", code)
        assert last["error"] == error or error is None
        assert last["message"]
        assert "charge" not in {line["event"] for line in events(done.err)}


def test_nothing_private_is_ever_in_it(run: Run, folder: Path) -> None:
    secret = "secret-8417"
    names = [f"{secret}-{i}" for i in range(40)]
    data = pl.DataFrame({"name": names, "age": [41] * 40, "sex": ["f"] * 40})
    data.write_parquet(folder / "people.parquet", compression="uncompressed")
    job = JOB.replace('"age >= 40"', '["age >= 40", "LENGTH(name) > 3"]')
    (folder / "job.toml").write_text(job)
    assert secret not in run("run", "job.toml", "--log", "json").err
    with (folder / "people.parquet").open("r+b") as file:  # which the engine cannot read then
        file.seek(4)
        file.write(b"\xff" * 16)
    broken = run("run", "job.toml", "--log", "json")
    assert broken.code != 0
    assert secret not in broken.err
    made = events(broken.err)
    assert [line["event"] for line in made][-3:] == ["charge", "failed", "failure"]


def test_what_a_job_prints_is_a_line_of_the_log(run: Run, folder: Path) -> None:
    path = python_job(folder)
    path.write_text(path.read_text() + "\nprint('hello')\n")
    done = run("run", "job.py", "--log", "json")
    assert done.code == 0
    made = events(done.err)
    assert "hello" in [one.get("text") for one in made if one["event"] == "message"]
    assert made[-1]["event"] == "end"


def test_a_log_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stderr", Full())
    with output.writing(output.Log("job.toml", None)):
        output.log_event("start")
    output.log_event("nobody listens")
    assert capsys.readouterr().out == ""
