"""The square root factorisation of sums of the first cells: exact, bounded, and near the least."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.kernel import moves
from dpframe.kernel.moves import Column
from dpframe.workloads import MOST_ROOT_CELLS, RootPrefixes
from dpframe.workloads.prefix_sums import coefficients
from tests.laws.amounts import examples

INT64 = st.integers(-(2**63), 2**63 - 1)
SIZES = st.integers(1, 40) | st.sampled_from([127, 128, 129, 300])


def columns(cells: int) -> list[list[int]]:
    """What a row in each cell adds."""
    weights = coefficients(cells)
    return [[0] * j + list(weights[: cells - j]) for j in range(cells)]


def own(cells: int) -> Column:
    """How far a row moves the sums that comes into a cell or goes from it, by the kernel."""
    return moves._root_column(tuple(coefficients(cells)), cells, 1)


def turned(cells: int) -> Column:
    """How far a row moves them that leaves a cell, or none, for another, or for none."""
    l1, l2_squared = moves._change_norms(tuple(coefficients(cells)))
    return replace(own(cells), l1=l1, l2_squared=l2_squared)


def as_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


@given(SIZES, st.data())
@examples(20, 200)
def test_sums_are_exact_modulo_two_to_the_64(cells: int, data: st.DataObject) -> None:
    """Of any integers, also those that overflow, in plain Python's."""
    line = st.lists(INT64 | st.integers(0, 9), min_size=cells, max_size=cells)
    table = data.draw(st.lists(line, min_size=1, max_size=3))
    weights = coefficients(cells)
    exact = [
        [as_int64(sum(weights[t - k] * row[k] for k in range(t + 1))) for t in range(cells)]
        for row in table
    ]
    assert RootPrefixes(cells).of(np.array(table, dtype=np.int64)).tolist() == exact


@given(st.integers(1, 24))
@examples(24, 24)
def test_no_row_moves_sums_further_and_some_do(cells: int) -> None:
    """Of all pairs of cells, one of which may be none."""
    each = columns(cells)
    for told, others in ((own(cells), [[0] * cells]), (turned(cells), [*each, [0] * cells])):
        moves = [[abs(a - b) for a, b in zip(u, v, strict=True)] for u in each for v in others]
        assert told.l1 == max(map(sum, moves))
        assert told.l2_squared == max(sum(x * x for x in move) for move in moves)
        assert told.linf == max(map(max, moves))


@given(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59)), max_size=6))
@examples(40, 400)
def test_rows_of_one_individual_move_sums_within_the_triangle(
    cells: int, rows: list[tuple[int, int]]
) -> None:
    """m rows that come move them by m times a column at most, m that change by m differences."""
    root = RootPrefixes(cells)
    for told, leave in ((own(cells), False), (turned(cells), True)):
        table = np.zeros((1, cells), dtype=np.int64)
        for enters, leaves in rows:
            table[0, enters % cells] += 1
            if leave and leaves < cells:
                table[0, leaves] -= 1
        moved = [abs(x) for x in root.of(table)[0].tolist()]
        m = len(rows)
        assert sum(moved) <= m * told.l1
        assert sum(x * x for x in moved) <= m * m * told.l2_squared
        assert max(moved) <= m * told.linf


@given(SIZES, st.integers(0, 2**32 - 1), st.sampled_from([9, 10**6, 2**40]))
@examples(20, 200)
def test_prefixes_without_noise_are_exact(cells: int, seed: int, most: int) -> None:
    table = np.random.default_rng(seed).integers(0, most, (2, cells))
    root = RootPrefixes(cells)
    assert (root.prefixes(root.of(table)) == table.cumsum(axis=1)).all()


@pytest.mark.parametrize("cells", [1, 2, 7, 130, 1000])
def test_factors_are_those_of_the_estimate(cells: int) -> None:
    """What a noise of one sum does to prefixes, and their variances, against the matrix."""
    root = RootPrefixes(cells)
    matrix = np.array(columns(cells), dtype=np.float64).T
    factors = np.linalg.solve(matrix.T, np.tril(np.ones((cells, cells))).T).T
    assert np.allclose((factors**2).sum(axis=1), root.power_sums(2), rtol=1e-9)
    assert np.allclose((factors**4).sum(axis=1), root.power_sums(4), rtol=1e-9)
    for start, stop in {(0, cells), (cells // 3, cells // 2 + 1), (cells - 1, cells)}:
        expected = factors[stop - 1] - (factors[start - 1] if start else 0)
        assert np.allclose(root.factors_of(start, stop), expected[:stop], atol=1e-12 / root.unit)
    noise = np.random.default_rng(1).integers(-(10**9), 10**9, (3, cells))
    assert (abs(root.prefixes(noise) - noise @ factors.T) < 0.5 + 1e-3).all()


@pytest.mark.parametrize(("edges", "most"), [(100, 2.45), (1_000, 3.2), (10_000, 3.95)])
def test_errors_are_those_of_the_square_root(edges: int, most: float) -> None:
    """At rho 0.5, where noise has the L2 of a row for its deviation; and nearly least of all."""
    root = RootPrefixes(edges + 1)
    error = math.sqrt(own(edges + 1).l2_squared * float(root.power_sums(2)[:edges].mean()))
    n = edges + 1
    angles = (2 * np.arange(1, n + 1) - 1) * math.pi / (4 * n + 2)
    least = float((1 / (2 * np.sin(angles))).mean())  # the mean of singular values of all sums
    assert least < error < min(most, 1.1 * least)


def test_other_numbers_of_cells_are_refused() -> None:
    for cells in (0, MOST_ROOT_CELLS + 1):
        with pytest.raises(ValueError, match="between 1 and"):
            RootPrefixes(cells)
