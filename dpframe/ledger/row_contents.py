"""The rows of streams: in memory, in a folder next to a ledger's file, or in tables next to those
of one on a server.

A row of noise is drawn once. So the first process that keeps a content under its name has drawn
it. A later or simultaneous one gets that content and drops its own: nothing else is ever written
under any name. Contents are written to disk before they have a name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from dpframe.errors import LedgerError

ROWS = ".streams"
"""Added to the name of a ledger's file."""


class RowContents(Protocol):
    """Contents by the number of a stream and of the first of the periods."""

    def prepare(self) -> None:
        """Find out whether one can write there, before anything is charged.

        Raises
        ------
        LedgerError
            When one cannot.
        """
        ...

    def place(self, stream: int, first: int) -> str:
        """Where a content lies, for people."""
        ...

    def read(self, stream: int, first: int) -> bytes | None:
        """What is kept, if anything is.

        Raises
        ------
        LedgerError
            When it cannot be read.
        """
        ...

    def read_all(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        """What is kept from each of some periods on, read at once.

        Raises
        ------
        LedgerError
            When it cannot be read.
        """
        ...

    def keep(self, stream: int, first: int, content: bytes) -> bytes:
        """Keep a content, durably, unless there is one; what is kept then.

        Raises
        ------
        LedgerError
            When it cannot be written.
        """
        ...


class MemoryRows:
    """Contents that are gone when their process ends."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], bytes] = {}

    def prepare(self) -> None:
        """Nothing to find out."""

    def place(self, stream: int, first: int) -> str:
        return "in memory"

    def read(self, stream: int, first: int) -> bytes | None:
        return self._kept.get((stream, first))

    def read_all(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        return [self.read(stream, first) for first in firsts]

    def keep(self, stream: int, first: int, content: bytes) -> bytes:
        return self._kept.setdefault((stream, first), content)


class FolderRows:
    """Contents in a folder that only its owner may read, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        with self._explained():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(None, "it may not be written")

    def place(self, stream: int, first: int) -> str:
        return f"in {str(self._place(stream, first))!r}"

    def read(self, stream: int, first: int) -> bytes | None:
        with self._explained():
            try:
                return self._place(stream, first).read_bytes()
            except FileNotFoundError:
                return None

    def read_all(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        return [self.read(stream, first) for first in firsts]

    def keep(self, stream: int, first: int, content: bytes) -> bytes:
        place = self._place(stream, first)
        with self._explained():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                _write_once(place, content)
            _sync_folder(self.folder)  # also where another process has just given it its name
            return place.read_bytes()

    def _place(self, stream: int, first: int) -> Path:
        return self.folder / f"{stream:09d}-{first:06d}.json"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise LedgerError(
                f"the rows of streams cannot be kept in {str(self.folder)!r}: {why}",
                remedy=("let this user read and write the folder", "make room on its disk"),
            ) from None


def _write_once(place: Path, content: bytes) -> None:
    """Write a hidden file, and then give it its name, unless that is taken.

    Raises
    ------
    FileExistsError
        When it is.
    """
    file = _nameless(place.parent)
    if file is not None:
        try:
            _write_all(file, content)
            folder = os.open(place.parent, os.O_RDONLY)
            try:  # with a folder given, the link is to what the name in /proc stands for
                os.link(f"/proc/self/fd/{file}", place.name, dst_dir_fd=folder)
            finally:
                os.close(folder)
        finally:
            os.close(file)
        return
    hidden = place.with_name(f".{place.name}.{os.getpid()}.part")
    file = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write_all(file, content)
        os.link(hidden, place)
    finally:
        os.close(file)
        hidden.unlink()


def _nameless(folder: Path) -> int | None:
    """A file that is gone with the process unless it gets a name, where there are such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # another file system
        return None


def _write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where that is possible."""
    if hasattr(os, "O_DIRECTORY"):
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(place)
        finally:
            os.close(place)
