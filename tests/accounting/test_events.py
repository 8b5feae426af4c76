"""Events are exact, frozen values that survive being written down."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpframe import accounting as a
from dpframe.accounting.events import AnyEvent
from dpframe.errors import InvalidBudget

EVENTS: list[AnyEvent] = [
    a.LaplaceEvent(10),
    a.LaplaceEvent("0.1", Fraction(1, 3)),
    a.DiscreteLaplaceEvent(2.5, 3),
    a.GaussianEvent(Decimal("1.5")),
    a.DiscreteGaussianEvent(10, 1.5),
    a.ExponentialEvent(0.1),
    a.SharedExponentialEvent(0.1),
    a.PermuteAndFlipEvent(0.1),
    a.RandomizedResponseEvent(1, 5),
    a.ApproxEvent(1, 1e-8),
    a.ZCDPEvent(0.5),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_survive_json(event: AnyEvent) -> None:
    text = json.dumps(event.to_dict())
    assert a.Event.from_dict(json.loads(text)) == event
    assert type(event).from_dict(json.loads(text)) == event
    assert hash(a.Event.from_dict(json.loads(text))) == hash(event)


def test_numbers_mean_what_they_print_as() -> None:
    assert a.LaplaceEvent(0.1) == a.LaplaceEvent("0.1") == a.LaplaceEvent(Fraction(1, 10))
    assert (
        repr(a.RandomizedResponseEvent(0.5)) == "RandomizedResponseEvent(epsilon=0.5, categories=2)"
    )


def test_events_are_frozen() -> None:
    with pytest.raises(AttributeError):
        a.LaplaceEvent(1).scale = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    "make",
    [
        lambda: a.LaplaceEvent(0),
        lambda: a.GaussianEvent("1e-100"),
        lambda: a.ApproxEvent("1e400", 0),
        lambda: a.LaplaceEvent(-1),
        lambda: a.LaplaceEvent(float("nan")),
        lambda: a.LaplaceEvent("ten"),
        lambda: a.LaplaceEvent(1, 0),
        lambda: a.LaplaceEvent(True),
        lambda: a.GaussianEvent(float("inf")),
        lambda: a.DiscreteLaplaceEvent(1, 0.5),
        lambda: a.DiscreteLaplaceEvent(1, 1.5),
        lambda: a.DiscreteGaussianEvent(1, 0.5),
        lambda: a.ExponentialEvent(0),
        lambda: a.RandomizedResponseEvent(1, 1),
        lambda: a.RandomizedResponseEvent(1, 2.5),
        lambda: a.ApproxEvent(1, 1),
        lambda: a.ApproxEvent(1, -1e-9),
        lambda: a.ZCDPEvent(None),
        lambda: a.Event.from_dict({"event": "NoEvent"}),
        lambda: a.GaussianEvent.from_dict(a.LaplaceEvent(1).to_dict()),
        lambda: a.Event.from_dict({"event": "LaplaceEvent", "scale": "1"}),
        lambda: a.Event.from_dict({"event": "ZCDPEvent", "rho": "1", "more": "1"}),
        lambda: a.Event.from_dict({"event": "ZCDPEvent", "rho": [1]}),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(InvalidBudget) as caught:
        make()
    assert caught.value.remedy
