"""A watch over all tests that no plan states clearly more than the kernel finds, and that what
people read of a plan agrees with its physical plan, so that its document can be read.

`conftest.py` calls `watch` once. From then on a test fails that charges another plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dpframe import soundness
from dpframe.kernel import Plan, verify
from dpframe.kernel import plan as laws
from dpframe.kernel.plan import Gaussian
from dpframe.optimise.physical import Translation, translate
from dpframe.optimise.prepared import PreparedTogether

LEAST = Fraction(98, 100)
"""The least share of a stated cost that the kernel finds for each draw."""

LEAST_DELTA = Fraction(9, 10)
"""The same for a delta, which a little more noise makes much smaller."""


def watch() -> None:
    """Look at each plan that is about to be charged."""
    soundness.translate = _watched


def _watched(prepared: PreparedTogether) -> Translation:
    translation = translate(prepared)
    plan = translation.plan
    for kind, share in shares(plan):
        least = LEAST if kind in vars(laws) else LEAST_DELTA
        assert share >= least, f"{kind} costs {float(share):.4f} of what the plan states"
    return translation


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
