"""How many groups appear without listed keys in rounds, by the share of the cost of each round.

    python benchmarks/error_rounds.py

Made-up people and groups of several shapes; means of five releases at (1, 1e-6), of nothing but the
groups. The ratio is the cost of noise in a round over that of the round before.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.mechanisms import groups as weighed_rounds

RATIOS, ROUNDS, RUNS = (1, 2, 4, 8, 16, 32), (2, 3), 5
SHAPES = {
    "as above": (60_000, 30_000, 1.3, 1.2, 2),
    "10,000 people": (10_000, 30_000, 1.3, 1.2, 2),
    "200,000 people": (200_000, 100_000, 1.2, 1.2, 2),
    "groups of like sizes": (60_000, 30_000, 1.0, 1.2, 2),
    "groups of unlike sizes": (60_000, 30_000, 1.6, 1.2, 2),
    "people in few groups": (60_000, 30_000, 1.3, 3, 1),
    "people in many groups": (60_000, 30_000, 1.1, 0.9, 10),
}
"""People, groups, how fast these get smaller, and how many groups a person is in (Pareto)."""


def pairs(people: int, groups: int, slope: float, tail: float, scale: float) -> pl.DataFrame:
    """Who is in which group."""
    rng = np.random.default_rng(3)
    upto = np.cumsum(1 / np.arange(1, groups + 1) ** slope)
    each = np.minimum(np.ceil(rng.pareto(tail, people) * scale + 1), 300).astype(int)
    who = np.repeat(np.arange(people), each)
    group = np.minimum(np.searchsorted(upto / upto[-1], rng.random(who.size)), groups - 1)
    return pl.DataFrame({"who": who, "group": group}).unique()


def found(data: pl.DataFrame, rounds: int) -> float:
    """How many groups come out, on average."""
    people = dp.Session(epsilon=10**6, delta="0.9").protect(data, "who")
    query = people.group_by("group").dp_groups(rounds=rounds)
    return sum(query.collect(epsilon=1, delta="1e-6").height for _ in range(RUNS)) / RUNS


def main() -> None:
    for name, shape in SHAPES.items():
        data = pairs(*shape)
        told = [f"one round {found(data, 1):.0f}"]
        for rounds in ROUNDS:
            for ratio in RATIOS:
                weighed_rounds.RATIO = ratio  # type: ignore[misc]
                told.append(f"{rounds} rounds 1:{ratio} {found(data, rounds):.0f}")
        print(f"{name}: {', '.join(told)}", flush=True)


if __name__ == "__main__":
    main()
