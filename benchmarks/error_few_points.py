"""How far off nine deciles are, in ranks, by noisy counts of few points and by one choice of all.

    python benchmarks/error_few_points.py [RUNS]

1,000 made-up rows of several shapes among 74 points, as whole years of age are: what plans choose
knows none of them. Means over deciles and runs; a result is off by the distance of its quantile's
rank from the ranks that it has.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import polars as pl
from error_quantiles import DECILES, _off

import dpframe as dp
from dpframe.aggregates import quantile_family

SIZE, LAST = 1_000, 73
EPSILONS = ("0.1", "0.3", "1", "3")


def shapes() -> dict[str, Any]:
    """Rows as whole numbers from 0 to the last point."""
    rng = np.random.default_rng(3)
    low = rng.random(SIZE) < 0.5
    peaks = np.where(low, rng.normal(18, 4, SIZE), rng.normal(55, 4, SIZE)).round()
    found = {
        "like ages": rng.gamma(3.0, 8.0, SIZE),
        "uniform": rng.integers(0, LAST + 1, SIZE),
        "two peaks": peaks,
        "heavy tail": rng.pareto(1, SIZE) * 4,
        "eight values": rng.integers(0, 8, SIZE) * 9,
    }
    return {name: np.clip(rows, 0, LAST).astype(np.int64) for name, rows in found.items()}


def errors(rows: Any, epsilon: str, runs: int) -> tuple[float, float]:
    """By counts, which plans choose, and by all at once, which is what else they may do."""
    ordered, found = np.sort(rows), []
    people = dp.Session(epsilon=10**6).protect(pl.DataFrame({"x": rows}), dp.Rows())
    asked = pl.col("x").dp_quantile(DECILES, bounds=(0, LAST))  # type: ignore[attr-defined]
    counts = quantile_family.MOST_CELLS
    for most in (counts, 0):
        quantile_family.MOST_CELLS = most
        query = people.agg(q=asked)
        results = [query.collect(epsilon=epsilon).item().to_numpy() for _ in range(runs)]
        found.append(_off(ordered, np.array(results))[0])
    quantile_family.MOST_CELLS = counts
    return found[0], found[1]


def main(runs: int) -> None:
    """Print the table."""
    print(f"{'':30}" + "".join(f"{head:>10}" for head in ("counts", "at once")))
    for name, rows in shapes().items():
        for epsilon in EPSILONS:
            counts, once = errors(rows, epsilon, runs)
            print(f"{f'{name}, epsilon {epsilon}':30}{counts:10.2f}{once:10.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
