"""Slices of noise of several numbers."""

from __future__ import annotations

from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from dpframe.aggregates.noise import box_slices, noise_law, uniform_slices
from dpframe.mechanisms import CombinedNoise, DiscreteGaussian
from dpframe.mechanisms.combined import Boxes


@pytest.mark.parametrize("whole", [True, False])
def test_both_sides_of_what_is_uniform_are_alike_and_rounding_makes_neither_smaller(
    whole: bool,
) -> None:
    ends = np.array([1.0, 2.5])
    slices = uniform_slices(np.array([0.25, 0.75]), (), -ends, ends, 0.5, whole)
    for x in np.arange(-3.0, 3.0, 0.125):
        below, above = slices.below(np.array(x)), slices.above(np.array(-x))
        assert below.tolist() == above.tolist()
        if not whole:
            assert (below >= np.clip((x + ends) / (2 * ends), 0.0, 1.0)).all()
    middle = 0.5 - 0.25 / (2 * ends) if whole else 0.5 + 0.25 / (2 * ends)
    assert slices.below(np.array(0.0)).tolist() == middle.tolist()


def test_a_number_that_two_parts_have_is_in_the_slices_of_both() -> None:
    """a + b beside b, each even from -2.5 to 2.5; the sum is rounded, so half a step is added."""
    boxes = Boxes(np.array([2.0]), np.array([1.0]), (1, 1), 1)
    slices = box_slices(boxes, np.array([[1.0, 1.0], [0.0, 1.0]]), [1.0, 1.0])
    (b,) = slices.others
    assert slices.weights @ b**2 == pytest.approx(25 / 12, rel=0.01)
    for x in (0.5, 2.0, 4.0):
        beyond = (5.0 - (x - 0.5)) ** 2 / 50  # of a triangle
        assert slices.weights @ slices.above(np.array(x)) == pytest.approx(beyond, rel=0.01)


ROWS = [(1, 0, 0), (1, 1, 0), (-1, 2, 3)]
STEPS = [Fraction(1), Fraction(1, 8), Fraction(5)]


@pytest.mark.parametrize("draws", [(0, 0), (0, 0, 0), (0, 0, 1), (0, 1, 0)])
def test_combinations_of_gaussian_numbers_are_normal(draws: tuple[int, ...]) -> None:
    """By the sum of all their squared factors; numbers of several draws are independent."""
    law = DiscreteGaussian(Fraction(10**6))
    numbers = len(draws)
    parts = [
        (CombinedNoise(law, row, 1), step, draw)
        for row, step, draw in zip(ROWS, STEPS, draws, strict=False)
    ]
    slices = noise_law(parts).slices(0.05, (1.0,) * (numbers - 1))
    rows = np.zeros((numbers, 2, 3))
    for place, draw in enumerate(draws):
        rows[place, draw] = np.array(ROWS[place]) * float(STEPS[place])
    assert slices.weights.sum() == pytest.approx(1.0)
    for turns in ((0.0, 0.0), (1.0, -0.125), (-6.0, 0.5)):
        used = turns[: numbers - 1]
        shift = np.tensordot(used, np.stack(slices.others), 1)
        whole = rows[0] - np.tensordot(used, rows[1:], 1)
        deviation = 10**3 * float(np.sqrt((whole**2).sum()))
        for reach in (0.5, 1.0, 2.0, 3.0):
            found = slices.outside(shift - reach * deviation, shift + reach * deviation)
            assert found == pytest.approx(2 * NormalDist().cdf(-reach), abs=2e-3, rel=0.02)
