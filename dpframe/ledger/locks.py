"""Locks of a process and of the operating system, and work that leaves nothing held."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable
from itertools import count
from threading import RLock, get_ident
from typing import Protocol, TypeVar
from weakref import WeakSet

# Work that holds something, and leaves nothing held wherever it is interrupted.
#
# Python may raise `KeyboardInterrupt` between any two instructions: also after a lock was acquired
# and before ``with`` or ``try`` knows of it, and in the middle of a ``finally``. So nothing here is
# handed out as held. Who needs a lock hands over what is to be done with it, and one frame
# acquires, does it and releases. The resource itself knows whether it is held, and releasing it
# again does nothing. So it is enough to release twice, because the second time completes a release
# that an interrupt cut short.
#
# A traceback that is kept holds nothing either: no lock waits for a finaliser.

R = TypeVar("R")

_forks = 0
"""How many forks lie between the first process and this one."""


def this_process() -> tuple[int, int]:
    """This process, as a value that no fork of it ever has. Its number alone is not enough, because
    the system gives the number of a process that has ended to another one.
    """
    return os.getpid(), _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


class Closable(Protocol):
    """What may be closed any number of times."""

    def close(self) -> object:
        """Close it."""
        ...


def release_after(
    work: Callable[[], R],  # Acquires something, and uses it
    # Releases what is held of it. It does nothing where nothing is, and goes on where a call of it
    # was interrupted.
    release: Callable[[], object],
) -> R:
    """What some work returns, after a release that an interrupt at any place does not prevent."""
    try:
        try:
            return work()
        finally:
            release()
    finally:
        release()


def close_all(files: Iterable[Closable]) -> None:
    """Close files, which may be closed already."""
    for file in files:
        file.close()


class Exclusive:
    """What one thread does at a time; a thread may do it within itself."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._owner: int | None = None

    @property
    def is_own(self) -> bool:
        """Whether this thread has it."""
        return self._owner == get_ident()

    def run(self, work: Callable[[], R]) -> R:
        """Do some work when no other thread does any."""
        if self.is_own:
            return work()

        def alone() -> R:
            self._acquire()
            return work()

        return release_after(alone, self._release)

    def _acquire(self) -> None:
        self._lock.acquire()
        self._owner = get_ident()

    def _release(self) -> None:
        if self.is_own:
            self._owner = None
        give_up(self._lock)


def give_up(lock: RLock) -> None:
    """Release a lock if this thread has it, which the lock alone knows for certain."""
    if lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks it
        lock.release()


# Waiting for a lock of the operating system, with an end.

STEP = 0.004
"""Seconds between two attempts to get a lock."""

_TAKEN = (errno.EACCES, errno.EAGAIN)


def wait(
    attempt: Callable[[], None], deadline: float, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Whether an attempt succeeded before the deadline of `time.monotonic`.

    In short steps of equal length, so that who waits long is as likely to be next; `sleep` takes
    the seconds of a step. Raises `OSError` when the lock cannot be had at all.
    """
    while True:
        try:
            attempt()
            return True
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            if time.monotonic() > deadline:
                return False
        sleep(STEP)


# Which thread of a process may use a ledger, and no transaction while the process forks.

REGISTER = Exclusive()
"""Held while turns are made and while the process forks; no thread with a turn waits for it."""

_ALL: WeakSet[Turn] = WeakSet()
_NUMBERS = count()


class Turn(Exclusive):
    """The turn of one thread at one ledger.

    A connection has one user, and a forked child must not begin in the middle of a transaction of
    its parent. So each ledger has its own turn, and a fork waits for all of them. It does not
    wait for threads that themselves wait for a lock of another process, before they read or write
    anything.

    A thread that needs two takes the lower `number` first, as forking does.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steady = RLock()  # held by who has the turn, but while it waits; forks need it
        REGISTER.run(self._register)

    def _register(self) -> None:
        self.number = next(_NUMBERS)
        _ALL.add(self)

    def pause(self, work: Callable[[], R]) -> R:
        """Wait for another process, by some work in the middle of a turn, while the process may
        fork. The child is without the thread that waits, and so without its turn.
        """
        if not self.is_own:
            return work()

        def paused() -> R:
            give_up(self._steady)
            return work()

        return release_after(paused, self._steady_again)

    def sleep(self, seconds: float) -> None:
        """Wait this long, while the process may fork."""
        self.pause(lambda: time.sleep(seconds))

    def _acquire(self) -> None:
        super()._acquire()
        self._steady.acquire()

    def _release(self) -> None:
        give_up(self._steady)
        super()._release()

    def _steady_again(self) -> None:
        give_up(self._steady)  # where it is held already
        self._steady.acquire()

    def before_fork(self) -> None:
        """Wait until another thread that has the turn is done or waits."""
        if not self.is_own:
            self._steady_again()

    def after_fork(self) -> None:
        """Let other threads go on."""
        if not self.is_own:
            give_up(self._steady)

    def in_child(self) -> None:
        """Take the turn from a thread that the child does not have."""
        if not self.is_own:
            self._lock, self._owner, self._steady = RLock(), None, RLock()


class _Fork:
    """The turns held while the process forks, even if an error is raised here."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def before(self) -> None:
        try:
            self._hold()
        except BaseException:
            self._hold()
            raise

    def _hold(self) -> None:
        give_up(REGISTER._lock)
        REGISTER._lock.acquire()
        self._turns = sorted(_ALL, key=lambda turn: turn.number)
        for turn in self._turns:
            turn.before_fork()

    def in_child(self) -> None:
        for turn in list(_ALL):
            turn.in_child()
        self.let_go()

    def let_go(self) -> None:
        """Let other threads go on; nothing where they do."""
        for turn in self._turns:
            turn.after_fork()
        self._turns = []
        give_up(REGISTER._lock)


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(before=_fork.before)
    for _ in range(2):  # the second one ends what an interrupt of the first one left
        os.register_at_fork(after_in_child=_count_fork)
        os.register_at_fork(after_in_parent=_fork.let_go, after_in_child=_fork.in_child)
