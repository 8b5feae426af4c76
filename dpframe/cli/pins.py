"""The ledger, budget and parameters that a command allows a job to use."""

from __future__ import annotations

import argparse
from typing import Any

from dpframe.cli.output import Announced
from dpframe.errors import UnsupportedOperation
from dpframe.ledger.budgets import New


def add_pins(parser: Any, *, charges: bool = False) -> None:
    """Add ``--ledger``, ``--name`` and ``--must-exist`` to a command that reads a job; to one that
    charges ``--create`` too.
    """
    parser.add_argument(
        "--ledger",
        metavar="WHERE",
        help="the only ledger that the job may use: path, or sqlite:/// or postgresql:// URL",
    )
    parser.add_argument("--name", metavar="NAME", help="the only budget that the job may use")
    new = parser.add_mutually_exclusive_group() if charges else parser
    new.add_argument(
        "--must-exist",
        action="store_true",
        help="refuse a budget that does not exist, even if the job has create = true"
        if charges
        else "refuse a budget that does not exist (default: plan for a new budget)",
    )
    if charges:
        new.add_argument(
            "--create",
            action="store_true",
            help="create the job's budget and its ledger if they do not exist",
        )
    add_parameters(parser)


def add_parameters(parser: Any) -> None:
    """Add ``--param`` to a command that reads a job."""
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a parameter of the job; repeat it for each parameter (default: the "
        "environment variable DPFRAME_PARAM_NAME)",
    )


def given_parameters(parsed: argparse.Namespace) -> dict[str, str]:
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


def pinned(parsed: argparse.Namespace) -> Announced:
    """Within this a job may use only those, and new budgets are announced. A command that does
    not charge creates nothing, and says for which budget that does not exist it plans.
    """
    new: New = "plan"
    if parsed.must_exist:
        new = "refuse"
    elif hasattr(parsed, "create"):
        new = "open" if parsed.create else "stated"
    return Announced(parsed, parsed.ledger, parsed.name, new=new)
