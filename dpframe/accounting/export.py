"""Events in the form of Google's dp-accounting library, to have them counted there as well."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from dpframe.accounting.accountant import pure_epsilon, slack, zcdp_rho
from dpframe.accounting.events import (
    AnyEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
)
from dpframe.core.exact import exact, float_down, float_up
from dpframe.errors import UnsupportedOperation


def to_dp_accounting(events: Iterable[AnyEvent]) -> Any:
    """One `ComposedDpEvent` that says no less than these events, for dp-accounting 0.6 or later.

    Events without an equivalent in that library become upper bounds: pure mechanisms a
    `DiscreteLaplaceDpEvent` of sensitivity 1, which no other of the same epsilon exceeds, and
    discrete Gaussian noise a `ZCDpEvent`.

    Raises
    ------
    UnsupportedOperation
        When dp-accounting is not installed, or has no event for an `ApproxEvent` with a delta.
    """
    try:
        dp_accounting = import_module("dp_accounting")
    except ImportError:
        raise UnsupportedOperation(
            "dp-accounting is not installed",
            where="accounting.to_dp_accounting",
            remedy="install it, in a separate environment if versions of attrs conflict: pip "
            "install dp-accounting",
        ) from None
    return dp_accounting.ComposedDpEvent([_one(event, dp_accounting) for event in events])


def _one(event: AnyEvent, library: Any) -> Any:
    match event:
        case LaplaceEvent():
            return library.LaplaceDpEvent(float_down(exact(event.scale) / exact(event.sensitivity)))
        case GaussianEvent():
            ratio = exact(event.sigma) / exact(event.sensitivity)
            return library.GaussianDpEvent(float_down(ratio))
        case DiscreteLaplaceEvent():
            rate = float_up(1 / exact(event.scale))
            return library.dp_event.DiscreteLaplaceDpEvent(rate, int(event.sensitivity))
    epsilon = pure_epsilon(event)
    if epsilon is None:
        return library.ZCDpEvent(float_up(zcdp_rho(event)))
    if slack(event):
        raise UnsupportedOperation(
            "dp-accounting has no event for a mechanism that has a delta of its own",
            where=repr(event),
            remedy="leave the event out and add its epsilon and delta afterwards",
        )
    return library.dp_event.DiscreteLaplaceDpEvent(float_up(epsilon), 1)
