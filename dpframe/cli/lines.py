"""Lines for machines about what a command does: one JSON object each, on the standard error.

They hold names, amounts, fingerprints, places and parameters, which are all public, and messages
of errors, which never follow from private data.
"""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any


class Log:
    """The lines of one run.

    Parameters
    ----------
    job
        The file of the job.
    run
        What a scheduler calls this run, if anything.
    """

    def __init__(self, job: str, run: str | None) -> None:
        self._about = {"job": job, "run": run, "process": os.getpid()}
        self._stream = sys.stderr
        self._warnings: set[str] = set()

    def warn(self, category: str, text: str) -> None:
        """Write the line of a warning, once."""
        if text not in self._warnings:
            self._warnings.add(text)
            self.say("warning", {"category": category, "text": text})

    def say(self, event: str, facts: dict[str, Any]) -> None:
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


def log_event(event: str, **facts: Any) -> None:
    """Write a line where a log is written."""
    if _open:
        _open[-1].say(event, facts)
