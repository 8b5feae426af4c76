"""Which thread of a process may use a ledger, and nobody's turn while the process forks."""

from __future__ import annotations

import os
from itertools import count
from threading import RLock
from weakref import WeakSet

REGISTER = RLock()
"""Held while turns are made and while the process forks; nobody who has a turn waits for it."""

_ALL: WeakSet[Turn] = WeakSet()
_NUMBERS = count()


class Turn:
    """The turn of one thread at one ledger.

    A connection has one user, and a forked child must not begin in the middle of a transaction of
    its parent. So each ledger has a turn of its own, and whoever forks waits for all of them.

    Whoever needs two takes the lower `number` first, as forking does.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        with REGISTER:
            self.number = next(_NUMBERS)
            _ALL.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Fork:
    """What is held while the process forks."""

    def __init__(self) -> None:
        self._held: list[Turn] = []

    def before(self) -> None:
        REGISTER.acquire()
        turns = sorted(_ALL, key=lambda turn: turn.number)
        for turn in turns:
            turn.__enter__()
        self._held = turns

    def after(self) -> None:
        turns, self._held = self._held, []
        for turn in turns:
            turn.__exit__()
        REGISTER.release()


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(
        before=_fork.before, after_in_parent=_fork.after, after_in_child=_fork.after
    )
