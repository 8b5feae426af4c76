"""Plans whose epsilon and delta follow from all losses together, and changes of them that reveal
more or state less.

`python -m tests.kernel.edits --number 300 --seed 1` prints how many of these plans the second judge
convicts, how many the kernel refuses, and each one that the kernel accepts nevertheless. Of plans
that are not changed it prints what share of the kernel's delta the judge finds.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dpframe.kernel import Plan, Refused, verify
from dpframe.kernel import plan as p
from tests.kernel.generate import at_losses, plans
from tests.kernel.mutate import at, paths, put, show
from tests.kernel.oracle import Hints, World, judge

WIDE = (0.05, 0.2, 0.5, 1.0, 2.0, 3.0)
"""How many deviations of the losses lie between their mean and the epsilon, about."""


def truthful(seed: int) -> Iterator[Plan]:
    """Plans that state a delta above 0, and exactly the one that follows."""
    rng = random.Random(seed)
    for plan in plans(seed):
        if plan.measure == "rho" and not plan.options and plan.composition != "zcdp":
            try:
                stated = at_losses(plan, rng.choice(WIDE))
            except Refused:
                continue
            if 0 < stated.delta < Fraction(1, 2):
                yield stated


def every(plan: Plan, change: Callable[[Any], Any]) -> Plan:
    """The plan with other parts, the inner ones first."""
    for path in sorted(paths(plan), key=len, reverse=True):
        if path:
            old = at(plan, path)
            new = change(old)
            if new is not old:
                plan = put(plan, path, new)
    return plan


def half_the_noise(part: Any) -> Any:
    """A law with half the noise, or twice the epsilon."""
    match part:
        case p.Laplace(scale) | p.Exponential(scale) | p.PermuteAndFlip(scale) | p.NoisyMax(scale):
            return replace(part, scale=scale / 2)
        case p.Gaussian(variance):
            return replace(part, sigma_squared=variance / 4)
        case p.Staircase(rate):
            return replace(part, rate=rate * 2)
        case p.Box(epsilon) | p.Response(epsilon) | p.Geometric(epsilon):
            return replace(part, epsilon=epsilon * 2)
        case p.WeighedThreshold(rounds):
            return replace(part, rounds=tuple((least, v / 4) for least, v in rounds))
    return part


def twice_as_wide(part: Any) -> Any:
    """A grid with numbers twice as large."""
    return replace(part, lo=2 * part.lo, hi=2 * part.hi) if isinstance(part, p.Grid) else part


def one_more(part: Any) -> Any:
    """A limit, or the most rows of an individual, that is larger by 1."""
    match part:
        case p.KeepRows(_, n) | p.KeepGroups(_, n):
            return replace(part, n=n + 1)
        case p.Rows(contributions):
            return replace(part, contributions=contributions + 1)
        case p.Explode(_, _, most):
            return replace(part, most=most + 1)
        case p.PersonRows(_, most):
            return replace(part, most=most + 1)
        case p.Weigh(_, norm):
            return replace(part, norm=norm * 2)
    return part


def twice_the_factors(part: Any) -> Any:
    """Numbers that are doubled before noise is added."""
    match part:
        case p.Vector(_, matrix):
            return replace(part, matrix=tuple(tuple(2 * f for f in row) for row in matrix))
        case p.Running(_, column) | p.Root(column):
            return replace(part, column=tuple(2 * f for f in column))
    return part


EDITS: Mapping[str, Callable[[Plan], Plan]] = {
    "half the noise": lambda plan: every(plan, half_the_noise),
    "twice the grid": lambda plan: every(plan, twice_as_wide),
    "one more": lambda plan: every(plan, one_more),
    "twice the factors": lambda plan: every(plan, twice_the_factors),
    "a draw that is not counted": lambda plan: replace(plan, draws=(*plan.draws, plan.draws[-1])),
    "less delta": lambda plan: replace(plan, delta=plan.delta * Fraction(95, 100)),
    "half the delta": lambda plan: replace(plan, delta=plan.delta / 2),
    "less epsilon": lambda plan: replace(plan, cost=plan.cost * Fraction(95, 100)),
}
"""Changes after which a plan may reveal more than it states."""


def edited(plan: Plan, edit: Callable[[Plan], Plan]) -> Plan | None:
    """A plan that is changed, and states the same epsilon and delta; its draws state what they
    cost. None where nothing changes, or the kernel refuses more than an epsilon and a delta.
    """
    changed = edit(plan)
    if changed == plan:
        return None
    try:
        exact = at_losses(changed, 1.0)
    except Refused:
        return None
    return replace(exact, cost=changed.cost, delta=changed.delta)


@dataclass
class Outcome:
    """What came of plans and of their changes."""

    shares: list[float] = field(default_factory=list)
    changed: Counter[str] = field(default_factory=Counter)
    convicted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, Plan, float]] = field(default_factory=list)
    """Plans that the kernel accepts though they reveal too much, and what share of their delta."""


def run(number: int, seed: int, worlds: int, changes: int) -> Outcome:
    """Judge plans, and what becomes of them by each edit. A changed plan is also judged in the
    worst world of the plan itself.
    """
    outcome = Outcome()
    for count, plan in enumerate(truthful(seed)):
        if count == number:
            break
        honest = judge(plan, worlds, changes, seed)
        outcome.shares.append(honest.share)
        if honest.unsafe:
            outcome.wrong.append(("no change", plan, honest.share))
        for name, edit in EDITS.items():
            new = edited(plan, edit)
            if new is None:
                continue
            outcome.changed[name] += 1
            accepts = is_accepted(new)
            outcome.refused[name] += not accepts
            share = World(new, Hints(new), honest.seed, honest.changes).loss()[0]
            if share <= 1 and accepts:
                share = judge(new, worlds, changes, seed).share
            outcome.convicted[name] += share > 1
            if share > 1 and accepts:
                outcome.wrong.append((name, new, share))
    return outcome


def is_accepted(plan: Plan) -> bool:
    """Whether the kernel accepts a plan."""
    try:
        verify(plan)
    except Refused:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kernel.edits", description=__doc__)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=30)
    parser.add_argument("--changes", type=int, default=60)
    chosen = parser.parse_args()
    outcome = run(chosen.number, chosen.seed, chosen.worlds, chosen.changes)
    for name, plan, share in outcome.wrong:
        print(f"accepted with {share:.6g} of its delta, {name}:\n{show(plan)}\n")
    print(f"{'':28} changed convicted refused")
    for name, times in outcome.changed.items():
        print(f"{name:28} {times:7} {outcome.convicted[name]:9} {outcome.refused[name]:7}")
    tenths = Counter(int(share * 10) / 10 for share in outcome.shares)
    print("shares of the kernel's delta:", dict(sorted(tenths.items())))
    print(f"above 0.99: {sum(share > 0.99 for share in outcome.shares)} of {len(outcome.shares)}")


if __name__ == "__main__":
    main()
