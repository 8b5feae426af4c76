"""A ledger in a file: SQLite, its locks, and a head file next to it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakValueDictionary, finalize

from dpframe.errors import LedgerError
from dpframe.ledger.chain import RESTORE, broken
from dpframe.ledger.contents import FolderContents, is_at
from dpframe.ledger.head_file import HeadFile, claim, require_alone
from dpframe.ledger.locks import REGISTER, STEP, Turn, release_after, this_process, wait
from dpframe.ledger.record import COLUMNS, Head, Row, Seal, no_ledger
from dpframe.ledger.store import SqlTables, Store

# The lock of a ledger's file, which nothing else that happens in the process can drop.
#
# SQLite locks with POSIX record locks. They belong to the process: when any part of it closes the
# file, be it a backup or a checksum in another thread, all of them are gone, and SQLite does not
# notice. A second process then writes at the same time, and one of two charges is lost. So every
# transaction holds a lock of its own around SQLite's.
#
# On Linux it is a lock of an open file description (``F_OFD_SETLK``) on the ledger's file itself,
# at a byte far behind its end, where SQLite has no locks. It is dropped only by closing that
# description, which no other code has, and it is the same lock for every path to the file. Over
# NFS the server keeps it. On other systems with ``flock`` the lock is on a second file, because
# there the two kinds of locks of one file would shut each other out. On Windows SQLite's locks
# belong to handles, and closing another handle leaves them alone.
#
# Two bytes are locked. Who writes has the second one alone, who reads shares it; and both pass
# through the first, so that who waits to write is not overtaken by readers without end.

if sys.platform != "win32":
    import fcntl

GATE, MAIN = 1 << 62, (1 << 62) + 1
"""The bytes; SQLite's are at 2**30, and no file is that long."""

BY_DESCRIPTION = sys.platform == "linux" and struct.calcsize("P") == 8
"""Whether locks of open file descriptions are to be had, in the layout that is used here."""

Identity = tuple[int, int]

R = TypeVar("R")


def identity(path: Path) -> Identity:
    """The identity of a file, for any path to it. Raises `LedgerError` when it has several names,
    because SQLite would recover only one of them after a crash.
    """
    found = path.stat()
    if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
        raise LedgerError(
            f"the ledger {str(path)!r} has {found.st_nlink} names (hard links)",
            why="SQLite finds what a crash leaves behind under one of them only",
            remedy="delete all names but one",
        )
    return found.st_dev, found.st_ino


