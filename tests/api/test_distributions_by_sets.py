"""Distribution functions by grouping sets: what comes out, that it adds up, and how it errs."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.reconstructed_error import DistributionError
from dpframe.api.query import parts
from dpframe.audit.likelihood import stated_loss
from dpframe.audit.neighbours import worst_neighbours
from dpframe.core.budget import ZCDP, PureDP
from dpframe.pipeline import plan as planned
from dpframe.plan.data import errors_by_edge
from tests.api.test_grouping_sets import KEYS, SEXES, protected, rows

EDGES = [20, 35, 50, 65, 80, 90]
BY_BOTH = dp.cube("country", "sex")


def asked(people: dp.PrivateFrame, bins: Any = EDGES, sets: Any = BY_BOTH, **options: Any) -> Any:
    return people.group_by(sets, keys=KEYS).dp_cdf("age", bins=bins, **options)


@pytest.mark.parametrize("unit", [dp.Rows(), dp.Rows("change-one"), dp.Identifier("who")], ids=str)
def test_numbers_are_those_of_each_set(unit: Any) -> None:
    frame = rows()
    people = protected(frame, unit)
    if isinstance(unit, dp.Identifier):
        people = people.limit_rows(100)
    release = asked(people).release(epsilon=10**8)
    listed = frame.filter(
        pl.col("sex").is_in(SEXES),
        pl.col("country").is_in(["A", "B"]) | pl.col("country").is_null(),
    )
    for row in release.frame.iter_rows(named=True):
        held = listed.filter(pl.col("age") <= row["age"])
        if not row["grouping"] & 2:
            held = held.filter(pl.col("country").eq_missing(row["country"]))
        if not row["grouping"] & 1:
            held = held.filter(pl.col("sex") == row["sex"])
        assert row["count"] == held.height
    assert release.frame["grouping"].unique().sort().to_list() == [0, 1, 2, 3]
    whole = release.frame.filter(pl.col("grouping") == 3)
    assert whole["share"].to_list() == pytest.approx(
        [n / listed.height for n in whole["count"].to_list()]
    )


@pytest.mark.parametrize("spend", [{"epsilon": 0.2}, {"rho": 0.002}], ids=str)
def test_noisy_numbers_add_up_exactly(spend: dict[str, float]) -> None:
    people = protected(None, None, **{name: 10 * a for name, a in spend.items()})
    found = asked(people, range(17, 91)).collect(**spend)
    finest = found.filter(pl.col("grouping") == 0)
    for bits, kept in ((1, "country"), (2, "sex")):
        sums = finest.group_by(kept, "age", maintain_order=True).agg(pl.col("count").sum())
        own = found.filter(pl.col("grouping") == bits).select(kept, "age", "count")
        assert own.sort(kept, "age").equals(sums.sort(kept, "age"))
    total = finest.group_by("age", maintain_order=True).agg(pl.col("count").sum())
    assert found.filter(pl.col("grouping") == 3).select("age", "count").equals(total)


def test_numbers_that_were_asked_to_rise_do() -> None:
    people = protected(rows(30))
    found = asked(people, range(17, 91), nonnegative=True).collect(epsilon=0.5, interval=0.95)
    for _, group in found.group_by("country", "sex", "grouping", maintain_order=True):
        assert group["count"].min() >= 0  # type: ignore[operator]
        assert group["count"].is_sorted()
    plan = asked(people, range(17, 91), nonnegative=True).plan(epsilon=0.5)
    assert "groups need not add up" in plan.explain(details=True)


def test_a_list_for_each_group_beside_a_count() -> None:
    people = protected()
    query = people.group_by(BY_BOTH, keys=KEYS).agg(n=dp.count(), ages=dp.cdf("age", bins=EDGES))
    release = query.release(epsilon=10**7)
    last = release.frame["ages"].list.last().struct.field("count")
    assert last.to_list() == release.frame["n"].to_list()
    found = release.between(20, 90, output="ages", sex="f")
    row = release.frame.filter(pl.col("grouping") == 2, pl.col("sex") == "f")
    first = row["ages"][0].struct.field("count")[0]
    assert found.value == row["n"][0] - first


def test_between_answers_groups_of_each_set() -> None:
    release = asked(protected(), range(17, 91)).release(epsilon=1)
    plan = release.plan
    each = {
        where: release.between(20, 65, **dict(where))
        for where in ((("country", "A"), ("sex", "f")), (("sex", "f"),), (("country", None),), ())
    }
    frame = release.frame
    for where, found in each.items():
        group = frame.filter(*(pl.col(n).eq_missing(pl.lit(v)) for n, v in where))
        bits = 3 - sum({"country": 2, "sex": 1}[name] for name, _ in where)
        counts = dict(group.filter(pl.col("grouping") == bits).select("age", "count").iter_rows())
        assert found.value == counts[65] - counts[20]
        assert 0 < found.error <= 2 * plan.accuracy("age")
    errors = [found.error for found in each.values()]
    assert errors[0] < errors[-1]


def test_groups_of_sets_that_were_not_asked_for_are_refused() -> None:
    release = asked(protected(), sets=dp.rollup("country", "sex")).release(epsilon=1)
    with pytest.raises(
        dp.UnsupportedOperation, match="by country and sex, by country, of all"
    ) as e:
        release.between(20, 35, sex="f")
    assert "release.between(..., country=..., sex=...)" in str(e.value)
    with pytest.raises(dp.UnsupportedOperation, match="no group with these keys"):
        release.between(20, 35, country="nowhere")
    with pytest.raises(dp.UnknownColumn):
        release.between(20, 35, grouping=3)


def test_plans_say_what_is_measured_and_are_read_again() -> None:
    for budget, spend in (({"epsilon": 9}, {"epsilon": 1}), ({"rho": 9}, {"rho": "0.02"})):
        plan = asked(protected(None, None, **budget), range(17, 91)).plan(**spend)
        text = plan.explain(details=True)
        assert "rebuilt by least squares from" in text
        assert "(the worst) by country and sex" in text
        assert "(the worst) of all groups together" in text
        again = dp.Plan.from_json(plan.to_json())
        assert again.fingerprint == plan.fingerprint
        assert again.explain(details=True) == text
        assert again.accuracy("age") == plan.accuracy("age")
        assert plan.accuracy("age", simultaneous=True) > plan.accuracy("age")
        rule = plan.outputs[0].error
        assert isinstance(rule, DistributionError)
        worst = max(e.max() for _, e in errors_by_edge(rule, plan.releases, Fraction(95, 100)))
        assert worst == plan.accuracy("age")


def test_rules_of_errors_that_cannot_be_are_refused() -> None:
    plan = asked(protected()).plan(epsilon=1)
    rule = plan.outputs[0].error
    assert isinstance(rule, DistributionError)
    edits: list[dict[str, Any]] = [
        {"sizes": (0, 2)},
        {"sizes": ()},
        {"sets": ()},
        {"sets": ((7,),)},
        {"cells": 100},
        {"shown": 0},
        {"branching": 1},
        {"measured": ((0, 1),), "levels": (0,), "weights": (Fraction(1),)},
        {"measured": ((0,),), "levels": rule.levels[-1:], "weights": (Fraction(1),)},
        {"measured": (), "levels": (), "weights": ()},
        {"levels": (9,) * len(rule.levels)},
        {"levels": ()},
        {"weights": ()},
        {"weights": (Fraction(-1),) * len(rule.weights)},
    ]
    for edit in edits:
        with pytest.raises(ValueError, match=r"edges|tree|grouping set|noisy table|zip"):
            replace(rule, **edit)
    document = json.loads(plan.to_json())
    document["plan"]["outputs"][0]["error"]["sizes"] = [0, 2]
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(document))


def test_it_errs_less_than_distribution_functions_that_share_the_spend() -> None:
    """Each set alone, at an equal share of a rho."""
    people = protected(None, None, rho=10)
    together = asked(people, range(17, 91)).plan(rho="0.04")
    rule = together.outputs[0].error
    assert isinstance(rule, DistributionError)
    errors = {
        kept: float(np.mean(found**2.0))
        for kept, found in errors_by_edge(rule, together.releases, Fraction(95, 100))
    }
    for kept, names in (((0, 1), ["country", "sex"]), ((0,), ["country"]), ((1,), ["sex"])):
        alone = people.group_by(*names, keys={n: KEYS[n] for n in names})
        plan = alone.dp_cdf("age", bins=range(17, 91)).plan(rho="0.01")
        assert errors[kept] < plan.accuracy("age") ** 2 / 1.2


def test_limits_hold_of_all_tables() -> None:
    people = protected(None, dp.Identifier("who"), rho=10)
    with pytest.raises(dp.UnboundedSensitivity):
        asked(people).plan(rho=1, limits=None)
    limited = people.limit_groups(3, by=["country", "sex"]).limit_rows(2, by=["country", "sex"])
    plan = asked(limited, range(17, 91)).plan(rho=1)
    assert {float(r.sensitivity.l1) for r in plan.releases} == {6.0}
    assert {round(float(r.sensitivity.l2) ** 2) for r in plan.releases} == {12, 36}


def test_what_cannot_be_is_refused() -> None:
    people = protected()
    with pytest.raises(dp.MissingKeys):
        people.group_by(BY_BOTH).dp_cdf("age", bins=EDGES)
    with pytest.raises(dp.UnsupportedOperation, match="'grouping'"):
        people.rename({"age": "grouping"}).group_by(dp.cube("sex"), keys={"sex": SEXES}).dp_cdf(
            "grouping", bins=EDGES
        )


@pytest.mark.parametrize("spend", [PureDP(1), ZCDP("0.5")])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_the_worst_row_spends_what_is_paid(spend: Any, adjacency: Any) -> None:
    frame = pl.DataFrame({"country": ["A", "B"], "sex": ["f", "m"], "age": [30, 60]})
    budget = {"epsilon": 9} if isinstance(spend, PureDP) else {"rho": 9}
    people = protected(frame, dp.Rows(adjacency), **budget)
    query, _, _ = parts(asked(people, range(17, 91)))
    prepared = planned(query, spend, None)
    losses = [stated_loss(prepared, *pair.counted) for pair in worst_neighbours(prepared)]
    assert max(losses) <= float(spend.main) * (1 + 1e-9)
    assert max(losses) > 0.8 * float(spend.main)


def test_duckdb_has_the_same_tables() -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = rows()
    made = [
        asked(protected(data)).collect(epsilon=10**8)
        for data in (frame, duckdb.from_arrow(frame.to_arrow()))
    ]
    assert made[0].equals(made[1])
