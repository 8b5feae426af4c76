"""How long planning takes, for five plan sizes. Planning reads no data, so the frame is tiny.

    python benchmarks/planning.py [REPEATS]

CPU time, best of REPEATS runs, which other work on the machine changes less than the time that
passes. `read` is building the query (verbs, expressions, checks), `plan` is choosing mechanisms and
costs, `explain` is writing the plan down. The first query of a process also pays for imports inside
Polars, and is shown separately. Then plans with a hundred thousand bins or candidates; the aims are
200 ms to plan and 100 ms to print.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

import dpframe as dp

MANY = 100_000
SIZES = (1, 3, 10, 100, 1000)
BUDGETS = {
    "pure DP": ({"epsilon": 1000}, {"epsilon": 1}),
    "approximate DP": ({"epsilon": 1000, "delta": 0.1}, {"epsilon": 1, "delta": 1e-8}),
    "zCDP": ({"rho": 1000}, {"rho": 1}),
}


def ask(people: dp.PrivateFrame, size: int) -> dp.PrivateQuery:
    """A filter, a derived column, a group-by, and `size` aggregates of different columns."""
    columns = [f"x{i}" for i in range(size - 1)]
    kinds = [
        lambda c: dp.sum(c, (0, 60)),
        lambda c: dp.mean(c, (17, 90)),
        lambda c: dp.count(c).alias(f"{c}_n"),
    ]
    return (
        people.filter(pl.col("age") >= 40)
        .with_columns(**{c: pl.col("hours") - 40 + i for i, c in enumerate(columns)})
        .group_by("education", keys=["Bachelors", "Masters", "Doctorate"])
        .agg(dp.count().alias("n"), *(kinds[i % 3](c) for i, c in enumerate(columns)))
    )


def main(repeats: int) -> None:
    """Print the table."""
    print("milliseconds of CPU time, best of", repeats)
    print(
        f"{'measure':16}{'aggregates':>11}{'read':>9}{'plan':>9}{'explain':>9}{'total':>9}"
        f"{'first':>9}"
    )
    for measure in BUDGETS:
        for size in SIZES:
            first, *parts = _measured(measure, size, repeats)
            columns = "".join(f"{part:9.2f}" for part in (*parts, sum(parts), first))
            print(f"{measure:16}{size:11}{columns}")


def large(repeats: int) -> None:
    """Print how long plans with many bins or candidates take."""
    people = dp.Session(epsilon=1000).protect(pl.DataFrame({"x": [1.0]}), unit=dp.Rows())
    draw = np.random.default_rng(0)
    edges = np.sort(draw.uniform(0, 600, MANY)).tolist()
    asked: dict[str, Callable[[], dp.PrivateQuery]] = {
        "equal bins": lambda: people.dp_histogram("x", bins=MANY, bounds=(0, 600)),
        "listed edges": lambda: people.dp_histogram("x", bins=edges),
        "candidates": lambda: people.agg(dp.median("x", candidates=edges)),
        "equal bins, distribution": lambda: people.dp_cdf("x", bins=MANY, bounds=(0, 600)),
        "1,000 bins, distribution": lambda: people.dp_cdf("x", bins=1000, bounds=(0, 600)),
    }
    print(f"{f'{MANY:,}':26}{'first':>9}{'plan':>9}{'print':>9}")
    for name, ask_ in asked.items():
        first = _milliseconds(lambda ask_=ask_: ask_().plan(epsilon=1))
        plan = ask_().plan(epsilon=1)
        again = _best(repeats, lambda ask_=ask_: ask_().plan(epsilon=1))
        print(f"{name:26}{first:9.1f}{again:9.1f}{_best(repeats, plan.explain):9.1f}")


def _measured(measure: str, size: int, repeats: int) -> tuple[float, ...]:
    """Milliseconds of a first query, and the best of reading, planning and explaining."""
    budget, spend = BUDGETS[measure]
    rows = pl.DataFrame({"age": [50], "hours": [40], "education": ["Masters"]})
    people = dp.Session(**budget).protect(rows, unit=dp.Rows())
    first = _milliseconds(lambda: ask(people, size).plan(**spend).explain())
    query = ask(people, size)
    plan = query.plan(**spend)
    return (
        first,
        _best(repeats, lambda: ask(people, size)),
        _best(repeats, lambda: query.plan(**spend)),
        _best(repeats, plan.explain),
    )


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def _best(repeats: int, work: Callable[[], object]) -> float:
    return min(_milliseconds(work) for _ in range(repeats))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
    large(5)
