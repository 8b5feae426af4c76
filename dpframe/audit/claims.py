"""The claim of a plan, as epsilons at deltas where samples are informative."""

from __future__ import annotations

import math
from contextlib import suppress

from dpframe.accounting.normal import normal_epsilon
from dpframe.accounting.numerical import PrivacyLossAccountant
from dpframe.accounting.zcdp import epsilon_of_rho
from dpframe.core.budget import GDP, ZCDP
from dpframe.core.exact import float_up, nearest
from dpframe.errors import DPFrameError
from dpframe.report import Plan

_DELTAS = (1e-6, 1e-3, 1e-2, 3e-2, 0.1)
"""Where a claim in rho is turned into epsilons, samples prove most at some delta of these."""


def claims_of(plan: Plan) -> list[tuple[float, float]]:
    """Deltas, and the epsilon that is claimed at each.

    A rho allows more at every delta than the mechanisms that a plan states do: a conversion holds
    for every mechanism with that rho. So where their privacy losses are known together, it is the
    epsilon of these that is claimed.
    """
    cost = plan.cost
    if isinstance(cost, GDP):
        squared = float_up(cost.main)
        return [(d, normal_epsilon(squared, d)) for d in _DELTAS]
    if not isinstance(cost, ZCDP):
        return [(nearest(cost.slack), nearest(cost.main))]
    slack = nearest(cost.slack)
    losses: PrivacyLossAccountant | None = None
    with suppress(DPFrameError):  # more events than can be listed
        losses = PrivacyLossAccountant(plan.events)
    found = [(slack + d, epsilon_of_rho(cost.main, d)) for d in _DELTAS]
    return [(delta, min(epsilon, _known(losses, delta))) for delta, epsilon in found]


def _known(losses: PrivacyLossAccountant | None, delta: float) -> float:
    """What is known of the stated mechanisms; infinite where it is nothing."""
    if losses is None:
        return math.inf
    with suppress(DPFrameError):  # mechanisms whose losses have no known law
        return losses.epsilon(delta)
    return math.inf
