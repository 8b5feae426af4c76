"""Selection: exact decisions with scripted bits, extreme scores, and a rough look at the laws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpframe.samplers import exponential_mechanism, permute_and_flip
from dpframe.samplers.selection import _gaps

from .scripted import Script

LOW, HIGH = -(1 << 63), (1 << 63) - 1
ONES = (1 << 64) - 1


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def flip_law(gaps: list[float]) -> list[float]:
    """Permute-and-flip by summing over all sets of successes."""
    p = [math.exp(-g) for g in gaps]
    law = [0.0] * len(p)
    for successes in product((0, 1), repeat=len(p)):
        weight = math.prod(a if s else 1 - a for a, s in zip(p, successes, strict=True))
        for i, s in enumerate(successes):
            if s and weight:
                law[i] += weight / sum(successes)
    return law


@given(st.lists(st.integers(LOW, HIGH), min_size=1, max_size=20))
def test_gaps_never_overflow(scores: list[int]) -> None:
    gaps = _gaps(int64(*scores), Fraction(1))
    assert [int(g) for g in gaps] == [max(scores) - s for s in scores]


def test_gaps_of_a_strided_view() -> None:
    assert _gaps(np.arange(10, dtype=np.int64)[::3], Fraction(1)).tolist() == [9, 6, 3, 0]


@pytest.mark.parametrize("scale", [Fraction(17, 10), Fraction(1), Fraction(10**9, 7)])
def test_flip_that_16_bits_leave_open_is_settled_exactly(scale: Fraction) -> None:
    scores = int64(0, -1)
    with mpmath.workprec(300):
        p = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        boundary = int(mpmath.floor(p * mpmath.mpf(2) ** 128))
    word, low = divmod(boundary, 1 << 64)
    first, rest = word >> 48, word << 16 & ONES
    choose_last = 1 << 63
    for further, success in (
        ([rest - (1 << 16)], True),
        ([rest + (1 << 16)], False),
        ([rest, low - 1], True),
        ([rest, low + 1], False),
    ):
        source = Script(u16=[3, first], single=[*further, choose_last])
        assert permute_and_flip(scores, scale, source) == (1 if success else 0)


def test_flip_with_certain_lanes_needs_no_more_bits() -> None:
    scores = int64(5, 4, 3)  # p = 1, 0.37, 0.14
    draws = Script(u16=[7, 60_000, 60_000], single=[0])
    assert permute_and_flip(scores, Fraction(1), draws) == 0
    draws = Script(u16=[7, 60_000, 5], single=[1 << 63])
    assert permute_and_flip(scores, Fraction(1), draws) == 2
    assert draws.exhausted()


def test_the_best_succeeds_even_with_the_largest_uniform() -> None:
    source = Script(u16=[0xFFFF, 0xFFFF], single=[ONES, 0])
    assert permute_and_flip(int64(9, LOW), Fraction(1), source) == 0


def test_extreme_scores_and_scales() -> None:
    scores = int64(LOW, HIGH, LOW, 0)
    for scale in (Fraction(1, 1024), Fraction(1), Fraction(1 << 40)):
        assert permute_and_flip(scores, scale) == 1
        assert exponential_mechanism(scores, scale) == 1
    wide = Fraction(1 << 62)  # gaps of 4 and 2 scales: each index has a probability above 0.008
    assert {permute_and_flip(scores, wide) for _ in range(4000)} == {0, 1, 2, 3}
    assert {exponential_mechanism(scores, wide) for _ in range(4000)} == {0, 1, 2, 3}


@pytest.mark.parametrize("select", [permute_and_flip, exponential_mechanism])
def test_what_cannot_be_selected_from_is_refused(select) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="non-empty"):
        select(int64(), Fraction(1))
    with pytest.raises(ValueError, match="int64"):
        select(np.zeros(3), Fraction(1))
    for scale in (Fraction(1, 1025), Fraction((1 << 62) + 1)):
        with pytest.raises(ValueError, match="range"):
            select(int64(1, 2), scale)
    for scale in (Fraction(1, 1024), Fraction(1 << 62)):
        assert select(int64(1, 1 << 40), scale) in (0, 1)


def _agrees(counts: np.ndarray, law: list[float]) -> None:
    """Every frequency within 7 standard deviations: false alarm below 2.6e-12 each."""
    n = counts.sum()
    for count, p in zip(counts, law, strict=True):
        assert abs(count - n * p) <= 7 * math.sqrt(n * p * (1 - p)) + 1


def test_the_laws_roughly() -> None:
    scores, scale, n = int64(3, 3, 1, 0, -4), Fraction(17, 10), 4000
    gaps = [(3 - int(s)) / 1.7 for s in scores]
    flips = np.bincount([permute_and_flip(scores, scale) for _ in range(n)], minlength=5)
    _agrees(flips, flip_law(gaps))
    weights = int64(5, 1, 1, 30, 1000)
    masses = [w * math.exp(-g) for w, g in zip(weights, gaps, strict=True)]
    chosen = [exponential_mechanism(scores, scale, weights) for _ in range(n)]
    _agrees(np.bincount(chosen, minlength=5), [m / sum(masses) for m in masses])


def test_many_candidates_across_blocks() -> None:
    n = 100_000
    scores = np.zeros(n, np.int64)
    scores[-3:] = 60  # e**60 = 1e26 against 1e5: the rest together are below 1e-20
    for select in (permute_and_flip, exponential_mechanism):
        chosen = {select(scores, Fraction(1)) for _ in range(40)}
        assert chosen <= {n - 3, n - 2, n - 1}
