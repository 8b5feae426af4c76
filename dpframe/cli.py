"""The command line: ``dpframe demo``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dpframe import demo


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    parser = argparse.ArgumentParser(
        prog="dpframe",
        description="Publish aggregates of personal data with differential privacy.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    shown = commands.add_parser("demo", help="six queries on census data, with their plans")
    shown.add_argument(
        "--data",
        type=_file,
        default=None,
        metavar="FILE",
        help="the Adult data as Parquet (default: the copy that comes with dpframe)",
    )
    shown.set_defaults(run=lambda parsed: demo.run(parsed.data))
    parsed = parser.parse_args(arguments)
    result: int = parsed.run(parsed)
    return result


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path
