"""What lies outside of the grid that losses are composed on counts as lost, never as nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpframe.accounting.connect_the_dots import Dots, dots
from dpframe.accounting.convolution import Composed, compose
from dpframe.accounting.loss_laws import (
    HalfLine,
    LossLaw,
    Normal,
    Response,
    SteppedLaplace,
    SteppedNormal,
)
from dpframe.accounting.search import root_between
from dpframe.accounting.tilting import (
    View,
    cumulant,
    view_at_delta,
    view_at_epsilon,
)


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


LAWS: list[list[tuple[LossLaw, int]]] = [
    [(Normal(Fraction(1, 3)), 1)],
    [(SteppedNormal(Fraction(300)), 7), (Normal(Fraction(1, 50)), 1)],
    [(Response(Fraction(1, 10)), 40)],
    [(HalfLine(Fraction(2), True), 3), (Response(Fraction(3)), 1)],
    [(SteppedLaplace(Fraction(1, 20), 9), 12), (Normal(Fraction(4)), 2)],
    [(HalfLine(Fraction(1, 1000), False), 900)],
]


@pytest.mark.parametrize("laws", LAWS, ids=str)
@pytest.mark.parametrize("log_delta", [-0.1, -5.0, -18.0, -200.0])
def test_the_best_order_is_found_among_all(
    laws: list[tuple[LossLaw, int]], log_delta: float
) -> None:
    """Not every order is tried, yet none of those left out is better."""
    h = Fraction(1, 64)
    parts = [(dots(law, h), count) for law, count in laws]
    view = view_at_delta(parts, float(h), log_delta)
    deviation = view_deviation(parts, float(h))
    orders = np.exp2(np.arange(-8.0, 14.0, 0.5)) / deviation
    values = cumulant(parts, float(h), orders)
    gain = -np.log1p(orders) - orders * np.log1p(1.0 / orders)
    bounds = (values + gain - log_delta) / orders
    tops = (values - log_delta + 25.0) / orders
    assert view.theta == pytest.approx(orders[bounds.argmin()], rel=1e-12)
    assert view.epsilon == pytest.approx(bounds.min(), rel=1e-12)
    assert view.high == pytest.approx(tops.min(), rel=1e-12)
    assert view.steep == pytest.approx(orders[tops.argmin()], rel=1e-12)
    back = np.exp2(np.arange(-4.0, 8.0, 0.5)) / deviation
    lower = cumulant(parts, float(h), view.theta - back)
    whole = cumulant(parts, float(h), np.array([view.theta]))
    assert view.low == pytest.approx(((-30.0 - lower + whole) / back).max(), rel=1e-9)
    logs = values + gain - orders * view.epsilon
    at_epsilon = view_at_epsilon(parts, float(h), view.epsilon)
    assert at_epsilon.theta == pytest.approx(orders[logs.argmin()], rel=1e-12)


def view_deviation(parts: list[tuple[Dots, int]], step: float) -> float:
    variance = 0.0
    for part, count in parts:
        losses = (part.first + np.arange(len(part.masses))) * step
        mean = (part.masses * losses).sum()
        variance += count * (part.masses * (losses - mean) ** 2).sum()
    return math.sqrt(max(variance, step * step))


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9, 1e-40])
@pytest.mark.parametrize("laws", LAWS, ids=str)
def test_an_epsilon_keeps_delta_and_hardly_less_does_not(
    laws: list[tuple[LossLaw, int]], delta: float
) -> None:
    h = Fraction(1, 64)
    parts = [(dots(law, h), count) for law, count in laws]
    view = view_at_delta(parts, float(h), math.log(delta))
    lowest = math.floor(view.low / float(h)) - 2
    points = math.ceil(view.high / float(h)) + 2 - lowest
    composed = compose(parts, h, view, lowest, 1 << max(4, (points - 1).bit_length()))
    found = composed.epsilon(delta)
    assert composed.delta(found) <= delta
    assert found == 0.0 or composed.delta(found * (1 - 2e-12)) > delta


@pytest.mark.parametrize("root", [1e-9, 0.3, 0.999999])
@pytest.mark.parametrize("steep", [1e-3, 1.0, 40.0, 1e5])
def test_a_root_was_tried_and_is_near(root: float, steep: float) -> None:
    def f(x: float) -> float:
        tried.add(x)
        return math.expm1(min(600.0, steep * (root - x)))

    def stairs(x: float) -> float:
        tried.add(x)
        return 3.0 if x < root else -1e-9

    for falling in (f, stairs):
        tried: set[float] = set()
        found = root_between(falling, 0.0, 1.0, 1e-12)
        assert found in tried
        assert falling(found) <= 0.0 < falling(found * (1 - 2e-12))
        assert len(tried) < 16 + 2 * math.log2(1e12 / root)  # twice those of halving
