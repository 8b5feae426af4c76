"""Weights of individuals on an engine, from sums of squares of all sizes."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from dpframe.kernel.frame import PARTS
from dpframe.lower import pairs as weighing

NORMS = (64, 4096, 5793, 4096 * 100 + 1, 2**28 - 1)
ROWS = [1, 2, 3, 63, 4095, 4096, 2**20 + 1, 2**28 - 2, 2**28 - 1, 2**28, 2**31, 2**40]
"""Of an individual in a group; those beyond the norm make the weight 0."""


def squares(norm: int) -> list[int]:
    """Around all at which the weight may change, and beyond what Int64 holds sums of."""
    edges = [norm * norm // (k * k) for k in (1, 2, 3, 64, 1000, 4095, 4096)]
    near = {s + d for s in edges for d in (-1, 0, 1)} | {
        2**k + d for k in (0, 24, 56) for d in (0, 1)
    }
    return sorted(s for s in near if 0 < s < 2**62)


def weight(found: int, norm: int) -> int:
    """The largest k up to `PARTS` with k**2 found <= norm**2, by whole numbers alone."""
    return min(PARTS, math.isqrt(norm * norm // found))


def check_weights(engine: Any, native: Any) -> None:
    """Compare with plain Python what an engine makes of one frame.

    Parameters
    ----------
    native
        Makes a frame of the engine of a Polars frame.
    """
    ns, listed = engine.ns, sorted({s for norm in NORMS for s in squares(norm)})
    frame = engine.frame(native(pl.DataFrame({"s": listed}, schema={"s": pl.Int64})))
    made = [weighing._weight(ns.col("s"), norm, ns).alias(f"k{norm}") for norm in NORMS]
    (found,) = engine.collect([frame.select(ns.col("s").alias("s"), *made)])
    for row in found.iter_rows(named=True):
        assert [row[f"k{n}"] for n in NORMS] == [weight(row["s"], n) for n in NORMS], row["s"]
    pairs = [(u, n) for u, n in enumerate(ROWS)] + [(99, n) for n in ROWS[:6]] + [(100, 2**28)] * 40
    schema = {"unit": pl.Int64, weighing.ROWS: pl.Int64}
    frame = engine.frame(native(pl.DataFrame(pairs, schema=schema, orient="row")))
    for norm in NORMS:
        kept = [weighing.rows_weight(norm, ["unit"], ns), weighing.once_weight(norm, ["unit"], ns)]
        named = [column.alias(name) for column, name in zip(kept, "kw", strict=True)]
        (found,) = engine.collect([frame.select(ns.col("unit").alias("unit"), *named)])
        owned: dict[int, list[int]] = {}
        for unit, rows in pairs:
            owned.setdefault(unit, []).append(min(rows, norm + 1))
        expected = {
            (u, weight(sum(n * n for n in own), norm), weight(len(own), norm))
            for u, own in owned.items()
        }
        assert set(found.rows()) == expected
        assert found.height == len(pairs)
