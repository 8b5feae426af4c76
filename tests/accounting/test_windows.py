"""What lies outside of the grid that losses are composed on counts as lost, never as nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpframe.accounting.convolution import Composed, compose
from dpframe.accounting.dots import Dots, dots
from dpframe.accounting.loss_laws import Normal, Response, SteppedNormal
from dpframe.accounting.tilting import View


def exact_delta(count: int, epsilon_of_one: float, epsilon: float) -> float:
    """Of `count` randomised responses."""
    with mpmath.workdps(40):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon_of_one)))
        total = mpmath.mpf(0)
        for k in range(count + 1):
            loss = epsilon_of_one * (2 * k - count)
            if loss > epsilon:
                mass = mpmath.binomial(count, k) * p**k * (1 - p) ** (count - k)
                total += mass * (1 - mpmath.exp(epsilon - loss))
        return float(total)


@pytest.mark.parametrize("epsilon", [0.0, 2.0, 3.9, 5.0, 11.0])
def test_losses_above_the_window_are_added_to_delta(epsilon: float) -> None:
    """Twenty losses of 1 reach 20, and the window ends at 4."""
    h = Fraction(1, 2)
    part = dots(Response(Fraction(1)), h)
    view = View(theta=0.5, steep=1.0, low=-4.0, high=4.0, epsilon=2.0)
    composed = compose([(part, 20)], h, view, lowest=-8, n=16)
    assert composed.losses[-1] < 4
    assert composed.beyond > 0
    assert composed.delta(epsilon) >= exact_delta(20, 1.0, epsilon)


def test_losses_that_are_infinite_are_added_to_delta() -> None:
    part = Dots(0, np.array([0.9]), 0.1)
    view = View(theta=1.0, steep=2.0, low=-1.0, high=1.0, epsilon=0.0)
    composed = compose([(part, 3)], Fraction(1, 4), view, lowest=-4, n=16)
    assert composed.delta(0.5) >= 1 - 0.9**3
    assert composed.epsilon(0.2) == math.inf


@pytest.mark.parametrize("d", [0.05, 1.0, 3.0])
def test_the_gaussian_tail_above_the_grid_is_kept(d: float) -> None:
    """What no grid point holds is infinite: P(L > last point), beyond 14 deviations."""
    made = dots(Normal(Fraction(d) ** 2), Fraction(d) / 16)
    last = (made.first + len(made.masses) - 1) * d / 16
    with mpmath.workdps(40):
        beyond = mpmath.erfc((last - d * d / 2) / d / mpmath.sqrt(2)) / 2
    assert made.infinite >= float(beyond) > 0
    assert float(made.masses.sum()) + made.infinite >= 1 - 1e-12


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(9)])
def test_the_tail_of_discrete_gaussian_noise_is_kept(variance: Fraction) -> None:
    made = dots(SteppedNormal(variance), 1 / (2 * variance))
    reach = math.ceil(14 * math.sqrt(variance)) + 1  # the largest |x| on the grid
    with mpmath.workdps(60):
        weights = [
            mpmath.exp(-mpmath.mpf(k * k) / (2 * mpmath.mpf(float(variance))))
            for k in range(20 * reach)
        ]
        beyond = mpmath.fsum(weights[reach + 1 :]) / (2 * mpmath.fsum(weights) - 1)
    assert made.infinite >= float(beyond) > 0


@pytest.mark.parametrize("size", [1e-13, 0.01])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.9])
def test_no_error_of_tilted_masses_takes_delta_below_the_truth(size: float, epsilon: float) -> None:
    """The worst one of a norm goes along the weights, where Cauchy and Schwarz are equal."""
    losses = np.linspace(0.0, 1.0, 33)
    weights = np.exp(1.0 - 3.0 * losses)
    masses = np.full(33, size / 50)
    found = Composed(losses, masses, size * weights, beyond=0.0, inflate=1.0).delta(epsilon)
    along = weights * np.maximum(0.0, 1.0 - np.exp(epsilon - losses))
    worst = size * along / np.sqrt((along * along).sum())
    true = ((masses + worst * weights) * np.maximum(0.0, 1.0 - np.exp(epsilon - losses))).sum()
    assert found >= min(1.0, true) * (1 - 1e-12) > 0


@pytest.mark.parametrize("count", [1, 2, 40])
def test_delta_is_raised_by_what_masses_may_lack(count: int) -> None:
    """Those of each event, and their norms, are right to one part in 1e12."""
    h = Fraction(1, 2)
    view = View(theta=0.5, steep=1.0, low=-4.0, high=4.0, epsilon=2.0)
    composed = compose([(dots(Response(Fraction(1)), h), count)], h, view, lowest=-8, n=16)
    assert composed.inflate >= math.exp(2e-12 * count)
