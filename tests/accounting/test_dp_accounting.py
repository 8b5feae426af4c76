"""Against Google's dp-accounting, where it is installed."""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from typing import Any

import pytest

import dpframe as dp
from dpframe import accounting as a
from dpframe.accounting.events import AnyEvent

DELTA = 1e-6


def random_events(seed: int) -> list[AnyEvent]:
    rng = random.Random(seed)
    found: list[AnyEvent] = []
    for _ in range(rng.randint(1, 3)):
        scale = Fraction(rng.randint(4, 60), rng.choice([1, 2, 3]))
        sensitivity = rng.choice([1, 2, Fraction(1, 2)])
        kind = rng.choice([a.LaplaceEvent, a.GaussianEvent])
        found += [kind(scale, sensitivity)] * rng.randint(1, 40)
    return found


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 100))]
)
def test_privacy_loss_distributions_agree(seed: int) -> None:
    """Theirs encloses the truth: an optimistic and a pessimistic grid of 1e-3."""
    library = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    events = random_events(seed)
    found = a.PrivacyLossAccountant(events).epsilon(DELTA)
    low, high = (_theirs(pld, events, pessimistic) for pessimistic in (False, True))
    assert low * (1 - 1e-9) <= found <= high * (1 + 1e-6)
    if seed < 10:
        accountant = library.pld.PLDAccountant()
        accountant.compose(a.to_dp_accounting(events))
        assert found <= accountant.get_epsilon(DELTA) * (1 + 1e-6)
        renyi = library.rdp.RdpAccountant(list(range(2, 200)))
        renyi.compose(a.to_dp_accounting(events))
        assert a.RenyiAccountant(events).epsilon(DELTA) <= renyi.get_epsilon(DELTA) * (1 + 1e-9)


def _theirs(pld: Any, events: list[AnyEvent], pessimistic: bool) -> float:
    counts = a.PrivacyLossAccountant(events).counts
    total = None
    for event, count in counts.items():
        if isinstance(event, a.LaplaceEvent):
            made, noise = pld.from_laplace_mechanism, event.scale
        else:
            assert isinstance(event, a.GaussianEvent)
            made, noise = pld.from_gaussian_mechanism, event.sigma
        one = made(
            float(noise),
            sensitivity=float(event.sensitivity),
            value_discretization_interval=1e-3,
            pessimistic_estimate=pessimistic,
        ).self_compose(count)
        total = one if total is None else total.compose(one)
    assert total is not None
    return float(total.get_epsilon_for_delta(DELTA))


def test_every_event_can_be_exported() -> None:
    library = pytest.importorskip("dp_accounting")
    events: list[AnyEvent] = [
        a.LaplaceEvent(10, 2),
        a.DiscreteLaplaceEvent(10),
        a.GaussianEvent(10, 2),
        a.DiscreteGaussianEvent(10),
        a.ExponentialEvent("0.1"),
        a.PermuteAndFlipEvent("0.1"),
        a.RandomizedResponseEvent("0.1"),
        a.ApproxEvent("0.1", 0),
        a.ZCDPEvent("0.1"),
    ]
    made = a.to_dp_accounting(events)
    assert made.events[0] == library.LaplaceDpEvent(5.0)
    assert made.events[2] == library.GaussianDpEvent(5.0)
    discrete = library.dp_event.DiscreteLaplaceDpEvent
    assert [made.events[i] for i in (1, 4)] == [discrete(0.1, 1), discrete(0.1, 1)]
    assert made.events[8] == library.ZCDpEvent(0.1)
    assert len(made.events) == len(events)
    with pytest.raises(dp.UnsupportedOperation, match="delta"):
        a.to_dp_accounting([a.ApproxEvent("0.1", "1e-9")])


def test_exported_parameters_are_rounded_towards_more_loss() -> None:
    pytest.importorskip("dp_accounting")
    for scale in (Fraction(n, d) for n in (7, 11, 50) for d in (3, 9, 13)):
        listed: list[AnyEvent] = [
            a.LaplaceEvent(scale, "0.7"),
            a.GaussianEvent(scale, "0.7"),
            a.DiscreteLaplaceEvent(scale, 3),
            a.DiscreteGaussianEvent(scale),
            a.ExponentialEvent(scale),
        ]
        laplace, normal, discrete, wide, chosen = a.to_dp_accounting(listed).events
        noise = scale / Fraction("0.7")
        assert near(laplace.noise_multiplier, noise) <= 0
        assert near(normal.noise_multiplier, noise) <= 0
        assert near(discrete.noise_parameter, 1 / scale) >= 0
        assert near(wide.rho, 1 / (2 * scale**2)) >= 0
        assert near(chosen.noise_parameter, scale) >= 0


def near(found: float, true: Fraction) -> Fraction:
    """How much more it is, relatively: less than floats need."""
    more = Fraction(found) / true - 1
    assert abs(more) < Fraction(1, 2**50)
    return more


def test_pure_events_cost_there_what_they_cost_here() -> None:
    library = pytest.importorskip("dp_accounting")
    events: list[AnyEvent] = [a.PermuteAndFlipEvent("0.1")] * 100
    accountant = library.pld.PLDAccountant()
    accountant.compose(a.to_dp_accounting(events))
    found = a.PrivacyLossAccountant(events).epsilon(DELTA)
    assert found == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-4)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(dp.UnsupportedOperation, match="not installed"):
        a.to_dp_accounting([a.LaplaceEvent(1)])
