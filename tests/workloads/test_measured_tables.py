"""What prefixes and ranges of groups take of noisy tables, against the rebuild itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe.workloads import (
    Axis,
    Degree,
    Estimate,
    MeasuredLevels,
    MeasuredTables,
    Wanted,
    Workload,
    tables,
)
from dpframe.workloads.axes import Kind
from dpframe.workloads.strategy import Strategy

CASES: list[tuple[tuple[int, ...], int, int, tuple[tuple[int, ...], ...], Degree]] = [
    ((2, 3), 5, 2, ((0, 1), (0,), ()), 1),
    ((2, 3), 7, 3, ((0, 1), (0,), (1,), ()), 1),
    ((3,), 10, 3, ((0,), ()), 2),
    ((2, 2), 6, 6, ((0, 1), ()), 1),
    ((2, 1, 3), 4, 2, ((0, 1, 2), (1,), (2,)), 1),
    ((4, 2), 1, 2, ((0,), (1,)), 2),
    ((1,), 9, 2, ((0,), ()), 1),
]
"""Sizes of columns, cells, children of a node, sets, and what is shared."""


def strategy_of(
    sizes: tuple[int, ...],
    cells: int,
    branching: int,
    sets: tuple[tuple[int, ...], ...],
    degree: Degree,
) -> Strategy:
    axes = (*map(Axis.nominal, sizes), Axis.ordered(cells, branching))
    wanted = []
    for kept in sets:
        kinds: list[Kind] = ["cells" if i in kept else "total" for i in range(len(sizes))]
        wanted.append(Wanted((*kinds, "prefixes")))
    return tables(Workload(axes, tuple(wanted)), degree)


def measured_of(strategy: Strategy) -> MeasuredTables:
    axes, last = strategy.workload.axes, len(strategy.workload.axes) - 1
    found = tuple(
        (tuple(i for i in range(last) if part.shape[i] > 1), part.levels[last])
        for part in strategy.parts
    )
    pairs = zip(strategy.parts, strategy.unit_variances, strict=True)
    weights = tuple(part.energy(part.levels) / v for part, v in pairs)
    return MeasuredTables(tuple(axis.size for axis in axes[:-1]), axes[-1], found, weights)


def rebuilt(strategy: Strategy, kept: tuple[int, ...]) -> np.ndarray:
    """What each cell of each group takes of each noisy number: (groups, cells, numbers)."""
    numbers = sum(part.entries for part in strategy.parts)
    unit, start, held = np.eye(numbers, dtype=np.int64) * 10**6, 0, []
    for part in strategy.parts:
        held.append(unit[start : start + part.entries])
        start += part.entries
    axes = strategy.workload.axes
    keeps = [i in kept for i in range(len(axes) - 1)]
    cells = Estimate(strategy, held, lines=numbers).cells((*keeps, True)) / 10**6
    return cells.reshape(-1, axes[-1].size, numbers)


@pytest.mark.parametrize("case", CASES)
def test_moments_are_those_of_the_rebuild(
    case: tuple[tuple[int, ...], int, int, tuple[tuple[int, ...], ...], Degree],
) -> None:
    strategy = strategy_of(*case)
    measured, size = measured_of(strategy), case[1]
    rng = np.random.default_rng(1)
    variances = tuple(rng.uniform(1, 9, len(strategy.parts)).tolist())
    fourths = tuple(rng.uniform(1, 9, len(strategy.parts)).tolist())
    each = [part.entries for part in strategy.parts]
    second, fourth = np.repeat(variances, each), np.repeat(fourths, each)
    for kept in case[3]:
        assert measured.tells(kept)
        taken = rebuilt(strategy, kept)
        spreads, fours = measured.moments(kept, variances, fourths)
        prefixes = np.cumsum(taken, axis=1)
        for group in prefixes:
            np.testing.assert_allclose(spreads, group**2 @ second, rtol=1e-6)
            np.testing.assert_allclose(fours, group**4 @ fourth, rtol=1e-6)
        for start, stop in ((0, size), (0, 1), (size // 2, size), (size // 3, size // 3 + 1)):
            found = measured.moments_of(kept, start, stop, variances, fourths)
            own = taken[0, start:stop].sum(axis=0)
            assert found == pytest.approx((own**2 @ second, own**4 @ fourth), rel=1e-6)


def test_a_set_of_columns_that_no_table_has_is_not_told() -> None:
    axis = Axis.ordered(4)
    found = MeasuredTables((2, 3), axis, (((0,), 2), ((0, 1), 1)), (1.0, 1.0))
    assert found.tells((0,))
    assert not found.tells((0, 1))
    assert not found.tells((1,))


@pytest.mark.parametrize(
    ("measured", "weights"),
    [
        ((((0,), 2),), ()),
        ((((0,), 2),), (-1.0,)),
        ((), ()),
        ((((7,), 2),), (1.0,)),
        ((((0,), 3),), (1.0,)),
        ((((0,), -1),), (1.0,)),
        ((((1, 0), 2),), (1.0,)),
        ((((0,), 2), ((0,), 2)), (1.0, 1.0)),
    ],
)
def test_what_cannot_be_is_refused(measured: object, weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="noisy table"):
        MeasuredTables((2, 3), Axis.ordered(4), measured, weights)  # type: ignore[arg-type]


def test_one_group_errs_as_levels_alone_do() -> None:
    """Without columns it is the sum of the levels of one tree."""
    axis = Axis.ordered(9)
    levels, weights = (0, 2, 4), (3.0, 2.0, 1.0)
    one = MeasuredLevels(axis, levels, weights)
    other = MeasuredTables((), axis, tuple(((), level) for level in levels), weights)
    given = (5.0, 4.0, 3.0), (1.0, 0.5, 0.0)
    for a, b in zip(one.moments(*given), other.moments((), *given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert math.isclose(
        one.moments_of(2, 7, *given)[0], other.moments_of((), 2, 7, *given)[0], rel_tol=1e-12
    )
