"""What the kernel cannot express yet, and a watch over all tests that nothing else is left out.

`watch` is called once, by `conftest.py`. From then on a test fails in which a plan is charged that
the kernel has no nodes for, unless `NOT_YET` names the reason; or of which the kernel finds that it
costs clearly less than it states.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from dpframe.kernel import Plan, verify
from dpframe.kernel import plan as laws
from dpframe.kernel.plan import Gaussian
from dpframe.planning import soundness
from dpframe.planning.physical import NotYet, physical
from dpframe.planning.prepared import PreparedTogether

NOT_YET = frozenset(
    {
        "many choices whose losses are composed",
    }
)
"""What the kernel has no nodes for yet."""

LEAST = Fraction(98, 100)
"""The least share of a stated cost that the kernel finds for each draw."""

LEAST_DELTA = Fraction(9, 10)
"""The same for a delta, which a little more noise makes much smaller."""

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
    for kind, share in shares(plan):
        _tell(f"{kind} {plan.measure} {plan.neighbours} {float(share):.6f}")
        least = LEAST if kind in vars(laws) else LEAST_DELTA
        assert share >= least, f"{kind} costs {float(share):.4f} of what the plan states"
    return plan


def shares(plan: Plan) -> Iterator[tuple[str, Fraction]]:
    """The shares of the stated costs, and of the stated deltas, that the kernel finds."""
    verified = verify(plan)
    for cost, delta, draw in zip(verified.costs, verified.deltas, plan.draws, strict=True):
        kind = type(draw.law).__name__
        if draw.cost and plan.composition != "numerical":  # there costs are only how it is divided
            yield kind, cost / draw.cost
        # with an epsilon that protects nobody, noise is the least that can be drawn
        if draw.delta and isinstance(draw.law, Gaussian) and draw.cost <= 1000:
            yield f"delta of {kind}", delta / draw.delta
    if plan.composition != "sum":
        yield plan.composition, verified.delta / plan.delta


def _tell(words: str) -> None:
    if LOG is not None:
        with Path(LOG).open("a", encoding="utf-8") as file:
            file.write(words + "\n")
