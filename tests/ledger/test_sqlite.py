"""What is so only of budgets in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.ledgers import TENTH, opened


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
