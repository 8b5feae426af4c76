"""What is taken for the place of a ledger, and what is refused: no password shows, and no file is
made that nobody meant.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.ledger.place import store_at

SECRET = "hunter2"

CONNECTIONS = [
    f"host=db password={SECRET}",
    f"host=db dbname=budgets user=ann password='{SECRET}'",
    f"Server=db;Database=budgets;Pwd={SECRET}",
    f"sqlite:///host=db password={SECRET}",
    f"dbname=budgets PASSWORD = {SECRET}",
    f"mysql://db/budgets?password={SECRET}",
    "host=db",
    "dbname=budgets",
    "host=/var/run/postgresql dbname=budgets",
    "service=budgets",
]


@pytest.mark.parametrize("text", CONNECTIONS)
def test_a_connection_string_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dp.LedgerError, match="connection string") as refusal:
        dp.Session(epsilon=1, ledger=text)
    assert SECRET not in f"{refusal.value}{refusal.value!r}"
    assert "postgresql://" in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  ", "is not a file"),
        ("\t", "is not a file"),
        ("", "is not a file"),
        ("/", "is a directory"),
        ("sqlite:////", "is a directory"),
        ("sqlite:///", "is not a file"),
        ("sqlite:budget.db", "is neither a path nor a URL"),
        (f"postgresql:ann:{SECRET}@db/budgets", "is neither a path nor a URL"),
        (f"POSTGRES:/ann:{SECRET}@db/budgets", "is neither a path nor a URL"),
    ],
)
def test_what_is_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dp.LedgerError, match=words) as refusal:
        dp.Session(epsilon=1, ledger=text)
    assert SECRET not in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["user=ann/budget.db", "date=2027-01-01.db", "host budget.db", "passwords/b.db"]
)
def test_paths_that_only_look_like_settings_are_paths(text: str) -> None:
    assert store_at(text).where.endswith(text)


@pytest.mark.skipif(os.name == "nt", reason="modes of files")
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_the_head_file_may_be_written_by_who_may_write_the_ledger(
    tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        dp.Session(epsilon=1, ledger=tmp_path / "b.db")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    assert modes == {0o644 & ~mask}
