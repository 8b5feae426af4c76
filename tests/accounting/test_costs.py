"""What one event costs, against its exact output distributions: never less, and hardly more."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dpframe.accounting.accountant import epsilon_at, zcdp_rho
from dpframe.accounting.accountants import (
    AdvancedAccountant,
    ClosedFormAccountant,
    renyi_divergence,
)
from dpframe.accounting.events import (
    AnyEvent,
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    PermuteAndFlipEvent,
    RandomizedResponseEvent,
)
from dpframe.accounting.gaussian_noise import _log_ripple, delta_bound
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


@pytest.mark.parametrize("sigma", [Fraction(3, 10), Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("moves", [(1,), (2,), (1, 1), (2, 1), (1, 1, 1), (3, 1, 1)], ids=str)
def test_no_bound_on_delta_is_below_that_of_the_outputs(
    sigma: Fraction, moves: tuple[int, ...]
) -> None:
    """Whether it is known that entries move by one, or only how far all do together."""
    wide = Fraction(sum(move * move for move in moves))
    pair = exact.together([moved(sigma, move) for move in moves])
    for times in (Fraction(1, 4), Fraction(1), Fraction(3)):
        epsilon = times * wide / (2 * sigma**2)
        true = exact.delta(pair, epsilon)
        for linf in (None, Fraction(max(moves))):
            found = delta_bound(sigma**2, len(moves), wide, epsilon, linf)
            assert found >= true * (1 - mp.mpf(10) ** -11)


@pytest.mark.parametrize("entries", [2, 3, 9, 400])
@pytest.mark.parametrize("sigma_squared", [Fraction(2, 5), Fraction(1)])
def test_the_sum_of_noise_of_entries_is_as_near_to_one_noise_as_is_said(
    entries: int, sigma_squared: Fraction
) -> None:
    """Poisson summation in 40 digits: how much each further entry may multiply ratios by."""
    total = mp.mpf(0)
    for k in range(1, entries):
        rate = 2 * mp.pi**2 * exact.real(sigma_squared) * k / (k + 1)
        t = 2 * mp.fsum(mp.exp(-rate * j * j) for j in range(1, 9))
        total += mp.log((1 + t) / (1 - t))
    assert total <= _log_ripple(entries, sigma_squared) <= total * mp.mpf("1.1")


@pytest.mark.parametrize("kind", [AdvancedAccountant, ClosedFormAccountant])
@pytest.mark.parametrize("large", ["599", "601", "800", "1e6"])
def test_large_losses_beside_small_ones_have_a_cost(kind: type, large: str) -> None:
    events: list[AnyEvent] = [LaplaceEvent("1", large), LaplaceEvent("1", "0.1")]
    for listed in (events, events[::-1], events[:1]):
        found = kind(listed).epsilon(1e-6)
        assert found >= float(large) * 0.99
        assert kind is AdvancedAccountant or math.isfinite(found)


@pytest.mark.parametrize("scale", ["1/2", "3", "200"])
def test_renyi_divergences_of_wide_moves_on_integers_are_covered(scale: str) -> None:
    """Of more steps than are added up one by one."""
    steps = 300
    pair = exact.discrete_laplace(Fraction(scale), steps, 0)
    orders = np.array([1.0001, 1.5, 7.0, 300.0])
    found = renyi_divergence(DiscreteLaplaceEvent(Fraction(scale), steps), orders)
    for order, bound in zip(map(mp.mpf, orders.tolist()), found.tolist(), strict=True):
        true = mp.log(mp.fsum(p**order * q ** (1 - order) for p, q in pair)) / (order - 1)
        assert true * (1 - mp.mpf(10) ** -12) <= bound <= true * mp.mpf("1.001") + 1 / mp.mpf(4)


@pytest.mark.parametrize("e", ["0.01", "1", "5"])
def test_rho_of_choices_and_of_pure_privacy(e: str) -> None:
    """The largest divergence of any pair with such losses, which small losses reach."""
    width = mp.mpf(e)
    ranged = []
    for i in range(1, 20):  # losses t and t - width
        t = width * i / 20
        p = (mp.exp(width) - mp.exp(t)) / (mp.exp(width) - 1)
        ranged.append([(p, p * mp.exp(-t)), (1 - p, (1 - p) * mp.exp(width - t))])
    either = [exact.response(Fraction(e), 2)]
    for event, pairs in (
        (ExponentialEvent(e), ranged),
        (LaplaceEvent(1, e), either),
        (PermuteAndFlipEvent(e), either),
        (RandomizedResponseEvent(e), either),
        (ApproxEvent(e, "1e-6"), either),
    ):
        rho = exact.real(zcdp_rho(event))
        orders = (mp.mpf("1.0001"), mp.mpf(3), mp.mpf(40))
        worst = max(
            mp.log(mp.fsum(p**a * q ** (1 - a) for p, q in pair)) / (a - 1) / a
            for pair in pairs
            for a in orders
        )
        assert worst <= rho
        assert worst >= rho * mp.mpf("0.99") or e != "0.01"


@pytest.mark.parametrize("scale", ["3", "7", "0.3", "49/10", "1e-5"])
def test_epsilon_of_pure_privacy_is_rounded_up(scale: str) -> None:
    for event in (LaplaceEvent(scale, 1), DiscreteLaplaceEvent(scale, 1)):
        true = 1 / Fraction(scale)
        assert true <= Fraction(epsilon_at(event, 1e-6)) <= true * (1 + Fraction(1, 2**50))
