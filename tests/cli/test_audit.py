"""`dpframe audit`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import Run, plan_file, toml_job
from tests.ledger.ledgers import opened


def test_a_job_is_audited_and_nothing_is_charged(run: Run, folder: Path) -> None:
    done = run("audit", toml_job(folder), "--runs", 500)
    assert done.code == 0
    assert done.out.startswith("claimed  epsilon ")
    assert "nothing against the claim" in done.out
    assert "the two frames\n  One individual" in done.out
    assert opened(folder / "budget.db").spent.is_zero


def test_json_and_a_chart(run: Run, folder: Path) -> None:
    done = run("audit", toml_job(folder), "--runs", 500, "--json", "--plot", "audit.html")
    assert done.code == 0
    assert done.json["fingerprint"] == plan_file(folder).fingerprint
    assert done.json["runs"] == 500
    assert done.json["proved"] <= done.json["claimed"]
    assert done.json["refuted"] is False
    assert "vega" in (folder / "audit.html").read_text()


def test_a_chart_replaces_nothing(run: Run, folder: Path) -> None:
    job = toml_job(folder)
    (folder / "mine.html").write_text("mine")
    done = run("audit", job, "--plot", "mine.html")
    assert done.code == 5
    assert (folder / "mine.html").read_text() == "mine"
    assert run("audit", job, "--plot", "chart.docx").code == 5


def test_a_plan_is_no_job(run: Run, folder: Path) -> None:
    plan_file(folder)
    assert run("audit", "plan.json").code == 5


def test_too_few_runs_are_bad_input(run: Run, folder: Path) -> None:
    done = run("audit", toml_job(folder), "--runs", 3)
    assert done.code == 5
    assert "an audit has between 100" in done.err


def test_rounds_are_refused_in_words(run: Run, folder: Path) -> None:
    (folder / "rounds.py").write_text(
        "import polars as pl, dpframe as dp\n"
        "session = dp.Session(epsilon=1, delta='1e-6')\n"
        "frame = session.protect(pl.LazyFrame(schema={'who': pl.Int64, 'g': pl.String}), 'who')\n"
        "query = frame.group_by('g').dp_groups()\n"
        "spend = {'epsilon': 1, 'delta': '1e-6'}\n"
    )
    done = run("audit", "rounds.py", "--runs", 100)
    assert done.code == 5
    assert "dp_groups(rounds=1)" in done.err
