"""How far quantiles inside one another tell neighbours apart at worst, computed from their law: of
few rows on a line of a million candidates, which is where a choice tells most. Samples cannot show
it: the outcomes that tell are those that nearly never come.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.core.budget import ZCDP, PureDP
from tests.release.recursion import Line, Recursion, divergence, largest_log_ratio, told_by_a_path
from tests.release.test_recursive import DECILES, QUARTILES, planned

TENTHS, FIFTHS = ["0.1", "0.2", "0.3"], ["0.2", "0.4", "0.6", "0.8"]
ENDS: list[Any] = [0, "0.5", 1]
Gaps = tuple[int, ...]

WORST: list[tuple[list[Any], bool, Gaps, Gaps, int, int, float]] = [
    (QUARTILES, False, (10, 10, 20, 10, 0), (80, 12, 99, 2), 0, 0, 0.99),
    (["0.25", "0.5"], False, (20, 20, 0, 10, 0), (20, 8, 50, 2), 0, 0, 0.99),
    (ENDS, False, (20, 20, 0, 10, 0), (20, 8, 50, 2), 0, 0, 0.99),
    (TENTHS, False, (10, 10, 20, 10, 10), (0, 12, 5, 20), 0, 0, 0.99),
    (FIFTHS, False, (10, 0, 0, 0, 20), (3, 4, 36, 0), 1, 0, 0.99),
    (DECILES, False, (0, 10, 20, 20, 0), (27, 99, 77, 3), 0, 0, 0.98),
    (QUARTILES, True, (0, 10, 20, 20, 10), (17, 6, 12, 3), 0, 3, 0.99),
    (ENDS, True, (20, 20, 20, 20, 0), (81, 20, 63, 3), 0, 3, 0.99),
    (TENTHS, True, (10, 20, 0, 0, 20), (30, 125, 0, 7), 2, 0, 0.98),
    (FIFTHS, True, (0, 0, 20, 20, 0), (1, 194, 102, 83), 3, 0, 0.91),
    (DECILES, True, (0, 20, 0, 0, 20), (50, 160, 0, 3), 2, 0, 0.94),
]
"""Quantiles, whether a row changes, gaps, rows of points, where one comes and where it was, and how
much of the claim they reach: the worst that a search over such lines found.
"""


def recursion(quantiles: list[Any], change: bool, spend: Any = None) -> Recursion:
    unit = dp.Rows("change-one" if change else "add-remove")
    return planned(quantiles, 13, spend or PureDP(Fraction(1)), unit).recursion()


def lines(change: bool, gaps: Gaps, rows: Gaps, new: int, old: int) -> tuple[Line, Line]:
    one = Line.of(gaps, rows)
    other = one.with_row(new)
    return one, other.with_row(old, -1) if change else other


def told(found: Recursion, one: Line, other: Line) -> float:
    return max(told_by_a_path(found, one, other), told_by_a_path(found, other, one))


@pytest.mark.parametrize(("quantiles", "change", "gaps", "rows", "new", "old", "least"), WORST)
def test_the_worst_lines_are_told_apart_by_all_that_is_claimed(
    quantiles: list[Any], change: bool, gaps: Gaps, rows: Gaps, new: int, old: int, least: float
) -> None:
    found = recursion(quantiles, change)
    pair = lines(change, gaps, rows, new, old)
    assert least < told(found, *pair) <= 1
    finer = tuple(scale * Fraction(7, 8) for scale in found.scales)
    assert told(replace(found, scales=finer), *pair) > 1


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("quantiles", [QUARTILES, ENDS, TENTHS, FIFTHS], ids=str)
@given(
    st.lists(st.sampled_from([0, 3, 10, 20]), min_size=5, max_size=5),
    st.lists(st.integers(0, 12) | st.integers(0, 300), min_size=4, max_size=4),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_no_lines_are_told_apart_by_more_than_is_claimed(
    quantiles: list[Any], change: bool, gaps: list[int], rows: list[int], new: int, old: int
) -> None:
    rows[old] += 1
    pair = lines(change, tuple(gaps), tuple(rows), new, old)
    assert told(recursion(quantiles, change), *pair) <= 1 + 1e-9


def test_paths_are_those_of_the_definition() -> None:
    """All outcomes of a line without long gaps, one by one."""
    one = Line.of((0, 0), (3,))
    found = replace(recursion(QUARTILES, False), points=one.rows.size, ties=1)
    before, after = (found.law([3] * rows) for rows in (3, 4))
    assert told(found, one, one.with_row(0)) == pytest.approx(largest_log_ratio(before, after))
    for order in (1.5, 4.0):
        powers = sum(p**order * after[codes] ** (1 - order) for codes, p in before.items())
        moved = divergence(found, one, one.with_row(0), order)
        assert moved == pytest.approx(math.log(powers) / (order - 1))


DIVERGING: list[tuple[list[Any], bool, Gaps, Gaps, int, int, float]] = [
    (QUARTILES, False, (10, 5, 12, 9, 12, 10), (0, 2, 0, 0, 1), 3, 0, 0.95),
    (["0.25", "0.5"], False, (6, 11, 2, 12, 12, 5), (2, 3, 4, 2, 10), 0, 0, 0.9),
    (ENDS, False, (5, 3, 10, 10, 10), (0, 3, 1, 3), 0, 0, 0.92),
    (QUARTILES, True, (5, 10, 12, 12, 5, 5), (6, 10, 1, 10, 5), 4, 0, 0.67),
    (TENTHS, False, (0, 6, 8, 10, 10), (0, 3, 2, 10), 0, 0, 0.57),
]
"""As above, with gaps of so many candidates. A level costs all that it may where the row moves half
of the mass one way and half the other; which rows are left for the next choice depends on what is
chosen. So levels cannot all be at their worst where quantiles are not in the middle of their rows,
nor where a row changes: where it is on both sides of a choice, each later one sees half of it. An
epsilon, which is what single outcomes tell, is reached in all these cases.
"""


@pytest.mark.parametrize(("quantiles", "change", "gaps", "rows", "new", "old", "least"), DIVERGING)
def test_the_divergence_of_the_worst_lines_is_near_to_rho(
    quantiles: list[Any], change: bool, gaps: Gaps, rows: Gaps, new: int, old: int, least: float
) -> None:
    rho = Fraction(1, 50)
    found = recursion(quantiles, change, ZCDP(rho))
    numbers, points = [], []
    for gap, count in zip(gaps, (*rows, None), strict=True):
        numbers += [0] * gap
        if count is not None:
            points.append(len(numbers))
            numbers.append(count)
    before = np.array(numbers, np.float64)
    after = before.copy()
    after[points[new]] += 1
    after[points[old]] -= int(change)
    pair = [Line(side, np.ones(side.size)) for side in (before, after)]
    reached = [
        divergence(found, *sides, order) / (order * float(rho))
        for order in (1.01, 2.0, 8.0, 64.0)
        for sides in (pair, pair[::-1])
    ]
    assert least < max(reached) <= 1
    finer = replace(found, scales=tuple(scale * Fraction(2, 3) for scale in found.scales))
    assert divergence(finer, *pair, 2.0) > 2 * float(rho)
