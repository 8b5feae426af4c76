"""Who was charged: user, machine, process, job and run, as public metadata of a record.

They help to find out later where a charge came from. They prove nothing: who can write to a ledger
can write any of them.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

JOB_VARIABLE, RUN_VARIABLE = "DPFRAME_JOB", "DPFRAME_RUN_ID"
"""Environment variables in which a scheduler may name the job and this run of it."""

LONGEST = 200
"""Characters that are kept of each."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user and process that ran a query; None for unknown facts.

    Parameters
    ----------
    user, host
        Name of the account, and of the machine.
    process
        Its number.
    job
        The file of the job, or of the script.
    run
        What a scheduler calls this run of it.
    """

    user: str | None = None
    host: str | None = None
    process: int | None = None
    job: str | None = None
    run: str | None = None

    def fields(self) -> dict[str, Any]:
        """All but the user, as JSON."""
        return {"host": self.host, "process": self.process, "job": self.job, "run": self.run}

    def words(self) -> str:
        """In words; empty when nothing is known."""
        place = "@".join(part for part in (self.user, self.host) if part)
        process = "" if self.process is None else f"process {self.process}"
        job = "" if self.job is None else f"job {self.job}"
        run = "" if self.run is None else f"run {self.run}"
        return ", ".join(part for part in (place, process, job, run) if part)


NOBODY = Caller()
"""Of charges that were recorded without."""

_given: tuple[str | None, str | None] = (None, None)


def caller_of(user: str | None, found: dict[str, Any]) -> Caller:
    """What `Caller.fields` made.

    Raises
    ------
    ValueError, TypeError
        When it is in another form.
    """
    if found.keys() != {"host", "process", "job", "run"}:
        raise ValueError
    host, process, job, run = (found[key] for key in ("host", "process", "job", "run"))
    if not all(isinstance(part, str | None) for part in (host, job, run)):
        raise TypeError
    if process is not None and type(process) is not int:
        raise TypeError
    return Caller(user, host, process, job, run)


@contextmanager
def running(job: str, run: str | None) -> Iterator[None]:
    """Within this, charges name that job, and the run if it has a name."""
    global _given
    before, _given = _given, (job, run)
    try:
        yield
    finally:
        _given = before


def this_caller() -> Caller:
    """The state of this process."""
    job, run = _given
    return Caller(
        _short(_user()),
        _short(socket.gethostname()),
        os.getpid(),
        _short(job or os.environ.get(JOB_VARIABLE) or _script()),
        _short(run or os.environ.get(RUN_VARIABLE)),
    )


def _user() -> str | None:
    """The account of the process, independently of its environment variables."""
    if sys.platform == "win32":
        return os.environ.get("USERNAME")
    return _account(os.geteuid())


@lru_cache(maxsize=8)
def _account(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in containers
        return f"user {number}"


def _script() -> str | None:
    found = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(found) if isinstance(found, str) else None


def _short(text: str | None) -> str | None:
    if not text:
        return None
    return text.encode("utf-8", "replace").decode()[:LONGEST]
