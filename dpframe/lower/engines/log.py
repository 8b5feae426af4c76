"""What engines say when they fail, for the owner of the data alone.

It may quote private values. So it is hidden unless the environment names a file for it; handlers
of the application do not see it then either.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dpframe.rows.failures import FAILURES

VARIABLE = "DPFRAME_ENGINE_LOG"
_NAME = "dpframe.engine"
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
    record = logging.LogRecord(
        _NAME, logging.DEBUG, "", 0, "an engine failed", None, sys.exc_info()
    )
    with _ONE_AT_A_TIME:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # only the owner may read it
            handler = logging.FileHandler(path, encoding="utf-8")
        except OSError:
            return  # the failure itself is what counts
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
        handler.emit(record)
        handler.close()
