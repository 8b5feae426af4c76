"""Report noisy max: its law, its privacy by enumeration, its accuracy and cost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.mechanisms import ReportNoisyMax
from dpframe.mechanisms.noise import choose_each, choose_top_each
from dpframe.samplers import OS
from dpframe.samplers.selection import noisy_winner
from tests.mechanisms.laws import noisy_max_law

K = np.arange(-300, 301)


@pytest.mark.parametrize("scores", [[0, 0, 0], [0, 1, 5], [3, 3, 2, -4], [0, 7]])
def test_cost_is_range_over_scale_whatever_the_change(scores: list[int]) -> None:
    rng = np.random.default_rng(1)
    base = noisy_max_law(scores, 2.0)
    for _ in range(12):
        change = rng.integers(-1, 3, len(scores))
        reach = int(change.max() - change.min())
        other = noisy_max_law([s + int(c) for s, c in zip(scores, change, strict=True)], 2.0)
        worst = max(abs(math.log(a / b)) for a, b in zip(base, other, strict=True))
        cost = ReportNoisyMax(Fraction(2)).epsilon(Fraction(reach)) if reach else Fraction(0)
        assert worst <= float(cost) + 1e-9


def test_the_cost_is_attained() -> None:
    """A candidate far behind that gains all of the range: not more noise than needed."""
    base, other = noisy_max_law([0, -30], 2.0), noisy_max_law([0, -28], 2.0)
    gained = math.log(other[1] / base[1])
    assert 0.85 < gained / float(ReportNoisyMax(Fraction(2)).epsilon(Fraction(2))) <= 1


def test_scale_and_costs() -> None:
    mechanism = ReportNoisyMax.for_pure(Fraction(2), Fraction("0.1"))
    assert mechanism.scale == 20
    assert mechanism.epsilon(Fraction(2)) == Fraction(1, 10)
    assert mechanism.rho(Fraction(2)) == Fraction("0.005")
    with pytest.raises(InvalidBudget):
        ReportNoisyMax(Fraction(2) ** 57)


@pytest.mark.parametrize("scale", ["1/3", "2", "17/3"])
@pytest.mark.parametrize("candidates", [2, 10])
def test_accuracy_is_the_exact_tail_of_a_difference_summed(scale: str, candidates: int) -> None:
    q = math.exp(-1 / float(Fraction(scale)))
    pmf = (1 - q) / (1 + q) * q ** np.abs(K).astype(float)
    difference = np.convolve(pmf, pmf)  # of -600 .. 600
    a = ReportNoisyMax(Fraction(scale)).accuracy(0.95, candidates)
    tails = [(candidates - 1) * float(difference[600 + int(b) :].sum()) for b in (a, a - 1)]
    assert tails[0] <= 0.05 + 1e-12
    assert tails[1] > 0.05


def test_accuracy_of_one_candidate_and_of_no_confidence() -> None:
    assert ReportNoisyMax(Fraction(5)).accuracy(0.95, 1) == 0
    assert 1e9 < ReportNoisyMax(Fraction(10**9)).accuracy(0.95, 1000) < 1e11
    with pytest.raises(InvalidBounds):
        ReportNoisyMax(Fraction(5)).accuracy(1.0, 3)


def test_choices_follow_the_law_roughly() -> None:
    mechanism, n = ReportNoisyMax(Fraction(2)), 3000
    law = mechanism.kernel_law
    chosen = [choose_each(law, np.array([[0, 1, 2]], np.int64)).item() for _ in range(n)]
    expected = np.array(noisy_max_law([0, 1, 2], 2.0))
    counts = np.bincount(chosen, minlength=3)
    assert np.all(np.abs(counts - n * expected) <= 7 * np.sqrt(n * expected * (1 - expected)))
    top = choose_top_each(law, np.array([[0, 100, 200, 300]], np.int64), 2)[0].tolist()
    assert top == [3, 2]


FAR = 1 << 62


@pytest.mark.parametrize(
    ("noise", "gaps", "wide", "winners"),
    [
        ([5, -3, 5], [0, 0, 0], {}, {0, 2}),
        ([0, 0], [0, 2**64 - 1], {}, {0}),
        ([-FAR + 1, FAR - 1], [0, 2**63 - 1], {}, {0}),
        ([-FAR + 1, FAR - 1], [0, 2**63 - 3], {}, {1}),
        ([-FAR + 1, FAR - 1], [0, 2**63 - 2], {}, {0, 1}),
        ([7, 0], [0, 0], {1: 2**70}, {1}),
        ([7, 0], [0, 0], {1: -(2**70)}, {0}),
        ([0, 0], [0, 0], {0: 2**70, 1: 2**70}, {0, 1}),
        ([0, 0], [0, 5], {0: 2**70, 1: 2**70}, {0}),
        ([0, 9], [0, 2**63], {0: -(2**65)}, {1}),
    ],
)
def test_sums_beyond_int64_are_compared_as_they_are(
    noise: list[int], gaps: list[int], wide: dict[int, int], winners: set[int]
) -> None:
    found = {
        noisy_winner(np.array(noise, np.int64), np.array(gaps, np.uint64), wide, OS)
        for _ in range(60)
    }
    assert found == winners
