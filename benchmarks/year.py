"""A year of nightly publishing, and all that goes wrong in it: how long it takes, what it costs
and how far off its totals are.

    python benchmarks/year.py [NIGHTS] [--postgres]

Each night publishes a day with a job on the command line, and the totals of a stream with a script.
Nights are killed, started four times at once or again, rows come late, and half-way the disk with
the published files is lost. It is the test in tests/schedule, with figures.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgres
from tests.ledger.ledgers import Place
from tests.schedule.test_year import charged, errors, lived, require_published
from tests.schedule.year import Year


def main(nights: int, on_server: bool) -> None:
    """Print the figures, and keep what there is where something does not hold."""
    folder = Path(tempfile.mkdtemp(prefix="dpframe-year-"))
    programs = postgres.binaries()
    if not on_server:
        measure(folder, folder / "budget.db", nights)
    elif programs is not None:
        server = postgres.Server(programs)
        try:
            measure(folder, server.empty(), nights)
        finally:
            postgres.forget_connections()
            server.remove()
    shutil.rmtree(folder)


def measure(folder: Path, place: Place, nights: int) -> None:
    """Run the year, and print its figures."""
    began = time.monotonic()
    year = lived(folder, place, nights, partial(print, flush=True))
    print(f"{nights} nights in {time.monotonic() - began:.0f} s: {dict(year.kinds)}", flush=True)
    try:
        require_published(year)
        report(year)
    except AssertionError:
        (folder / "shown.json").write_text(json.dumps(year.shown(), indent=2))
        print(f"a promise does not hold; all files were kept in {folder}", flush=True)
        raise


def report(year: Year) -> None:
    """The figures of a year in which all is as it should be."""
    shown = year.shown()
    print(f"{sum(charged(year).values())} charges of days, {sum(year.lost.values())} of them lost")
    print("statuses", dict(Counter(charge["status"] for charge in shown["charges"])))
    print(f"spent {shown['spent']}, {year.late} rows late")
    for what, numbers in (("first", year.seconds[:20]), ("last", year.seconds[-20:])):
        day, total = (statistics.median(each) for each in zip(*numbers, strict=True))
        print(f"{what} nights: a day {day:.2f} s, a total {total:.2f} s")
    near, job_a_night = errors(year)
    print(f"error {near:.3f} of the formula, {job_a_night:.3f} of a job a night")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nights", nargs="?", type=int, default=365)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    main(given.nights, given.postgres)
