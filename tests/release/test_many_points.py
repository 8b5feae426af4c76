"""Quantiles of many rows: proposals against the scores of all points, and how often each comes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dpframe as dp
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.release import draws
from dpframe.release.draws import _proposals, _Rows, choose_point, draw_node
from tests.laws.amounts import amounts
from tests.laws.neighbours import Counted, measurements_of, query_of

Integers = NDArray[np.int64]
POINTS = 60


@st.composite
def rows(draw: st.DrawFn) -> tuple[Fraction, Integers, Integers]:
    """A quantile, points that have rows, and how many."""
    q = Fraction(draw(st.integers(0, 10)), 10)
    cells = sorted(draw(st.sets(st.integers(0, POINTS - 1), min_size=1, max_size=40)))
    many = draw(st.lists(st.integers(1, 9), min_size=len(cells), max_size=len(cells)))
    return q, np.array(cells), np.array(many)


def all_scores(q: Fraction, cells: Integers, many: Integers) -> list[int]:
    """The score of each point, by its definition."""
    total = int(many.sum())
    scores = []
    for point in range(POINTS):
        below, upto = int(many[cells < point].sum()), int(many[cells <= point].sum())
        away = max(q * total - upto, below - q * total, Fraction(0))
        scores.append(int(-away * q.denominator))
    return scores


def proposals(
    q: Fraction, cells: Integers, many: Integers
) -> tuple[list[tuple[int, int, int, bool]], _Rows]:
    """First point, end, score and whether it is that of each point, of each run."""
    ranks = np.append(0, np.cumsum(many))
    found = _Rows(cells, ranks, q.numerator * int(ranks[-1]), q.denominator)
    starts, scores, own = _proposals(found)
    ends = np.append(starts[1:], POINTS)
    listed = zip(starts.tolist(), ends.tolist(), scores.tolist(), strict=True)
    return [(a, b, s, i in own) for i, (a, b, s) in enumerate(listed)], found


@given(rows(), st.integers(1, 8))
def test_each_point_is_proposed_once_by_a_score_that_is_no_less(given: Any, near: int) -> None:
    scores = all_scores(*given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draws, "NEAR", near)
        runs, found = proposals(*given)
    assert [point for a, b, _, _ in runs for point in range(a, b)] == list(range(POINTS))
    for a, b, score, is_own in runs:
        inside = scores[a:b]
        assert all(s == score if is_own else s <= score for s in inside)
        assert not inside or max(inside) == score
    assert [found.score_of(point) for point in range(POINTS)] == scores


@given(rows())
def test_scores_are_those_of_the_choice(given: Any) -> None:
    """As a `QuantileChoice` makes its ballots."""
    q, cells, many = given
    private = dp.Session(epsilon=1).protect(pl.DataFrame({"x": [1]}), dp.Rows())
    query = query_of(private.agg(pl.col("x").dp_quantile(q, (0, POINTS - 1))))
    (part,) = [use.part for use in measurements_of(query)]
    assert isinstance(part, QuantileChoice)
    table = CellCounts(np.zeros_like(cells), cells, many, 1)
    counted = Counted(query, {part.tables[0]: table})
    runs: Any = counted.of(part).scores(part, 0, 1)
    scores = np.repeat(runs.scores, runs.weights)
    assert scores.tolist() == all_scores(*given)


@amounts("times", 2_000, 6_000)
@pytest.mark.parametrize("growth", [9 / 8, 100])
@pytest.mark.parametrize("near", [1, 3, 100])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(4), Fraction(40)])
def test_points_come_as_often_as_their_scores_say(
    near: int, scale: Fraction, growth: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chi-squared test far out."""
    monkeypatch.setattr(draws, "NEAR", near)
    monkeypatch.setattr(draws, "_GROWTH", growth)
    random = np.random.default_rng(3)
    cells = np.sort(random.choice(POINTS, 30, replace=False))
    many = random.integers(1, 6, cells.size)
    q = Fraction(3, 10)
    weights = np.exp(np.array(all_scores(q, cells, many)) / float(scale))
    found = [choose_point(scale, q, cells, many, POINTS) for _ in range(times)]
    seen = np.bincount(found, minlength=POINTS)
    expected = times * weights / weights.sum()
    often = expected >= 5
    seen = np.append(seen[often], seen[~often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    distance = float(((seen - expected) ** 2 / np.maximum(expected, 1e-9)).sum())
    free = len(seen) - 1
    assert distance < free + 8 * math.sqrt(2 * free) + 20


def test_a_proposal_that_is_always_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same test with the coin left out, which makes far points likelier."""
    monkeypatch.setattr(draws, "keep_points", lambda _, gaps: gaps >= 0)
    with pytest.raises(AssertionError):
        test_points_come_as_often_as_their_scores_say(1, Fraction(4), 100, 2_000, monkeypatch)


@pytest.mark.parametrize("scale", [1, 1000, 100_000, 10**7])
@pytest.mark.parametrize("shape", ["even", "dense", "two ends", "in the middle"])
def test_few_proposals_are_not_kept(
    scale: int, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the rows are like: it may not take long."""
    points = 1 << 20
    random = np.random.default_rng(1)
    size = 40_000
    cells = {
        "even": np.sort(random.choice(points, size, replace=False)),
        "dense": np.arange(size) + 1000,
        "two ends": np.append(np.arange(size // 2), points - np.arange(size // 2)[::-1] - 1),
        "in the middle": np.arange(size) + points // 2,
    }[shape]
    many = random.integers(1, 500, size)
    asked, choose = 0, draws.choose_points

    def counting(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return choose(*given)

    monkeypatch.setattr(draws, "choose_points", counting)
    for _ in range(20):
        choose_point(Fraction(scale), Fraction(1, 2), cells, many, points)
    assert asked <= 200


def test_groups_with_many_points_and_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any noise each group has its own quantile, in whichever way it is chosen."""
    random = np.random.default_rng(2)
    frame = pl.DataFrame({"g": random.integers(0, 9, 3000), "x": random.uniform(0, 1, 3000)})
    frame = frame.filter((pl.col("g") < 4) | (pl.int_range(pl.len()) % 50 == 0))
    people = dp.Session(epsilon=10**6).protect(frame, dp.Rows())
    query = people.group_by("g", keys=range(-1, 10)).agg(dp.median("x", (0, 1)))
    for many in (1, 100, 10**6):
        monkeypatch.setitem(draw_node.__globals__, "MANY", many)
        monkeypatch.setattr(draws, "NEAR", 7)
        found = query.collect(epsilon=10_000)
        exact = frame.group_by("g").agg(pl.col("x").median())
        both = found.join(exact, on="g")
        assert both.height == 9
        assert (both["x"] - both["x_right"]).abs().max() < 0.1  # type: ignore[operator]
        assert ((both["x"] - both["x_right"]).abs().head(4) < 0.01).all()
