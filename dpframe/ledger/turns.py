"""Which thread of a process may use a ledger, and no transaction while the process forks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from threading import RLock
from typing import TypeVar
from weakref import WeakSet

from dpframe.ledger.releasing import Exclusive, give_up, release_after

R = TypeVar("R")

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
        os.register_at_fork(after_in_parent=_fork.let_go, after_in_child=_fork.in_child)
