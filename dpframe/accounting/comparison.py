"""All bounds side by side, and the best that may be used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dpframe.accounting.accountant import ACROSS, WITHIN, Accountant, ValidFor
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
from dpframe.accounting.events import AnyEvent
from dpframe.core.budget import amount
from dpframe.core.exact import Number, nearest, show_input
from dpframe.errors import InvalidBudget, UnsupportedOperation

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
