"""Quantiles at once: what is drawn has the law of the definition, and neighbours are told apart by
no more than the plan says, and by nearly as much.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import quantile_family
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.aggregates.request import QueryScope
from dpframe.api.query import parts
from dpframe.core.budget import Budget, PureDP
from dpframe.mechanisms import JointExponential
from dpframe.release.at_once import PlacedRows, choose_at_once
from dpframe.samplers import row_places
from tests.plan.edits import with_digest

X: Any = pl.col("x")
QUARTILES = ["0.25", "0.5", "0.75"]
LISTS = [["1/3", "2/3"], QUARTILES, ["0.1", "0.9"], [0, "0.5", 1], [f"{n}/6" for n in range(1, 6)]]


@dataclass(frozen=True)
class Planned:
    """The one draw of a query of quantiles."""

    part: QuantilesAtOnce
    law: JointExponential
    scope: QueryScope
    cost: Budget

    def scores(self, rows: Any, places: int = 1) -> dict[tuple[int, ...], Fraction]:
        """Of all tuples in order, by how many rows are at each place; in rows."""
        upto = np.append(0, np.cumsum(rows)).tolist()
        found, total = {}, upto[-1]
        for chosen in combinations_with_replacement(range(len(rows)), self.part.chosen):
            ranks = pairwise([0, *(upto[c] for c in chosen), total])
            parts = zip(ranks, self.part.parts, strict=True)
            found[chosen] = -sum((abs(b - a - d * total) for (a, b), d in parts), Fraction(0)) / 2
        return found

    def log_masses(self, rows: Any) -> Any:
        scale = self.law.scale * self.part.step
        logs = np.array([float(score / scale) for score in self.scores(rows).values()])
        return logs - logs.max() - math.log(np.exp(logs - logs.max()).sum())


def planned(
    quantiles: Any,
    points: int,
    unit: Any = dp.Rows(),  # noqa: B008
    groups: int | None = None,
    limits: tuple[int, int] | None = None,
    epsilon: Any = 1,
) -> Planned:
    """Of whole numbers from 0 on, whatever other ways there are."""
    schema = {"x": pl.Int64, "g": pl.Int64, "person": pl.Int64}
    frame = dp.Session(epsilon=100).protect(pl.LazyFrame(schema=schema), unit)
    if limits is not None:
        frame = frame.limit_groups(limits[0], by="g").limit_rows(limits[1], by="g")
    asked = X.dp_quantile(quantiles, bounds=(0, points - 1))
    query = (
        frame.agg(asked) if groups is None else frame.group_by("g", keys=range(groups)).agg(asked)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantile_family, "MOST_CELLS", 0)
        patch.setattr(quantile_family, "_WORTH", 1e-6)
        patch.setattr(quantile_family, "_SHARPEST", 0)
        prepared = pipeline.plan(parts(query)[0], PureDP(Fraction(epsilon)), None)
    (use,), (one,) = prepared.parts, prepared.draws
    part, law = use.part, one.law
    assert isinstance(part, QuantilesAtOnce)
    assert isinstance(law, JointExponential)
    return Planned(part, law, prepared.query.scope, prepared.plan.cost)


# -- The law --------------------------------------------------------------------------------------


def law_with_ties(found: Planned, counts: list[int], ties: int) -> dict[tuple[int, ...], float]:
    """The mean of all ways in which rows may take places."""
    rows = [point for point, count in enumerate(counts) for _ in range(count)]
    law: Counter[tuple[int, ...]] = Counter()
    for coins in product(range(ties), repeat=len(rows)):
        at = np.zeros(len(counts) * ties, np.int64)
        np.add.at(at, [row * ties + coin for row, coin in zip(rows, coins, strict=True)], 1)
        tuples = [tuple(c // ties for c in chosen) for chosen in found.scores(at)]
        for chosen, mass in zip(tuples, np.exp(found.log_masses(at)).tolist(), strict=True):
            law[chosen] += mass / ties ** len(rows)
    return dict(law)


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
    monkeypatch.setattr(JointExponential, "ties", ties)
    found = planned(["1/3", "2/3"], len(counts), epsilon=6)
    law = law_with_ties(found, counts, math.prod(ties))
    assert sum(law.values()) == pytest.approx(1)
    codes = choose_at_once(found.part, found.law, in_groups(counts, 800), 800)
    assert tell_apart(law, codes) < 8


def test_ties_that_are_broken_by_position_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rows of a point one would always be before its second place."""

    def by_position(self: Any, rows: Any, level: int) -> Any:
        tie = np.repeat(np.arange(rows.size), rows)
        nth = np.arange(tie.size) - np.repeat(np.cumsum(rows) - rows, rows)
        return tie, nth * 2 // rows[tie], np.ones(tie.size, np.int64)

    monkeypatch.setattr(JointExponential, "ties", (2,))
    monkeypatch.setattr(JointExponential, "places", by_position)
    found = planned(["1/3", "2/3"], 2, epsilon=12)
    law = law_with_ties(found, [0, 4], 2)
    codes = choose_at_once(found.part, found.law, in_groups([0, 4], 800), 800)
    assert tell_apart(law, codes) > 8


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 60)), min_size=1, max_size=3),
)
def test_rows_take_places_where_that_matters_and_keep_them(
    counts: list[int], windows: list[tuple[int, int]]
) -> None:
    law, cells = JointExponential(Fraction(1)), np.flatnonzero(counts)
    rows = np.array(counts, np.int64)[cells]
    line = PlacedRows(cells, rows, len(counts), law)
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
    assert whole.lengths.sum() == line.candidates == len(counts) << 24
    assert (np.diff(whole.ranks) > 0).all()
    kept = [any(lo <= rank <= hi for lo, hi in wanted) for rank in whole.ranks.tolist()]
    assert whole.starts[kept].tolist() == first.starts.tolist()
    before = line.ranks([cell << 24 for cell in range(len(counts))])
    assert before == [0, *np.cumsum(counts)[:-1].tolist()]


