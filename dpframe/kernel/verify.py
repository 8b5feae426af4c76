"""`verify`: whether all that a plan states follows from what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpframe.kernel.frame import Facts, facts_of
from dpframe.kernel.laws import choice_cost, noise_cost
from dpframe.kernel.moves import norms_of, ranges_of
from dpframe.kernel.plan import (
    Choice,
    Draw,
    Levels,
    Person,
    Plan,
    Rank,
    Ranks,
    Refused,
    Running,
    Scan,
    Vector,
)


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
    `facts_of` bounds what an individual has in each frame, step by step. `norms_of` and `ranges_of`
    bound how far that moves numbers and scores. `noise_cost` and `choice_cost` give what a draw
    costs then. Draws are independent, so their costs add up. All that is released follows from the
    draws.

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
            cost = _cost_of(plan, facts, draw)
        except Refused as refused:
            raise Refused(f"draw {number}: {refused}") from None
        if cost > draw.cost:
            raise Refused(f"draw {number} costs more than the plan states")
        costs.append(cost)
    if sum(draw.cost for draw in plan.draws) + _largest(plan) > plan.cost:
        raise Refused("the draws cost more than the plan states")
    return Verified(tuple(costs))


def _cost_of(plan: Plan, facts: Sequence[Facts], draw: Draw) -> Fraction:
    """What a draw costs by the rules."""
    match draw.what:
        case Vector() | Running() as what:
            return noise_cost(plan, what, draw.law, norms_of(plan, facts, what))
        case what:
            return choice_cost(plan, _rounds(what), draw.law, ranges_of(plan, facts, what))


def _rounds(what: Choice | Rank | Ranks | Levels) -> int:
    """How often an individual takes part in a choice, one after another."""
    match what:
        case Choice(_, _, rounds):
            return rounds
        case Levels(_, _, levels):
            return len(levels)
        case _:
            return 1


def _largest(plan: Plan) -> Fraction:
    """What the dearest of the plans costs of which one runs afterwards. Which one that is follows
    from what was drawn before, so it costs nothing more.
    """
    for number, option in enumerate(plan.options):
        if (option.neighbours, option.measure) != (plan.neighbours, plan.measure):
            raise Refused(f"option {number} is in another measure")
        try:
            verify(option)
        except Refused as refused:
            raise Refused(f"option {number}: {refused}") from None
    return max((option.cost for option in plan.options), default=Fraction(0))
