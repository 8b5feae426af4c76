"""The lock of a ledger's file, which nothing else that happens in the process can drop.

SQLite locks with POSIX record locks. They belong to the process: when any part of it closes the
file, be it a backup or a checksum in another thread, all of them are gone, and SQLite does not
notice. A second process then writes at the same time, and one of two charges is lost. So every
transaction holds a lock of its own around SQLite's:

- On Linux a lock of an open file description (``F_OFD_SETLK``) on the ledger's file itself, at a
  byte far behind its end, where SQLite has no locks. It is dropped only by closing that
  description, which no other code has, and it is the same lock for every path to the file. Over
  NFS the server keeps
it. - On other systems with ``flock`` the lock is on a second file, because there the two kinds of
  locks of one file would shut each other out.
- On Windows SQLite's locks belong to handles, and closing another handle leaves them alone.

Two bytes are locked. Who writes has the second one alone, who reads shares it; and both pass
through the first, so that who waits to write is not overtaken by readers without end.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakValueDictionary, finalize

from dpframe.errors import LedgerError
from dpframe.ledger.releasing import release_after
from dpframe.ledger.turns import REGISTER, Turn
from dpframe.ledger.waiting import wait

if sys.platform != "win32":
    import fcntl

GATE, MAIN = 1 << 62, (1 << 62) + 1
"""The bytes; SQLite's are at 2**30, and no file is that long."""

BY_DESCRIPTION = sys.platform == "linux" and struct.calcsize("P") == 8
"""Whether locks of open file descriptions are to be had, in the layout that is used here."""

Identity = tuple[int, int]

R = TypeVar("R")


def identity(path: Path) -> Identity:
    """The identity of a file, for any path to it.

    Raises
    ------
    LedgerError
        When it has several names, because SQLite would recover only one of them after a crash.
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
        self._process = os.getpid()
        self._files: dict[Path, int] = {}
        finalize(self, _close_all, self._files)
        self._open(path, create)
        self.file = identity(path)

    def run(self, work: Callable[[], R], *, writing: bool, timeout: float) -> R:
        """Do some work while everybody is kept out who writes, or everybody.

        Raises
        ------
        LedgerError
            When others have it for longer than `timeout` seconds.
        """
        return self.turn.run(lambda: self._run(work, writing, timeout))

    def _run(self, work: Callable[[], R], writing: bool, timeout: float) -> R:
        process = os.getpid()
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
            if process == os.getpid():  # a fork within is without it
                with suppress(OSError):  # a file system without locks: nothing is locked
                    self._unlock()
                self._mode = None

        return release_after(locked, unlock)

    def _reopen(self) -> None:
        """A description that was inherited is the parent's: what it locks, the child has too."""
        self._mode = None
        _close_all(self._files)
        self._open(self._path, create=False)
        self._process = os.getpid()

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
            if _is_at(file, beside):
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
        if beside in self._files and not _is_at(self._files[beside], beside):
            raise LedgerError(
                f"the lock {str(beside)!r} was moved or deleted while it was in use",
                remedy="leave the lock file where it is, and run again; nothing was released",
            )


def _set(file: int, kind: int, byte: int, length: int = 1) -> None:
    wanted = struct.pack("hhqqi", kind, os.SEEK_SET, byte, length, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


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
