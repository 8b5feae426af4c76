"""The tables of a ledger's file, and every statement that reads or writes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpframe.errors import LedgerError
from dpframe.ledger.chain import broken, row_of
from dpframe.ledger.record import COLUMNS, Head, Record
from dpframe.ledger.tables import LARGEST

APPLICATION = 0x64704C31
"""Marks the file as a ledger, for SQLite and ``file``."""

TABLES = {
    "records": """CREATE TABLE records (
    seq INTEGER PRIMARY KEY, time TEXT NOT NULL, name TEXT NOT NULL, act TEXT NOT NULL,
    refers INTEGER, fingerprint TEXT, unit TEXT, measure TEXT, main TEXT, slack TEXT,
    who TEXT, why TEXT, previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    "head": """CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL,
    seal TEXT NOT NULL)""",
}

_ALL = f"SELECT {', '.join(COLUMNS)} FROM records"
_INSERT = f"INSERT INTO records VALUES ({', '.join('?' * len(COLUMNS))})"


class SqliteTables:
    """The tables of the file at `path`, within a transaction of `connection`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def exist(self) -> bool:
        found = self._connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
        mark = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if not found and not mark:
            return False
        if mark != APPLICATION:
            raise LedgerError(
                f"{str(self._path)!r} is a database, but not a ledger",
                remedy=("write the path of a ledger", "write the path of a new file"),
            )
        if dict(found) != TABLES:
            raise broken("its tables were changed")
        return True

    def create(self) -> None:
        self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        for table in TABLES.values():
            self._connection.execute(table)

    def version(self) -> int:
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def rows(self, after: int, limit: int) -> list[tuple[Any, ...]]:
        # Read at once: a query that is left halfway would keep its lock.
        wanted = f"{_ALL} WHERE seq > ? ORDER BY seq LIMIT ?"
        return self._connection.execute(wanted, (after, limit)).fetchall()

    def rows_at(self, numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for number in numbers:
            rows += self._connection.execute(f"{_ALL} WHERE seq = ?", (number,)).fetchall()
        return rows

    def last(self, *acts: str, until: int | None = None) -> tuple[Any, ...] | None:
        marks = ", ".join("?" * len(acts))
        given = (*acts, LARGEST if until is None else min(until, LARGEST))
        wanted = f"{_ALL} WHERE act IN ({marks}) AND seq <= ? ORDER BY seq DESC LIMIT 1"
        row: tuple[Any, ...] | None = self._connection.execute(wanted, given).fetchone()
        return row

    def last_begun(
        self, name: str, fingerprint: str | None, text: str | None, until: int
    ) -> tuple[Any, ...] | None:
        part, value = (
            ("fingerprint = ?", fingerprint) if text is None else ("instr(why, ?) > 0", text)
        )
        wanted = (
            f"{_ALL} WHERE seq <= ? AND act = 'begun' AND name = ? AND {part} "
            "ORDER BY seq DESC LIMIT 1"
        )
        row: tuple[Any, ...] | None
        row = self._connection.execute(wanted, (until, name, value)).fetchone()
        return row

    def rows_about(self, number: int) -> list[tuple[Any, ...]]:
        wanted = (
            f"{_ALL} WHERE seq > ? AND refers = ? AND act IN ('begun', 'kept', 'pruned') "
            "ORDER BY seq"
        )
        return self._connection.execute(wanted, (number, number)).fetchall()

    def hash_of(self, seq: int) -> object:
        wanted = "SELECT hash FROM records WHERE seq = ?"
        found: tuple[object, ...] | None = self._connection.execute(wanted, (seq,)).fetchone()
        return None if found is None else found[0]

    def head(self) -> Head | None:
        found = self._connection.execute("SELECT seq, hash, seal FROM head").fetchall()
        if not found:
            return None
        if [type(value) for value in found[0]] != [int, str, str]:
            raise broken("its head was changed")
        return Head(*found[0])

    def insert(self, record: Record, head: Head, *, new: bool) -> None:
        self._connection.execute(_INSERT, row_of(record))
        self.insert_head(head)

    def insert_head(self, head: Head) -> None:
        values = (head.seq, head.hash, head.seal)
        self._connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", values)

    def insert_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._connection.executemany(_INSERT, rows)

    def require_sound(self) -> None:
        if self._connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise broken("the file is damaged")
