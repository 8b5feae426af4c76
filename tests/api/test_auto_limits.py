"""Limits that are found when a query runs: one plan, one charge, whichever limit is found."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline, soundness
from dpframe.api.limits import LIMITS, search_of
from dpframe.core.budget import Budget
from dpframe.optimise.measurements import measurements_of
from dpframe.optimise.prepared import PreparedTogether
from dpframe.optimise.queries import Queries
from tests.audit.test_audit import seeded
from tests.laws.individuals import check_limits
from tests.laws.neighbours import Pair

SPENDS: dict[str, tuple[dict[str, Any], Budget]] = {
    "pure": ({"epsilon": 50}, dp.PureDP(1)),
    "approximate": ({"epsilon": 50, "delta": 1e-6}, dp.ApproxDP(1, "1e-8")),
    "concentrated": ({"rho": 50, "delta": 1e-6}, dp.ZCDP(1, "1e-8")),
}
each = pytest.mark.parametrize("spend", SPENDS)


def rows(many: dict[int, int]) -> pl.DataFrame:
    """So many rows of each person, in turn in three cities."""
    found = [(who, n) for who, rows in many.items() for n in range(rows)]
    return pl.DataFrame(
        {
            "who": [who for who, _ in found],
            "city": ["ABC"[(who + n) % 3] for who, n in found],
            "x": [n % 5 for _, n in found],
        },
        schema={"who": pl.Int64, "city": pl.String, "x": pl.Int64},
    )


VISITS = rows({who: 1 + who % 4 for who in range(3000)})


def people(spend: str = "pure", data: pl.DataFrame = VISITS) -> dp.PrivateFrame:
    return dp.Session(**SPENDS[spend][0]).protect(data, unit="who")


def by_city(frame: dp.PrivateFrame) -> dp.PrivateQuery:
    x = pl.col("x")
    grouped = frame.group_by("city", keys=["A", "B", "C"])
    return grouped.agg(n=dp.count(), s=x.dp_sum((0, 4)), m=x.dp_mean((0, 4)))


QUERIES = {
    "rows": lambda f: f.dp_count(),
    "groups": by_city,
    "one per person": lambda f: f.limit_rows(1, by="city").group_by("city").agg(dp.count()),
    "after a limit": lambda f: f.limit_rows(2, by="city").dp_sum("x", (0, 4)),
    "median": lambda f: f.dp_median("x", (0, 4)),
    "quantiles": lambda f: f.agg(
        *(pl.col("x").dp_quantile(q, (0, 10**5)).alias(f"{q}") for q in (0.1, 0.5))
    ),
}


def prepared_of(query: dp.PrivateQuery, spend: Budget) -> PreparedTogether:
    search = search_of(query._missing_limit)
    return pipeline.plan_several(Queries.searching(search), spend, None)


def asked(kind: str, spend: str) -> PreparedTogether:
    if kind == "one per person" and spend == "pure":
        pytest.skip("groups that nobody listed need a delta")
    query = QUERIES[kind](people(spend))
    if query._missing_limit is None:
        pytest.skip("no limit is needed there")
    return prepared_of(query, SPENDS[spend][1])


def test_dropped_rows_are_counted_where_groups_are_found() -> None:
    """Their number has no threshold, which the groups have."""
    for by in (["city"], ["city", "x"]):
        query = people("approximate").group_by(by).agg(dp.count())
        plan = query.plan(epsilon=1, delta=1e-6, report_dropped=True)
        assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


def total(parts: list[Budget]) -> Budget:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


@each
@pytest.mark.parametrize("kind", QUERIES)
def test_whichever_is_found_the_charge_covers_it(kind: str, spend: str) -> None:
    prepared = asked(kind, spend)
    assert prepared.limits is not None
    search = prepared.parts[0].plan
    assert search.composition == "sum"
    for option in prepared.limits.options:
        assert prepared.plan.cost.covers(search.cost + option.plan.cost)
        if option.plan.composition == "sum":
            drawn = [release.cost for release in option.plan.draws]
            assert option.plan.cost.covers(total(drawn))
    assert SPENDS[spend][1].covers(prepared.plan.cost)
    assert search.cost.main <= SPENDS[spend][1].main * Fraction(1, 20)


@each
@pytest.mark.parametrize("kind", QUERIES)
def test_each_passes_the_last_check(kind: str, spend: str) -> None:
    """Also where the best way to measure depends on the limit, as it does for quantiles."""
    soundness.require_sound(asked(kind, spend))


@pytest.mark.parametrize("kind", ["rows", "groups", "after a limit"])
def test_noise_is_made_for_the_limit(kind: str) -> None:
    """In proportion to it, so that no limit tells more than another."""
    limits = asked(kind, "pure").limits
    assert limits is not None
    for n, option in zip(LIMITS, limits.options, strict=True):
        (part,) = option.parts
        (step, _) = part.query.relation.steps[-1]
        assert step.words() == f"limit_rows({n})"
        for release in option.plan.draws:
            epsilon = release.law.epsilon_cost(release.exposure)
            assert epsilon is not None
            assert epsilon <= release.cost.main


few = st.dictionaries(st.integers(0, 3), st.integers(1, 12), max_size=4)


@pytest.mark.parametrize("kind", ["rows", "groups", "after a limit"])
@given(others=few, mine=st.integers(1, 30), salt=st.integers(0, 2**32))
@settings(max_examples=6)
def test_neighbours_move_the_search_and_each_query_within_what_is_declared(
    kind: str, others: dict[int, int], mine: int, salt: int
) -> None:
    before, after = rows(others), rows({**others, 9: mine})
    search = search_of(QUERIES[kind](people())._missing_limit)
    for query in (search.search, *search.queries[1], *search.queries[4]):
        check_limits(query, Pair(before, after), salt)


def test_the_histogram_counts_each_individual_once() -> None:
    (use,) = measurements_of(search_of(people().dp_count()._missing_limit).search)
    assert use.sensitivity.l1 == 1


def test_one_charge_and_the_limit_that_most_keep() -> None:
    frame = people()
    found = by_city(frame).release(epsilon=20, limits="auto", interval=0.95)
    assert frame.session is not None
    assert frame.session.history.height == 1
    assert frame.session.spent == dp.PureDP(20)
    assert found.cost == dp.PureDP(20)
    assert found.remark.startswith("dpframe chose limit_rows(5), which drops about ")
    truth = VISITS.group_by("city").len().sort("city")["len"]
    assert ((found.frame["n"] - truth).abs() < 30).all()
    assert found.frame.columns[:4] == ["city", "n", "n_low", "n_high"]


@each
def test_it_runs_in_every_measure(spend: str) -> None:
    frame = people(spend)
    given: Any = {
        "pure": {"epsilon": 1},
        "approximate": {"epsilon": 1, "delta": 1e-8},
        "concentrated": {"rho": 1, "delta": 1e-8},
    }[spend]
    query = frame.group_by("city", keys=["A", "B"]).agg(n=dp.count())
    plan = query.plan(**given, limits="auto")
    found = query.release(**given, limits="auto")
    assert found.frame.columns == ["city", "n"]
    assert found.plan.fingerprint == plan.fingerprint
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == plan.explain(details=True)
    assert query.collect(**given, limits="auto").height == 2


def test_groups_that_nobody_listed_get_a_limit_on_groups() -> None:
    frame = people("concentrated").limit_rows(1, by="city")
    query = frame.group_by("city").agg(n=dp.count())
    plan = query.plan(rho=1, delta=1e-8, limits="auto")
    assert plan.found is not None
    assert (plan.found.step, plan.found.by) == ("limit_groups", ("city",))
    assert "of those that let a group of usual size appear" in plan.explain(details=True)
    found = query.release(rho=20, delta=1e-7, limits="auto")
    assert "by=['city']), which drops" in found.remark
    assert found.frame["city"].to_list() == ["A", "B", "C"]


def test_no_limit_is_found_under_which_groups_that_nobody_listed_vanish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 300 individuals half have 40 rows: 50 drops none, and no group of so few would appear."""
    seeded(monkeypatch, 5)
    data = rows({who: 1 + 39 * (who % 2) for who in range(300)})
    query = dp.Session(epsilon=50, delta=1e-3).protect(data, unit="who").group_by("city")
    with pytest.warns(dp.DroppedRows, match=r"chose limit_rows\(20\)"):
        found = query.agg(n=dp.count()).collect(epsilon=6, delta=1e-6, limits="auto")
    assert found["city"].to_list() == ["A", "B", "C"]


