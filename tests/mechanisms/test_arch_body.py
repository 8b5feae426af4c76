"""Sections of the hull of an arch: areas, ends and moments, by adding up over a fine grid."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpframe.mechanisms.discrete_hull import (
    area,
    ends_at,
    moment_of_square,
    moment_of_sum,
    reach_at,
    second_moments,
    square_above,
    sum_above,
)

SIZE = 1200
_MIDDLES = (2.0 * np.arange(SIZE) + 1.0) / SIZE - 1.0
X, Y = np.meshgrid(_MIDDLES, _MIDDLES, indexing="ij")
each_count = pytest.mark.parametrize("a", [-1.0, -0.7, -0.2, 0.0, 0.4, 0.95, 1.0])


def section(a: float) -> NDArray[np.bool_]:
    """By the two inequalities of `dpframe.samplers.box`."""
    upper = (1 - Y) * (1 - a) >= np.maximum(0, 2 * np.abs(X) - 1 - a) ** 2
    lower = (1 + Y) * (1 + a) >= np.maximum(0, 2 * np.abs(X) - 1 + a) ** 2
    return np.asarray(upper & lower)


@each_count
def test_a_section_has_its_area_and_moments(a: float) -> None:
    inside, count = section(a), np.array(a)
    assert inside.mean() == pytest.approx(float(area(count)), abs=2e-3)
    for power in (2, 4):
        found = (X[inside] ** power).mean()
        assert found == pytest.approx(float(moment_of_sum(count, power)), abs=2e-3)
    for power in (1, 2, 3, 4):
        found = (Y[inside] ** power).mean()
        assert found == pytest.approx(float(moment_of_square(count, power)), abs=3e-3)


@each_count
@pytest.mark.parametrize("u", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_section_has_its_tails(a: float, u: float) -> None:
    inside, count = section(a), np.array(a)
    assert (X[inside] > u).mean() == pytest.approx(float(sum_above(count, np.array(u))), abs=2e-3)
    for place in (u, -u):
        found = (Y[inside] > place).mean()
        assert found == pytest.approx(float(square_above(count, np.array(place))), abs=3e-3)


@each_count
def test_a_section_lies_between_its_ends(a: float) -> None:
    inside = section(a)
    low, high = ends_at(np.array(a), X)
    assert (inside == ((low <= Y) & (high >= Y)))[np.abs(X) < 0.999].mean() > 0.999
    reach = reach_at(np.array(a), Y)
    assert (inside == (np.abs(X) <= reach)).mean() > 0.999


@pytest.mark.parametrize("sharing", [1, 2, 5])
def test_second_moments_are_those_of_the_whole(sharing: int) -> None:
    """Over all counts, as likely as products of the areas of their sections."""
    counts = (2.0 * np.arange(20_000) + 1.0) / 20_000 - 1.0
    weights = area(counts) ** sharing
    weights /= weights.sum()
    expected = (
        weights @ counts**2,
        weights @ moment_of_sum(counts, 2),
        weights @ moment_of_square(counts, 2),
    )
    found = second_moments(sharing)
    assert [float(part) for part in found] == pytest.approx(list(expected), abs=1e-7)


def test_of_one_arch_they_are_these() -> None:
    assert second_moments(1) == (Fraction(11, 35), Fraction(163, 700), Fraction(74, 245))
