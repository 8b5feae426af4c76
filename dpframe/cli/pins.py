"""What whoever runs a job allows it to use."""

from __future__ import annotations

import argparse
from typing import Any

from dpframe.cli.output import Announced
from dpframe.errors import UnsupportedOperation


def add_pins(parser: Any) -> None:
    """Add ``--ledger``, ``--name`` and ``--must-exist`` to a command that reads a job."""
    parser.add_argument(
        "--ledger",
        metavar="WHERE",
        help="the only ledger that the job may use: path, or sqlite:/// or postgresql:// URL",
    )
    parser.add_argument("--name", metavar="NAME", help="the only budget that the job may use")
    parser.add_argument(
        "--must-exist",
        action="store_true",
        help="refuse a budget that is new, also if the job does not ask for that",
    )
    add_parameters(parser)


def add_parameters(parser: Any) -> None:
    """Add ``--param`` to a command that reads a job."""
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the job, once for each; else DPFRAME_PARAM_NAME in the environment",
    )


def given_parameters(parsed: argparse.Namespace) -> dict[str, str]:
    """The values of parameters, as they were written.

    Raises
    ------
    UnsupportedOperation
        When one has no name, or is given twice.
    """
    found: dict[str, str] = {}
    for text in parsed.param:
        name, equals, value = text.partition("=")
        if not equals or not name or name in found:
            what = "is given twice" if name in found else "is written NAME=VALUE"
            raise UnsupportedOperation(
                f"a parameter {what}" if name not in found else f"{name!r} {what}",
                where=f"--param {text}",
                remedy="write for example --param day=2026-11-22",
            )
        found[name] = value
    return found


def pinned(parsed: argparse.Namespace) -> Announced:
    """Within this a job may use only that, and what it creates is said."""
    return Announced(parsed, parsed.ledger, parsed.name, must_exist=parsed.must_exist)
