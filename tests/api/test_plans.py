"""Plans from code: what they hold, that they are deterministic, what fingerprints tell apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import polars as pl
import pytest

import dpframe as dp

ROWS = pl.LazyFrame(
    schema={
        "age": pl.Int64,
        "income": pl.Float64,
        "region": pl.String,
        "tier": pl.Enum(["low", "high"]),
        "member": pl.Boolean,
    }
)
Build = Callable[[dp.PrivateFrame], dp.PrivateQuery]


def people(unit: dp.Rows | None = None, frame: Any = ROWS, **declared: Any) -> dp.PrivateFrame:
    return dp.Session(epsilon=1).protect(frame, unit or dp.Rows(), **declared)


def fingerprint(build: Build, **options: Any) -> str:
    return build(people(**options)).plan(epsilon=1).fingerprint


def test_a_plan_holds_what_a_program_needs() -> None:
    grouped = people().filter(pl.col("member")).group_by("region", keys=["n", "s"])
    plan = grouped.agg(n=dp.count(), age=dp.mean("age", (0, 99))).plan(epsilon="0.5")
    assert plan.source == "data"
    assert plan.unit == dp.Rows()
    assert plan.cost == plan.requested == dp.PureDP("0.5")
    assert plan.remaining == dp.PureDP(1)
    assert plan.groups == 2
    assert [output.name for output in plan.outputs] == ["n", "age"]
    (warning,) = plan.notes
    assert 'col("age") is clamped to bounds' in warning
    n, total, count = plan.releases
    assert (n.name, n.aggregate, n.mechanism, n.scale) == ("n", "count", "discrete_box", 2.0)
    assert n.sensitivity == dp.Sensitivity(1, 1.0, 1.0, 1.0)
    assert [total.aggregate, count.aggregate] == ["mean.sum", "mean.count"]
    assert (total.name, total.sensitivity.linf, total.scale) == ("age", 49.5, 99.0)
    assert n.draw == total.draw == count.draw
    assert n.cost == total.cost == count.cost == plan.cost
    assert plan.draws == (n,)


def test_a_plan_of_parts_drawn_apart_holds_what_a_program_needs() -> None:
    grouped = people().filter(pl.col("member")).group_by("region", keys=["n", "s"])
    apart = {"mechanism": "discrete_laplace"}
    plan = grouped.agg(n=dp.count(**apart), age=dp.mean("age", (0, 99), **apart)).plan(
        epsilon="0.5"
    )
    n, total, count = plan.releases
    assert (n.name, n.aggregate, n.mechanism, n.scale) == ("n", "count", "discrete_laplace", 6.0)
    assert n.sensitivity == dp.Sensitivity(1, 1.0, 1.0, 1.0)
    assert n.cost == dp.PureDP("1/6")
    assert (total.name, total.sensitivity.linf) == ("age", 49.5)
    assert plan.draws == plan.releases
    assert n.cost + total.cost + count.cost == plan.cost


def test_deviations_of_a_box_are_those_of_its_formula() -> None:
    """w sqrt((d + 1) (d + 2) / 3) / epsilon for a number that is drawn, and half of sqrt(2) of it
    for a sum that is centred on the rows.
    """
    everyone = people().drop_nulls()
    for d in (2, 3, 5):
        sums = [dp.sum("age", (0, 1000 * i)).alias(f"s{i}") for i in range(1, d)]
        plan = everyone.agg(dp.count().alias("n"), *sums).plan(epsilon="0.01")
        n, *others = plan.releases
        deviation = math.sqrt((d + 1) * (d + 2) / 3) / 0.01
        assert _deviation(n) == pytest.approx(deviation, rel=0.002)
        for i, release in enumerate(others, 1):
            expected = 1000 * i * deviation / math.sqrt(2)
            assert _deviation(release) == pytest.approx(expected, rel=0.002)


def _deviation(release: Any) -> float:
    return math.sqrt(release.noise.variance()) * float(release.step)


def test_mechanism_keeps_an_output_alone() -> None:
    kept = dp.sum("age", (0, 9), mechanism="discrete_laplace").alias("s")
    plan = (
        people()
        .agg(dp.count().alias("n"), dp.sum("income", (0, 1)).alias("t"), kept)
        .plan(epsilon=1)
    )
    n, t, s = plan.releases
    assert n.joint is not None
    assert t.joint is not None
    assert n.draw == t.draw
    assert (s.joint, s.mechanism) == (None, "discrete_laplace")
    assert s.draw != n.draw
    assert plan.draws == (n, s)
    assert n.cost + s.cost == plan.cost


def test_one_output_says_nothing_of_joint_draws() -> None:
    for plan in (
        people().dp_count().plan(epsilon=1),
        people().dp_sum("age", (0, 9)).plan(epsilon=1),
    ):
        (release,) = plan.releases
        assert release.joint is None
        assert "joint" not in plan.to_json()
        assert "together" not in plan.explain(details=True)


@pytest.mark.parametrize("epsilon", ["0.1", 1, "1/3", 0.7, 7])
def test_costs_of_parts_add_up_to_the_spend(epsilon: Any) -> None:
    outputs = [
        dp.count().alias("n"),
        dp.sum("age", (0, 9), weight="1/3").alias("s"),
        dp.std("income", (0, 1), weight=2).alias("d"),
        dp.quantile("age", [0.1, 0.5, 0.9], (0, 9)).alias("q"),
        dp.histogram("tier"),
        dp.argmax("member", k=2),
    ]
    plan = people().group_by("region", keys=["n"]).agg(*outputs).plan(epsilon=epsilon)
    assert sum((d.cost for d in plan.draws), dp.PureDP(0)) == plan.cost == dp.PureDP(epsilon)
    assert len(plan.draws) < len(plan.releases)
    assert {r.draw: r.cost for r in plan.releases} == {d.draw: d.cost for d in plan.draws}


def test_weights_are_shares() -> None:
    apart = {"mechanism": "discrete_laplace"}
    s = dp.sum("age", (0, 9), weight=3, **apart)
    plan = people().agg(n=dp.count(**apart), s=s).plan(epsilon=1)
    assert [r.cost for r in plan.releases] == [dp.PureDP("0.25"), dp.PureDP("0.75")]


def test_a_draw_has_the_shares_of_all_its_outputs() -> None:
    outputs = {"n": dp.count(), "s": dp.sum("age", (0, 9), weight=3)}
    plan = people().agg(**outputs, q=dp.median("age", (0, 9), weight=4)).plan(epsilon=1)
    assert [d.cost for d in plan.draws] == [dp.PureDP("0.5"), dp.PureDP("0.5")]


def test_more_budget_is_never_more_noise() -> None:
    query = people().agg(n=dp.count(), m=dp.mean("income", (0, 1)), q=dp.median("age", (0, 9)))
    spends = [Fraction(i, 20) for i in range(1, 60)]
    scales = [[r.scale for r in query.plan(epsilon=e).releases] for e in spends]
    for less, more in itertools.pairwise(scales):
        assert all(a >= b for a, b in zip(less, more, strict=True))


# -- the same question, the same plan ---------------------------------------------------------

SAME: dict[str, tuple[Build, Build]] = {
    "entrances": (
        lambda p: p.dp_sum("age", (0, 9)),
        lambda p: p.select(pl.col("age").dp_sum((0, 9))),  # type: ignore[attr-defined]
    ),
    "forms of keys": (
        lambda p: p.group_by("region", keys=["n", "s"]).dp_count(),
        lambda p: p.group_by("region", keys=pl.DataFrame({"region": ["n", "s"]})).dp_count(),
    ),
    "order of dicts": (
        lambda p: p.group_by("region", "age", keys={"region": ["n"], "age": [1]}).dp_count(),
        lambda p: p.group_by("region", "age", keys={"age": [1], "region": ["n"]}).dp_count(),
    ),
    "forms of bounds": (
        lambda p: p.dp_sum("age", (0, 9)),
        lambda p: p.dp_sum("age", [0, 9]),
    ),
    "forms of filters": (
        lambda p: p.filter(member=True).dp_count(),
        lambda p: p.filter(pl.col("member") == True).dp_count(),  # noqa: E712
    ),
    "forms of members": (
        lambda p: p.filter(pl.col("region").is_in(["n", "s"])).dp_count(),
        lambda p: p.filter(pl.col("region").is_in({"s": 0, "n": 0})).dp_count(),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_equal_questions_have_equal_fingerprints(name: str) -> None:
    one, other = SAME[name]
    assert fingerprint(one) == fingerprint(other)


def test_neither_data_nor_layout_changes_a_fingerprint() -> None:
    def build(frame: dp.PrivateFrame) -> dp.PrivateQuery:
        return frame.filter(pl.col("age") > 3).agg(dp.count(), dp.mean("income", (0, 1)))

    data = pl.DataFrame({"age": [1], "income": [0.5]}, schema_overrides=dict(ROWS.collect_schema()))
    full = pl.concat([data, ROWS.collect()], how="diagonal")
    assert fingerprint(build) == fingerprint(build, frame=full)


DIFFERENT: list[Build] = [
    lambda p: p.dp_count(),
    lambda p: p.filter(pl.col("age") > 1).dp_count(),
    lambda p: p.filter(pl.col("age") > 2).dp_count(),
    lambda p: p.filter(pl.col("age") >= 2).dp_count(),
    lambda p: p.dp_count("age"),
    lambda p: p.agg(n=dp.count()),
    lambda p: p.agg(dp.count(nonnegative=True)),
    lambda p: p.dp_sum("age", (0, 9)),
    lambda p: p.dp_sum("age", (0, 10)),
    lambda p: p.dp_sum("age", (-9, 9)),
    lambda p: p.dp_mean("age", (0, 9)),
    lambda p: p.group_by("region", keys=["n", "s"]).dp_count(),
    lambda p: p.group_by("region", keys=["s", "n"]).dp_count(),
    lambda p: p.group_by("region", keys=["n"]).dp_count(),
    lambda p: p.group_by("tier").dp_count(),
    lambda p: p.group_by("region", keys=["n", "s"]).dp_argmax(),
    lambda p: p.group_by("region", keys=["n", "s"]).dp_argmax(k=2),
    lambda p: p.dp_histogram("age", [0, 5, 9]),
    lambda p: p.dp_histogram("age", [0, 6, 9]),
    lambda p: p.dp_histogram("age", [0, 6, 9], other=True),
    lambda p: p.dp_median("age", (0, 9)),
    lambda p: p.dp_quantile("age", 0.25, (0, 9)),
    lambda p: p.dp_median("age", candidates=range(10)),
    lambda p: p.dp_argmax("tier"),
    lambda p: p.dp_argmax("tier", score=pl.col("age").clip(0, 9)),
    lambda p: p.agg(dp.count(), dp.sum("age", (0, 9), weight=2)),
    lambda p: p.agg(dp.count(), dp.sum("age", (0, 9), weight=3)),
    lambda p: p.agg((dp.count() + 1).alias("len")),
]


def test_unlike_questions_have_unlike_fingerprints() -> None:
    found = [fingerprint(build) for build in DIFFERENT]
    assert len(set(found)) == len(found)


def test_spend_unit_and_frame_are_part_of_the_fingerprint() -> None:
    query = people().dp_count()
    prints = {
        query.plan(epsilon=1).fingerprint,
        query.plan(epsilon="0.5").fingerprint,
        fingerprint(lambda p: p.dp_count(), unit=dp.Rows(contributions=2)),
        fingerprint(lambda p: p.dp_count(), unit=dp.Rows("change-one")),
        fingerprint(lambda p: p.dp_count(), name="census"),
    }
    assert len(prints) == 5


def test_what_remains_is_not_part_of_the_fingerprint() -> None:
    session = dp.Session(epsilon=1)
    query = session.protect(pl.DataFrame({"age": [1]}), dp.Rows()).dp_count()
    before = query.plan(epsilon="0.25")
    query.collect(epsilon="0.5")
    after = query.plan(epsilon="0.25")
    assert before.fingerprint == after.fingerprint
    assert (before.remaining, after.remaining) == (dp.PureDP(1), dp.PureDP("0.5"))


@pytest.mark.parametrize("build", DIFFERENT[::3])
def test_plans_are_deterministic(build: Build) -> None:
    texts = {build(people()).explain(details=True, epsilon="1/3") for _ in range(5)}
    assert len(texts) == 1


def test_plans_do_not_depend_on_data() -> None:
    texts = set()
    for rows in (0, 1, 50):
        frame = pl.DataFrame({"age": range(rows), "region": ["x"] * rows})
        typed = frame.cast({"age": pl.Int64, "region": pl.String})
        query = people(frame=typed).group_by("region", keys=["x"]).agg(dp.mean("age", (0, 9)))
        texts.add(query.explain(details=True, epsilon=1))
    assert len(texts) == 1


def test_queries_can_be_built_further_from_one_frame() -> None:
    base = people().with_columns(old=pl.col("age") > 60)
    before = base.dp_count().explain(details=True, epsilon=1)
    base.filter(pl.col("old")).dp_count()
    base.group_by("old").dp_count()
    assert base.dp_count().explain(details=True, epsilon=1) == before


def test_wide_queries_are_planned_in_reasonable_time() -> None:
    wide = pl.LazyFrame(schema={f"c{i}": pl.Int8 for i in range(300)})
    plan = people(frame=wide).agg(pl.all().dp_sum()).plan(epsilon=1)  # type: ignore[attr-defined]
    assert len(plan.releases) == 300
    assert plan.cost == dp.PureDP(1)


def test_the_cost_can_be_split_equally() -> None:
    apart = {"mechanism": "discrete_laplace"}
    query = people().agg(n=dp.count(**apart), m=dp.mean("age", (0, 99), **apart))
    equal = query.plan(epsilon=1, split="equal")
    assert [r.cost for r in equal.releases] == [dp.PureDP(c) for c in ("1/2", "1/4", "1/4")]
    assert "equally among the outputs" in equal.explain(details=True)
    least = query.plan(epsilon=1)
    assert least.split == "least error"
    assert [r.cost for r in least.releases] == [dp.PureDP("1/3")] * 3
    drawn = {"n": dp.count(), "m": dp.mean("age", (0, 99)), "q": dp.median("age", (0, 9))}
    together = people().agg(**drawn).plan(epsilon=1, split="equal")
    assert [d.cost for d in together.draws] == [dp.PureDP("2/3"), dp.PureDP("1/3")]
    assert "equally among the outputs" in together.explain(details=True)
    weighted = people().agg(n=dp.count(weight=2), m=dp.mean("age", (0, 99)))
    assert weighted.plan(epsilon=1).split == "weights"
    assert query.collect(epsilon="0.1", split="equal").shape == (1, 2)
    with pytest.raises(dp.InvalidBudget, match="is not known"):
        query.plan(epsilon=1, split="half")  # type: ignore[arg-type]


@pytest.mark.parametrize("spend", [{"rho": 999}, {"epsilon": 1000}, {"epsilon": 10**9}])
def test_next_to_no_noise_is_planned_at_once(spend: dict[str, Any]) -> None:
    """Where tails are bounded rather than known, they do not end."""
    guests = dp.Session(**{name: 2 * amount for name, amount in spend.items()}).protect(
        pl.DataFrame({"person": [1, 1, 2], "spent": [20, 30, 15]}), unit="person"
    )
    totals = dp.sum("spent", (0, 40), per="unit"), dp.count(per="unit", bounds=(0, 2)).alias("n")
    plan = guests.agg(*totals, dp.mean("spent", (0, 40), per="unit").alias("m")).plan(**spend)
    assert plan.accuracy("n", 0.5) == 0


def test_a_confidence_beyond_all_tails_is_refused() -> None:
    plan = people().agg(n=dp.count(), s=dp.sum("age", (0, 9))).plan(epsilon="0.5")
    assert plan.accuracy("s", 1 - Fraction(1, 10**240)) > plan.accuracy("s", 0.999)
    with pytest.raises(dp.InvalidBounds, match=r"(?s)1 - 1e-250.*a lower confidence"):
        plan.accuracy("s", 1 - Fraction(1, 10**400))
