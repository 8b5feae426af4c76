"""How far off ranks are that are read off counts of cells and of runs of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.quantile import codes_from_counts
from dpframe.aggregates.reconstructed_error import CountedRuns, RunRankError, _run_moments
from dpframe.aggregates.values import numeric_value
from dpframe.core.dtypes import INT64, domain_of_dtype
from dpframe.core.tree import Column
from dpframe.mechanisms import DiscreteLaplace

LOW, HIGH = Fraction(1, 10), Fraction(9, 10)
HALF = Fraction(1, 2)
VALUE = numeric_value(Column("x"), {"x": domain_of_dtype(INT64)}, "quantile")


def factors(runs: CountedRuns) -> tuple[Any, Any]:
    """What the noise of each run, and of each cell, adds to N_0, N_1 and so on."""
    per_run = runs.rebuild(np.eye(runs.sizes.size, dtype=int), np.zeros((1, runs.size), int))
    per_cell = runs.rebuild(np.zeros((1, runs.sizes.size), int), np.eye(runs.size, dtype=int))
    return tuple(
        np.pad(np.cumsum(found, axis=1), ((0, 0), (1, 0))) for found in (per_run, per_cell)
    )


@given(st.integers(2, 5), st.integers(1, 20), st.integers(1, 9), st.integers(0, 10))
def test_moments_are_those_of_each_pair(width: int, more: int, share: int, tenths: int) -> None:
    size = min(width + more, width**2)
    runs, q = CountedRuns(size, width, Fraction(share, 10)), tenths / 10
    of_runs, of_cells = factors(runs)
    starts, stops = np.triu_indices(size + 1)
    by_run, by_cell = (found[:, starts] - q * found[:, stops] for found in (of_runs, of_cells))
    second = 5.0 * (by_run**2).sum(axis=0) + 3.0 * (by_cell**2).sum(axis=0)
    fourth = 2.0 * 25.0 * (by_run**4).sum(axis=0) + 1.5 * 9.0 * (by_cell**4).sum(axis=0)
    noisy = second > 1e-12
    found = _run_moments(runs, q, (5.0, 2.0), (3.0, 1.5))
    assert found[0][found[0] > 1e-12] == pytest.approx(second[noisy])
    assert found[1][found[0] > 1e-12] == pytest.approx(fourth[noisy])


@given(
    st.lists(st.integers(0, 9), min_size=5, max_size=5),
    st.lists(st.integers(-9, 9), min_size=8, max_size=8),
    st.integers(1, 19),
    st.booleans(),
)
def test_ranks_are_as_near_as_the_worst_pair(
    true: list[int], noise: list[int], wanted: int, listed: bool
) -> None:
    runs, q = CountedRuns(5, 3, HALF), Fraction(wanted, 20)
    cells: Any = PointCells(VALUE, Fraction(0), Fraction(1), 5)
    if listed:
        cells = PositionCells(VALUE, (Fraction(1), Fraction(2)))
    exact = np.array([true])
    sums = np.array([[sum(true[:3]), sum(true[3:])]])
    counts = runs.rebuild(sums + noise[:2], exact + noise[2:7])
    code = int(codes_from_counts(counts, cells, (q,))[0][0])
    off = np.append(0.0, np.cumsum(counts - exact))
    worst = max(abs(off[i] - float(q) * off[k]) for k in range(6) for i in range(k + 1))
    upto, target = np.cumsum(true), float(q) * sum(true)
    places = [2 * number + 1 if listed else number for number in range(2 if listed else 5)]
    away = [max(upto[p] - true[p] - target, target - upto[p], 0) for p in places]
    assert away[code] <= min(away) + (1 + listed) * worst + 1e-9


@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)])
def test_all_pairs_are_kept_within_together(level: Fraction) -> None:
    rule = RunRankError(30, 6, Fraction(2, 5), LOW, HIGH, 1)
    laws = [DiscreteLaplace(Fraction(5)), DiscreteLaplace(Fraction(10, 3))]
    rng, runs = np.random.default_rng(8), 4_000

    def noise(law: DiscreteLaplace, size: int) -> Any:
        p = 1 - np.exp(-1 / float(law.scale))
        return rng.geometric(p, (runs, size)) - rng.geometric(p, (runs, size))

    found = rule.counted_runs.rebuild(noise(laws[0], 5), noise(laws[1], 30))
    sums = np.pad(np.cumsum(found, axis=1), ((0, 0), (1, 0)))
    starts, stops = np.triu_indices(31)
    worst = np.zeros(runs)
    for q in (0.1, 0.4, 0.9):
        worst = np.maximum(worst, abs(sums[:, starts] - q * sums[:, stops]).max(axis=1))
    reach = rule.quantile(laws, level)
    assert (worst <= reach).mean() >= level
    assert RunRankError(30, 6, Fraction(2, 5), LOW, HIGH, 2).quantile(laws, level) == 2 * reach


def test_nothing_is_off_without_noise() -> None:
    law = DiscreteLaplace(Fraction(1, 1000))
    rule = RunRankError(30, 6, Fraction(2, 5), LOW, HIGH, 1)
    assert rule.quantile([law, law], Fraction(19, 20)) < 0.5


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ((30, 6, HALF, HIGH, LOW, 1), "quantiles"),
        ((30, 6, HALF, LOW, HIGH, 3), "quantiles"),
        ((30, 6, HALF, LOW, Fraction(2), 1), "quantiles"),
        ((513, 25, HALF, LOW, HIGH, 1), "more cells"),
        ((30, 5, HALF, LOW, HIGH, 1), "two levels"),
        ((30, 6, Fraction(1), LOW, HIGH, 1), "cost"),
    ],
)
def test_what_nothing_is_measured_by_is_refused(change: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        RunRankError(*change)