class FileLock:
    """The lock of the file at `path`, for all stores of this process that use it."""

    def __init__(self, path: Path, create: bool) -> None:
        self.turn = Turn()
        self._path = path
        self._mode: Literal["reading", "writing"] | None = None
        self._process = this_process()
        self._files: dict[Path, int] = {}
        finalize(self, _close_all, self._files)
        self._open(path, create)
        self.file = identity(path)

    def run(self, work: Callable[[], R], *, writing: bool, timeout: float) -> R:
        """Do some work while everybody is kept out who writes, or everybody. Raises `LedgerError`
        when others have it for longer than `timeout` seconds.
        """
        return self.turn.run(lambda: self._run(work, writing, timeout))

    def _run(self, work: Callable[[], R], writing: bool, timeout: float) -> R:
        process = this_process()
        if self._process != process:
            self._reopen()
        if self._mode is not None:  # this thread has it, further out
            if writing and self._mode == "reading":
                raise busy(self._path)
            return work()

        def locked() -> R:
            self._lock(writing, time.monotonic() + timeout)
            self._mode = "writing" if writing else "reading"
            return work()

        def unlock() -> None:
            if process == this_process():  # a fork within is without it
                with suppress(OSError):  # a file system without locks: nothing is locked
                    self._unlock()
                self._mode = None

        return release_after(locked, unlock)

    def _reopen(self) -> None:
        """A description that was inherited is the parent's: what it locks, the child has too."""
        self._mode = None
        _close_all(self._files)
        self._open(self._path, create=False)
        self._process = this_process()

    def _open(self, path: Path, create: bool) -> None:
        flags = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | (os.O_CREAT if create else 0)
        try:
            self._files[path] = os.open(path, flags, 0o644)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EROFS, errno.EPERM):
                raise
            self._files[path] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    # -- the kinds of locks -----------------------------------------------------------------------

    def _lock(self, writing: bool, deadline: float) -> None:
        if sys.platform == "win32":
            return
        if not BY_DESCRIPTION:
            self._lock_beside(writing, deadline)
            return
        file = self._files[self._path]
        kind = fcntl.F_WRLCK if writing else fcntl.F_RDLCK
        self._wait(lambda: _set(file, kind, GATE), deadline)
        try:
            self._wait(lambda: _set(file, kind, MAIN), deadline)
        finally:  # the gate alone: a process that ends both ends both
            _set(file, fcntl.F_UNLCK, GATE)

    def _lock_beside(self, writing: bool, deadline: float) -> None:
        """If the file is deleted, the next process notices, and so does the one that holds the
        lock."""
        beside = self._path.with_name(self._path.name + ".lock")
        kind = (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB
        while True:
            if beside not in self._files:
                self._open(beside, create=True)
            file = self._files[beside]
            self._wait(lambda file=file: fcntl.flock(file, kind), deadline)  # type: ignore[misc]
            if is_at(file, beside):
                return
            os.close(self._files.pop(beside))

    def _unlock(self) -> None:
        """Give up what is locked, also where locking was interrupted; nothing where nothing is."""
        if sys.platform == "win32":
            return
        beside = self._path.with_name(self._path.name + ".lock")
        file = self._files.get(self._path if BY_DESCRIPTION else beside)
        if file is None:
            return
        if BY_DESCRIPTION:
            _set(file, fcntl.F_UNLCK, GATE, length=2)
        else:
            fcntl.flock(file, fcntl.LOCK_UN)

    def _wait(self, attempt: Callable[[], None], deadline: float) -> None:
        try:
            got = wait(attempt, deadline, self.turn.sleep)
        except OSError as error:
            raise _unlockable(self._path, error) from None
        if not got:
            raise busy(self._path)

    def require_kept(self) -> None:
        """Refuse to continue if the second file that is locked was removed."""
        beside = self._path.with_name(self._path.name + ".lock")
        if beside in self._files and not is_at(self._files[beside], beside):
            raise LedgerError(
                f"the lock {str(beside)!r} was moved or deleted while it was in use",
                remedy="leave the lock file where it is, and run again; nothing was released",
            )


def _set(file: int, kind: int, byte: int, length: int = 1) -> None:
    wanted = struct.pack("hhqqi", kind, os.SEEK_SET, byte, length, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)


def _close_all(files: dict[Path, int]) -> None:
    while files:
        os.close(files.popitem()[1])


_LOCKS: WeakValueDictionary[Identity, FileLock] = WeakValueDictionary()


def lock_of(path: Path, create: bool) -> FileLock:
    """The lock of a file, one for each file of a process.

    Closing a file drops SQLite's own locks, so a file that is in use is not opened a second time.
    """
    return REGISTER.run(lambda: _known_lock(path, create))


def _known_lock(path: Path, create: bool) -> FileLock:
    try:
        lock = _LOCKS.get(identity(path))
    except FileNotFoundError:
        lock = None
    if lock is None:
        lock = FileLock(path, create)
        _LOCKS[lock.file] = lock
    return lock


def _close_inherited() -> None:
    """A lock is held until its last description is closed: those of a child that never uses the
    ledger would keep the lock of a parent that was killed.
    """
    for lock in list(_LOCKS.values()):
        _close_all(lock._files)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)


def busy(path: Path) -> LedgerError:
    """The refusal after a long wait."""
    return LedgerError(
        f"the ledger {str(path)!r} is locked by another process",
        remedy=("try again later; nothing was charged", "end the process that holds it"),
    )


def _unlockable(path: Path, error: OSError) -> LedgerError:
    if error.errno == errno.EBADF:  # it could only be opened for reading
        return LedgerError(
            f"the ledger {str(path)!r} cannot be written",
            remedy="allow this user to write the file and its directory; nothing was released",
        )
    return LedgerError(
        f"the ledger {str(path)!r} cannot be locked: {error.strerror or type(error).__name__}",
        remedy=("keep it on a file system with locks", "keep it in PostgreSQL"),
    )


# The tables of a ledger's file, and every statement that reads or writes them.

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

_INSERT = f"INSERT INTO records VALUES ({', '.join('?' * len(COLUMNS))})"


