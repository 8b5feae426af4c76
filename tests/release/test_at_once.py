"""Quantiles at once: what is drawn has the law of the definition, and plans say what is chosen."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantile import QuantilesAtOnce
from dpframe.mechanisms import Exponential, JointExponential
from dpframe.mechanisms.noise import TIES, place_rows
from dpframe.release import draws
from dpframe.release.draws import PlacedRows
from dpframe.samplers import row_places
from tests.plan.edits import with_digest
from tests.release.at_once import QUARTILES, X, law_with_ties, planned

# -- The law --------------------------------------------------------------------------------------


def tell_apart(law: dict[tuple[int, ...], float], codes: Any) -> float:
    """Chi squared less what is to be expected, in deviations."""
    seen, far, freedom = Counter(map(tuple, codes.tolist())), 0.0, 0
    assert seen.keys() <= law.keys()
    for chosen, mass in law.items():
        if mass * len(codes) >= 5:
            freedom += 1
            far += (seen[chosen] - mass * len(codes)) ** 2 / (mass * len(codes))
    return (far - freedom) / math.sqrt(2 * freedom)


def in_groups(counts: list[int], groups: int) -> CellCounts:
    cells = np.flatnonzero(counts)
    return CellCounts(
        np.repeat(np.arange(groups), cells.size),
        np.tile(cells, groups),
        np.tile(np.array(counts, np.int64)[cells], groups),
        groups,
    )


@pytest.mark.parametrize(
    ("counts", "ties"), [([0, 0, 0], (1,)), ([2, 4, 0], (1,)), ([1, 3, 1], (2,)), ([0, 4], (2, 2))]
)
def test_draws_have_the_law_of_the_definition(
    counts: list[int], ties: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "TIES", ties)
    found = planned(["1/3", "2/3"], len(counts), epsilon=6)
    law = law_with_ties(found, counts, math.prod(ties))
    assert sum(law.values()) == pytest.approx(1)
    codes = found.drawn(in_groups(counts, 800), 800)
    assert tell_apart(law, codes) < 8


def test_ties_that_are_broken_by_position_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows of a point one would always be before its second place."""

    def by_position(rows: Any, _: int) -> Any:
        tie = np.repeat(np.arange(rows.size), rows)
        nth = np.arange(tie.size) - np.repeat(np.cumsum(rows) - rows, rows)
        return tie, nth * 2 // rows[tie], np.ones(tie.size, np.int64)

    monkeypatch.setattr(draws, "TIES", (2,))
    monkeypatch.setattr(draws, "place_rows", by_position)
    found = planned(["1/3", "2/3"], 2, epsilon=12)
    law = law_with_ties(found, [0, 4], 2)
    codes = found.drawn(in_groups([0, 4], 800), 800)
    assert tell_apart(law, codes) > 8


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 60)), min_size=1, max_size=3),
)
def test_rows_take_places_where_that_matters_and_keep_them(
    counts: list[int], windows: list[tuple[int, int]]
) -> None:
    cells = np.flatnonzero(counts)
    rows = np.array(counts, np.int64)[cells]
    line = PlacedRows(cells, rows, len(counts))
    wanted = [(lo, lo + wide) for lo, wide in windows]
    first = line.runs(wanted)
    ranks = line.ranks([*first.starts.tolist(), *(first.starts + first.lengths - 1).tolist()])
    assert ranks == [*first.ranks.tolist(), *first.ranks.tolist()]
    again = line.runs(wanted)
    assert (again.starts.tolist(), again.lengths.tolist()) == (
        first.starts.tolist(),
        first.lengths.tolist(),
    )
    whole = line.runs([(0, line.rows)])
    assert whole.lengths.sum() == line.candidates == len(counts) << 32
    assert (np.diff(whole.ranks) > 0).all()
    kept = [any(lo <= rank <= hi for lo, hi in wanted) for rank in whole.ranks.tolist()]
    assert whole.starts[kept].tolist() == first.starts.tolist()
    before = line.ranks([cell << 32 for cell in range(len(counts))])
    assert before == [0, *np.cumsum(counts)[:-1].tolist()]


# -- Plans and results ----------------------------------------------------------------------------

PEOPLE = pl.DataFrame({"x": np.random.default_rng(3).integers(0, 1000, 600)})


