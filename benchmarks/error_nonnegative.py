"""What moving tables from zero up does to their errors.

    python benchmarks/error_nonnegative.py [RUNS]

Root mean square errors of the tables of grouping sets, as they are rebuilt (they may be negative)
and from zero up, over tables with many empty groups and with few; Gaussian noise for a rho.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads import (
    Axis,
    Estimate,
    Wanted,
    WholeTables,
    Workload,
    apportion,
    nearest_nonnegative,
    tables,
)

Kept = tuple[bool, ...]
Numbers = NDArray[np.int64]


def cube(columns: int) -> list[Kept]:
    return list(itertools.product((True, False), repeat=columns))


def rollup(columns: int) -> list[Kept]:
    return [tuple(i < kept for i in range(columns)) for kept in range(columns, -1, -1)]


@dataclass(frozen=True)
class Case:
    """A table of some rows, divided evenly among groups (large `evenness`) or not, and a rho."""

    name: str
    shape: tuple[int, ...]
    sets: list[Kept]
    rows: int
    evenness: float
    rho: float


CASES = [
    Case("cube of 42 x 2, 400 rows", (42, 2), cube(2), 400, 0.05, 0.001),
    Case("cube of 42 x 2, 20,000 rows", (42, 2), cube(2), 20_000, 1.0, 0.001),
    Case("roll-up of 9 x 16 x 7, 400 rows", (9, 16, 7), rollup(3), 400, 0.05, 0.002),
    Case("cube of 9 x 16 x 7, 400 rows", (9, 16, 7), cube(3), 400, 0.05, 0.002),
    Case("cube of 9 x 16 x 7, 20,000 rows", (9, 16, 7), cube(3), 20_000, 0.5, 0.02),
    Case("cube of four columns of 10, 3,000 rows", (10,) * 4, cube(4), 3_000, 0.05, 0.01),
]


def margin(table: Numbers, kept: Kept) -> Numbers:
    summed: Numbers = table.sum(axis=tuple(i for i, k in enumerate(kept) if not k), keepdims=True)
    return summed


def errors(case: Case, runs: int) -> Iterator[tuple[Kept, float, float]]:
    """For each set the error of its table, and that from zero up."""
    rng = np.random.default_rng(0)
    kinds = [tuple("cells" if k else "total" for k in kept) for kept in case.sets]
    workload = Workload(tuple(map(Axis.nominal, case.shape)), tuple(map(Wanted, kinds)))
    strategy = tables(workload, 1)
    shares = rng.dirichlet(np.full(int(np.prod(case.shape)), case.evenness))
    exact = rng.multinomial(case.rows, shares).reshape(case.shape)
    noise = [v / (2 * case.rho) for v in strategy.unit_variances]
    wanted = dict(zip(case.sets, workload.tables, strict=True))
    variances = {kept: strategy.error(table, noise) for kept, table in wanted.items()}
    squares: dict[Kept, list[tuple[float, float]]] = {kept: [] for kept in case.sets}
    for _ in range(runs):
        measured = [
            part.of(exact) + np.rint(rng.normal(0, v**0.5, part.shape)).astype(np.int64)
            for part, v in zip(strategy.parts, noise, strict=True)
        ]
        estimate = Estimate(strategy, measured)
        signed = WholeTables(estimate)
        near = {kept: estimate.cells(kept) for kept in case.sets}
        cells = apportion(nearest_nonnegative(near, variances, case.shape))
        for kept in case.sets:
            true = margin(exact, kept)
            pair = (signed.cells(kept) - true, margin(cells, kept) - true)
            squares[kept].append((float((pair[0] ** 2).mean()), float((pair[1] ** 2).mean())))
    for kept, found in squares.items():
        one, other = np.sqrt(np.mean(found, axis=0))
        yield kept, float(one), float(other)


def main(runs: int) -> None:
    """Print the table: by number of columns of a set, over all sets with that number."""
    for case in CASES:
        by_columns: dict[int, list[tuple[float, float]]] = {}
        for kept, one, other in errors(case, runs):
            by_columns.setdefault(sum(kept), []).append((one**2, other**2))
        shown = []
        for columns, found in sorted(by_columns.items(), reverse=True):
            one, other = np.sqrt(np.mean(found, axis=0))
            shown.append(f"{columns}: {one:.1f} -> {other:.1f}")
        print(f"{case.name:40} {'  '.join(shown)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
