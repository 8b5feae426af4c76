"""Waiting for a lock of the operating system, with an end."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

STEP = 0.004
"""Seconds between two attempts to get a lock."""

_TAKEN = (errno.EACCES, errno.EAGAIN)


def wait(
    attempt: Callable[[], None], deadline: float, sleep: Callable[[float], None] = time.sleep
) -> bool:
    """Whether an attempt succeeded before the deadline of `time.monotonic`.

    In short steps of equal length, so that who waits long is as likely to be next; `sleep` takes
    the seconds of a step.

    Raises
    ------
    OSError
        When the lock cannot be had at all.
    """
    while True:
        try:
            attempt()
            return True
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            if time.monotonic() > deadline:
                return False
        sleep(STEP)
