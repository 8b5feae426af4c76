"""Lines for machines about what a command does: one JSON object each, on the standard error.

They hold names, amounts, fingerprints, places and parameters, all of which are public, and
messages of errors, which never follow from private data.
"""

from __future__ import annotations

import json
import os
import sys
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

    def say(self, event: str, facts: dict[str, Any]) -> None:
        """Write one line; a log that cannot be written stops nothing, for it may be paid for."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **self._about, **facts})
        with suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


_open: list[Log] = []


@contextmanager
def writing(log: Log) -> Iterator[None]:
    """Within this, the log is the one that is written."""
    _open.append(log)
    try:
        yield
    finally:
        _open.remove(log)


def is_logged() -> bool:
    """Whether a log is written, in place of what people read on the standard error."""
    return bool(_open)


def told(event: str, **facts: Any) -> None:
    """Write a line where a log is written."""
    if _open:
        _open[-1].say(event, facts)
