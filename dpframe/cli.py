"""The command line: ``dpframe demo`` and ``dpframe ledger``.

Exit codes: 0 done, 2 not a command, 3 over budget, 4 not approved, 5 bad input, 6 engine or ledger
failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpframe import demo
from dpframe.charge import rho_within
from dpframe.errors import BudgetExceeded, DPFrameError, EngineError, LedgerError, PlanMismatch
from dpframe.ledger import report
from dpframe.ledger.place import store_at

EXIT_CODES: tuple[tuple[type[DPFrameError], int], ...] = (
    (BudgetExceeded, 3),
    (PlanMismatch, 4),
    (EngineError, 6),
    (LedgerError, 6),
    (DPFrameError, 5),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    parser = argparse.ArgumentParser(
        prog="dpframe",
        description="Publish aggregates of personal data with differential privacy.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_ledger(commands)
    parsed = parser.parse_args(arguments)
    try:
        result: int = parsed.run(parsed)
    except DPFrameError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    return result


def _add_demo(commands: Any) -> None:
    shown = commands.add_parser("demo", help="six queries on census data, with their plans")
    shown.add_argument(
        "--data",
        type=_file,
        default=None,
        metavar="FILE",
        help="the Adult data as Parquet (default: the copy that comes with dpframe)",
    )
    shown.set_defaults(run=lambda parsed: demo.run(parsed.data))


def _add_ledger(commands: Any) -> None:
    ledger = commands.add_parser("ledger", help="read, verify and raise budgets that are kept")
    acts = ledger.add_subparsers(title="commands", required=True, metavar="COMMAND")
    helps = {
        "show": "budgets, grants and charges",
        "verify": "whether anything was changed since it was written",
        "export": "every record, as JSON lines",
        "grant": "raise a budget, on record",
    }
    made = {name: acts.add_parser(name, help=words) for name, words in helps.items()}
    for name, parser in made.items():
        parser.add_argument(
            "--ledger",
            required=True,
            metavar="WHERE",
            help="path, or sqlite:/// or postgresql:// URL",
        )
        parser.add_argument(
            "--name", required=name == "grant", metavar="NAME", help="of the budget"
        )
        parser.set_defaults(run=_run_ledger, act=name)
    for amount in ("epsilon", "delta", "rho"):
        made["grant"].add_argument(f"--{amount}", metavar="MORE", help="what is added")
    made["grant"].add_argument("--by", required=True, metavar="WHO")
    made["grant"].add_argument("--reason", required=True, metavar="WHY")


def _run_ledger(parsed: argparse.Namespace) -> int:
    store = store_at(parsed.ledger, create=False)
    if parsed.act == "grant":
        given = {k: getattr(parsed, k) for k in ("epsilon", "delta", "rho")}
        amounts = {k: v for k, v in given.items() if v is not None}
        lines = report.grant(store, parsed.name, amounts, parsed.by, parsed.reason, rho_within)
    else:
        read = {"show": report.show, "verify": report.verify, "export": report.export}
        lines = read[parsed.act](store, parsed.name)
    for line in lines:
        print(line)
    return 0


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"no such file: {text}")
    return path
