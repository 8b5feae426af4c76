"""Histograms beside counts of the same rows: they agree, and err less."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import dpframe as dp

FRAME = pl.DataFrame(
    {
        "sex": ["f", "m", "f", None, "m", "f"] * 50,
        "age": [31, 64, 20, 50, None, 41] * 50,
        "city": ["A", "B", "C", "A", "A", "D"] * 50,
    }
)
CITIES, EDGES = ["A", "B", "C"], [0, 30, 60, 100]
PLENTY: dict[str, Any] = {"epsilon": 400}
"""Noise of counts at so much epsilon is nothing, though there is some."""


def open_session(data: Any = FRAME, **budget: Any) -> tuple[dp.Session, dp.PrivateFrame]:
    session = dp.Session(**(budget or {"epsilon": 10**8}))
    return session, session.protect(data, unit=dp.Rows(), name="people")


def rebuilt(plan: dp.Plan) -> list[bool]:
    return ["from noisy counts of its cells" in output.note for output in plan.outputs]


def test_both_err_less_in_one_query_and_in_several() -> None:
    session, people = open_session()
    both = people.agg(dp.count().alias("n"), pl.col("city").dp_histogram(CITIES).alias("h"))
    plan = both.plan(epsilon=1)
    assert rebuilt(plan) == [True, True]
    assert plan.accuracy("n") < 6 == people.dp_count().plan(epsilon="0.5").accuracy("len")
    assert plan.accuracy("h") == 3
    several = [people.dp_count(), people.dp_histogram("city", CITIES)]
    together = session.plan(several, epsilon=1)
    assert rebuilt(together) == [True, True]
    assert together.accuracy("len") == plan.accuracy("n")
    found = both.collect(**PLENTY)
    assert found["n"].item() == 300
    counts = found["h"].item().struct.field("count").to_list()
    assert counts == [150, 50, 50]
    total, table = session.collect(several, **PLENTY)
    assert total.item() == 300
    assert table["count"].to_list() == [150, 50, 50]


def test_they_add_up_whatever_the_noise() -> None:
    session, people = open_session()
    by_sex = people.group_by("sex", keys=["f", "m"])
    for _ in range(5):
        asked = [people.dp_count(), people.dp_histogram("city", CITIES, other=True)]
        total, table = session.collect(asked, epsilon="0.1")
        assert total.item() == table["count"].sum()
        found = by_sex.agg(n=dp.count(), h=pl.col("age").dp_histogram(EDGES, other=True)).collect(
            epsilon="0.1"
        )
        sums = found["h"].list.eval(pl.element().struct.field("count")).list.sum()
        assert found["n"].to_list() == sums.to_list()


def test_many_cells_have_a_measured_total() -> None:
    _, people = open_session()
    query = people.agg(n=dp.count(), h=pl.col("age").dp_histogram(20, bounds=(0, 100)))
    plan = query.plan(epsilon=1)
    if any(rebuilt(plan)):
        assert "all of them together" in plan.explain(details=True)
    session = dp.Session(rho=1)
    others = session.protect(FRAME, dp.Rows())
    concentrated = others.agg(n=dp.count(), h=pl.col("age").dp_histogram(8, bounds=(0, 100)))
    found = concentrated.plan(rho="0.01")
    assert rebuilt(found) == [True, True]
    assert "all of them together" in found.explain(details=True)
    alone = others.dp_count().plan(rho="0.005").accuracy("len")
    assert found.accuracy("n") <= alone


def test_ranges_of_bins_know_their_error() -> None:
    session, people = open_session()
    asked = [people.dp_count(), people.dp_histogram("age", EDGES)]
    releases = session.release(asked, **PLENTY)
    assert releases[1].between(30, 60).value == 150
    assert releases[1].between(0, 100).error == 0
    noisy = session.release(asked, epsilon=1)[1]
    one, two = noisy.between(0, 30).error, noisy.between(0, 60).error
    assert 0 < one < two < 2 * one + 1


def test_intervals_and_all_at_once() -> None:
    _, people = open_session()
    query = people.group_by("sex", keys=["f", "m"]).agg(
        n=dp.count(nonnegative=True), h=pl.col("city").dp_histogram(CITIES, nonnegative=True)
    )
    plan = query.plan(epsilon=1)
    assert rebuilt(plan) == [True, True]
    assert plan.accuracy("h", simultaneous=True) > plan.accuracy("h")
    assert plan.accuracy("n", simultaneous=True) > plan.accuracy("n")
    found = query.collect(epsilon=1, interval=0.95)
    assert (found["n_low"] <= found["n"]).all()
    assert (found["n"] <= found["n_high"]).all()
    assert found["h_low"].list.len().to_list() == [3, 3]


def test_plans_are_read_as_they_were_written() -> None:
    session, people = open_session()
    asked = [people.dp_count(), people.dp_histogram("age", EDGES, other=True)]
    plan = session.plan(asked, epsilon=1)
    read = dp.Plan.from_json(plan.to_json())
    assert read.fingerprint == plan.fingerprint
    for format in ("text", "markdown", "html", "mermaid"):
        assert read.explain(format) == plan.explain(format)  # type: ignore[arg-type]
    session.collect(asked, epsilon=1)
    assert session.spent == dp.PureDP(1)


def test_on_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    session, people = open_session(duckdb.from_arrow(FRAME.to_arrow()))
    asked = [people.dp_count(), people.dp_histogram("city", CITIES)]
    assert rebuilt(session.plan(asked, epsilon=1)) == [True, True]
    total, table = session.collect(asked, **PLENTY)
    assert total.item() == 300
    assert table["count"].to_list() == [150, 50, 50]
