"""The error of released results: with separate noise for each part, and with joint noise.

    python benchmarks/error_joint.py [RUNS]

"separate" gives every noisy number of a plan its own noise; "joint" is what dpframe releases. Each
is the root mean square error of RUNS releases of the same query on the same data at the same spend.
"expected" is the ratio of the standard deviations that the plans state. "limit" is the ratio for
the best known mechanism, if it has a formula.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.optimise import planning

ROWS = 2_000
SPENDS: dict[str, dict[str, Any]] = {
    "epsilon 1": {"epsilon": 1},
    "rho 0.02436": {"rho": "0.02436"},
    "(1, 1e-6)": {"epsilon": 1, "delta": "1e-6"},
}
LIMITS = {
    "epsilon 1": {2: 1.55, 5: 2.31, 10: 2.79, 30: 3.20},
    "rho 0.02436": {2: 1.17, 5: 1.38, 10: 1.52, 30: 1.69},
    "(1, 1e-6)": {2: 1.55, 5: 2.31, 10: 2.63, 30: 1.75},
}


def people() -> pl.DataFrame:
    """Made-up rows with a country, hours beyond forty and an age."""
    rng = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "country": rng.choice(["A", "B", "C"], ROWS),
            "overtime": rng.integers(0, 40, ROWS),
            "age": rng.gamma(9.0, 4.3, ROWS).clip(17, 90).astype(int),
        }
    )


@contextmanager
def apart() -> Iterator[None]:
    """Separate noise for every part of a plan."""
    real: Callable[..., Any] = planning.ways_of
    planning.ways_of = lambda *asked: real(*asked)[:1]
    try:
        yield
    finally:
        planning.ways_of = real


def errors(query: dp.PrivateQuery, exact: pl.DataFrame, spend: dict[str, Any], runs: int) -> Any:
    """Root mean square errors by output, over groups and runs."""
    numbers = exact.select(pl.col(pl.Int64, pl.UInt32, pl.Float64).cast(pl.Float64))
    found = [query.collect(**spend).select(numbers.columns).cast(pl.Float64) for _ in range(runs)]
    off = np.stack([(f - numbers).to_numpy() for f in found])
    return dict(zip(numbers.columns, np.sqrt(np.nanmean(off**2, axis=(0, 1))), strict=True))


def deviations(plan: dp.Plan) -> dict[str, float]:
    """The stated deviation of each output that is one number."""
    numbers = {o.name: plan.releases[o.releases[0]] for o in plan.outputs if len(o.releases) == 1}
    return {n: float(r.noise.variance()) ** 0.5 * float(r.step) for n, r in numbers.items()}


def session(spend: dict[str, Any]) -> dp.Session:
    much = {name: 10**6 if name != "delta" else "0.9" for name in spend}
    return dp.Session(**much)


def cases(frame: dp.PrivateFrame, data: pl.DataFrame) -> Iterator[tuple[str, Any, pl.DataFrame]]:
    """Name, query and exact result."""
    clip = pl.col("age").clip(17, 90)
    yield (
        "count, sum and mean by country",
        frame.group_by("country", keys=["A", "B", "C"]).agg(
            n=dp.count(), overtime=dp.sum("overtime", (0, 60)), mean_age=dp.mean("age", (17, 90))
        ),
        data.group_by("country")
        .agg(n=pl.len(), overtime=pl.col("overtime").sum(), mean_age=clip.mean())
        .sort("country"),
    )
    for size in (2, 5, 10, 30):
        parts = {f"c{i}": pl.col("age") > 20 + i for i in range(size)}
        yield (
            f"{size} overlapping counts",
            frame.agg(**{name: part.dp_sum() for name, part in parts.items()}),
            data.select(**{name: part.sum() for name, part in parts.items()}),
        )
    mean, spread = dp.mean("age", (17, 90)), dp.var("age", (17, 90))
    exact = {"m": clip.mean(), "v": clip.var(), "n": pl.len()}
    for name, asked in {
        "mean": {"m": mean},
        "mean and count": {"m": mean, "n": dp.count()},
        "mean and variance": {"m": mean, "v": spread},
    }.items():
        yield name, frame.agg(**asked), data.select(**{k: exact[k] for k in asked})


def main(runs: int) -> None:
    """Print the table."""
    data = people()
    print(f"{ROWS:,} rows, {runs} releases each; root mean square errors")
    head = f"{'work':32}{'spend':14}{'output':10}"
    print(f"{head}{'separate':>10}{'joint':>10}{'ratio':>8}{'expected':>10}{'limit':>7}")
    for label, spend in SPENDS.items():
        frame = session(spend).protect(data, unit=dp.Rows(), bounds={})
        for name, query, exact in cases(frame.drop_nulls(), data):
            with apart():
                before = errors(query, exact, spend, runs)
                stated = deviations(query.plan(**spend))
            after, planned = errors(query, exact, spend, runs), deviations(query.plan(**spend))
            outputs = list(before) if len(before) < 5 else ["c0"]
            if len(before) > 4:
                before["c0"], after["c0"] = (
                    float(np.sqrt(np.mean(np.square(list(e.values()))))) for e in (before, after)
                )
            for output in outputs:
                ratio = before[output] / after[output]
                wanted = f"{stated[output] / planned[output]:.2f}" if output in stated else ""
                size = name.split()[0]
                limit = f"{LIMITS[label][int(size)]:.2f}" if size.isdigit() else ""
                print(
                    f"{name:32}{label:14}{output:10}{before[output]:10.3f}{after[output]:10.3f}"
                    f"{ratio:8.2f}{wanted:>10}{limit:>7}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
