"""What commands write for people, in lines that nothing in them can forge."""

from __future__ import annotations

import argparse
import sys
from types import TracebackType
from typing import Any

from dpframe.cli.lines import is_logged, log_event
from dpframe.core.visible import visible
from dpframe.errors import DPFrameError, NoBudget
from dpframe.ledger import budgets
from dpframe.ledger.budgets import New, NewBudget


def say(line: str, *, to_errors: bool = False) -> None:
    """Print one line: what people chose may be in it, and cannot end it. Where a log is written,
    what would go to the standard error is a line of that.
    """
    if to_errors and is_logged():
        log_event("message", text=line)
        return
    print(visible(line), file=sys.stderr if to_errors else sys.stdout)


def print_help(parser: argparse.ArgumentParser) -> int:
    """Print the help of a group of commands without one, and return the exit code."""
    parser.print_help()
    return 0


def message(error: DPFrameError) -> str:
    """What an error says, in the lines that it has and no others."""
    return "\n".join([*map(visible, error.what.split("\n")), *error.lines(visible)])


class Announced:
    """Within this, each new budget is announced first on standard error and recorded in
    `parsed.announced` for the JSON of the command. A budget that does not exist and is only
    planned for is announced too.

    Parameters
    ----------
    parsed
        The arguments of the command.
    ledger, name, new
        As for `opening.only`.
    """

    def __init__(
        self,
        parsed: argparse.Namespace,
        ledger: str | None = None,
        name: str | None = None,
        *,
        new: New = "open",
    ) -> None:
        self._parsed = parsed
        self._scope = budgets.only(
            ledger, name, new=new, tell=self._tell, tell_absent=self._tell_absent
        )
        parsed.announced = {}

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._scope.__exit__(kind, error, trace)

    def _tell(self, made: NewBudget) -> None:
        say(made.words(), to_errors=True)
        found: list[dict[str, Any]] = self._parsed.announced.setdefault("opened", [])
        found.append(
            {
                "name": made.name,
                "budget": made.amount,
                "ledger": made.where,
                "new_ledger": made.new_ledger,
            }
        )

    def _tell_absent(self, refusal: NoBudget) -> None:
        say(f"{refusal.what}; this command plans for a new one", to_errors=True)
        missing: list[str] = self._parsed.announced.setdefault("missing", [])
        missing.append(refusal.what)
