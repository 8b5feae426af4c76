"""Forked processes: Polars' threads stay in the parent, and a query that waits for them never ends.

Polars starts its threads once per process, at the first query that needs them. A forked process
inherits that they were started, and not the threads. Nothing can start them again, so such a
process must run no query; it can still find that out before anything is charged. DuckDB makes do
with the thread that asks; but noise and results are made with Polars on every engine.
"""

from __future__ import annotations

import os
import sys
from threading import Event, Thread

import polars as pl

from dpframe.errors import EngineError

_PATIENCE = 5.0
"""Seconds in which a small query is done, where it ends at all."""


class _Threads:
    """What is known of Polars' threads in this process."""

    used = False
    """Whether dpframe has run a query here: a process that is forked now cannot."""
    work: bool | None = True
    """None in a process that was forked, until a small query was tried."""


def mark_used() -> None:
    """Remember that Polars' threads are running here from now on."""
    _Threads.used = True


def require_threads() -> None:
    """Refuse a process in which Polars would wait for threads that are not there.

    Raises
    ------
    EngineError
        In a process that was forked from one that had used Polars.
    """
    if _Threads.work is None:
        _Threads.work = _answers()
    if not _Threads.work:
        raise EngineError(
            "this process was forked from one that had used Polars; nothing was charged",
            why="the threads of Polars do not exist in it, so the query would never end",
            remedy='start processes with multiprocessing.get_context("spawn"), and protect '
            "the data in each of them",
        )


def _forked() -> None:
    """In the forked process: use of Polars without dpframe is found by trying."""
    _Threads.work = False if _Threads.used or _Threads.work is False else None


def _answers() -> bool:
    done = Event()

    def ask() -> None:
        try:
            frame = (
                pl.LazyFrame({"a": [1, 2], "b": [1, 1]}).group_by("b").agg(pl.len(), pl.sum("a"))
            )
            frame.collect()
            frame.collect(engine="streaming")
        finally:
            done.set()

    Thread(target=ask, name="dpframe probe", daemon=True).start()
    return done.wait(_PATIENCE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
    _processes = sys.modules.get("multiprocessing.process")
    if _processes is not None and _processes.parent_process() is not None:
        _Threads.work = None  # perhaps forked before dpframe was imported
