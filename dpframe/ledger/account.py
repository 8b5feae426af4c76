"""Who was charged how much, and what the records of one budget add up to."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Literal

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.ledger.record import Record, Stored
from dpframe.ledger.scopes import Scope, Totals

# Who was charged: user, machine, process, job and run, as public metadata of a record.
#
# They help to find out later where a charge came from. They prove nothing: who can write to a
# ledger can write any of them.

JOB_VARIABLE, RUN_VARIABLE = "DPFRAME_JOB", "DPFRAME_RUN_ID"
"""Environment variables in which a scheduler may name the job and this run of it."""

LONGEST = 200
"""Characters that are kept of each."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user and process that ran a query; None for unknown facts."""

    # `user`, `host`: name of the account, and of the machine.
    user: str | None = None
    host: str | None = None
    process: int | None = None  # Its number
    job: str | None = None  # The file of the job, or of the script
    run: str | None = None  # What a scheduler calls this run of it

    def fields(self) -> dict[str, object]:
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


def caller_of(user: str | None, found: Mapping[str, Stored]) -> Caller:
    """What `Caller.fields` made. Raises `ValueError, TypeError` when it is in another form."""
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


# One spend of a budget, as its ledger keeps it.

Status = Literal["charged", "released", "failed"]
Settled = Literal["released", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend."""

    number: int  # The number of the charge in its ledger; numbers rise, but need not be consecutive
    time: datetime  # When it was charged, UTC
    fingerprint: str  # The fingerprint of the plan
    cost: Budget  # What the whole budget was charged
    # ``"charged"`` until the release is done, then ``"released"`` or ``"failed"``; a failure keeps
    # its charge.
    status: Status
    caller: Caller = NOBODY  # Who was charged
    scope: Scope | None = None  # Where it falls; None for all of the budget's frames
    # For an entry with a scope: the charge of the whole, then of each level below it, and last the
    # cost of the plan.
    amounts: tuple[Budget, ...] = ()


@dataclass(slots=True)
class Account:
    """One budget of a ledger, up to the last record read."""

    name: str
    budget: Budget
    totals: list[Budget]
    """The budget when it was opened and after each grant, as sessions give it."""
    grants: list[Record]
    """Its opening and all grants."""
    spent: Budget
    scopes: Totals
    """What was charged to parts of frames, and to windows."""
    within: ApproxDP | None = None
    """The (epsilon, delta) that the budget, then an amount of rho, was taken to imply."""
    unit: str | None = None
    closed: Record | None = None
    """What ended it; nothing is charged or granted after that."""
    charges: int = 0
    """How many there are."""
    open: set[int] = field(default_factory=set)
    """Numbers of the charges that are not settled yet."""
    entries: dict[int, Entry] = field(default_factory=dict)
    """All charges, if the chain is whole; otherwise none."""

    @property
    def per(self) -> Every | None:
        """The windows of time that each have this budget, or None for one budget for all time."""
        return None if self.scopes.windows is None else self.scopes.windows.every

    @property
    def remaining(self) -> Budget:
        """What may still be spent: nothing once it is closed."""
        if self.closed is not None:
            return self.budget.of(self.budget.main * 0)
        return self.budget - self.spent
