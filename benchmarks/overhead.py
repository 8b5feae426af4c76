"""What a private aggregate costs over the same plain Polars aggregate, CPU time and memory.

    python benchmarks/overhead.py [ROWS] [REPEATS]

CPU time is the process's user and system time over all threads, the best of REPEATS interleaved
runs; the private side plans, charges, runs and adds noise each time. Memory is the highest resident
size of a fresh process that holds the data while it runs one query, and by how much the query made
it grow (Linux only, from /proc). The aim is 1.3 times the plain CPU time plus 20 ms.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

import dpframe as dp

ROWS = 10_000_000
KEYS, FEW = list(range(1000)), [f"city {i}" for i in range(20)]


@dataclass(frozen=True)
class Case:
    """The same aggregate twice."""

    plain: Callable[[pl.LazyFrame], pl.DataFrame]
    private: Callable[[dp.PrivateFrame], dp.PrivateQuery]


CASES = {
    "filtered count": Case(
        lambda frame: frame.filter(pl.col("age") >= 40).select(pl.len()).collect(),
        lambda people: people.filter(pl.col("age") >= 40).dp_count(),
    ),
    "sum by 1,000 keys": Case(
        lambda frame: (
            frame.group_by("shop").agg(pl.col("spent").clip(0, 500).sum()).sort("shop").collect()
        ),
        lambda people: people.group_by("shop", keys=KEYS).agg(dp.sum("spent", (0, 500))),
    ),
    "float sum by 1,000 keys": Case(
        lambda frame: (
            frame.group_by("shop").agg(pl.col("price").clip(0, 500).sum()).sort("shop").collect()
        ),
        lambda people: people.group_by("shop", keys=KEYS).agg(dp.sum("price", (0, 500))),
    ),
    "mean by 20 keys": Case(
        lambda frame: (
            frame.group_by("city").agg(pl.col("age").clip(17, 90).mean()).sort("city").collect()
        ),
        lambda people: people.group_by("city", keys=FEW).agg(dp.mean("age", (17, 90))),
    ),
}


def data(rows: int) -> pl.DataFrame:
    """Random rows; which ones does not matter."""
    draw = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": draw.integers(17, 91, rows),
            "shop": draw.integers(0, len(KEYS), rows),
            "spent": draw.integers(0, 600, rows),
            "price": draw.uniform(0, 600, rows),
            "city": pl.Series(draw.integers(0, len(FEW), rows)).replace_strict(
                range(len(FEW)), FEW, return_dtype=pl.String
            ),
        }
    )


def main(rows: int, repeats: int) -> None:
    """Print the table."""
    print(f"{rows:,} rows, best of {repeats}; polars {pl.__version__}")
    print(
        f"{'aggregate':26}{'plain CPU s':>12}{'private':>9}{'ratio':>7}{'of the aim':>12}"
        f"{'wall':>7}{'peak MB':>9}{'(query)':>8}{'private':>9}{'(query)':>8}{'ratio':>7}"
    )
    frame = data(rows)
    for name, case in CASES.items():
        plain, private = _times(case, frame, repeats)
        (p_peak, p_grew), (q_peak, q_grew) = (_peak(name, s, rows) for s in ("plain", "private"))
        print(
            f"{name:26}{plain[0]:12.3f}{private[0]:9.3f}{private[0] / plain[0]:7.2f}"
            f"{private[0] / (1.3 * plain[0] + 0.020):12.0%}{private[1] / plain[1]:7.2f}"
            f"{p_peak:9.0f}{p_grew:8.1f}{q_peak:9.0f}{q_grew:8.1f}{q_peak / p_peak:7.2f}"
        )


def _sides(case: Case, frame: pl.DataFrame) -> dict[str, Callable[[], object]]:
    people = dp.Session(epsilon=1_000_000).protect(frame, unit=dp.Rows())
    return {
        "plain": lambda: case.plain(frame.lazy()),
        "private": lambda: case.private(people).collect(epsilon=1),
    }


def _times(
    case: Case, frame: pl.DataFrame, repeats: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """CPU and wall seconds of both sides, the best of each."""
    sides = _sides(case, frame)
    runs: dict[str, list[tuple[float, float]]] = {"plain": [], "private": []}
    for _ in range(repeats):
        for side, times in runs.items():
            cpu, wall = time.process_time(), time.perf_counter()
            sides[side]()
            times.append((time.process_time() - cpu, time.perf_counter() - wall))
    (plain, private) = (
        (min(cpu for cpu, _ in times), min(wall for _, wall in times)) for times in runs.values()
    )
    return plain, private


def _peak(name: str, side: str, rows: int) -> tuple[float, float]:
    """Megabytes of a fresh process at most while it runs one side once, and the growth in that."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", name, side, str(rows)],
        check=True,
        capture_output=True,
        text=True,
    )
    peak, grown = (float(part) for part in done.stdout.split())
    return peak, grown


def _report_peak(name: str, side: str, rows: int) -> None:
    work = _sides(CASES[name], data(rows))[side]
    _sides(CASES[name], data(1000))[side]()  # what the first query loads is not its memory
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest size so far
    before = _resident("VmRSS")
    work()
    peak = _resident("VmHWM")
    print(peak, peak - before)


def _resident(field: str) -> float:
    status = Path("/proc/self/status").read_text()
    return next(
        int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field)
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        _report_peak(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main(
            int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS,
            int(sys.argv[2]) if len(sys.argv) > 2 else 7,
        )
