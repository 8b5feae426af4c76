"""What one event costs, against its exact output distributions: never less, and hardly more."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import pytest

from dpframe.accounting.costs import epsilon_at, zcdp_rho
from dpframe.accounting.events import DiscreteGaussianEvent, GaussianEvent
from tests.accounting import exact_laws as exact


def moved(sigma: Fraction, by: int) -> exact.Pair:
    """Discrete Gaussian noise of an entry, and of one that is `by` larger."""
    reach = int(14 * sigma) + by + 2
    weights = {x: mp.exp(-((x / exact.real(sigma)) ** 2) / 2) for x in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    none = mp.mpf(0)
    return [
        (weights.get(x, none) / total, weights.get(x - by, none) / total)
        for x in range(by - reach, reach + 1)
    ]


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(9)])
@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_epsilon_of_noise_on_integers(sigma: Fraction, sensitivity: int, delta: float) -> None:
    """A sensitivity in L2 of s may be s**2 entries that move by one, which is no worse than one
    that moves by s only for wide noise: so one entry is exact for 1, and a floor for 2.
    """
    found = epsilon_at(DiscreteGaussianEvent(sigma, sensitivity), delta)
    pair = moved(sigma, sensitivity)
    assert exact.delta(pair, found) <= delta * (1 + 1e-9)
    if sensitivity == 1 and found:
        assert exact.delta(pair, found * 0.999) > delta


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_epsilon_of_continuous_noise(sigma: float, delta: float) -> None:
    found = epsilon_at(GaussianEvent(sigma, 2), delta)
    shift = 2 / exact.real(sigma)
    assert exact.gaussian_delta(shift, exact.real(found)) <= delta * (1 + 1e-9)
    if found:
        assert exact.gaussian_delta(shift, exact.real(found * 0.999)) > delta


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1, 1), (3, 1), (3, 2), (Fraction(1, 2), 3)])
def test_rho_bounds_every_renyi_divergence(sigma: Fraction, sensitivity: int) -> None:
    rho = exact.real(zcdp_rho(DiscreteGaussianEvent(sigma, sensitivity)))
    pair = moved(Fraction(sigma), sensitivity)
    for order in (mp.mpf("1.01"), mp.mpf(2), mp.mpf(7)):
        moment = mp.fsum(p**order * q ** (1 - order) for p, q in pair if p and q)
        divergence = mp.log(moment) / (order - 1)
        assert divergence <= rho * order * (1 + mp.mpf(10) ** -12)
        assert divergence >= rho * order * mp.mpf("0.99") or sigma < 1


def test_epsilon_of_several_entries_is_theirs() -> None:
    """Of four entries that move by one: a sensitivity of 2."""
    sigma = Fraction(7, 3)
    found = epsilon_at(DiscreteGaussianEvent(sigma, 2), 1e-6)
    pair = exact.together([moved(sigma, 1)] * 4)
    assert exact.delta(pair, found) <= 1e-6 * (1 + 1e-9)
    assert exact.delta(pair, found * 0.9) > 1e-6  # one entry may move by 2 as well
