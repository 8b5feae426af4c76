"""The head file of a ledger: it remembers how far the ledger had come.

The head inside the ledger shows that records were taken away; this one shows that the whole file
was, or that an older copy took its place. It lies beside a file, and for a server at a place that
the environment names, or nowhere. It is compared at every use, may lag behind the ledger after a
crash, and is never ahead of it. Without it the ledger can be used, and the next charge writes it
again.
"""

from __future__ import annotations

import sys
import time
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from dpframe.errors import LedgerError
from dpframe.ledger.chain import broken
from dpframe.ledger.record import Head, Seal
from dpframe.ledger.waiting import wait

if sys.platform != "win32":
    import fcntl

TIMEOUT = 15.0
"""Seconds to wait for others who read or write the file; it takes them microseconds."""


class Witness:
    """The head file at `path`; without a path it remembers nothing.

    With `alone` whoever writes it has a lock of the ledger meanwhile, so that nobody may have
    written a newer head. Without, processes of this machine may write it in another order than
    they charged.
    """

    def __init__(self, path: Path | None, seal: Seal, *, alone: bool) -> None:
        self.path = path
        self._name = "" if path is None else path.name
        self._seal = seal
        self._alone = alone
        self._known: tuple[bytes, Head | None] = (b"", None)

    def read(self) -> Head | None:
        """The newest head that was written down, None if there is none."""
        if self.path is None:
            return None
        try:
            with self.path.open("rb", buffering=0) as file:
                self._lock(file, writing=False)
                return self._parsed(file.read(1000))
        except FileNotFoundError:
            return None

    def open(self) -> BinaryIO:
        """The file, opened before a commit, so that what cannot be written is found in time."""
        if self.path is None:
            return BytesIO()
        self.path.touch()
        return self.path.open("r+b", buffering=0)

    def write(self, file: BinaryIO, head: Head) -> None:
        """Write a head down, unless a newer one is there; the file keeps its length.

        Raises
        ------
        LedgerError
            When another ledger has written here meanwhile.
        """
        if self.path is None:
            return
        self._lock(file, writing=True)
        known = self._parsed(file.read(1000))
        if known is not None and known.seq >= head.seq:
            if self._alone or (known.seq == head.seq and known.hash != head.hash):
                raise broken(f"its head file {self._name!r} was written by another ledger")
            return
        file.seek(0)
        file.write(f"{head.seq:020d} {head.hash} {head.seal}\n".encode())

    def _lock(self, file: BinaryIO, *, writing: bool) -> None:
        """Until the file is closed."""
        if sys.platform == "win32":
            return
        kind = (fcntl.LOCK_EX if writing else fcntl.LOCK_SH) | fcntl.LOCK_NB
        if not wait(lambda: fcntl.flock(file, kind), time.monotonic() + TIMEOUT):
            raise LedgerError(
                f"the head file {str(self.path)!r} is locked by another process",
                remedy="find the process that holds it; nothing was released",
            )

    def _parsed(self, text: bytes) -> Head | None:
        if not text:  # created by a charge that did not come to its end
            return None
        if text != self._known[0]:
            self._known = (text, self._checked(text))
        return self._known[1]

    def _checked(self, text: bytes) -> Head:
        try:
            seq, tip, _ = text.decode("ascii").split()
            head = self._seal.head(int(seq), tip)
        except ValueError:
            head = Head(0, "", "")
        if text != f"{head.seq:020d} {head.hash} {head.seal}\n".encode():
            raise broken(f"its head file {self._name!r} was changed{self._seal.hint}")
        return head