def test_a_query_that_lacks_nothing_is_planned_as_it_is() -> None:
    query = people().limit_rows(3).dp_count()
    assert query.plan(epsilon=1, limits="auto").fingerprint == query.plan(epsilon=1).fingerprint
    rows_only = dp.Session(epsilon=1).protect(VISITS, dp.Rows()).dp_count()
    assert rows_only.plan(epsilon=1, limits="auto").found is None


def test_the_plan_says_who_how_and_what_share() -> None:
    said = people().dp_count().explain(details=True, epsilon=1, limits="auto")
    for words in (
        "a limit that is found first",
        "and from noise together",
        "intervals also cover what the limit drops, if no person has more than 5 n rows, or 2,000",
        " 5% of the spend",
        "95% error of `len`: 3 under 1, 6 under 2",
        "shown below under the largest, limit_rows(100000)",
        "whichever is found",
        "cost: epsilon 1",
    ):
        assert words in said


def test_no_error_is_said_before_the_limit_is_found() -> None:
    plan = people().dp_count().plan(epsilon=1, limits="auto")
    with pytest.raises(dp.UnsupportedOperation, match=r"(?s)errors under each.*limit_rows\(1\)"):
        plan.accuracy("len")
    assert plan.accuracy("individuals by rows") > 0


def test_sessions_and_lists() -> None:
    frame = people()
    session, query = frame.session, frame.dp_count()
    assert session is not None
    plan = session.plan(query, epsilon=1, limits="auto")
    assert plan.fingerprint == query.plan(epsilon=1, limits="auto").fingerprint
    assert session.collect(query, epsilon=1, limits="auto").shape == (1, 1)
    assert session.release(query, epsilon=1, limits="auto").remark
    with pytest.raises(dp.UnboundedSensitivity, match="limit_rows"):
        session.collect(query, epsilon=1, limits=None)


