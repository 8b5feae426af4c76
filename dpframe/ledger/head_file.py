"""Which ledger is where: its head file, and places that hold copies of one ledger."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from dpframe.errors import LedgerError
from dpframe.ledger.chain import broken
from dpframe.ledger.contents import sync_folder
from dpframe.ledger.locks import Exclusive, close_all, release_after, wait
from dpframe.ledger.record import Seal

# Which ledger is where: two places with one identity are copies, and both would be spent.
#
# A ledger has its identity from the first record on. Copies of it have the same content, so this
# only finds those that one process uses, or that are in the same folder.

_HEAD = ".head"

_LOCK = Exclusive()
"""Only the thread with the turn of a ledger takes it. So no thread has it while the process
forks, and a fork does not wait for it.
"""

_USED: dict[str, tuple[Hashable, str, Callable[[], bool]]] = {}


def claim(
    identity: str,  # The identity of the ledger
    place: Hashable,  # Equal for equal places, under any name
    where: str,  # The place, for people
    # Whether something is still at this place; a ledger that was moved is elsewhere.
    is_there: Callable[[], bool],
) -> None:
    """Remember where a ledger is, and refuse a second place; for who has the turn of the ledger.
    Raises `LedgerError` when this process has used the ledger at another place, where it still is.
    """

    def claiming() -> None:
        known = _USED.get(identity)
        if known is not None and known[0] != place and known[2]():
            raise two_of_one(identity, known[1], where)
        _USED[identity] = (place, where, is_there)

    _LOCK.run(claiming)


def require_alone(identity: str, path: Path) -> None:
    """Refuse a ledger if another head file next to it has the same identity.

    Every head file is read. A copy may have any name, and size and times show nothing, because all
    head files have the same length and are written at every charge. Earlier reads are not
    remembered, because a file may be copied over another within one tick of its times. So each one
    costs no more than opening it, and only those with the same identity are checked for their
    ledger. Raises `LedgerError` with the name of the other ledger.
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


# The head file of a ledger: it remembers which ledger it belongs to, and how far that had come.
#
# The head inside the ledger shows that records were taken away; this one shows that the whole file
# was, or that an older copy took its place. It is next to the ledger's file, and at a place that
# the environment names, which is the only one for a server. It is compared at every use.
#
# It is there before the first record is, with the number 0, and written after each commit. So it
# may lag behind the ledger after a crash, and is never ahead of it.

if sys.platform != "win32":
    import fcntl

MODE = 0o644
"""Who may do what with a new head file, as with a new ledger."""

TIMEOUT = 15.0
"""Seconds to wait for others who read or write the file; it takes them microseconds."""

R = TypeVar("R")

_NO_HASH = "-" * 64
"""The hash of a ledger without records."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a ledger had come when its head file was written."""

    seq: int  # The number of its last record; 0 where the first one was about to be written
    hash: str  # Of that record
    identity: str | None  # The identity of the ledger; None where an earlier version wrote the file


class HeadFile:
    """The head file at `path`."""

    def __init__(
        self,
        path: Path,
        seal: Seal,
        *,
        # Whether its writer holds a lock of the ledger meanwhile, so that no newer head can exist.
        # Otherwise processes of this machine may write it in another order than they charged.
        alone: bool,
        required: bool = False,  # Whether a ledger that has records must have it
    ) -> None:
        self.path = path
        self.required = required
        self.agreed: Seen | None = None
        """What was read and belongs to the chain in memory."""
        self._seal = seal
        self._alone = alone
        self._known: tuple[bytes, Seen | None] = (b"", None)

    def read(self) -> Seen | None:
        """The newest head that was written, None if none exists yet."""

        def reading(file: BinaryIO) -> Seen | None:
            self._lock(file, writing=False)
            return self._parsed(file.read(1000))

        try:
            return _with(lambda: self.path.open("rb", buffering=0), reading)
        except FileNotFoundError:
            return None

    def begin(self, identity: str) -> None:
        """Make the file before the first record is written, so that it exists even after an
        interrupt.

        What is there already belongs to a ledger that was begun and has no record.
        """
        self.reset(Seen(0, "", identity))

    def reset(self, head: Seen) -> None:
        """Write a head durably, over any earlier content."""

        def resetting(file: BinaryIO) -> None:
            self._lock(file, writing=True)
            file.truncate()
            file.write(self._line(head))
            os.fsync(file.fileno())

        _with(self.open, resetting)
        sync_folder(self.path.parent)

    def open(self) -> BinaryIO:
        """The file, opened before a commit, so that what cannot be written is found in time."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        return open(os.open(self.path, flags, MODE), "r+b", buffering=0)

    def write(self, file: BinaryIO, head: Seen, *, seal: Seal | None = None) -> None:
        """Write a head down, unless a newer one is there; with `seal`, under another key. Raises
        `LedgerError` when another ledger has written here meanwhile.
        """
        self._lock(file, writing=True)
        known = self._parsed(file.read(1000))
        if known is not None and known.seq >= head.seq:
            if self._alone or (known.seq == head.seq and known.hash != head.hash):
                raise broken(f"its head file {self.path.name!r} was written by another ledger")
            return
        file.seek(0)
        line = self._line(head, seal)
        file.write(line)
        file.truncate(len(line))

    def bridge(self, head: Seen, seal: Seal) -> None:
        """Write a head under this key and another one, so that a crash on the way from one to the
        other does not leave a file that neither verifies.
        """

        def bridging(file: BinaryIO) -> None:
            self._lock(file, writing=True)
            file.write(self._line(head) + self._line(head, seal))
            file.truncate()

        _with(self.open, bridging)

    def use(self, seal: Seal) -> None:
        """Go on with another key."""
        self._seal, self._known, self.agreed = seal, (b"", None), None

    def _lock(self, file: BinaryIO, *, writing: bool) -> None:
        """Until the file is closed."""
        if sys.platform == "win32":
            return
        kind = (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB
        if not wait(lambda: fcntl.flock(file, kind), time.monotonic() + TIMEOUT):
            raise LedgerError(
                f"the head file {str(self.path)!r} is locked by another process",
                remedy=("try again later; nothing was charged", "end the process that holds it"),
            )

    def _parsed(self, text: bytes) -> Seen | None:
        if not text:  # not written to the end
            return None
        if text != self._known[0]:
            self._known = (text, self._checked(text))
        return self._known[1]

    def _checked(self, text: bytes) -> Seen:
        for line in text.splitlines(keepends=True)[:2]:
            words = line.decode("ascii", "replace").split(" ")
            if len(words) in (3, 4) and words[0].isdecimal():
                identity = words[2] if len(words) == 4 else None
                seen = Seen(int(words[0]), words[1].removeprefix(_NO_HASH), identity)
                if line == self._line(seen):
                    return seen
        raise broken(f"its head file {self.path.name!r} was changed{self._seal.hint}")

    def _line(self, head: Seen, seal: Seal | None = None) -> bytes:
        """Of three words where an earlier version wrote it, which did not know identities."""
        used = seal or self._seal
        words = [f"{head.seq:020d}", head.hash or _NO_HASH]
        if head.identity is None:
            words += [used.head(head.seq, head.hash).seal]
        else:
            words += [head.identity, used.head_file(head.seq, head.hash, head.identity)]
        return f"{' '.join(words)}\n".encode()


def _with(opened: Callable[[], BinaryIO], work: Callable[[BinaryIO], R]) -> R:
    """The result of some work on a file; the file and its lock are closed even after an
    interrupt.
    """
    files: list[BinaryIO] = []

    def working() -> R:
        files.append(opened())
        return work(files[0])

    return release_after(working, lambda: close_all(files))
