"""What is so only of budgets in a file."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

import dpframe as dp
from tests.ledger.ledgers import TENTH, opened, verify


@pytest.mark.parametrize("file", ["a b.db", "ü🦀.db", "file:x?mode=memory", "a'b;.db", "%41.db"])
def test_files_may_be_called_anything(tmp_path: Path, file: str) -> None:
    opened(tmp_path / file).charge(TENTH, "f")
    assert opened(tmp_path / file).spent == TENTH
    assert sorted(p.name for p in tmp_path.iterdir())[0] == file


def test_commits_wait_for_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = opened(path)
    connection = ledger._store._connected()
    assert connection.execute("PRAGMA synchronous").fetchall() == [(3,)]  # EXTRA
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("truncate",)]
    assert [p.name for p in sorted(path.parent.iterdir())] == [
        "budget.db",
        "budget.db-journal",
        "budget.db.head",
    ]
    assert not Path(f"{path}-journal").stat().st_size


def test_a_schema_is_not_trusted(tmp_path: Path) -> None:
    """Else a check or a trigger in a file that somebody prepared could call any function."""
    ledger = opened(tmp_path / "budget.db")
    connection = ledger._store._connected()
    assert connection.execute("PRAGMA trusted_schema").fetchall() == [(0,)]


def test_damage_that_no_query_meets_is_found_by_verification(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    opened(path).charge(TENTH, "f")
    verify(path)
    content = bytearray(path.read_bytes())
    content[36:40] = (5).to_bytes(4)  # pages that are free, of which there are none
    path.write_bytes(content)
    assert opened(path).spent == TENTH
    with pytest.raises(dp.LedgerError, match="the file is damaged"):
        verify(path)


def test_a_commit_waits_for_those_who_read(tmp_path: Path) -> None:
    """Such as a backup of the file by SQLite's own means."""
    path = tmp_path / "budget.db"
    ledger = opened(path)
    ledger.charge(TENTH, "f")
    reader = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    later = threading.Timer(0.3, reader.execute, ["COMMIT"])
    later.start()
    try:
        ledger.charge(TENTH, "g")
    finally:
        later.join()
        reader.close()
    assert opened(path).spent == dp.PureDP("0.2")


def test_a_charge_waits_for_another_writer(tmp_path: Path) -> None:
    """Such as somebody who compacts the file, and knows nothing of the ledger's own lock."""
    path = tmp_path / "budget.db"
    ledger = opened(path)
    writer = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    later = threading.Timer(0.3, writer.execute, ["ROLLBACK"])
    later.start()
    try:
        ledger.charge(TENTH, "f")
    finally:
        later.join()
        writer.close()
    assert opened(path).spent == TENTH
