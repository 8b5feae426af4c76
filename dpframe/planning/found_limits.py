"""Queries under a limit that is found when they run: one plan, one charge.

Guarantee
---------
The search and the query together cost what the plan says, whichever limit is found.

Proof
-----
The search is a histogram of individuals, one row each, at its own cost c. The limit n is computed
from noisy counts and from plans alone (`dpframe.planning.limit_rule`), so it is post-processing,
and so are all statements about dropped rows. For each n of a public list the query under it, with
its companions, has been planned before anything is read. Rows beyond n are dropped by the frame's
own step, sensitivity follows from n as from a limit that an analyst writes, and noise is made for
it, at a cost c(n). So for any result of the search, the rest costs at most max c(n). Costs of
mechanisms that are chosen by earlier results add up: epsilons and deltas (Dwork and Roth 2014,
Theorem 3.16, in its adaptive form), and rhos (Bun and Steinke 2016, Lemma 1.7). The plan is
charged c + max c(n). No privacy loss distributions are composed across the two: that would need
one pair of distributions that dominates the query's under every limit.

Why a histogram
---------------
The rows that a limit L drops are a sum over l >= L of the individuals with more than l rows, so
the numbers N(>L_i) are sufficient. An individual moves each by 1, and those below its own number
of rows all at once. As one vector they have the sensitivity k in L1 for k limits. Their
differences are the bins of a histogram, where an individual moves one by 1, and each N(>L_i) is a
sum of the bins above. Mechanisms that give a limit alone (exponential, or the first N(>L_i) below
a threshold) have about the same error, log(k) 2/epsilon and 4/epsilon individuals, and do not
show how much is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Final

from dpframe.core.budget import Budget
from dpframe.describe import described_together
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.infer import LimitSearch, Place, Queries, merge
from dpframe.infer.several import queries_by_place
from dpframe.mechanisms import AdditiveMechanism, KeyMechanism
from dpframe.plan import NoisyAggregate
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.pieces import FoundLimit, LimitChoice
from dpframe.planning.limit_rule import GROUPS, LimitRule
from dpframe.planning.planning import Planning
from dpframe.planning.prepared import LimitOptions, PreparedTogether
from dpframe.report import Plan

__all__ = ["planned_with_limit"]

SHARE: Final = Fraction(1, 20)
"""The share of the spend that finds the limit; docs/individuals.md shows how far from the best it
is."""
_NEARLY_ALWAYS: Final = Fraction(19, 20)
_NORMAL: Final = 1.96


def planned_with_limit(
    asked: LimitSearch, spend: Budget, remaining: Budget | None, split: str, charged: object
) -> PreparedTogether:
    """One plan of the search and the query.

    Parameters
    ----------
    asked
        The limit that is sought.
    spend, remaining
        The total cost allowed, and the session's remaining budget.
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
            "the query needs a limit on what one individual adds, and this session "
            "cannot find one in the same plan",
            where="dp.Session(composition=...)",
            why="the session adds up costs in another measure than that of spends",
            remedy=(
                "write the limit before the query: .limit_rows(n)",
                "find it first: query.suggest_limits(epsilon=0.1)",
            ),
        )
    first = spend.of(spend.main * SHARE)
    rest = spend.of(spend.main - first.main, spend.slack)
    sought, *queries = queries_by_place([asked.search, *chain.from_iterable(asked.queries)])
    (search,) = Planning(first, remaining, "least error", None).least([sought])
    by = split if asked.weights is None else "weights"
    later = Planning(rest, remaining, by, None)
    beside = len(asked.queries[0])
    asked_under = [
        Queries(tuple(queries[at : at + beside]), asked.weights)
        for at in range(0, len(queries), beside)
    ]
    options = tuple(_options(later, asked_under))
    choices = tuple(
        _choice(n, one, asked.by) for n, one in zip(asked.limits, options, strict=False)
    )
    (noise,) = (release.noise for release in search.plan.releases)
    assert isinstance(noise, AdditiveMechanism)
    errors = tuple(choice.noise or 0.0 for choice in choices)
    limited = [plan for option in options for plan in _limited(option)]
    sizes, is_normal = sizes_to_appear(limited), has_normal_noise(limited)
    if sizes and len(sizes) > len(options):  # of several queries the one that needs the most
        each = len(sizes) // len(options)
        sizes = tuple(max(sizes[at : at + each]) for at in range(0, len(sizes), each))
    made = LimitOptions(LimitRule(asked.limits, errors, sizes, noise, is_normal), options)
    alone = PreparedTogether(search.plan, (search,), (Place.whole(search.query),), made)
    whole, shown = alone.followed_by(options[-1]), options[-1].plan
    plan = replace(
        described_together([part.plan for part in whole.parts], whole.places),
        cost=search.plan.cost + _largest([option.plan.cost for option in options]),
        composition=shown.composition,
        split=shown.split,
        requested=spend,
        found=FoundLimit(asked.step, asked.by, SHARE, choices),
    )
    return replace(whole, plan=plan)


