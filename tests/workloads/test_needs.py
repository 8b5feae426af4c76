"""Norms of queries in each subspace, in closed form, against the queries written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads import Axis
from dpframe.workloads.axes import KINDS, Kind, flat, needs_of, outputs
from tests.workloads.matrices import axes, nodes, projection, queries
from tests.workloads.norms import cell_norms, prefix_norms, variances_of


def norms(axis: Axis, kind: Kind) -> np.ndarray:
    """The squared norm of each query in each subspace. A child of a node of which some have no
    cells gets an equal part among those that do, so leaves without cells take what makes the
    query's mean below the node that of the children with cells.
    """
    found = []
    for query in queries(axis, kind):
        full = np.zeros(axis.leaves)
        full[: axis.size] = query
        for level in range(axis.height, 0, -1):
            means = nodes(axis, level) @ full / axis.width(level)
            children = axis.nodes(level)
            first = (axis.nodes(level - 1) - 1) * axis.branching
            rest = means[first:children].mean()
            start, stop = children * axis.width(level), (first + axis.branching) * axis.width(level)
            full[start:stop] = rest
        found.append([full @ projection(axis, i) @ full for i in range(axis.height + 1)])
    return np.array(found)


@pytest.mark.parametrize("kind", KINDS)
@given(axis=axes(20))
def test_needs_are_sums_over_queries(kind: Kind, axis: Axis) -> None:
    expected = norms(axis, kind).sum(axis=0)
    np.testing.assert_allclose([float(x) for x in needs_of(axis, kind)], expected, atol=1e-9)
    assert outputs(axis, kind) == len(queries(axis, kind))
    mean = Fraction(int(queries(axis, kind).sum()), outputs(axis, kind))
    assert flat(axis, kind) == (1 if kind in ("total", "cells") else mean)


@given(axes(20))
def test_norms_of_each_cell_and_prefix(axis: Axis) -> None:
    np.testing.assert_allclose(np.array(cell_norms(axis)).T, norms(axis, "cells"), atol=1e-9)
    np.testing.assert_allclose(np.array(prefix_norms(axis)).T, norms(axis, "prefixes"), atol=1e-9)


@given(axes(12))
def test_all_norms_of_a_query_are_its_own_where_all_leaves_are_cells(axis: Axis) -> None:
    full = Axis(axis.leaves, axis.branching, axis.is_ordered)
    assert sum(needs_of(full, "cells")) == full.size
    assert sum(needs_of(full, "total")) == full.size
    assert sum(needs_of(full, "prefixes")) == full.size * (full.size + 1) // 2


@given(st.integers(2, 10**6), st.integers(2, 16))
def test_large_axes_take_no_time(size: int, branching: int) -> None:
    axis = Axis.ordered(size, branching)
    for kind in KINDS:
        assert all(need >= 0 for need in needs_of(axis, kind))


def test_ranges_are_not_listed() -> None:
    with pytest.raises(ValueError, match="one by one"):
        variances_of([Axis.ordered(3)], ["ranges"], {})
