"""Disks, locks and files that fail: a LedgerError, and never a charge that was not recorded."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger import sqlite
from dpframe.ledger.head_file import HeadFile
from tests.ledger.ledgers import TENTH, UNIT, filled, in_child, opened, sql, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "budget.db"
    filled(made)
    return made


# -- files that cannot be used ----------------------------------------------------------------


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dp.LedgerError, match="its directory does not exist"):
        opened(tmp_path / "no" / "budget.db")
    assert not list(tmp_path.iterdir())


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dp.LedgerError, match="it is a directory"):
        opened(tmp_path)


@pytest.mark.parametrize("content", [b"time,epsilon\n", b"x" * 5000, b"\0" * 4096])
def test_another_kind_of_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(dp.LedgerError):
        opened(path)
    assert path.read_bytes() == content


def test_another_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    sql(path, "CREATE TABLE people (name)")
    with pytest.raises(dp.LedgerError, match="not a ledger"):
        opened(path)
    assert sql(path, "SELECT name FROM sqlite_master") == [("people",)]


@pytest.mark.parametrize(
    "place",
    [
        ":memory:",
        "",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///b.db?mode=ro",
        "mysql://u:secret@h/d",
        "a\0b",
        5,
        b"b.db",
        True,
    ],
    ids=ascii,
)
def test_places_that_are_no_files_are_refused(place: Any) -> None:
    with pytest.raises(dp.LedgerError) as caught:
        dp.Session(epsilon=1, ledger=place)
    assert "secret" not in str(caught.value)


def test_a_locked_ledger_is_refused_after_a_while(path: Path) -> None:
    holder = sqlite3.connect(path, isolation_level=None)
    ledger = opened(path, timeout=0.05)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(dp.LedgerError, match="locked by another process"):
        ledger.charge(TENTH, "f")
    assert ledger.spent == dp.PureDP("0.3")  # reading goes on
    holder.execute("COMMIT")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(dp.LedgerError, match="locked by another process"):
        _ = ledger.spent
    with pytest.raises(dp.LedgerError, match="locked by another process"):
        opened(path, timeout=0.05)
    holder.execute("ROLLBACK")
    holder.close()
    ledger.charge(TENTH, "f")
    assert opened(path).spent == dp.PureDP("0.4")


@pytest.mark.parametrize("way", ["moved", "deleted", "replaced by a copy", "replaced by a ledger"])
def test_a_file_that_goes_away_while_it_is_in_use_is_noticed(path: Path, way: str) -> None:
    ledger = opened(path)
    other = path.with_name("other.db")
    if way == "replaced by a copy":
        shutil.copy(path, other)
    if way == "replaced by a ledger":
        opened(other)
    if way == "moved":
        path.rename(path.with_name("elsewhere.db"))
    elif way == "deleted":
        path.unlink()
    else:
        os.replace(other, path)
    for use in (lambda: ledger.charge(TENTH, "f"), lambda: ledger.spent, ledger.verify):
        with pytest.raises(dp.LedgerError, match="moved, deleted or replaced"):
            use()
    assert way == "deleted" or path.exists() == (way != "moved")


# -- disks ------------------------------------------------------------------------------------


def test_a_full_file_system_is_refused(path: Path) -> None:
    ledger = opened(path, dp.ApproxDP(2, "1e-6"), name="second")
    ledger._store._connected().execute("PRAGMA max_page_count = 3")
    cost = dp.ApproxDP("1e-9", 0)
    with pytest.raises(dp.LedgerError, match="disk is full"):
        _ = [ledger.charge(cost, "f" * 64) for _ in range(100)]
    before = len(ledger.entries)
    ledger._store._connected().execute("PRAGMA max_page_count = 1000")
    ledger.charge(dp.ApproxDP("1e-9", 0), "f" * 64)
    assert len(opened(path, dp.ApproxDP(2, "1e-6"), name="second").entries) == before + 1
    verify(path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    path = small_disk / "budget.db"
    charged = 0
    try:
        for _ in range(1000):
            opened(path).charge(dp.PureDP("0.001"), "f" * 64)
            charged += 1
    except dp.LedgerError:
        pass
    assert 5 < charged < 1000
    assert opened(path).spent == dp.PureDP(f"{charged}/1000")
    verify(path)


@pytest.mark.parametrize("spare", range(0, 6000, 500))
def test_writes_that_the_system_refuses(path: Path, spare: int) -> None:
    """Files may not grow beyond a limit, which is hit at different steps of a charge."""

    def charge() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = opened(path)
        limit = spare if spare < 4096 else path.stat().st_size + spare
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            for _ in range(60):
                ledger.charge(dp.PureDP("0.001"), "f" * 64)
        except dp.LedgerError:
            return 7
        return 0

    before = opened(path).spent
    assert in_child(charge) == 7
    assert opened(path).spent.main >= before.main
    verify(path)


def as_nobody(work: Callable[[], int]) -> int:
    """In a process without the right to write everywhere."""

    def unprivileged() -> int:
        if not os.geteuid():
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_child(unprivileged)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_may_not_be_written_is_refused(tmp_path: Path, what: str) -> None:
    place = Path(tempfile.mkdtemp())  # everybody may enter its parents
    try:
        path = place / "budget.db"
        opened(path)
        place.chmod(0o777 if what == "file" else 0o555)
        path.chmod(0o444 if what == "file" else 0o666)
        Path(f"{path}.head").chmod(0o666)
        Path(f"{path}-journal").unlink(missing_ok=True)

        def read_and_charge() -> int:
            ledger = opened(path)
            try:
                ledger.charge(TENTH, "f")
            except dp.LedgerError as error:
                return 7 if "cannot be" in str(error) else 8
            return 0

        assert as_nobody(read_and_charge) == 7
        assert opened(path).spent == dp.PureDP(0)
    finally:
        shutil.rmtree(place)


def test_a_head_file_that_cannot_be_written_is_found_before_the_charge(path: Path) -> None:
    beside = Path(f"{path}.head")
    ledger, text = opened(path), beside.read_bytes()
    beside.unlink()
    beside.mkdir()
    with pytest.raises(dp.LedgerError):
        ledger.charge(TENTH, "f")
    beside.rmdir()
    beside.write_bytes(text)
    assert opened(path).spent == dp.PureDP("0.3")


def test_a_head_file_that_fails_after_the_charge_lets_nothing_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    ledger = opened(path)
    monkeypatch.setattr(HeadFile, "write", fail)
    with pytest.raises(dp.LedgerError, match="Input/output error"):
        ledger.charge(TENTH, "f")
    monkeypatch.undo()
    assert ledger.spent == opened(path).spent == dp.PureDP("0.4")
    ledger.charge(TENTH, "f")
    verify(path)


@pytest.mark.parametrize("page", [0, 1, 2])
def test_damaged_bytes_are_refused_or_change_nothing(path: Path, page: int) -> None:
    content = path.read_bytes()
    before = opened(path).entries
    refused = 0
    for offset in range(page * 4096, min((page + 1) * 4096, len(content)), 61):
        damaged = bytearray(content)
        damaged[offset : offset + 4] = bytes(b ^ 0x5A for b in damaged[offset : offset + 4])
        path.write_bytes(damaged)
        try:
            assert opened(path, timeout=0.01).entries == before
        except dp.LedgerError:
            refused += 1
    assert refused
    path.write_bytes(content)
    verify(path)


@pytest.mark.parametrize("kept", [1, 100, 512, 4096, 5000, 8192])
def test_a_truncated_file_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(dp.LedgerError):
        opened(path)


# -- every statement may fail -----------------------------------------------------------------


class Faulty(sqlite3.Connection):
    """A connection whose n-th statement fails, before or after it took effect."""

    countdown = 10**9
    error: BaseException = sqlite3.OperationalError("x")
    after = False

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        Faulty.countdown -= 1
        if Faulty.countdown == 0 and not Faulty.after:
            raise Faulty.error
        done = super().execute(*arguments)
        if Faulty.countdown == 0:
            done.close()
            raise Faulty.error
        return done


def failing(name: str) -> BaseException:
    error = sqlite3.OperationalError("made up")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "error",
    [failing("SQLITE_FULL"), failing("SQLITE_IOERR_FSYNC"), KeyboardInterrupt(), MemoryError()],
    ids=lambda e: getattr(e, "sqlite_errorname", type(e).__name__),
)
def test_whichever_statement_fails_the_ledger_counts_what_was_let_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, after: bool
) -> None:
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite.sqlite3, "connect", lambda *a, **k: real(*a, factory=Faulty, **k), raising=True
    )
    path = tmp_path / "budget.db"
    expected = dp.LedgerError if isinstance(error, sqlite3.Error) else type(error)
    let_through = faults = 0
    Faulty.error, Faulty.after = error, after
    for n in range(1, 60):
        Faulty.countdown = n
        try:
            ledger = opened(path)
            ledger.settle(ledger.charge(dp.PureDP("0.001"), "f", UNIT), "released")
            let_through += 1
        except expected:
            faults += 1
        finished = Faulty.countdown > 0
        Faulty.countdown = 10**9
        spent = opened(path).spent
        assert dp.PureDP(f"{let_through}/1000").main <= spent.main
        assert spent.main <= dp.PureDP(f"{n}/1000").main
        verify(path)
        if finished:
            break
    assert faults > 20
    assert let_through >= 1
