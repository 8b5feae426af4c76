"""How far the limit that a query finds is from the best one, and whether intervals hold.

    python benchmarks/found_limits.py [runs]

Thirty made-up data sets of each law, of 2,000 to 5,000 people whose numbers of rows are skewed;
each is counted at epsilon 1. The plan is that of a count, and the noise has its distributions.
"error" is the median of the absolute error over all runs, relative to that under the best fixed
limit. "silent" counts runs in which more than a tenth was dropped without a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dpframe as dp
from dpframe.api.payer import Spend
from dpframe.mechanisms import AdditiveMechanism
from dpframe.mechanisms.noise import noise as draw_noise
from dpframe.runner import FOR_DROPPED

SETS, RUNS, EPSILON = 30, 20, 1
LIMITS = np.unique(np.geomspace(1, 10**5, 200).astype(int))
Rows = NDArray[np.int64]


def whole(numbers: NDArray[np.float64]) -> Rows:
    return np.minimum(np.ceil(numbers), 10**6).astype(np.int64)


def outlier(rows: int) -> Callable[[np.random.Generator, int], Rows]:
    def draw(rng: np.random.Generator, people: int) -> Rows:
        found = rng.integers(1, 6, people)
        found[0] = rows
        return found

    return draw


LAWS: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "Pareto 1.0": lambda rng, n: whole(np.floor(rng.pareto(1.0, n) + 1)),
    "Pareto 1.25": lambda rng, n: whole(np.floor(rng.pareto(1.25, n) + 1)),
    "Pareto 1.5": lambda rng, n: whole(np.floor(rng.pareto(1.5, n) + 1)),
    "Pareto 1.25, from 6 rows": lambda rng, n: whole(6 * (rng.pareto(1.25, n) + 1)),
    "lognormal 1.0": lambda rng, n: whole(rng.lognormal(1, 1.0, n)),
    "lognormal 1.5": lambda rng, n: whole(rng.lognormal(1, 1.5, n)),
    "lognormal 2.0": lambda rng, n: whole(rng.lognormal(1, 2.0, n)),
    "one outlier of 1,000": outlier(1_000),
    "one outlier of 20,000": outlier(20_000),
    "1 to 8 rows": lambda rng, n: rng.integers(1, 9, n),
}


class Count:
    """A count of rows, planned once: the noise of the search, and of the count under each limit."""

    def __init__(self) -> None:
        empty = pl.DataFrame(schema={"who": pl.Int64})
        query = dp.Session(epsilon=EPSILON).protect(empty, unit="who").dp_count()
        asked = query._batch(Spend(epsilon=EPSILON), "auto", False)
        prepared = query._bound().prepare(asked, Spend(epsilon=EPSILON))
        assert prepared.limits is not None
        self.rule = prepared.limits.rule
        laws = [option.plan.releases[0].noise for option in prepared.limits.options]
        self.laws = [law for law in laws if isinstance(law, AdditiveMechanism)]

    def runs(self, rows: Rows, runs: int) -> Iterator[tuple[int, int, int, int, bool]]:
        """The limit, the number with its interval, and whether there is a warning; of each run."""
        rule, law = self.rule, self.rule.law
        assert law is not None
        places = np.searchsorted(rule.limits, rows)
        bins = np.bincount(places, minlength=len(rule.limits) + 1)
        miss = Fraction(1, 20)
        for _ in range(runs):
            counts = (bins + draw_noise(law.kernel_law, bins.size)).tolist()
            loss = rule.best_loss(counts)
            limit, noise = rule.limits[loss.place], self.laws[loss.place]
            value = int(np.minimum(rows, limit).sum() + draw_noise(noise.kernel_law, 1)[0])
            reach = noise.quantile(1 - miss * (1 - FOR_DROPPED))
            most = rule.most(counts, loss.place, miss * FOR_DROPPED).rows
            yield limit, value, value - reach, value + reach + most, loss.is_much


def main(runs: int) -> None:
    print("| rows of a person | error | held | silent | upper end, times exact | limits |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    count = Count()
    for name, law in LAWS.items():
        rng = np.random.default_rng(7)
        errors, ends, found = list[float](), list[float](), list[int]()
        held = silent = 0
        fixed = []
        for _ in range(SETS):
            rows = law(rng, int(rng.integers(2000, 5001)))
            exact = int(rows.sum())
            drops = np.array([np.maximum(0, rows - limit).sum() for limit in LIMITS])
            fixed.append(abs(rng.laplace(0, LIMITS / EPSILON, (200, LIMITS.size)) - drops))
            for limit, value, low, high, is_warned in count.runs(rows, runs):
                dropped = int(np.maximum(0, rows - limit).sum())
                errors.append(abs(value - exact))
                ends.append(high / exact)
                found.append(limit)
                held += low <= exact <= high
                silent += dropped > exact / 10 and not is_warned
        best = np.median(np.concatenate(fixed), axis=0).min()
        middle = f"{np.percentile(found, 10):,.0f} to {np.percentile(found, 90):,.0f}"
        print(
            f"| {name} | {np.median(errors) / best:.2f} | {held / (SETS * runs):.3f} | {silent} | "
            f"{np.median(ends):.1f} | {middle} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
