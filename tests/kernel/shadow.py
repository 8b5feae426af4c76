"""What the kernel cannot express yet, and a watch over all tests that nothing else is left out.

`watch` is called once, by `conftest.py`. From then on a test fails in which a plan is charged that
the kernel has no nodes for, unless `NOT_YET` names the reason; or of which the kernel finds that it
costs clearly less than it states.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

from dpframe.kernel import Plan, verify
from dpframe.planning import soundness
from dpframe.planning.physical import NotYet, physical
from dpframe.planning.prepared import PreparedTogether

NOT_YET = frozenset(
    {
        "Gaussian noise with a delta",
        "composition: numerical",
        "composition: zcdp",
        "groups by weights with an epsilon",
        "measure: mu_squared",
        "responses in rho",
    }
)
"""What the kernel has no nodes for yet."""

LEAST = Fraction(98, 100)
"""The least share of the stated cost that the kernel finds for each draw."""

LOG = os.environ.get("DPFRAME_SHADOW") or None
"""A file to which each plan is told, for counts: its reason, or what its draws use."""


def watch() -> None:
    """Look at each plan that is about to be charged."""
    soundness.physical = _watched


def _watched(prepared: PreparedTogether) -> Plan:
    try:
        plan = physical(prepared)
    except NotYet as missing:
        _tell(f"not yet: {missing}")
        if LOG is None and str(missing) not in NOT_YET:
            raise AssertionError(f"the kernel cannot express: {missing}") from missing
        raise
    for cost, draw in zip(verify(plan).costs, plan.draws, strict=True):
        kind, share = type(draw.law).__name__, cost / draw.cost if draw.cost else Fraction(1)
        _tell(f"{kind} {plan.measure} {plan.neighbours} {float(share):.6f}")
        assert share >= LEAST, f"{kind} costs {float(share):.4f} of what the plan states"
    return plan


def _tell(words: str) -> None:
    if LOG is not None:
        with Path(LOG).open("a", encoding="utf-8") as file:
            file.write(words + "\n")
