"""The sensitivity of sums over disjoint sets of rows, against all moves there are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import (
    NO_SENSITIVITY,
    Contribution,
    ExactSensitivity,
    Sensitivity,
    additive_sensitivity,
    joint_sensitivity,
)
from dpframe.core.units import Rows

Change = tuple[int, ...]
"""What a move adds to each entry."""


def rows(contribution: Contribution, entries: int | None) -> list[Change]:
    """What one row can add: a value in its entry, or 0 (dropped, null, or in no entry)."""
    size = entries or 1
    found = [
        tuple(value if i == entry else 0 for i in range(size))
        for entry in range(size)
        for value in range(int(contribution.lo), int(contribution.hi) + 1)
    ]
    always = contribution.always and entries is None
    return found if always else [*found, (0,) * size]


def changes(contribution: Contribution, unit: Rows, entries: int | None) -> Iterator[Change]:
    """How far the vector moves, for every way in which an individual's rows may differ."""
    there = rows(contribution, entries)
    size = entries or 1
    if unit.adjacency == "add-remove":
        single = there
    else:
        single = [tuple(b - a for a, b in zip(x, y, strict=True)) for x in there for y in there]
    for moves in itertools.combinations_with_replacement(set(single), unit.contributions):
        yield tuple(sum(move[i] for move in moves) for i in range(size))


def brute_force(contribution: Contribution, unit: Rows, entries: int | None) -> ExactSensitivity:
    found = list(changes(contribution, unit, entries))
    return ExactSensitivity(
        max(sum(c != 0 for c in change) for change in found),
        Fraction(max(sum(map(abs, change)) for change in found)),
        Fraction(max(sum(c * c for c in change) for change in found)),
        Fraction(max(max(map(abs, change)) for change in found)),
    )


@pytest.mark.parametrize("entries", [None, 1, 2, 3, 4])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
@pytest.mark.parametrize(("lo", "hi"), [(0, 1), (1, 1), (-1, 1), (0, 3), (2, 3), (-3, -2), (-1, 3)])
@pytest.mark.parametrize("always", [False, True])
def test_sensitivity_is_what_the_worst_move_reaches(
    entries: int | None, k: int, adjacency: str, lo: int, hi: int, always: bool
) -> None:
    unit = Rows(adjacency, contributions=k)  # type: ignore[arg-type]
    contribution = Contribution(Fraction(lo), Fraction(hi), always)
    assert additive_sensitivity(
        contribution, ContributionBounds.of_rows(unit), entries
    ) == brute_force(contribution, unit, entries)


@pytest.mark.parametrize(("groups", "cells"), [(1, 2), (1, 3), (2, 2), (3, 2), (2, 3)])
def test_sensitivity_with_limits_of_cells_is_what_the_worst_table_reaches(
    groups: int, cells: int
) -> None:
    """Against all tables of one individual's rows, with any limits of rows, groups and cells."""
    most = 5 if groups * cells <= 4 else 3
    tables = np.array(list(itertools.product(range(most + 1), repeat=groups * cells)))
    total, largest = tables.sum(axis=1), tables.max(axis=1)
    in_group = tables.reshape(-1, groups, cells).sum(axis=2).max(axis=1)
    squared, touched = (tables**2).sum(axis=1), (tables > 0).sum(axis=1)
    one = Contribution(Fraction(0), Fraction(1))
    for rows, of_group, of_cell in itertools.product(
        range(1, most * groups + 1), range(1, most * cells), range(1, most + 1)
    ):
        spread = ContributionBounds(rows, groups, of_group)
        found = additive_sensitivity(one, spread, groups * cells, cells, of_cell)
        may = (total <= rows) & (in_group <= of_group) & (largest <= of_cell)
        assert found.l1 == total[may].max()
        assert found.linf == largest[may].max()
        assert found.l2_squared == squared[may].max()
        assert found.l0 >= touched[may].max()
        if of_cell >= spread.tight[2]:
            assert found == additive_sensitivity(one, spread, groups * cells, cells)


@pytest.mark.parametrize("entries", [None, 1, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "change-one"])
def test_three_rows_and_no_contribution(entries: int | None, adjacency: str) -> None:
    unit = Rows(adjacency, contributions=3)  # type: ignore[arg-type]
    some, none = Contribution(Fraction(-1), Fraction(2)), Contribution(Fraction(0), Fraction(0))
    spread = ContributionBounds.of_rows(unit)
    assert additive_sensitivity(some, spread, entries) == brute_force(some, unit, entries)
    assert additive_sensitivity(none, spread, entries) == NO_SENSITIVITY
    assert NO_SENSITIVITY.is_zero


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
