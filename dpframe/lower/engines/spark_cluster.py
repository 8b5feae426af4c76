"""Clusters that lose their executors: Spark waits for new ones for ever, dpframe does not.

How long it waits depends on how many executors there are, and on nothing that rows say.
"""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

from dpframe.lower.engines.engine import ClusterLost

__all__ = ["WAIT", "Watch", "is_local"]

WAIT: Final = "spark.dpframe.executors.wait"
"""The setting of a session that says for how many seconds queries wait without any executor."""
_SECONDS: Final = 300.0
"""How long where it is not set."""
_LEAST: Final = 1.0
_EVERY: Final = 0.5
"""How often executors are counted, in seconds, at most; and at least four times in the wait."""


class Watch:
    """Ends the queries that run in it where the cluster has no executor for too long.

    Where Spark runs in the driver's own process, or on a server elsewhere (Connect), nothing is
    watched. As a context it keeps back the failure of queries that it ended; what follows it says
    why they failed.

    Parameters
    ----------
    session
        Whose queries run in it.
    """

    def __init__(self, session: Any) -> None:
        self._context = _cluster_of(session)
        self._tag = f"dpframe-{uuid4().hex}"
        self._over = threading.Event()
        self._is_lost = False
        if self._context is not None:
            self._wait = _seconds(session)
            self._thread = threading.Thread(target=self._run, name="dpframe-executors", daemon=True)

    def __enter__(self) -> Self:
        if self._context is not None:
            self._context.addJobTag(self._tag)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._context is None:
            return False
        self._over.set()
        self._thread.join()
        with suppress(Exception):  # a driver that is gone has no tags either
            self._context.removeJobTag(self._tag)
        # the lost cluster explains the failure, so Spark's own error is not shown
        return self._is_lost and kind is not None and issubclass(kind, Exception)

    def lost(self) -> ClusterLost:
        """What to raise after queries that ended in it."""
        return ClusterLost(self._wait)

    def _run(self) -> None:
        gone = 0.0
        every = min(_EVERY, self._wait / 4)
        with suppress(Exception):  # then the driver is gone, which ends the queries as well
            while not self._over.wait(every):
                gone = 0.0 if _executors(self._context) else gone + every
                if gone >= self._wait:
                    self._is_lost = True
                    self._context.cancelJobsWithTag(self._tag)
                    return


def _cluster_of(session: Any) -> Any:
    """The context of a session whose executors are processes of their own."""
    try:
        context = session.sparkContext
    except Exception:  # a session of Connect has none, and says so in several ways
        return None
    return None if is_local(str(context.master)) else context


def is_local(master: str) -> bool:
    """Whether Spark runs in the driver's own process alone."""
    return master == "local" or master.startswith("local[")


def _seconds(session: Any) -> float:
    """How long the session waits; the default for what is no number of seconds."""
    try:
        found = float(session.conf.get(WAIT, str(_SECONDS)))
    except ValueError:
        return _SECONDS
    return max(_LEAST, found) if math.isfinite(found) else _SECONDS


def _executors(context: Any) -> int:
    """How many executors there are, the driver not counted."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1
