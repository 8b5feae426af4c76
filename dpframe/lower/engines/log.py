"""What engines say when they fail, for the owner of the data alone.

It may quote private values. So nobody sees it, unless the environment names a file for it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dpframe.rows.failures import FAILURES

VARIABLE = "DPFRAME_ENGINE_LOG"
LOGGER = logging.getLogger("dpframe.engine")
LOGGER.propagate = False  # what handlers of the application write, others may read
LOGGER.addHandler(logging.NullHandler())
_ONE_AT_A_TIME = Lock()


@contextmanager
def log_failure() -> Iterator[None]:
    """Write a failure, in full, to the file that `DPFRAME_ENGINE_LOG` names, if any."""
    try:
        yield
    except FAILURES:
        path = os.environ.get(VARIABLE)
        if path:
            _write(path)
        raise


def _write(path: str) -> None:
    with _ONE_AT_A_TIME:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # for nobody else to read
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError:
            return  # the failure itself is what counts
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        level = LOGGER.level
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.DEBUG)
        try:
            LOGGER.debug("an engine failed", exc_info=True)
        finally:
            LOGGER.setLevel(level)
            LOGGER.removeHandler(handler)
            handler.close()
