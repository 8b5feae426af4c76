"""How a command ends that is asked to: as one that is interrupted, with no half of a file left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """Somebody asked the process to end, as schedulers and containers do."""


@contextmanager
def ending() -> Iterator[None]:
    """Within this, SIGTERM ends what is done here in order; where somebody handles it already, or
    in another thread, nothing changes.
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
