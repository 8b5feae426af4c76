"""What limits and totals of individuals cost over plain Polars group-bys, CPU time and memory.

    python benchmarks/individuals.py [ROWS] [REPEATS]

A table in which a tenth as many individuals as rows are in about six of 5,000 groups each, with two
rows in some of them, and in any of a million items. The plain side counts distinct individuals (or
rows) and adds up clamped rows in the same groups; no plain query limits anybody's contribution.
Times and memory are as in `overhead.py`, ratios within one run. The aims are those in the table,
of the ratio of CPU times, and 1.3 for the ratio of memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from memory import peak, report
from purchases import ROWS, best_times

import dpframe as dp

GROUPS = range(5000)
HOURS = {"city": [f"city {i}" for i in range(208)], "hour": list(range(24))}
ITEMS = 1_000_000
MEMORY_AIM = 1.3


@dataclass(frozen=True)
class Case:
    """A private query, and the plain group-by to compare it with."""

    aim: str
    plain: Callable[[pl.LazyFrame], pl.LazyFrame]
    private: Callable[[dp.PrivateFrame], dp.PrivateQuery]
    unit: str | dp.Rows = "person"
    delta: float = 0


def _plain(*by: str) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    return lambda frame: frame.group_by(by).agg(
        pl.col("person").n_unique(), pl.col("spent").clip(0, 60).sum()
    )


PEOPLE = dp.n_unique("person").alias("people")
TOTALS = dp.sum("spent", (0, 120), per="unit")

CASES: Mapping[str, Case] = {
    "4 groups each": Case(
        "1.8",
        _plain("group"),
        lambda frame: (
            frame.limit_groups(4, by="group").group_by("group", keys=GROUPS).agg(PEOPLE, TOTALS)
        ),
    ),
    "4 groups each, of city and hour": Case(
        "2.0",
        _plain("city", "hour"),
        lambda frame: (
            frame.limit_groups(4, by=["city", "hour"])
            .group_by("city", "hour", keys=HOURS)
            .agg(PEOPLE, TOTALS)
        ),
    ),
    "10 groups each": Case(
        "1.8",
        _plain("group"),
        lambda frame: (
            frame.limit_groups(10, by="group").group_by("group", keys=GROUPS).agg(PEOPLE, TOTALS)
        ),
    ),
    "4 groups each, 2 rows in each": Case(
        "3.0",
        _plain("group"),
        lambda frame: (
            frame.limit_rows(2, by="group")
            .limit_groups(4, by="group")
            .group_by("group", keys=GROUPS)
            .agg(PEOPLE, dp.sum("spent", (0, 60)))
        ),
    ),
    "groups found among a million": Case(
        "1.5",
        lambda frame: frame.group_by("item").agg(pl.len()).sort("item"),
        lambda frame: frame.group_by("item").agg(dp.count()),
        unit=dp.Rows(),
        delta=1e-6,
    ),
    "the same, by individuals": Case(
        "",
        lambda frame: frame.group_by("item").agg(pl.col("person").n_unique()).sort("item"),
        lambda frame: frame.limit_groups(20, by="item").group_by("item").agg(PEOPLE),
        delta=1e-6,
    ),
}


def visits(rows: int) -> pl.DataFrame:
    """Random rows; which ones does not matter."""
    draw = np.random.default_rng(0)
    person = draw.integers(0, max(1, rows // 10), rows)
    habit = np.minimum(draw.geometric(0.235, rows), 40)
    group = (person * 7919 + habit * habit * 104729 + habit) % len(GROUPS)
    city = pl.Series("city", HOURS["city"]).gather(group // 24 % 208)
    columns = {
        "person": person,
        "group": group,
        "item": draw.exponential(ITEMS / 5, rows).astype(np.int64) % ITEMS,
        "spent": draw.uniform(0, 70, rows),
        "hour": group % 24,
    }
    return pl.DataFrame(columns).with_columns(city)


def sides(name: str, frame: pl.DataFrame) -> dict[str, Callable[[], object]]:
    """The same aggregate, plain and private."""
    case = CASES[name]
    people = dp.Session(epsilon=1_000_000, delta=0.5).protect(frame, unit=case.unit)
    spend = {"delta": case.delta} if case.delta else {}
    return {
        "plain": lambda: case.plain(frame.lazy()).collect(),
        "private": lambda: case.private(people).collect(epsilon=1, **spend),
    }


def main(rows: int, repeats: int) -> None:
    """Print the table."""
    print(f"{rows:,} rows, best of {repeats}; polars {pl.__version__}")
    print(
        f"{'':34}{'plain CPU s':>12}{'private':>9}{'ratio':>7}{'aim':>6}{'wall':>7}"
        f"{'peak MB':>9}{'(query)':>9}{'private':>9}{'(query)':>9}{'ratio':>7}{'aim':>6}"
    )
    frame = visits(rows)
    for name, case in CASES.items():
        times = best_times(sides(name, frame), repeats)
        (cpu, wall), (private_cpu, private_wall) = times["plain"], times["private"]
        (most, grown), (private_most, private_grown) = (
            peak(__file__, name, side, str(rows)) for side in ("plain", "private")
        )
        print(
            f"{name:34}{cpu:12.2f}{private_cpu:9.2f}{private_cpu / cpu:7.2f}{case.aim:>6}"
            f"{private_wall / wall:7.2f}{most:9.0f}{grown:9.0f}{private_most:9.0f}"
            f"{private_grown:9.0f}{private_most / most:7.2f}{MEMORY_AIM:>6}",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        case, side, size = sys.argv[2:]
        work = sides(case, visits(int(size)))[side]
        sides(case, visits(1000))[side]()  # what the first query loads is not its memory
        report(work)
    else:
        main(
            int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS,
            int(sys.argv[2]) if len(sys.argv) > 2 else 5,
        )
