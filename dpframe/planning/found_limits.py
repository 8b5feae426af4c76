"""Queries under a limit that is found when they run: one plan, one charge.

Guarantee
---------
The search and the query together cost what the plan says, whichever limit is found.

Proof
-----
The search is a histogram of individuals, one row each, at its own cost c. What is found, n, is
computed from its noisy counts alone, so it is post-processing. For each n of a public list the
query under it has been planned before anything is read: rows beyond n are dropped by the frame's
own step, sensitivity follows from n as it does from a limit that an analyst writes, and noise is
made for it, at a cost c(n). So whatever the search gives, what follows costs at most max c(n), and
costs of mechanisms that are chosen by earlier results add up: epsilons and deltas (Dwork and Roth
2014, Theorem 3.16, in its adaptive form), and rhos (Bun and Steinke 2016, Lemma 1.7). The plan is
charged c + max c(n). No privacy loss distributions are composed across the two: that would need
one pair of distributions that dominates the query's under every limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpframe.core.budget import Budget
from dpframe.describe import described_together
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.infer import LimitSearch, Place
from dpframe.infer.several import queries_by_place
from dpframe.mechanisms import AdditiveMechanism
from dpframe.plan.pieces import FoundLimit, LimitChoice
from dpframe.planning.planning import Planning
from dpframe.planning.prepared import LimitOptions, Prepared, PreparedTogether
from dpframe.report import Plan

__all__ = ["planned_with_limit"]

SHARE: Final = Fraction(1, 20)
"""What part of the spend finds the limit."""


def planned_with_limit(
    asked: LimitSearch, spend: Budget, remaining: Budget | None, split: str, charged: object
) -> PreparedTogether:
    """One plan of the search and the query.

    Parameters
    ----------
    asked
        The limit that is sought.
    spend, remaining
        What both may cost together, and what the session has left.
    split
        How the query's cost is divided.
    charged
        The measure that the session adds up in, if it is not that of the spend.

    Raises
    ------
    UnsupportedOperation
        Where the session adds up another measure.
    DPFrameError
        When the query cannot be answered within the measure.
    """
    if charged is not None:
        raise UnsupportedOperation(
            "a limit is found at a share of the spend, and this session adds up another measure "
            "than that of spends",
            where='limits="auto"',
            remedy="find it first with query.suggest_limits(...), and write it before the query",
        )
    first = spend.of(spend.main * SHARE)
    rest = spend.of(spend.main - first.main, spend.slack)
    sought, *queries = queries_by_place([asked.search, *asked.queries])
    (search,) = Planning(first, remaining, "least error", None).least([sought])
    options = tuple(Planning(rest, remaining, split, None).least([q])[0] for q in queries)
    shown = options[-1]
    names = tuple(output.name for output in shown.query.outputs)
    places = (
        Place.whole(search.query),
        Place(1, tuple(range(len(names))), names),
    )
    whole = described_together([search.plan, shown.plan], places)
    choices = tuple(map(_choice, asked.limits, options))
    plan = replace(
        whole,
        cost=search.plan.cost + _largest([option.plan.cost for option in options]),
        composition=shown.plan.composition,
        split=shown.plan.split,
        requested=spend,
        found=FoundLimit(asked.step, asked.by, SHARE, choices),
    )
    (noise,) = (release.noise for release in search.plan.releases)
    assert isinstance(noise, AdditiveMechanism)
    made = LimitOptions(asked.limits, options, noise.variance())
    return PreparedTogether(plan, (search, shown), places, made)


def _largest(costs: Sequence[Budget]) -> Budget:
    """What covers each of some costs."""
    main, slack = max(cost.main for cost in costs), max(cost.slack for cost in costs)
    return costs[0].of(main, slack)


def _choice(n: int, option: Prepared) -> LimitChoice:
    plan = option.plan
    return LimitChoice(n, plan.cost, _error(plan), plan.fingerprint)


def _error(plan: Plan) -> float | None:
    """That of the first output, with 95%; None where it depends on the data."""
    try:
        found = plan.accuracy(plan.outputs[0].name)
    except DPFrameError:
        return None
    return float(f"{found:.3g}") if math.isfinite(found) else None
