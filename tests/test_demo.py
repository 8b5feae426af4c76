"""The demo prints six queries with their plans, and refuses the one that is over budget."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe import cli, demo


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["demo"]) == 0
    return capsys.readouterr().out


def test_shows_every_query_with_plan_result_and_what_remains(printed: str) -> None:
    pieces = printed.split("\n--- ")[1:]
    assert len(pieces) == len(demo.QUESTIONS) == 6
    remaining = ["0.9", "0.6", "0.5", "0.4", "0.3", "0.3"]
    for piece, question, left in zip(pieces, demo.QUESTIONS, remaining, strict=True):
        assert demo.shown(question) in piece
        over = question is demo.QUESTIONS[-1]
        assert f"DECIDE     {'cannot run: it costs more' if over else 'no risks found'}" in piece
        assert "Protects   one row of one person, in adult" in piece
        (published,) = re.findall("Publishes .*\n.*95% of runs.*\n(.*)", piece)
        assert re.search(r"  ± \d|  score within \d+\.\d+ of the best", published)
        assert piece.rstrip().endswith(f"remaining: epsilon {left}")


def test_refuses_the_query_over_budget(printed: str) -> None:
    *answered, refused = printed.split("\n--- ")[1:]
    assert "BudgetExceeded: " in refused
    assert "shape:" not in refused
    assert all("shape:" in piece and "BudgetExceeded" not in piece for piece in answered)


@pytest.mark.parametrize("question", demo.QUESTIONS, ids=lambda q: q.query.__name__)
def test_the_code_shown_runs_as_it_stands(question: demo.Question, adult: Path) -> None:
    people = dp.Session(epsilon=1).protect(pl.scan_parquet(adult), unit=dp.Rows())
    scope = {**vars(demo), "dp": dp, "people": people}
    exec(demo.shown(question), scope)
    plan = scope["query"].plan(epsilon=question.epsilon)
    assert plan.fingerprint == question.query(people).plan(epsilon=question.epsilon).fingerprint


def test_takes_data_from_elsewhere(capsys: pytest.CaptureFixture[str], adult: Path) -> None:
    assert cli.main(["demo", "--data", str(adult)]) == 0
    assert "remaining: epsilon 0.3" in capsys.readouterr().out


def test_bad_arguments_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["dance"])
    assert stopped.value.code == 2
    assert "dance" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "command"), [([], "approve"), (["ledger"], "verify")])
def test_no_command_prints_the_help(
    arguments: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 0
    shown = capsys.readouterr()
    assert "COMMAND" in shown.out
    assert command in shown.out
    assert not shown.err


def test_data_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--data", "/nowhere"]) == 5
    assert "this file does not exist" in capsys.readouterr().err
