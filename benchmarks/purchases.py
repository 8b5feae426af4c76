"""The rows and the plain Polars aggregates that benchmarks compare with. Needs no dpframe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np
import polars as pl

ROWS = 10_000_000
SHOPS = list(range(1000))
CITIES = [f"city {i}" for i in range(20)]
Times = tuple[float, float]

PLAIN: Mapping[str, Callable[[pl.LazyFrame], pl.DataFrame]] = {
    "filtered count": lambda frame: frame.filter(pl.col("age") >= 40).select(pl.len()).collect(),
    "sum by 1,000 keys": lambda frame: (
        frame.group_by("shop").agg(pl.col("spent").clip(0, 500).sum()).sort("shop").collect()
    ),
    "float sum by 1,000 keys": lambda frame: (
        frame.group_by("shop").agg(pl.col("price").clip(0, 500).sum()).sort("shop").collect()
    ),
    "mean by 20 keys": lambda frame: (
        frame.group_by("city").agg(pl.col("age").clip(17, 90).mean()).sort("city").collect()
    ),
}


def purchases(rows: int) -> pl.DataFrame:
    """Random rows; which ones does not matter."""
    draw = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": draw.integers(17, 91, rows),
            "shop": draw.integers(0, len(SHOPS), rows),
            "spent": draw.integers(0, 600, rows),
            "price": draw.uniform(0, 600, rows),
            "city": pl.Series(draw.integers(0, len(CITIES), rows)).replace_strict(
                range(len(CITIES)), CITIES, return_dtype=pl.String
            ),
        }
    )


def best_times(work: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Times]:
    """CPU seconds of all threads, and wall seconds: the best of interleaved runs."""
    runs: dict[str, list[Times]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, times in runs.items():
            cpu, wall = time.process_time(), time.perf_counter()
            work[name]()
            times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: (min(cpu for cpu, _ in times), min(wall for _, wall in times))
        for name, times in runs.items()
    }
