"""Work that holds something, and leaves nothing held wherever it is interrupted.

Python may raise `KeyboardInterrupt` between any two instructions: also after a lock was acquired
and before ``with`` or ``try`` knows of it, and in the middle of a ``finally``. So nothing here is
handed out as held. Who needs a lock hands over what is to be done with it, and one frame acquires,
does it and releases. The resource itself knows whether it is held, and releasing it again does
nothing. So it is enough to release twice, because the second time completes a release that an
interrupt cut short.

A traceback that is kept holds nothing either: no lock waits for a finaliser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock, get_ident
from typing import Protocol, TypeVar

R = TypeVar("R")


class Closable(Protocol):
    """What may be closed any number of times."""

    def close(self) -> object:
        """Close it."""
        ...


def release_after(work: Callable[[], R], release: Callable[[], object]) -> R:
    """What some work returns, after a release that an interrupt at any place does not prevent.

    Parameters
    ----------
    work
        Acquires something, and uses it.
    release
        Releases what is held of it. It does nothing where nothing is, and goes on where a call of
        it was interrupted.
    """
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
