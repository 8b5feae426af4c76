"""Whether a plan that is read costs what it states: its mechanisms are counted again.

A stated cost below that of the noise would show a reviewer more privacy than there is. Mechanisms
are chosen so that they cost what is stated at most. Most costs are exact and so is the comparison;
where floats are counted with, another machine may round their last digits in another way, so a
thousand-millionth more is let pass there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from dpframe.core.budget import GDP, ZCDP, Budget
from dpframe.core.exact import float_down, float_up
from dpframe.plan.data import PlanData
from dpframe.plan.noisy_aggregate import NoisyAggregate
from dpframe.plan.several import after_search, blocks_of

_ROUNDING = Fraction(1, 10**9)
"""What floats may differ by between machines."""
_MOST_REPEATS = 10**6
"""The number of uses of a mechanism whose losses are composed: no plan has as many."""


def understated_costs(plan: PlanData) -> Iterator[str]:
    """The costs that are below those of the mechanisms, by where they stand in the plan."""
    for i, release in enumerate(plan.releases):
        if not _is_enough(release):
            yield f"releases[{i}].cost"
    if plan.found is None:
        if not _is_enough_for_all(plan):
            yield "cost"
        return
    # the search, and the query under each limit, whose plan shows the last
    search, query = next(blocks_of(plan)), after_search(plan)
    costs = [release.cost for release in search.draws]
    if any(not _sums([*costs, choice.cost], plan.cost) for choice in plan.found.choices):
        yield "cost"
    if not _is_enough_for_all(replace(query, cost=plan.found.choices[-1].cost)):
        yield "found.choices"


def _is_enough(release: NoisyAggregate) -> bool:
    """Whether the stated cost of a release covers its mechanism."""
    cost, law, exposure = release.cost, release.law, release.exposure
    failure = law.failure(exposure)
    if isinstance(cost, ZCDP):
        return law.rho_cost(exposure) <= cost.main and failure <= cost.slack
    if isinstance(cost, GDP):
        squared = law.mu_squared_cost(exposure)
        return squared is not None and squared <= cost.main * (1 + _ROUNDING)
    epsilon = law.epsilon_cost(exposure)
    if epsilon is not None:
        return epsilon <= cost.main and failure <= cost.slack
    delta = law.delta_at(cost.main, exposure)
    return bool(cost.slack) and delta <= cost.slack * (1 + _ROUNDING)


def _is_enough_for_all(plan: PlanData) -> bool:
    """Whether the cost of the plan covers those of its releases, composed as it says."""
    costs = [release.cost for release in plan.draws]
    if plan.composition == "sum":
        return _sums(costs, plan.cost)
    if not all(isinstance(cost, ZCDP) for cost in costs) or plan.cost.currency != "epsilon":
        return False
    return plan.cost.main * (1 + _ROUNDING) >= _composed(plan)


def _sums(costs: list[Budget], whole: Budget) -> bool:
    if any(cost.currency != whole.currency for cost in costs):
        return False
    main = sum((cost.main for cost in costs), Fraction(0))
    return main <= whole.main and sum((cost.slack for cost in costs), Fraction(0)) <= whole.slack


def _composed(plan: PlanData) -> float:
    """The epsilon of all releases together at the plan's delta."""
    from dpframe.accounting.accountants import PrivacyLossAccountant
    from dpframe.accounting.gaussian_noise import epsilon_of_rho

    if plan.composition == "numerical":
        if sum(release.repeats for release in plan.draws) > _MOST_REPEATS:
            return math.inf
        return PrivacyLossAccountant(plan.events).epsilon(plan.cost.slack)
    rho = sum((release.cost.main for release in plan.draws), Fraction(0))
    slack = plan.cost.slack - sum((release.cost.slack for release in plan.draws), Fraction(0))
    return epsilon_of_rho(Fraction(float_up(rho)), float_down(slack))
