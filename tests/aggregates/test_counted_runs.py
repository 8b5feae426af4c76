"""Counts of cells and of runs of them, off which quantiles are read."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpframe as dp
from dpframe.aggregates.reconstructed_error import CountedRuns, best_runs, squares_of_cells
from dpframe.mechanisms import DiscreteLaplace

X: Any = pl.col("x")
DECILES = tuple(Fraction(n, 10) for n in range(1, 10))
ONE = Fraction(1)
ROWS = pl.DataFrame({"x": np.random.default_rng(5).integers(0, 90, 600)})


@st.composite
def measured(draw: st.DrawFn) -> CountedRuns:
    width = draw(st.integers(2, 6))
    size = draw(st.integers(width + 1, width**2))
    return CountedRuns(size, width, Fraction(draw(st.integers(1, 9)), 10))


@given(measured(), st.data())
def test_rebuilt_counts_have_the_least_sum_of_weighted_squares(
    runs: CountedRuns, data: st.DataObject
) -> None:
    cells = np.array(data.draw(st.lists(st.integers(-9, 99), min_size=runs.size)))[: runs.size]
    number = np.arange(runs.size) // runs.width
    sums = np.bincount(number, cells).astype(np.int64) + 7
    some = np.stack([np.eye(runs.size)[number == run].sum(axis=0) for run in range(sums.size)])
    ratio = float(runs.share / (1 - runs.share))  # of deviations
    rows = np.concatenate([np.eye(runs.size), some * ratio])
    wanted = np.linalg.lstsq(rows, np.append(cells, sums * ratio), rcond=None)[0]
    found = runs.rebuild(np.stack([sums, sums]), np.stack([cells, cells]))
    assert found == pytest.approx(np.stack([wanted, wanted]))


@given(measured(), st.sets(st.integers(1, 19), min_size=1, max_size=9), st.integers(1, 40))
def test_expected_errors_are_those_of_the_noise(
    runs: CountedRuns, wanted: set[int], scale: int
) -> None:
    """Of as many full runs as there are, in which a quantile is anywhere in one."""
    s, m = runs.width, runs.size // runs.width
    runs, quantiles = CountedRuns(max(m, 2) * s, s, runs.share), [Fraction(n, 20) for n in wanted]
    each, run = (DiscreteLaplace(scale / part).variance() for part in (1 - runs.share, runs.share))
    believed = s * each / (s * each + run)
    steps, found = 4_000, 0.0
    for q in map(float, quantiles):
        before = (np.arange(steps) + 0.5) * s / steps
        own = (1 - q) ** 2 * before + q * q * (s - before) - believed * (before - q * s) ** 2 / s
        full = q * (1 - q) * (runs.size - s) * (1 - believed)
        found += each * (full + float(own.mean()))
    assert runs.squares(quantiles, Fraction(scale)) == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize(
    ("cells", "scale", "wanted"),
    [
        (40, ONE, None),  # few cells
        (74, ONE, CountedRuns(74, 10, Fraction(9, 20))),
        (101, ONE, CountedRuns(101, 11, Fraction(9, 20))),
        (101, ONE / 3, None),  # little noise
        (101, ONE / 10**6, None),
        (3, ONE, None),
    ],
)
def test_runs_are_counted_where_that_errs_less(
    cells: int, scale: Fraction, wanted: CountedRuns | None
) -> None:
    assert best_runs(cells, DECILES, scale) == wanted
    if wanted is not None:
        assert wanted.squares(DECILES, scale) < squares_of_cells(cells, DECILES, scale)


@pytest.mark.parametrize("size", [10, 11, 101, 122])
def test_only_trees_of_two_levels_are_measured(size: int) -> None:
    if 11 < size <= 121:
        assert CountedRuns(size, 11, ONE / 2).sizes.sum() == size
        return
    with pytest.raises(ValueError, match="two levels"):
        CountedRuns(size, 11, ONE / 2)


@pytest.mark.parametrize("share", [0, 1])
def test_both_levels_cost_something(share: int) -> None:
    with pytest.raises(ValueError, match="cost"):
        CountedRuns(101, 11, Fraction(share))


@pytest.mark.parametrize("given", [{"bounds": (0, 100)}, {"candidates": range(0, 90, 2)}])
def test_quantiles_without_noise_are_quantiles(given: Any) -> None:
    frame = dp.Session(epsilon=1).protect(ROWS.clear(), dp.Rows())
    query = frame.agg(X.dp_quantile([*DECILES], **given))
    releases = query.plan(epsilon="0.5").releases
    assert [release.mechanism for release in releases] == ["discrete_laplace"] * 2
    found = query.simulate(ROWS, runs=2, epsilon="0.5").results["exact"].to_list()
    deciles = [ROWS["x"].sort()[60 * n - 1] for n in range(1, 10)]
    assert np.abs(np.array(found[:9]) - deciles).max() <= ("candidates" in given)


@pytest.mark.parametrize("spend", [{"rho": "0.05"}, {"epsilon": "0.5", "delta": "1e-6"}])
def test_runs_are_not_counted_where_rho_may_be_shared(spend: Any) -> None:
    frame = dp.Session(**spend).protect(ROWS, dp.Rows())
    plan = frame.agg(X.dp_quantile([*DECILES], candidates=range(40))).plan(**spend)
    assert "neighbours" not in plan.explain(details=True)


@pytest.mark.parametrize("unit", [dp.Rows(), dp.Rows("change-one"), dp.Rows(contributions=3)])
def test_groups_and_rows_that_change_have_runs_too(unit: dp.Rows) -> None:
    frame = dp.Session(epsilon=10).protect(ROWS, unit)
    grouped = frame.group_by(pl.col("x") % 2, keys=[0, 1])
    plan = grouped.agg(q=X.dp_quantile([*DECILES], (0, 100))).plan(epsilon=2)
    runs, cells = plan.releases
    assert cells.entries == 2 * 101
    assert runs.entries in (2 * 9, 2 * 10)
    assert runs.sensitivity.l1 == cells.sensitivity.l1
    together = plan.accuracy("q", simultaneous=True)
    assert plan.accuracy("q") < together < 2 * plan.accuracy("q")
