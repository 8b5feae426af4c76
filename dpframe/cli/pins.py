"""What whoever runs a job allows it to use."""

from __future__ import annotations

import argparse
from typing import Any

from dpframe.cli.output import Announced


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


def pinned(parsed: argparse.Namespace) -> Announced:
    """Within this a job may use only that, and what it creates is said."""
    return Announced(parsed, parsed.ledger, parsed.name, must_exist=parsed.must_exist)
