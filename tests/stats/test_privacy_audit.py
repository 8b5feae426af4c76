"""Empirical audits: a lower bound on epsilon that never exceeds the claim, and comes near it.

A query runs on worst-case neighbours, in each of many groups at once so that one run gives many
independent outcomes. For an event with probability p on one side and q on the other, (epsilon,
delta)-privacy says p <= exp(epsilon) q + delta; with Clopper-Pearson bounds on p and q that gives a
lower bound on epsilon with 95% confidence. Where it exceeds the claim the noise is too small, and
where it stays far below for every event the noise is larger than it has to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import stats

import dpframe as dp

pytestmark = pytest.mark.slow

N = 300_000
KEYS = pl.Series("g", range(N))
Query = Callable[[dp.PrivateGroupBy], dp.PrivateQuery]


def lower_bound(hits: int, others: int, n: int, delta: float, doubt: float) -> float:
    """ln((p - delta) / q) for the least p and the largest q that counts of n leave plausible."""
    least = stats.beta.ppf(doubt / 2, hits, n - hits + 1) if hits else 0.0
    most = stats.beta.ppf(1 - doubt / 2, others + 1, n - others) if others < n else 1.0
    return math.log((least - delta) / most) if least > delta else -math.inf


def outcomes(values: list[int], query: Query, spend: dict[str, Any]) -> NDArray[Any]:
    """The query's results in N groups that hold the same values."""
    frame = pl.DataFrame(
        {
            "g": pl.Series(np.repeat(np.arange(N), len(values)), dtype=pl.Int64),
            "x": pl.Series(values * N, dtype=pl.Int64),
        }
    )
    budget = dp.ZCDP(spend["rho"]) if "rho" in spend else dp.ApproxDP(1000, 0.5)
    private = dp.Session(budget).protect(frame, dp.Rows())
    released = query(private.group_by("g", keys=KEYS)).collect(**spend)
    return released[released.columns[-1]].fill_null(-1).to_numpy()


def audit(one: NDArray[Any], other: NDArray[Any], delta: float = 0.0) -> float:
    """The largest bound over events "at least" and "at most" a threshold, either way round; the
    doubt is shared among them.
    """
    both = np.concatenate([one, other])
    points = np.unique(both)
    if points.size > 25:
        points = np.unique(np.quantile(both, np.linspace(0.02, 0.98, 25), method="nearest"))
    doubt = 0.05 / (4 * points.size)
    return max(
        lower_bound(
            int(reaches(p, point).sum()), int(reaches(q, point).sum()), one.size, delta, doubt
        )
        for point in points
        for reaches in (np.greater_equal, np.less_equal)
        for p, q in ((one, other), (other, one))
    )


def counted(groups: dp.PrivateGroupBy) -> dp.PrivateQuery:
    return groups.agg(dp.count())


def chosen(mechanism: str = "auto") -> Query:
    return lambda groups: groups.agg(pl.col("x").dp_argmax(candidates=[0, 1], mechanism=mechanism))


CASES: dict[str, tuple[list[int], list[int], Query]] = {
    "count": ([], [0], counted),
    "sum": ([3], [3, -50], lambda groups: groups.agg(pl.col("x").dp_sum((-50, 20)))),
    "distinct values": ([7], [7, 8], lambda groups: groups.agg(pl.col("x").dp_n_unique())),
    "argmax": ([], [1], chosen()),
    "noisy max": ([0] * 6, [0] * 7, chosen("report_noisy_max")),
    "median": ([0], [0, 3], lambda groups: groups.agg(pl.col("x").dp_median(candidates=[0, 3]))),
    "mean": ([0, 0], [0, 0, 10], lambda groups: groups.agg(pl.col("x").dp_mean((0, 10)))),
}
NEAR = {"count": 0.9, "sum": 0.9, "distinct values": 0.9, "argmax": 0.9, "noisy max": 0.7}
RUNS = {"noisy max": 4}
"""Its worst outcome is rare: the longer the tail, the nearer to the claim."""


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("name", CASES)
def test_pure_privacy_is_what_is_claimed(name: str, epsilon: float) -> None:
    one, other, query = CASES[name]
    spend = {"epsilon": epsilon}
    runs = range(RUNS.get(name, 1))
    found = audit(
        np.concatenate([outcomes(one, query, spend) for _ in runs]),
        np.concatenate([outcomes(other, query, spend) for _ in runs]),
    )
    assert NEAR.get(name, 0.0) * epsilon < found <= epsilon


@pytest.mark.parametrize("name", ["count", "argmax"])
def test_zero_concentrated_privacy_is_what_is_claimed(name: str) -> None:
    """rho-zCDP implies (rho + 2 sqrt(rho ln(1 / delta)), delta) (Bun and Steinke 2016)."""
    rho, delta = 0.5, 1e-3
    one, other, query = CASES[name]
    runs = [outcomes(values, query, {"rho": rho}) for values in (one, other)]
    claim = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert 0.2 < audit(*runs, delta) <= claim


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_approximate_privacy_by_gaussian_noise_is_what_is_claimed(epsilon: float) -> None:
    delta = 0.01
    spend = {"epsilon": epsilon, "delta": delta}
    runs = [
        outcomes(values, lambda g: g.agg(dp.count(mechanism="discrete_gaussian")), spend)
        for values in ([], [0])
    ]
    assert 0.7 * epsilon < audit(*runs, delta) <= epsilon


def test_the_audit_finds_noise_that_is_too_small() -> None:
    """A count at twice the epsilon that it is said to have."""
    runs = [outcomes(values, counted, {"epsilon": 1}) for values in ([], [0])]
    assert audit(*runs) > 0.5
