"""Parts: what outputs share, and that nothing is paid twice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.aggregate import Query
from dpframe.optimise.measurements import PlannedMeasurement, measurements_of

SCHEMA: dict[str, Any] = {"x": pl.Int64, "y": pl.Float64, "g": pl.String, "e": pl.Enum(["a", "b"])}
FULL = 'f.with_columns(pl.col("x").fill_null(0), pl.col("y").fill_null(0.0).fill_nan(0.0))'
"""After this no value of x and y is missing."""


def protected(steps: str = "f", unit: dp.Rows | None = None, **budget: Any) -> Any:
    session = dp.Session(**(budget or {"epsilon": 1}))
    frame = session.protect(pl.LazyFrame(schema=SCHEMA), unit or dp.Rows())
    return eval(steps, {"f": frame, "pl": pl})


def query(texts: Sequence[str], steps: str = "f", unit: dp.Rows | None = None) -> Query:
    names = {"pl": pl, "dp": dp}
    asked = {f"o{i}": eval(text, names) for i, text in enumerate(texts)}
    found: Query = protected(steps, unit).agg(**asked)._query
    return found


def parts(
    texts: Sequence[str], steps: str = "f", unit: dp.Rows | None = None
) -> list[PlannedMeasurement]:
    return list(measurements_of(query(texts, steps, unit)))


def roles(uses: Sequence[PlannedMeasurement]) -> dict[str, tuple[Fraction, tuple[str, ...]]]:
    return {use.role: (use.weight, use.users) for use in uses}


MEAN = 'pl.col("x").dp_mean((0, 10))'
VAR = 'pl.col("x").dp_var((0, 10))'
STD = 'pl.col("x").dp_std((0, 10))'
COUNT = 'pl.col("x").dp_count()'
SUM = 'pl.col("x").dp_sum((0, 10))'


# -------------------------------------------------------------------------------- sharing


def test_a_mean_beside_a_count_shares_it() -> None:
    found = roles(parts([COUNT, MEAN]))
    assert set(found) == {"count", "mean.sum"}
    # the mean pays for its sum alone, for the count pays for itself
    assert found["count"] == (1, ("o0", "o1"))
    assert found["mean.sum"] == (1, ("o1",))


def test_mean_variance_and_deviation_are_three_parts() -> None:
    found = roles(parts([MEAN, VAR, STD]))
    assert set(found) == {"mean.sum", "mean.count", "var.sum_of_squares"}
    assert found["mean.count"][1] == ("o0", "o1", "o2")
    assert found["mean.sum"][1] == ("o0", "o1", "o2")
    assert sum(weight for weight, _ in found.values()) <= 3
    # the mean pays a half for each of its parts, more than a third: the variance pays for squares
    assert found["mean.sum"][0] == found["mean.count"][0] == Fraction(1, 2)
    assert found["var.sum_of_squares"][0] == 1


def test_what_is_named_first_gives_a_shared_part_its_name() -> None:
    (count, total) = parts([COUNT, MEAN])
    assert (count.name, count.role) == ("o0", "count")
    (total, count) = parts([MEAN, COUNT])
    assert (total.name, total.role) == ("o0", "mean.sum")
    assert (count.name, count.role) == ("o0", "mean.count")


def test_the_same_output_twice_is_one_part() -> None:
    (use,) = parts([SUM, SUM])
    assert use.users == ("o0", "o1")
    assert use.weight == 1


def test_a_count_of_rows_serves_where_nothing_is_missing() -> None:
    assert len(parts(["dp.count()", MEAN], FULL)) == 2
    assert len(parts(["dp.count()", MEAN])) == 3
    assert len(parts(["dp.count()", MEAN], 'f.drop_nulls("x")')) == 2


@pytest.mark.parametrize(
    "texts",
    [
        [SUM, 'pl.col("x").dp_sum((0, 11))'],  # other bounds
        [SUM, MEAN],  # a mean is centred
        [SUM, 'pl.col("y").dp_sum((0, 10))'],
        [COUNT, 'pl.col("y").dp_count()'],
        [COUNT, 'pl.col("x").dp_n_unique()'],
        [SUM, 'pl.col("x").dp_sum((0, 10), mechanism="discrete_laplace")'],
        ['pl.col("e").dp_histogram()', 'pl.col("e").dp_histogram(other=True)'],
        ['pl.col("x").dp_quantile(0.5, (0, 9))', 'pl.col("x").dp_quantile(0.25, (0, 9))'],
    ],
)
def test_unlike_statistics_are_not_shared(texts: list[str]) -> None:
    found = parts(texts)
    assert all(len(use.users) == 1 for use in found)
    assert len({use.part for use in found}) + len({use.mechanism for use in found}) >= 3


def test_what_no_one_can_change_costs_nothing_and_leaves_more_for_others() -> None:
    found = roles(parts(["dp.count()", MEAN], FULL, dp.Rows("change-one")))
    assert found == {"count": (0, ("o0", "o1")), "mean.sum": (1, ("o1",))}


# -------------------------------------------------------------------------------- weights


def test_weights_are_relative() -> None:
    found = parts(
        ['pl.col("x").dp_sum((0, 10), weight=3)', 'pl.col("y").dp_sum((0, 1), weight=0.5)']
    )
    assert [use.weight for use in found] == [3, Fraction(1, 2)]


def test_the_dearer_of_two_weights_pays_for_a_shared_part() -> None:
    for first, second in (("1", "5"), ("5", "1")):
        (use,) = parts([f'pl.col("x").dp_sum((0, 9), weight={w})' for w in (first, second)])
        assert use.weight == 5


def test_impacts_add_up_over_outputs() -> None:
    impacts = {use.role: use.impact for use in parts([COUNT, MEAN, VAR])}
    quarter = Fraction(1, 4)
    assert impacts == {"count": 2 + quarter, "mean.sum": 2, "var.sum_of_squares": quarter}
    free = parts(["dp.count()", MEAN], FULL, dp.Rows("change-one"))
    assert [use.impact for use in free] == [0, 1]


def test_a_choice_among_many_weighs_more_than_a_count() -> None:
    few, many, rounds = (
        parts([text])[0].impact
        for text in (
            'pl.col("e").dp_argmax()',
            'pl.col("y").dp_median((0, 9))',
            'pl.col("e").dp_argmax(k=2)',
        )
    )
    assert few == 1  # ln(2) / sqrt(2) is less
    assert float(many) == pytest.approx((20 * 0.693) ** 2 / 2)
    assert rounds == 4


OUTPUTS = [
    "dp.count()",
    *(COUNT, SUM, MEAN, VAR, STD),
    'pl.col("y").dp_mean((0, 10))',
    'pl.col("y").dp_std((0, 10))',
    'pl.col("y").dp_count()',
    'pl.col("x").dp_n_unique()',
    'pl.col("e").dp_histogram()',
    'pl.col("e").dp_argmax()',
    'pl.col("x").dp_quantile([0.25, 0.5, 0.75], (0, 9))',
    'pl.col("x").dp_median((0, 9))',
    '(pl.col("x").dp_sum((0, 10)) / dp.count())',
    '(pl.col("x").dp_mean((0, 10)) - pl.col("y").dp_mean((0, 10)))',
]
UNITS = [dp.Rows(), dp.Rows("change-one"), dp.Rows("change-one", contributions=3)]


def weighted(text: str, weight: Fraction) -> str:
    """With the weight on each dp expression in it."""
    for call in ("dp_count(", "dp.count("):
        text = text.replace(f"{call})", f"{call}weight='{weight}')")
    for call in ("sum", "mean", "var", "std"):
        text = text.replace(f"dp_{call}((0, 10)", f"dp_{call}((0, 10), weight='{weight}'")
    text = text.replace("(0, 9))", f"(0, 9), weight='{weight}')")
    for call in ("dp_n_unique(", "dp_histogram(", "dp_argmax("):
        text = text.replace(f"{call})", f"{call}weight='{weight}')")
    return text


outputs = st.lists(
    st.tuples(st.sampled_from(OUTPUTS), st.sampled_from(["1", "2", "1/3", "0.1", "7"])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=max(60, settings().max_examples))
@given(outputs, st.sampled_from(["f", FULL]), st.sampled_from(UNITS))
def test_nothing_is_paid_twice(asked: list[tuple[str, str]], steps: str, unit: dp.Rows) -> None:
    texts = [weighted(text, Fraction(weight)) for text, weight in asked]
    made = query(texts, steps, unit)
    found = measurements_of(made)
    assert len({(use.part, use.mechanism) for use in found}) == len(found)
    # all together pay no more than the outputs' weights
    paid = sum((use.weight for use in found), Fraction(0))
    assert paid <= sum((request.weight for request in made.requests), Fraction(0))
    for use in found:
        assert (use.weight == 0) == use.sensitivity.is_zero
    # and nobody has less of a part than an equal share of the own weight
    by_user = {
        name: [use for use in found if name in use.users and use.weight]
        for name in {request.name for request in made.requests}
    }
    for request in made.requests:
        mine = by_user[request.name]
        least = min(r.weight for r in made.requests if r.name == request.name)
        assert all(use.weight * len(mine) >= least for use in mine)


@settings(max_examples=max(60, settings().max_examples))
@given(
    outputs,
    st.sampled_from(["f", FULL]),
    st.sampled_from(UNITS),
    st.sampled_from(
        [{"epsilon": "0.1"}, {"epsilon": "0.1", "delta": "1e-9"}, {"rho": "1/30"}],
    ),
    st.booleans(),
)
def test_a_plan_never_costs_more_than_the_spend(
    asked: list[tuple[str, str]], steps: str, unit: dp.Rows, spend: dict[str, str], grouped: bool
) -> None:
    names = {"pl": pl, "dp": dp}
    frame = protected(steps, unit, **spend)
    source = frame.group_by("g", keys=["a", "b", "c"]) if grouped else frame
    plan = source.agg(
        **{f"o{i}": eval(weighted(t, Fraction(w)), names) for i, (t, w) in enumerate(asked)}
    ).plan(**spend)
    assert plan.requested.covers(plan.cost)
    if plan.composition != "sum":  # see tests/optimise/test_numerical.py
        assert plan.cost == plan.requested
        return
    total = plan.cost.of(Fraction(0))
    for draw in plan.draws:
        total = total + draw.cost
    assert total == plan.cost
    if any(release.mechanism != "none" for release in plan.releases):
        assert plan.cost.main == plan.requested.main
    else:
        assert plan.cost.is_zero
    if all(release.mechanism != "discrete_gaussian" for release in plan.releases):
        assert plan.cost.slack == 0
    elif "delta" in spend:
        assert plan.cost.slack == plan.requested.slack


# ------------------------------------------------------------- individuals and their values


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ([(1, ["g"])], 3),
        ([(2, ["g"])], 6),
        ([(2, ["g", "e"])], 2),
        ([(1, ["g"]), (2, ["g", "e"])], 2),
        ([(2, ["g"]), (2, ["e"])], 4),
    ],
    ids=str,
)
def test_an_individual_is_once_in_each_of_its_values_in_each_of_its_groups(
    limits: list[tuple[int, list[str]]], most: int
) -> None:
    """By hand, of three values: a limit on groups alone says nothing of the values in them."""
    schema: dict[str, Any] = {"who": pl.Int64, "g": pl.String, "e": pl.String}
    people: Any = dp.Session(epsilon=1).protect(pl.LazyFrame(schema=schema), unit="who")
    for n, by in limits:
        people = people.limit_groups(n, by=by)
    best = dp.argmax("e", candidates=["a", "b", "c"], score=pl.col("who").dp_n_unique())
    asked: Query = people.group_by("g", keys=["u", "v", "w"]).agg(best)._query
    (part,) = [use.part for use in measurements_of(asked)]
    assert part.sensitivity(asked.scope).l1 == most
