"""Which ledger is where: two places with one identity are copies, and both would be spent.

A ledger has its identity from the first record on. Copies of it cannot be told from it by their
content, so this only finds those that one process uses, or that lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock

from dpframe.errors import LedgerError

_LOCK = Lock()
"""Taken by who has the turn of a ledger only: so nobody has it while the process forks, and nobody
who forks has to wait for it.
"""

_USED: dict[str, tuple[Hashable, str, Callable[[], bool]]] = {}


def claim(identity: str, place: Hashable, where: str, is_there: Callable[[], bool]) -> None:
    """Remember where a ledger is, and refuse a second place; for who has the turn of the ledger.

    Parameters
    ----------
    identity
        Of the ledger.
    place
        Equal for equal places, whatever they are called.
    where
        The place, for people.
    is_there
        Whether something is still at this place; a ledger that was moved is elsewhere.

    Raises
    ------
    LedgerError
        When this process has used the ledger at another place, where it still is.
    """
    with _LOCK:
        known = _USED.get(identity)
        if known is not None and known[0] != place and known[2]():
            raise two_of_one(identity, known[1], where)
        _USED[identity] = (place, where, is_there)


def require_alone(identity: str, path: Path) -> None:
    """Refuse a ledger beside which another head file has the same identity.

    Raises
    ------
    LedgerError
        With the name of the other ledger.
    """
    for other in path.parent.glob("*.head"):
        ledger = other.with_suffix("")
        if ledger == path or not ledger.is_file() or ledger.stat().st_size == 0:
            continue
        try:
            with other.open("rb") as file:
                words = file.read(1000).split()
        except OSError:
            continue
        if len(words) == 4 and words[2] == identity.encode():
            raise two_of_one(identity, str(ledger), str(path))


def two_of_one(identity: str, first: str, second: str) -> LedgerError:
    """The refusal of a copy."""
    return LedgerError(
        f"{first!r} and {second!r} are copies of one ledger ({identity[:16]}), and what is charged "
        "to one is not charged to the other",
        remedy="find out which one has every release, and put the other and its head file into a "
        "place of their own; to go on elsewhere use `dpframe ledger move`",
    )
