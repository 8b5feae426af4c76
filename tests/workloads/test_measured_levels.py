"""What prefixes and ranges take of noisy levels, against the rebuild itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe.workloads import Axis, Degree, Estimate, MeasuredLevels, Wanted, Workload, tables
from dpframe.workloads.strategy import Strategy

TREES: list[tuple[int, int, Degree]] = [
    (1, 2, 1), (2, 2, 1), (3, 2, 1), (7, 2, 1), (8, 2, 2), (10, 3, 2), (26, 3, 1), (65, 4, 2),
    (101, 2, 1), (101, 10, 2), (102, 102, 2),
]  # fmt: skip


def strategy_of(size: int, branching: int, degree: Degree) -> Strategy:
    axis = Axis.ordered(size, branching)
    return tables(Workload((axis,), (Wanted(("prefixes",)),)), degree)


def measured_of(strategy: Strategy) -> MeasuredLevels:
    (axis,) = strategy.workload.axes
    levels = tuple(part.levels[0] for part in strategy.parts)
    weights = zip(levels, strategy.unit_variances, strict=True)
    return MeasuredLevels(axis, levels, tuple(axis.width(level) / v for level, v in weights))


@pytest.mark.parametrize(("size", "branching", "degree"), TREES)
def test_factors_are_those_of_the_rebuild(size: int, branching: int, degree: Degree) -> None:
    """Each noisy number alone, all of them in one estimate of many lines."""
    strategy = strategy_of(size, branching, degree)
    numbers = sum(part.entries for part in strategy.parts)
    unit, start, measured = np.eye(numbers, dtype=np.int64) * 10**6, 0, []
    for part in strategy.parts:
        measured.append(unit[start : start + part.entries])
        start += part.entries
    rebuilt = Estimate(strategy, measured, lines=numbers).cells((True,)) / 10**6
    ends = sorted({1, size // 3, size // 2, size - 1, size} - {0})
    for low in (0, *ends):
        for high in (end for end in ends if end > low):
            found = np.concatenate(list(measured_of(strategy).factors_of(low, high)))
            np.testing.assert_allclose(found, rebuilt[low:high].sum(axis=0), atol=1e-9)


@pytest.mark.parametrize(("size", "branching", "degree"), [*TREES, (70_001, 2, 1), (4000, 7, 2)])
def test_moments_of_all_prefixes_are_those_of_each(
    size: int, branching: int, degree: Degree
) -> None:
    strategy = strategy_of(size, branching, degree)
    levels = measured_of(strategy)
    variances = [100 * v for v in strategy.unit_variances]
    fourths = [30_000 * v * v for v in strategy.unit_variances]
    spreads, fourth = levels.moments(variances, fourths)
    assert spreads.shape == fourth.shape == (size,)
    rng = np.random.default_rng(size)
    some = {1, size, max(1, size - 1), *rng.integers(1, size + 1, 12).tolist()}
    for end in some:
        expected = levels.moments_of(0, end, variances, fourths)
        assert (spreads[end - 1], fourth[end - 1]) == pytest.approx(expected)
    assert levels.moments(variances, [0.0] * len(fourths))[1].max() == 0


@pytest.mark.parametrize(("size", "branching", "degree"), TREES)
def test_mean_variances_are_no_more_than_the_strategy_says(
    size: int, branching: int, degree: Degree
) -> None:
    """And just that where all leaves are cells."""
    strategy = strategy_of(size, branching, degree)
    (table,) = strategy.workload.tables
    spreads, _ = measured_of(strategy).moments(strategy.unit_variances, [0.0] * len(strategy.parts))
    said = strategy.error(table)
    assert spreads.mean() <= said * (1 + 1e-9)
    if size == branching ** round(math.log(size, branching)):
        assert spreads.mean() == pytest.approx(said)


@pytest.mark.parametrize(
    ("levels", "weights"),
    [((), ()), ((0, 1), (1.0, 1.0)), ((2, 0), (1.0, 1.0)), ((0, 2), (1.0,)), ((2,), (0.0,)),
     ((-1, 2), (1.0, 1.0)), ((2, 2), (1.0, 1.0))],
)  # fmt: skip
def test_levels_that_cannot_be_are_refused(
    levels: tuple[int, ...], weights: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match="measured"):
        MeasuredLevels(Axis.ordered(4), levels, weights)
