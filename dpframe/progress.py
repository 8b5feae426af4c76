"""What a long run is doing, on one line of a terminal or notebook; silent everywhere else.

Only the stage and the seconds are shown, and which part of how many is being read, where the number
of parts is public. How many rows were read is private where rows are added or removed, and so is
the share of all rows that an engine reports; what a run shows must not depend on that.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Self, TextIO

VARIABLE = "DPFRAME_PROGRESS"
"""``off`` is silent everywhere."""
_FIRST = 2.0
"""Seconds before anything is shown."""
_EVERY = 0.5


class Progress:
    """The line of one run. As a context it is erased at the end, also after an error.

    Parameters
    ----------
    stream
        Where it is written, None for nowhere.
    first, every
        Seconds before it appears, and between two times it is written.
    """

    __slots__ = ("_done", "_every", "_first", "_since", "_stage", "_stream", "_thread", "_width")

    def __init__(self, stream: TextIO | None, first: float = _FIRST, every: float = _EVERY) -> None:
        self._stream = stream
        self._first, self._every = first, every
        self._stage = ""
        self._width = 0
        self._since = time.monotonic()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def stage(self, words: str) -> None:
        """What is being done from now on."""
        self._stage = words

    def __enter__(self) -> Self:
        if self._stream is not None:
            thread = threading.Thread(target=self._write, name="dpframe progress", daemon=True)
            with suppress(RuntimeError):  # no thread can be started: nothing is shown
                thread.start()
                self._thread = thread
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=1)  # only a terminal that takes no text makes it that long

    def _write(self) -> None:
        """The thread: it alone writes, and erases what it wrote before it ends."""
        assert self._stream is not None
        with suppress(Exception):  # a closed terminal ends the line, never the run
            wait = self._first
            while not self._done.wait(wait):
                self._show(f"dpframe: {self._stage}, {int(time.monotonic() - self._since)} s")
                wait = self._every
            if self._width:
                self._show("")

    def _show(self, line: str) -> None:
        assert self._stream is not None
        blank = " " * max(0, self._width - len(line))
        back = "\r" if not line else ""
        self._stream.write(f"\r{line}{blank}{back}")
        self._stream.flush()
        self._width = len(line)


_CURRENT: ContextVar[Progress | None] = ContextVar("dpframe progress", default=None)
"""The line of the run that is under way here."""


@contextmanager
def progress() -> Iterator[Progress]:
    """The line of a run on standard error, if a person is likely to watch it."""
    with Progress(_stream()) as line:
        before = _CURRENT.set(line)
        try:
            yield line
        finally:
            _CURRENT.reset(before)


def part(words: str, number: int, of: int) -> None:
    """Show which part of its work the current run has reached, if there is one. How many there
    are must follow from what is public.
    """
    line = _CURRENT.get()
    if line is not None:
        line.stage(f"{words}, part {number} of {of}")


def _stream() -> TextIO | None:
    stream = sys.stderr
    if stream is None or os.environ.get(VARIABLE, "").lower() == "off":
        return None
    with suppress(Exception):  # a stream made by another library
        if stream.isatty() or _in_notebook():
            return stream
    return None


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython is never imported for that."""
    shell = sys.modules.get("IPython")
    if shell is None or "ipykernel" not in sys.modules:
        return False
    return getattr(shell.get_ipython(), "kernel", None) is not None
