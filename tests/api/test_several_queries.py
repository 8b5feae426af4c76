"""Several queries of a session as one plan and one charge."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe import runner
from dpframe.optimise.queries import Queries, merge
from dpframe.plan.several import blocks_of, own_plan
from tests.golden.queries import UnreadableError, unreadable

FRAME = pl.DataFrame(
    {
        "sex": ["f", "m", "f", None, "m", "f"] * 50,
        "age": [31, 64, 20, 50, None, 41] * 50,
        "city": ["A", "B", "C", "A", "A", "D"] * 50,
    }
)
PLENTY: dict[str, Any] = {"epsilon": 10**6}
"""Noise at so much epsilon is nothing."""
SEXES, CITIES = ["f", "m"], ["A", "B", "C"]


def open_session(**budget: Any) -> tuple[dp.Session, dp.PrivateFrame]:
    session = dp.Session(**(budget or {"epsilon": 10**8}))
    return session, session.protect(FRAME.lazy(), unit=dp.Rows(), name="people")


def by_sex(people: dp.PrivateFrame) -> dp.PrivateGroupBy:
    return people.group_by("sex", keys=SEXES)


def queries(people: dp.PrivateFrame) -> list[dp.PrivateQuery]:
    """Of one frame: two by the same groups, others of other rows, of every kind."""
    return [
        by_sex(people).agg(dp.count().alias("n"), dp.mean("age", (0, 100))),
        people.filter(pl.col("age") >= 40).agg(n=dp.count(), top=dp.median("age", (0, 100))),
        by_sex(people).agg(n=dp.sum("age", (0, 100))),
        people.dp_histogram("city", CITIES, other=True),
        people.group_by(dp.rollup("sex", "city"), keys={"sex": SEXES, "city": CITIES}).dp_count(),
        people.group_by("city", keys=CITIES).dp_argmax(),
        people.agg(q=pl.col("age").dp_quantile([0.1, 0.5, 0.9], (0, 100))),
    ]


# -- results and costs ----------------------------------------------------------------------------


def test_each_result_is_that_of_its_query() -> None:
    session, people = open_session()
    asked = queries(people)
    together = session.collect(asked, **PLENTY)
    for query, found in zip(asked, together, strict=True):
        alone = query.collect(**PLENTY)
        assert found.schema == alone.schema
        numbers = pl.selectors.numeric()
        assert found.select(~numbers).equals(alone.select(~numbers))
        for one, other in zip(found.select(numbers), alone.select(numbers), strict=True):
            assert (one - other).abs().max() in (0, None) or (one - other).abs().max() < 0.01


def test_it_is_one_charge_under_one_fingerprint() -> None:
    session, people = open_session(epsilon=1)
    asked = queries(people)
    plan = session.plan(asked, epsilon="0.5")
    releases = session.release(asked, epsilon="0.5")
    assert session.spent == plan.cost == releases.cost == dp.PureDP("0.5")
    assert session.remaining == dp.PureDP("0.5")
    assert session.history["fingerprint"].to_list() == [plan.fingerprint]
    assert [release.query for release in releases] == [*range(1, 8)]
    assert {release.cost for release in releases} == {plan.cost}
    assert len(releases) == len(releases.frames) == 7
    assert "shared by 7 queries" in repr(releases[0])
    assert "7 releases for epsilon 0.5 together" in repr(releases)
    assert "shared: query 2 of 7" in releases[1]._repr_html_()
    assert releases[1:3] == (releases[1], releases[2])


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 1},
        {"epsilon": 1, "delta": "1e-6"},
        {"rho": 1},
        {"epsilon": 1, "delta": "1e-6", "composition": "zcdp"},
        {"epsilon": 1, "delta": "1e-6", "composition": "gdp"},
    ],
    ids=str,
)
def test_the_charge_covers_what_is_composed_from_the_parts(budget: dict[str, Any]) -> None:
    session, people = open_session(**budget)
    asked = queries(people)[:5] if "gdp" not in budget.values() else queries(people)[2:5]
    spend: dict[str, Any] = {"rho": "0.1"} if "rho" in budget else {"epsilon": "0.1"}
    spend |= {"delta": "1e-7"} if "delta" in budget else {}
    plan = session.plan(asked, **spend)
    if plan.composition == "sum":
        assert sum((d.cost.main for d in plan.draws), Fraction(0)) <= plan.cost.main
        assert sum((d.cost.slack for d in plan.draws), Fraction(0)) <= plan.cost.slack
    else:
        best = dp.accounting.PrivacyLossAccountant(plan.events).epsilon(plan.cost.slack)
        assert best <= float(plan.cost.main) * (1 + 1e-9)
    draws = [release.draw for release in plan.releases]
    assert len(plan.draws) == len({*draws})
    assert sum(len(block.draws) for block in blocks_of(plan)) == len(plan.draws)
    session.collect(asked, **spend)
    assert session.spent == plan.cost


def test_a_part_is_never_cheaper_than_it_is_by_itself() -> None:
    """Noise of each draw costs by itself what the plan says of it."""
    session, people = open_session()
    for draw in session.plan(queries(people), epsilon=1).draws:
        cost = draw.law.epsilon_cost(draw.exposure)
        assert cost is not None
        assert cost <= draw.cost.main


def test_outputs_of_the_same_rows_and_groups_share_a_draw() -> None:
    session, people = open_session()
    plan = session.plan(queries(people), epsilon=1)
    first, second = plan.queries[0], plan.queries[2]
    assert first.block == second.block
    drawn = {
        plan.releases[number].draw
        for query in (first, second)
        for output in query.outputs
        for number in plan.outputs[output].releases
    }
    assert len(drawn) == 1
    assert len(plan.blocks) == 5  # one more are medians and quantiles and histograms of all rows


def test_the_same_query_twice_is_answered_once() -> None:
    session, people = open_session(epsilon=1)
    query = by_sex(people).agg(n=dp.count())
    one, other = session.collect([query, query], epsilon=1)
    assert one.equals(other)
    assert session.plan([query, query], epsilon=1).releases[0].scale == 1.0


def test_rows_of_other_filters_and_frames_stay_apart() -> None:
    session, people = open_session()
    again = session.protect(FRAME, unit=dp.Rows(), name="again")
    asked = [
        people.dp_count(),
        people.filter(pl.col("age") > 30).dp_count(),
        people.filter(pl.col("age") > 31).dp_count(),
        again.dp_count(),
    ]
    plan = session.plan(asked, epsilon=1)
    assert len(plan.blocks) == len(plan.draws) == 4
    assert plan.source == "people and again"
    found = [frame.item() for frame in session.collect(asked, **PLENTY)]
    assert found == [300, 200, 150, 300]


def test_keys_in_another_order_are_the_same_table_and_other_keys_are_not() -> None:
    session, people = open_session()
    asked = [
        people.group_by("sex", keys=keys).dp_count() for keys in (SEXES, SEXES[::-1], ["f", None])
    ]
    plan = session.plan(asked, epsilon=1)
    assert [query.block for query in plan.queries] == [0, 0, 1]
    one, other, _ = session.collect(asked, epsilon=1)
    assert one.equals(other[::-1])
    found = session.collect(asked, **PLENTY)
    assert [frame["sex"].to_list() for frame in found] == [["f", "m"], ["m", "f"], ["f", None]]
    assert [frame["len"].to_list() for frame in found] == [[150, 100], [100, 150], [150, 50]]


def test_limits_choose_the_same_rows_for_all() -> None:
    rows = pl.DataFrame({"person": [*range(40)] * 5, "x": [*range(200)]})
    session = dp.Session(epsilon=10**8)
    visits = session.protect(rows, unit="person").limit_rows(2)
    asked = [
        visits.agg(s=dp.sum("x", (0, 200))),
        visits.group_by("x", keys=[*range(200)]).dp_count(),
    ]
    total, each = session.collect(asked, **PLENTY)
    assert total.item() == (each["x"] * each["len"]).sum()


def test_a_list_of_one_query_is_that_query() -> None:
    session, people = open_session()
    query = by_sex(people).agg(n=dp.count())
    plan = session.plan([query], epsilon=1)
    assert plan.fingerprint == query.plan(epsilon=1).fingerprint
    assert not plan.queries
    (release,) = session.release([query], epsilon=1)
    assert release.query is None
    (frame,) = session.collect((query,), epsilon=1)
    assert frame.columns == ["sex", "n"]


def test_intervals_and_engines() -> None:
    session, people = open_session()
    counted = [query for number, query in enumerate(queries(people)) if number in (0, 2, 3, 4)]
    found = session.collect(counted, epsilon=1, interval=0.9, engine="streaming")
    assert "n_low" in found[0].columns
    before = session.spent
    for chosen, why in (
        (people.dp_argmax("city", candidates=CITIES), "only the chosen value is released"),
        (people.agg(m=dp.median("age", (0, 9))), "a quantile is chosen by ranks"),
    ):
        with pytest.raises(dp.UnsupportedOperation, match="has no interval") as refusal:
            session.collect([counted[0], chosen], epsilon=1, interval=0.9)
        assert f"why: {why}" in str(refusal.value)
    assert session.spent == before


def test_groups_that_nobody_listed_are_found_in_any_query() -> None:
    rows = pl.DataFrame({"city": ["A"] * 5000 + ["B"] * 4000 + ["rare"], "x": [1] * 9001})
    session = dp.Session(epsilon=10, delta="1e-4")
    people = session.protect(rows, unit=dp.Rows())
    found = people.group_by("city").agg(n=dp.count())
    asked = [people.dp_count(), found, people.group_by("x").agg(dp.sum("x", (0, 1)).alias("s"))]
    for some in (asked[:2], asked):
        plan = session.plan(some, epsilon=1, delta="1e-6")
        assert plan.cost.slack <= Fraction("1e-6")
        results = session.collect(some, epsilon=1, delta="1e-6")
        assert results[1]["city"].to_list() == ["A", "B"]
        assert abs(results[1]["n"][0] - 5000) < 500
        read = dp.Plan.from_json(plan.to_json())
        assert read.fingerprint == plan.fingerprint


def on_both_engines() -> tuple[dp.Session, dp.PrivateFrame, dp.PrivateFrame]:
    duckdb = pytest.importorskip("duckdb")
    session, people = open_session()
    return session, people, session.protect(duckdb.from_arrow(FRAME.to_arrow()), unit=dp.Rows())


def test_frames_may_be_on_different_engines() -> None:
    session, people, others = on_both_engines()
    asked = [one for pair in zip(queries(others), queries(people), strict=True) for one in pair]
    asked += [others.dp_count(), people.dp_count()]
    plan = session.plan(asked, **PLENTY)
    found = session.collect(asked, **PLENTY)
    for one, other in zip(found[::2], found[1::2], strict=True):
        numbers = pl.selectors.numeric()
        assert one.schema == other.schema
        assert one.select(~numbers).equals(other.select(~numbers))
        for a, b in zip(one.select(numbers), other.select(numbers), strict=True):
            assert ((a - b).abs().max() or 0) < 0.01
    assert session.history["fingerprint"].to_list() == [plan.fingerprint]


def test_one_of_polars_engines_is_not_for_others() -> None:
    session, people, others = on_both_engines()
    for asked in ([people.dp_count(), others.dp_count()], [others.dp_count(), people.dp_count()]):
        with pytest.raises(dp.UnsupportedOperation, match="belongs to DuckDB, and its") as e:
            session.collect(asked, epsilon=1, engine="streaming")
        assert "leave engine= out" in str(e.value)
    assert not session.spent.main


def test_what_one_engine_does_not_run_charges_for_none() -> None:
    session, people, others = on_both_engines()
    text = people.filter(pl.col("city").str.to_titlecase() == "A").dp_count()
    with pytest.raises(dp.UnsupportedOperation, match="DuckDB"):
        others.filter(pl.col("city").str.to_titlecase() == "A").dp_count()
    assert session.collect([text, others.dp_count()], **PLENTY)[1].item() == 300


def test_frames_of_two_engines_are_not_joined() -> None:
    session, people, others = on_both_engines()
    with pytest.raises(dp.UnsupportedOperation):
        session.collect([people.concat(others).dp_count(), people.dp_count()], epsilon=1)
    assert not session.spent.main


# -- shares ---------------------------------------------------------------------------------------


def test_weights_are_shares_of_queries() -> None:
    session, people = open_session()
    asked = [
        people.filter(pl.col("age") > 1).dp_count(),
        people.agg(
            a=dp.count("age", mechanism="discrete_laplace"),
            b=dp.count("city", mechanism="discrete_laplace"),
        ),
    ]
    plan = session.plan(asked, epsilon=4, weights=[3, 1])
    assert [draw.cost.main for draw in plan.draws] == [3, Fraction(1, 2), Fraction(1, 2)]
    assert plan.split == "weights"
    equal = session.plan(asked, epsilon=3, split="equal")
    assert [draw.cost.main for draw in equal.draws] == [1, 1, 1]  # by outputs


def test_weights_are_divided_as_outputs_say() -> None:
    session, people = open_session()
    one = people.agg(
        a=dp.count("age", mechanism="discrete_laplace", weight=3),
        b=dp.count("city", mechanism="discrete_laplace"),
    )
    plan = session.plan(
        [one, people.filter(pl.col("age") > 1).dp_count()], epsilon=4, weights=[2, 2]
    )
    assert [draw.cost.main for draw in plan.draws] == [Fraction(3, 2), Fraction(1, 2), 2]


@pytest.mark.parametrize(
    "weights", [[1], [1, 2, 3], [1, 0], [1, -1], [1, "x"], 2, [1, float("nan")]]
)
def test_weights_that_make_no_sense_are_refused(weights: Any) -> None:
    session, people = open_session()
    asked = [people.dp_count(), people.dp_count()]
    with pytest.raises(dp.InvalidBudget, match="weight"):
        session.plan(asked, epsilon=1, weights=weights)
    with pytest.raises(dp.InvalidBudget, match="this is one"):
        session.plan(asked[0], epsilon=1, weights=[1])


def test_accuracy_finds_the_least_spend() -> None:
    session, people = open_session()
    asked = [people.dp_count(), people.filter(pl.col("age") > 1).dp_count()]
    plan = session.plan(asked, accuracy={"len of query 1": 20, "len of query 2": 40})
    assert plan.accuracy("len", query=1) <= 20
    assert plan.accuracy("len", query=2) <= 40
    assert session.plan(asked, epsilon=plan.cost.main / 2).accuracy("len", query=1) > 20


# -- refusals -------------------------------------------------------------------------------------


def test_lists_that_hold_no_queries_are_refused() -> None:
    session, people = open_session()
    query = people.dp_count()
    for given, what in (
        ([], "is empty"),
        ([[query]], "not nested"),
        ([query, 1], "not a int"),
        ([query, FRAME], "not a DataFrame"),
        ({"a": query}, "not a dict"),
        ("query", "not a str"),
        ([query] * 1001, "1001 queries are too many: one plan has at most 1000"),
    ):
        for ask in (session.plan, session.collect, session.release):
            with pytest.raises(dp.UnsupportedOperation, match=what):
                ask(given, epsilon=1)  # type: ignore[call-overload]
    assert not session.spent.main


def test_queries_of_other_sessions_are_refused() -> None:
    session, people = open_session()
    _, others = open_session()
    with pytest.raises(dp.InvalidBudget, match="another session"):
        session.collect([people.dp_count(), others.dp_count()], epsilon=1)
    assert not session.spent.main


def test_queries_of_several_parts_are_refused() -> None:
    session, people = open_session()
    parts = session.partition(people, "sex", SEXES)
    both = [part.dp_count() for part in parts.values()]
    for asked in (both, [people.dp_count(), both[0]]):
        with pytest.raises(dp.InvalidBudget, match="its own budget"):
            session.collect(asked, epsilon=1)
    one = parts["f"]
    found = session.collect([one.dp_count(), one.dp_mean("age", (0, 9))], **PLENTY)
    assert found[0].item() == 150
    assert one.session is not None
    assert one.session.spent == session.spent != dp.PureDP(0)


def test_queries_that_protect_others_are_refused() -> None:
    session = dp.Session(epsilon=1)
    one = FRAME.lazy().dp_count(unit=dp.Rows())  # type: ignore[attr-defined]
    other = FRAME.lazy().dp_count(unit=dp.Rows("change-one"))  # type: ignore[attr-defined]
    with pytest.raises(dp.UnsupportedOperation, match="costs do not add up"):
        session.plan([one, other], epsilon=1)
    assert len(session.collect([one, one], epsilon=1)) == 2


def test_what_is_refused_leaves_the_budget_untouched() -> None:
    session = dp.Session(epsilon=1)
    people = session.protect(unreadable(), dp.Rows())
    asked = [people.dp_count(), people.dp_sum("visits")]
    with pytest.raises(dp.BudgetExceeded):
        session.collect(asked, epsilon=2)
    with pytest.raises(dp.InvalidBudget):
        session.collect(asked)
    with pytest.raises(dp.MissingKeys):
        session.collect([*asked, people.group_by("ward").dp_count()], epsilon=1)
    assert not session.spent.main
    with pytest.raises(dp.EngineError):  # it is charged once data is read
        session.collect(asked, epsilon="0.5")
    assert session.spent == dp.PureDP("0.5")
    assert session.history["status"].to_list() == ["failed"]
    with pytest.raises((UnreadableError, pl.exceptions.PolarsError)):
        unreadable().collect()


def test_a_crash_between_charge_and_answer_keeps_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "budget.db"
    session = dp.Session(epsilon=1, ledger=path)
    people = session.protect(FRAME, dp.Rows())

    def broken(*_: object) -> None:
        raise RuntimeError("42 people")

    monkeypatch.setattr(runner, "draw", broken)
    with pytest.raises(dp.EngineError, match="after it was charged"):
        session.collect([people.dp_count(), people.dp_sum("age", (0, 9))], epsilon="0.5")
    again = dp.Session(epsilon=1, ledger=path)
    assert again.remaining == dp.PureDP("0.5")
    assert again.history["status"].to_list() == ["failed"]


def test_approval_is_of_all_queries(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    session = dp.Session(epsilon=1, ledger=path, require_approval=True)
    people = session.protect(FRAME, dp.Rows())
    asked = [people.dp_count(), people.filter(pl.col("age") > 30).dp_count()]
    with pytest.raises(dp.PlanMismatch):
        session.collect(asked, epsilon="0.1")
    plan = session.plan(asked, epsilon="0.1")
    from dpframe.ledger.owners import approve
    from dpframe.ledger.place import store_at

    approve(store_at(str(path)), "default", plan.fingerprint, plan.to_json(None), "ann", None)
    assert len(session.collect(asked, epsilon="0.1")) == 2
    with pytest.raises(dp.PlanMismatch, match="queries 2 -> 1"):
        session.collect(asked[:1], epsilon="0.1")
    with pytest.raises(dp.PlanMismatch):
        session.collect(asked[::-1], epsilon="0.1")


# -- plans ----------------------------------------------------------------------------------------


def test_plans_are_read_as_they_were_written() -> None:
    session, people = open_session()
    plan = session.plan(queries(people), epsilon=1)
    read = dp.Plan.from_json(plan.to_json())
    assert read.fingerprint == plan.fingerprint
    for format in ("text", "markdown", "html", "mermaid"):
        assert read.explain(format) == plan.explain(format)  # type: ignore[arg-type]
    assert plan.explain(size=10).count("budget\n") == 1
    assert repr(plan).startswith("<Plan for 7 queries of 'people': ")
    assert not plan.diff(read)


def test_the_order_of_queries_is_part_of_the_plan() -> None:
    session, people = open_session()
    one, other = people.dp_count(), people.filter(pl.col("age") > 30).dp_count()
    plan, turned = (session.plan(asked, epsilon=1) for asked in ([one, other], [other, one]))
    assert plan.fingerprint != turned.fingerprint
    assert plan.fingerprint == session.plan([one, other], epsilon=1).fingerprint


def test_names_are_told_apart_where_they_are_in_several_queries() -> None:
    session, people = open_session()
    plan = session.plan(queries(people), epsilon=1)
    assert [o.name for o in plan.outputs if o.name.startswith("n")] == [
        "n of query 1",
        "n of query 3",
        "n of query 2",
    ]
    assert plan.accuracy("n", query=1) == plan.accuracy("n of query 1")
    assert plan.accuracy("n", query=3) > plan.accuracy("n", query=1)
    assert plan.accuracy("city") == plan.accuracy("city", query=4)
    with pytest.raises(dp.UnknownColumn, match="queries 1 and 2 and 3"):
        plan.accuracy("n")
    with pytest.raises(dp.UnknownColumn, match="no output 'city'"):
        plan.accuracy("city", query=1)
    for number in (0, 8, True, "1"):
        with pytest.raises(dp.UnknownColumn, match="no query"):
            plan.accuracy("n", query=number)  # type: ignore[arg-type]
    alone = people.dp_count().plan(epsilon=1)
    assert alone.accuracy("len", query=1) == alone.accuracy("len")


def test_names_that_look_like_ours_are_told_apart_too() -> None:
    session, people = open_session()
    one = people.agg(dp.count().alias("n"))
    other = people.agg(dp.count().alias("n"), dp.count("age").alias("n of query 1"))
    plan = session.plan([one, other], epsilon=1)
    names = [output.name for output in plan.outputs]
    assert names == ["n of query 1", "n of query 2", "n of query 1 of query 2"]
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    _, found = session.collect([one, other], **PLENTY)
    assert found.row(0) == (300, 250)


def test_differences_are_told_by_query() -> None:
    session, people = open_session()
    one = people.dp_count()
    old = people.filter(pl.col("age") > 30).dp_count()
    older = people.filter(pl.col("age") > 60).dp_count()
    plan = session.plan([one, old], epsilon=1)
    changed = plan.diff(session.plan([one, older], epsilon=1))
    assert 'query 2: filter changed: filter(col("age") > 30) -> filter(col("age") > 60)' in changed
    assert "query 1:" not in changed
    more = plan.diff(session.plan([one, old, people.agg(s=dp.sum("age", (0, 9)))], epsilon=1))
    assert "queries 2 -> 3" in more
    single = one.plan(epsilon=1)
    assert "queries 1 -> 2" in single.diff(plan)
    assert "removed" in plan.diff(single)


def test_a_result_has_the_plan_of_its_own() -> None:
    session, people = open_session()
    plan = session.plan(queries(people), epsilon=1)
    own = own_plan(plan, 3)
    assert [output.name for output in own.outputs] == ["n"]
    assert {user for release in own.releases for user in release.users} == {"n"}
    assert own.grouping is not None
    assert own.cost == plan.cost


def test_documents_that_contradict_themselves_are_refused() -> None:
    session, people = open_session()
    document = json.loads(session.plan(queries(people)[:3], epsilon=1).to_json())
    from tests.plan.edits import with_digest, with_fingerprint

    def refused(change: Any) -> bool:
        found = json.loads(json.dumps(document))
        change(found["plan"])
        try:
            dp.Plan.from_json(json.dumps(with_digest(with_fingerprint(found))))
        except dp.PlanMismatch:
            return True
        return False

    assert not refused(lambda plan: None)
    assert refused(lambda plan: plan.update(queries=[]))
    assert refused(lambda plan: plan.update(blocks=[]))
    assert refused(lambda plan: plan["queries"].pop())
    assert refused(lambda plan: plan["queries"].append(plan["queries"][0]))
    assert refused(lambda plan: plan["queries"][0].update(names=["m", "age"]))
    assert refused(lambda plan: plan["queries"][0].update(block=1))
    assert refused(lambda plan: plan["blocks"][0].update(releases=3))
    assert refused(lambda plan: plan["blocks"][0].update(outputs=1))
    assert refused(lambda plan: plan.update(source="others"))
    assert refused(lambda plan: plan.update(warnings=[]))
    assert refused(lambda plan: plan.update(grouping="x"))
    assert refused(
        lambda plan: plan["blocks"][0].update(unit={"kind": "Identifier", "column": "id"})
    )
    releases = document["plan"]["releases"]
    last = next(i for i, release in enumerate(releases) if release.get("joint") is None)
    assert refused(lambda plan: plan["releases"][last].update(draw=0, joint=None))


def test_merged_queries_keep_their_outputs() -> None:
    _, people = open_session()
    from dpframe.api.query import parts

    asked = [parts(query)[0] for query in queries(people)]
    blocks, places = merge(Queries(tuple(asked)))
    for query, place in zip(asked, places, strict=True):
        found = place.of(blocks[place.block])
        assert [o.name for o in found.outputs] == [o.name for o in query.outputs]
        assert [o.words for o in found.outputs] == [o.words for o in query.outputs]
        assert found.relation.token == query.relation.token


def test_results_are_written_with_the_number_of_their_query(tmp_path: Path) -> None:
    from dpframe.api.files import inspect

    session, people = open_session()
    releases = session.release(queries(people)[:3], epsilon=1)
    for name in ("a.parquet", "b.csv"):
        releases[1].write(tmp_path / name)
        found = inspect(tmp_path / name)
        assert (found.query, found.unchanged) == (2, True)
        assert found.plan.fingerprint == releases.plan.fingerprint
