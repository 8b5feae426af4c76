"""Ledger files for tests, and ways to look into them and to damage them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import dpframe as dp
from dpframe.core.budget import Budget
from dpframe.ledger.record import Seal
from dpframe.ledger.sqlite import SqliteLedger
from dpframe.ledger.store import Store

UNIT = "rows, add-remove"
TENTH = dp.PureDP("0.1")


def opened(
    path: Path,
    budget: Budget | None = None,
    *,
    name: str = "default",
    key: str | None = None,
    timeout: float = 15.0,
) -> SqliteLedger:
    """A ledger as another process would open it: with nothing remembered."""
    store = Store(path, Seal(key), timeout=timeout)
    return SqliteLedger(store, name, dp.PureDP(1) if budget is None else budget)


def verify(path: Path, key: str | None = None) -> None:
    Store(path, Seal(key), create=False).verify()


def filled(path: Path, key: str | None = None) -> None:
    """Two budgets with charges of each status."""
    first = opened(path, key=key)
    second = opened(path, dp.ApproxDP(2, "1e-6"), name="second", key=key)
    numbers = [first.charge(TENTH, f"{n}" * 64, UNIT) for n in range(3)]
    second.charge(dp.ApproxDP("1/3", "1e-7"), "f" * 64, "identifier")
    first.settle(numbers[0], "released")
    first.settle(numbers[1], "failed")


def sql(path: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement as anybody with access to the file could."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def in_child(work: Callable[[], int]) -> int:
    """The exit code of a forked process that does this; -9 when it was killed."""
    process = os.fork()
    if not process:
        code = 99
        with suppress(BaseException):
            code = work()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
