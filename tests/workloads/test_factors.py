"""Integer maps: what they compute, their norms, and that levels are orthogonal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads import Axis, Factor, Part
from tests.workloads.matrices import axes, factor_matrix, part_matrix, projection


def factors(axis: Axis) -> list[Factor]:
    sums = [Factor(axis, level) for level in range(axis.height + 1)]
    return sums + [Factor(axis, level, True) for level in range(1, axis.height + 1)]


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
        leaves = Factor(Axis(axis.leaves, axis.branching, axis.is_ordered), *_kind(factor))
        matrix = factor_matrix(leaves)
        energies = sum(leaves.energy(level) * projection(axis, level) for level in levels)
        np.testing.assert_allclose(matrix.T @ matrix, energies, atol=1e-9)


def _kind(factor: Factor) -> tuple[int, bool]:
    return factor.level, factor.is_contrast


@given(axes(30))
def test_norms_are_those_of_every_cell(axis: Axis) -> None:
    for factor in factors(axis):
        columns = abs(factor_matrix(factor)[:, : axis.size])
        np.testing.assert_array_equal((columns > 0).sum(axis=0), factor.l0)
        np.testing.assert_array_equal(columns.sum(axis=0), factor.l1)
        np.testing.assert_array_equal((columns**2).sum(axis=0), factor.l2_squared)
        np.testing.assert_array_equal(columns.max(axis=0), factor.linf)


@given(axes(12))
def test_relations_are_all_ways_in_which_two_cells_lie(axis: Axis) -> None:
    for factor in factors(axis):
        columns = factor_matrix(factor)[:, : axis.size].astype(int).T.tolist()
        found = {_relation(one, two) for one in columns for two in columns if one != two}
        assert found == {_sorted(relation) for relation in factor.others}
        assert _relation(columns[0], columns[0]) == _sorted(factor.same) or len(columns) > 1
        assert factor.merges == (len({tuple(column) for column in columns}) < len(columns))


def _relation(one: list[int], two: list[int]) -> tuple[tuple[int, int, int], ...]:
    pairs = [(u, v) for u, v in zip(one, two, strict=True) if u or v]
    flip = -1 if len(pairs) == 1 and pairs[0][0] < 0 else 1  # of two children one is subtracted
    pairs = sorted((u * flip, v * flip) for u, v in pairs)
    if all(abs(u) + abs(v) == 1 for u, v in pairs):
        pairs = sorted((abs(u), abs(v)) for u, v in pairs)
    return tuple((u, v, pairs.count((u, v))) for u, v in sorted(set(pairs)))


def _sorted(relation: tuple[tuple[int, int, int], ...]) -> tuple[tuple[int, int, int], ...]:
    return tuple(sorted(entry for entry in relation if entry[2]))


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
    if all(abs(e) < 2**63 for e in exact):
        assert max(map(abs, exact)) <= part.largest * sum(map(abs, table))


def test_an_axis_has_cells() -> None:
    with pytest.raises(ValueError, match="at least one cell"):
        Axis.nominal(0)
    with pytest.raises(ValueError, match="two children"):
        Axis.ordered(4, 1)
