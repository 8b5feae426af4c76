"""Quantiles at once: neighbours are told apart by no more than plans say, and nearly as much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.request import QueryScope
from dpframe.samplers.exponential import bracket_exp
from tests.release.at_once import QUARTILES, Planned, law_with_ties, planned

LISTS = [["1/3", "2/3"], QUARTILES, ["0.1", "0.9"], [0, "0.5", 1], [f"{n}/6" for n in range(1, 6)]]
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


def neighbours(counts: list[int], change: bool) -> Iterator[list[int]]:
    """All frames that a row makes of one."""
    steps = np.eye(len(counts), dtype=np.int64)
    for new in steps:
        for old in steps if change else [np.zeros_like(new)]:
            after = np.array(counts) + new - old
            if after.min() >= 0:
                yield after.tolist()


def told_apart(found: Planned, counts: list[int], after: list[int]) -> float:
    """The largest log ratio between two frames, either way."""
    return float(np.abs(found.log_masses(after) - found.log_masses(counts)).max())


def assert_covered(
    found: Planned, counts: list[int], after: list[int], epsilon: int, bits: int = 400
) -> None:
    """No tuple is more than exp(epsilon) times as likely, by whole numbers: the largest quotient of
    the terms of two tuples, times that of both sums.
    """
    scale = found.law.scale * found.part.step
    for first, second in ((counts, after), (after, counts)):
        old, new = found.scores(first), found.scores(second)
        best = max(*old.values(), *new.values())
        above = max(new[c] - old[c] for c in old)
        left = Fraction(epsilon) - above / scale
        assert left >= 0
        most = sum(bracket_exp((best - score) / scale, bits)[1] for score in old.values())
        least = sum(bracket_exp((best - score) / scale, bits)[0] for score in new.values())
        assert most * bracket_exp(left, bits)[1] <= least << bits


NEAR: list[tuple[list[Any], list[int], bool]] = [
    (["1/3", "2/3"], [100, 200, 0, 0, 200, 100], False),
    (QUARTILES, [0, 301, 0, 100, 0, 0, 200, 199], False),
    (["1/3", "2/3"], [300, 0, 201, 100, 0, 299], True),
    (QUARTILES, [200, 1, 300, 100, 199, 0, 200], True),
]


@pytest.mark.parametrize(
    ("quantiles", "counts", "change", "epsilon"),
    [
        pytest.param(*near, epsilon, marks=[pytest.mark.slow] if is_late else [])
        for number, near in enumerate(NEAR)
        for epsilon in (1, 8)
        for is_late in [(epsilon == 8) == (number in (0, 3))]
    ],
)
def test_neighbours_are_told_apart_by_nearly_what_is_claimed(
    quantiles: list[Any], counts: list[int], change: bool, epsilon: int
) -> None:
    """So a scale that is too small by a fifth is seen."""
    unit = dp.Rows("change-one" if change else "add-remove")
    rng, worst = np.random.default_rng(4), (0.0, counts, counts)
    found = planned(quantiles, len(counts), unit, epsilon=epsilon)
    assert found.cost.main == epsilon
    while worst[0] < 0.85 * epsilon:
        tried = (rng.permutation(counts) + rng.integers(0, 2, len(counts))).tolist()
        pairs = [(told_apart(found, tried, n), tried, n) for n in neighbours(tried, change)]
        worst = max(worst, *pairs)
    assert_covered(found, worst[1], worst[2], epsilon, 4000)
    smaller = replace(found, law=replace(found.law, scale=found.law.scale * Fraction(4, 5)))
    with pytest.raises(AssertionError):
        assert_covered(smaller, worst[1], worst[2], epsilon, 4000)


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("quantiles", [["1/3", "2/3"], QUARTILES, [0, "1/2"]], ids=str)
def test_no_small_frames_are_told_apart_by_more_than_epsilon(
    quantiles: list[Any], change: bool
) -> None:
    """All of up to five rows, exactly; also with two places for the rows of a point."""
    unit = dp.Rows("change-one" if change else "add-remove")
    found = planned(quantiles, 3, unit, epsilon=6)
    for counts in product(range(4), repeat=3):
        if sum(counts) <= 5:
            for after in neighbours([*counts], change):
                assert_covered(found, [*counts], after, 6)
    for counts in product(range(3), repeat=2):
        law = law_with_ties(found, [*counts], 2)
        more = [counts[0] + 1, counts[1] - change]
        if min(more) >= 0:
            other = law_with_ties(found, more, 2)
            assert max(abs(math.log(law[c] / other[c])) for c in law) <= 6 + 1e-9
