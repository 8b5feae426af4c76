"""The error of the best k groups: k choices that share the cost, and one noisy table.

    python benchmarks/error_topk.py [RUNS]

Rows lost by wrong choice, on average over RUNS releases: what the k largest groups have, less what
the k groups that are released have. The groups are those of a public table, 42 countries of birth
from 29,170 rows to one. A plan chooses the way with the smallest expected error, and `mechanism=`
forces one, so the table shows whether it was right. The last column is what a table of continuous
noise loses that NumPy draws, for which no budget is charged.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp

SIZES = (
    29170, 643, 583, 198, 137, 121, 114, 106, 100, 95, 90, 81, 80, 75, 73, 70, 67, 64, 62, 60, 59,
    51, 44, 43, 37, 34, 31, 29, 29, 28, 24, 20, 19, 19, 18, 18, 16, 14, 13, 13, 12, 1,
)  # fmt: skip
"""Rows of each country among the 32,561 of the table that `dpframe demo` takes, unknown ones
included."""
AMOUNTS: tuple[dict[str, Any], ...] = (
    {"epsilon": "1"},
    {"epsilon": "0.1"},
    {"epsilon": "1", "delta": "1e-6"},
    {"rho": "0.02436"},
    {"rho": "0.001"},
)
WINNERS = (1, 2, 3, 10)
RUNS = 200


def lost(chosen: list[int], k: int) -> int:
    """Rows that the best `k` groups have, less those of the chosen ones."""
    return sum(SIZES[:k]) - sum(SIZES[i] for i in chosen)


def released(
    groups: dp.PrivateGroupBy, amount: dict[str, Any], k: int, runs: int, by: str
) -> float:
    """Rows lost on average by what dpframe releases."""
    query = groups.dp_argmax(k=k, mechanism=by)
    runs_of = (query.collect(**amount)["group"].to_list() for _ in range(runs))
    return float(np.mean([lost(found, k) for found in runs_of]))


def by_floats(amount: dict[str, Any], k: int, rng: np.random.Generator, runs: int = 2000) -> float:
    """Rows lost on average by a table of continuous noise: Laplace, or Gaussian in zCDP."""
    sizes, found = np.array(SIZES, dtype=np.float64), []
    for _ in range(runs):
        if "rho" in amount:
            noise = rng.normal(0.0, 1.0 / math.sqrt(2.0 * float(amount["rho"])), sizes.size)
        else:
            noise = rng.laplace(0.0, 1.0 / float(amount["epsilon"]), sizes.size)
        found.append(lost(np.argsort(-(sizes + noise))[:k].tolist(), k))
    return float(np.mean(found))


def main(runs: int) -> None:
    rng = np.random.default_rng(4)  # of the last column only
    frame = pl.LazyFrame({"group": np.repeat(np.arange(len(SIZES)), SIZES)})
    ways = ("auto", "permute_and_flip", "exponential", "noisy_table")
    print(
        f"{'cost':32} {'k':>3} {'chosen':>17} " + "".join(f"{w:>18}" for w in ways) + "  in floats"
    )
    for amount in AMOUNTS:
        whole: dict[str, Any] = dict.fromkeys(amount, 10**6)
        whole |= {"delta": "0.1"} if "delta" in amount else {}
        session = dp.Session(**whole)
        groups = session.protect(frame, unit=dp.Rows()).group_by("group", keys=range(len(SIZES)))
        for k in WINNERS:
            chosen = groups.dp_argmax(k=k).plan(**amount).releases[0].mechanism
            errors = [released(groups, amount, k, runs, by) for by in ways]
            said = ", ".join(f"{name} {value}" for name, value in amount.items())
            line = "".join(f"{error:18.1f}" for error in errors)
            print(
                f"{said:32} {k:3} {chosen:>17} {line} {by_floats(amount, k, rng):10.1f}", flush=True
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
