"""What is found and counted under limits on groups, and by weights, where people have many groups.

    python benchmarks/error_limits.py

60,000 made-up people are in 1 to 300 of 30,000 groups each. The first columns are the numbers of
groups that appear without listed keys at (1, 1e-6), under a chosen limit, and by weights, which
need none. If only the groups are requested, it is in rounds, as the mean of five releases. Then
comes the root mean square error of the numbers of people in the 200 largest groups, which are
listed, with the part of it that is bias: people that a limit drops, or who count less.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

import dpframe as dp

PEOPLE, GROUPS = 60_000, 30_000
SPEND = {"epsilon": 1, "delta": "1e-6"}
LIMITS = (1, 2, 4, 8, 16, 32)


def pairs() -> pl.DataFrame:
    """Who is in which group: a few groups are large, and a few people are in many."""
    rng = np.random.default_rng(7)
    sizes = 1 / np.arange(1, GROUPS + 1) ** 1.3
    upto = np.cumsum(sizes / sizes.sum())
    each = np.minimum(np.ceil(rng.pareto(1.2, PEOPLE) * 2 + 1), 300).astype(int)
    who = np.repeat(np.arange(PEOPLE), each)
    group = np.minimum(np.searchsorted(upto, rng.random(who.size)), GROUPS - 1)
    return pl.DataFrame({"who": who, "group": group}).unique().sort("who", "group")


def main() -> None:
    data = pairs()
    people = dp.Session(epsilon=10**6, delta="0.9").protect(data, "who")
    number = dp.n_unique("who").alias("n")
    print("groups found of", data["group"].n_unique())
    for limit in LIMITS:
        limited = people.limit_groups(limit, by="group").group_by("group")
        found = limited.agg(number).collect(**SPEND).height
        keys = sum(limited.dp_groups().collect(**SPEND).height for _ in range(5)) / 5
        print(f"  limit_groups({limit}): {found}, and {keys:.0f} with nothing else of them")
    print("  by weights:", people.group_by("group").agg(number).collect(**SPEND).height)
    for rounds in (1, 2, 3, 4):
        query = people.group_by("group").dp_groups(rounds=rounds)
        found = sum(query.collect(**SPEND).height for _ in range(5)) / 5
        print(f"  nothing but the groups, in {rounds} rounds: {found:.0f}")
    largest = data["group"].value_counts(sort=True).head(200)
    exact = largest["count"].to_numpy()
    for limit in LIMITS:
        ways = {
            f"limit_groups({limit})": people.limit_groups(limit, by="group"),
            f"limit_norm({math.sqrt(limit):.3g})": people.limit_norm(math.sqrt(limit)),
        }
        shown = []
        for name, frame in ways.items():
            query = frame.filter(pl.col("group").is_in(largest["group"].to_list()))
            counted = query.group_by("group", keys=largest["group"].to_list()).agg(number)
            bias = counted.collect(epsilon=10**5)["n"].to_numpy() - exact
            off = counted.collect(**SPEND)["n"].to_numpy() - exact
            rmse, alone = (float(np.sqrt((x.astype(float) ** 2).mean())) for x in (off, bias))
            shown.append(f"{name}: {rmse:.1f}, of it bias {alone:.1f}")
        print("  " + "; ".join(shown))


if __name__ == "__main__":
    main()
