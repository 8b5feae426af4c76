"""`limit_norm`: what it plans, refuses, releases and says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.api.query import parts
from dpframe.errors import DPFrameError, UnsupportedOperation

SCHEMA: dict[str, Any] = {"who": pl.Int64, "g": pl.String, "x": pl.Float64, "n": pl.Int64}
KEYS = ["a", "b", "c", "d"]
APPROX: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}


def visits(data: pl.DataFrame | None = None, **session: Any) -> Any:
    frame = pl.LazyFrame(schema=SCHEMA) if data is None else data
    budget = session or {"epsilon": 10**6, "delta": "1e-2"}
    return dp.Session(**budget).protect(frame, "who")


def weighed(data: pl.DataFrame | None = None) -> Any:
    """Rows of individuals who weigh less, the more groups they are in."""
    return visits(data).limit_norm(1)


def table() -> pl.DataFrame:
    """100 individuals once in each group, and one with 400 rows in each."""
    rows = [(who, g, 1.0, 2) for who in range(100) for g in KEYS]
    rows += [(1000, g, 1.0, 2) for g in KEYS] * 400
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _asked(made: Any) -> None:
    if isinstance(made, dp.PrivateQuery):
        parts(made)


def refused(make: Any) -> str:
    with pytest.raises(DPFrameError) as error:
        _asked(make())
    return str(error.value)


def test_one_individual_adds_its_norm_at_most() -> None:
    query = visits(table()).limit_norm(4).group_by("g", keys=KEYS)
    released = query.agg(
        n=dp.count(),
        people=dp.n_unique("who"),
        total=dp.sum("x", (0, 2)),
        mean=dp.mean("x", (0, 2)),
        each=dp.sum("x", (0, 10), per="unit"),
    ).collect(epsilon=10**5)
    # norms: 2 of those who are in each group once, 800 of the one: a weight of 1/200, 2 rows
    assert released["n"].to_list() == [102] * 4
    assert released["people"].to_list() == [101] * 4
    np.testing.assert_allclose(released["total"], 102, rtol=1e-3)
    np.testing.assert_allclose(released["each"], 110, rtol=1e-3)
    np.testing.assert_allclose(released["mean"], 1, rtol=1e-2)


def test_without_groups_rows_of_one_weigh_as_many_as_the_norm() -> None:
    assert visits(table()).limit_norm(4).dp_count().collect(epsilon=10**5).item() == 404
    assert visits(table()).limit_norm(8).dp_count().collect(epsilon=10**5).item() == 408


@pytest.mark.parametrize("norm", [1, 3, 0.5, "2.25", Fraction(7, 3)])
def test_sensitivities_follow_from_the_norm(norm: Any) -> None:
    query = visits().limit_norm(norm).group_by("g", keys=KEYS)
    plan = query.agg(n=dp.count(), x=dp.sum("x", (-3, 1))).plan(**APPROX)
    exact = Fraction(math.floor(Fraction(norm) * 4096), 4096)
    for release, most in zip(plan.releases, (1, 3), strict=True):
        units = release.exact.scale(release.step)
        assert units.l2_squared == (exact * most) ** 2
        assert units.linf == exact * most
        assert exact * most * 2 - Fraction(most, 1000) < units.l1 <= exact * most * 2


def test_limits_and_norms_hold_together() -> None:
    base = visits().limit_rows(2, by="g").limit_groups(3, by="g")
    one = base.limit_norm(100).group_by("g", keys=KEYS).dp_count().plan(epsilon=1)
    other = base.group_by("g", keys=KEYS).dp_count().plan(epsilon=1)
    assert one.releases[0].exact == other.releases[0].exact
    few = base.limit_norm(3).limit_norm(5).group_by("g", keys=KEYS).dp_count().plan(epsilon=1)
    assert few.releases[0].exact.l2_squared == 9


def test_gaussian_noise_is_that_of_as_many_groups() -> None:
    people = dp.n_unique("who").alias("n")
    keys = [str(i) for i in range(200)]
    norm = visits().limit_norm(4).group_by("g", keys=keys).agg(people).plan(**APPROX)
    groups = visits().limit_groups(16, by="g").group_by("g", keys=keys).agg(people).plan(**APPROX)
    assert norm.releases[0].mechanism == "discrete_gaussian"
    assert norm.releases[0].scale == pytest.approx(groups.releases[0].scale, rel=0.01)


SPENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pure": ({"epsilon": 1}, {"epsilon": 1}),
    "approximate": (APPROX, APPROX),
    "zcdp": ({"rho": 1}, {"rho": 1}),
}


@pytest.mark.parametrize("name", SPENDS)
@pytest.mark.parametrize("mechanism", ["auto", "discrete_laplace"])
def test_plans_are_read_as_they_were_written(name: str, mechanism: str) -> None:
    session, spend = SPENDS[name]
    query = visits(**session).limit_norm(1.5).group_by("g", keys=KEYS)
    plan = query.agg(
        n=dp.count(mechanism=mechanism), x=dp.mean("x", (0, 5)), who=dp.n_unique("who")
    ).plan(**spend)
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == plan.explain(details=True)
    assert plan.accuracy("n") > 0
    assert "limit_norm(1.5)" in plan.explain(details=True)
    assert any(w.startswith("limit_norm(1.5) lets rows") for w in plan.warnings)


def test_a_plan_that_states_a_smaller_norm_is_refused() -> None:
    plan = visits().limit_norm(2).group_by("g", keys=KEYS).dp_count().plan(epsilon=1)
    text = plan.to_json()
    assert '"norm": 8192' in text
    refused(lambda: dp.Plan.from_json(text.replace('"norm": 8192', '"norm": 4096')))


def test_plans_without_norms_say_nothing_of_them() -> None:
    plan = visits().limit_rows(2).group_by("g", keys=KEYS).dp_count().plan(epsilon=1)
    assert '"norm"' not in plan.to_json()


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.dp_median("x", (0, 1)),
        lambda f: f.dp_n_unique("x"),
        lambda f: f.dp_histogram("g", KEYS),
        lambda f: f.dp_argmax("g", candidates=KEYS),
    ],
)
def test_what_does_not_add_up_is_refused(ask: Any) -> None:
    text = refused(lambda: ask(visits().limit_norm(2)))
    assert "limit_norm does not work with" in text
    assert "only counts, sums and" in text
    assert "limit_rows" in text


def test_more_refusals() -> None:
    weighed = visits().limit_norm(2)
    assert "grouping sets" in refused(
        lambda: weighed.group_by(dp.rollup("g"), keys={"g": KEYS}).agg(dp.count())
    )
    session = dp.Session(epsilon=1)
    one, other = (
        session.protect(pl.LazyFrame(schema=SCHEMA), "who", name=name) for name in ("one", "other")
    )
    assert "bring the frames together first" in refused(lambda: one.concat(other.limit_norm(2)))
    assert "bring the frames together first" in refused(
        lambda: one.join(other.limit_norm(2).rename({"g": "h"}), on="who")
    )
    rows = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=SCHEMA), dp.Rows())
    assert "needs an identifier" in refused(lambda: rows.limit_norm(2))
    for norm in (0, -1, 1 / 100, 2**16, math.inf, math.nan, True, "x", None):
        with pytest.raises(UnsupportedOperation, match="a norm is a number from"):
            visits().limit_norm(norm)


def test_rows_of_nobody_count_nothing_and_order_does_not_matter() -> None:
    data = pl.concat([table(), table().with_columns(who=pl.lit(None, pl.Int64))])
    shuffled = data.sample(fraction=1.0, shuffle=True, seed=1).rechunk()
    for frame in (data, shuffled, pl.concat([shuffled[:700], shuffled[700:]], rechunk=False)):
        query = visits(frame).limit_norm(4).group_by("g", keys=KEYS).agg(n=dp.count())
        assert query.collect(epsilon=10**5)["n"].to_list() == [102] * 4


def test_simulations_tell_bias_and_audits_find_no_more_than_is_claimed() -> None:
    query = visits().limit_norm(4).group_by("g", keys=KEYS).agg(n=dp.count())
    found = query.simulate(table(), epsilon=10**5, runs=5)
    assert "limit_norm" not in repr(found)
    assert found.runs == 5
    audit = query.audit(epsilon=1, runs=200, confidence=0.99999)
    assert 0.99 < audit.reach["l2"].max() <= 1
    assert not audit.refuted


def test_weighed_results_have_intervals() -> None:
    query = visits(table()).limit_norm(4).group_by("g", keys=KEYS)
    found = query.agg(n=dp.count(), m=dp.mean("x", (0, 2))).collect(epsilon=50, interval=0.95)
    assert (found["n_low"] <= found["n"]).all()
    assert (found["m_high"] >= found["m"]).all()


# ------------------------------------------------------------------------ groups nobody listed

PEOPLE = dp.n_unique("who").alias("n")


def test_groups_are_found_by_weights_where_a_norm_is_written() -> None:
    plan = weighed().group_by("g").agg(PEOPLE).plan(**APPROX)
    keys, number = plan.releases
    assert keys.mechanism == "weighed_threshold"
    assert not keys.law.alone
    assert keys.cost.main == 0
    assert number.mechanism == "discrete_gaussian"
    assert keys.sensitivity == dp.Sensitivity(256, 16, 1, 1)
    told = plan.explain(details=True)
    assert "limit_norm(1)" in told
    assert "limit_groups(256, by=['g'])" in told
    assert "noisy sum of the weights of individuals of at least" in told
    assert any(w.startswith("limit_norm(1) lets rows") for w in plan.warnings)
    assert any("groups of few individuals are left out" in w for w in plan.warnings)
    written = visits().limit_norm(1).limit_groups(256, by="g").group_by("g").agg(PEOPLE)
    assert written.plan(**APPROX).fingerprint == plan.fingerprint
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == told


def test_limits_that_somebody_set_are_kept() -> None:
    for limited in (visits().limit_groups(3, by="g"), visits().limit_rows(3)):
        plan = limited.group_by("g").agg(PEOPLE).plan(**APPROX)
        assert plan.releases[0].mechanism != "weighed_threshold"
        assert "limit_norm" not in plan.explain(details=True)
    few = visits().limit_norm(2).limit_groups(9, by="g").group_by("g").agg(PEOPLE).plan(**APPROX)
    assert few.releases[0].law.most == 9
    assert few.releases[0].sensitivity.l2 == 2
    many = visits().limit_norm(2).limit_groups(1000, by="g").group_by("g").agg(PEOPLE)
    assert many.plan(**APPROX).releases[0].law.most == 1000
    own = visits().limit_norm(2).group_by("g").agg(dp.count()).plan(**APPROX)
    assert own.releases[0].law.most == 256
    assert own.releases[0].law.alone


def test_sums_alone_need_no_count() -> None:
    totals = dp.sum("x", (0, 5), per="unit")
    plan = weighed().group_by("g").agg(totals).plan(**APPROX)
    keys, total = plan.releases
    assert keys.law.alone
    assert keys.cost.main > 0
    assert keys.scale > 0
    assert total.law != keys.law.noise
    assert not any("intervals hold less often" in w for w in plan.warnings)
    both = weighed().group_by("g").agg(totals, PEOPLE).plan(**APPROX)
    assert not both.releases[0].law.alone


def test_expressions_and_several_columns_are_limited_by_what_they_are_made_of() -> None:
    by = [(pl.col("n") % 10).alias("digit"), "g"]
    plan = weighed().group_by(*by).agg(PEOPLE).plan(**APPROX)
    assert "limit_groups(256, by=['g', 'n'])" in plan.explain(details=True)
    floats = weighed().group_by(r=pl.col("x").floor().cast(pl.Int64))
    assert "limit_groups" in refused(lambda: floats.agg(PEOPLE))


def test_rows_are_not_individuals() -> None:
    for asked in (dp.count(), dp.sum("x", (0, 1)), dp.mean("n", (0, 1)), dp.n_unique("n")):
        text = refused(lambda asked=asked: visits().group_by("g").agg(asked))
        assert "any number of groups" in text
    assert "list them" in refused(lambda: visits(epsilon=1).group_by("g"))
    pure = weighed().group_by("g").agg(PEOPLE)
    assert "delta" in refused(lambda: pure.plan(epsilon=1))


def test_groups_that_are_found_have_weighed_numbers() -> None:
    rows = [(who, g, 2.0, 1) for who in range(900) for g in KEYS]
    rows += [(who, "a", 2.0, 1) for who in range(900, 1000)]
    rows += [(2000 + i, f"alone {i}", 2.0, 1) for i in range(50)]
    data = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    for frame in (data, data.sample(fraction=1.0, shuffle=True, seed=1)):
        query = weighed(frame).group_by("g").agg(PEOPLE, x=dp.sum("x", (0, 2), per="unit"))
        found = query.collect(epsilon=10**5, delta="1e-6")
        assert found["g"].to_list() == KEYS
        assert found["n"].to_list() == [550, 450, 450, 450]
        np.testing.assert_allclose(found["x"], [1100, 900, 900, 900], rtol=1e-4)


def test_intervals_simulations_and_audits_know_them() -> None:
    query = weighed(table()).group_by("g").agg(PEOPLE)
    found = query.collect(epsilon=50, delta="1e-4", interval=0.95)
    assert (found["n_low"] <= found["n"]).all()
    simulated = query.simulate(table(), epsilon=50, delta="1e-4", runs=20)
    assert simulated.errors["missing"].to_list() == [0.0] * 4
    audit = query.audit(epsilon=1, delta="1e-6", runs=200, confidence=0.99999)
    assert audit.reach["l2"].max() <= 1
    assert not audit.refuted


def test_several_queries_of_one_frame_find_the_same_groups() -> None:
    session = dp.Session(epsilon=10**6, delta="1e-2")
    people = session.protect(table(), "who").limit_norm(1)
    queries = [people.group_by("g").agg(PEOPLE), people.dp_n_unique("who")]
    plan = session.plan(queries, **APPROX)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    one, other = session.collect(queries, epsilon=10**5, delta="1e-4")
    assert one["g"].to_list() == KEYS
    assert other.item() == 101


def test_limits_of_weighed_queries_can_be_suggested() -> None:
    query = weighed(table()).group_by("g").agg(PEOPLE)
    found = query.suggest_limits(epsilon=100, details=True)
    assert "limit_groups" in found["limit"].to_list()