# -- Privacy --------------------------------------------------------------------------------------

UNITS: dict[str, dict[str, Any]] = {
    "a row": {},
    "three rows": {"unit": dp.Rows(contributions=3)},
    "a row that changes": {"unit": dp.Rows("change-one")},
    "two rows that change": {"unit": dp.Rows("change-one", contributions=2)},
    "a row of groups": {"groups": 3},
    "a row of groups that changes": {"unit": dp.Rows("change-one"), "groups": 3},
    "two rows of groups that change": {
        "unit": dp.Rows("change-one", contributions=2),
        "groups": 3,
    },
    "a person in two groups": {"unit": dp.Identifier("person"), "groups": 3, "limits": (2, 1)},
    "a person with two rows": {"unit": dp.Identifier("person"), "groups": 3, "limits": (2, 2)},
}


@st.composite
def moved(draw: st.DrawFn, scope: QueryScope, size: int, points: int) -> Any:
    """Rows of one individual, by group and point."""
    most, groups, per_group = scope.spread.tight
    found = np.zeros((size, points), np.int64)
    for _ in range(most):
        group = draw(st.integers(0, size - 1))
        taken = np.count_nonzero(found.sum(axis=1))
        allowed = per_group if not scope.spread.changes else most
        if found[group].sum() < allowed and (
            scope.spread.changes or found[group].any() or taken < groups
        ):
            found[group, draw(st.integers(0, points - 1))] += 1
    return found


@pytest.mark.parametrize("q", LISTS, ids=str)
@pytest.mark.parametrize("unit", UNITS)
@given(data=st.data())
def test_scores_move_no_further_than_is_declared(
    unit: str, q: list[Any], data: st.DataObject
) -> None:
    """By themselves, and apart."""
    found = planned(q, 4, **UNITS[unit])
    scope, size, step = found.scope, found.scope.entries or 1, found.part.step
    rows = np.array(data.draw(st.lists(st.integers(0, 5), min_size=4 * size, max_size=4 * size)))
    rows = rows.reshape(size, 4)
    after = data.draw(moved(scope, size, 4))
    before = data.draw(moved(scope, size, 4)) if scope.spread.changes else np.zeros_like(after)
    if scope.spread.changes and before.sum() != after.sum():
        return
    whole, single = found.part.score_range(scope), found.part.sensitivity(scope)
    ranges, largest = [], Fraction(0)
    for own, old, new in zip(rows, before, after, strict=True):
        pairs = (found.scores(own + new), found.scores(own + old))
        changes = [(pairs[0][c] - pairs[1][c]) / step for c in pairs[0]]
        ranges.append(max(changes) - min(changes))
        largest = max(largest, *map(abs, changes))
    assert largest <= single.linf
    assert sum(ranges) <= whole.l1
    assert sum(r * r for r in ranges) <= whole.l2_squared
    assert max(ranges) <= whole.linf


