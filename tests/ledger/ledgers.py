"""Ledgers for tests, in files and on servers, and ways to look into them and to damage them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import dpframe as dp
from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.parts import PartLedger
from dpframe.ledger.place import open_ledger
from dpframe.ledger.record import Seal
from dpframe.ledger.scopes import Level
from dpframe.ledger.sqlite import SqliteStore
from dpframe.ledger.store import Store
from tests.postgres import run_sql

UNIT = "rows, add-remove"
TENTH = dp.PureDP("0.1")

Place = Path | str
"""A file, or the URL of a database."""


def store_at(
    place: Place, key: str | None = None, *, timeout: float = 15.0, create: bool = True
) -> Store:
    """As another process would open it: with nothing remembered."""
    if isinstance(place, Path):
        return SqliteStore(place, Seal(key), timeout=timeout, create=create)
    from dpframe.ledger.postgres import Address, PostgresStore

    return PostgresStore(Address.of(place), Seal(key), timeout=timeout, create=create)


def opened(
    place: Place,
    budget: Budget | None = None,
    *,
    name: str = "default",
    key: str | None = None,
    timeout: float = 15.0,
) -> Ledger:
    """A ledger as another process would open it."""
    store = store_at(place, key, timeout=timeout)
    return Ledger(store, name, dp.PureDP(1) if budget is None else budget)


def in_memory(budget: Budget, within: ApproxDP | None = None, per: Every | None = None) -> Ledger:
    """A ledger that is gone when its process ends."""
    return open_ledger(None, None, budget, within, per=per)


def divided(parent: Ledger, parts: int, touched: int, name: str = "") -> list[PartLedger]:
    """Parts of a frame; of a division of its own where it has no name."""
    digest = name or uuid4().hex
    return [PartLedger(parent, Level(digest, touched, f"[{i}]"), parts) for i in range(parts)]


def verify(place: Place, key: str | None = None) -> None:
    store_at(place, key, create=False).verify()


def filled(place: Place, key: str | None = None) -> None:
    """Two budgets with charges of each status."""
    first = opened(place, key=key)
    second = opened(place, dp.ApproxDP(2, "1e-6"), name="second", key=key)
    numbers = [first.charge(TENTH, f"{n}" * 64, UNIT) for n in range(3)]
    second.charge(dp.ApproxDP("1/3", "1e-7"), "f" * 64, "identifier")
    first.settle(numbers[0], "released")
    first.settle(numbers[1], "failed")


def sql(place: Place, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement as anybody with access to the file or the server could."""
    if not isinstance(place, Path):
        return run_sql(place, statement, *values)
    connection = sqlite3.connect(place, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def fresh(place: Place, number: int) -> Place:
    """Another place of the same kind, with nothing in it: a folder of its own, for ledgers look at
    those beside them.
    """
    if isinstance(place, Path):
        folder = place.parent / f"{number}"
        folder.mkdir()
        return folder / place.name
    sql(place, "DROP SCHEMA IF EXISTS dpframe_ledger CASCADE")
    return place


def exists(place: Place) -> bool:
    if isinstance(place, Path):
        return place.exists() and place.stat().st_size > 0
    return bool(sql(place, "SELECT 1 FROM pg_namespace WHERE nspname = 'dpframe_ledger'"))


def in_child(work: Callable[[], int]) -> int:
    """The exit code of a forked process that does this; -9 when it was killed."""
    process = os.fork()
    if not process:
        code = 99
        with suppress(BaseException):
            code = work()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
