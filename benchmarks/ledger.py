"""How long a budget in a file or on a server takes: to charge, to check, to open and to verify.

    python benchmarks/ledger.py [PAST] [DIRECTORY] [--postgres URL]

PAST spends (default 10,000) lie in the ledger already, each with its settlement. A spend is two
commits. Most of its time is for the disk of DIRECTORY, so the script also times raw SQLite commits
of a row of the same size.

The same is measured in PostgreSQL: in the database at URL, which must have no ledger, or on a
server that is started in DIRECTORY for this, if its programs are installed.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

import dpframe as dp
from dpframe.ledger.chain import is_due, row_of, state_of
from dpframe.ledger.head_file import HeadFile, Seen
from dpframe.ledger.ledger import Ledger
from dpframe.ledger.record import COLUMNS, Draft, Head

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgres
from tests.ledger.ledgers import Place, store_at

BUDGET = dp.PureDP(10**9)
COST = dp.PureDP("0.1")
FINGERPRINT = "f" * 64
UNIT = "rows, add-remove"
SPENDS = 200


def main(past: int, directory: str | None, url: str | None) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        print(f"raw SQLite commits              {raw_commits(place):9.0f} per second")
        measure(Path(place, "budget.db"), past)
    if url is not None:
        measure(url, past)
    elif (programs := postgres.binaries()) is not None:
        server = postgres.Server(programs, directory)
        try:
            measure(server.empty(), past)
        finally:
            server.remove()


def measure(place: Place, past: int) -> None:
    """The figures of one store."""
    print("SQLite:" if isinstance(place, Path) else "PostgreSQL:")
    empty = opened(place)
    print(f"spends in a new ledger          {spends(empty):9.0f} per second")
    del empty
    fill(place, past)
    print(f"with {past} past spends:")
    print(f"  open in a new process         {alone(place)}", end="")
    ledger = opened(place)
    started = time.perf_counter()
    ledger.verify()
    print(f"  verify everything             {1e3 * (time.perf_counter() - started):9.2f} ms")
    print(f"  filter check, allowed         {check(ledger):9.3f} ms")
    print(f"  filter check, refused         {refuse(ledger):9.3f} ms")
    print(f"  spends                        {spends(ledger):9.0f} per second")
    print(f"  spends by 4 processes         {together(place):9.0f} per second")


def opened(place: Place) -> Ledger:
    return Ledger(store_at(place, timeout=300), "default", BUDGET)


def spends(ledger: Ledger) -> float:
    """Charged and settled, each of them durable."""
    started = time.perf_counter()
    for _ in range(SPENDS):
        ledger.settle(ledger.charge(COST, FINGERPRINT, UNIT), "released")
    return SPENDS / (time.perf_counter() - started)


def check(ledger: Ledger) -> float:
    """What planning asks: is there enough?"""
    return median(lambda: (ledger.budget - ledger.spent).covers(COST))


def refuse(ledger: Ledger) -> float:
    """A charge that does not fit: locks, verifies, compares, writes nothing."""

    def attempt() -> None:
        try:
            ledger.charge(BUDGET, FINGERPRINT, UNIT)
        except dp.BudgetExceeded:
            return

    return median(attempt)


def together(place: Place) -> float:
    ready, go = os.pipe(), os.pipe()
    children = []
    for _ in range(4):
        process = os.fork()
        if not process:
            ledger = opened(place)
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


def fill(place: Place, past: int) -> None:
    """Past spends in one commit, with the checkpoints that belong between them."""
    chain = store_at(place).read()
    rows: list[tuple[object, ...]] = []

    def add(draft: Draft) -> int:
        chain.extend(record := chain.next(draft))
        rows.append(row_of(record))
        return record.seq

    for _ in range(past):
        if is_due(chain):
            add(Draft("", "checkpoint", why=state_of(chain, chain.seal)))
        number = add(Draft("default", "charged", None, FINGERPRINT, UNIT, COST))
        add(Draft("default", "released", refers=number))
    if not isinstance(place, Path):
        fill_server(place, rows, chain.head())
        return
    connection = sqlite3.connect(place)
    marks = ", ".join("?" * len(COLUMNS))
    connection.executemany(f"INSERT INTO records VALUES ({marks})", rows)
    head = chain.head()
    connection.execute("UPDATE head SET seq=?, hash=?, seal=?", (head.seq, head.hash, head.seal))
    connection.commit()
    connection.close()
    witness = HeadFile(Path(f"{place}.head"), chain.seal, alone=True)
    with witness.open() as file:
        witness.write(file, Seen(chain.length, chain.tip, chain.identity))


def fill_server(url: str, rows: list[tuple[object, ...]], head: Head) -> None:
    with psycopg.connect(url) as connection:
        records = "COPY dpframe_ledger.records FROM STDIN"
        with connection.cursor() as cursor, cursor.copy(records) as copy:
            for row in rows:
                copy.write_row(row)
        connection.execute(
            "UPDATE dpframe_ledger.head SET seq=%s, hash=%s, seal=%s",
            (head.seq, head.hash, head.seal),
        )


def alone(place: Place) -> str:
    """Opening in a process of its own: seconds, and by how much its memory grows."""
    program = (
        "import resource, sys, time\n"
        "from pathlib import Path\n"
        "from benchmarks.ledger import opened\n"
        "memory = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "place = Path(sys.argv[1]) if '://' not in sys.argv[1] else sys.argv[1]\n"
        "before, started = memory(), time.perf_counter()\n"
        "opened(place)\n"
        "print(f'{1e3 * (time.perf_counter() - started):9.2f} ms, '\n"
        "      f'{memory() - before:.0f} MB more')\n"
    )
    command = [sys.executable, "-c", program, str(place)]
    root = Path(__file__).parents[1]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def median(work: Callable[[], object]) -> float:
    """Milliseconds."""
    times = []
    for _ in range(SPENDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("past", nargs="?", type=int, default=10_000)
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--postgres", metavar="URL")
    given = parser.parse_args()
    main(given.past, given.directory, given.postgres)
