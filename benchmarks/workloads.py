"""How long tables from one budget take: to plan them, to compute what is measured, and to answer.

    python benchmarks/workloads.py [REPEATS]

Best of REPEATS runs, in seconds; noise is left out, which `benchmarks/noise.py` times. `measure` is
the exact part, from a table of all cells; `answer` makes every wanted table of whole numbers, and
`from 0 up` makes those of categories without negative ones instead. Last, it times
how dpframe finds which of many queries have the same groups, and which are margins of one another,
for a growing number of queries.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.optimise.queries import Queries, merge, related_blocks
from dpframe.workloads import (
    Axis,
    Estimate,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    apportion,
    best_tables,
    nearest_nonnegative,
)

T = TypeVar("T")


def cube(sizes: tuple[int, ...]) -> Workload:
    """All tables of some columns."""
    kinds = itertools.product(("cells", "total"), repeat=len(sizes))
    return Workload(tuple(map(Axis.nominal, sizes)), tuple(map(Wanted, kinds)))


def cdf(*sizes: int) -> Workload:
    """The distribution function of the last column, for each of the others."""
    *groups, last = sizes
    axes = (*map(Axis.nominal, groups), Axis.ordered(last))
    return Workload(axes, (Wanted((*["cells"] * len(groups), "prefixes")),))


WORKLOADS = {
    "roll-up of 42 x 2": cube((42, 2)),
    "cube of 9 x 16 x 7": cube((9, 16, 7)),
    "cube of 10^6 cells, six columns": cube((10,) * 6),
    "distribution function, 1000 bins": cdf(1000),
    "distribution function, 10^6 bins": cdf(10**6),
    "the same of 1000 bins in 1000 groups": cdf(1000, 1000),
}


def main(repeats: int) -> None:
    """Print the table."""
    print(f"seconds, best of {repeats}")
    titles = f"{'plan':>9}{'measure':>9}{'answer':>9}{'from 0 up':>11}"
    print(f"{'':40}{'spend':>8}{'parts':>7}{titles}")
    for name, workload in WORKLOADS.items():
        for spend, degree in (("rho", 1), ("epsilon", 2)):
            planning, strategy = _best(
                repeats, lambda w=workload, d=degree: best_tables(Workload(w.axes, w.tables), d)
            )
            table = np.arange(np.prod([a.size for a in workload.axes])) % 97
            table = table.reshape([axis.size for axis in workload.axes])
            exact, parts = _best(repeats, lambda s=strategy, t=table: [p.of(t) for p in s.parts])
            answering, _ = _best(repeats, lambda s=strategy, p=parts: _answer(s, p))
            row = f"{planning:9.3f}{exact:9.3f}{answering:9.3f}"
            if not any(axis.is_ordered for axis in workload.axes):
                noise = [25.0 * v for v in strategy.unit_variances]
                noisy = _with_noise(strategy, parts, noise)
                held, _ = _best(
                    repeats, lambda s=strategy, p=noisy, n=noise: _from_zero_up(s, p, n)
                )
                row += f"{held:11.3f}"
            print(f"{name:40}{spend:>8}{len(strategy.parts):7}{row}")
    print(f"\n{'queries':>9}{'merged':>9}{'related':>9}")
    for number in (75, 150, 300, 600):
        asked = related(number)
        merging, (blocks, _) = _best(repeats, lambda a=asked: merge(a))
        relating, _ = _best(repeats, lambda b=blocks: list(related_blocks(b)))
        print(f"{number:9}{merging:9.3f}{relating:9.3f}")


def related(number: int) -> Queries:
    """Tables by up to three of eight columns, of ever other rows."""
    names = [f"c{i}" for i in range(8)]
    private = dp.Session(epsilon=1).protect(
        pl.DataFrame({"x": [1], **{name: [0] for name in names}}), dp.Rows()
    )
    tables = [by for size in (1, 2, 3) for by in itertools.combinations(names, size)]
    asked = []
    for place in range(number):
        turn, at = divmod(place, len(tables))
        keys = {name: range(2 + place % 3) for name in tables[at]}
        groups = private.filter(pl.col("x") > turn).group_by(*tables[at], keys=keys)
        asked.append(groups.agg(dp.count().alias(f"n{place}"))._query)
    return Queries(tuple(asked))


def _with_noise(strategy: Strategy, parts: list, noise: list[float]) -> list:
    """So much that some cells are below zero."""
    rng = np.random.default_rng(0)
    return [
        part + np.rint(rng.normal(0, variance**0.5, part.shape)).astype(np.int64)
        for part, variance in zip(parts, noise, strict=True)
    ]


def _from_zero_up(strategy: Strategy, noisy: list, noise: list[float]) -> list:
    estimate = Estimate(strategy, noisy)
    kept = [tuple(k != "total" for k in t.kinds) for t in strategy.workload.tables]
    errors = [strategy.error(table, noise) for table in strategy.workload.tables]
    shape = tuple(axis.size for axis in strategy.workload.axes)
    near = {k: estimate.cells(k) for k in kept}
    cells = apportion(nearest_nonnegative(near, dict(zip(kept, errors, strict=True)), shape))
    return [cells.sum(axis=tuple(i for i, k in enumerate(one) if not k)) for one in kept]


def _answer(strategy: Strategy, parts: list) -> list:
    whole = WholeTables(Estimate(strategy, parts))
    return [
        whole.cells([k != "total" for k in t.kinds], [k == "prefixes" for k in t.kinds])
        for t in strategy.workload.tables
    ]


def _best(repeats: int, work: Callable[[], T]) -> tuple[float, T]:
    times, found = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    return min(times), found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
