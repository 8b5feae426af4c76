"""The tables of a ledger's file, and every statement that reads or writes them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dpframe.errors import LedgerError
from dpframe.ledger.chain import broken, row_of
from dpframe.ledger.record import COLUMNS, Head, Record

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


def has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger already; False when it is new and empty.

    Raises
    ------
    LedgerError
        When it is another database, or its tables were changed.
    """
    found = connection.execute("SELECT name, sql FROM sqlite_master").fetchall()
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if not found and not mark:
        return False
    if mark != APPLICATION:
        raise LedgerError(
            f"{str(path)!r} is a database, but not a ledger",
            remedy="give the path of a ledger, or of a new file",
        )
    if dict(found) != TABLES:
        raise broken("its tables were changed")
    return True


def create_tables(connection: sqlite3.Connection) -> None:
    """Make a new and empty file a ledger."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    for table in TABLES.values():
        connection.execute(table)


def rows_after(connection: sqlite3.Connection, seq: int | None) -> list[tuple[object, ...]]:
    """Rows after a number, or all rows, in order; read at once, because a query that is left
    halfway would keep its lock.
    """
    wanted = f"SELECT {', '.join(COLUMNS)} FROM records"
    if seq is None:
        return connection.execute(f"{wanted} ORDER BY seq").fetchall()
    return connection.execute(f"{wanted} WHERE seq > ? ORDER BY seq", (seq,)).fetchall()


def stored_head(connection: sqlite3.Connection) -> Head | None:
    """The head as it is stored, verified or not."""
    found = connection.execute("SELECT seq, hash, seal FROM head").fetchall()
    if not found:
        return None
    if [type(value) for value in found[0]] != [int, str, str]:
        raise broken("its head was changed")
    return Head(*found[0])


def insert(connection: sqlite3.Connection, record: Record, head: Head) -> None:
    """Add a record, and move the head to it."""
    marks = ", ".join("?" * len(COLUMNS))
    connection.execute(f"INSERT INTO records VALUES ({marks})", row_of(record))
    values = (head.seq, head.hash, head.seal)
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", values)
