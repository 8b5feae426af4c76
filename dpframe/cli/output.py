"""What commands read and write: files, lines for people, and lines for machines."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from dpframe.core.tree import visible
from dpframe.errors import DPFrameError, NoBudget, UnsupportedOperation
from dpframe.ledger import budgets
from dpframe.ledger.budgets import New, NewBudget
from dpframe.report import Plan

# What commands read: files that people name, and plans.


class BadInput(DPFrameError):
    """The refusal of a file that is not what the command needs."""

    def __init__(self, error: DPFrameError, path: Path) -> None:
        super().__init__(error.what, where=str(path), why=error.why, remedy=error.remedy)
        self.error = error


class NotWritten(BadInput):
    """The refusal to write a result that was paid for; it has the result as JSON, so that it is not
    lost.
    """

    def __init__(self, error: DPFrameError, path: Path, result: str) -> None:
        super().__init__(error, path)
        self.why = "the result was charged, and is on the standard output"
        self.result = result


def require_file(path: Path) -> Path:
    """The path of a file that is there. Raises `BadInput` when it is not."""
    if not path.is_file():
        what = "this is a folder, not a file" if path.is_dir() else "this file does not exist"
        folder = str(path.absolute().parent)
        why = None if path.is_absolute() else f"dpframe looked in the folder {folder!r}"
        remedy = "write the path of a file that exists"
        raise BadInput(UnsupportedOperation(what, why=why, remedy=remedy), path)
    return path


def not_a_job(path: Path, what: str, remedy: str | None = None) -> BadInput:
    """The refusal of a file that is not a job, or that makes none."""
    if remedy is None and path.suffix == ".toml":
        remedy = "copy the job that `dpframe run --help` shows, and change it"
    if remedy is None:
        remedy = 'define query, a private query or a list of them, and spend = {"epsilon": 0.5}'
    return BadInput(UnsupportedOperation(f"this is not a job: {what}", remedy=remedy), path)


def plan_in(path: Path) -> Plan:
    """The plan that a file holds. Raises `BadInput` when it holds none, or one that was edited."""
    require_file(path)
    try:
        return Plan.from_json(path)
    except DPFrameError as error:
        raise BadInput(error, path) from None


# Lines for machines about what a command does: one JSON object each, on the standard error.
#
# They hold names, amounts, fingerprints, places and parameters, which are all public, and messages
# of errors, which never follow from private data.


class Log:
    """The lines of one run of a job, with what a scheduler calls this run, if anything."""

    def __init__(self, job: str, run: str | None) -> None:
        self._about = {"job": job, "run": run, "process": os.getpid()}
        self._stream = sys.stderr
        self._warnings: set[str] = set()

    def warn(self, category: str, text: str) -> None:
        """Write the line of a warning, once."""
        if text not in self._warnings:
            self._warnings.add(text)
            self.say("warning", {"category": category, "text": text})

    def say(self, event: str, facts: dict[str, object]) -> None:
        """Write one line. A failure to write stops nothing, because the work may already be paid
        for."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **self._about, **facts})
        with suppress(OSError, ValueError):
            print(line, file=self._stream, flush=True)


class _Messages(io.TextIOBase):
    """A standard error whose lines are lines of a log, for the prints of jobs and messages of
    libraries that would otherwise stand between two objects.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._begun = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._say(line)
        return len(text)

    def end(self) -> None:
        """Write what no end of a line came after."""
        self._say(self._begun)
        self._begun = ""

    def _say(self, line: str) -> None:
        if line.strip():
            self._log.say("message", {"text": line})


_open: list[Log] = []


@contextmanager
def writing(log: Log) -> Iterator[None]:
    """Within this, the log is the one that is written, and nothing else is on the standard error:
    warnings of Python are lines of it too.
    """
    messages, stream, show = _Messages(log), sys.stderr, warnings.showwarning

    def warned(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        log.warn(category.__name__, str(message))

    _open.append(log)
    sys.stderr, warnings.showwarning = messages, warned
    try:
        yield
    finally:
        messages.end()
        sys.stderr, warnings.showwarning = stream, show
        _open.remove(log)


def is_logged() -> bool:
    """Whether a log is written, in place of what people read on the standard error."""
    return bool(_open)


def warn(text: str) -> None:
    """Write the line of a warning about a result where a log is written, if it has none yet: Python
    shows each warning once, also where several runs of a process give it.
    """
    if _open:
        _open[-1].warn("ResultWarning", text)


def log_event(event: str, **facts: object) -> None:
    """Write a line where a log is written."""
    if _open:
        _open[-1].say(event, facts)


# What commands write for people, in lines that nothing in them can forge.


def say(line: str, *, to_errors: bool = False) -> None:
    """Print one line: what people chose may be in it, and cannot end it. Where a log is written,
    what would go to the standard error is a line of that.
    """
    if to_errors and is_logged():
        log_event("message", text=line)
        return
    print(visible(line), file=sys.stderr if to_errors else sys.stdout)


def print_record(record: object) -> int:
    """Print JSON for programs, and return the exit code of a command that is done."""
    print(json.dumps(record, indent=2))
    return 0


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
    planned for is announced too. The other arguments are those of `budgets.only`.
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
        found: list[dict[str, object]] = self._parsed.announced.setdefault("opened", [])
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
