"""The plan of several queries, from those of the frames and groups that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from dpframe.infer import Place
from dpframe.plan import PlanQuery
from dpframe.plan.several import together
from dpframe.report import Plan

PAYS = 0.995
"""An error must be below this factor of the error alone to count as smaller."""


def described_together(plans: Sequence[Plan], places: Sequence[Place]) -> Plan:
    """One plan.

    Parameters
    ----------
    plans
        Notes for each frame and its groups, with the cost of all.
    places
        Where the outputs of each query are.
    """
    starts = list(accumulate((len(plan.outputs) for plan in plans), initial=0))
    return together(
        plans,
        [
            PlanQuery(
                place.block,
                place.names,
                tuple(starts[place.block] + number for number in place.outputs),
            )
            for place in places
        ],
    )


def gain_words(gain: float) -> str:
    """What it does to an output's error to be rebuilt from what is drawn for several queries."""
    if gain < PAYS:
        return f"{1 / gain:.3g} times more error than by itself, so that others err less"
    return f"{gain:.3g} times less error than by itself"
