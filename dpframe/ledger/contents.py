"""What stands next to a ledger: contents of kept results, and rows of streams.

Contents are named by the number of their charge, and written before a record names them: first
under a name of their own, then, when they are on the disk, under their right one. Who writes
holds a lock of the operating system on what it writes. So contents that a killed process left
behind are distinguished from those that a live one is writing, without any time limit, and the
next process removes them.

A row of noise is drawn once. So the first process that keeps a row under its name has drawn it. A
later or simultaneous one gets that row and drops its own: nothing else is ever written under any
name. Rows are written to disk before they have a name.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from dpframe.errors import LedgerError
from dpframe.ledger.locks import close_all, release_after, this_process, wait

if sys.platform != "win32":
    import fcntl

R = TypeVar("R")

RELEASES, STREAMS = ".releases", ".streams"
"""Added to the name of a ledger's file: where its contents and its rows are."""

TIMEOUT = 15.0
"""Seconds to wait for a process that checks a lock; a check takes microseconds."""

GLANCE = 0.1
"""Seconds after which who holds a file does more than look."""


IsRight: TypeAlias = Callable[[list[bytes]], bool]
"""Whether something is the content that is looked for."""


def any_content(blobs: list[bytes]) -> bool:
    """Any is."""
    return True


class Contents(Protocol):
    """Contents of results, each a sequence of files in the order of its queries, and rows of
    streams, by the number of the stream and of the first of their periods.
    """

    def prepare(self) -> None:
        """Find out whether one can keep results there, before anything is charged. Raises
        `LedgerError` when one cannot.
        """
        ...

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        """Keep the content of a charge, durably and as a whole. Raises `LedgerError` when it cannot
        be written.
        """
        ...

    def read(self, number: int, count: int, is_right: IsRight = any_content) -> list[bytes] | None:
        """The content of a charge with `count` files; None if one of them is missing. Where there
        may be several, the one that is right, or one that is not where none is. Raises
        `LedgerError` when it cannot be read.
        """
        ...

    def prepare_removal(self) -> None:
        """Find out whether one can delete there, before it is recorded that contents are given up.
        Raises `LedgerError` when one cannot.
        """
        ...

    def remove(self, number: int, count: int) -> bool:
        """Delete the content of a charge with `count` files; whether anything was there. Raises
        `LedgerError` when it cannot be deleted.
        """
        ...

    def present(self, token: str, work: Callable[[], R]) -> R:
        """Do some work while others see that who computes under this name is alive."""
        ...

    def is_present(self, token: str) -> bool:
        """Whether the process with this token is alive."""
        ...

    def prepare_rows(self) -> None:
        """Find out whether one can keep rows of streams there, as `prepare` for results."""
        ...

    def place_of_rows(self, stream: int, first: int) -> str:
        """Where rows lie, for people."""
        ...

    def rows(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        """What is kept from each of some periods on, read at once; None where nothing is. Raises
        `LedgerError` when it cannot be read.
        """
        ...

    def keep_rows(self, stream: int, first: int, content: bytes) -> bytes:
        """Keep rows, durably, unless some are there; what is kept then. Raises `LedgerError` when
        they cannot be written.
        """
        ...


class MemoryContents:
    """Contents that are gone when their process ends."""

    def __init__(self) -> None:
        self._contents: dict[int, list[bytes]] = {}
        self._rows: dict[tuple[int, int], bytes] = {}
        self._tokens: set[str] = set()

    def prepare(self) -> None:
        """Nothing to find out."""

    prepare_removal = prepare_rows = prepare

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        self._contents[number] = list(blobs)

    def read(self, number: int, count: int, is_right: IsRight = any_content) -> list[bytes] | None:
        found = self._contents.get(number)
        return found if found is not None and len(found) == count else None

    def remove(self, number: int, count: int) -> bool:
        return self._contents.pop(number, None) is not None

    def present(self, token: str, work: Callable[[], R]) -> R:
        def working() -> R:
            self._tokens.add(token)
            return work()

        return release_after(working, lambda: self._tokens.discard(token))

    def is_present(self, token: str) -> bool:
        return token in self._tokens

    def place_of_rows(self, stream: int, first: int) -> str:
        return "in memory"

    def rows(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        return [self._rows.get((stream, first)) for first in firsts]

    def keep_rows(self, stream: int, first: int, content: bytes) -> bytes:
        return self._rows.setdefault((stream, first), content)


class FolderContents:
    """Contents in two folders next to a ledger's file. Only their owner may read them, and they are
    made when they are first needed.
    """

    def __init__(self, ledger: Path) -> None:
        self.releases = ledger.with_name(ledger.name + RELEASES)
        self.streams = ledger.with_name(ledger.name + STREAMS)

    def prepare(self) -> None:
        with _explained(self.releases):
            _make(self.releases)
            for name in os.listdir(self.releases):
                if name.startswith(".") and name.endswith((".part", ".lock")):
                    removed_if_left(self.releases / name)
            _require_writable(self.releases)

    def write(self, number: int, blobs: Sequence[bytes]) -> None:
        places = [self._place(number, part) for part in range(1, len(blobs) + 1)]
        made = [place.with_name(f".{place.name}.part") for place in places]
        files: list[FileIO] = []
        own: list[Path] = []

        def writing() -> None:
            for path, blob in zip(made, blobs, strict=True):
                file = locked(path, files)
                own.append(path)
                write_whole(file, blob)
            if os.name == "nt":  # where no open file gets another name
                close_all(files)
            for path, place in zip(made, places, strict=True):
                os.replace(path, place)
            sync_folder(self.releases)

        def clean() -> None:
            for path in own:
                path.unlink(missing_ok=True)  # where it did not get its name
            close_all(files)

        with _explained(self.releases):
            _make(self.releases)
            release_after(writing, clean)

    def read(self, number: int, count: int, is_right: IsRight = any_content) -> list[bytes] | None:
        with _explained(self.releases, "read from"):
            try:
                return [self._place(number, part).read_bytes() for part in range(1, count + 1)]
            except FileNotFoundError:
                return None

    def prepare_removal(self) -> None:
        with _explained(self.releases, "deleted from"):
            if self.releases.is_dir():
                _require_writable(self.releases)

    def remove(self, number: int, count: int) -> bool:
        result = False
        with _explained(self.releases, "deleted from"):
            for part in range(1, count + 1):
                with suppress(FileNotFoundError):
                    self._place(number, part).unlink()
                    result = True
            if result:
                sync_folder(self.releases)
        return result

    def present(self, token: str, work: Callable[[], R]) -> R:
        path, process = self._lock_of(token), this_process()
        files: list[FileIO] = []

        def working() -> R:
            with _explained(self.releases):
                _make(self.releases)
                locked(path, files)
            return work()

        def let_go() -> None:
            if process == this_process():  # a fork within is not who computes
                with suppress(OSError):
                    path.unlink()
                close_all(files)

        return release_after(working, let_go)

    def is_present(self, token: str) -> bool:
        with _explained(self.releases, "looked for in"):
            return is_held(self._lock_of(token))

    def prepare_rows(self) -> None:
        with _explained(self.streams):
            _make(self.streams)
            _require_writable(self.streams)

    def place_of_rows(self, stream: int, first: int) -> str:
        return f"in {str(self._place_of_rows(stream, first))!r}"

    def rows(self, stream: int, firsts: Sequence[int]) -> list[bytes | None]:
        found: list[bytes | None] = []
        with _explained(self.streams):
            for first in firsts:
                try:
                    found.append(self._place_of_rows(stream, first).read_bytes())
                except FileNotFoundError:
                    found.append(None)
        return found

    def keep_rows(self, stream: int, first: int, content: bytes) -> bytes:
        place = self._place_of_rows(stream, first)
        with _explained(self.streams):
            _make(self.streams)
            with suppress(FileExistsError):
                _write_once(place, content)
            sync_folder(self.streams)  # also where another process has just given it its name
            return place.read_bytes()

    def _place(self, number: int, part: int) -> Path:
        return self.releases / f"{number:09d}-{part}.parquet"

    def _lock_of(self, token: str) -> Path:
        return self.releases / f".{token}.lock"

    def _place_of_rows(self, stream: int, first: int) -> Path:
        return self.streams / f"{stream:09d}-{first:06d}.json"


def _make(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def _require_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(None, "it may not be written")


@contextmanager
def _explained(folder: Path, act: str = "kept in") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = "the rows of streams" if folder.suffix == STREAMS else "results"
        why = error.strerror or type(error).__name__
        raise LedgerError(
            f"{what} cannot be {act} {str(folder)!r}: {why}",
            remedy=("let this user read and write the folder", "make room on its disk"),
        ) from None


def _write_once(place: Path, content: bytes) -> None:
    """Write a hidden file, and then give it its name, unless that is taken. Raises
    `FileExistsError` when it is.
    """
    hidden = place.with_name(f".{place.name}.{os.getpid()}.part")
    nameless = _nameless(place.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    number = os.open(hidden, flags, 0o600) if nameless is None else nameless
    try:
        with FileIO(number, "w") as file:
            write_whole(file, content)
            if nameless is None:
                os.link(hidden, place)
                return
            folder = os.open(place.parent, os.O_RDONLY)
            try:  # with a folder given, the link is to what the name in /proc stands for
                os.link(f"/proc/self/fd/{number}", place.name, dst_dir_fd=folder)
            finally:
                os.close(folder)
    finally:
        if nameless is None:
            hidden.unlink()


def _nameless(folder: Path) -> int | None:
    """A file that is gone with the process unless it gets a name, where there are such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError:  # another file system
        return None


_HELD: WeakSet[FileIO] = WeakSet()
"""Files whose locks this process holds."""


def locked(
    path: Path,  # The path of the file
    # The files that the caller closes, even after an interrupt: the file is in it before it is
    # locked.
    files: list[FileIO],
    mode: int = 0o600,  # The permissions of a new file, minus the process's umask
) -> FileIO:
    """A file that no other process holds, opened for writing, and locked until it is closed. Raises
    `OSError` when another process holds it for long, or it cannot be opened.
    """
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        file = FileIO(os.open(path, flags, mode), "r+")
        files.append(file)
        if not wait(lambda file=file: _lock(file), time.monotonic() + TIMEOUT):  # type: ignore[misc]
            raise BlockingIOError(None, f"{path.name!r} is locked by another process")
        if is_at(file.fileno(), path):
            _HELD.add(file)
            return file
        file.close()  # who looked at it has removed it


def is_held(path: Path) -> bool:
    """Whether another process holds a file, and does not only check it."""
    files: list[FileIO] = []

    def looking() -> bool:
        try:
            files.append(FileIO(path))
        except FileNotFoundError:
            return False
        except PermissionError:  # on Windows, where it is open
            return True
        return not wait(lambda: _lock(files[0], shared=True), time.monotonic() + GLANCE)

    return release_after(looking, lambda: close_all(files))


def removed_if_left(path: Path) -> bool:
    """Whether no process holds a file; if so, it is removed if it exists."""
    files: list[FileIO] = []

    def removing() -> bool:
        try:
            files.append(FileIO(path))
            _lock(files[0])
            if is_at(files[0].fileno(), path):
                path.unlink()
        except FileNotFoundError:
            return True
        except (BlockingIOError, PermissionError):  # the latter on Windows, where it is open
            return False
        return True

    return release_after(removing, lambda: close_all(files))


def write_whole(file: FileIO, content: bytes) -> None:
    """Make something a file's content, durably."""
    file.truncate(0)
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where that is possible."""
    if hasattr(os, "O_DIRECTORY"):
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(place)
        finally:
            os.close(place)


def _lock(file: FileIO, *, shared: bool = False) -> None:
    if sys.platform != "win32":
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


def is_at(file: int, path: Path) -> bool:
    """Whether an open file is what a path leads to."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _let_go() -> None:
    """A lock is held until its last descriptor is closed: a child would keep that of a parent that
    was killed.
    """
    for file in list(_HELD):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
