"""Laplace noise on a finer grid, rounded: its exact law, and draws that wrap."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.errors import InvalidBudget
from dpframe.mechanisms import DiscreteLaplace, RoundedLaplace
from dpframe.mechanisms.noise import noise as draw_noise

SCALES = ["1/1024", "0.3", "1", "2.5", "40", "1000/7"]


def fine_law(scale: Fraction, reach: int) -> dict[int, float]:
    """By adding up the fine law's probabilities."""
    fine = RoundedLaplace.fine
    rate = float(1 / (scale * fine))
    x = np.arange(-fine * reach - fine // 2, fine * reach + fine // 2 + 1)
    masses = np.exp(-rate * np.abs(x)) * math.expm1(rate) / (math.exp(rate) + 1)
    sums = masses.reshape(-1, fine).sum(axis=1)
    return dict(zip(range(-reach, reach + 1), sums.tolist(), strict=True))


@pytest.mark.parametrize("scale", SCALES[1:4])
def test_variance_and_quantiles_are_those_of_the_sums(scale: str) -> None:
    law = RoundedLaplace(Fraction(scale))
    exact = fine_law(Fraction(scale), 120)
    assert sum(exact.values()) == pytest.approx(1, rel=1e-9)
    variance = sum(x * x * p for x, p in exact.items())
    assert law.variance() == pytest.approx(variance, rel=1e-9)
    for confidence in (0.05, 0.5, 0.9, 0.95, 0.999):
        a = law.quantile(confidence)
        within = sum(p for x, p in exact.items() if abs(x) <= a)
        closer = sum(p for x, p in exact.items() if abs(x) <= a - 1)
        assert within >= confidence - 1e-9
        assert closer < confidence + 1e-9


@pytest.mark.parametrize("scale", SCALES)
def test_it_costs_what_the_noise_before_rounding_costs(scale: str) -> None:
    law = RoundedLaplace(Fraction(scale))
    assert law.epsilon(Fraction(3)) == 3 / law.scale
    assert law.variance() >= DiscreteLaplace(law.scale).variance()
    assert law != DiscreteLaplace(law.scale)
    assert law.name == "discrete_laplace"
    fine = law.fine
    before = DiscreteLaplace(law.scale * fine)
    for l1, l2_squared, linf in ((1, 1, 1), (3, 9, 3), (3, 3, 1), (12, 40, 5), (4, None, None)):
        squared = None if l2_squared is None else Fraction(l2_squared)
        largest = None if linf is None else Fraction(linf)
        assert law.rho(Fraction(l1), squared, largest) == before.rho(
            Fraction(l1 * fine),
            None if squared is None else squared * fine * fine,
            None if largest is None else largest * fine,
        )


@pytest.mark.parametrize("scale", SCALES[1:])
def test_neighbouring_outcomes_are_within_the_claim(scale: str) -> None:
    exact = fine_law(Fraction(scale), 30)
    bound = math.exp(1 / Fraction(scale)) * (1 + 1e-9)
    ratios = [exact[x] / exact[x + 1] for x in range(-30, 30) if exact[x + 1] > 1e-200]
    assert max(ratios) <= bound
    assert 1 / min(ratios) <= bound
    assert 1 < exact[0] / exact[1] < bound  # where it is better than noise on the integers


def test_the_largest_scale_is_that_of_the_fine_noise() -> None:
    RoundedLaplace(Fraction(2**45))
    with pytest.raises(InvalidBudget):
        RoundedLaplace(Fraction(2**46))


@pytest.mark.parametrize("scale", ["0.3", "1", "1000/7", str(2**40)])
def test_draws_have_the_variance(scale: str) -> None:
    law = RoundedLaplace(Fraction(scale))
    drawn = draw_noise(law.kernel_law, 40_000).astype(float)
    assert drawn.var() == pytest.approx(law.variance(), rel=0.15)  # 8 deviations or so
    assert abs(drawn.mean()) < 8 * math.sqrt(law.variance() / drawn.size)


def test_far_draws_are_rounded_before_they_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    fine = RoundedLaplace.fine
    far = {0: 2**62 + 5, 1: -(2**63) - 7, 2: 2**64 * fine + fine // 2 + 1, 3: 2**63 * fine}

    def drawn(scale: Fraction, n: int, source: object) -> tuple[np.ndarray, dict[int, int]]:
        return np.array([0, 1, 2, 3, -513, 512, 513], np.int64), far

    monkeypatch.setattr("dpframe.mechanisms.noise.discrete_laplace_wide", drawn)
    assert draw_noise(RoundedLaplace(Fraction(1)).kernel_law, 7).tolist() == [
        round((2**62 + 5) / Fraction(fine)),
        round((-(2**63) - 7) / Fraction(fine)),
        1,  # 2**64 and one more, modulo 2**64
        -(2**63),
        -1,
        0,
        1,
    ]
