"""Slices of noise of several numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.aggregates.joint_slices import uniform_slices


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
