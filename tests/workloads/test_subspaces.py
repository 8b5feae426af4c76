"""Maps that multiply what lies in each subspace of the axes of a table."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.workloads.rebuild import Filter, sum_margins

Kept = tuple[bool, ...]
shapes = st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple)


def part(table: Any, axes: Kept) -> Any:
    """What lies in a subspace: along each axis of it differences from the mean, else means."""
    for at, differs in enumerate(axes):
        mean = table.mean(axis=at, keepdims=True)
        table = table - mean if differs else np.broadcast_to(mean, table.shape)
    return table


def sets_of(axes: int) -> list[Kept]:
    return list(itertools.product((False, True), repeat=axes))


@given(shapes, st.integers(0, 2**32), st.integers(1, 4))
def test_parts_are_multiplied(shape: tuple[int, ...], seed: int, different: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(0, 1, shape)
    values = rng.normal(0, 1, different)
    factors = {axes: float(rng.choice(values)) for axes in sets_of(len(shape))}
    kept = table.copy()
    found = Filter(shape, factors).of(table)
    assert (table == kept).all()
    expected = sum(factor * part(table, axes) for axes, factor in factors.items())
    assert found == pytest.approx(expected, abs=1e-9)


def test_factors_that_are_all_the_same_multiply_the_table() -> None:
    table = np.arange(12.0).reshape(3, 4)
    assert Filter((3, 4), dict.fromkeys(sets_of(2), 2.0)).of(table) == pytest.approx(2 * table)
    assert not Filter((3, 4), dict.fromkeys(sets_of(2), 0.0)).of(table).any()


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_factors_in_another_unit_give_the_same_in_that_unit(unit: float) -> None:
    table = np.arange(24.0).reshape(2, 3, 4) ** 2
    factors = {axes: 1.0 + n / 3 for n, axes in enumerate(sets_of(3))}
    scaled = {axes: unit * factor for axes, factor in factors.items()}
    found = Filter(table.shape, scaled).of(table)
    assert found / unit == pytest.approx(Filter(table.shape, factors).of(table), rel=1e-12)


@given(shapes, st.integers(0, 2**32), st.data())
def test_margins_are_joined(shape: tuple[int, ...], seed: int, data: Any) -> None:
    kept = data.draw(st.lists(st.sampled_from(sets_of(len(shape))), unique=True))
    rng = np.random.default_rng(seed)
    margins = {
        k: rng.normal(0, 1, [n if keep else 1 for n, keep in zip(shape, k, strict=True)])
        for k in kept
    }
    before = {k: table.copy() for k, table in margins.items()}
    expected = sum((np.broadcast_to(table, shape) for table in margins.values()), np.zeros(shape))
    assert sum_margins(shape, margins) == pytest.approx(expected)
    assert all((margins[k] == table).all() for k, table in before.items())
