"""How long a budget in a file takes: to charge, to check, to open and to verify.

    python benchmarks/ledger.py [PAST] [DIRECTORY]

PAST spends (default 10,000) lie in the ledger already, each with its settlement. A spend is two
commits, and takes mostly what the disk of DIRECTORY needs to make them durable, so raw SQLite
commits of a row of the same size are timed beside it.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dpframe as dp
from dpframe.ledger.chain import row_of
from dpframe.ledger.record import COLUMNS, Draft, Seal
from dpframe.ledger.sqlite import SqliteLedger
from dpframe.ledger.store import Store

BUDGET = dp.PureDP(10**9)
COST = dp.PureDP("0.1")
FINGERPRINT = "f" * 64
UNIT = "rows, add-remove"
SPENDS = 200


def main(past: int, directory: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        path = Path(place, "budget.db")
        empty = opened(path)
        print(f"raw SQLite commits              {raw_commits(place):9.0f} per second")
        print(f"spends in a new ledger          {spends(empty):9.0f} per second")
        del empty
        fill(path, past)
        print(f"with {past} past spends:")
        started = time.perf_counter()
        ledger = opened(path)
        print(f"  open and verify everything    {1e3 * (time.perf_counter() - started):9.2f} ms")
        print(f"  filter check, allowed         {check(ledger):9.3f} ms")
        print(f"  filter check, refused         {refuse(ledger):9.3f} ms")
        print(f"  spends                        {spends(ledger):9.0f} per second")
        print(f"  spends by 4 processes         {together(path):9.0f} per second")


def opened(path: Path) -> SqliteLedger:
    return SqliteLedger(Store(path, Seal(None), timeout=300), "default", BUDGET)


def spends(ledger: SqliteLedger) -> float:
    """Charged and settled, each of them durable."""
    started = time.perf_counter()
    for _ in range(SPENDS):
        ledger.settle(ledger.charge(COST, FINGERPRINT, UNIT), "released")
    return SPENDS / (time.perf_counter() - started)


def check(ledger: SqliteLedger) -> float:
    """What planning asks: is there enough?"""
    return median(lambda: (ledger.budget - ledger.spent).covers(COST))


def refuse(ledger: SqliteLedger) -> float:
    """A charge that does not fit: locks, verifies, compares, writes nothing."""

    def attempt() -> None:
        try:
            ledger.charge(BUDGET, FINGERPRINT, UNIT)
        except dp.BudgetExceeded:
            return

    return median(attempt)


def together(path: Path) -> float:
    ready, go = os.pipe(), os.pipe()
    children = []
    for _ in range(4):
        process = os.fork()
        if not process:
            ledger = opened(path)
            os.close(go[1])
            os.write(ready[1], b".")
            os.read(go[0], 1)  # until the parent has closed its end
            spends(ledger)
            os._exit(0)
        children.append(process)
    for _ in children:
        os.read(ready[0], 1)
    started = time.perf_counter()
    os.close(go[1])
    for process in children:
        os.waitpid(process, 0)
    return 4 * SPENDS / (time.perf_counter() - started)


def raw_commits(place: str) -> float:
    connection = sqlite3.connect(Path(place, "raw.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, content TEXT)")
    started = time.perf_counter()
    for _ in range(SPENDS):
        connection.execute("INSERT INTO t (content) VALUES (?)", ("x" * 400,))
    elapsed = time.perf_counter() - started
    connection.close()
    return SPENDS / elapsed


def fill(path: Path, past: int) -> None:
    """Past spends in one commit."""
    chain = Store(path, Seal(None)).read()
    rows = []
    for _ in range(past):
        for act in ("charged", "released"):
            charged = act == "charged"
            draft = (
                Draft("default", "charged", None, FINGERPRINT, UNIT, COST)
                if charged
                else Draft("default", "released", refers=chain.length)
            )
            chain.extend(record := chain.next(draft))
            rows.append(row_of(record))
    connection = sqlite3.connect(path)
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(f"INSERT INTO records VALUES ({marks})", rows)
    head = chain.head()
    connection.execute("UPDATE head SET seq=?, hash=?, seal=?", (head.seq, head.hash, head.seal))
    connection.commit()
    connection.close()


def median(work: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(SPENDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 10_000,
        sys.argv[2] if len(sys.argv) > 2 else None,
    )
