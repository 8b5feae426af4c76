"""An audit of a plan that is charged in mu squared."""

from __future__ import annotations

import polars as pl

import dpframe as dp


def test_a_plan_in_a_gaussian_session_is_audited_by_what_its_mu_implies() -> None:
    session = dp.Session(epsilon=4, delta="1e-6", composition="gdp")
    people = session.protect(pl.LazyFrame(schema={"x": pl.Int64}), dp.Rows())
    found = people.dp_count().audit(epsilon=1, runs=300)
    assert 0 <= found.proved <= found.claimed
    assert session.spent == dp.GDP(0)
