"""Roll-ups, cubes and grouping sets: what comes out, that it adds up, and how little it errs."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dpframe as dp
from dpframe.aggregates.reconstructed_error import RebuiltError
from dpframe.plan.data import errors_by_set

COUNTRIES, SEXES, AGES = ["B", "A", None], ["f", "m"], [3, 1, 2]
KEYS = {"country": COUNTRIES, "sex": SEXES}
SURE = {"epsilon": 10**5}


def rows(size: int = 400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "country": rng.choice(["A", "B", "C", "none"], size),
            "sex": rng.choice(["f", "m", "x"], size),
            "band": rng.integers(1, 4, size),
            "age": rng.integers(17, 91, size),
            "who": rng.integers(0, 60, size),
        }
    ).with_columns(pl.col("country").replace("none", None))


def protected(
    frame: pl.DataFrame | None = None, unit: Any = None, **budget: Any
) -> dp.PrivateFrame:
    session = dp.Session(**(budget or {"epsilon": 10**9}))
    return session.protect(rows() if frame is None else frame, unit=unit or dp.Rows())


def expected(frame: pl.DataFrame, keys: dict[str, list[Any]], sets: list[tuple[str, ...]]) -> Any:
    """Plain Polars, set by set."""
    listed = pl.DataFrame(list(itertools.product(*keys.values())), schema=list(keys), orient="row")
    schema = {name: frame.schema[name] for name in keys}
    listed = listed.cast(dict(schema.items()))
    kept = frame.join(listed, on=list(keys), how="semi", nulls_equal=True)
    made = []
    for one in sets:
        if one:
            groups = listed.select(one).unique(maintain_order=True)
            counted = kept.group_by(one).agg(n=pl.len(), age=pl.col("age").sum())
            found = groups.join(counted, on=one, how="left", nulls_equal=True)
        else:
            found = kept.select(n=pl.len(), age=pl.col("age").sum())
        bits = sum(1 << (len(keys) - 1 - i) for i, name in enumerate(keys) if name not in one)
        missing = [pl.lit(None, dtype=schema[name]).alias(name) for name in keys if name not in one]
        found = found.with_columns(*missing, grouping=pl.lit(bits, dtype=pl.UInt32))
        made.append(found.select(*keys, "grouping", pl.col("n", "age").fill_null(0).cast(pl.Int64)))
    return pl.concat(made)


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [s for k in range(len(names), -1, -1) for s in itertools.combinations(names, k)]


@pytest.mark.parametrize("spend", [{"epsilon": 10**5}, {"rho": 10**7}], ids=["epsilon", "rho"])
@pytest.mark.parametrize(
    ("asked", "keys", "sets"),
    [
        (dp.rollup("country", "sex"), KEYS, [("country", "sex"), ("country",), ()]),
        (dp.rollup(["country"]), {"country": COUNTRIES}, [("country",), ()]),
        (dp.cube("country", "sex"), KEYS, subsets(("country", "sex"))),
        (
            dp.cube("country", pl.col("sex"), "band"),
            KEYS | {"band": AGES},
            subsets(("country", "sex", "band")),
        ),
        (
            dp.grouping_sets([("country",), ("sex", "band"), "band"]),
            KEYS | {"band": AGES},
            [("country",), ("sex", "band"), ("band",)],
        ),
        (dp.grouping_sets([("sex", "country"), ()]), {"sex": SEXES, "country": ["A"]},
         [("sex", "country"), ()]),
        (dp.rollup("country", "sex"), {"country": ["A"], "sex": ["f"]},
         [("country", "sex"), ("country",), ()]),
    ],
)  # fmt: skip
def test_results_are_those_of_each_set(
    asked: Any, keys: Any, sets: list[tuple[str, ...]], spend: dict[str, int]
) -> None:
    people = protected(None, None, **{name: 10 * amount for name, amount in spend.items()})
    query = people.group_by(asked, keys=keys).agg(
        dp.count().alias("n"), pl.col("age").dp_sum((0, 100))
    )
    assert_frame_equal(query.collect(**spend), expected(rows(), keys, sets))


def test_means_and_arithmetic_are_those_of_each_set() -> None:
    query = (
        protected()
        .group_by(dp.rollup("country", "sex"), keys=KEYS)
        .agg(
            pl.col("age").dp_mean((0, 100)).alias("mean"),
            pl.col("age").dp_var((0, 100)).alias("var"),
            (pl.col("age").dp_sum((0, 100)) / dp.count()).alias("ratio"),
        )
    )
    found = query.collect(epsilon=10**7)
    plain = expected(rows(), KEYS, [("country", "sex"), ("country",), ()])
    assert found["mean"].to_list() == pytest.approx((plain["age"] / plain["n"]).to_list(), abs=1e-3)
    assert found["ratio"].to_list() == pytest.approx(found["mean"].to_list(), abs=1e-3)
    total = rows().filter(
        pl.col("sex") != "x", pl.col("country").is_in(["A", "B"]) | pl.col("country").is_null()
    )
    assert found["var"][-1] == pytest.approx(total["age"].var(), rel=1e-3)


@pytest.mark.parametrize(
    "spend", [{"epsilon": 0.1}, {"rho": 0.001}, {"epsilon": 0.5, "delta": 1e-6}], ids=str
)
@pytest.mark.parametrize("form", [dp.rollup, dp.cube])
def test_noisy_numbers_add_up_exactly(form: Any, spend: dict[str, float]) -> None:
    budget = {n: 10 * a if n != "delta" else 1e-4 for n, a in spend.items()}
    names = ("country", "sex", "band")
    people = protected(None, None, **budget)
    query = people.group_by(form(*names), keys=KEYS | {"band": AGES}).agg(
        dp.count().alias("n"), pl.col("age").dp_sum((0, 100))
    )
    result = query.collect(**spend)
    finest = result.filter(pl.col("grouping") == 0)
    assert finest["n"].sum() != finest["n"].abs().sum() or finest["n"].std() > 1  # noise there is
    for (bits,), found in result.group_by("grouping"):
        kept = [name for i, name in enumerate(names) if not int(bits) >> (2 - i) & 1]
        if kept:
            sums = finest.group_by(kept).agg(pl.col("n", "age").sum())
            assert_frame_equal(sums, found.select(*kept, "n", "age"), check_row_order=False)
        else:
            assert found.select("n", "age").row(0) == finest.select(pl.col("n", "age").sum()).row(0)


def test_no_rows_at_all() -> None:
    empty = rows().clear()
    query = protected(empty).group_by(dp.cube("country", "sex"), keys=KEYS).dp_count()
    result = query.collect(**SURE)
    assert result.height == 6 + 3 + 2 + 1
    assert result["len"].to_list() == [0] * 12
    assert result["grouping"].dtype == pl.UInt32


def test_null_keys_are_told_from_columns_that_are_left_out() -> None:
    result = protected().group_by(dp.rollup("country", "sex"), keys=KEYS).dp_count().collect(**SURE)
    nulls = result.filter(pl.col("country").is_null(), pl.col("sex").is_null())
    assert nulls["grouping"].to_list() == [1, 3]


def test_known_keys_need_no_listing() -> None:
    frame = rows().with_columns(adult=pl.col("age") >= 18)
    result = protected(frame).group_by(dp.cube("adult")).dp_count().collect(**SURE)
    assert result["adult"].to_list() == [False, True, None]


def test_keys_of_few_values_need_no_listing_where_columns_are_computed() -> None:
    schema = {"d": pl.Date, "x": pl.Int64, "e": pl.Enum(["a", "b"])}
    frame: Any = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), dp.Rows())
    word = pl.when(pl.col("x") > 1).then(pl.lit("p")).otherwise(pl.lit("q"))
    named = frame.with_columns(m=pl.col("d").dt.month(), big=pl.col("x") > 1, w=word)
    month = pl.col("d").dt.month()
    for made, groups in (
        (frame.group_by(dp.cube(month, "e")), 12 * 2 + 12 + 2 + 1),
        (named.filter(pl.col("x") > 0).group_by(dp.rollup("m", "e")), 12 * 2 + 12 + 1),
        (named.group_by(dp.grouping_sets([("big", "w"), ("m",)])), 2 * 2 + 12),
    ):
        found = made.agg(dp.count())._query.groups
        assert sum(map(found.entries, found.sets)) == groups
    with pytest.raises(dp.MissingKeys, match="'x'"):
        named.group_by(dp.rollup("m", "x")).agg(dp.count())


def test_all_keys_in_any_order_are_a_product() -> None:
    keys = pl.DataFrame({"country": ["A", "B", "B", "A"], "sex": ["m", "f", "m", "f"]})
    people = protected()
    found = people.group_by(dp.rollup("country", "sex"), keys=keys).dp_count().collect(**SURE)
    assert found.rows()[:4] != []
    assert [row[:2] for row in found.rows()] == [
        ("A", "m"), ("A", "f"), ("B", "m"), ("B", "f"), ("A", None), ("B", None), (None, None),
    ]  # fmt: skip


# -- how much is gained, and said ---------------------------------------------------------------


def big_keys() -> dict[str, list[Any]]:
    return {"country": [str(i) for i in range(42)], "sex": SEXES}


def test_a_roll_up_and_sexes_err_as_little_as_was_promised() -> None:
    sets = [("country", "sex"), ("country",), ("sex",), ()]
    people = protected(None, None, epsilon=10)
    together = people.group_by(dp.grouping_sets(sets), keys=big_keys()).dp_count()
    plan = together.plan(epsilon=1)
    rule = plan.outputs[0].error
    assert isinstance(rule, RebuiltError)
    errors = dict(errors_by_set(rule, plan.releases, Fraction(95, 100)))
    alone = people.group_by("country", keys=big_keys()["country"]).dp_count().plan(epsilon="0.25")
    before = alone.accuracy("len")
    gains = [before / errors[kept] for kept in [(0, 1), (0,), (1,), ()]]
    assert all(g >= 0.9 * p for g, p in zip(gains, (2.0, 1.4, 2.0, 1.4), strict=True))
    assert plan.accuracy("len") == max(errors.values())
    assert plan.accuracy("len", simultaneous=True) > plan.accuracy("len")


def test_many_tables_of_a_rho_err_less_than_each_alone() -> None:
    people = protected(None, None, rho=10)
    plan = people.group_by(dp.cube("country", "sex"), keys=big_keys()).dp_count().plan(rho=0.02)
    alone = people.group_by("country", keys=big_keys()["country"]).dp_count().plan(rho="0.005")
    sigmas = {r.entries: r.scale for r in plan.releases}
    assert len(sigmas) == 4
    assert plan.accuracy("len") < alone.accuracy("len") / 1.15
    assert plan.cost == dp.ZCDP("0.02")


@pytest.mark.parametrize(
    ("budget", "spend", "noise"),
    [
        ({"epsilon": 9}, {"epsilon": 1}, {"discrete_laplace"}),
        ({"rho": 9}, {"rho": 0.01}, {"discrete_gaussian"}),
        ({"epsilon": 9, "delta": 1e-3}, {"epsilon": 1, "delta": 1e-6}, None),
    ],
)
def test_plans_say_what_is_measured(budget: Any, spend: Any, noise: set[str] | None) -> None:
    people = protected(None, None, **budget)
    query = people.group_by(dp.rollup("country", "sex"), keys=big_keys()).agg(n=dp.count())
    plan = query.plan(**spend)
    text = plan.explain(details=True)
    assert 'group_by(rollup("country", "sex")): 84 keys' in text
    assert "rebuilt by least squares from" in text
    assert "95% of results are within" in text
    assert "by country and sex" in text
    assert noise is None or {release.mechanism for release in plan.releases} == noise
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.accuracy("n") == plan.accuracy("n")
    assert again.explain(details=True) == text


def test_many_tables_are_rebuilt_from_many_under_approximate_dp() -> None:
    names = {name: ["0", "1", "2", "3", "4"] for name in "abcdef"}
    frame = pl.DataFrame({name: ["0"] for name in names})
    people = protected(frame, None, epsilon=9, delta=1e-3)
    plan = people.group_by(dp.cube(*names), keys=names).dp_count().plan(epsilon=1, delta=1e-6)
    assert {release.mechanism for release in plan.releases} == {"discrete_gaussian"}
    alone = people.dp_count().plan(epsilon="1/64", delta="1e-6")
    assert plan.accuracy("len") < alone.accuracy("len") / 3


def test_sets_are_part_of_the_fingerprint() -> None:
    people = protected()
    plans = [
        people.group_by(asked, keys=KEYS).dp_count().plan(epsilon=1)
        for asked in (
            dp.rollup("country", "sex"),
            dp.cube("country", "sex"),
            dp.grouping_sets([("country", "sex"), ("country",)]),
            dp.grouping_sets([("country",), ("country", "sex")]),
        )
    ]
    assert len({plan.fingerprint for plan in plans}) == 4
    assert plans[0].diff(plans[1])


def test_rules_of_errors_that_cannot_be_are_refused() -> None:
    plan = protected().group_by(dp.cube("country", "sex"), keys=KEYS).dp_count().plan(**SURE)
    rule = plan.outputs[0].error
    assert isinstance(rule, RebuiltError)
    edits: list[dict[str, Any]] = [
        {"sizes": (0, 2)},
        {"sizes": ()},
        {"sets": ()},
        {"sets": ((7,),)},
        {"measured": (((9,),),)},
        {"measured": ()},
        {"weights": ((Fraction(-1),) * len(rule.weights[0]),)},
        {"weights": ((),)},
    ]
    for edit in edits:
        with pytest.raises(ValueError, match=r"grouping set|weights"):
            replace(rule, **edit)
    document = json.loads(plan.to_json())
    document["plan"]["outputs"][0]["error"]["sizes"] = [0, 2]
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(document))


def test_weights_and_forced_noise() -> None:
    people = protected(None, None, rho=10)
    query = people.group_by(dp.rollup("country", "sex"), keys=big_keys()).agg(
        n=dp.count(weight=3), age=pl.col("age").dp_sum((0, 100), mechanism="discrete_laplace")
    )
    plan = query.plan(rho="0.04")
    counts = [release for release in plan.releases if release.name == "n"]
    assert sum(float(r.cost.rho) for r in counts) == pytest.approx(0.03, rel=1e-4)
    assert len({float(r.cost.rho) for r in counts}) == len(counts)  # shared as is best
    forced = {r.mechanism for r in plan.releases if r.name == "age"}
    assert forced == {"discrete_laplace"}


def test_the_least_spend_for_an_accuracy() -> None:
    people = protected(None, None, epsilon=100)
    query = people.group_by(dp.rollup("country", "sex"), keys=KEYS).dp_count()
    plan = query.plan(accuracy={"len": 20})
    assert plan.accuracy("len") <= 20
    assert query.plan(epsilon=plan.cost.epsilon * 0.9).accuracy("len") > 20


def test_means_err_less_with_more_rows() -> None:
    people = protected(None, None, rho=10)
    query = people.group_by(dp.rollup("country", "sex"), keys=KEYS).agg(
        m=pl.col("age").dp_mean((17, 90))
    )
    plan = query.plan(rho="0.02")
    assert plan.accuracy("m", count=5000) < plan.accuracy("m", count=500) < plan.accuracy("m")


# -- individuals --------------------------------------------------------------------------------


def test_margins_of_individuals_in_several_groups() -> None:
    people = (
        protected(None, dp.Identifier("who"), rho=10)
        .limit_groups(3, by=["country", "sex"])
        .limit_rows(2, by=["country", "sex"])
    )
    plan = people.group_by(dp.cube("country", "sex"), keys=big_keys()).dp_count().plan(rho=1)
    found = {release.entries: release.sensitivity for release in plan.releases}
    assert found[84].l2 == pytest.approx(math.sqrt(3) * 2)
    assert all(s.l2 == 6 and s.l1 == 6 for n, s in found.items() if n < 84)


def test_limits_by_fewer_columns_hold_of_margins() -> None:
    people = (
        protected(None, dp.Identifier("who"), rho=10)
        .limit_groups(3, by=["country"])
        .limit_rows(2, by=["country"])
    )
    plan = people.group_by(dp.cube("country", "sex"), keys=big_keys()).dp_count().plan(rho=1)
    found = {release.entries: release.sensitivity for release in plan.releases}
    assert found[42].l2 == pytest.approx(math.sqrt(3) * 2)
    assert found[42].linf == 2
    assert found[1].l2 == 6


def test_without_limits_it_is_refused() -> None:
    people = protected(None, dp.Identifier("who"))
    with pytest.raises(dp.UnboundedSensitivity):
        people.group_by(dp.rollup("country"), keys={"country": ["A"]}).dp_count().plan(
            epsilon=1, limits=None
        )


def test_rows_that_change() -> None:
    people = protected(None, dp.Rows(adjacency="change-one"), rho=10)
    plan = people.group_by(dp.cube("country", "sex"), keys=big_keys()).dp_count().plan(rho=1)
    # a row changes groups and leaves the total, or takes on a value that is not listed: the total
    # is one more number of one of the tables, and none is paid for by itself
    assert all(release.sensitivity.l2 == pytest.approx(math.sqrt(2)) for release in plan.releases)
    assert {release.entries for release in plan.releases} <= {84, 85, 42, 43, 2, 3}
    assert sum(release.entries in (85, 43, 3) for release in plan.releases) == 1


# -- histograms and totals of individuals ------------------------------------------------------

EDGES = [17, 30, 50, 90]


def binned(frame: pl.DataFrame, sets: list[tuple[str, ...]]) -> list[int]:
    """The histograms of each group of each set, by plain Polars."""
    found: list[int] = []
    bins = itertools.pairwise(EDGES)
    masks = [
        (pl.col("age") >= lo) & ((pl.col("age") <= hi) if hi == 90 else (pl.col("age") < hi))
        for lo, hi in bins
    ]
    counts = {
        f"n{i}": frame.filter(mask).with_columns(age=pl.lit(0)) for i, mask in enumerate(masks)
    }
    tables = [expected(rows, KEYS, sets)["n"].to_list() for rows in counts.values()]
    for numbers in zip(*tables, strict=True):
        found += numbers
    return found


@pytest.mark.parametrize("spend", [{"epsilon": 10**5}, {"rho": 10**7}], ids=["epsilon", "rho"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_histograms_are_those_of_each_set(spend: dict[str, int], nonnegative: bool) -> None:
    people = protected(None, None, **{name: 10 * amount for name, amount in spend.items()})
    sets = subsets(("country", "sex"))
    query = people.group_by(dp.cube("country", "sex"), keys=KEYS).agg(
        pl.col("age").dp_histogram(EDGES, nonnegative=nonnegative)
    )
    found = query.collect(**spend, interval=0.95)
    assert found["count"].to_list() == binned(rows(), sets)
    assert found.columns[:4] == ["country", "sex", "grouping", "age"]
    assert ((found["count_low"] <= found["count"]) & (found["count"] <= found["count_high"])).all()
    plan = query.plan(**spend)
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    assert "by country and sex and bin" in plan.explain(details=True)


@pytest.mark.parametrize("nonnegative", [False, True])
def test_histograms_of_sets_add_up(nonnegative: bool) -> None:
    query = (
        protected(rows(60))
        .group_by(dp.cube("country", "sex"), keys=KEYS)
        .agg(h=pl.col("band").dp_histogram([1, 2, 4], other=True, nonnegative=nonnegative))
    )
    found = query.collect(epsilon=0.5)
    totals = found.group_by("grouping", "h").agg(pl.col("count").sum())
    assert totals.group_by("h").agg(pl.col("count").n_unique())["count"].to_list() == [1] * 3
    assert not nonnegative or found["count"].min() >= 0  # type: ignore[operator]


def test_histograms_beside_counts_are_lists() -> None:
    query = (
        protected()
        .group_by(dp.rollup("country", "sex"), keys=KEYS)
        .agg(n=dp.count(), h=pl.col("age").dp_histogram(EDGES))
    )
    found = query.collect(**SURE)
    counts = found["h"].list.eval(pl.element().struct.field("count"))
    assert counts.explode().to_list() == binned(rows(), [("country", "sex"), ("country",), ()])


def test_histograms_err_less_than_by_each_set() -> None:
    people = protected(None, None, rho=10)
    groups = people.group_by(dp.cube("country", "sex"), keys=big_keys())
    together = groups.agg(h=pl.col("age").dp_histogram(EDGES)).plan(rho="0.04")
    by_set = dict(errors_by_set(together.outputs[0].error, together.releases, Fraction(95, 100)))
    alone = people.agg(h=pl.col("age").dp_histogram(EDGES)).plan(rho="0.01").accuracy("h")
    assert all(error < 1.01 * alone for error in by_set.values())
    assert sum(error < 0.9 * alone for error in by_set.values()) >= 2


def totals(frame: pl.DataFrame, most: int) -> pl.DataFrame:
    """The number of rows of each individual in each of the finest groups, up to so many."""
    counted = frame.group_by("country", "sex", "who").agg(age=pl.len().clip(0, most))
    return counted.with_columns(pl.col("age").cast(pl.Int64))


def test_totals_of_individuals_are_clamped_in_the_finest_groups() -> None:
    frame = rows()
    people = protected(frame, dp.Identifier("who")).limit_groups(20, by=["country", "sex"])
    query = people.group_by(dp.cube("country", "sex"), keys=KEYS).agg(
        n=dp.count(per="unit", bounds=(0, 2)),
        s=pl.lit(1).dp_sum((0, 2), per="unit"),
    )
    found = query.collect(epsilon=10**6)
    plain = expected(totals(frame, 2), KEYS, subsets(("country", "sex")))
    assert found["n"].to_list() == found["s"].to_list() == plain["age"].to_list()
    assert "clamped in each of the finest groups" in query.plan(epsilon=1).explain(details=True)


def test_numbers_of_individuals_in_one_group_each() -> None:
    frame = rows().unique("who", maintain_order=True)
    by = ["country", "sex"]
    people = protected(frame, dp.Identifier("who")).limit_groups(1, by=by)
    query = people.group_by(dp.cube(*by), keys=KEYS).agg(
        n=pl.col("who").dp_n_unique(), m=pl.col("age").dp_mean((0, 100), per="unit")
    )
    found = query.collect(epsilon=10**6)
    plain = expected(frame, KEYS, subsets(("country", "sex")))
    assert found["n"].to_list() == plain["n"].to_list()
    means = (plain["age"] / plain["n"]).fill_nan(None)
    assert found["m"].to_list() == pytest.approx(means.to_list(), abs=1e-3, nan_ok=True)


# -- simulations --------------------------------------------------------------------------------


def test_simulations_have_the_plain_results_of_each_set() -> None:
    public = rows(seed=1)
    query = (
        protected()
        .group_by(dp.cube("country", "sex"), keys=KEYS)
        .agg(
            n=dp.count(),
            age=pl.col("age").dp_sum((0, 60)),
            m=pl.col("age").dp_mean((17, 60)),
            h=pl.col("age").dp_histogram(EDGES),
        )
    )
    found = query.simulate(public, epsilon=1, runs=30)
    sets = subsets(("country", "sex"))
    plain = expected(public, KEYS, sets)
    by_output = {name: frame for (name,), frame in found.errors.group_by("output")}
    assert by_output["n"]["plain"].to_list() == plain["n"].to_list()
    assert by_output["age"]["plain"].to_list() == plain["age"].to_list()
    assert by_output["m"]["plain"].to_list() == pytest.approx((plain["age"] / plain["n"]).to_list())
    assert by_output["h"]["plain"].to_list() == binned(public, sets)
    assert (by_output["n"]["limits_bias"] == 0).all()
    assert (by_output["age"]["limits_bias"] < 0).all()
    assert (
        by_output["n"].select("country", "sex", "grouping").rows()
        == plain.select("country", "sex", "grouping").rows()
    )
    assert found.results.height == 30 * found.errors.height


def test_simulated_errors_are_those_of_the_plan() -> None:
    public = rows(seed=1)
    query = protected().group_by(dp.cube("country", "sex"), keys=KEYS).agg(n=dp.count())
    plan = query.plan(epsilon=1)
    found = query.simulate(public, epsilon=1, runs=400).errors
    bits = {(0, 1): 0, (0,): 1, (1,): 2, (): 3}
    for kept, error in errors_by_set(plan.outputs[0].error, plan.releases, Fraction(95, 100)):
        seen = found.filter(pl.col("grouping") == bits[kept])["error_95"]
        assert 0.7 * error < float(seen.mean()) < 1.3 * error  # type: ignore[arg-type]


def test_simulations_of_individuals_compare_with_all_of_their_rows() -> None:
    public = rows(seed=1)
    by = ["country", "sex"]
    people = protected(None, dp.Identifier("who")).limit_groups(1, by=by)
    query = people.group_by(dp.cube(*by), keys=KEYS).agg(
        n=pl.col("who").dp_n_unique(),
        s=pl.col("age").dp_sum((0, 50), per="unit"),
        m=pl.col("age").dp_mean((0, 50), per="unit"),
    )
    listed = public.filter(pl.col("country").is_in(["A", "B"]) | pl.col("country").is_null())
    listed = listed.filter(pl.col("sex").is_in(SEXES))
    found = query.simulate(public, epsilon=1, runs=5).errors
    whole = {
        name: frame.row(-1, named=True)["plain"] for (name,), frame in found.group_by("output")
    }
    assert whole["n"] == listed["who"].n_unique()
    assert whole["s"] == listed["age"].sum()
    assert whole["m"] == pytest.approx(listed["age"].sum() / listed["who"].n_unique())


# -- refusals -----------------------------------------------------------------------------------


def test_what_does_not_add_up_is_refused() -> None:
    groups = protected().group_by(dp.cube("country"), keys={"country": ["A"]})
    with pytest.raises(dp.UnsupportedOperation, match="grouping sets") as refused:
        groups.agg(dp.bounds("age"))
    assert "session.collect([" in str(refused.value)


@pytest.mark.parametrize(
    "output",
    [
        pl.col("age").dp_mean((0, 9), per="unit"),
        pl.col("age").dp_std((0, 9), per="unit"),
    ],
)
def test_individuals_that_would_count_several_times_are_refused(output: Any) -> None:
    people = protected(None, dp.Identifier("who"))
    by = ["country", "sex"]
    groups = people.limit_groups(2, by=by).group_by(dp.cube(*by), keys=KEYS)
    with pytest.raises(dp.UnsupportedOperation, match="count the others several times") as refused:
        groups.agg(output)
    assert "limit_groups(1, by=['country', 'sex'])" in str(refused.value)
    once = people.limit_groups(1, by=by).group_by(dp.cube(*by), keys=KEYS)
    assert once.agg(output).plan(epsilon=1)


OWN = [
    pl.col("age").dp_n_unique(),
    pl.col("age").dp_median((17, 90)),
    pl.col("age").dp_quantile([0.25, 0.75], (17, 90)),
]


@pytest.mark.parametrize("output", OWN)
def test_what_does_not_add_up_has_tables_of_its_own(output: Any) -> None:
    """Each set is released with the noise that a query of its own would have for its share."""
    by = ["country", "band"]
    keys = {name: KEYS.get(name, [1, 2, 3]) for name in by}
    people = protected().with_columns(band=pl.col("age") // 20)
    groups = people.group_by(dp.cube(*by), keys=keys)
    plan = groups.agg(output.alias("o"), n=dp.count()).plan(epsilon=2)
    assert "need not agree" in plan.outputs[0].note
    own = [release for release in plan.releases if release.name == "o"]
    assert sum(release.contents.endswith(", by band") for release in own) == len(own) / 4
    assert sum((release.cost.main for release in plan.releases), start=0) <= 2
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint
    found = groups.agg(output.alias("o")).collect(epsilon=4000)
    alone = people.group_by("band", keys=keys["band"]).agg(output.alias("o")).collect(epsilon=4000)
    assert found.filter(pl.col("grouping") == 2)["o"].to_list() == alone["o"].to_list()
    assert found.height == (len(keys["country"]) + 1) * (len(keys["band"]) + 1)


def test_arithmetic_of_tables_of_their_own() -> None:
    groups = protected().group_by(dp.rollup("sex"), keys={"sex": SEXES})
    found = groups.agg(o=dp.n_unique("age") / dp.count()).collect(epsilon=4000)
    assert found.height == len(SEXES) + 1
    assert found["o"].is_between(0, 1).all()


def test_individuals_in_several_groups_are_counted_in_each_set() -> None:
    people = protected(None, dp.Identifier("who"))
    by = ["country", "sex"]
    groups = people.limit_groups(2, by=by).group_by(dp.cube(*by), keys=KEYS)
    plan = groups.agg(n=pl.col("who").dp_n_unique()).plan(epsilon=1)
    assert "need not agree" in plan.outputs[0].note
    assert [release.sensitivity.l1 for release in plan.releases] == [2, 2, 2, 1]
    once = people.limit_groups(1, by=by).group_by(dp.cube(*by), keys=KEYS)
    assert (
        "least squares" in once.agg(n=pl.col("who").dp_n_unique()).plan(epsilon=1).outputs[0].note
    )


@pytest.mark.parametrize(
    ("ask", "error", "match"),
    [
        (lambda f: f.group_by(dp.cube("sex")), dp.MissingKeys, "not known"),
        (
            lambda f: f.group_by(dp.cube("sex", "band"), keys={"sex": ["f"]}),
            dp.MissingKeys,
            "cover",
        ),
        (
            lambda f: f.group_by(dp.cube("sex", "band"), keys=[("f", 1), ("m", 2)]),
            dp.MissingKeys,
            "all combinations",
        ),
        (lambda f: f.group_by(dp.cube("sex"), keys={"sex": []}), dp.MissingKeys, "combinations"),
        (lambda f: f.group_by(dp.cube("sex"), "band", keys=KEYS), dp.UnsupportedOperation, "alone"),
        (lambda f: f.group_by("band", dp.cube("sex")), dp.UnsupportedOperation, "alone"),
        (lambda f: f.group_by(dp.cube("sex"), b="band"), dp.UnsupportedOperation, "alone"),
        (
            lambda f: f.group_by(dp.grouping_sets([("sex",), ("sex", "sex")]), keys={"sex": SEXES}),
            dp.UnsupportedOperation,
            "written twice",
        ),
        (lambda f: dp.rollup(), dp.UnsupportedOperation, "at least one"),
        (lambda f: dp.grouping_sets([()]), dp.UnsupportedOperation, "at least one"),
        (lambda f: dp.grouping_sets("sex"), dp.UnsupportedOperation, "list of tuples"),
        (lambda f: dp.grouping_sets([[3]]), dp.UnsupportedOperation, "name or an expression"),
        (
            lambda f: f.rename({"sex": "grouping"}).group_by(
                dp.cube("grouping"), keys={"grouping": SEXES}
            ),
            dp.UnsupportedOperation,
            "two columns named",
        ),
        (
            lambda f: f.group_by(dp.cube("sex"), keys={"sex": SEXES}).agg(grouping=dp.count()),
            dp.UnsupportedOperation,
            "grouping",
        ),
    ],
)
def test_refusals(ask: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ask(protected())


def test_too_many_sets() -> None:
    names = [f"c{i}" for i in range(11)]
    people = protected(pl.DataFrame({name: [1] for name in names}))
    with pytest.raises(dp.UnsupportedOperation, match="2048 grouping sets"):
        people.group_by(dp.cube(*names), keys={name: [1] for name in names})


# -- what is claimed, tried ---------------------------------------------------------------------


@pytest.mark.parametrize("spend", [{"epsilon": 0.5}, {"rho": 0.02}], ids=["epsilon", "rho"])
def test_intervals_hold_as_often_as_they_say(spend: dict[str, float]) -> None:
    """Of many draws of one plan, in each grouping set by itself."""
    runs = 400
    people = protected(None, None, **{name: 2 * runs * a for name, a in spend.items()})
    sets = [("country", "sex"), ("country",), ("sex",), ()]
    keys = {"country": ["A", "B", "C"], "sex": SEXES}
    query = people.group_by(dp.grouping_sets(sets), keys=keys).agg(n=dp.count())
    plan = query.plan(**spend)
    plain = expected(rows(), keys, sets)
    held, within = np.zeros(12), np.zeros(12)
    for _ in range(runs):
        found = query.collect(**spend, interval=0.95)
        exact = plain["n"]
        held += ((found["n_low"] <= exact) & (exact <= found["n_high"])).to_numpy()
        within += ((found["n"] - exact).abs() <= plan.accuracy("n")).to_numpy()
    by_set = np.add.reduceat(held / runs, [0, 6, 9, 11]) / [6, 3, 2, 1]
    assert (by_set > 0.92).all()
    assert (by_set < 0.985).all()
    assert (within / runs > 0.92).all()


@pytest.mark.parametrize("budget", [{"epsilon": 100}, {"rho": 100}], ids=["epsilon", "rho"])
def test_an_audit_proves_no_more_than_is_claimed(budget: dict[str, float]) -> None:
    frame = pl.DataFrame({"country": ["A", "B"], "sex": ["f", "m"]})
    query = (
        protected(frame, None, **budget)
        .group_by(dp.cube("country", "sex"), keys={"country": ["A", "B"], "sex": SEXES})
        .dp_count()
    )
    found = query.audit(runs=10_000, confidence=0.99999, **dict.fromkeys(budget, 1))
    assert 0.3 * found.claimed < found.proved <= found.claimed


# --------------------------------------------------------------------------- from zero up


@pytest.mark.parametrize(
    ("form", "keys"),
    [
        (dp.rollup("country", "sex"), KEYS),
        (dp.cube("country", "sex", "band"), KEYS | {"band": AGES}),
    ],
)
def test_numbers_from_zero_up_still_add_up(form: Any, keys: dict[str, list[Any]]) -> None:
    groups = protected(rows(30)).group_by(form, keys=keys)
    query = groups.agg(
        n=dp.count(nonnegative=True), s=dp.sum("age", (0, 90), nonnegative=True), raw=dp.count()
    )
    for _ in range(10):
        result = query.collect(epsilon=0.5, interval="0.95")
        by_bits = {bits: frame for (bits,), frame in result.group_by("grouping")}
        for name in ("n", "s"):
            assert result[name].min() >= 0  # type: ignore[operator]
            assert len({frame[name].sum() for frame in by_bits.values()}) == 1
            assert (result[f"{name}_low"] <= result[name]).all()
            assert (result[name] <= result[f"{name}_high"]).all()
        coarse = by_bits[(1 << (len(keys) - 1)) - 1].select("country", "n", "s")
        summed = by_bits[0].group_by("country", maintain_order=True).agg(pl.col("n", "s").sum())
        assert_frame_equal(summed, coarse)


def test_numbers_from_zero_up_of_next_to_no_noise_are_exact() -> None:
    frame = rows()
    groups = protected(frame).group_by(dp.cube("country", "sex"), keys=KEYS)
    plain, held = (
        groups.agg(
            n=dp.count(nonnegative=held), s=dp.sum("age", (0, 90), nonnegative=held)
        ).collect(**SURE)
        for held in (False, True)
    )
    assert_frame_equal(plain, held)


def test_plans_of_numbers_from_zero_up_say_their_bias_and_bound_no_error() -> None:
    groups = protected(rows()).group_by(dp.rollup("country", "sex"), keys=KEYS)
    plan = groups.agg(n=dp.count(nonnegative=True), raw=dp.count()).plan(epsilon=1)
    assert "moved to near tables with the same total that still add up" in plan.explain(
        details=True
    )
    assert "biases small numbers upwards" in plan.explain(details=True)
    with pytest.raises(dp.UnsupportedOperation, match="depends on the data"):
        plan.accuracy("n")
    assert plan.accuracy("raw") > 0
    assert dp.Plan.from_json(plan.to_json()).fingerprint == plan.fingerprint


def test_intervals_of_numbers_from_zero_up_hold_the_exact_ones() -> None:
    frame = rows(40)
    groups = protected(frame).group_by(dp.rollup("country", "sex"), keys=KEYS)
    exact = groups.agg(n=dp.count()).collect(**SURE)["n"]
    query = groups.agg(n=dp.count(nonnegative=True))
    held = [
        ((found["n_low"] <= exact) & (exact <= found["n_high"])).mean()
        for found in (query.collect(epsilon=0.3, interval="0.95") for _ in range(40))
    ]
    assert float(np.mean(held)) > 0.92


def test_plans_say_which_sets_pay_for_whole_cells() -> None:
    frame = pl.LazyFrame(schema={"a": pl.Int64, "b": pl.Int64, "c": pl.Int64})
    people = dp.Session(rho=1).protect(frame, unit=dp.Rows())
    keys = {"a": range(500), "b": range(20), "c": range(100)}
    groups = people.group_by(dp.rollup("a", "b", "c"), keys=keys)
    (output,) = groups.agg(n=dp.count(nonnegative=True)).plan(rho="0.1").outputs
    assert "a deviation of up to 5 to results by a and b, and leaves those of other" in output.note
    few = people.group_by(dp.rollup("a", "b"), keys={"a": range(500), "b": range(300)})
    (output,) = few.agg(n=dp.count(nonnegative=True)).plan(rho="0.1").outputs
    assert "leaves results of all sets next to what they were" in output.note
    (output,) = groups.agg(n=dp.count()).plan(rho="0.1").outputs
    assert "whole" not in output.note


def test_tables_of_their_own_on_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = pl.DataFrame({"g": ["a", "b", "a", None], "h": [1, 2, 2, 1], "x": [5, 5, 7, 9]})
    asked = {"u": dp.n_unique("x"), "m": dp.median("x", (0, 10))}
    keys = {"g": ["a", "b"], "h": [1, 2]}
    found = [
        dp.Session(epsilon=10**8)
        .protect(data, dp.Rows())
        .group_by(dp.cube("g", "h"), keys=keys)
        .agg(**asked)
        .collect(epsilon=4000)
        for data in (frame, duckdb.from_arrow(frame.to_arrow()))
    ]
    for one in found:
        assert one["u"].to_list() == [1, 1, 0, 1, 2, 1, 2, 2, 3]
        assert one["m"][[0, 1, 3]].to_list() == [5, 7, 5]  # others have none, or several as good
