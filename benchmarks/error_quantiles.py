"""How far off nine deciles are, in ranks: in this version and in another one.

    python benchmarks/error_quantiles.py DATA [OTHER] [RUNS]

DATA is the Parquet file of the Adult data; OTHER is the folder of another checkout (`git worktree
add OTHER COMMIT`). The error of a result is the distance of its quantile's rank from the ranks that
it has, 0 if it is a quantile. The table has the mean over deciles and runs, and that of the worst
decile of each run. Rho is what an epsilon of 1 and a delta of 1e-6 buy through zCDP.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

HERE = Path(__file__).parents[1]
DECILES = [number / 10 for number in range(1, 10)]
SPENDS = {"epsilon 1": {"epsilon": 1}, "rho 0.02436": {"rho": "0.02436"}}
CASES = {
    "age, 1,000 rows, 101 points": ("age", (0, 100), 1_000),
    "age, all rows": ("age", (0, 100), None),
    "fnlwgt, 1,000 rows": ("fnlwgt", (0, 1_500_000), 1_000),
    "fnlwgt, all rows": ("fnlwgt", (0, 1_500_000), None),
    "hours, 1,000 rows": ("hours_per_week", (0, 100), 1_000),
    "capital gain, all rows": ("capital_gain", (0, 100_000), None),
}


def main(data: Path, other: Path | None, runs: int) -> None:
    """Print the table."""
    mine = _errors(HERE, data, runs)
    theirs = {} if other is None else _errors(other, data, runs)
    heads = ("other", "worst", "this", "worst", "other / this")
    print(f"{'':44}" + "".join(f"{head:>13}" for head in heads))
    for name, (mean, worst) in mine.items():
        before, most = theirs.get(name, (float("nan"), float("nan")))
        ratio = before / mean if mean else float("inf")
        figures = "".join(f"{figure:13.2f}" for figure in (before, most, mean, worst, ratio))
        print(f"{name:44}{figures}")


def _errors(side: Path, data: Path, runs: int) -> dict[str, tuple[float, float]]:
    environment = os.environ | {"PYTHONPATH": str(side)}
    asked = [sys.executable, __file__, "--side", str(side), str(data), str(runs)]
    done = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return found


def _side(side: Path, data: Path, runs: int) -> dict[str, tuple[float, float]]:
    """The errors of each case, in the version that this process imports."""
    import dpframe as dp

    if not Path(dp.__file__).is_relative_to(side):
        raise SystemExit(f"dpframe was not imported from {side}")
    adult = pl.read_parquet(data)
    found = {}
    for name, (column, bounds, rows) in CASES.items():
        values = adult.select(column).drop_nulls()
        public = values if rows is None else values.sample(rows, seed=5)
        for spend, amount in SPENDS.items():
            people = dp.Session(**amount).protect(public.clear(), dp.Rows())
            query = people.agg(dp.quantile(column, DECILES, bounds))
            results = query.simulate(public, runs=runs, **amount).results
            chosen = results["noisy"].to_numpy().reshape(runs, len(DECILES))
            found[f"{name}; {spend}"] = _off(public[column].sort().to_numpy(), chosen)
    return found


def _off(ordered: np.ndarray, chosen: np.ndarray) -> tuple[float, float]:
    """The mean distance in ranks, and that of the worst decile of each run."""
    target = np.array(DECILES) * ordered.size
    below, upto = (np.searchsorted(ordered, chosen, side) for side in ("left", "right"))
    off = np.maximum(np.maximum(below - target, target - upto), 0.0)
    return float(off.mean()), float(off.max(axis=1).mean())


if __name__ == "__main__":
    if sys.argv[1] == "--side":
        print(json.dumps(_side(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))))
    else:
        second = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
        main(Path(sys.argv[1]), second, int(sys.argv[3]) if len(sys.argv) > 3 else 200)
