"""The error of a quotient that the first page of a plan shows, against many releases of it."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dpframe as dp

GROUPS = 1000
"""Groups with equal rows: each release of them is as many of one."""
WRONG = 1e-6
"""How often a test may fail by chance."""

QUOTIENTS = {
    "a sum by a count": lambda: dp.sum("x", (0, 10)) / dp.count(),
    "a sum by the count of its values": lambda: dp.sum("x", (0, 10)) / dp.count("x"),
    "a count by a count": lambda: dp.count("x") / dp.count(),
}


@pytest.mark.parametrize("size", [40, 300])
@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_a_quotient_is_within_the_error_that_the_first_page_shows(quotient: str, size: int) -> None:
    rows = np.tile(np.arange(size) % 11.0, GROUPS)
    frame = pl.DataFrame({"g": np.repeat(np.arange(GROUPS), size), "x": rows})
    grouped = dp.Session(epsilon=1).protect(frame, dp.Rows()).group_by("g", keys=range(GROUPS))
    query = grouped.agg(QUOTIENTS[quotient]().alias("q"))
    page = query.explain(epsilon=1, size=size)
    shown = re.search(r"^  q +± ([\d.,]+)", page, re.MULTILINE)
    assert shown is not None, page
    exact = 1.0 if quotient == "a count by a count" else frame["x"].mean()
    off = (query.collect(epsilon=1)["q"] - exact).abs().to_numpy()
    error = float(shown[1].replace(",", ""))
    within = int((off <= error).sum())
    assert binom.cdf(within, GROUPS, 0.95) > WRONG
    assert error < 6 * np.quantile(off, 0.95)
