"""The checks on a plan that is read: its parts must not contradict each other.

A plan that a query makes is consistent. One that is read could show a reviewer a sensitivity that
its noise was not made for, or a mechanism that its law is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate

from dpframe.aggregates.reconstructed_error import RebuiltError
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget
from dpframe.core.exact import float_down, float_up
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange
from dpframe.core.units import Identifier
from dpframe.errors import DPFrameError
from dpframe.mechanisms import (
    AdditiveMechanism,
    KeyMechanism,
    SelectionMechanism,
    VectorMechanism,
)
from dpframe.plan.data import FoundLimit, JointDraw, NoisyAggregate, PlanData, PlanOutput
from dpframe.plan.document import earlier_fingerprint
from dpframe.plan.parameters import contradicts_parameters
from dpframe.plan.several import after_search, blocks_of, distinct_names, whole_fields

COMPOSITIONS = ("sum", "numerical", "zcdp")
SPLITS = ("least error", "equal", "weights")


def contradiction(plan: PlanData) -> str | None:
    """The first thing that does not follow from the rest of the plan, if any."""
    try:
        return next(_contradictions(plan), None)
    except (ArithmeticError, LookupError, ValueError, TypeError, AssertionError, DPFrameError):
        return "its numbers"


def _contradictions(plan: PlanData) -> Iterator[str]:
    if plan.composition not in COMPOSITIONS:
        yield "composition"
    if plan.split not in SPLITS:
        yield "split"
    if contradicts_parameters(plan):
        yield "parameters"
    window = plan.unit.window if isinstance(plan.unit, Identifier) else None
    if window != (None if plan.windows is None else plan.windows.every):
        yield "windows"
    yield from _of_session(plan)
    yield from _of_queries(plan)
    if plan.found is not None and not _is_found(plan, plan.found):
        yield "found"
        return
    for number, block in enumerate(blocks_of(plan)):
        where = f"blocks[{number}]." if plan.blocks else ""
        yield from (f"{where}{what}" for what in _of_block(block))
    yield from understated_costs(plan)


def _is_found(plan: PlanData, found: FoundLimit) -> bool:
    """Whether a plan is of a search and of a query under the largest limit that it may find."""
    numbers = [choice.n for choice in found.choices]
    searched, *others = [query.block for query in plan.queries] or [-1]
    if len(plan.blocks) < 2 or searched != 0 or 0 in others or not numbers:
        return False
    last = found.choices[-1]
    alone = replace(after_search(plan), cost=last.cost, parameters=())
    return (
        numbers[0] >= 1
        and numbers == sorted({*numbers})
        and found.step in ("limit_rows", "limit_groups")
        and 0 < found.share < 1
        and all(type(choice.cost) is type(plan.cost) for choice in found.choices)
        and earlier_fingerprint(alone) == last.fingerprint
    )


def _of_queries(plan: PlanData) -> Iterator[str]:
    """Contradictions between several queries, and releases and outputs that belong to none."""
    if not plan.blocks:
        if plan.queries:
            yield "queries"
        return
    if any(getattr(plan, name) != found for name, found in whole_fields(plan.blocks).items()):
        yield "blocks"
    if len({block.unit.kind for block in plan.blocks}) > 1:
        yield "blocks"
    for field, of in (("releases", plan.releases), ("outputs", plan.outputs)):
        sizes = [getattr(block, field) for block in plan.blocks]
        if min(sizes) < 1 or sum(sizes) != len(of):
            yield f"blocks.{field}"
            return
    starts = list(accumulate((block.outputs for block in plan.blocks), initial=0))
    draws = [{release.draw for release in block.releases} for block in blocks_of(plan)]
    if any(found != {*range(len(found))} for found in draws):
        yield "blocks.draws"
    used = [number for query in plan.queries for number in query.outputs]
    if sorted(used) != [*range(len(plan.outputs))]:
        yield "queries.outputs"
        return
    for i, query in enumerate(plan.queries):
        known = 0 <= query.block < len(plan.blocks)
        if not known or not query.outputs or len(query.names) != len({*query.names}):
            yield f"queries[{i}]"
        elif not all(starts[query.block] <= n < starts[query.block + 1] for n in query.outputs):
            yield f"queries[{i}].outputs"
    asked = [query.names for query in plan.queries]
    searched = asked[:1] if plan.found is not None else []
    apart = [*map(list, searched), *distinct_names(asked[len(searched) :])]
    for query, names in zip(plan.queries, apart, strict=True):
        if [plan.outputs[number].name for number in query.outputs] != names:
            yield "queries.names"


def _of_block(plan: PlanData) -> Iterator[str]:
    """Contradictions in one frame and its groups."""
    yield from _of_groups(plan)
    names = [output.name for output in plan.outputs]
    if not names or len({*names}) != len(names):
        yield "outputs"
    for i, output in enumerate(plan.outputs):
        known = all(0 <= number < len(plan.releases) for number in output.releases)
        if not (known and output.releases):
            yield f"outputs[{i}].releases"
    for i, release in enumerate(plan.releases):
        for what in _of_release(release):
            yield f"releases[{i}].{what}"
        users = {release.name, *release.users}
        if not isinstance(release.law, KeyMechanism) and not users <= {*names}:
            yield f"releases[{i}].users"
        others = ((other.law, other.exact.linf) for other in plan.releases)
        if isinstance(release.law, KeyMechanism) and not release.law.is_hidden_by(others):
            yield f"releases[{i}].law"
    yield from of_draws(plan)


def _of_groups(plan: PlanData) -> Iterator[str]:
    grouped = plan.grouping is not None
    if (plan.keys_digest is not None) != grouped or (plan.grouped_by is not None) != grouped:
        yield "grouping"
    if (plan.keys is None) != (plan.groups is None) or (plan.keys is not None and not grouped):
        yield "keys"
    chosen = any(isinstance(release.law, KeyMechanism) for release in plan.releases)
    if chosen != (grouped and plan.keys is None):
        yield "groups"
    if plan.best_group and plan.keys is None:
        yield "best_group"
    steps = [step.definition for step in plan.steps if isinstance(step.definition, dict)]
    stated = [step.get("rounds") for step in steps if step.get("step") == "WithoutFound"]
    first = stated[0] if len(stated) == 1 else 0  # which no rule has
    rounds = first if type(first) is int and first > 1 else 0 if stated else 1
    laws = [release.law for release in plan.releases if isinstance(release.law, KeyMechanism)]
    if any(len(law.in_rounds) != rounds for law in laws):
        yield "steps"


def _of_session(plan: PlanData) -> Iterator[str]:
    """Contradictions in the session, which no fingerprint covers."""
    cost, requested, share = plan.cost, plan.requested, plan.share
    apart = isinstance(cost, (ZCDP, GDP)) and isinstance(requested, ApproxDP)
    apart = apart or (isinstance(cost, GDP) and isinstance(requested, ZCDP))
    if not apart and not requested.covers(cost):
        yield "requested"
    if plan.remaining is not None and type(plan.remaining) is not type(cost):
        yield "remaining"
    numbers = [error.output for error in plan.forced]
    if numbers != sorted({*numbers} & {*range(len(plan.outputs))}):
        yield "forced"
    if any(e.times is not None and not 0 < e.times < math.inf for e in plan.forced):
        yield "forced"
    if share is None:
        return
    # One part may be listed of several in which neighbours differ: others are listed another day.
    if share.touched < 1 or share.parts < 1 or not cost.covers(share.charged):
        yield "share"


def _of_release(release: NoisyAggregate) -> Iterator[str]:
    law, spread = release.law, release.spread
    if release.mechanism != law.name:
        yield "mechanism"
    if release.step <= 0 or release.scale != release.noise.shown_scale(release.step):
        yield "scale"
    exact = release.exact
    if not _are_norms(exact):
        yield "exact"
    if release.sensitivity != exact.scale(release.step).public():
        yield "sensitivity"
    bounds = (spread.rows, spread.groups, spread.per_group, spread.norm)
    if not spread.is_bounded or any(bound is not None and bound < 0 for bound in bounds):
        yield "spread"
    chooses = isinstance(law, SelectionMechanism)
    if (release.candidates is not None) != chooses or (release.scores is not None) != chooses:
        yield "candidates"
    if release.candidates is not None and release.candidates < 1:
        yield "candidates"
    if release.scores is not None and not _are_ranges(release.scores, spread):
        yield "scores"
    else:
        law.events(replace(release.exposure, repeats=1))
    if release.entries < 0 or release.bias < 0:
        yield "entries"
    rows, groups, most = spread.tight
    if isinstance(law, KeyMechanism):  # the rule is for the stated weights, and these for its noise
        weights = exact.l1 == rows and exact.l2_squared == spread.l2_squared and exact.linf == most
        if not law.is_for(spread.norm, groups) or (spread.norm is not None and not weights):
            yield "law"
    once = isinstance(law, (AdditiveMechanism, VectorMechanism))  # it costs what one vector costs
    if release.repeats < law.least_repeats(rows, groups) or (once and release.repeats != 1):
        yield "repeats"


def _are_norms(exact: ExactSensitivity) -> bool:
    """Whether a vector may have all of them at once: noise is made for one, and a reader may look
    at another.
    """
    l0, l1, l2_squared, linf = exact.l0, exact.l1, exact.l2_squared, exact.linf
    return (
        all(norm >= 0 for norm in (l0, l1, l2_squared, linf))
        and linf**2 <= l2_squared <= l1 * linf
        and l1 <= l0 * linf
        and l1**2 <= l0 * l2_squared  # Cauchy and Schwarz
    )


def _are_ranges(scores: ScoreRange, spread: ContributionBounds) -> bool:
    """Whether ranges may have this sum and sum of squares in this many groups; a row that changes
    may leave one group for another.
    """
    most = spread.changed_groups
    squared, largest = scores.l2_squared, scores.linf
    return (
        0 <= largest <= scores.l1 <= most * largest
        and largest**2 <= squared <= scores.l1 * largest
        and squared <= scores.l1**2 <= most * squared
    )


# What must hold of what a plan draws jointly: one draw, at one cost, of what its noise
# covers.


def of_draws(plan: PlanData) -> Iterator[str]:
    """A joint draw is one draw, at one cost, whose noise covers what is stated of rows."""
    firsts: dict[int, NoisyAggregate] = {}
    grouped = plan.grouping is not None and (plan.groups is None or plan.groups > 1)
    margins = _margins(plan)
    for i, release in enumerate(plan.releases):
        first = firsts.setdefault(release.draw, release)
        if release.draw not in (len(firsts) - 1, first.draw) or not 0 <= first.draw < len(firsts):
            yield f"releases[{i}].draw"
        if first is not release and (first.joint is None or _draw_key(first) != _draw_key(release)):
            yield f"releases[{i}].draw"
        vectors = margins.get(i)
        if release.joint is not None and vectors is not None and vectors != {release.entries}:
            yield f"releases[{i}].entries"
        many = grouped if vectors is None else max(vectors) > 1
        if release.joint is not None and not _is_of_draw(release, release.joint, many):
            yield f"releases[{i}].joint"


def _margins(plan: PlanData) -> dict[int, set[int]]:
    """How many groups the tables have that grouping sets are rebuilt from, as outputs say that use
    them, by the numbers of releases.
    """
    result: dict[int, set[int]] = {}
    for output in plan.outputs:
        rule = output.error
        rebuilt = isinstance(rule, RebuiltError) and len(output.releases) == rule.parts
        sizes = rule.table_sizes if isinstance(rule, RebuiltError) else _margin_sizes(output)
        if rebuilt or len(sizes) == len(output.releases):
            for number, size in zip(output.releases, sizes, strict=True):
                result.setdefault(number, set()).add(size)
    return result


def _margin_sizes(output: PlanOutput) -> list[int]:
    """The same of an output that says no error, by the margins that its definition begins with."""
    result = []
    for part in output.definition if isinstance(output.definition, list) else []:
        if not isinstance(part, dict) or part.get("type") != "Margin":
            break
        sizes, kept = part.get("sizes"), part.get("kept")
        if not isinstance(sizes, list) or not isinstance(kept, list):
            return []
        whole = [size for size in sizes if type(size) is int]
        places = [place for place in kept if type(place) is int and 0 <= place < len(whole)]
        if len(whole) != len(sizes) or len(places) != len(kept):
            return []
        result.append(math.prod(whole[place] for place in places))
    return result


def _draw_key(release: NoisyAggregate) -> tuple[object, ...]:
    """All that is of the draw, and not of one of its numbers."""
    joint = release.joint
    vector = None if joint is None else replace(joint, factors=(), divisor=1)
    return release.law, release.cost, release.spread, release.repeats, release.entries, vector


def _is_of_draw(release: NoisyAggregate, joint: JointDraw, many: bool) -> bool:
    """Whether the noise of a vector covers it."""
    numbers, law = len(joint.widths), release.law
    if not numbers or not len(joint.turned) == len(joint.factors) == numbers or joint.divisor < 1:
        return False
    if isinstance(law, VectorMechanism):
        return law.covers(joint.box(release.spread, many))
    return not joint.arches and isinstance(law, AdditiveMechanism)


# Whether a plan that is read costs what it states: its mechanisms are counted again.
#
# A stated cost below that of the noise would show a reviewer more privacy than there is. Mechanisms
# are chosen so that they cost what is stated at most. Most costs are exact and so is the
# comparison; where floats are counted with, another machine may round their last digits in another
# way, so a thousand-millionth more is let pass there.

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
