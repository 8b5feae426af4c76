"""How far off nine deciles are, in ranks, by noisy counts of few points and by other ways.

    python benchmarks/error_few_points.py [RUNS] [DATA]

1,000 made-up rows of several shapes among 74 points, as whole years of age are: what plans choose
knows none of them. With DATA, the Parquet file of the Adult data, also 1,000 and 2,000 of its ages
among 101 points: eight disjoint samples of each, which share the runs. Means over deciles and runs,
with standard errors; a result is off by the distance of its quantile's rank from the ranks that it
has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from error_quantiles import DECILES

import dpframe as dp
from dpframe.aggregates import quantile

SIZE, LAST = 1_000, 73
EPSILONS = ("0.1", "0.3", "1", "3")
WAYS = ("separate", "cells", "counts", "at once")
SAMPLES, OLDEST = 8, 100
X: Any = pl.col("x")


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


def ages(data: Path, size: int) -> list[Any]:
    """Disjoint samples of `size` rows."""
    found = pl.read_parquet(data)["age"].drop_nulls().to_numpy()
    return np.split(np.random.default_rng(11).permutation(found)[: SAMPLES * size], SAMPLES)


def errors(rows: Any, last: int, epsilon: str, runs: int) -> dict[str, Any]:
    """The mean error of each run in four ways: separately, by counts of cells alone, as plans
    choose (counts), and by all at once.
    """
    public = pl.DataFrame({"x": rows})
    people = dp.Session(epsilon=1).protect(public.clear(), dp.Rows())
    best, most = quantile.best_runs, quantile.MOST_CELLS
    found = {}
    for way in WAYS:
        quantile.best_runs = (lambda *_: None) if way == "cells" else best
        quantile.MOST_CELLS = 0 if way == "at once" else most
        forced = {"mechanism": "exponential"} if way == "separate" else {}
        query = people.agg(q=X.dp_quantile(DECILES, (0, last), **forced))
        noisy = query.simulate(public, runs=runs, epsilon=epsilon).results["noisy"]
        found[way] = _off(np.sort(rows), noisy.to_numpy().reshape(runs, len(DECILES)))
    quantile.best_runs, quantile.MOST_CELLS = best, most
    return found


def _off(ordered: Any, chosen: Any) -> Any:
    """The mean distance in ranks of each run."""
    target = np.array(DECILES) * ordered.size
    below, upto = (np.searchsorted(ordered, chosen, side) for side in ("left", "right"))
    return np.maximum(np.maximum(below - target, target - upto), 0.0).mean(axis=1)


def main(runs: int, data: Path | None) -> None:
    """Print the table."""
    cases = [(name, LAST, [rows]) for name, rows in shapes().items()]
    if data is not None:
        cases += [(f"{size:,} ages", OLDEST, ages(data, size)) for size in (1_000, 2_000)]
    print(f"{'':30}" + "".join(f"{head:>16}" for head in WAYS))
    for name, last, samples in cases:
        for epsilon in EPSILONS:
            each = [errors(rows, last, epsilon, runs // len(samples)) for rows in samples]
            shown = ""
            for way in WAYS:
                off = np.concatenate([found[way] for found in each])
                shown += f"{off.mean():10.3f} ±{off.std() / off.size**0.5:.3f}"
            print(f"{f'{name}, epsilon {epsilon}':30}{shown}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 400, Path(given[1]) if len(given) > 1 else None)
