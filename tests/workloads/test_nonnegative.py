"""Near tables from zero up with the same total, whole and adding up."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads import apportion, nearest_nonnegative, whole_deviation

Kept = tuple[bool, ...]


def margin(table: Any, kept: Kept) -> Any:
    return table.sum(axis=tuple(i for i, k in enumerate(kept) if not k), keepdims=True)


def sets_of(axes: int) -> list[Kept]:
    return list(itertools.product((False, True), repeat=axes))


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def tables(draw: Any) -> Any:
    shape = draw(shapes)
    seed = draw(st.integers(0, 2**32))
    scale = draw(st.sampled_from([0.3, 5.0, 1e6]))
    return np.random.default_rng(seed).normal(draw(st.sampled_from([0, 1])), 1.0, shape) * scale


@given(tables(), st.data())
def test_cells_are_not_negative_and_what_already_is_not_stays(table: Any, data: Any) -> None:
    kept = [(True,) * table.ndim, *data.draw(st.lists(st.sampled_from(sets_of(table.ndim))))]
    for given_cells in (table, np.abs(table)):
        found = nearest_nonnegative(
            {k: margin(given_cells, k) for k in kept}, dict.fromkeys(kept, 2.0), table.shape
        )
        assert found.shape == table.shape
        assert found.min() >= 0
        if given_cells.min() >= 0:
            assert found == pytest.approx(given_cells, abs=1e-3 * np.abs(table).max() + 1e-9)


def with_total(table: Any, total: float) -> Any:
    """The nearest numbers from zero up with a total, by trying all that may be zero."""
    entries = np.sort(table.reshape(-1))[::-1]
    for size in range(entries.size, 0, -1):
        taken = (entries[:size].sum() - total) / size
        if entries[size - 1] > taken:
            return np.maximum(table - taken, 0.0)
    raise AssertionError


def test_one_table_of_cells_loses_as_much_everywhere() -> None:
    table = np.array([[3.0, -1.0], [-2.0, 2.5]])
    found = nearest_nonnegative({(True, True): table}, {(True, True): 1.0}, (2, 2))
    assert found == pytest.approx(np.array([[1.5, 0.0], [0.0, 1.0]]), abs=1e-3)


@given(tables(), st.data())
def test_the_total_stays_what_it_is(table: Any, data: Any) -> None:
    kept = [*data.draw(st.lists(st.sampled_from(sets_of(table.ndim)))), (True,) * table.ndim]
    found = nearest_nonnegative({k: margin(table, k) for k in kept}, dict.fromkeys(kept, 2.0),
                                table.shape)  # fmt: skip
    size = np.abs(table).sum()
    assert found.sum() == pytest.approx(max(0.0, table.sum()), abs=1e-9 * size + 1e-9)


def test_nothing_is_left_of_a_total_below_zero() -> None:
    table = np.array([[3.0, -1.0], [-2.0, -0.5]])
    kept = [(True, True), (False, False)]
    found = nearest_nonnegative(
        {k: margin(table, k) for k in kept}, dict.fromkeys(kept, 1.0), table.shape
    )
    assert not found.any()


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_nothing_nearer_is_found_by_trying(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, kept = (3, 4), [(True, True), (True, False), (False, False)]
    table = rng.normal(0.5, 3.0, shape)
    table += max(0.0, 2.0 - table.sum()) / table.size
    variances = dict(zip(kept, (1.0, 2.0, 0.5), strict=True))
    near = {k: with_total(margin(table, k), table.sum()) for k in kept}

    def off(cells: Any) -> float:
        return float(sum(((margin(cells, k) - near[k]) ** 2).sum() / variances[k] for k in kept))

    found = nearest_nonnegative({k: margin(table, k) for k in kept}, variances, shape)
    least = off(found)
    for _ in range(3_000):
        tried = np.maximum(found + rng.normal(0, rng.choice([1e-2, 0.1, 1.0]), shape), 0.0)
        if tried.sum():
            assert off(tried * (found.sum() / tried.sum())) >= least - 1e-3


def test_orders_of_axes_and_axes_of_one_value_do_not_matter() -> None:
    table = np.random.default_rng(6).normal(0.5, 3.0, (4, 3, 5))
    kept = [(True, True, True), (True, False, True), (False, True, False)]
    variances = dict(zip(kept, (1.0, 3.0, 2.0), strict=True))
    found = nearest_nonnegative({k: margin(table, k) for k in kept}, variances, (4, 3, 5))

    def turned(k: Kept) -> Kept:
        return k[2], True, k[0], k[1]

    other = nearest_nonnegative(
        {turned(k): margin(table, k).transpose(2, 0, 1)[:, None] for k in kept},
        {turned(k): variance for k, variance in variances.items()},
        (5, 1, 4, 3),
    )
    assert other[:, 0].transpose(1, 2, 0) == pytest.approx(found, abs=1e-3)


@pytest.mark.parametrize("shape", [(42, 2), (9, 16, 7), (30, 30)])
def test_no_table_errs_more_than_it_did_and_sparse_ones_much_less(
    shape: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(4)
    kept = sets_of(len(shape))
    exact = rng.multinomial(400, rng.dirichlet(np.full(np.prod(shape), 0.05))).reshape(shape)
    squares: dict[Kept, list[tuple[float, float]]] = {k: [] for k in kept}
    for _ in range(60):
        noisy = exact + rng.normal(0, 6.0, shape)
        # a total that was measured by itself, and cells moved to it
        noisy += (exact.sum() + rng.normal(0, 6.0) - noisy.sum()) / noisy.size
        variances = {k: 36.0 * noisy.size / margin(noisy, k).size for k in kept}
        variances[(False,) * len(shape)] = 36.0
        whole = apportion(
            nearest_nonnegative({k: margin(noisy, k) for k in kept}, variances, shape)
        )
        for k in kept:
            true = margin(exact, k)
            squares[k].append(
                (
                    float(((margin(whole, k) - true) ** 2).mean()),
                    float(((margin(noisy, k) - true) ** 2).mean()),
                )
            )
    for k, pairs in squares.items():
        found, signed = np.sqrt(np.mean(pairs, axis=0))
        assert found < 1.03 * signed, k
    found, signed = np.sqrt(np.mean(squares[(True,) * len(shape)], axis=0))
    assert found < 0.6 * signed


def test_tables_by_pairs_of_columns_err_less_although_nothing_is_known_of_cells() -> None:
    """As of a thousand rows in 40,960 cells, of which tables by two columns alone are measured."""
    rng = np.random.default_rng(8)
    shape = (8, 8, 16, 40)
    kept = [k for k in sets_of(4) if sum(k) == 2]
    sides = [rng.dirichlet(np.full(size, 0.3)) for size in shape]
    codes = [rng.choice(side.size, 1000, p=side) for side in sides]
    exact = np.zeros(shape)
    np.add.at(exact, tuple(codes), 1)
    noisy = exact + rng.normal(0, 6.0, shape)
    # consistent margins, each of whose numbers errs about as much
    noisy = exact + (noisy - exact) / np.sqrt(noisy.size / 400)
    variances = {k: float(((margin(noisy - exact, k)) ** 2).mean()) for k in kept}
    tables = {k: margin(noisy, k) for k in kept}
    found = apportion(nearest_nonnegative(tables, variances, shape))
    squares = [((margin(found, k) - margin(exact, k)) ** 2).mean() for k in kept]
    assert np.mean(squares) < 0.9 * np.mean([*variances.values()])


@given(tables())
def test_whole_cells_are_near_and_so_is_every_sum_of_leading_axes(table: Any) -> None:
    cells = np.abs(table)
    whole = apportion(cells)
    assert whole.dtype == np.int64
    assert whole.min() >= 0
    tolerance = 1e-9 * cells.sum()
    for depth in range(table.ndim + 1):
        rest = tuple(range(depth, table.ndim))
        assert np.abs(whole.sum(axis=rest) - cells.sum(axis=rest)).max() <= 2**depth + tolerance


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**32))
def test_whole_cells_stay_as_they_are(shape: list[int], seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 1_000, shape)
    assert (apportion(table.astype(np.float64)) == table).all()


@pytest.mark.parametrize("value", [0.02, 0.4999, 0.51, 0.9])
def test_equal_cells_do_not_all_go_into_one_column(value: float) -> None:
    cells = np.full((9, 16, 7, 5), value)
    whole = apportion(cells)
    for kept in sets_of(4):
        off = np.abs(margin(whole, kept) - margin(cells, kept)).max()
        assert off <= 3 + 3 * np.sqrt(value * cells.size / margin(cells, kept).size)


@pytest.mark.parametrize("most", [1e15, 1e18, 1e300])
def test_cells_of_any_size_are_made_whole(most: float) -> None:
    cells = np.array([[most, 0.0, 0.3], [most / 3, 1.5, 0.0]])
    whole = apportion(cells)
    assert whole.min() >= 0
    assert whole[0, 0] > whole[1, 0] > 2**48


@pytest.mark.parametrize("kind", ["even", "sparse", "heavy"])
def test_many_cells_are_made_whole_in_blocks_and_margins_stay_near(kind: str) -> None:
    rng = np.random.default_rng(7)
    cells = rng.exponential(1.0, (10, 20, 12, 10))
    if kind == "sparse":
        cells *= rng.random(cells.shape) < 0.05
    elif kind == "heavy":
        cells = cells**4 / 24
    whole = apportion(cells)
    assert whole.min() >= 0
    assert whole.sum() == round(cells.sum())
    for kept in sets_of(4):
        off = margin(whole, kept) - margin(cells, kept)
        merged = cells.size / off.size
        assert np.sqrt((off**2).mean()) < 1.0 + (0.2 if sum(kept) < 3 else 0.6) * np.sqrt(merged)


def test_they_are_the_same_every_time() -> None:
    cells = np.random.default_rng(5).random((20, 30))
    assert (apportion(cells) == apportion(cells.copy())).all()


@pytest.mark.parametrize("shape", [(100, 40, 30), (1000, 120), (40, 5, 30, 20), (2, 300, 200, 1)])
def test_which_margins_pay_for_whole_cells(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(5)
    cells = np.where(generator.random(shape) < 0.6, generator.random(shape), 0.0)
    off = apportion(cells) - cells
    for kept in itertools.product((False, True), repeat=len(shape)):
        moved = off.sum(axis=tuple(i for i, k in enumerate(kept) if not k))
        most = whole_deviation(kept, shape)
        if most:
            assert 0.15 * most < np.sqrt(np.mean(moved**2)) <= most
        else:
            assert np.abs(moved).max() <= len(shape)