def told_apart(found: Planned, counts: list[int], change: bool) -> float:
    """The largest log ratio over all neighbours of a frame."""
    before, seen, steps = found.log_masses(counts), 0.0, np.eye(len(counts), dtype=np.int64)
    for new in steps:
        for old in steps if change else [np.zeros_like(new)]:
            after = np.array(counts) + new - old
            if after.min() >= 0:
                seen = max(seen, float(np.abs(found.log_masses(after) - before).max()))
    return seen


NEAR: list[tuple[list[Any], list[int], bool]] = [
    (["1/3", "2/3"], [100, 200, 0, 0, 200, 100], False),
    (QUARTILES, [0, 301, 0, 100, 0, 0, 200, 199], False),
    (["1/3", "2/3"], [300, 0, 201, 100, 0, 299], True),
    (QUARTILES, [200, 1, 300, 100, 199, 0, 200], True),
]


@pytest.mark.parametrize(("quantiles", "counts", "change"), NEAR)
@pytest.mark.parametrize("epsilon", [1, 8])
def test_neighbours_are_told_apart_by_nearly_what_is_claimed(
    quantiles: list[Any], counts: list[int], change: bool, epsilon: int
) -> None:
    """So a scale that is too small by a fifth is seen."""
    unit = dp.Rows("change-one" if change else "add-remove")
    rng, seen = np.random.default_rng(4), 0.0
    found = planned(quantiles, len(counts), unit, epsilon=epsilon)
    assert found.cost.main == epsilon
    for _ in range(60):
        tried = rng.permutation(counts) + rng.integers(0, 2, len(counts))
        seen = max(seen, told_apart(found, tried.tolist(), change))
    assert 0.85 * epsilon <= seen <= epsilon * (1 + 1e-9), seen


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], QUARTILES, [0, "1/2"]], ids=str)
def test_no_small_frames_are_told_apart_by_more_than_epsilon(
    quantiles: list[Any], change: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of up to five rows; also with two places for the rows of a point."""
    unit = dp.Rows("change-one" if change else "add-remove")
    found = planned(quantiles, 3, unit, epsilon=6)
    for counts in product(range(4), repeat=3):
        if sum(counts) <= 5:
            assert told_apart(found, [*counts], change) <= 6 + 1e-9
    for counts in product(range(3), repeat=2):
        law = law_with_ties(found, [*counts], 2)
        more = [counts[0] + 1, counts[1] - change]
        if min(more) >= 0:
            other = law_with_ties(found, more, 2)
            assert max(abs(math.log(law[c] / other[c])) for c in law) <= 6 + 1e-9


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
    assert "one choice of all 4 pays once" in plan.explain()
    assert '4 quantiles of col("x") among 1000 whole numbers' in plan.explain()
    assert plan.requested.covers(plan.cost)
    again = dp.Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    assert again.explain() == plan.explain()
    assert again.accuracy("last") == plan.accuracy("last")
    found = query.collect(**spend)
    low = found["list"].to_list()[0]
    assert found["list"].dtype == pl.List(pl.Int64)
    assert [low[1], low[0], low[2], found["last"][0]] == sorted([*low[:3], found["last"][0]])
    assert low[0] == low[3]


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
        assert part.expected() == pytest.approx(squares, rel=0.08)


def test_places_are_taken_evenly() -> None:
    law = JointExponential(Fraction(1))
    point, place, rows = law.places(np.array([3000, 0, 2000]), 1)
    assert np.bincount(point, rows).tolist() == [3000, 0, 2000]
    assert place.max() < 256
    assert len(row_places(np.array([5]))) == 3
