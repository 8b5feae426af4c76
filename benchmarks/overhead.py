"""What a private aggregate costs over the same plain Polars aggregate, CPU time and memory.

    python benchmarks/overhead.py [ROWS] [REPEATS]

CPU time is the process's user and system time over all threads, the best of REPEATS interleaved
runs; the private side plans, charges, runs and adds noise each time. Memory is the highest resident
size of a fresh process that holds the data while it runs one query, and by how much the query made
it grow (Linux only, from /proc). The aim is 1.3 times the plain CPU time plus 20 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import polars as pl
from memory import peak, report
from purchases import CITIES, PLAIN, ROWS, SHOPS, best_times, purchases

import dpframe as dp

PRIVATE: Mapping[str, Callable[[dp.PrivateFrame], dp.PrivateQuery]] = {
    "filtered count": lambda people: people.filter(pl.col("age") >= 40).dp_count(),
    "sum by 1,000 keys": lambda people: people.group_by("shop", keys=SHOPS).agg(
        dp.sum("spent", (0, 500))
    ),
    "float sum by 1,000 keys": lambda people: people.group_by("shop", keys=SHOPS).agg(
        dp.sum("price", (0, 500))
    ),
    "mean by 20 keys": lambda people: people.group_by("city", keys=CITIES).agg(
        dp.mean("age", (17, 90))
    ),
}


def main(rows: int, repeats: int) -> None:
    """Print the table."""
    print(f"{rows:,} rows, best of {repeats}; polars {pl.__version__}")
    print(
        f"{'aggregate':26}{'plain CPU s':>12}{'private':>9}{'ratio':>7}{'of the aim':>12}"
        f"{'wall':>7}{'peak MB':>9}{'(query)':>8}{'private':>9}{'(query)':>8}{'ratio':>7}"
    )
    frame = purchases(rows)
    for name in PRIVATE:
        times = best_times(sides(name, frame), repeats)
        (cpu, wall), (private_cpu, private_wall) = times["plain"], times["private"]
        (most, grown), (private_most, private_grown) = (
            peak(__file__, name, side, str(rows)) for side in ("plain", "private")
        )
        print(
            f"{name:26}{cpu:12.3f}{private_cpu:9.3f}{private_cpu / cpu:7.2f}"
            f"{private_cpu / (1.3 * cpu + 0.020):12.0%}{private_wall / wall:7.2f}"
            f"{most:9.0f}{grown:8.1f}{private_most:9.0f}{private_grown:8.1f}"
            f"{private_most / most:7.2f}"
        )


def sides(name: str, frame: pl.DataFrame) -> dict[str, Callable[[], object]]:
    """The same aggregate, plain and private."""
    people = dp.Session(epsilon=1_000_000).protect(frame, unit=dp.Rows())
    return {
        "plain": lambda: PLAIN[name](frame.lazy()),
        "private": lambda: PRIVATE[name](people).collect(epsilon=1),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        aggregate, side, size = sys.argv[2:]
        work = sides(aggregate, purchases(int(size)))[side]
        sides(aggregate, purchases(1000))[side]()  # what the first query loads is not its memory
        report(work)
    else:
        main(
            int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS,
            int(sys.argv[2]) if len(sys.argv) > 2 else 7,
        )
