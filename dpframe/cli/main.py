"""The command ``dpframe``.

Exit codes, for jobs that run unattended: 0 done, 1 plans that `dpframe diff` finds to differ, 2
not a command, 3 over budget, 4 not approved, 5 bad input, 6 engine or ledger failure.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version

from dpframe import demo
from dpframe.cli import ledger, plans, run
from dpframe.cli.input import BadInput, existing
from dpframe.errors import BudgetExceeded, DPFrameError, EngineError, LedgerError, PlanMismatch

EXIT_CODES: tuple[tuple[type[DPFrameError], int], ...] = (
    (BudgetExceeded, 3),
    (BadInput, 5),
    (PlanMismatch, 4),
    (EngineError, 6),
    (LedgerError, 6),
    (DPFrameError, 5),
)
_EPILOG = """\
exit codes:
  0  done                     4  the plan is not approved
  1  diff: plans differ       5  bad input: a job, plan or file that makes no sense
  2  not a command            6  the engine or the ledger failed
  3  over budget; nothing was charged

start with `dpframe demo`; every command has --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        result: int = parsed.run(parsed)
    except DPFrameError as error:
        name = error.kind if isinstance(error, BadInput) else type(error).__name__
        if getattr(parsed, "json", False):
            print(json.dumps({"error": name, "message": str(error)}))
        print(f"{name}: {error}", file=sys.stderr)
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dpframe",
        description="Publish aggregates of personal data with differential privacy.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dpframe {version('dpframe')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    shown = commands.add_parser("demo", help="six queries on census data, with their plans")
    shown.add_argument(
        "--data",
        type=existing,
        default=None,
        metavar="FILE",
        help="the Adult data as Parquet (default: the copy that comes with dpframe)",
    )
    shown.set_defaults(run=lambda parsed: demo.run(parsed.data))
    plans.add_commands(commands)
    run.add_commands(commands)
    ledger.add_commands(commands)
    return parser
