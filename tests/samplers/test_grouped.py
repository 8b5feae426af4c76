"""Choices in many groups at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpframe.samplers import (
    exponential_mechanism_each,
    permute_and_flip_each,
    report_noisy_max_each,
)
from dpframe.samplers.selection import _one_of_each, flips
from dpframe.samplers.source import OS

LIMITS = [-(2**63), 2**63 - 1, 0]
EVERY = pytest.mark.parametrize(
    "select", [permute_and_flip_each, exponential_mechanism_each, report_noisy_max_each]
)


@EVERY
def test_each_row_chooses_among_its_own(select) -> None:  # type: ignore[no-untyped-def]
    scores = np.zeros((500, 7), np.int64)
    best = np.arange(500) % 7
    scores[np.arange(500), best] = 10**6
    assert (select(scores, Fraction(3)) == best).all()


@EVERY
def test_one_candidate_no_group_and_scores_at_the_limits(select) -> None:  # type: ignore[no-untyped-def]
    assert select(np.zeros((9, 1), np.int64), Fraction(1)).tolist() == [0] * 9
    assert select(np.zeros((0, 4), np.int64), Fraction(1)).tolist() == []
    assert select(np.array([LIMITS] * 50, np.int64), Fraction(2**20)).tolist() == [1] * 50


@EVERY
def test_what_is_no_matrix_or_out_of_range_is_refused(select) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="matrix"):
        select(np.zeros(3, np.int64), Fraction(1))
    with pytest.raises(ValueError, match="matrix"):
        select(np.zeros((3, 0), np.int64), Fraction(1))
    with pytest.raises(ValueError, match="range"):
        select(np.zeros((3, 2), np.int64), Fraction(1, 2**20))


@EVERY
def test_at_a_large_scale_every_candidate_is_chosen_about_as_often(select) -> None:  # type: ignore[no-untyped-def]
    chosen = select(np.zeros((6000, 3), np.int64), Fraction(2**20))
    counts = np.bincount(chosen, minlength=3)
    assert (np.abs(counts - 2000) <= 7 * (6000 * 2 / 9) ** 0.5).all()


def test_a_coin_without_a_gap_always_comes_up_and_one_with_a_huge_gap_never_does() -> None:
    gaps = np.array([0, 2**64 - 1] * 1000, np.uint64)
    assert flips(gaps, Fraction(2), OS).tolist() == [True, False] * 1000


def test_one_of_what_is_counted_is_chosen() -> None:
    counts = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 9]] * 100)
    assert _one_of_each(counts, OS).tolist() == [1, 0, 2] * 100


def test_noise_beyond_int64_wins_in_its_own_row_and_column(monkeypatch: pytest.MonkeyPatch) -> None:
    """Place 4 is the second row's second column, and place 6 the third row's first."""

    def drawn(scale: Fraction, n: int, source: object) -> tuple[np.ndarray, dict[int, int]]:
        return np.zeros(n, np.int64), {4: 2**70, 6: -(2**70), 11: 2**64 + 1}

    monkeypatch.setattr("dpframe.samplers.selection.discrete_laplace_wide", drawn)
    scores = np.array([[5, 0, 0], [5, 0, 0], [5, 4, 0], [5, 0, 0]], np.int64)
    for _ in range(3):
        assert report_noisy_max_each(scores, Fraction(1)).tolist() == [0, 1, 1, 2]
