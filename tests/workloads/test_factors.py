"""Integer maps: what they compute, and that levels are orthogonal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads import Axis, Factor, Part
from tests.workloads.matrices import axes, factor_matrix, part_matrix, projection


def factors(axis: Axis) -> list[Factor]:
    return [Factor(axis, level) for level in range(axis.height + 1)]


@st.composite
def parts(draw: st.DrawFn) -> Part:
    made = [draw(axes(5)) for _ in range(draw(st.integers(1, 3)))]
    return Part(tuple(draw(st.sampled_from(factors(axis))) for axis in made))


@given(axes(40))
def test_nodes_cover_all_cells(axis: Axis) -> None:
    assert axis.branching**axis.height >= axis.size
    assert axis.height == 0 or axis.branching ** (axis.height - 1) < axis.size
    for level in range(axis.height + 1):
        assert (axis.nodes(level) - 1) * axis.width(level) < axis.size
        assert axis.size <= axis.nodes(level) * axis.width(level)


@given(axes(30))
def test_each_map_multiplies_the_norm_in_each_subspace(axis: Axis) -> None:
    levels = range(axis.height + 1)
    for factor in factors(axis):
        leaves = Factor(Axis(axis.leaves, axis.branching, axis.is_ordered), factor.level)
        matrix = factor_matrix(leaves)
        energies = sum(leaves.energy(level) * projection(axis, level) for level in levels)
        np.testing.assert_allclose(matrix.T @ matrix, energies, atol=1e-9)


@given(axes(30))
def test_each_cell_is_in_one_entry(axis: Axis) -> None:
    for factor in factors(axis):
        matrix = factor_matrix(factor)[:, : axis.size]
        assert set(np.unique(matrix)) <= {0, 1}
        np.testing.assert_array_equal(matrix.sum(axis=0), 1)


@given(parts(), st.data())
def test_a_part_is_its_matrix(part: Part, data: st.DataObject) -> None:
    shape = tuple(factor.axis.size for factor in part.factors)
    size = int(np.prod(shape))
    numbers = st.lists(st.integers(-(2**62), 2**62), min_size=size, max_size=size)
    table = data.draw(numbers)
    found = part.of(np.array(table, dtype=np.int64).reshape(shape))
    assert found.shape == part.shape
    matrix = part_matrix(part).astype(int).tolist()
    exact = [sum(a * x for a, x in zip(row, table, strict=True)) for row in matrix]
    assert [(e + 2**63) % 2**64 - 2**63 for e in exact] == found.reshape(-1).tolist()


def test_an_axis_has_cells() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        Axis.nominal(0)
    with pytest.raises(ValueError, match="two children"):
        Axis.ordered(4, 1)
