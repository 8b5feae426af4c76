"""The command ``dpframe``.

Exit codes, for unattended jobs: 0 done; 1 `dpframe diff` finds differences, `dpframe audit`
refutes a claim, or `dpframe verify` has a document of version 1. 2 is not a command, 3 over budget,
4 not approved, 5 invalid input, 6 a failure of the engine or the ledger, 7 the same run is under
way, 9 the budget or ledger does not exist. As for other programs 130 is interrupted, 141 a closed
output, 143 a request to end (SIGTERM).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn

from dpframe import demo
from dpframe.cli import audit, ledger, plans, run
from dpframe.cli.output import BadInput, Log, NotWritten, message, print_help, require_file
from dpframe.errors import (
    BudgetExceeded,
    DPFrameError,
    EngineError,
    LedgerError,
    NoBudget,
    PlanMismatch,
    TooEarly,
)
from dpframe.ledger.kept import UnderWay

# Ends a command on request as an interrupt does, without leaving half a file.


class Terminated(KeyboardInterrupt):
    """A request to end the process, as schedulers and containers send it."""


@contextmanager
def ending() -> Iterator[None]:
    """Within this, SIGTERM ends the work in order; if another handler exists, or in another
    thread, nothing changes.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


EXIT_CODES: tuple[tuple[type[DPFrameError], int], ...] = (
    (BudgetExceeded, 3),
    (BadInput, 5),
    (PlanMismatch, 4),
    (EngineError, 6),
    (TooEarly, 6),
    (UnderWay, 7),
    (NoBudget, 9),
    (LedgerError, 6),
    (DPFrameError, 5),
)
_EPILOG = """\
exit codes:
  0  done                     4  the plan is not approved
  1  diff: plans differ;      5  invalid input (job, plan or file), or a plan that
     audit: claim refuted;       does not hold
     verify: version 1
  2  not a command            6  the engine or the ledger failed, or it is too early
  3  over budget; nothing     7  the same run is under way
     was charged           9  the ledger or the budget does not exist

start with `dpframe demo`; every command has --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        with ending():
            result: int = parsed.run(parsed)
            sys.stdout.flush()
    except DPFrameError as error:
        opened = getattr(parsed, "announced", {})
        log = getattr(parsed, "logged", None)
        return _refused(error, opened, log, as_json=getattr(parsed, "json", False))
    except KeyboardInterrupt as stopped:
        kind, said, code = "KeyboardInterrupt", "interrupted", 130
        if isinstance(stopped, Terminated):
            kind, said, code = "Terminated", "asked to end", 143
        words = f"{said}; what was charged stays charged"
        _failed(getattr(parsed, "logged", None), kind, words, words, code)
        return code
    except BrokenPipeError:  # the reader of the output has enough of it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return result


def _failed(log: Log | None, name: str, message: str, line: str, code: int) -> None:
    """Report the failure of a command: in its log, or to people."""
    if log is None:
        print(line, file=sys.stderr)
    else:
        log.say("failure", {"error": name, "message": message, "code": code})


def _refused(error: DPFrameError, opened: dict[str, Any], log: Log | None, *, as_json: bool) -> int:
    name = type(error.error if isinstance(error, BadInput) else error).__name__
    lost = error.result if isinstance(error, NotWritten) else None
    if as_json:
        record: dict[str, object] = {"error": name, "message": str(error), **opened}
        print(json.dumps(record if lost is None else record | {"result": json.loads(lost)}))
    elif lost is not None:
        print(lost)
    code = next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    _failed(log, name, str(error), f"{name}: {message(error)}", code)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dpframe",
        description="Publish aggregates of personal data with differential privacy.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dpframe {version('dpframe')}")
    parser.set_defaults(run=lambda _: print_help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    shown = commands.add_parser("demo", help="six queries on census data, with their plans")
    shown.add_argument(
        "--data",
        type=Path,
        default=None,
        metavar="FILE",
        help="the Adult data as Parquet (default: the copy that comes with dpframe)",
    )
    shown.set_defaults(
        run=lambda parsed: demo.run(None if parsed.data is None else require_file(parsed.data))
    )
    plans.add_commands(commands)
    run.add_commands(commands)
    audit.add_commands(commands)
    ledger.add_commands(commands)
    return parser
