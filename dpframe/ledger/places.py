"""Which ledger is where: two places with one identity are copies, and both would be spent.

A ledger has its identity from the first record on. Copies of it have the same content, so this
only finds those that one process uses, or that are in the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path

from dpframe.errors import LedgerError
from dpframe.ledger.releasing import Exclusive

_HEAD = ".head"

_LOCK = Exclusive()
"""Only the thread with the turn of a ledger takes it. So no thread has it while the process
forks, and a fork does not wait for it.
"""

_USED: dict[str, tuple[Hashable, str, Callable[[], bool]]] = {}


def claim(identity: str, place: Hashable, where: str, is_there: Callable[[], bool]) -> None:
    """Remember where a ledger is, and refuse a second place; for who has the turn of the ledger.

    Parameters
    ----------
    identity
        The identity of the ledger.
    place
        Equal for equal places, under any name.
    where
        The place, for people.
    is_there
        Whether something is still at this place; a ledger that was moved is elsewhere.

    Raises
    ------
    LedgerError
        When this process has used the ledger at another place, where it still is.
    """

    def claiming() -> None:
        known = _USED.get(identity)
        if known is not None and known[0] != place and known[2]():
            raise two_of_one(identity, known[1], where)
        _USED[identity] = (place, where, is_there)

    _LOCK.run(claiming)


def require_alone(identity: str, path: Path) -> None:
    """Refuse a ledger if another head file next to it has the same identity.

    Every head file is read. A copy may have any name, and size and times show nothing, because
    all head files have the same length and are written at every charge. Earlier reads are not
    remembered, because a file may be copied over another within one tick of its times. So each
    one costs no more than opening it, and only those with the same identity are checked for their
    ledger.

    Raises
    ------
    LedgerError
        With the name of the other ledger.
    """
    wanted, own = identity.encode(), f"{path.name}{_HEAD}"
    try:
        names = os.listdir(path.parent)
    except OSError:  # a folder that may be used and not listed
        return
    for name in names:
        if not name.endswith(_HEAD) or name in (own, _HEAD):
            continue
        words = _start_of(os.path.join(path.parent, name)).split()
        if len(words) != 4 or words[2] != wanted:
            continue
        ledger = path.with_name(name.removesuffix(_HEAD))
        if ledger.is_file() and ledger.stat().st_size > 0:
            raise two_of_one(identity, str(ledger), str(path))


def _start_of(path: str) -> bytes:
    """What a file begins with; nothing where it cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return b""
    try:
        return os.read(number, 1000)
    except OSError:
        return b""
    finally:
        os.close(number)


def two_of_one(identity: str, first: str, second: str) -> LedgerError:
    """The refusal of a copy."""
    return LedgerError(
        f"{first!r} and {second!r} are copies of one ledger ({identity[:16]})",
        why="a charge to one is not charged to the other",
        remedy=(
            "keep the copy that has every release, and move the other one away with its head file",
            "to continue at another place, use `dpframe ledger move`",
        ),
    )