def _options(planning: Planning, asked: Iterable[Queries]) -> Iterator[PreparedTogether]:
    """The query under each limit, up to one under which almost no group would appear or noise is
    more than can be drawn; which these are follows from the plans alone.

    Raises
    ------
    DPFrameError
        When it cannot be answered under the least.
    """
    for number, queries in enumerate(asked):
        try:
            yield _option(planning, queries)
        except DPFrameError:
            if not number:
                raise
            return


def _option(planning: Planning, asked: Queries) -> PreparedTogether:
    """The query under one limit, and the queries that run with it."""
    if len(asked.queries) == 1:
        (one,) = planning.least(asked.queries)
        return PreparedTogether(one.plan, (one,), (Place.whole(one.query),))
    blocks, places = merge(asked)
    made = planning.least(blocks)
    return PreparedTogether(described_together([p.plan for p in made], places), made, places)


def _largest(costs: Sequence[Budget]) -> Budget:
    """What covers each of some costs."""
    main, slack = max(cost.main for cost in costs), max(cost.slack for cost in costs)
    return costs[0].of(main, slack)


def _choice(n: int, option: PreparedTogether, by: Sequence[str]) -> LimitChoice:
    """With as many groups as the limit at least where that is on groups: who keeps n is in n."""
    groups = max(GROUPS, n) if by else GROUPS
    noise = _rounded(max(noise_in_rows(n, plan, groups) for plan in _limited(option)))
    fingerprint = earlier_fingerprint(option.plan)
    return LimitChoice(n, option.plan.cost, _error(option), fingerprint, noise)


def _limited(option: PreparedTogether) -> list[Plan]:
    """The plans of the queries whose limit is found."""
    return [part.plan for part in option.parts if part.query.finds_limit]


def _error(option: PreparedTogether) -> float | None:
    """The 95% error bound of the first output of the first query; None where it depends on the
    data."""
    place = option.places[0]
    plan = option.parts[place.block].plan
    try:
        found = plan.accuracy(plan.outputs[place.outputs[0]].name)
    except DPFrameError:
        return None
    return _rounded(found) if math.isfinite(found) else None


def _rounded(error: float) -> float:
    return float(f"{error:.3g}")


def noise_in_rows(n: int, plan: Plan, groups: int = 1) -> float:
    """The noise of a query under a limit as a number of rows of all groups together, with 95%.

    The error of a part is divided by what one row adds to a group at most, or to the score of a
    candidate; of several parts that of the noisiest counts. Rows that a limit drops are missing in
    all groups together, and noise is in each, so it is taken times the number of groups.

    Parameters
    ----------
    n
        The limit.
    plan
        The noise of the query under it.
    groups
        How many groups there are, where groups are not listed.
    """
    groups = 1 if plan.grouping is None else plan.groups or groups
    found = [
        release.accuracy() * release.spread.tight[2] / _largest_move(release)
        for release in plan.releases
        if _largest_move(release)
    ]
    return groups * max(found, default=_of_count(n, plan.cost))


def has_normal_noise(plans: Iterable[Plan]) -> bool:
    """Whether the noise of queries is normal, and not of the kind of Laplace noise."""
    return any(r.noise.is_normal for plan in plans for r in plan.releases)


def sizes_to_appear(plans: Sequence[Plan]) -> tuple[int, ...]:
    """The number of individuals that a group needs to appear almost always (95%), by the plan
    under each limit; empty where groups are listed.
    """
    chosen = [[r.law for r in plan.releases if isinstance(r.law, KeyMechanism)] for plan in plans]
    if not any(chosen):
        return ()
    return tuple(max(law.size_at(_NEARLY_ALWAYS) for law in laws) for laws in chosen)


def _largest_move(release: NoisyAggregate) -> float:
    """How far one individual moves a number, or the scores of candidates, at most; 0 where groups
    are chosen.
    """
    if release.scores is not None:
        return float(release.scores.linf * release.step)
    if isinstance(release.noise, AdditiveMechanism):
        return float(release.exact.linf * release.step)
    return 0.0


def _of_count(n: int, cost: Budget) -> float:
    """The same of a count of rows, where what is released are no numbers with noise."""
    main = float(cost.main)
    return n * (
        -math.log(0.05) / main if cost.currency == "epsilon" else _NORMAL / (2 * main) ** 0.5
    )
