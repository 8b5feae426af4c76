"""Several quantiles of one column: which are answered together, and what comes out."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates import quantile
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.quantile import QuantileTree, codes_from_counts, levels_for, nondecreasing
from dpframe.aggregates.values import numeric_value
from dpframe.core.dtypes import INT64, domain_of_dtype
from dpframe.core.tree import Column
from dpframe.kernel import Refused
from dpframe.mechanisms import RecursiveExponential

X: Any = pl.col("x")
DECILES = [number / 10 for number in range(1, 10)]
ROWS = pl.DataFrame(
    {"x": np.random.default_rng(3).integers(0, 60, 400), "g": [0, 1] * 200},
    schema={"x": pl.Int64, "g": pl.Int64},
)
SURE: dict[str, Any] = {"epsilon": 10**7}


def people(unit: Any = dp.Rows(), **budget: Any) -> dp.PrivateFrame:  # noqa: B008
    return dp.Session(**(budget or {"epsilon": 10**8})).protect(ROWS, unit)


def mechanisms(query: dp.PrivateQuery, **spend: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(r.mechanism, r.users) for r in query.plan(**(spend or {"epsilon": 1})).releases]


ENDS = [(i, k) for k in range(6) for i in range(k + 1)]
"""Of the first cells of five, in order."""
TOGETHER, AT_ONCE = "recursive_exponential", "joint_exponential"


def test_quantiles_of_one_column_are_answered_together() -> None:
    query = people().agg(
        X.dp_quantile([0.2, 0.5, 0.8], (0, 1000)).alias("list"),
        p10=X.dp_quantile(0.1, (0, 1000)),
        p90=X.dp_quantile(0.9, (0, 1000)),
        n=dp.count(),
    )
    assert mechanisms(query) == [(TOGETHER, ("list", "p10", "p90")), ("discrete_laplace", ("n",))]
    found = query.collect(**SURE)
    assert found["list"].to_list() == [[exact(0.2), exact(0.5), exact(0.8)]]
    assert found["p10"].to_list() == [exact(0.1)]
    assert found["p90"].to_list() == [exact(0.9)]
    assert found["p10"].dtype == pl.Int64


def exact(q: float) -> int:
    """The exact quantile."""
    return int(ROWS["x"].sort()[int(np.ceil(q * ROWS.height)) - 1])


@pytest.mark.parametrize(
    "outputs",
    [
        {"a": X.dp_quantile(0.25, (0, 100)), "b": X.dp_quantile(0.75, (0, 99))},
        {"a": X.dp_quantile(0.25, (0, 100), weight=2), "b": X.dp_quantile(0.75, (0, 100))},
        {"a": X.dp_quantile(DECILES, (0, 100), mechanism="exponential")},
        {"a": X.dp_quantile([0.45, 0.55], (0, 100))},  # near each other: levels save nothing
        {"a": X.dp_quantile(0.25, (0, 100)), "b": (X + 1).dp_quantile(0.75, (0, 100))},
        {"a": X.dp_quantile(["1/1009", "500/1013", "1009/1019"], (0, 1000))},  # 1e9 parts of a rank
    ],
)
def test_others_are_answered_apart(outputs: dict[str, Any]) -> None:
    assert {name for name, _ in mechanisms(people().agg(**outputs))} == {"exponential"}


@pytest.mark.parametrize("mechanism", ["auto", "exponential", "permute_and_flip"])
@pytest.mark.parametrize("spend", [{"epsilon": "0.01"}, {"epsilon": 1}])
def test_quantiles_come_in_their_order(spend: Any, mechanism: str) -> None:
    given = {"candidates": range(0, 60, 3), "mechanism": mechanism}
    query = people().group_by("g", keys=range(30)).agg(
        X.dp_quantile([0.9, 0.1, 0.5, 0.5], **given).alias("list"),
        p30=X.dp_quantile(0.3, **given),
        p70=X.dp_quantile(0.7, **given),
        spread=X.dp_quantile(0.8, **given) - X.dp_quantile(0.2, **given),
    )  # fmt: skip
    found = query.collect(**spend)
    ordered = [
        [low, p30, middle, p70, high]
        for (high, low, middle, same), p30, p70 in found.select("list", "p30", "p70").rows()
        if middle == same
    ]
    assert len(ordered) == 30
    assert all(row == sorted(row) for row in ordered)
    assert found["spread"].min() >= 0  # type: ignore[operator]


@pytest.mark.parametrize(
    "given",
    [{"bounds": (0, 1)}, {"bounds": (0, 100)}, {"bounds": (-0.5, 7)}, {"candidates": [5, 7]}],
)
@pytest.mark.parametrize("rows", [[], [3], [5] * 40, [0, 1] * 30, [None, 2]])
@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"rho": "0.1"}])
def test_awkward_frames_have_quantiles(given: Any, rows: Any, spend: Any) -> None:
    frame = pl.DataFrame({"x": rows}, schema={"x": pl.Int64})
    query = dp.Session(**spend).protect(frame, dp.Rows())
    (found,) = query.agg(X.dp_quantile([0, *DECILES, 1], **given)).collect(**spend)["x"].to_list()
    assert len(found) == 11
    assert found == sorted(found)
    lo, hi = given.get("bounds") or (5, 7)
    assert all(np.trunc(lo) <= value <= hi for value in found)


def test_one_candidate_is_chosen() -> None:
    found = people().agg(X.dp_quantile(DECILES, candidates=[7])).collect(epsilon=1)
    assert found["x"].to_list() == [[7] * 9]


@pytest.mark.parametrize("q", [DECILES, [0, 0.5, 1], [0.01, 0.5, 0.99]])
@pytest.mark.parametrize("values", [[4] * 1000, [0] * 930 + [9] * 70, [*range(50)] * 20])
def test_with_much_budget_values_that_tie_are_right(q: list[float], values: list[int]) -> None:
    """Rows of one point are on both sides of many choices."""
    frame = pl.DataFrame({"x": values})
    asked = X.dp_quantile(q, (0, 100))
    found = dp.Session(epsilon=400).protect(frame, dp.Rows()).agg(asked).collect(epsilon=400)
    ordered = np.sort(values)
    for chosen, share in zip(found["x"].to_list()[0], q, strict=True):
        below, upto = (np.searchsorted(ordered, chosen, side) for side in ("left", "right"))
        assert below - 12 <= share * ordered.size <= upto + 12


def test_plans_are_written_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantile, "MOST_AT_ONCE", 0)
    plan = people().agg(X.dp_quantile(DECILES, (0, 1000))).plan(epsilon=1)
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == plan.explain(details=True)
    assert again.accuracy("x") == plan.accuracy("x")
    (release,) = plan.releases
    assert isinstance(release.law, RecursiveExponential)
    assert release.repeats == 4
    assert release.entries == 9
    assert len(plan.events) == 4
    words = plan.explain(details=True)
    assert "4 levels have about" in words
    assert "0.5; 0.2, 0.7; 0.1, 0.3, 0.6, 0.8; 0.4, 0.9" in words


@pytest.mark.parametrize(
    ("place", "value"),
    [("repeats", 3), ("scale", "1/2"), ("chosen", 0), ("path", "1/2"), ("path", "x")],
)
def test_plans_that_were_edited_are_refused(
    place: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.plan.edits import with_digest

    monkeypatch.setattr(quantile, "MOST_AT_ONCE", 0)

    document = json.loads(people().agg(X.dp_quantile(DECILES, (0, 1000))).plan(epsilon=1).to_json())
    (release,) = document["plan"]["releases"]
    (release if place == "repeats" else release["law"])[place] = value
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(with_digest(document)))


@pytest.mark.parametrize(
    "spend", [{"epsilon": 1}, {"rho": "0.02"}, {"epsilon": 1, "delta": "1e-6"}]
)
@pytest.mark.parametrize("split", ["least error", "equal"])
def test_a_plan_with_others_costs_no_more_than_it_may(spend: Any, split: Any) -> None:
    frame = people(**{name: 100 if name != "delta" else "1e-5" for name in spend})
    query = frame.agg(dp.count(), X.dp_quantile(DECILES, (0, 1000)).alias("d"), X.dp_sum((0, 100)))
    plan = query.plan(**spend, split=split)
    assert plan.requested.covers(plan.cost)
    assert any(r.mechanism in {TOGETHER, AT_ONCE} for r in plan.releases)


def test_weights_of_outputs_that_share_a_draw_add_up() -> None:
    """As they did when each had its own."""
    three = {f"p{q}": X.dp_quantile(q / 100, (0, 1000)) for q in (25, 50, 75)}
    plan = people().agg(n=dp.count(), **three).plan(epsilon=1, split="equal")
    costs = {r.mechanism: r.cost.main for r in plan.releases}
    assert costs == {"discrete_laplace": Fraction(1, 4), TOGETHER: Fraction(3, 4)}


# -- Counts ---------------------------------------------------------------------------------------


def test_few_candidates_are_counted() -> None:
    query = people().agg(
        p10=X.dp_quantile(0.1, (0, 100)), rest=X.dp_quantile(DECILES[1:], (0, 100))
    )
    plan = query.plan(epsilon=1)
    users = ("p10", "rest")
    assert [(r.mechanism, r.users) for r in plan.releases] == [("discrete_laplace", users)] * 2
    assert [r.aggregate for r in plan.releases] == ["quantile.counts"] * 2
    assert [float(r.cost.main) for r in plan.releases] == pytest.approx([0.45, 0.55], abs=1e-4)
    assert "101 counts, and added up in runs of 11 neighbours, have about" in plan.explain(
        details=True
    )
    again = dp.Plan.from_json(plan.to_json())
    assert again.accuracy("rest") == plan.accuracy("rest")
    assert again.explain(details=True) == plan.explain(details=True)
    found = query.collect(**SURE)
    assert [*found["p10"], *found["rest"].to_list()[0]] == [exact(q) for q in DECILES]


@pytest.mark.parametrize("q", [[0, 0.1, 0.25, 0.5, 0.75], [0.1, 0.25, 0.5, 0.75, 1]])
def test_the_least_and_the_greatest_value_are_not_read_off_counts(q: list[float]) -> None:
    """They lie where noise of empty candidates begins and ends, wherever rows are."""
    asked = X.dp_quantile(q, candidates=range(0, 50, 10))
    assert "discrete_laplace" not in {name for name, _ in mechanisms(people().agg(asked))}
    inner = X.dp_quantile([0.25, 0.5, 0.75], candidates=range(0, 50, 10))
    assert {name for name, _ in mechanisms(people().agg(inner))} == {"discrete_laplace"}


def test_much_data_in_rho_is_chosen_and_little_in_epsilon_counted() -> None:
    query = people(rho=1).agg(X.dp_quantile(DECILES, (0, 100)))
    assert mechanisms(query, rho="0.1")[0][0] == TOGETHER
    few = people(rho=1).agg(X.dp_quantile(DECILES, (0, 5)))
    assert mechanisms(few, rho="0.1")[0][0] == "discrete_gaussian"
    ends = people().agg(X.dp_quantile([0, 0.5, 1], (0, 5)))
    assert mechanisms(ends)[0][0] == TOGETHER


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}])
def test_of_all_ways_the_one_with_the_least_error_is_taken(budget: Any) -> None:
    """Fewer candidates favour counts, whatever delta there is."""
    ways = [
        mechanisms(people(**budget).agg(X.dp_quantile(DECILES, (0, most))), **budget)[0][0]
        for most in (8, 40, 400, 4000)
    ]
    assert ways[0] == "discrete_laplace"
    assert ways[-1] == AT_ONCE
    assert sorted(ways) == ways


@given(st.lists(st.lists(st.integers(-9, 9), min_size=6, max_size=6), min_size=1, max_size=3))
def test_rising_sequences_are_the_nearest(rows: list[list[int]]) -> None:
    """Against the formula of largest and least means; and what rises stays as it is."""
    found = nondecreasing(np.array(rows, np.float64))
    for row, made in zip(rows, found.tolist(), strict=True):
        means = [
            max(min(np.mean(row[j : k + 1]) for k in range(i, 6)) for j in range(i + 1))
            for i in range(6)
        ]
        assert made == pytest.approx(means)
    assert nondecreasing(found) == pytest.approx(found)


@given(
    st.lists(st.integers(0, 9), min_size=5, max_size=5),
    st.lists(st.integers(-9, 30), min_size=5, max_size=5),
    st.lists(st.integers(0, 20), min_size=2, max_size=6),
    st.booleans(),
)
@example([2, 0, 9, 0, 4], [-3, 3, -5, 3, 2], [10, 10], False)
@example([0, 7, 7, 2, 0], [-2, -3, 5, 5, -5], [10, 10], False)
def test_ranks_that_are_read_off_rise_and_are_as_near_as_their_rule_says(
    rows: list[int], noise: list[int], wanted: list[int], listed: bool
) -> None:
    cells: Any = PointCells(CELLS.value, Fraction(0), Fraction(1), 5)
    if listed:
        cells = PositionCells(CELLS.value, (Fraction(1), Fraction(2)))
    share = tuple(Fraction(n, 20) for n in sorted(wanted))
    true = np.array(rows)
    codes = codes_from_counts((true + noise)[None, :], cells, share)
    chosen = [int(code[0]) for code in codes]
    assert chosen == sorted(chosen)
    sums = np.append(0, np.cumsum(noise))
    worst = max(abs(sums))
    worse = [max(abs(sums[i] - float(q) * sums[k]) for i, k in ENDS) for q in share]
    assert max(worse) <= max(sums) - min(sums) + 1e-9
    upto = np.cumsum(true)
    places = [2 * code + 1 if listed else code for code in range(2 if listed else 5)]
    for q, code, most in zip(share, chosen, worse, strict=True):
        target = float(q) * upto[-1]
        away = [max(upto[p] - true[p] - target, target - upto[p], 0) for p in places]
        assert away[code] <= min(away) + (1 + listed) * (1 + q) * worst + 1e-9
        assert away[code] <= min(away) + (1 + listed) * most + 1e-9


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, 30)},
        {"bounds": (0, 90)},
        {"candidates": range(0, 60, 6)},
        {"candidates": range(40)},
    ],
)
@pytest.mark.parametrize("spend", [{"epsilon": "0.5"}, {"rho": "0.01"}])
def test_stated_errors_of_ranks_hold(given: Any, spend: Any) -> None:
    """Of counts, of choices one inside the other, and of choices apart."""
    most = int(given["bounds"][1]) if "bounds" in given else 60
    frame = dp.Session(**dict.fromkeys(spend, 10**4)).protect(ROWS.clear(), dp.Rows())
    query = frame.agg(X.dp_quantile(DECILES, **given))
    plan, runs = query.plan(**spend), 60
    exact_ones = query.simulate(ROWS, runs=runs, **spend).results
    chosen = exact_ones["noisy"].to_numpy().reshape(runs, 9)
    ordered = ROWS["x"].clip(0, most).sort().to_numpy()
    target = np.array(DECILES) * ROWS.height

    def away(values: Any) -> Any:
        below, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
        return np.maximum(np.maximum(below - target, target - upto), 0)

    best = away(exact_ones["exact"].to_numpy()[:9])
    law = plan.releases[0].law
    path = float(law.path) if isinstance(law, RecursiveExponential) else 1.0
    worst = (away(chosen) - best).max(axis=1)
    assert (worst <= plan.accuracy("x") * path + 1).mean() >= 0.9


# -- Levels ---------------------------------------------------------------------------------------

CELLS = PointCells(
    numeric_value(Column("x"), {"x": domain_of_dtype(INT64)}, "quantile"),
    Fraction(0),
    Fraction(1),
    50,
)
quantiles = st.sets(st.integers(0, 40), min_size=1, max_size=30).map(
    lambda found: tuple(Fraction(n, 40) for n in sorted(found))
)


@given(quantiles, st.integers(0, 3))
def test_each_quantile_is_between_those_of_earlier_levels(
    wanted: tuple[Fraction, ...], more: int
) -> None:
    levels = levels_for(wanted, len(wanted).bit_length() + more)
    tree = QuantileTree(CELLS, wanted, levels)
    assert len(levels) <= len(wanted).bit_length() + more
    found: dict[int, int] = {}
    for number, level in enumerate(levels):
        for one in level:
            node = tree.choices[one]
            low = Fraction(0) if node.lower < 0 else wanted[node.lower]
            high = Fraction(1) if node.upper < 0 else wanted[node.upper]
            assert low + node.quantile * (high - low) == wanted[one]
            ends = [end for end in (node.lower, node.upper) if end >= 0]
            assert all(found[end] < number for end in ends)
            last = node.upper if node.upper >= 0 else 99
            between = [n for n in found if node.lower < n < last]
            assert all(found[n] == number for n in between if n not in ends) or not between
        found |= dict.fromkeys(level, number)
    assert sorted(found) == [*range(len(wanted))]


def test_levels_hold_no_more_than_they_can() -> None:
    with pytest.raises(ValueError, match="more quantiles"):
        levels_for([Fraction(n, 9) for n in range(8)], 3)


@pytest.mark.parametrize("levels", [((0, 1), (2,)), ((0,), (1,)), ((1,), (0, 2), (2,)), ()])
def test_trees_whose_levels_share_rows_are_refused(levels: Any) -> None:
    tree = QuantileTree(CELLS, (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), levels)
    with pytest.raises(Refused, match=r"each quantile once|the same rows"):
        _ = tree.choices
