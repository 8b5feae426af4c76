"""Distribution functions beside counts of the same rows: they agree, and err less."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates.aggregate import variance_of
from dpframe.aggregates.margins import best_levels
from dpframe.aggregates.reconstruction import PrefixReconstruction
from dpframe.api.query import parts
from dpframe.workloads import Degree

FRAME = pl.DataFrame(
    {
        "sex": ["f", "m", "f", None, "m", "f"] * 50,
        "age": [31, 64, 20, 50, None, 41] * 50,
        "pay": [3.0, 1.0, 4.0, 1.0, 5.0, 9.0] * 50,
    }
)
EDGES = [*range(0, 64, 2)]
PLENTY: dict[str, Any] = {"epsilon": 900}
"""Noise of counts at so much epsilon is nothing, though there is some."""
SPENDS: list[dict[str, Any]] = [
    {"epsilon": 1},
    {"rho": "0.05"},
    {"epsilon": 1, "delta": "1e-6"},
]


def open_session(spend: dict[str, Any] | None = None, data: Any = FRAME) -> dp.PrivateFrame:
    amounts = {name: "0.999" if name == "delta" else 10**8 for name in spend or PLENTY}
    return dp.Session(**amounts).protect(data, unit=dp.Rows(), name="people")


def rebuilt(plan: dp.Plan) -> list[bool]:
    return ["from noisy counts of its steps" in output.note for output in plan.outputs]


def both(people: Any, **more: Any) -> Any:
    return people.agg(n=dp.count(), f=dp.cdf("age", bins=EDGES), **more)


@pytest.mark.parametrize("spend", SPENDS)
def test_both_err_less_in_one_query_and_in_several(spend: dict[str, Any]) -> None:
    people = open_session(spend)
    plan = both(people).plan(**spend)
    assert rebuilt(plan) == [True, True]
    assert "less error than if released alone" in plan.explain(details=True)
    # as one charge, each release is for both outputs
    assert all(release.users == ("n", "f") for release in plan.releases)
    several = [people.dp_count(), people.dp_cdf("age", EDGES)]
    assert people.session.plan(several, **spend).accuracy("len") == plan.accuracy("n")
    # each drawn alone, at shares at which they err least: a named mechanism takes no part in levels
    mechanism = "discrete_gaussian" if "rho" in spend else "discrete_laplace"
    alone = people.agg(n=dp.count(mechanism=mechanism), f=dp.cdf("age", bins=EDGES)).plan(**spend)
    assert not rebuilt(alone)[0]
    found = [plan.accuracy("n"), plan.accuracy("f")]
    assert sum(a / alone.accuracy(name) for a, name in zip(found, "nf", strict=True)) < 2
    # Also less than with half the spend each. Under a rho the sum of these ratios is 2.02: the
    # square root, which draws the function alone there, errs less at the worst edge.
    half = {k: "0.025" if k == "rho" else "0.5" if k == "epsilon" else v for k, v in spend.items()}
    halves = [
        people.dp_count().plan(**half).accuracy("len"),
        people.dp_cdf("age", EDGES).plan(**half).accuracy("age"),
    ]
    ratio = sum(a / b for a, b in zip(found, halves, strict=True))
    assert ratio < (2.05 if "rho" in spend else 2)


@cache
def beside_a_count() -> tuple[PrefixReconstruction, pipeline.Prepared]:
    """A distribution function of nullable numbers, and its plan."""
    frame = pl.LazyFrame(schema={"age": pl.Int64})
    query = (
        dp.Session(epsilon=1)
        .protect(frame, dp.Rows())
        .agg(n=dp.count(), f=dp.cdf("age", [3, 5, 7]))
    )
    found = pipeline.plan(parts(query)[0], dp.PureDP(1), None)
    _, function = found.query.aggregates
    assert isinstance(function, PrefixReconstruction)
    return function, found


def test_shares_of_levels_add_up_to_the_spend() -> None:
    function, _ = beside_a_count()
    shares = re.findall(r"\((\d+)% of the epsilon\)", function.note)
    assert len(shares) > 1
    assert abs(sum(map(int, shares)) - 100) <= 1


def test_the_error_of_a_function_is_that_of_its_mean_number() -> None:
    """Beside the (n + 1) / 2 cells on average that one would be added up from."""
    function, found = beside_a_count()
    noise = [variance_of(found.laws, key) for key in function.keys]
    tables, numbers, nothing = function.edges.tables, function.run, [0.0] * len(noise)
    each = [tables.moments_of((), 0, n + 1, noise, nothing)[0] for n in range(numbers)]
    expected = np.mean(each) / ((numbers + 1) / 2)
    assert function.squared_error(found.query.scope, found.laws) == pytest.approx(expected)


def test_what_comes_out_is_exact_where_there_is_no_noise() -> None:
    people = open_session()
    found = both(people, m=dp.mean("pay", (0, 10)), v=dp.count("age")).collect(**PLENTY)
    assert found["n"].item() == 300
    assert found["v"].item() == 250
    counts = [row["count"] for row in found["f"].item()]
    assert counts == [FRAME["age"].is_between(0, edge).sum() for edge in EDGES]
    total, table = people.session.collect(
        [people.dp_count(), people.dp_cdf("age", EDGES)], **PLENTY
    )
    assert total.item() == 300
    assert table["count"].to_list() == counts


@pytest.mark.parametrize("spend", SPENDS)
def test_they_agree_whatever_the_noise(spend: dict[str, Any]) -> None:
    full = FRAME.with_columns(pl.col("age").fill_null(0))
    people = open_session(spend, full).with_columns(pl.col("age").fill_null(0))
    asked = people.agg(n=dp.count(), f=dp.cdf("age", bins=32, bounds=(0, 64)))
    by_sex = people.group_by("sex", keys=["f", "m"]).agg(
        n=dp.count(), f=dp.cdf("age", bins=32, bounds=(0, 64))
    )
    for query in (asked, by_sex):
        assert rebuilt(query.plan(**spend)) == [True, True]
        for _ in range(5):
            found = query.collect(**spend)
            assert found["n"].to_list() == [rows[-1]["count"] for rows in found["f"]]


def test_the_number_of_values_and_that_of_rows() -> None:
    people = open_session()
    plan = both(people, v=dp.count("age")).plan(epsilon=1)
    assert rebuilt(plan) == [True, True, True]
    values = people.agg(v=dp.count("age"), f=dp.cdf("age", bins=EDGES)).plan(epsilon=1)
    assert rebuilt(values) == [True, True]


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("degree", [1, 2])
def test_a_total_that_costs_nothing_lowers_the_error(cells: int, degree: Degree) -> None:
    alone, beside = (best_levels(cells, degree, Fraction(1), is_free) for is_free in (False, True))
    assert beside.objective() < alone.objective()


def test_beside_a_histogram_whichever_errs_least() -> None:
    people = open_session()
    query = people.agg(n=dp.count(), h=dp.histogram("sex", ["f", "m"]), f=dp.cdf("age", bins=EDGES))
    plan = query.plan(epsilon=1)
    kinds = [
        "counts of its cells" in o.note or "counts of its steps" in o.note for o in plan.outputs
    ]
    assert kinds[0]
    found = query.collect(**PLENTY)
    assert found["n"].item() == 300
    assert [row["count"] for row in found["h"].item()] == [150, 100]


def test_ranges_know_their_error() -> None:
    people = open_session()
    asked = [people.dp_count(), people.dp_cdf("age", EDGES)]
    exact = people.session.release(asked, **PLENTY)[1]
    assert exact.between(20, 50).value == 150
    assert exact.between(20, 50).error == 0
    noisy = people.session.release(asked, epsilon=1)[1]
    assert 0 < noisy.between(30, 32).error < noisy.between(None, 62).error


def test_plans_are_read_as_they_were_written() -> None:
    people = open_session()
    asked = both(people.group_by("sex", keys=["f", "m"]))
    plan = asked.plan(epsilon=1)
    assert rebuilt(plan) == [True, True]
    read = dp.Plan.from_json(plan.to_json())
    assert read.fingerprint == plan.fingerprint
    for format in ("text", "markdown", "html", "mermaid"):
        assert read.explain(format) == plan.explain(format)  # type: ignore[arg-type]
    assert plan.accuracy("n", simultaneous=True) > plan.accuracy("n") == read.accuracy("n")
    assert plan.accuracy("f", simultaneous=True) > plan.accuracy("f") == read.accuracy("f")


def test_what_is_asked_for_is_drawn_by_itself() -> None:
    people = open_session()
    named = people.agg(n=dp.count(mechanism="discrete_laplace"), f=dp.cdf("age", bins=EDGES))
    assert rebuilt(named.plan(epsilon=1)) == [False, True]


@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"rho": "0.5"}])
def test_an_audit_proves_nearly_what_is_claimed(spend: dict[str, Any]) -> None:
    found = both(open_session(spend)).audit(**spend, runs=100_000, confidence=0.99999)
    assert 0.75 * found.claimed < found.proved <= found.claimed
    assert not found.refuted


def test_on_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    people = open_session(data=duckdb.from_arrow(FRAME.to_arrow()))
    assert rebuilt(both(people).plan(epsilon=1)) == [True, True]
    found = both(people).collect(**PLENTY)
    assert found["n"].item() == 300
    assert found["f"].item()[-1]["count"] == 200
