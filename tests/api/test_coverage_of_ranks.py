"""Quantiles that are answered together are as near in ranks as plans say, and stated bounds are not
far above what is seen.

A bound holds for whatever data there is, so of any one frame it holds more often than 95% of the
time. Of ranks that are read off counts it holds for each number of rows up to a cell at once; of
choices it is by the union bound over all candidates, each at each place that rows may be put at.
So both are held against the errors of rows that are spread evenly, which are among the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.mechanisms import RecursiveExponential
from tests.audit.test_audit import seeded

GROUPS, ROWS, RUNS = 100, 1000, 30
SHARES = [0.25, 0.5, 0.75]
WAYS: dict[str, tuple[dict[str, Any], int, str, float]] = {
    "one inside the other": ({"epsilon": "0.5"}, 1000, "recursive_exponential", 9),
    "one inside the other, in rho": ({"rho": "0.03"}, 1000, "recursive_exponential", 9),
    "read off counts": ({"epsilon": "0.02"}, 10, "discrete_laplace", 5),
    "read off counts, in rho": ({"rho": "0.0002"}, 4, "discrete_gaussian", 5),
}
"""What is spent, the largest value, how quantiles are answered, and how far a bound may be above
the error that is exceeded in 5% of groups.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_ranks_are_as_near_as_plans_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spend, most, kind, loose = WAYS[name]
    seeded(monkeypatch, 4)
    values = np.arange(ROWS) * (most + 1) // ROWS
    rows = {"g": np.repeat(np.arange(GROUPS), ROWS), "x": np.tile(values, GROUPS)}
    frame = dp.Session(**dict.fromkeys(spend, 10**6)).protect(pl.DataFrame(rows), dp.Rows())
    by_group = frame.group_by("g", keys=range(GROUPS))
    query = by_group.agg(q=pl.col("x").dp_quantile(SHARES, bounds=(0, most)))
    plan = query.plan(**spend)
    law = plan.releases[0].law
    assert law.name == kind
    path = float(law.path) if isinstance(law, RecursiveExponential) else 1.0
    worst = []
    for _ in range(RUNS):
        chosen = np.array(query.collect(**spend)["q"].to_list())
        below, upto = (np.searchsorted(values, chosen, side) for side in ("left", "right"))
        target = np.array(SHARES) * ROWS
        away = np.maximum(np.maximum(below - target, target - upto), 0)
        worst.append(away.max(axis=1))
    seen = np.concatenate(worst)
    bound = plan.accuracy("q") * path
    assert (seen <= bound).mean() >= 0.95
    assert bound <= loose * np.quantile(seen, 0.95), (bound, np.quantile(seen, 0.95))
