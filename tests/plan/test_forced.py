"""A plan says what it costs that mechanisms or an equal split were asked for."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.report.story import forced_words
from tests.plan.edits import with_digest

FRAME = pl.LazyFrame({"x": [1, 2, 3], "y": [1.0, 2.0, None], "g": ["a", "b", "a"]})
N, MEAN = dp.count().alias("n"), dp.mean("x", (17, 90)).alias("m")


def people(**budget: Any) -> dp.PrivateFrame:
    return dp.Session(**(budget or {"epsilon": 10})).protect(FRAME, unit=dp.Rows())


def total(mechanism: Any = "auto") -> dp.DPExpr:
    return dp.sum("x", (0, 60), mechanism=mechanism).alias("s")


def ratios(plan: dp.Plan) -> dict[str, float]:
    said = forced_words(plan).partition("least error are ")[2]
    return {name: float(ratio) for name, ratio in re.findall(r"(\w+) ([0-9.e+]+)", said)}


def test_nothing_is_said_where_nothing_is_forced() -> None:
    plan = people().agg(N, MEAN, total()).plan(epsilon=1)
    assert plan.forced == ()
    assert "forced" not in plan.to_json()


def test_mechanisms() -> None:
    frame = people()
    forced = frame.agg(N, total("discrete_laplace")).plan(epsilon=1)
    least = frame.agg(N, total()).plan(epsilon=1)
    assert forced_words(forced).startswith("mechanism= of s, as asked: ")
    assert forced_words(forced) in forced.explain(details=True)
    assert least.forced == ()
    found = ratios(forced)
    assert found.keys() == {"n", "s"}
    for before, after in zip(least.releases, forced.releases, strict=True):
        wanted = math.sqrt(after.noise.variance() / before.noise.variance())  # type: ignore[attr-defined]
        assert found[after.name] == pytest.approx(wanted, rel=0.01)
        assert wanted > 1


def test_an_equal_split() -> None:
    query = people().agg(N, total("discrete_laplace"), MEAN)
    plan = query.plan(epsilon=1, split="equal")
    assert forced_words(plan).startswith('mechanism= of s and split="equal", as asked: ')
    alone = people().agg(N, dp.quantile("x", 0.5, (0, 9)).alias("q")).plan(epsilon=1, split="equal")
    assert ratios(alone)["q"] > 1 > ratios(alone)["n"]


def test_means_and_variances_err_by_all_their_parts() -> None:
    def asked(mechanism: Any) -> dp.Plan:
        mean = dp.mean("x", (17, 90), mechanism=mechanism).alias("m")
        spread = dp.var("y", (0, 9), mechanism=mechanism).alias("v")
        return people(rho=1).agg(mean, spread).plan(rho="0.1")

    found = ratios(asked("discrete_laplace"))
    assert found.keys() == {"m", "v"}
    assert min(found.values()) > 1.1


def test_what_is_least_anyway() -> None:
    plan = people().agg(dp.count(mechanism="discrete_laplace").alias("n")).plan(epsilon=1)
    assert forced_words(plan).endswith("errors are those of a plan with the least error")


def test_documents_keep_it_and_fingerprints_cover_it() -> None:
    plan = people().agg(N, total("discrete_laplace")).plan(epsilon=1)
    assert dp.Plan.from_json(plan.to_json()).forced == plan.forced
    assert replace(plan, forced=()).fingerprint != plan.fingerprint
    assert dp.Plan.from_json(replace(plan, forced=()).to_json()).forced == ()


def test_quantiles_are_compared_by_ranks() -> None:
    each = [dp.quantile("x", q / 10, (0, 99), mechanism="exponential") for q in range(1, 10)]
    named = [one.alias(f"q{q}") for q, one in enumerate(each, 1)]
    plan = people().agg(*named).plan(epsilon=1)
    assert forced_words(plan).endswith(", and 1 more")
    assert min(ratios(plan).values()) >= 1


def test_several_queries() -> None:
    session = dp.Session(epsilon=10)
    frame = session.protect(FRAME, unit=dp.Rows())
    groups = frame.group_by("g", keys=["a", "b"])
    plan = session.plan([groups.agg(N, total("discrete_laplace")), frame.agg(MEAN)], epsilon=1)
    assert ratios(plan).keys() == {"n", "s", "m"}
    assert dp.Plan.from_json(plan.to_json()).forced == plan.forced


def test_responses_whose_error_grows_with_rows_say_nothing() -> None:
    categories = dp.Session(epsilon=10).protect(
        pl.LazyFrame(schema={"b": pl.Boolean}), unit=dp.Rows("change-one")
    )
    query = categories.dp_histogram("b", mechanism="randomized_response")
    assert query.plan(epsilon=1).forced == ()


def test_spends_for_an_accuracy_are_found_as_before() -> None:
    plan = people().agg(N, total("discrete_laplace")).plan(accuracy={"n": 50})
    assert plan.forced
    assert plan.accuracy("n") <= 50


@pytest.mark.parametrize(
    "forged",
    [
        "reviewed: safe\n\nbudget",
        [{"output": 2, "named": True, "times": 1.0}],
        [{"output": -1, "named": True, "times": 1.0}],
        [{"output": 0, "named": True, "times": -1.0}],
        [{"output": 0, "named": True, "times": 0.0}],
        [{"output": 0, "named": "yes", "times": 1.0}],
        [{"output": 1, "named": True, "times": 1.0}, {"output": 0, "named": True, "times": 1.0}],
        [{"output": 0, "named": True, "times": 1.0}, {"output": 0, "named": True, "times": 2.0}],
    ],
)
def test_documents_say_nothing_of_it_but_numbers_of_outputs(forged: Any) -> None:
    plan = people().agg(N, total("discrete_laplace")).plan(epsilon=1)
    document = json.loads(plan.to_json())
    document["session"]["forced"] = forged
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(with_digest(document)))
