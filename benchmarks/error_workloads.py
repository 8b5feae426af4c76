"""The gain of many tables from one budget: errors with separate noise for each table at an equal
share, over errors of tables rebuilt from the best noisy tables.

    python benchmarks/error_workloads.py

Ratios of root mean square errors at equal privacy, from the exact variances of noise that is not
rounded; `tests/workloads` holds these against simulations. `overall` is of the sum over the tables
of their mean squared errors, each relative to what it was. `promised` are the gains of the first
prototypes; at least 90 % of them should be reached.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from dpframe.workloads import Axis, Kind, Strategy, Wanted, Workload, best_tables

ADULT = (9, 16, 7, 15, 6, 2)
"""Categories of six columns of census data."""


def marginals(sizes: tuple[int, ...], ways: tuple[int, ...], by_cells: bool = False) -> Workload:
    """Tables with these numbers of columns; with `by_cells` each number counts as much as any
    other."""
    columns = range(len(sizes))
    axes = tuple(map(Axis.nominal, sizes))
    made = Workload(
        axes,
        tuple(
            Wanted(tuple("cells" if i in chosen else "total" for i in columns))
            for k in ways
            for chosen in itertools.combinations(columns, k)
        ),
    )
    if not by_cells:
        return made
    return Workload(axes, tuple(Wanted(t.kinds, Fraction(made.outputs(t))) for t in made.tables))


def ordered(size: int, kind: Kind) -> Workload:
    """One ordered column."""
    return Workload((Axis.ordered(size),), (Wanted((kind,)),))


def gains(strategy: Strategy) -> list[float]:
    """The gain of each table."""
    workload, degree = strategy.workload, strategy.degree
    equal = len(workload.tables) ** degree
    return [
        math.sqrt(float(workload.flat(table)) * equal / strategy.error(table))
        for table in workload.tables
    ]


def overall(strategy: Strategy) -> float:
    """The gain over all tables, weighted."""
    workload = strategy.workload
    weight = float(sum(table.weight for table in workload.tables))
    equal = len(workload.tables) ** strategy.degree
    return math.sqrt(weight * equal / strategy.objective())


def main() -> None:
    """Print the table."""
    print(f"{'':46}{'promised':>9}{'tables':>9}  each table")
    roll_up = marginals((42, 2), (2, 1, 0))
    _print("roll-up of 42 x 2, rho", roll_up, 1, 1.24, each=True)
    _print("the same, where the finest cells count", marginals((42, 2), (2, 1, 0), True), 1, 1.7)
    _print("roll-up of 42 x 2, pure: 2.0, 1.4, 2.0, 1.4", roll_up, 2, None, each=True)
    _print("all pairs of six columns, by cells, rho", marginals(ADULT, (2,), True), 1, 1.3)
    for most, promised in ((2, 1.30), (3, 1.44), (6, 1.61)):
        _print(
            f"tables of up to {most} of six columns, rho",
            marginals(ADULT, tuple(range(most + 1))),
            1,
            promised,
        )
    for kind, rows in {
        "prefixes": ((101, 2.7, 1.5), (1000, 6.3, 2.9), (10_000, 15.7, 6.3), (10**6, 110, 36)),
        "ranges": ((101, 2.0, 1.2), (1000, 4.3, 2.1), (10_000, 10.3, 4.3)),
    }.items():
        what = "distribution function" if kind == "prefixes" else "all ranges"
        for size, concentrated, pure in rows:
            _print(f"{what} of {size} bins, rho", ordered(size, kind), 1, concentrated)
            _print(f"{what} of {size} bins, pure", ordered(size, kind), 2, pure)


def _print(
    name: str, workload: Workload, degree: int, promised: float | None, each: bool = False
) -> None:
    found = best_tables(workload, degree)
    said = f"{'':9}" if promised is None else f"{promised:9.2f}"
    listed = "  " + ", ".join(f"{gain:.2f}" for gain in gains(found)) if each else ""
    print(f"{name:46}{said}{overall(found):9.2f}{listed}")


if __name__ == "__main__":
    main()
