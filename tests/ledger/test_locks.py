"""Locks that nothing else in a process drops, one for each ledger, and forks that wait for them."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dpframe as dp
from dpframe.ledger import sqlite, store
from dpframe.ledger.head_file import HeadFile
from dpframe.ledger.record import Draft
from dpframe.ledger.sqlite import FileLock, lock_of
from dpframe.ledger.store import Store
from tests.ledger.ledgers import TENTH, UNIT, Place, in_child, opened, sql, store_at, verify

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")

SOON = 60.0
"""Seconds in which anything happens that is going to happen."""


@pytest.fixture(params=[True, False], ids=["by description", "beside"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both kinds of locks, on any system that has them."""
    if request.param and not sqlite.BY_DESCRIPTION:
        pytest.skip("this system has no locks of open file descriptions")
    monkeypatch.setattr(sqlite, "BY_DESCRIPTION", request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "budget.db"
    made.touch()
    return made


@contextmanager
def elsewhere(path: Path, *, writing: bool) -> Iterator[None]:
    """Another process holds the lock."""
    ready, done = os.pipe(), os.pipe()
    process = os.fork()
    if not process:
        with suppress(BaseException):
            os.close(done[1])

            @held(FileLock(path, create=False), writing=writing, timeout=SOON)
            def _() -> None:
                os.write(ready[1], b".")
                os.read(done[0], 1)

        os._exit(0)
    os.close(done[0])
    assert os.read(ready[0], 1)
    try:
        yield
    finally:
        os.close(done[1])
        os.waitpid(process, 0)
        os.close(ready[0])
        os.close(ready[1])


def held(
    lock: FileLock, *, writing: bool, timeout: float
) -> Callable[[Callable[[], object]], object]:
    """Does what it decorates while the lock is held."""
    return partial(lock.run, writing=writing, timeout=timeout)


def nothing() -> None:
    """Only get the lock."""


def is_free(path: Path, *, writing: bool) -> bool:
    """For another process."""

    def attempt() -> int:
        try:
            return FileLock(path, create=False).run(lambda: 1, writing=writing, timeout=0)
        except dp.LedgerError:
            return 0

    return in_child(attempt) == 1


# -- the lock of a file -----------------------------------------------------------------------


@pytest.mark.usefixtures("kind")
def test_one_writes_or_many_read(path: Path) -> None:
    lock = lock_of(path, create=False)

    @held(lock, writing=True, timeout=0)
    def _() -> None:
        assert not is_free(path, writing=True)
        assert not is_free(path, writing=False)

    @held(lock, writing=False, timeout=0)
    def _() -> None:
        assert not is_free(path, writing=True)
        assert is_free(path, writing=False)

    assert is_free(path, writing=True)
    with elsewhere(path, writing=False):
        lock.run(nothing, writing=False, timeout=0)
        with pytest.raises(dp.LedgerError, match="locked by another process"):
            lock.run(nothing, writing=True, timeout=0)
    lock.run(nothing, writing=True, timeout=0)


@pytest.mark.usefixtures("kind")
def test_nothing_that_a_process_closes_drops_the_lock(path: Path) -> None:
    @held(lock_of(path, create=False), writing=True, timeout=0)
    def _() -> None:
        path.read_bytes()
        os.close(os.open(path, os.O_RDWR))
        sqlite3.connect(path).close()
        assert in_child(lambda: 0) == 0
        subprocess.run(["true"], check=True)
        assert not is_free(path, writing=False)


@pytest.mark.usefixtures("kind")
def test_a_lock_within_a_lock_ends_with_the_outer_one(path: Path) -> None:
    lock = lock_of(path, create=False)

    @held(lock, writing=True, timeout=0)
    def _() -> None:
        @held(lock_of(path, create=False), writing=False, timeout=0)
        def _() -> None:
            assert not is_free(path, writing=False)

        assert not is_free(path, writing=False)

    @held(lock, writing=False, timeout=0)
    def _() -> None:
        with pytest.raises(dp.LedgerError, match="locked"):
            lock.run(nothing, writing=True, timeout=0)
        assert is_free(path, writing=False)

    assert is_free(path, writing=True)


@pytest.mark.usefixtures("kind")
def test_a_forked_process_does_not_have_the_lock_of_its_parent(path: Path) -> None:
    lock = lock_of(path, create=False)

    def attempt() -> int:
        try:
            return lock.run(lambda: 1, writing=True, timeout=0)
        except dp.LedgerError:
            return 0

    @held(lock, writing=True, timeout=0)
    def _() -> None:
        assert in_child(attempt) == 0
        assert not is_free(path, writing=False)

    assert in_child(attempt) == 1

    ready, done = os.pipe(), os.pipe()
    process = os.fork()  # and the parent does not have that of its child
    if not process:
        with suppress(BaseException):

            @held(lock, writing=True, timeout=0)
            def _() -> None:
                os.close(done[1])
                os.write(ready[1], b".")
                os.read(done[0], 1)

        os._exit(0)
    assert os.read(ready[0], 1)
    with pytest.raises(dp.LedgerError, match="locked"):
        lock.run(nothing, writing=True, timeout=0)
    os.close(done[1])
    os.waitpid(process, 0)
    lock.run(nothing, writing=True, timeout=0)


def test_who_waits_to_write_is_not_overtaken_by_readers(path: Path) -> None:
    if not sqlite.BY_DESCRIPTION:
        pytest.skip("this system has no locks of open file descriptions")
    reader, file = lock_of(path, create=False), os.open(path, os.O_RDWR)

    @held(reader, writing=False, timeout=0)
    def _() -> None:
        sqlite._set(file, fcntl.F_WRLCK, sqlite.GATE)  # as somebody who waits to write
        assert not is_free(path, writing=False)

    os.close(file)
    assert is_free(path, writing=False)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_lock_beside_that_is_deleted_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    monkeypatch.setattr(sqlite, "BY_DESCRIPTION", False)
    path.unlink()
    ledger, beside = opened(path), Path(f"{path}.lock")

    def draft(_: object) -> Draft:
        if deleted:
            beside.unlink()
        return Draft("default", "charged", None, "f", UNIT, TENTH)

    if deleted:
        with pytest.raises(dp.LedgerError, match="was moved or deleted"):
            ledger._store.append(draft)
    else:
        ledger._store.append(draft)
        beside.unlink()  # while nobody has it
    before = ledger.spent
    ledger.charge(TENTH, "f")
    assert beside.exists()
    assert opened(path).spent == before + TENTH


# -- the file ---------------------------------------------------------------------------------


def test_every_path_to_a_file_is_the_same_lock(tmp_path: Path) -> None:
    path, other = tmp_path / "budget.db", tmp_path / "link.db"
    ledger = opened(path)
    other.symlink_to(path)
    with elsewhere(path, writing=True), pytest.raises(dp.LedgerError, match="locked"):
        opened(other, timeout=0.05)
    opened(other).charge(TENTH, "f")
    assert ledger.spent == TENTH
    assert not Path(f"{other}.head").exists()


def test_a_file_with_two_names_is_refused(tmp_path: Path) -> None:
    path, other = tmp_path / "budget.db", tmp_path / "link.db"
    ledger = opened(path)
    os.link(path, other)
    for use in (lambda: ledger.charge(TENTH, "f"), lambda: opened(other), lambda: opened(path)):
        with pytest.raises(dp.LedgerError, match="has 2 names"):
            use()
    other.unlink()
    ledger.charge(TENTH, "f")
    assert opened(path).spent == TENTH


def test_a_file_that_is_mounted_elsewhere_has_the_same_lock(tmp_path: Path) -> None:
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    path, place = tmp_path / "one" / "budget.db", tmp_path / "two"
    path.parent.mkdir()
    place.mkdir()
    mount = ["mount", "--bind", str(path.parent), str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        ledger = opened(path)
        with elsewhere(path, writing=True), pytest.raises(dp.LedgerError, match="locked"):
            opened(place / "budget.db", timeout=0.05)
        opened(place / "budget.db").charge(TENTH, "f")
        assert ledger.spent == TENTH
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.usefixtures("kind")
def test_who_may_only_read_shares_the_lock_and_writes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def only_reading(name: Any, flags: int, *rest: Any) -> int:
        if name == path and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *rest)

    monkeypatch.setattr(os, "open", only_reading)
    lock = FileLock(path, create=False)
    monkeypatch.undo()

    @held(lock, writing=False, timeout=0)
    def _() -> None:
        assert is_free(path, writing=False)
        assert not is_free(path, writing=True) or not sqlite.BY_DESCRIPTION


def test_a_file_system_without_locks_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    path.unlink()
    ledger = opened(path)
    monkeypatch.setattr(sqlite.fcntl, "fcntl" if sqlite.BY_DESCRIPTION else "flock", refuse)
    with pytest.raises(dp.LedgerError, match="cannot be locked: No locks available"):
        ledger.charge(TENTH, "f")
    monkeypatch.undo()
    assert ledger.spent == dp.PureDP(0)


# -- charges ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("processes", "fits"), [(3, 60), pytest.param(8, 1000, marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("kind")
def test_a_backup_in_the_same_process_loses_no_charge(
    tmp_path: Path, processes: int, fits: int
) -> None:
    """In each process a thread opens, reads and closes the file all the time."""
    path = tmp_path / "budget.db"
    budget = TENTH.of(TENTH.main * fits)

    def spend() -> int:
        ledger, done = opened(path, budget, timeout=SOON), threading.Event()

        def back_up() -> None:
            while not done.is_set():
                path.read_bytes()

        thread = threading.Thread(target=back_up)
        thread.start()
        released = 0
        try:
            while True:
                ledger.settle(ledger.charge(TENTH, str(os.getpid()), UNIT), "released")
                released += 1
        except dp.BudgetExceeded:
            return 0
        finally:
            done.set()
            thread.join()
            (tmp_path / str(os.getpid())).write_text(str(released))

    running = []
    for _ in range(processes):
        process = os.fork()
        if not process:
            code = 99
            with suppress(BaseException):
                code = spend()
            os._exit(code)
        running.append(process)
    assert {os.waitpid(process, 0)[1] for process in running} == {0}
    released = sum(int((tmp_path / str(process)).read_text()) for process in running)
    assert released == fits
    assert opened(path, budget).spent == budget
    verify(path)


def test_an_open_and_close_between_charge_and_commit_lets_nobody_in(tmp_path: Path) -> None:
    """The one moment at which it matters, without waiting for it."""
    path = tmp_path / "budget.db"
    ledger = opened(path)

    def other() -> int:
        try:
            opened(path, timeout=0.05).charge(TENTH, "other")
        except dp.LedgerError as error:
            return 7 if "locked" in str(error) else 8
        return 0

    def draft(_: object) -> Draft:
        path.read_bytes()
        assert in_child(other) == 7
        return Draft("default", "charged", None, "f", UNIT, TENTH)

    ledger._store.append(draft)
    assert opened(path).spent == TENTH


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """What it returned or raised is in the list."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


@contextmanager
def in_the_middle(used: Store) -> Iterator[None]:
    """A thread is in the middle of a charge."""
    inside, leave = threading.Event(), threading.Event()

    def draft(_: object) -> Draft:
        inside.set()
        assert leave.wait(SOON)
        return Draft("default", "charged", None, "f", UNIT, TENTH)

    thread, found = in_thread(lambda: used.append(draft))
    assert inside.wait(SOON)
    try:
        yield
    finally:
        leave.set()
        thread.join(SOON)
    assert isinstance(found[0], int), found


def test_while_one_ledger_waits_another_one_does_not(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "1.db", timeout=SOON), opened(tmp_path / "2.db")
    with elsewhere(tmp_path / "1.db", writing=True):
        thread, found = in_thread(lambda: first.charge(TENTH, "f"))
        for _ in range(3):
            second.charge(TENTH, "f")
        third = opened(tmp_path / "3.db")  # nor one that was not open yet
        third.charge(TENTH, "f")
        assert thread.is_alive()
        assert not found
    thread.join(SOON)
    assert isinstance(found[0], int)
    assert (first.spent, second.spent, third.spent) == (TENTH, dp.PureDP("0.3"), TENTH)


def test_in_the_middle_of_a_charge_other_ledgers_are_used(place: Place, tmp_path: Path) -> None:
    ledger, other = opened(place), opened(tmp_path / "other.db")
    with in_the_middle(ledger._store):
        other.charge(TENTH, "f")
        assert other.spent == TENTH
    assert ledger.spent == TENTH


def test_a_fork_waits_for_charges_to_end(place: Place) -> None:
    """Else a child would have a connection in the middle of a transaction of its parent."""
    ledger = opened(place)
    with in_the_middle(ledger._store):
        thread, found = in_thread(lambda: in_child(lambda: 5))
        thread.join(0.2)
        assert not found
    thread.join(SOON)
    assert found == [5]

    def spend() -> int:
        ledger.charge(TENTH, "child")
        return 0

    assert in_child(spend) == 0
    assert ledger.spent == dp.PureDP("0.2")


def test_a_fork_during_the_first_use_of_a_ledger_waits_for_it(tmp_path: Path) -> None:
    """And that does not wait for the fork: it looks where else the ledger is used."""
    place = tmp_path / "budget.db"
    opened(place)
    program = f"""
import os, threading, time
from tests.ledger.ledgers import store_at
from pathlib import Path

store, begun = store_at(Path({str(place)!r})), threading.Event()
real = store._claim

def late(identity):
    begun.set()
    time.sleep(0.5)  # the fork waits for the turn by now
    real(identity)

store._claim = late
thread = threading.Thread(target=store.read, daemon=True)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=SOON)


