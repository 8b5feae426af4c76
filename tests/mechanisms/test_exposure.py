"""What is not known of an individual costs no less than it could: it has no cost at all."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpframe.core.sensitivity import NO_SENSITIVITY, ExactSensitivity
from dpframe.mechanisms import (
    AdditiveMechanism,
    DiscreteLaplace,
    Exponential,
    Exposure,
    Mechanism,
    NoisyThreshold,
    NoNoise,
    PermuteAndFlip,
    ReportNoisyMax,
)

COSTS: list[Callable[[Mechanism, Exposure], Any]] = [
    lambda law, exposure: law.epsilon_cost(exposure),
    lambda law, exposure: law.rho_cost(exposure),
    lambda law, exposure: law.mu_squared_cost(exposure),
    lambda law, exposure: law.events(exposure),
]
ONE = ExactSensitivity(1, Fraction(1), Fraction(1), Fraction(1))


@pytest.mark.parametrize("cost", COSTS)
def test_what_individuals_change_has_no_cost_without_noise(
    cost: Callable[[Mechanism, Exposure], Any],
) -> None:
    assert not cost(NoNoise(), Exposure(NO_SENSITIVITY))
    with pytest.raises(ValueError, match="without noise"):
        cost(NoNoise(), Exposure(ONE))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, ReportNoisyMax])
def test_a_choice_has_no_cost_while_nobody_knows_how_far_scores_move(
    cost: Callable[[Mechanism, Exposure], Any], kind: Any
) -> None:
    law = kind(Fraction(2))
    with pytest.raises(ValueError, match="not known"):
        cost(law, Exposure(ONE))
    assert cost(law, Exposure(ONE, 1, (Fraction(1),), Fraction(1), Fraction(1)))


def test_a_threshold_needs_noise() -> None:
    def made(noise: AdditiveMechanism) -> NoisyThreshold:
        return NoisyThreshold(noise, 30, Fraction(1, 10**8))

    assert made(DiscreteLaplace(Fraction(2))).threshold == 30
    with pytest.raises(ValueError, match="needs noise"):
        made(NoNoise())
