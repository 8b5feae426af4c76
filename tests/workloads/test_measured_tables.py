"""What prefixes and ranges of groups take of noisy tables, against the rebuild itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe.workloads import (
    Axis,
    Degree,
    Estimate,
    MeasuredTables,
    Wanted,
    Workload,
    tables,
)
from dpframe.workloads.axes import Kind
from dpframe.workloads.strategy import Strategy

TREES: list[tuple[int, int, Degree]] = [
    (1, 2, 1), (2, 2, 1), (3, 2, 1), (7, 2, 1), (8, 2, 2), (10, 3, 2), (26, 3, 1), (65, 4, 2),
    (101, 2, 1), (101, 10, 2), (102, 102, 2),
]  # fmt: skip
"""Cells, children of a node, and what is shared, of one group."""
CASES: list[tuple[tuple[int, ...], int, int, tuple[tuple[int, ...], ...], Degree]] = [
    ((2, 3), 5, 2, ((0, 1), (0,), ()), 1),
    ((2, 3), 7, 3, ((0, 1), (0,), (1,), ()), 1),
    ((3,), 10, 3, ((0,), ()), 2),
    ((2, 2), 6, 6, ((0, 1), ()), 1),
    ((2, 1, 3), 4, 2, ((0, 1, 2), (1,), (2,)), 1),
    ((4, 2), 1, 2, ((0,), (1,)), 2),
    ((1,), 9, 2, ((0,), ()), 1),
    *(((), size, branching, ((),), degree) for size, branching, degree in TREES),
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


@pytest.mark.parametrize(("size", "branching", "degree"), [*TREES, (70_001, 2, 1), (4000, 7, 2)])
def test_moments_of_all_prefixes_are_those_of_each(
    size: int, branching: int, degree: Degree
) -> None:
    strategy = strategy_of((), size, branching, ((),), degree)
    levels = measured_of(strategy)
    variances = tuple(100 * v for v in strategy.unit_variances)
    fourths = tuple(30_000 * v * v for v in strategy.unit_variances)
    spreads, fourth = levels.moments((), variances, fourths)
    assert spreads.shape == fourth.shape == (size,)
    rng = np.random.default_rng(size)
    some = {1, size, max(1, size - 1), *rng.integers(1, size + 1, 12).tolist()}
    for end in some:
        expected = levels.moments_of((), 0, end, variances, fourths)
        assert (spreads[end - 1], fourth[end - 1]) == pytest.approx(expected)
    assert levels.moments((), variances, (0.0,) * len(fourths))[1].max() == 0


@pytest.mark.parametrize(("size", "branching", "degree"), TREES)
def test_mean_variances_are_no_more_than_the_strategy_says(
    size: int, branching: int, degree: Degree
) -> None:
    """And just that where all leaves are cells."""
    strategy = strategy_of((), size, branching, ((),), degree)
    (table,) = strategy.workload.tables
    nothing = (0.0,) * len(strategy.parts)
    spreads, _ = measured_of(strategy).moments((), strategy.unit_variances, nothing)
    said = strategy.error(table)
    assert spreads.mean() <= said * (1 + 1e-9)
    if size == branching ** round(math.log(size, branching)):
        assert spreads.mean() == pytest.approx(said)