def test_queries_of_a_list_share_a_limit() -> None:
    frame = people()
    session = frame.session
    assert session is not None
    some = frame.filter(pl.col("x") > 1)
    whom = frame.agg(who=dp.n_unique("who"))
    queries = [whom, frame.dp_count(), some.dp_sum("x", (0, 4)), frame.limit_rows(1).dp_count()]
    plan = session.plan(queries, epsilon=20)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert len(plan.queries) == 5
    found = session.release(queries, epsilon=20, interval=0.95)
    assert session.spent == dp.PureDP(20)
    assert len(found) == 4
    assert found.warnings == found[0].warnings
    ends = [(one.frame.row(0)[1], one.frame.row(0)[2]) for one in found]
    truth = [3000, VISITS.height, VISITS.filter(pl.col("x") > 1)["x"].sum(), 3000]
    for (low, high), exact in zip(ends, truth, strict=True):
        assert low - 60 <= exact <= high + 60
    assert ends[0][1] - ends[0][0] < 40  # which lack nothing
    assert ends[3][1] - ends[3][0] < 40
    assert ends[1][1] > VISITS.height + 100  # what may be dropped
    with pytest.raises(dp.UnboundedSensitivity):
        session.collect(queries, epsilon=1, limits=None)
    other = session.protect(VISITS, unit="who")
    with pytest.raises(dp.UnsupportedOperation, match="no finite form"):
        session.plan([frame.dp_count(), other.dp_count()], epsilon=1)


def test_queries_that_need_no_limit_cost_what_they_did() -> None:
    frame = people()
    for query in (frame.agg(n=dp.n_unique("who")), frame.limit_rows(2).dp_count()):
        assert query.plan(epsilon=1).fingerprint == query.plan(epsilon=1, limits=None).fingerprint
        assert query.plan(accuracy={query.plan(epsilon=1).outputs[0].name: 10}).found is None


def test_individuals_count_whole_where_nobody_listed_the_groups() -> None:
    """They were weighed by one over the root of the number of their groups, without being asked."""
    data = pl.DataFrame({"who": [w for w in range(2000) for _ in range(9)]})
    data = data.with_columns(day=pl.int_range(pl.len()) % 9)
    frame = dp.Session(epsilon=100, delta=1e-2).protect(data, unit="who")
    query = frame.group_by("day").agg(n=dp.n_unique("who"))
    found = query.release(epsilon=10, delta=1e-6, interval=0.95)
    assert found.frame.height == 9
    assert (found.frame["n"] > 1900).all()
    assert found.plan.found is not None
    assert found.plan.found.step == "limit_groups"