def test_a_child_that_does_nothing_keeps_no_lock_of_a_killed_parent(place: Place) -> None:
    opened(place)
    ended, done = os.pipe(), os.pipe()

    def killed() -> int:
        ledger = opened(place)
        if not os.fork():
            os.close(done[1])
            os.write(ended[1], b".")
            os.read(done[0], 1)
            os._exit(0)
        with in_the_middle(ledger._store):
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert in_child(killed) == -signal.SIGKILL
    assert os.read(ended[0], 1)
    try:
        opened(place, timeout=1.0).charge(TENTH, "f")
    finally:
        for end in (*ended, *done):
            os.close(end)


def test_a_forked_process_has_a_connection_of_its_own(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(place)
    ledger.charge(TENTH, "parent")
    kept = ledger._store._connection  # type: ignore[attr-defined]

    def spend() -> int:
        ledger.charge(TENTH, "child")
        return 7 if ledger._store._connection is not kept else 8  # type: ignore[attr-defined]

    assert in_child(spend) == 7
    assert ledger._store._connection is kept  # type: ignore[attr-defined]
    assert ledger.spent == dp.PureDP("0.2")


def test_parent_and_children_spend_at_the_same_time(place: Place) -> None:
    ledger = opened(place, dp.PureDP(100))
    running = []
    for _ in range(3):
        process = os.fork()
        if not process:
            code = 99
            with suppress(BaseException):
                for _ in range(10):
                    ledger.settle(ledger.charge(TENTH, "f", UNIT), "released")
                code = 0
            os._exit(code)
        running.append(process)
    for _ in range(10):
        ledger.settle(ledger.charge(TENTH, "f", UNIT), "released")
    assert {os.waitpid(process, 0)[1] for process in running} == {0}
    assert ledger.spent == dp.PureDP(4)
    verify(place)


# -- errors in the middle ---------------------------------------------------------------------


def test_a_file_that_is_moved_during_a_charge_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After SQLite has looked for the last time: nobody would find the charge."""
    path = tmp_path / "budget.db"
    ledger = opened(path)
    real = HeadFile.open

    def then_moved(witness: HeadFile) -> Any:
        path.rename(tmp_path / "elsewhere.db")
        return real(witness)

    monkeypatch.setattr(HeadFile, "open", then_moved)
    with pytest.raises(dp.LedgerError, match="moved, deleted or replaced"):
        ledger.charge(TENTH, "f")
    (tmp_path / "elsewhere.db").rename(path)
    assert opened(path).spent == TENTH  # too much is counted, never too little


def test_a_file_that_is_gone_is_not_made_anew_by_a_new_connection(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = opened(path)
    ledger._store._leave()  # as in a forked process
    path.unlink()
    with pytest.raises(dp.LedgerError, match="moved, deleted or replaced"):
        ledger.charge(TENTH, "f")
    assert not path.exists()


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_while_the_sums_are_extended_is_forgotten_nowhere(
    place: Place, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """The record is there; the copy in memory may be half of it."""
    monkeypatch.setattr(store, "SHORT", 0)  # else everything is read again in any case
    ledger = opened(place)
    ledger.charge(TENTH, "f")
    chain = ledger._store.read()
    real = type(chain)._apply

    def interrupted(*arguments: Any) -> None:
        if after:
            real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(chain), "_apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge(TENTH, "f")
    monkeypatch.setattr(type(chain), "_apply", real)
    assert ledger.spent == dp.PureDP("0.2")
    assert len(ledger.entries) == 2
    ledger.charge(TENTH, "f")
    assert ledger.spent == opened(place).spent == dp.PureDP("0.3")


def test_other_code_of_a_process_may_lock_the_file_as_it_likes(tmp_path: Path) -> None:
    """SQLite's own locks still keep others out who know nothing of ours."""
    path = tmp_path / "budget.db"
    ledger = opened(path, timeout=0.05)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(dp.LedgerError, match="locked by another process"):
        ledger.charge(TENTH, "f")
    holder.execute("ROLLBACK")
    holder.close()
    ledger.charge(TENTH, "f")
    assert sql(path, "SELECT count(*) FROM records WHERE act = 'charged'") == [(1,)]


def test_locks_of_files_that_are_not_used_any_more_are_closed(tmp_path: Path) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("open files cannot be counted here")
    before = files()
    for n in range(30):
        store_at(tmp_path / f"{n}.db").read()
    deadline = time.monotonic() + SOON
    while files() > before + 5:
        assert time.monotonic() < deadline