@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"epsilon": "0.3", "delta": "1e-6"}])
def test_plans_say_what_is_chosen_at_once_and_why(spend: Any) -> None:
    budget: dict[str, Any] = {"epsilon": 100, "delta": "1e-5"}
    session = dp.Session(**{name: budget[name] for name in spend})
    query = session.protect(PEOPLE, dp.Rows()).agg(
        X.dp_quantile(["0.4", "0.2", "0.6", "0.4"], bounds=(0, 999)).alias("list"),
        last=X.dp_quantile("0.8", bounds=(0, 999)),
    )
    plan = query.plan(**spend)
    (release,) = plan.releases
    assert (release.mechanism, release.users) == ("joint_exponential", ("list", "last"))
    assert "one choice of all 4 pays once" in plan.explain(details=True)
    assert '4 quantiles of col("x") among 1000 whole numbers' in plan.explain(details=True)
    assert plan.requested.covers(plan.cost)
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain(details=True) == plan.explain(details=True)
    assert again.accuracy("last") == plan.accuracy("last")
    found = query.collect(**spend)
    low = found["list"].to_list()[0]
    assert found["list"].dtype == pl.List(pl.Int64)
    assert [low[1], low[0], low[2], found["last"][0]] == sorted([*low[:3], found["last"][0]])
    assert low[0] == low[3]


def test_each_point_is_as_many_candidates_as_32_coins_have_outcomes() -> None:
    tuples = math.comb(10 * 2**32 + 2, 3)
    found = JointExponential(Fraction(2), 3).accuracy(0.95, 10)
    assert found == Exponential(Fraction(2)).accuracy(0.95, tuples)


@pytest.mark.parametrize(("place", "value"), [("scale", "1/2"), ("chosen", 0), ("chosen", "x")])
def test_plans_that_were_edited_are_refused(place: str, value: Any) -> None:
    people = dp.Session(epsilon=100).protect(PEOPLE, dp.Rows())
    plan = people.agg(X.dp_quantile(["1/3", "2/3"], bounds=(0, 999))).plan(epsilon=1)
    document = json.loads(plan.to_json())
    document["plan"]["releases"][0]["law"][place] = value
    with pytest.raises(dp.PlanMismatch):
        dp.Plan.from_json(json.dumps(with_digest(document)))


@pytest.mark.parametrize("values", [[4] * 3000, [0] * 930 + [999] * 70, [*range(1000)], [None], []])
def test_ranks_are_as_near_as_plans_say(values: list[int | None]) -> None:
    """Also where all rows tie, and where there are none."""
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Int64})
    asked = X.dp_quantile(["1/3", "2/3"], bounds=(0, 999))
    query = dp.Session(epsilon=100).protect(frame, dp.Rows()).agg(asked)
    plan = query.plan(epsilon=5)
    assert plan.releases[0].mechanism == "joint_exponential"
    ordered, bound = frame["x"].drop_nulls().sort().to_numpy(), plan.accuracy("x") + 1
    for _ in range(5):
        chosen = query.collect(epsilon=5).item().to_list()
        assert chosen == sorted(chosen)
        below, upto = (np.searchsorted(ordered, chosen, side) for side in ("left", "right"))
        target = np.array([1 / 3, 2 / 3]) * ordered.size
        assert (np.maximum(below - target, target - upto) <= bound).all()


def test_rows_of_many_groups_and_listed_candidates_are_answered_otherwise() -> None:
    frame = PEOPLE.with_columns(g=pl.lit(0))
    people = dp.Session(epsilon=100).protect(frame, dp.Rows())
    asked = X.dp_quantile(["1/3", "2/3"], bounds=(0, 999))
    kinds = {
        query.plan(epsilon=1).releases[0].mechanism == "joint_exponential"
        for query in (
            people.group_by("g", keys=range(65)).agg(asked),
            people.agg(X.dp_quantile(["1/3", "2/3"], candidates=range(0, 1000, 2))),
            people.agg(X.dp_quantile([n / 20 for n in range(1, 20)], bounds=(0, 999))),
        )
    }
    assert kinds == {False}
    few = people.group_by("g", keys=range(3)).agg(asked)
    assert few.plan(epsilon=1).releases[0].mechanism == "joint_exponential"
    assert few.collect(epsilon=1)["x"].list.len().to_list() == [2, 2, 2]


def test_the_error_of_a_tuple_is_that_of_parts_that_add_up_to_nothing() -> None:
    """Against draws of parts, of which those that nearly add up are kept."""
    rng = np.random.default_rng(5)
    for m in (1, 2, 4):
        part = QuantilesAtOnce(
            planned(QUARTILES, 4).part.cells, tuple(Fraction(n, m + 1) for n in range(1, m + 1))
        )
        parts = rng.laplace(scale=2, size=(400_000, m + 1))
        kept = parts[np.abs(parts.sum(axis=1)) < 0.1]
        squares = (np.cumsum(kept, axis=1)[:, :-1] ** 2).sum(axis=1).mean()
        assert part.expected_error() == pytest.approx(squares, rel=0.08)


def test_places_are_taken_evenly() -> None:
    point, place, rows = place_rows(np.array([3000, 0, 2000]), TIES[0])
    assert np.bincount(point, rows).tolist() == [3000, 0, 2000]
    assert place.max() < 1 << 16
    assert len(row_places(np.array([5]))) == 3
