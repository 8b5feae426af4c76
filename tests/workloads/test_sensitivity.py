"""What changes of a table do to a part, never more than is claimed, and sometimes as much."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.sensitivity import Contribution, ExactSensitivity, additive_sensitivity
from dpframe.workloads import Axis, Factor, Part, sensitivity_of
from tests.workloads.matrices import part_matrix
from tests.workloads.test_factors import parts

CONTRIBUTIONS = [(1, 1), (0, 1), (0, 5), (-3, 2), (-4, -1), (2, 5)]


def contribution(low: int, high: int) -> Contribution:
    return Contribution(Fraction(low), Fraction(high))


def norms(change: list[int]) -> tuple[int, int, int, int]:
    sizes = [abs(x) for x in change]
    return sum(x > 0 for x in sizes), sum(sizes), sum(x * x for x in sizes), max(sizes, default=0)


def within(change: list[int], claimed: ExactSensitivity) -> bool:
    l0, l1, l2_squared, linf = norms(change)
    return (
        l0 <= claimed.l0
        and l1 <= claimed.l1
        and l2_squared <= claimed.l2_squared
        and linf <= claimed.linf
    )


@given(parts(), st.sampled_from(CONTRIBUTIONS))
def test_a_row_that_comes_adds_what_is_claimed(part: Part, ends: tuple[int, int]) -> None:
    claimed = sensitivity_of(part, contribution(*ends), ContributionBounds(1, 1, 1))
    columns = part_matrix(part).astype(int).T
    changes = [norms((column * w).tolist()) for column in columns for w in ends]
    largest = tuple(max(change[i] for change in changes) for i in range(4))
    assert largest == (claimed.l0, claimed.l1, claimed.l2_squared, claimed.linf)


@given(parts(), st.sampled_from(CONTRIBUTIONS))
def test_a_row_that_changes_moves_what_is_claimed(part: Part, ends: tuple[int, int]) -> None:
    spread = ContributionBounds(1, 1, 1, changes=True)
    claimed = sensitivity_of(part, contribution(*ends), spread)
    columns = part_matrix(part).astype(int).T.tolist()
    values = {*ends, 0}
    changes = [
        [w * a - v * b for a, b in zip(one, two, strict=True)]
        for one, two in itertools.product(columns, columns)
        for w, v in itertools.product(values, values)
    ]
    assert all(within(change, claimed) for change in changes)
    found = [norms(change) for change in changes]
    assert max(l2 for _, _, l2, _ in found) == claimed.l2_squared
    assert max(l1 for _, l1, _, _ in found) == claimed.l1
    assert max(linf for _, _, _, linf in found) == claimed.linf


@given(
    parts(),
    st.sampled_from(CONTRIBUTIONS),
    st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4)),
    st.booleans(),
    st.data(),
)
def test_rows_of_one_individual_move_no_more_than_is_claimed(
    part: Part,
    ends: tuple[int, int],
    limits: tuple[int, int, int],
    changes: bool,
    data: st.DataObject,
) -> None:
    rows, groups, per_group = limits
    spread = ContributionBounds(rows, groups, per_group, changes)
    claimed = sensitivity_of(part, contribution(*ends), spread)
    matrix = part_matrix(part).astype(int)
    cells = matrix.shape[1]

    def placed() -> list[int]:
        """How much the rows of one individual add to each cell."""
        table = [0] * cells
        few = data.draw(st.lists(st.integers(0, cells - 1), max_size=groups, unique=True))
        left = rows
        for cell in few:
            here = data.draw(st.integers(0, min(left, per_group)))
            left -= here
            table[cell] += sum(data.draw(st.integers(*ends)) for _ in range(here))
        return table

    one = placed()
    if changes:  # as many rows as there are, each from anywhere to anywhere
        k = spread.tight[0]
        one = [0] * cells
        for _ in range(k):
            for sign in (1, -1):
                cell = data.draw(st.integers(0, cells - 1))
                one[cell] += sign * data.draw(st.one_of(st.just(0), st.integers(*ends)))
    assert within((matrix @ np.array(one)).tolist(), claimed)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.sampled_from(CONTRIBUTIONS))
def test_of_the_cells_themselves_it_is_the_rule_for_sums(
    rows: int, groups: int, per_group: int, ends: tuple[int, int]
) -> None:
    cells = Part((Factor(Axis.nominal(30), 1),))
    spread = ContributionBounds(rows, groups, per_group)
    found = sensitivity_of(cells, contribution(*ends), spread)
    assert found == additive_sensitivity(contribution(*ends), spread, 30)


@pytest.mark.parametrize("ends", CONTRIBUTIONS)
def test_of_cells_and_rows_that_change_it_is_the_rule_for_sums(ends: tuple[int, int]) -> None:
    cells = Part((Factor(Axis.nominal(30), 1),))
    spread = ContributionBounds(2, 2, 2, changes=True)
    found = sensitivity_of(cells, contribution(*ends), spread)
    assert found == additive_sensitivity(contribution(*ends), spread, 30)


def test_many_groups_of_one_individual_add_up_in_their_sum() -> None:
    axes = (Axis.nominal(6), Axis.nominal(4))
    spread = ContributionBounds(None, 3, 2)
    one = contribution(1, 1)
    finest = Part((Factor(axes[0], 1), Factor(axes[1], 1)))
    total = Part((Factor(axes[0], 0), Factor(axes[1], 0)))
    assert sensitivity_of(finest, one, spread).l2_squared == 3 * 2**2
    assert sensitivity_of(total, one, spread).l2_squared == (3 * 2) ** 2


def test_groups_of_one_individual_may_cancel_in_contrasts() -> None:
    contrast = Part((Factor(Axis.nominal(4), 1, True),))
    one = contribution(1, 1)
    found = [
        sensitivity_of(contrast, one, ContributionBounds(None, groups, 1)).l2_squared
        for groups in (1, 2, 3, 4)
    ]
    assert found == [12, 16, 16, 16]  # 4**2 s - 4 R**2 of one, two, three rows; of four it is 0


def test_nobody_adds_nothing() -> None:
    part = Part((Factor(Axis.nominal(4), 1, True),))
    assert sensitivity_of(part, contribution(0, 0), ContributionBounds(1, 1, 1)).is_zero
    assert sensitivity_of(part, contribution(0, 1), ContributionBounds(0, 0, 0)).is_zero


def test_of_many_axes_the_triangle_inequality_holds() -> None:
    axes = tuple(map(Axis.nominal, [3] * 9))
    part = Part(tuple(Factor(axis, 1, True) for axis in axes))
    changed = ContributionBounds(1, 1, 1, changes=True)
    found = sensitivity_of(part, contribution(1, 1), changed)
    assert found.l1 == 2 * 4**9
    assert found.linf == 2 * 2**9
    # two rows that differ in one of the columns alone move it most
    assert found.l2_squared == 2 * 6**9 + 2 * 3 * 6**8
