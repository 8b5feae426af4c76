"""Sensitivities in units and as floats, and those of several numbers that move together."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import ExactSensitivity, Sensitivity, joint_sensitivity

fractions = st.fractions(min_value=0, max_value=10**6)


@given(st.integers(0, 9), fractions, fractions, fractions, st.fractions(-10, 10))
def test_units_of_the_value(
    l0: int, l1: Fraction, l2: Fraction, linf: Fraction, by: Fraction
) -> None:
    found = ExactSensitivity(l0, l1, l2 * l2, linf).scaled(by)
    assert found == ExactSensitivity(l0, l1 * abs(by), (l2 * by) ** 2, linf * abs(by))


@given(fractions, fractions, fractions)
def test_public_numbers_are_never_below_the_exact_ones(
    l1: Fraction, l2_squared: Fraction, linf: Fraction
) -> None:
    """But for L2, which is the float nearest to an irrational root."""
    found = ExactSensitivity(1, l1, l2_squared, linf).public()
    assert Fraction(found.l1) >= l1
    assert Fraction(found.linf) >= linf
    assert found.l1 == pytest.approx(float(l1), rel=1e-15)
    assert found.l2 == pytest.approx(math.sqrt(l2_squared), rel=1e-15)


def test_public_numbers_are_those_people_expect() -> None:
    found = ExactSensitivity(2, Fraction(2), Fraction(2), Fraction(1)).public()
    assert found == Sensitivity(2, 2.0, 1.4142135623730951, 1.0)


def test_one_row_in_all_vectors_at_once() -> None:
    one = ExactSensitivity(2, Fraction(3), Fraction(5), Fraction(2))
    assert one.repeated(3) == ExactSensitivity(6, Fraction(9), Fraction(15), Fraction(2))


conditions = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(-2, 2)), min_size=1, max_size=4
)


@given(conditions, st.booleans(), st.integers(1, 2))
def test_vectors_of_rows_that_meet_conditions(
    numbers: list[tuple[int, int, int]], grouped: bool, k: int
) -> None:
    """All that one row may add before and after, at the ends of what each number may be: of number
    j, which lies between two ends where its condition is met, and is 0 elsewhere. k rows that do
    the same attain k times that.
    """
    ends = [(lo, lo + more) for _, more, lo in numbers]
    needs = tuple(condition for condition, _, _ in numbers)
    kept = tuple(hi - lo for lo, hi in ends)
    widths = tuple(max(abs(lo), abs(hi)) for lo, hi in ends)
    found = joint_sensitivity(
        widths, widths, ContributionBounds(k, k, k, changes=True), grouped, needs, kept
    )
    before, after = _moved(ends, needs)
    whole = before - after
    squares = [(whole**2).sum(axis=1).max()]
    sizes = [abs(whole).sum(axis=1).max()]
    if grouped:
        squares.append((before**2).sum(axis=1).max() + (after**2).sum(axis=1).max())
        sizes.append(abs(before).sum(axis=1).max() + abs(after).sum(axis=1).max())
    assert found.l2_squared == k * k * max(squares)
    assert found.l1 == k * max(sizes)
    assert found.linf == k * abs(np.concatenate([whole, before])).max()
    assert found.l0 == len(numbers) * (2 * k if grouped else 1)  # each row in groups of its own


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 3),
)
def test_vectors_of_rows_without_conditions(
    numbers: list[tuple[int, int]], grouped: bool, k: int
) -> None:
    """Each number of a row is 0 or between two ends, whatever the others are, before and after. A
    row may also leave one group for another.
    """
    ends = [(lo, lo + more) for lo, more in numbers]
    widths = tuple(max(abs(lo), abs(hi)) for lo, hi in ends)
    turned = tuple(max(hi, 0) - min(lo, 0) for lo, hi in ends)
    found = joint_sensitivity(widths, turned, ContributionBounds(k, k, k, changes=True), grouped)
    every = np.array(list(product(*((0, *end) for end in ends))))
    before, after = np.repeat(every, len(every), axis=0), np.tile(every, (len(every), 1))
    moves = [before - after]
    if grouped:
        moves.append(np.hstack([before, -after]))
    assert found.l2_squared == k * k * max((move**2).sum(axis=1).max() for move in moves)
    assert found.l1 == k * max(abs(move).sum(axis=1).max() for move in moves)
    assert found.linf == k * max(abs(move).max() for move in moves)
    assert found.l0 == len(numbers) * (2 * k if grouped else 1)  # each row in groups of its own


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    *(st.integers(1, most) for most in (4, 3, 3)),
)
def test_vectors_of_rows_that_come_or_go(
    widths: list[int], rows: int, groups: int, each: int
) -> None:
    """For all numbers of rows in each group that the limits allow."""
    spread = ContributionBounds(rows, groups, each)
    found = joint_sensitivity(tuple(widths), tuple(widths), spread, True)
    counts = [c for c in product(range(each + 1), repeat=groups) if sum(c) <= rows]
    moves = [np.outer(c, widths) for c in counts]
    assert found.l1 == max(abs(move).sum() for move in moves)
    assert found.l2_squared == max((move**2).sum() for move in moves)
    assert found.linf == max(abs(move).max() for move in moves)
    assert found.l0 == len(widths) * max(np.count_nonzero(c) for c in counts)


def _moved(ends: list[tuple[int, int]], needs: tuple[int, ...]) -> tuple[Any, Any]:
    """What a row adds before and after, for all pairs of ends and of conditions that are met."""
    rows = [np.zeros(len(ends), dtype=np.int64)]
    for met in product((False, True), repeat=2):
        sides = [
            end if need == 0 or met[need - 1] else (0,)
            for end, need in zip(ends, needs, strict=True)
        ]
        rows += [np.array(row) for row in product(*sides)]
    every = np.unique(np.array(rows), axis=0)
    first, second = np.divmod(np.arange(len(every) ** 2), len(every))
    return every[first], every[second]
