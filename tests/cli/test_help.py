"""`--help` of every command says what it takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from dpframe.cli import EXIT_CODES
from dpframe.cli.main import _parser
from tests.cli.commands import Run

HELP: dict[str, tuple[str, ...]] = {
    "": ("exit codes:", "demo", "explain", "diff", "approve", "run", "inspect", "ledger"),
    "demo": ("--data FILE",),
    "explain": (
        "--format {text,markdown,html,mermaid}",
        "--size N",
        "--output PLAN.json",
        "--json",
        "no data",
    ),
    "diff": ("A.json B.json", "Exit code 0 if the plans are the same", "--json"),
    "approve": ("--by WHO", "--ledger WHERE", "--name BUDGET", "--new-key", "DPFRAME_APPROVAL_KEY"),
    "run": (
        "JOB",
        "--output FILE",
        "--require-approval",
        "--ledger WHERE",
        "--name NAME",
        "--must-exist",
        "--run-id ID",
        "--json",
        "`query`",
        "`spend`",
        "[query.outputs.n]",
    ),
    "inspect": ("FILE", "--json", "Exit code 5"),
    "ledger": ("create", "grant", "close", "show", "check", "verify", "export"),
    "ledger create": (
        "--epsilon AMOUNT",
        "--delta AMOUNT",
        "--rho AMOUNT",
        "--composition {sum,zcdp,gdp}",
        "--unit {rows,identifier}",
        "--adjacency {add-remove,change-one}",
        "--by WHO",
        "--json",
    ),
    "ledger close": ("--name NAME", "--by WHO", "--reason WHY", "--json"),
    "ledger check": ("--at-least AMOUNT", "--delta AMOUNT", "--json", "Exit code 0"),
    "ledger show": ("--ledger WHERE", "--name NAME", "--json"),
    "ledger redraw": (
        *("--ledger WHERE", "--name NAME", "--stream STREAM", "--charge-again"),
        *("--by WHO", "--reason WHY", "--json"),
    ),
    "ledger verify": ("--ledger WHERE", "--name NAME"),
    "ledger export": ("--ledger WHERE", "--name NAME"),
    "ledger grant": ("--epsilon MORE", "--delta MORE", "--rho MORE", "--by WHO", "--reason WHY"),
}


@pytest.mark.parametrize("command", HELP)
def test_help(run: Run, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    done = run(*command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: dpframe {command}".strip())
    for words in HELP[command]:
        assert words in done.out


@pytest.mark.parametrize("command", ["", "ledger"])
def test_a_group_of_commands_alone_prints_its_help(run: Run, command: str) -> None:
    assert run(*command.split()) == run(*command.split(), "--help")


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _parsers(inner)


def test_every_option_has_help() -> None:
    for parser in _parsers(_parser()):
        for action in parser._actions:
            assert action.help or isinstance(action, argparse._SubParsersAction), (
                f"{parser.prog}: {action.option_strings or action.dest}"
            )


def test_version(run: Run) -> None:
    done = run("--version")
    assert done.code == 0
    assert done.out.startswith("dpframe ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["burn"],
        ["run"],
        ["explain"],
        ["explain", "a", "b"],
        ["explain", "a", "--format", "x"],
        ["explain", "a", "--size", "x"],
        ["explain", "a", "--size", "9", "--json"],
        ["diff", "a"],
        ["approve"],
        ["inspect"],
        ["run", "a", "--output"],
        ["run", "a", "--x"],
    ],
)
def test_what_is_no_command_is_2(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "usage: dpframe" in done.err


def test_every_exit_code_is_in_help(run: Run) -> None:
    shown = run("--help").out
    for code in {0, 1, 2} | {code for _, code in EXIT_CODES}:
        assert f"  {code}  " in shown


@pytest.mark.parametrize(
    "arguments", [("approve", "x.json", "--until"), ("ledger", "prune", "x.db", "--before")]
)
def test_what_is_no_day_is_refused_with_one(arguments: tuple[str, ...], run: Run) -> None:
    refused = run(*arguments, "tomorrow")
    assert refused.code == 2
    assert "'tomorrow' is no day: write 2027-01-31" in refused.err
