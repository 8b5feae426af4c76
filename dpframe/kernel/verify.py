"""`verify`: whether all that a plan states follows from what it does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.kernel.frame import facts_of
from dpframe.kernel.laws import cost_of
from dpframe.kernel.moves import norms_of
from dpframe.kernel.plan import Person, Plan, Refused, Scan


@dataclass(frozen=True)
class Verified:
    """What each draw of a plan costs by the rules of the kernel: at most what the plan states."""

    costs: tuple[Fraction, ...]


def verify(plan: Plan) -> Verified:
    """Check a plan.

    Guarantee
    ---------
    A release that draws what the plan says, from sources as it says, satisfies the plan's cost in
    the plan's measure, for neighbours that differ in one individual.

    Proof
    -----
    `facts_of` bounds what an individual has in each frame, step by step. `norms_of` bounds how far
    that moves each vector. `cost_of` gives what its noise costs then. Draws are independent, so
    their costs add up. All that is released follows from the draws.

    Raises
    ------
    Refused
        When anything that the plan states does not follow, with the place and the reason.
    """
    units = [frame.unit for frame in plan.frames if isinstance(frame, Scan)]
    if len({type(unit) for unit in units}) != 1 or not plan.draws:
        raise Refused("sources that protect rows, and others that protect persons")
    if any(isinstance(u, Person) for u in units) and plan.neighbours != "add-remove":
        raise Refused("persons come and go")
    if len({u.every for u in units if isinstance(u, Person)}) > 1:
        raise Refused("sources with other windows")
    facts = facts_of(plan.frames)
    costs: list[Fraction] = []
    for number, draw in enumerate(plan.draws):
        try:
            cost = cost_of(plan, draw.what, draw.law, norms_of(plan, facts, draw.what))
        except Refused as refused:
            raise Refused(f"draw {number}: {refused}") from None
        if cost > draw.cost:
            raise Refused(f"draw {number} costs more than the plan states")
        costs.append(cost)
    if sum(draw.cost for draw in plan.draws) > plan.cost:
        raise Refused("the draws cost more than the plan states")
    return Verified(tuple(costs))
