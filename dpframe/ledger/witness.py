"""The head file of a ledger: it remembers how far the ledger had come.

The head inside the ledger shows that records were taken away; this one shows that the whole file
was, or that an older copy took its place. It lies beside a file, and for a server at a place that
the environment names, or nowhere. It may lag behind the ledger after a crash, never be
ahead of it. Without it the ledger can be used, and the next charge writes it again.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from dpframe.ledger.chain import broken
from dpframe.ledger.record import Head, Seal


class Witness:
    """The head file at `path`; without a path it remembers nothing."""

    def __init__(self, path: Path | None, seal: Seal) -> None:
        self.path = path
        self._name = "" if path is None else path.name
        self._seal = seal

    def read(self) -> Head | None:
        """The newest head that was written down, None if there is none."""
        if self.path is None:
            return None
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return self._parsed(text)

    def open(self) -> BinaryIO:
        """The file, opened before a commit, so that what cannot be written is found in time."""
        if self.path is None:
            return BytesIO()
        self.path.touch()
        return self.path.open("r+b", buffering=0)

    def write(self, file: BinaryIO, head: Head) -> None:
        """Write a head down, unless a newer one is there; the file keeps its length."""
        known = self._parsed(file.read(1000))
        if known is None or known.seq < head.seq:
            file.seek(0)
            file.write(f"{head.seq:020d} {head.hash} {head.seal}\n".encode())

    def _parsed(self, text: bytes) -> Head | None:
        if not text:  # created by a charge that did not come to its end
            return None
        try:
            seq, tip, _ = text.decode("ascii").split()
            head = self._seal.head(int(seq), tip)
        except ValueError:
            head = Head(0, "", "")
        if text != f"{head.seq:020d} {head.hash} {head.seal}\n".encode():
            raise broken(f"its head file {self._name!r} was changed{self._seal.hint}")
        return head
