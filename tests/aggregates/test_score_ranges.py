"""How far one individual moves the scores of candidates apart, found by trying all changes.

Scores of both signs: a row that changes may raise one candidate by the whole width and lower
another by as much.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.aggregates.measurement import CellCounts
from dpframe.kernel import plan as kernel
from dpframe.release.numbers import scores_of
from tests.score_ranges import of_groups

AT = [-1, 1]
SCORED = dp.argmax(
    candidates=pl.DataFrame({"at": AT}), bounds=(-3, 2), score=pl.col("x") * pl.col("at")
)


def clamped(x: int) -> list[int]:
    return [min(2, max(-3, x * at)) for at in AT]


def ranges(unit: dp.Rows) -> tuple[Fraction, Fraction]:
    """The declared range and the largest one there is, for one group."""
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Int64}), unit=unit)
    (release,) = frame.agg(w=SCORED).plan(epsilon=1).releases
    assert release.scores is not None
    rows = [clamped(x) for x in range(-5, 6)] + [[0, 0]]  # the last: none, or null
    pairs = product(rows, rows) if unit.adjacency == "change-one" else ((r, [0, 0]) for r in rows)
    moves = {tuple(a - b for a, b in zip(new, old, strict=True)) for old, new in pairs}
    found = max(max(m) - min(m) for m in moves) * unit.contributions
    return release.scores.l1 * release.step, Fraction(found)


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_the_range_of_scores_of_both_signs_is_declared_and_reached(
    adjacency: str, contributions: int
) -> None:
    declared, found = ranges(dp.Rows(adjacency, contributions=contributions))  # type: ignore[arg-type]
    width = 5 * contributions
    assert found == (2 * width if adjacency == "change-one" else width)
    assert declared == found


CANDIDATES = [0, 10, 20]
PLACES = [-1, 0, 5, 10, 15, 20, 25]


def quantile_scores(q: Fraction, rows: Any) -> Any:
    """Minus how far the rank q n is from those that a candidate has, times the denominator of q, of
    so many rows at each place.
    """
    below = np.array([[int(x < c) for c in CANDIDATES] for x in PLACES])
    upto = np.array([[int(x <= c) for c in CANDIDATES] for x in PLACES])
    target = q.numerator * rows.sum(axis=-1, keepdims=True)
    ends = q.denominator * (rows @ below), q.denominator * (rows @ upto)
    return -np.abs(target - np.clip(target, *ends))


@pytest.mark.parametrize("q", ["0", "1/3", "0.5", "1"])
def test_scores_of_listed_candidates_are_those_of_the_definition(q: str) -> None:
    """Places are the cells: below all candidates, at the first, between it and the second, ..."""
    rows = np.array([[0, 0, 8, 0, 0, 0, 0], [0] * 7, [3, 1, 4, 1, 5, 9, 2], [0, 0, 0, 0, 0, 0, 6]])
    groups, taken = np.nonzero(rows)
    counts = CellCounts.of_cells(groups, taken, rows[groups, taken], len(rows))
    cells = kernel.Between(kernel.Col("x"), tuple(map(Fraction, CANDIDATES)))
    table = kernel.Table(0, None, cells, kernel.One())
    nothing = Fraction(0)
    plan = kernel.Plan("add-remove", (), (table,), (), "epsilon", nothing, nothing, ())
    found = scores_of(plan, kernel.Rank(0, Fraction(q)), [counts], 0, len(rows))
    assert np.asarray(found).tolist() == quantile_scores(Fraction(q), rows).tolist()


def quantile_ranges(q: Fraction, add: int, take: int) -> Fraction:
    """The largest range of what scores change by, when so many rows of a group come to one place
    or leave one, whatever others it has.
    """
    others = np.array(list(product([0, 5, 40], repeat=len(PLACES))))
    come, leave = (rows * np.eye(len(PLACES), dtype=np.int64) for rows in (add, take))
    after = [quantile_scores(q, others + row) for row in come]
    before = [quantile_scores(q, others + row) for row in leave]
    changes = [new - old for new in after for old in before]
    return Fraction(max(int((c.max(axis=1) - c.min(axis=1)).max()) for c in changes), q.denominator)


@pytest.mark.parametrize("q", ["0.5", "0.1", "0.75", "1", "0"])
@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_range_of_scores_of_quantiles_is_declared_and_reached(
    q: str, contributions: int, adjacency: Any, grouped: bool
) -> None:
    unit = dp.Rows(adjacency, contributions=contributions)
    frame = dp.Session(epsilon=1).protect(pl.LazyFrame(schema={"x": pl.Int64, "g": pl.Int64}), unit)
    chosen = pl.col("x").dp_quantile(q, candidates=CANDIDATES)  # type: ignore[attr-defined]
    asked = frame.group_by("g", keys=[1, 2]).agg(chosen) if grouped else frame.agg(chosen)
    (release,) = asked.plan(epsilon=1).releases
    assert release.scores is not None
    l1, linf = release.scores.l1 * release.step, release.scores.linf * release.step
    l2_squared = release.scores.l2_squared * release.step**2
    one = quantile_ranges(Fraction(q), contributions, 0)
    if adjacency == "add-remove":
        assert linf == l1 == one  # however rows are spread
        return
    changed = quantile_ranges(Fraction(q), contributions, contributions)
    assert linf == changed
    assert changed == contributions * (1 if Fraction(q) in (0, 1) else 2)
    if grouped:  # rows may leave one group and come to another
        assert l1 == 2 * one
        assert l2_squared == max(2 * one**2, changed**2)
    else:
        assert (l1, l2_squared) == (changed, changed**2)


@pytest.mark.parametrize("q", ["0", "0.1", "1/3", "0.5", "0.9", "1"])
@pytest.mark.parametrize("change", [False, True])
def test_one_row_moves_no_score_of_a_quantile_by_more_than_is_declared(
    q: str, change: bool
) -> None:
    """All frames of up to five rows at three places, and all their neighbours."""
    share = Fraction(q)
    most = 1 if change else max(share, 1 - share)
    seen = Fraction(0)
    for size in range(6):
        for at in combinations_with_replacement(range(len(PLACES)), size):
            rows = np.bincount(at, minlength=len(PLACES))
            old = quantile_scores(share, rows)
            for place in set(at) if change else {0}:
                left = rows - np.eye(len(PLACES), dtype=np.int64)[place] * change
                moved = quantile_scores(share, left + np.eye(len(PLACES), dtype=np.int64)) - old
                seen = max(seen, Fraction(int(np.abs(moved).max()), share.denominator))
    assert seen == most


@pytest.mark.parametrize("total", range(1, 6))
@pytest.mark.parametrize("largest", range(1, 5))
def test_ranges_that_are_spread_over_groups_add_up_to_no_more(total: int, largest: int) -> None:
    """All ways of spreading them, in halves."""
    unit = Fraction(1, 2)
    spread = [d for d in product(range(largest + 1), repeat=5) if sum(d) <= total]
    found = of_groups(total * unit, largest * unit)
    assert found.l1 == total * unit
    assert found.linf == largest * unit
    assert found.l2_squared == max(sum(d * d for d in move) for move in spread) * unit**2
    assert sum(found.groups) == total * unit


def test_no_range_at_all() -> None:
    assert of_groups(Fraction(0), Fraction(0)).l2_squared == 0
