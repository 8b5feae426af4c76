"""What a process does with a stream, for tests that run several or kill them:
``python -m tests.streams.child LEDGER WHAT FILE``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

import dpframe as dp
from dpframe.api.payer import payer_of
from tests.streams.nights import START, day

PERIODS = 8
DATA = pl.DataFrame({"day": [day(n) for n in (0, 1, 1, 2, 3, 5, 8)]})


def session_of(place: Any) -> dp.Session:
    return dp.Session(rho=1, ledger=place)


def opened(place: Any) -> dp.Stream:
    session = session_of(place)
    query = session.protect(DATA, unit=dp.Rows(), name="visits").agg(dp.count().alias("n"))
    return session.stream("s", query, by="day", start=START, periods=PERIODS, rho="0.5")


def totals(stream: dp.Stream, until: int) -> list[int]:
    return [stream.release(day(n))["n_total"].item() for n in range(until)]


def die_at(place: Any, point: str) -> None:
    """Kill this process at a point of the way of rows that are drawn."""
    book = payer_of(session_of(place)).ledger.streams
    books, contents = type(book), type(book.contents)
    keep, add = contents.keep_rows, books.add

    def kept(*given: Any) -> Any:
        if point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = keep(*given)
        if point == "content":
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    def added(*given: Any) -> None:
        add(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    contents.keep_rows, books.add = kept, added  # type: ignore[method-assign]


def main(place: str, what: str, file: str) -> None:
    if what in ("before", "content", "record"):
        die_at(place, what)
        opened(place).release(day(3))
        return
    chosen = random.Random(what)
    Path(file).touch()
    for n in range(PERIODS):
        if chosen.random() < 0.7 or n == PERIODS - 1:  # some leave nights out
            time.sleep(chosen.random() / 50)
            total = opened(place).release(day(n))["n_total"].item()
            with Path(file).open("a") as written:
                written.write(f"{n} {total}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
