"""How many groups appear without listed keys, if people are in one to 300 of them.

    python benchmarks/error_groups.py

60,000 made-up people, groups with sizes as words have them (Zipf), numbers of groups per person
with a heavy tail. The table compares each limit of groups per person with weights, which need no
limit: in one round with the sums of weights, and in several rounds with the groups alone.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import dpframe as dp

PEOPLE, GROUPS, MOST = 60_000, 30_000, 300
LIMITS = (1, 2, 4, 8, 16, 32)


def visits() -> pl.DataFrame:
    """A row for each person and group."""
    rng = np.random.default_rng(7)
    sizes = 1 / np.arange(1, GROUPS + 1) ** 1.3
    each = np.ceil(rng.pareto(1.2, PEOPLE) * 2 + 1).clip(1, MOST).astype(int)
    people = np.repeat(np.arange(PEOPLE), each)
    groups = np.searchsorted(np.cumsum(sizes) / sizes.sum(), rng.random(people.size))
    return pl.DataFrame({"person": people, "group": groups.clip(0, GROUPS - 1)}).unique()


def by_limit() -> dict[int, int]:
    """The number of groups that one release finds, for each limit."""
    found = {}
    for limit in LIMITS:
        session = dp.Session(epsilon=1, delta="1e-6")
        limited = session.protect(visits(), unit="person").limit_groups(limit, by="group")
        query = limited.group_by("group").agg(dp.n_unique("person").alias("n"))
        found[limit] = query.collect(epsilon=1, delta="1e-6").height
    return found


def by_weights() -> int:
    """The number that one release finds without a limit."""
    people = dp.Session(epsilon=1, delta="1e-6").protect(visits(), unit="person")
    query = people.group_by("group").agg(dp.n_unique("person").alias("n"))
    return query.collect(epsilon=1, delta="1e-6").height


def by_rounds(rounds: int, limit: int | None = None) -> int:
    """The number that one release finds that is of nothing else."""
    people = dp.Session(epsilon=1, delta="1e-6").protect(visits(), unit="person")
    limited = people if limit is None else people.limit_groups(limit, by="group")
    query = limited.group_by("group").dp_groups(rounds=rounds)
    return query.collect(epsilon=1, delta="1e-6").height


def found_groups() -> tuple[float, float]:
    """With the best limit, and with the best that dpframe has."""
    best = max(*by_limit().values(), *(by_rounds(1, limit) for limit in LIMITS))
    return float(best), float(max(best, by_weights(), by_rounds(2)))


if __name__ == "__main__":
    for limit, number in by_limit().items():
        print(f"{limit:4} groups per person: {number} found")
        print(f"{limit:4} groups per person, nothing else of them: {by_rounds(1, limit)} found")
    print(f"by weights: {by_weights()} found")
    for rounds in (1, 2, 3, 4):
        print(f"by weights, nothing else of them, in {rounds} rounds: {by_rounds(rounds)} found")
