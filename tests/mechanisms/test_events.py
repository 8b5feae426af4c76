"""What mechanisms count as elsewhere, where norms lie between whole numbers: no less."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from dpframe.accounting.accountant import zcdp_rho
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms import DiscreteGaussian, DiscreteLaplace, Exposure, RoundedLaplace

LAWS = [DiscreteLaplace(Fraction(10)), RoundedLaplace(Fraction(10)), DiscreteGaussian(Fraction(90))]
SIZES = [Fraction(n, 4) for n in range(1, 17)]


def moved_by(size: Fraction) -> ExactSensitivity:
    """Of one entry."""
    return ExactSensitivity(1, size, size * size, size)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_moves_between_whole_numbers_cost_at_least_those_below_them(
    law: DiscreteLaplace | RoundedLaplace | DiscreteGaussian,
) -> None:
    """Integers move by whole steps: by less than one that is still one."""
    by_events, by_mu = [], []
    for size in SIZES[3:]:
        by_events.append(sum(zcdp_rho(event) for event in law.events(Exposure(moved_by(size)))))
        mu_squared = law.mu_squared_cost(Exposure(moved_by(size)))
        assert mu_squared is not None
        by_mu.append(mu_squared)
        if isinstance(law, DiscreteLaplace):
            assert by_events[-1] >= (size / law.scale) ** 2 / 2
            assert by_mu[-1] == law.mu_squared_cost(Exposure(moved_by(Fraction(-(-size // 1)))))
        else:
            assert by_events[-1] >= size * size / 180
            assert by_mu[-1] >= size * size / 90
    for costs in (by_events, by_mu):
        assert all(one <= other for one, other in pairwise(costs))
        assert costs[1] > costs[0]


@pytest.mark.parametrize("size", SIZES[:4])
def test_less_than_a_step_counts_as_one(size: Fraction) -> None:
    one = moved_by(Fraction(1))
    for law in LAWS[:2]:
        assert law.events(Exposure(moved_by(size))) == law.events(Exposure(one))
        assert law.mu_squared_cost(Exposure(moved_by(size))) == law.mu_squared_cost(Exposure(one))
