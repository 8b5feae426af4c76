"""The best scales of numbers that rows that change move, against all scales on a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpframe.optimise.measurements import best_shares


def error(
    shares: Sequence[float],
    needs: Sequence[float],
    ratios: Sequence[float],
    conditions: Sequence[int],
    vectors: int,
) -> float:
    """What a row moves, squared, times what errors need of the noise."""
    stays = 0.0
    for condition in {*conditions}:
        mine = [i for i, other in enumerate(conditions) if other == condition]
        both, once = sum(shares[i] * ratios[i] for i in mine), sum(shares[i] for i in mine)
        stays += max(both, once) if condition else both
    norm = max(vectors * sum(shares), stays)
    return norm * sum(need / share for need, share in zip(needs, shares, strict=True))


def test_a_mean_under_change_one() -> None:
    """By hand: of (+-w, 0) and (+-w/2, +-1), with w = 1 for the sum; 1.41 and 1.22 times less noise
    than the squared norm of 2 that both ends of both numbers have.
    """
    count, total = best_shares([1.0, 1.0], [0.0, 4.0], [1, 1], 1)
    assert count / total == pytest.approx(3, rel=1e-6)  # a**2 = 3/4, as total is that of w/2


numbers = st.tuples(st.floats(0.05, 20), st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.integers(0, 2))


@given(st.lists(numbers, min_size=2, max_size=3), st.sampled_from([1, 2]))
@settings(max_examples=30)
def test_no_other_scales_have_less_error(
    numbers: list[tuple[float, float, int]], vectors: int
) -> None:
    needs, ratios, conditions = (list(item) for item in zip(*numbers, strict=True))
    best = best_shares(needs, ratios, conditions, vectors)
    least = error(best, needs, ratios, conditions, vectors)
    steps = np.geomspace(0.3, 3.0, 9)
    for factors in itertools.product(steps, repeat=len(best) - 1):
        shares = [best[0], *(b * f for b, f in zip(best[1:], factors, strict=True))]
        assert least <= error(shares, needs, ratios, conditions, vectors) * (1 + 1e-5)
