"""Many choices together: never below what any strategy tells, and hardly above the worst one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import gammaln

from dpframe.accounting import (
    DiscreteLaplaceEvent,
    ExponentialEvent,
    PrivacyLossAccountant,
    RandomizedResponseEvent,
    SharedExponentialEvent,
    ZCDPAccountant,
)
from dpframe.kernel.losses import cells_of, loss_masses

Floats = NDArray[np.float64]


def likelier(e: float, t: Floats) -> Floats:
    """How often the loss of a choice of range e is t and not t - e."""
    return np.asarray((np.exp(e) - np.exp(t)) / np.expm1(e))


def worst(e: float, times: int, x: Floats) -> Floats:
    """The largest delta, by trying many t in each choice; of one choice in closed form."""
    if times == 1:
        inside = np.expm1((np.clip(x, -e, e) - e) / 2) ** 2 / -np.expm1(-e)
        return np.where(x < -e, -np.expm1(np.minimum(x, 0.0)), inside)
    t = np.linspace(0.0, e, 241)
    p = likelier(e, t)
    moved = x[..., None] - t
    both = p * worst(e, times - 1, moved) + (1 - p) * worst(e, times - 1, moved + e)
    return np.asarray(both.max(axis=-1))


@pytest.mark.parametrize("e", [0.02, 0.3, 1.5])
@pytest.mark.parametrize("times", [2, 3])
def test_the_worst_of_few_choices_is_met(e: float, times: int) -> None:
    masses, beyond = loss_masses(Fraction(e), times)
    losses = (np.arange(masses.size) - masses.size // 2) * e / cells_of(times)
    assert math.isclose(masses.sum() + beyond, 1, rel_tol=1e-9)
    for x in np.linspace(-0.9, 0.97, 9) * e * times:
        found = beyond + float((masses * np.maximum(0.0, -np.expm1(x - losses))).sum())
        exact = float(worst(e, times, np.array([x]))[0])
        assert exact * (1 - 1e-9) <= found <= exact * 1.01 + 1e-5 * e


def at_once(e: float, k: int, epsilon: float) -> float:
    """Delta where t is chosen once for all k: Dong, Durfee and Rogers 2020, their optimum for
    choices that do not depend on each other.
    """
    found, i = 0.0, np.arange(k + 1)
    ways = gammaln(k + 1) - gammaln(i + 1) - gammaln(k - i + 1)
    for step in range(k + 1):
        t = (epsilon + (step + 1) * e) / (k + 1)
        if 0 < t < e:
            p = float(likelier(e, np.array(t)))
            law = np.exp(ways + (k - i) * math.log(p) + i * math.log1p(-p))
            found = max(
                found, float((law * -np.expm1(np.minimum(0, epsilon - k * t + i * e))).sum())
            )
    return found


@pytest.mark.parametrize(
    ("k", "epsilon"), [(10, "0.045"), (50, "0.17"), (100, "0.014"), (300, "0.05")]
)
def test_many_choices_cost_hardly_more_than_independent_ones(k: int, epsilon: str) -> None:
    """And less than through zCDP, by some seven percent."""
    events = [ExponentialEvent(epsilon)] * k
    found = PrivacyLossAccountant(events).epsilon("1e-6")
    assert at_once(float(epsilon), k, found) <= 1e-6
    assert at_once(float(epsilon), k, found * 0.985) > 1e-6
    assert found < 0.95 * ZCDPAccountant(events).epsilon("1e-6")


Tree = tuple[Floats, Floats]


def told(pair: Tree, then: list[Tree]) -> Tree:
    """The outcomes of a step, and of what follows each of its outcomes."""
    p, q = pair
    return (
        np.concatenate([a * b[0] for a, b in zip(p, then, strict=True)]),
        np.concatenate([a * b[1] for a, b in zip(q, then, strict=True)]),
    )


def choice(e: float, share: float) -> Tree:
    t = share * e
    p = float(likelier(e, np.array(t)))
    return np.array([p, 1 - p]), np.array([p * math.exp(-t), (1 - p) * math.exp(e - t)])


def strategy(rng: np.random.Generator, e: float, kinds: list[str]) -> Tree:
    """Steps whose laws depend on all that was told before; of choices the interval of losses."""
    if not kinds:
        return np.ones(1), np.ones(1)
    if kinds[0] == "report":
        likely, rare = 1 / (1 + math.exp(-e)), 1 / (1 + math.exp(e))
        sides = [np.array([likely, rare]), np.array([rare, likely])]
        pair = sides[:: rng.choice([1, -1])]
        told_by = (pair[0], pair[1])
    else:
        told_by = choice(e if kinds[0] == "choice" else e / 3, rng.choice([rng.random(), 0.5, 0.9]))
    return told(told_by, [strategy(rng, e, kinds[1:]) for _ in range(2)])


@given(
    st.integers(0, 2**32), st.sampled_from([0.05, 0.6, 1.9]), st.permutations([0, 1, 2, 3, 4, 5])
)
@settings(max_examples=15, deadline=None)
def test_no_strategy_tells_more(seed: int, e: float, order: list[int]) -> None:
    """In any order, beside a choice of another range and a report."""
    kinds = ["choice"] * 4 + ["other range", "report"]
    p, q = strategy(np.random.default_rng(seed), e, [kinds[i] for i in order])
    events = [ExponentialEvent(e)] * 4 + [ExponentialEvent(Fraction(e) / 3)]
    accountant = PrivacyLossAccountant([*events, RandomizedResponseEvent(Fraction(e))])
    for epsilon in (0.0, 0.5 * e, 1.5 * e, 3 * e, 4.5 * e):
        exact = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
        assert accountant.delta(epsilon) >= exact * (1 - 1e-9)


def test_choices_beside_noise_of_another_step() -> None:
    """Grids that do not fit each other still bound both together."""
    events = [ExponentialEvent("0.1")] * 20
    noise = [DiscreteLaplaceEvent(7)] * 3
    apart = PrivacyLossAccountant(events).epsilon("1e-6")
    both = PrivacyLossAccountant([*events, *noise]).epsilon("1e-6")
    assert apart < both < apart + 3 / 7
    assert both < ZCDPAccountant([*events, *noise]).epsilon("1e-6")


def test_shared_ranges_are_taken_one_by_one() -> None:
    """Three ranges of 1 may stand for four of 3/4, of which less is known."""
    together = PrivacyLossAccountant([ExponentialEvent("0.1")] * 30).epsilon("1e-6")
    apart = PrivacyLossAccountant([SharedExponentialEvent("0.1")] * 30).epsilon("1e-6")
    assert together < 0.9 * apart
    smaller = PrivacyLossAccountant([ExponentialEvent("0.075")] * 40).epsilon("1e-6")
    assert smaller < apart
