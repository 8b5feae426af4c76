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


def shown_error(page: str, name: str) -> str:
    """The error of an output on a first page."""
    shown = re.search(rf"^  {name} +(.*?)  ", page, re.MULTILINE)
    assert shown is not None, page
    return shown[1]


def test_the_least_error_of_a_found_limit_is_that_of_the_limit() -> None:
    frame = dp.Session(epsilon=1).protect(
        pl.LazyFrame(schema={"who": pl.Int64, "x": pl.Float64}), "who"
    )
    for name, of in (
        ("mean", dp.mean("x", (0, 10))),
        ("sum", dp.sum("x", (0, 10))),
        ("quotient", dp.sum("x", (0, 10)) / dp.count()),
        ("parts", dp.sum("x", (0, 10)) / dp.sum("x", (0, 20))),
        ("difference", dp.sum("x", (0, 10)) - dp.count("x")),
    ):
        found = shown_error(frame.agg(of.alias(name)).explain(epsilon=1), name)
        one = shown_error(frame.limit_rows(1).agg(of.alias(name)).explain(epsilon=0.95), name)
        least, exact = (re.findall(r"± ([\d.,]+)", text)[0] for text in (found, one))
        assert float(least.replace(",", "")) == pytest.approx(
            float(exact.replace(",", "")), rel=0.1
        ), (found, one)


def test_sums_and_differences_have_one_error() -> None:
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Float64}), dp.Rows())
    for of in (dp.count() + dp.count("x"), dp.count() - dp.count("x")):
        assert re.fullmatch(r"± \d+", shown_error(frame.agg(n=of).explain(epsilon=1), "n"))
    both = shown_error(frame.agg(n=dp.count() * dp.count("x")).explain(epsilon=1), "n")
    assert both.startswith("computed from numbers with ± ")