LOST = pl.DataFrame({"who": [0] * 5000 + [w for w in range(1, 2001) for _ in range(1 + w % 5)]})
LOST = LOST.with_columns(
    x=pl.when(pl.col("who") == 0).then(-9).otherwise(pl.int_range(pl.len()) % 10),
    g=pl.int_range(pl.len()) % 2,
)
"""One person has many rows, with a value that nobody else has."""
INTERVALS: dict[str, tuple[Any, pl.Expr]] = {
    "count": (dp.count(), pl.len()),
    "sum": (pl.col("x").dp_sum((-9, 9)), pl.col("x").sum()),
    "mean": (pl.col("x").dp_mean((-9, 9)), pl.col("x").mean()),
    "var": (pl.col("x").dp_var((-9, 9)), pl.col("x").var()),
    "std": (pl.col("x").dp_std((-9, 9)), pl.col("x").std()),
    "people": (dp.n_unique("who"), pl.col("who").n_unique()),
    "values": (dp.n_unique("x"), pl.col("x").n_unique()),
    "ratio": (
        pl.col("x").dp_ratio(pl.lit(1), (-9, 9), denominator_bounds=(0, 1)),
        pl.col("x").sum() / pl.len(),
    ),
    "arithmetic": (pl.col("x").dp_sum((-9, 9)) / dp.count(), pl.col("x").sum() / pl.len()),
    "difference": (pl.col("x").dp_sum((-9, 9)) - dp.count(), pl.col("x").sum() - pl.len()),
}


