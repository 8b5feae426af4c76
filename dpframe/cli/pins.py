"""Arguments of commands: how they are added, and what they allow a job to use."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from dpframe.cli.output import Announced
from dpframe.errors import UnsupportedOperation
from dpframe.ledger.budgets import New

Option: TypeAlias = "tuple[str, dict[str, Any]]"
"""The name of an argument, and what to give argparse for it."""
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def day(text: str) -> date:
    """A day, as an argument of a command."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day: write 2027-01-31") from None


def option(name: str, metavar: str | None, words: str | None, **more: object) -> Option:
    """An argument with a value."""
    return name, {"metavar": metavar, "help": words, **more}


def switch(name: str, words: str) -> Option:
    """An argument that is given or not."""
    return name, {"action": "store_true", "help": words}


def add_command(
    commands: Commands,
    run: Callable[[argparse.Namespace], int],
    name: str,
    words: str,
    description: str,
    *options: Option,
    **more: Any,
) -> argparse.ArgumentParser:
    """Add a command with its arguments, in the order in which its help lists them."""
    parser = commands.add_parser(name, help=words, description=description, **more)
    parser.set_defaults(run=run, parser=parser)
    add_options(parser, *options)
    return parser


def add_options(parser: argparse._ActionsContainer, *options: Option) -> None:
    """Add arguments to a command, or to a group of those of a command."""
    for name, about in options:
        parser.add_argument(name, **about)


PLACE = "path, or sqlite:/// or postgresql:// URL"
JSON = switch("--json", "print JSON")
JOB = option("job", "JOB", "a job: a .py or .toml file", type=Path)
PARAMETERS = option(
    "--param",
    "NAME=VALUE",
    "value of a parameter of the job; repeat it for each parameter (default: the environment "
    "variable DPFRAME_PARAM_NAME)",
    action="append",
    default=[],
)
LEDGER_AND_NAME = (
    option("--ledger", "WHERE", f"the only ledger that the job may use: {PLACE}"),
    option("--name", "NAME", "the only budget that the job may use"),
)
PINS = (
    *LEDGER_AND_NAME,
    switch("--must-exist", "refuse a budget that does not exist (default: plan for a new budget)"),
    PARAMETERS,
)
"""What commands take that plan a job, and charge nothing."""


def read_parameters(parsed: argparse.Namespace) -> dict[str, str]:
    """The values of parameters, as they were written. Raises `UnsupportedOperation` when one has no
    name, or is given twice.
    """
    result: dict[str, str] = {}
    for text in parsed.param:
        name, equals, value = text.partition("=")
        if not equals or not name or name in result:
            is_twice = name in result
            raise UnsupportedOperation(
                f"--param {name} is given twice" if is_twice else "--param takes NAME=VALUE",
                where=f"--param {text}",
                remedy="give it once" if is_twice else "write for example --param day=2026-11-22",
            )
        result[name] = value
    return result


def pin(parsed: argparse.Namespace) -> Announced:
    """Within this a job may use only those, and new budgets are announced. A command that does
    not charge creates nothing, and says for which budget that does not exist it plans.
    """
    new: New = "plan"
    if parsed.must_exist:
        new = "refuse"
    elif hasattr(parsed, "create"):
        new = "open" if parsed.create else "stated"
    return Announced(parsed, parsed.ledger, parsed.name, new=new)
