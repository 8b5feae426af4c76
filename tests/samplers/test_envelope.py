"""The exponential mechanism: envelopes that cover, exact coins with scripted bits, many groups."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpframe.samplers import (
    exponential_mechanism,
    exponential_mechanism_each,
    exponential_mechanism_runs,
)
from dpframe.samplers.selection import _accept, _envelopes, _first_above, _gaps_in_groups

from .scripted import Script

LOW, HIGH = -(1 << 63), (1 << 63) - 1
ONES = (1 << 64) - 1
WEIGHTS = st.integers(1, 1 << 62) | st.integers(0, 62).map(lambda bits: 1 << bits)
SCALES = st.fractions(Fraction(1, 1024), 10**9, max_denominator=2000) | st.just(Fraction(1 << 62))


def int64(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def value(weight: int, gap: int, scale: Fraction, shift: int) -> mpmath.mpf:
    """v = 2**shift weight exp(-gap / scale)."""
    x = mpmath.mpf(gap) * scale.denominator / scale.numerator
    return weight * mpmath.exp(-x) * mpmath.mpf(2) ** shift


def groups(scores: list[int]) -> st.SearchStrategy[list[list[tuple[int, int]]]]:
    candidate = st.tuples(st.sampled_from(scores) | st.integers(LOW, HIGH), WEIGHTS)
    return st.lists(st.lists(candidate, min_size=1, max_size=12), min_size=1, max_size=6)


# ------------------------------------------------------------------------------------ envelopes


@given(groups([0, 1, -1, 5, -700, -(10**6)]), SCALES)
def test_envelopes_cover_their_values_closely(
    made: list[list[tuple[int, int]]], scale: Fraction
) -> None:
    scores, weights = (int64(*(c[i] for g in made for c in g)) for i in (0, 1))
    sizes = int64(*map(len, made))
    gaps = _gaps_in_groups(scores, sizes)
    envelopes, shifts = _envelopes(gaps, sizes, float(1 / scale), weights)
    lane = 0
    for group, shift in zip(made, shifts.tolist(), strict=True):
        best, total = max(score for score, _ in group), 0
        for score, weight in group:
            assert int(gaps[lane]) == best - score
            with mpmath.workprec(200):
                exact = value(weight, best - score, scale, shift)
                assert exact <= int(envelopes[lane]) <= exact * (1 + 2.0**-19.8) + 1
                if envelopes[lane] >= 1 << 24:
                    assert exact / int(envelopes[lane]) > 1 - 2.0**-19
            total += int(envelopes[lane])
            lane += 1
        assert 2**59 <= total <= 2**61


def test_envelopes_of_one_group_without_weights() -> None:
    gaps = np.array([0, 10**6, 0, ONES], np.uint64)
    envelopes, shifts = _envelopes(gaps, int64(4), 1.0, None)
    assert envelopes[[1, 3]].tolist() == [1, 1]
    assert shifts.tolist() == [58]
    assert 2**58 < envelopes[0] == envelopes[2] < 2**58 * (1 + 2.0**-19)


# ---------------------------------------------------------------------------------------- coins


@pytest.mark.parametrize(
    ("weight", "x", "shift", "envelope"),
    [
        (1, Fraction(1, 3), 58, 1 << 58),
        (3, Fraction(100, 7), 50, (1 << 51) + 12345),
        (1 << 62, Fraction(600), 3, 1),
        ((1 << 62) - 1, Fraction(1), -3, (1 << 59) + 1),
        (5, Fraction(0), 2, 23),
        (1 << 62, Fraction(0), -20, (1 << 42) + 1),
        (7, Fraction(900), 59, 1),
    ],
)
def test_a_proposal_is_accepted_with_just_its_probability(
    weight: int, x: Fraction, shift: int, envelope: int
) -> None:
    with mpmath.workprec(3000):
        p = value(weight, x.numerator, Fraction(x.denominator), shift) / envelope
        assert 0 < p < 1
        boundary = int(mpmath.floor(p * mpmath.mpf(2) ** 192))
    middle, low = boundary >> 64 & ONES, boundary & ONES
    first, rest = boundary >> 176, (boundary >> 128) << 16 & ONES
    wanted = (weight, x, shift)
    for further, accepted in (
        ([rest, middle, low - 1], True),
        ([rest, middle, low + 1], False),
        ([rest, middle + 1], False),
        ([rest, middle - 1], True),
        ([rest + (1 << 16)], False),
        ([rest - (1 << 16)], True),
    ):
        if min(further) < 0:  # the boundary itself has zeros there
            continue
        source = Script(single=further)
        assert _accept(first, envelope, wanted, source) is accepted
        assert source.exhausted()


def test_a_value_that_fills_its_envelope_is_always_accepted() -> None:
    assert _accept(0xFFFF, 20, (5, Fraction(0), 2), Script(single=[ONES]))
    assert _accept(0xFFFF, 5, (20, Fraction(0), -2), Script(single=[ONES]))


def test_sixteen_bits_settle_all_but_the_last_of_their_values() -> None:
    scores = int64(0, 0)
    proposals = {0: 0, 1 << 58: 0, (1 << 59) - 1: 1}
    for point, chosen in proposals.items():
        source = Script(u64=[point], u16=[0xFFFE])
        assert exponential_mechanism(scores, Fraction(1), None, source) == chosen
        assert source.exhausted()
    source = Script(u64=[0, 1 << 59], u16=[0xFFFF, 0], single=[ONES])  # rejected, then again
    assert exponential_mechanism(scores, Fraction(1), None, source) == 1
    assert source.exhausted()
    source = Script(u64=[0], u16=[0xFFFF], single=[0])
    assert exponential_mechanism(scores, Fraction(1), None, source) == 0
    assert source.exhausted()


def test_a_small_envelope_is_never_accepted_unseen() -> None:
    """Candidate 1 has v = 2**59 e**-50 = 1e-4 under an envelope of 1, at the end of the sums."""
    scores, scale = int64(0, -50), Fraction(1)
    envelopes, shifts = _envelopes(_gaps_in_groups(scores, int64(2)), int64(2), 1.0, None)
    assert envelopes.tolist()[1] == 1
    assert shifts.tolist() == [59]
    last = int(envelopes.sum()) - 1
    with mpmath.workprec(200):
        word = int(mpmath.exp(-50) * mpmath.mpf(2) ** (59 + 64))
    first, rest = word >> 48, word << 16 & ONES
    refused = Script(u64=[last, 0], u16=[first, 5], single=[rest + (1 << 16)])
    assert exponential_mechanism(scores, scale, None, refused) == 0
    assert refused.exhausted()
    taken = Script(u64=[last], u16=[first], single=[rest - (1 << 16)])
    assert exponential_mechanism(scores, scale, None, taken) == 1
    assert taken.exhausted()


# --------------------------------------------------------------------------------------- places


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=9), min_size=1, max_size=9))
def test_the_first_place_above_a_point(parts: list[list[int]]) -> None:
    """Every point of every group, with sums that wrap."""
    flat = np.array([ONES - 40, *(w for part in parts for w in part)], np.uint64)
    sums = np.cumsum(flat, dtype=np.uint64)
    sizes = int64(*map(len, parts))
    last = np.cumsum(sizes)
    head = last - sizes + 1
    before = sums[head - 1]
    for i, part in enumerate(parts):
        expected = [int(head[i]) + j for j, w in enumerate(part) for _ in range(w)]
        points = before[i] + np.arange(sum(part)).astype(np.uint64)
        same = [np.full(len(expected), a[i]) for a in (before, head, last)]
        assert _first_above(sums, same[0], points, same[1], same[2]).tolist() == expected


def test_each_group_chooses_among_its_own() -> None:
    sizes = np.arange(500) % 7 + 1
    heads = np.cumsum(sizes) - sizes
    best = heads + np.arange(500) % sizes
    scores = np.arange(500).repeat(sizes) * 10**12
    scores[best] += 10**6
    weights = np.full(scores.size, 1 << 40)
    weights[best] = 1
    assert (exponential_mechanism_runs(scores, sizes, Fraction(3), weights) == best).all()
    assert (exponential_mechanism_runs(scores, sizes, Fraction(3)) == best).all()


def test_no_group_at_all() -> None:
    assert exponential_mechanism_runs(int64(), int64(), Fraction(1)).tolist() == []
    assert exponential_mechanism_runs(int64(), int64(), Fraction(1), int64()).tolist() == []


def test_a_single_candidate_needs_no_luck() -> None:
    assert exponential_mechanism(int64(3), Fraction(1), None, Script()) == 0
    assert exponential_mechanism(int64(3, 9), Fraction(1), int64(7, 0), Script()) == 0
    chosen = exponential_mechanism_runs(int64(3, 3), int64(1, 1), Fraction(1), None, Script())
    assert chosen.tolist() == [0, 1]


def test_groups_do_not_see_each_others_scores() -> None:
    """One group of huge scores and weights beside one of tiny ones, both fair coins."""
    scores, weights = int64(HIGH, HIGH, LOW, LOW), int64(1 << 62, 1 << 62, 1, 1)
    many = [np.tile(part, 3000) for part in (scores, int64(2, 2))]
    chosen = exponential_mechanism_runs(*many, Fraction(1), np.tile(weights, 3000))
    heads = (chosen - np.arange(6000) * 2).reshape(-1, 2).sum(axis=0)
    assert (np.abs(heads - 1500) <= 7 * (3000 / 4) ** 0.5).all()


# --------------------------------------------------------------------------------- weights, laws


def test_weight_zero_is_never_chosen_and_does_not_count_as_best() -> None:
    scores, weights = int64(HIGH, 5, HIGH, 5), int64(0, 1, 0, 1 << 62)
    assert {exponential_mechanism(scores, Fraction(1), weights) for _ in range(50)} == {3}
    assert exponential_mechanism(scores, Fraction(1), int64(0, 3, 0, 0)) == 1
    both, sizes = int64(*scores.tolist(), HIGH, 0), int64(4, 2)
    chosen = exponential_mechanism_runs(both, sizes, Fraction(1), int64(0, 1, 0, 1 << 62, 0, 9))
    assert chosen.tolist() == [3, 5]


@pytest.mark.parametrize("weights", [int64(1), int64(1, -1), int64(1, (1 << 62) + 1), int64(0, 0)])
def test_weights_that_make_no_sense_are_refused(weights: NDArray[np.int64]) -> None:
    with pytest.raises(ValueError, match=r"weights|non-empty"):
        exponential_mechanism(int64(1, 2), Fraction(1), weights)


@pytest.mark.parametrize("sizes", [int64(3), int64(2, 0), int64(0, 2), int64(3, -1)])
def test_sizes_that_make_no_sense_are_refused(sizes: NDArray[np.int64]) -> None:
    with pytest.raises(ValueError, match="non-empty"):
        exponential_mechanism_runs(int64(1, 2), sizes, Fraction(1))


def test_a_group_without_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="non-empty"):
        exponential_mechanism_runs(int64(1, 2, 3), int64(1, 2), Fraction(1), int64(0, 2, 3))


def test_the_law_roughly() -> None:
    """Every frequency within 7 standard deviations, in groups of two kinds in turn."""
    scores, weights = int64(3, 3, 1, 0, -4), int64(5, 1, 1, 30, 1000)
    masses = np.array([w * math.exp(s / 1.7) for w, s in zip(weights, scores, strict=True)])
    n, sizes = 4000, np.tile([5, 3], 4000)
    both = [np.tile(np.append(part, part[2:]), n) for part in (scores, weights)]
    chosen = exponential_mechanism_runs(both[0], sizes, Fraction(17, 10), both[1])
    places = chosen - (np.cumsum(sizes) - sizes)
    for i, law in enumerate((masses, masses[2:])):
        p = law / law.sum()
        counts = np.bincount(places[i::2], minlength=law.size)
        assert (np.abs(counts - n * p) <= 7 * np.sqrt(n * p * (1 - p)) + 1).all()
    alone = exponential_mechanism_each(np.tile(scores, (n, 1)), Fraction(17, 10))
    p = np.exp(scores / 1.7) / np.exp(scores / 1.7).sum()
    counts = np.bincount(alone, minlength=5)
    assert (np.abs(counts - n * p) <= 7 * np.sqrt(n * p * (1 - p)) + 1).all()
