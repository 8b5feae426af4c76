"""Tables from parts: exact without noise, least squares with it, with the variances that are said,
and whole numbers that add up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads import (
    Axis,
    Estimate,
    Strategy,
    Wanted,
    WholeTables,
    Workload,
    best_tables,
    rounding_variance,
    tables,
)
from tests.workloads.matrices import (
    KEPT,
    cell_tables,
    estimator,
    part_matrix,
    wanted_matrix,
    workloads,
)
from tests.workloads.norms import variances_of

WAYS: dict[str, Callable[[Workload], Strategy]] = {
    "tables by rho": lambda workload: tables(workload, 1),
    "tables by epsilon": lambda workload: tables(workload, 2),
    "the best trees": lambda workload: best_tables(workload, 2),
}
either_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def table_of(data: st.DataObject, workload: Workload, most: int = 10**6) -> np.ndarray:
    shape = tuple(axis.size for axis in workload.axes)
    size = int(np.prod(shape))
    numbers = data.draw(st.lists(st.integers(-most, most), min_size=size, max_size=size))
    return np.array(numbers, dtype=np.int64).reshape(shape)


@either_way
@given(workload=workloads(), data=st.data())
def test_without_noise_all_tables_are_exact(
    way: Callable[[Workload], Strategy], workload: Workload, data: st.DataObject
) -> None:
    strategy, table = way(workload), table_of(data, workload)
    whole = WholeTables(Estimate(strategy, [part.of(table) for part in strategy.parts]))
    for wanted in cell_tables(workload):
        kept = [KEPT[kind] for kind in wanted.kinds]
        found = whole.cells(kept, [kind == "prefixes" for kind in wanted.kinds])
        exact = wanted_matrix(workload.axes, wanted.kinds).astype(int) @ table.reshape(-1)
        np.testing.assert_array_equal(found.reshape(-1), exact)


@either_way
@given(workload=workloads(most_cells=16), data=st.data())
def test_errors_are_as_they_are_said(
    way: Callable[[Workload], Strategy], workload: Workload, data: st.DataObject
) -> None:
    strategy = way(workload)
    noise = data.draw(
        st.lists(st.floats(0.1, 9), min_size=len(strategy.parts), max_size=len(strategy.parts))
    )
    spread = np.concatenate(
        [np.full(p.entries, v) for p, v in zip(strategy.parts, noise, strict=True)]
    )
    matrix = np.vstack([part_matrix(part) for part in strategy.parts])
    for wanted in cell_tables(workload):
        found = estimator(strategy, wanted.kinds)
        np.testing.assert_allclose(
            found @ matrix, wanted_matrix(workload.axes, wanted.kinds), atol=1e-9
        )
        variances = (found**2 * spread).sum(axis=1)
        said = variances_of(strategy.workload.axes, wanted.kinds, strategy.variances(noise))
        np.testing.assert_allclose(strategy.error(wanted, noise), said.mean(), rtol=1e-9)
        if all(a.size == a.leaves for a in strategy.workload.axes):
            np.testing.assert_allclose(said.reshape(-1), variances, rtol=1e-9, atol=1e-12)
        else:  # where some nodes have few cells the noise of fewer of these is in their sums
            assert (variances <= said.reshape(-1) * (1 + 1e-9)).all()


@given(axis=st.builds(Axis.ordered, st.integers(2, 17), st.integers(2, 5)))
def test_ranges_err_as_is_said(axis: Axis) -> None:
    """By the mean over all ranges, exactly where all leaves are cells."""
    wanted = Wanted(("ranges",))
    workload = Workload((axis,), (wanted,))
    strategy = tables(workload, 2)
    cells = estimator(strategy, ("cells",))
    spread = np.repeat(strategy.unit_variances, [part.entries for part in strategy.parts])
    ends = itertools.combinations(range(axis.size + 1), 2)
    sums = [cells[start:stop].sum(axis=0) for start, stop in ends]
    found = sum(float((each**2 * spread).sum()) for each in sums) / workload.outputs(wanted)
    said = strategy.error(wanted)
    assert found <= said * (1 + 1e-9)
    assert axis.size < axis.leaves or found >= said * (1 - 1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("axes", [(4, 3), (2, 2, 3), (5,)])
def test_it_is_weighted_least_squares(axes: tuple[int, ...], degree: int) -> None:
    made = tuple(map(Axis.nominal, axes))
    sets = itertools.product(("total", "cells"), repeat=len(axes))
    workload = Workload(made, tuple(Wanted(kinds) for kinds in sets))
    strategy = tables(workload, 1 if degree == 1 else 2)
    matrix = np.vstack([part_matrix(part) for part in strategy.parts])
    spread = np.repeat(strategy.unit_variances, [part.entries for part in strategy.parts])
    scaled = matrix / np.sqrt(spread)[:, None]
    best = np.linalg.pinv(scaled) / np.sqrt(spread)
    for wanted in workload.tables:
        expected = wanted_matrix(made, wanted.kinds) @ best
        np.testing.assert_allclose(estimator(strategy, wanted.kinds), expected, atol=1e-9)


@either_way
@given(workload=workloads(), data=st.data())
def test_whole_tables_add_up_and_are_near(
    way: Callable[[Workload], Strategy], workload: Workload, data: st.DataObject
) -> None:
    strategy = way(workload)
    measured = [
        np.array(
            data.draw(
                st.lists(st.integers(-1000, 1000), min_size=part.entries, max_size=part.entries)
            ),
            dtype=np.int64,
        )
        for part in strategy.parts
    ]
    estimate = Estimate(strategy, measured)
    whole = WholeTables(estimate)
    finest = max(workload.subspaces, key=sum)
    reach = [level > 0 for level in finest]
    for kept in itertools.product(*((False, True) if r else (False,) for r in reach)):
        if tuple(_top(workload, kept)) not in workload.subspaces:
            continue
        found, near = whole.cells(kept), estimate.cells(kept)
        assert abs(found - near).max() <= 2 ** max(0, sum(kept) - 1) + 1e-6
        for at, keep in enumerate(kept):
            if keep:
                fewer = whole.cells((*kept[:at], False, *kept[at + 1 :]))
                np.testing.assert_array_equal(found.sum(axis=at, keepdims=True), fewer)
                prefixes = whole.cells(kept, [i == at for i in range(len(kept))])
                np.testing.assert_array_equal(found.cumsum(axis=at), prefixes)


def _top(workload: Workload, kept: tuple[bool, ...]) -> list[int]:
    return [axis.height if k else 0 for axis, k in zip(workload.axes, kept, strict=True)]


def test_simulated_noise_errs_as_is_said() -> None:
    rng = np.random.default_rng(1)
    axes = (Axis.nominal(3), Axis.ordered(8))
    wanted = [Wanted(("cells", "prefixes")), Wanted(("total", "cells")), Wanted(("cells", "total"))]
    strategy = tables(Workload(axes, tuple(wanted)), 1)
    table = rng.poisson(50, size=(3, 8))
    noise = [v * 9 for v in strategy.unit_variances]
    errors: dict[int, list[np.ndarray]] = {0: [], 1: [], 2: []}
    for _ in range(1000):
        measured = [
            part.of(table) + np.rint(rng.normal(0, v**0.5, part.shape)).astype(np.int64)
            for part, v in zip(strategy.parts, noise, strict=True)
        ]
        whole = WholeTables(Estimate(strategy, measured))
        for i, one in enumerate(wanted):
            kept = [KEPT[kind] for kind in one.kinds]
            prefixes = [kind == "prefixes" for kind in one.kinds]
            exact = wanted_matrix(axes, one.kinds) @ table.reshape(-1)
            errors[i].append(whole.cells(kept, prefixes).reshape(-1) - exact)
    for i, one in enumerate(wanted):
        kept = [KEPT[kind] for kind in one.kinds]
        prefixes = [kind == "prefixes" for kind in one.kinds]
        said = variances_of(axes, one.kinds, strategy.variances(noise)).reshape(-1)
        said = said + rounding_variance(kept, prefixes)
        found = np.array(errors[i])
        np.testing.assert_allclose((found**2).mean(axis=0) / said, 1, atol=0.2)
        np.testing.assert_allclose((found**2).mean() / said.mean(), 1, atol=0.05)
        assert (abs(found.mean(axis=0)) < 5 * np.sqrt(said / len(found))).all()


def test_estimates_too_large_for_integers_are_held_at_their_limits() -> None:
    strategy = tables(Workload((Axis.nominal(2),), (Wanted(("cells",)),)), 2)
    measured = [np.array([2**63 - 1, 2**63 - 1])]
    found = WholeTables(Estimate(strategy, measured)).cells([True])
    assert found.dtype == np.int64
    assert found.sum() > 2**62