@pytest.mark.parametrize("kind", INTERVALS)
def test_intervals_hold_what_the_limit_drops(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded(monkeypatch, 23)
    asked, exact = INTERVALS[kind]
    frame = dp.Session(epsilon=1000).protect(LOST, unit="who")
    truth = LOST.group_by("g").agg(exact.alias("v")).sort("g")["v"]
    limited = dp.Session(epsilon=1000).protect(LOST, unit="who").limit_rows(5)
    for query, holds in ((frame, True), (limited, False)):
        found = query.group_by("g", keys=[0, 1]).agg(v=asked).collect(epsilon=2, interval=0.95)
        low, high = found["v_low"].to_list(), found["v_high"].to_list()
        inside = [
            (a is None or a <= t) and (b is None or t <= b)
            for a, t, b in zip(low, truth, high, strict=True)
        ]
        if holds:
            assert all(inside)
        elif kind not in ("people", "values"):
            assert not all(inside)  # what a limit drops that was written is not in there


def test_plans_never_say_unbiased_where_rows_are_dropped_or_clamped() -> None:
    frame = people()
    biased = [
        frame.dp_count(),
        frame.limit_rows(3).dp_count(),
        frame.limit_norm(2).group_by("city", keys=["A"]).agg(n=dp.count()),
        frame.agg(s=dp.sum("x", (0, 2), per="unit")),
    ]
    for query in biased:
        plan = query.plan(epsilon=1)
        notes = [output.note for output in plan.outputs if output.name != "individuals by rows"]
        assert not any("unbiased" in note for note in notes)
    assert "unbiased" in frame.agg(n=dp.n_unique("who")).plan(epsilon=1).outputs[0].note


def test_warnings_stand_in_releases_and_are_results_warnings() -> None:
    query = people().dp_count()
    with pytest.warns(dp.ResultWarning, match="noise would hide") as caught:
        found = query.release(epsilon=1)
    assert found.warnings == (str(caught[0].message),)
    assert issubclass(dp.DroppedRows, dp.ResultWarning)
    with pytest.warns(dp.DroppedRows) as caught:
        people().dp_count().collect(epsilon=1)
    assert len(caught) == 1


@pytest.mark.parametrize("word", ["find", True, 5])
def test_other_words_are_refused(word: Any) -> None:
    with pytest.raises(dp.UnsupportedOperation, match='is neither "auto" nor None') as refusal:
        people().dp_count().plan(epsilon=1, limits=word)
    assert f"limits={word!r}" in str(refusal.value)
    assert "leave limits= out" in str(refusal.value)
    assert ".limit_rows(n)" in str(refusal.value)


def test_what_a_limit_cannot_be_found_for_is_refused() -> None:
    query = people().dp_count()
    with pytest.raises(dp.InvalidBudget, match="give a spend"):
        query.plan(accuracy={"len": 5}, limits="auto")
    summed = dp.Session(epsilon=1, delta=1e-6, composition="zcdp").protect(VISITS, unit="who")
    with pytest.raises(dp.UnsupportedOperation, match="suggest_limits"):
        summed.dp_count().plan(epsilon="0.1", delta=1e-8, limits="auto")


def test_a_budget_that_is_too_small_is_not_touched() -> None:
    frame = people()
    with pytest.raises(dp.BudgetExceeded):
        frame.dp_count().collect(epsilon=51, limits="auto")
    assert frame.session is not None
    assert frame.session.spent.is_zero


def test_results_are_kept_and_handed_out_again(tmp_path: Path) -> None:
    session = dp.Session(epsilon=10, ledger=tmp_path / "budget.db", keep_releases=True)
    query = session.protect(VISITS, unit="who", name="visits").dp_count()
    first = query.release(epsilon=2, limits="auto", reuse="same")
    again = query.release(epsilon=2, limits="auto", reuse="same")
    assert again.reused
    assert first.frame.equals(again.frame)
    assert session.spent == dp.PureDP(2)
    assert again.remark.startswith(first.remark)


def test_plans_with_another_cost_under_one_limit_are_refused() -> None:
    import json

    from dpframe.plan import document

    plan = people().dp_count().plan(epsilon=1, limits="auto")
    for edit in (
        lambda f: f["choices"][3]["cost"].update(epsilon="1"),
        lambda f: f["choices"][3].update(n=1),
        lambda f: f["choices"][-1].update(fingerprint="0" * 64),
        lambda f: f.update(share="2"),
        lambda f: f.update(step="filter"),
    ):
        found = json.loads(plan.to_json())
        edit(found["plan"]["found"])
        found["fingerprint"] = document._fingerprint(found["plan"])
        del found["digest"]
        found["digest"] = document._digest(found)
        with pytest.raises(dp.PlanMismatch):
            dp.Plan.from_json(json.dumps(found))


def test_differences_name_the_limits() -> None:
    frame = people()
    one = frame.dp_count().plan(epsilon=1, limits="auto")
    other = frame.limit_rows(5).dp_count().plan(epsilon=1)
    assert "limit that is found" in one.diff(other)


def test_a_job_in_toml_finds_limits(tmp_path: Path) -> None:
    from dpframe.cli.job import read_job

    VISITS.write_parquet(tmp_path / "visits.parquet")
    job = tmp_path / "job.toml"
    job.write_text(
        '[session]\nepsilon = 3\n[source]\npath = "visits.parquet"\nunit = "who"\n'
        '[query]\n[query.outputs]\nn = {aggregate = "count"}\n'
        '[spend]\nepsilon = 2\nlimits = "auto"\n'
    )
    read = read_job(job)
    assert read.plan().found is not None
    (release,) = read.release()
    assert release.frame.columns == ["n"]
    assert "dpframe chose" in release.remark


def test_limits_rise() -> None:
    assert list(LIMITS) == sorted({*LIMITS})
    assert min(LIMITS) == 1


@each
def test_what_is_dropped_is_reported_of_the_limit_that_is_found(spend: str) -> None:
    frame = people(spend)
    given: Any = {
        "pure": {"epsilon": 20},
        "approximate": {"epsilon": 20, "delta": 1e-8},
        "concentrated": {"rho": 10, "delta": 1e-8},
    }[spend]
    query = frame.group_by("city", keys=["A", "B", "C"]).agg(n=dp.count())
    plan = query.plan(**given, limits="auto", report_dropped=True)
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == plan.explain(details=True)
    found = query.release(**given, limits="auto", report_dropped=True)
    assert found.frame.columns == ["city", "n", "dropped"]
    assert (found.frame["dropped"] < 0.2).all()
    assert "dpframe chose" in found.remark
    assert frame.session is not None
    assert frame.session.history.height == 1
    searched = search_of(query._missing_limit, report_dropped=True)
    prepared = pipeline.plan_several(Queries.searching(searched), SPENDS[spend][1], None)
    assert prepared.limits is not None
    search = prepared.parts[0].plan.cost
    for option in prepared.limits.options:
        assert prepared.plan.cost.covers(search + option.plan.cost)
    assert SPENDS[spend][1].covers(prepared.plan.cost)


def test_older_plans_say_the_rule_by_which_they_found_limits() -> None:
    import json
    from dataclasses import replace

    plan = people().dp_count().plan(epsilon=1, limits="auto")
    assert plan.found is not None
    older = replace(plan.found, choices=tuple(replace(c, noise=None) for c in plan.found.choices))
    kept = replace(plan, found=older)
    assert "noise" not in json.dumps(json.loads(kept.to_json())["plan"]["found"])
    assert "all but 1% of individuals keep" in dp.Plan.from_json(kept.to_json()).explain(
        details=True
    )


def test_people_whom_noise_would_hide_are_announced_once() -> None:
    """A limit that seems to drop next to nothing is the usual case: one warning a frame."""
    frame = dp.Session(epsilon=100).protect(
        pl.DataFrame({"who": [i % 400 for i in range(800)]}), unit="who"
    )
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first, second = (frame.agg(dp.count()).release(epsilon=20) for _ in range(2))
    assert [w.category for w in seen] == [dp.DroppedRows]
    assert "noise would hide" in first.warnings[0]
    assert "noise would hide" in second.warnings[0]
