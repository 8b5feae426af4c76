"""Ends a command on request as an interrupt does, without leaving half a file."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """A request to end the process, as schedulers and containers send it."""


@contextmanager
def ending() -> Iterator[None]:
    """Within this, SIGTERM ends the work in order; if another handler exists, or in another
    thread, nothing changes.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated
