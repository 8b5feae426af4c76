"""Quantiles one inside the other: what is drawn has the law of the definition, and neighbours are
told apart by no more than the plan says.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe import pipeline
from dpframe.aggregates import quantile
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantile import QuantileTree
from dpframe.aggregates.request import QueryScope
from dpframe.api.query import parts
from dpframe.core.budget import ZCDP, PureDP
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import RecursiveExponential
from dpframe.optimise.physical import translate
from dpframe.release import draws
from dpframe.release.draws import choose_recursively
from tests.release.recursion import Law, Recursion, largest_log_ratio, log_masses

ONE, ROWS = PureDP(Fraction(1)), dp.Rows()
QUARTILES = ["0.25", "0.5", "0.75"]
DECILES = [f"{number}/10" for number in range(1, 10)]
X: Any = pl.col("x")


@dataclass(frozen=True)
class Planned:
    """The one draw of a query of quantiles."""

    prepared: pipeline.Prepared
    tree: QuantileTree
    law: RecursiveExponential

    @property
    def scope(self) -> QueryScope:
        return self.prepared.query.scope

    def recursion(self, ties: int = 1) -> Recursion:
        return Recursion.of(self.tree, self.law, self.scope, ties)

    def drawn(self, counted: CellCounts) -> Any:
        plan = translate(pipeline.alone(self.prepared)).plan
        (one,) = plan.draws
        assert isinstance(one.what, kernel.Levels)
        assert isinstance(one.law, kernel.Exponential)
        return choose_recursively(plan, one.what, one.law, counted, (0, counted.size))


def planned(
    quantiles: Any,
    points: int,
    spend: Any = ONE,
    unit: dp.Rows | dp.Identifier = ROWS,
    *,
    groups: int | None = None,
    limits: tuple[int, int] | None = None,
    **among: Any,
) -> Planned:
    """Quantiles of whole numbers from 0 on, in groups of which an individual is in so many with so
    many rows of each.
    """
    schema = {"x": pl.Int64, "g": pl.Int64, "person": pl.Int64}
    frame = dp.Session(epsilon=100, delta=1e-5).protect(pl.LazyFrame(schema=schema), unit)
    if limits is not None:
        frame = frame.limit_groups(limits[0], by="g").limit_rows(limits[1], by="g")
    asked = X.dp_quantile(quantiles, **(among or {"bounds": (0, points - 1)}))
    query = (
        frame.agg(asked) if groups is None else frame.group_by("g", keys=range(groups)).agg(asked)
    )
    with (  # candidates are not counted, and not chosen at once
        patch.object(quantile, "MOST_CELLS", 0),
        patch.object(quantile, "MOST_AT_ONCE", 0),
    ):
        prepared = pipeline.plan(parts(query)[0], spend, None)
    (use,) = prepared.parts
    (one,) = prepared.draws
    tree, law = use.part, one.law
    assert isinstance(tree, QuantileTree)
    assert isinstance(law, RecursiveExponential)
    return Planned(prepared, tree, law)


def counts_of(points: list[int], groups: int) -> CellCounts:
    """The same rows in each of so many groups."""
    found = sorted(Counter(points).items())
    cells = np.tile(np.array([c for c, _ in found], np.int64), groups)
    rows = np.tile(np.array([n for _, n in found], np.int64), groups)
    return CellCounts(np.repeat(np.arange(groups), len(found)), cells, rows, groups)


def assert_drawn_by(law: Law, codes: Any) -> None:
    """By chi squared: such a distance is once in a thousand million tests."""
    seen = Counter(map(tuple, codes.tolist()))
    assert seen.keys() <= law.keys()
    expected = {outcome: mass * len(codes) for outcome, mass in law.items()}
    common = [outcome for outcome, times in expected.items() if times >= 5]
    rest = len(codes) - sum(expected[outcome] for outcome in common)
    others = len(codes) - sum(seen[outcome] for outcome in common)
    far = sum((seen[o] - expected[o]) ** 2 / expected[o] for o in common)
    far += (others - rest) ** 2 / max(rest, 5)
    freedom = len(common)
    assert far < freedom + 9 * math.sqrt(2 * freedom) + 40, (far, freedom)


@pytest.mark.parametrize("epsilon", [1, 6])
@pytest.mark.parametrize("ties", [1, 2, 4])
@pytest.mark.parametrize("rows", [[], [1], [2, 2, 2, 2], [0, 1, 1, 3], [0, 0, 0, 3, 3]])
def test_draws_have_the_law_of_the_definition(
    rows: list[int], ties: int, epsilon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "PLACES", ties)
    found = planned(QUARTILES, 4, PureDP(Fraction(epsilon)))
    law = found.recursion(ties).law(rows)
    assert sum(law.values()) == pytest.approx(1)
    assert_drawn_by(law, found.drawn(counts_of(rows, 20_000)))


@pytest.mark.parametrize("ties", [1, 2])
@pytest.mark.parametrize("q", [[0, "0.3", 1], ["0.2", "0.4", "0.6", "0.8"], ["1/3", "2/3", 1]])
def test_draws_of_other_quantiles_have_the_law_of_the_definition(
    q: list[Any], ties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "PLACES", ties)
    rows = [0, 1, 1, 1]
    found = planned(q, 3, PureDP(Fraction(3)))
    assert_drawn_by(found.recursion(ties).law(rows), found.drawn(counts_of(rows, 20_000)))


# -- Privacy --------------------------------------------------------------------------------------


def all_rows(points: int, most: int) -> list[tuple[int, ...]]:
    return [r for n in range(most + 1) for r in combinations_with_replacement(range(points), n)]


def worst(found: Recursion, most: int, points: int, *, change: bool = False) -> float:
    """The largest log ratio over all neighbours with up to so many rows."""
    laws = {rows: found.law(rows) for rows in all_rows(points, most)}
    seen = 0.0
    for rows, law in laws.items():
        left = {tuple(sorted([*rows[:i], *rows[i + 1 :]])) for i in range(len(rows))}
        if change:
            left = {tuple(sorted((*less, p))) for less in left for p in range(points)}
        seen = max([seen, *(largest_log_ratio(law, laws[other]) for other in left)])
    return seen


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize(
    ("quantiles", "points", "most", "ties"),
    [
        (QUARTILES, 3, 9, 1),
        (QUARTILES, 2, 4, 2),
        (["0.1", "0.2", "0.3"], 3, 8, 1),
        ([0, "0.5", 1], 3, 8, 1),
        (["0.2", "0.4", "0.6", "0.8"], 2, 10, 1),
    ],
)
def test_neighbours_are_told_apart_by_no_more_than_epsilon(
    quantiles: list[str], points: int, most: int, ties: int, change: bool
) -> None:
    unit = dp.Rows("change-one" if change else "add-remove")
    found = planned(quantiles, points, PureDP(Fraction(12)), unit)
    assert worst(found.recursion(ties), most, points, change=change) <= 12 + 1e-9


NEAR: list[tuple[list[Any], list[int], bool, float]] = [
    ([0, "0.5", 1], [4, 11, 0, 1, 13], False, 0.92),
    (["0.25", "0.5"], [3, 3, 100, 10, 3, 0, 0, 40, 0, 0, 40, 40, 0], False, 0.86),
    (QUARTILES, [3, 5, 100, 0, 0, 100, 6], True, 0.86),
]
"""Quantiles, numbers of rows, whether a row changes, and how much of the claim they reach."""


def told_apart(found: Recursion, rows: list[int], change: bool) -> float:
    """The largest log ratio over all neighbours of a frame."""
    before, seen = log_masses(found, rows), 0.0
    steps = np.eye(len(rows), dtype=np.int64)
    for new in steps:
        for old in steps if change else [np.zeros_like(new)]:
            after = np.array(rows) + new - old
            if after.min() >= 0:
                seen = max(seen, float(np.abs(log_masses(found, after.tolist()) - before).max()))
    return seen


@pytest.mark.parametrize(("quantiles", "rows", "change", "least"), NEAR)
def test_the_worst_neighbours_are_told_apart_nearly_as_well_as_is_claimed(
    quantiles: list[Any], rows: list[int], change: bool, least: float
) -> None:
    """So a level that is not charged, or a scale that is halved, is seen."""
    unit = dp.Rows("change-one" if change else "add-remove")
    found = planned(quantiles, len(rows), ONE, unit).recursion()
    assert least < told_apart(found, rows, change) <= 1
    for planted in (2, found.tree.rounds / (found.tree.rounds - 1)):
        scales = tuple(scale / Fraction(planted) for scale in found.scales)
        assert told_apart(replace(found, scales=scales), rows, change) > 1


@pytest.mark.parametrize("rho", [Fraction(1, 50), Fraction(1), Fraction(20)])
@pytest.mark.parametrize(("quantiles", "rows", "change", "_"), NEAR)
def test_neighbours_diverge_by_no_more_than_rho(
    quantiles: list[Any], rows: list[int], change: bool, _: float, rho: Fraction
) -> None:
    """Of all orders that are tried (Bun and Steinke 2016, Definition 1.1)."""
    unit = dp.Rows("change-one" if change else "add-remove")
    found = planned(quantiles, len(rows), ZCDP(rho), unit).recursion()
    one = log_masses(found, rows)
    for place, number in enumerate(rows):
        after = [*rows]
        after[place] += 1
        if change:
            after[place - 1] -= 1
        if min(after) < 0 or not number:
            continue
        other = log_masses(found, after)
        for order in (1.001, 2.0, 5.0, 32.0):
            for p, q in ((one, other), (other, one)):
                powers = order * p + (1 - order) * q
                most = powers.max()
                divergence = (most + math.log(np.exp(powers - most).sum())) / (order - 1)
                assert divergence <= order * float(rho) * (1 + 1e-9)


def test_masses_are_those_of_the_definition() -> None:
    found = planned(QUARTILES, 3).recursion()
    law = found.law([0, 1, 1, 2])
    assert np.sort(np.exp(log_masses(found, [1, 2, 1]))) == pytest.approx(np.sort([*law.values()]))


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
    "a person in two groups": {
        "unit": dp.Identifier("person"),
        "groups": 3,
        "limits": (2, 1),
    },
    "a person with two rows in two groups": {
        "unit": dp.Identifier("person"),
        "groups": 3,
        "limits": (2, 2),
    },
}
LISTS = [QUARTILES, ["0.1", "0.2", "0.3"], [0, "0.5", 1], ["0.2", "0.4", "0.6", "0.8"], DECILES]


@cache
def planned_of(unit: str, q: tuple[Any, ...]) -> Planned:
    """Over five points; the same for all examples."""
    return planned([*q], 5, **UNITS[unit])


@dataclass(frozen=True)
class Case:
    """Rows of groups, those of an individual before and after, and what was chosen in each."""

    rows: list[list[int]]
    before: list[list[int]]
    after: list[list[int]]
    chosen: list[dict[int, int]]


@st.composite
def cases(draw: st.DrawFn, found: Recursion, scope: QueryScope) -> Case:
    size = scope.entries or 1
    end = found.points * found.ties - 1
    place = st.integers(0, end)
    rows = [draw(st.lists(place, max_size=8)) for _ in range(size)]
    before, after = draw(moved(scope, size, place)), draw(moved(scope, size, place))
    if not scope.spread.changes:
        before = [[] for _ in rows]
    chosen = []
    for _ in rows:
        made: dict[int, int] = {}
        for number in (number for level in found.tree.levels for number in level):
            made[number] = draw(st.sampled_from(found.candidates(found.ends(number, made))))
        chosen.append(made)
    return Case(rows, before, after, chosen)


@st.composite
def moved(draw: st.DrawFn, scope: QueryScope, size: int, place: Any) -> list[list[int]]:
    """Rows of one individual, by group."""
    most, groups, per_group = scope.spread.tight
    found: list[list[int]] = [[] for _ in range(size)]
    for _ in range(most):
        group = draw(st.integers(0, size - 1))
        taken = sum(1 for rows in found if rows)
        if len(found[group]) < per_group and (found[group] or taken < groups):
            found[group].append(draw(place))
    return found


@pytest.mark.parametrize("q", LISTS, ids=str)
@pytest.mark.parametrize("unit", UNITS)
@given(data=st.data())
def test_levels_move_scores_apart_by_no_more_than_is_declared(
    unit: str, q: list[Any], data: st.DataObject
) -> None:
    """Whatever was chosen before, and whatever places rows have: in multiples of each scale."""
    made = planned_of(unit, tuple(q))
    found, whole = made.recursion(2), made.tree.score_range(made.scope)
    case = data.draw(cases(found, made.scope))
    for level in found.tree.levels:
        ranges = []
        for rows, before, after, chosen in zip(
            case.rows, case.before, case.after, case.chosen, strict=True
        ):
            for number in level:
                ends = found.ends(number, chosen)
                old = found.scores(number, ends, rows + before)
                new = found.scores(number, ends, rows + after)
                changes = [a - b for a, b in zip(new, old, strict=True)]
                ranges.append((max(changes) - min(changes)) / found.scales[number])
        scale = made.law.scale
        assert sum(ranges) <= whole.l1 / scale
        assert sum(r * r for r in ranges) <= whole.l2_squared / scale**2
        assert max(ranges) <= whole.linf / scale


# -- Ties broken by position ----------------------------------------------------------------------


def by_position(rows: Any, source: Any = None, places: int = 2) -> Any:
    """Rows of one point at places that follow from how many there are, in place of coins."""
    tie = np.repeat(np.arange(len(rows)), rows)
    nth = np.arange(tie.size) - np.repeat(np.cumsum(rows) - rows, rows)
    return tie, (2 * nth + 1) * places // (2 * rows[tie]), np.ones(tie.size, np.int64)


def test_ties_that_are_broken_by_position_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two rows of a point would always be below its middle."""
    monkeypatch.setattr(draws, "PLACES", 2)
    found, rows = planned(QUARTILES, 2, PureDP(Fraction(6))), [0, 1, 1]
    law = found.recursion(2).law(rows)
    assert_drawn_by(law, found.drawn(counts_of(rows, 20_000)))
    monkeypatch.setattr(draws, "place_rows", lambda rows, _: by_position(rows))
    with pytest.raises(AssertionError):
        assert_drawn_by(law, found.drawn(counts_of(rows, 20_000)))