class SqliteTables(SqlTables):
    """The tables of the file at `path`, within a transaction of `connection`."""

    RECORDS, HEAD, MARK, HAS_PART = "records", "head", "?", "instr(why, ?) > 0"

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def exist(self) -> bool:
        found = self.fetch("SELECT name, sql FROM sqlite_master")
        mark = self.fetch("PRAGMA application_id")[0][0]
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
        version: int = self.fetch("PRAGMA data_version")[0][0]
        return version

    def append(self, rows: Sequence[Row], head: Head | None, *, new: bool = False) -> None:
        self._connection.executemany(_INSERT, rows)
        if head is not None:
            values = (head.seq, head.hash, head.seal)
            self._connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", values)

    def require_sound(self) -> None:
        if self.fetch("PRAGMA integrity_check") != [("ok",)]:
            raise broken("the file is damaged")

    def fetch(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()


# What went wrong with a ledger's file, in words.

_CHECK = "check the file and its disk, and run again; nothing was released"
_KINDS: dict[str, tuple[str, str | tuple[str, str]]] = {
    "SQLITE_BUSY": (
        "is locked by another process",
        ("try again later; nothing was charged", "end the process that holds it"),
    ),
    "SQLITE_FULL": (
        "cannot grow: the disk is full",
        "make room, and run again; nothing was released",
    ),
    "SQLITE_READONLY": (
        "cannot be written",
        "allow this user to write the file and its directory; nothing was released",
    ),
    "SQLITE_CANTOPEN": (
        "cannot be opened",
        ("correct the path", "allow this user to write the file and its folder"),
    ),
    "SQLITE_CORRUPT": ("is damaged", RESTORE),
    "SQLITE_NOTADB": ("is not a ledger, or is damaged", ("write the path of a ledger", RESTORE[0])),
}


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite and the file system into a LedgerError."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        kind = "_".join(name.split("_")[:2])  # SQLITE_READONLY_DBMOVED is a kind of READONLY
        what, remedy = _KINDS.get(kind, (f"failed: {error}", _CHECK))
        raise LedgerError(f"the ledger {str(path)!r} {what}", remedy=remedy) from None
    except OSError as error:
        raise LedgerError(
            f"the ledger {str(path)!r} failed: {error.strerror or type(error).__name__}",
            remedy=_CHECK,
        ) from None


# A ledger's file: SQLite, and a head file next to it.
#
# `PRAGMA data_version` shows whether another connection has written. If not, nothing needs to be
# verified. If so and the head has moved, the new records are verified, otherwise everything.
#
# Durability: the store uses a rollback journal with ``synchronous=EXTRA``, so a commit is on the
# disk before it returns. The file is complete whenever no process is writing; in WAL mode a copy of
# the file alone would lack the latest charges.


class SqliteStore(Store):
    """The file at `path`, with a head file next to it."""

    counts_appends = True

    def __init__(
        self,
        path: Path,
        seal: Seal,
        *,
        pin: Path | None = None,  # The path of one more head file, if any
        timeout: float = 15.0,  # Seconds to wait for a lock
        create: bool = True,  # Whether a missing file may be created
    ) -> None:
        self.path = Path(os.path.realpath(path))
        beside = HeadFile(
            self.path.with_name(self.path.name + ".head"), seal, alone=True, required=True
        )
        pinned = () if pin is None else (HeadFile(Path(os.path.realpath(pin)), seal, alone=True),)
        super().__init__(seal, (beside, *pinned))
        self._timeout = timeout
        self._create = create
        self._connection: sqlite3.Connection | None = None
        self._lock: FileLock | None = None

    @property
    def where(self) -> str:
        return str(self.path)

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.path)

    @property
    def contents(self) -> FolderContents:
        return FolderContents(self.path)

    # -- transactions ---------------------------------------------------------------------------

    def _alone(self, work: Callable[[], R], *, writing: bool) -> R:
        return self._locked().run(work, writing=writing, timeout=self._timeout)

    @property
    def turn(self) -> Turn:
        return self._locked().turn

    def _claim(self, identity: str) -> None:
        file = self._locked().file
        claim(identity, file, self.where, lambda: _is_still_at(self.path, file))
        require_alone(identity, self.path)

    def _locked(self) -> FileLock:
        if self._lock is None:
            self._require_place()
            self._lock = lock_of(self.path, self._create)
        return self._lock

    def _begin(self, writing: bool) -> SqliteTables:
        connection = self._connected()
        self._wait_for_lock(connection, "IMMEDIATE" if writing else "DEFERRED")
        self._require_same_file()
        return SqliteTables(connection, self.path)

    def _wait_for_lock(self, connection: sqlite3.Connection, kind: str) -> None:
        """Wait in short steps: SQLite's own steps grow longer, and a process that waits long
        would rarely find the lock free among many writers.
        """
        deadline = time.monotonic() + self._timeout
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    connection.execute(f"BEGIN {kind}")
                    return
                except sqlite3.OperationalError as error:
                    busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
                    if not busy or time.monotonic() > deadline:
                        raise
                    self.turn.sleep(STEP)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._timeout)}")

    def _commit(self) -> None:
        self._connected().execute("COMMIT")
        self._require_same_file()

    def _rollback(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    # -- the connection -------------------------------------------------------------------------

    def _leave(self) -> None:
        self._connection = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._require_same_file()  # SQLite would make a new one
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        finalize(self, connection.close)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        return connection

    def _require_place(self) -> None:
        if not self._create and not self.path.exists():
            raise no_ledger(self.path)
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise LedgerError(
                f"the ledger {str(self.path)!r} cannot be opened: "
                + ("it is a directory" if self.path.is_dir() else "its directory does not exist"),
                remedy='give the path of a file, such as ledger="budget.db"',
            )

    def _require_same_file(self) -> None:
        """A file that was moved or deleted can still be written to, but the result would be
        lost."""
        try:
            same = self._lock is not None and identity(self.path) == self._lock.file
        except FileNotFoundError:
            same = False
        if not same:
            raise LedgerError(
                f"the ledger {str(self.path)!r} was moved, deleted or replaced while it was in use",
                remedy="put it back; nothing was released",
            )
        if self._lock is not None:
            self._lock.require_kept()


def _is_still_at(path: Path, file: Identity) -> bool:
    try:
        return identity(path) == file
    except (OSError, LedgerError):
        return False
