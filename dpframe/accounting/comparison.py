"""All bounds side by side, the best that may be used, and events for other libraries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from dpframe.accounting.accountant import (
    ACROSS,
    WITHIN,
    Accountant,
    ValidFor,
    pure_epsilon,
    slack,
    zcdp_rho,
)
from dpframe.accounting.accountants import (
    AdvancedAccountant,
    BasicAccountant,
    ClosedFormAccountant,
    GaussianDPAccountant,
    LooseZCDPAccountant,
    OptimalAccountant,
    PrivacyLossAccountant,
    RenyiAccountant,
    ZCDPAccountant,
)
from dpframe.accounting.events import (
    AnyEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
)
from dpframe.core.budget import amount
from dpframe.core.exact import Number, exact, float_down, float_up, nearest, show_input
from dpframe.errors import InvalidBudget, UnsupportedOperation

# All bounds side by side, and the best that may be used.

ACCOUNTANTS: Final[tuple[type[Accountant], ...]] = (
    BasicAccountant,
    AdvancedAccountant,
    ClosedFormAccountant,
    OptimalAccountant,
    LooseZCDPAccountant,
    ZCDPAccountant,
    RenyiAccountant,
    GaussianDPAccountant,
    PrivacyLossAccountant,
)


@dataclass(frozen=True, slots=True)
class Bound:
    """One valid statement about events: together they are (epsilon, delta)-private.

    Parameters
    ----------
    method
        The theorem's name.
    epsilon, delta
        Rounded towards more privacy loss.
    valid_for
        ``"within one plan"``: only if all parameters were fixed before any noise was drawn.
        ``"across plans"``: also if later events are chosen after seeing earlier results.
    """

    method: str
    epsilon: float
    delta: float
    valid_for: ValidFor


def bounds(events: Iterable[AnyEvent], delta: Number) -> list[Bound]:
    """Every bound that applies and is finite, in the order of `ACCOUNTANTS`.

    Raises
    ------
    InvalidBudget
        When delta is not a probability below 1, or something else than an event is listed.
    """
    listed = list(events)
    found = []
    for kind in ACCOUNTANTS:
        try:
            epsilon = kind(listed).epsilon(delta)
        except UnsupportedOperation:
            continue
        if math.isfinite(epsilon):
            shown = nearest(amount(delta, "delta"))
            found.append(Bound(kind.method, epsilon, shown, kind.valid_for))
    return found


def best(events: Iterable[AnyEvent], delta: Number, valid_for: ValidFor = WITHIN) -> Bound:
    """The bound with the least epsilon among those that are valid.

    Parameters
    ----------
    events
        What happened, repeats included.
    delta
        A probability below 1.
    valid_for
        ``"across plans"`` leaves out what is valid within one plan only.

    Raises
    ------
    InvalidBudget
        When no bound is finite at this delta, or an argument is not valid.
    """
    if valid_for not in (WITHIN, ACROSS):
        raise InvalidBudget(
            f"bounds are not valid for {valid_for!r}", remedy=f"use {WITHIN!r} or {ACROSS!r}"
        )
    usable = [b for b in bounds(events, delta) if valid_for == WITHIN or b.valid_for == valid_for]
    if not usable:
        raise InvalidBudget(
            "no bound is finite at this delta",
            where=f"delta={show_input(delta)}",
            remedy="use a larger delta",
        )
    return min(usable, key=lambda bound: bound.epsilon)


def parallel(
    branches: Sequence[Iterable[AnyEvent]], delta: Number, valid_for: ValidFor = WITHIN
) -> Bound:
    """The best bound on events that ran on disjoint parts of the data: that of the most expensive.

    A unit must be in one part at most, with and without the change that neighbours differ by
    (McSherry 2009, Theorem 4). If it may be in g of them, pass the events of the g most expensive
    as one.

    Raises
    ------
    InvalidBudget
        When there is no part, or as for `best`.
    """
    if not branches:
        raise InvalidBudget("the list of parts is empty", remedy="give one list of events per part")
    return max(
        (best(events, delta, valid_for) for events in branches), key=lambda bound: bound.epsilon
    )


# Events in the form of Google's dp-accounting library, to have them counted there as well.


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
