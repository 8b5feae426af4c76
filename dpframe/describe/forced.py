"""The cost of a forced mechanism or an equal division of the cost: errors compared with those of
the plan with the least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from dpframe.aggregates.bound import BoundAggregate
from dpframe.aggregates.error_rules import MeanError, PartError, VarianceError
from dpframe.aggregates.query import Query
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rolled import rolled
from dpframe.errors import DPFrameError
from dpframe.mechanisms import AdditiveMechanism
from dpframe.plan import ForcedError, NoisyAggregate, PlanOutput
from dpframe.report import Plan

_OF_PARTS: Final = {MeanError: (1.0, 1.0), VarianceError: (0.25, 1.0, 0.25)}
"""What the squared errors of parts, each relative to what a row adds, do to that of the result."""


def is_forced(queries: Sequence[Query], split: str) -> bool:
    """Whether mechanisms are named, or the cost is not divided for least error."""
    return split == "equal" or any(_is_named(a) for query in queries for a in query.aggregates)


def unforced(query: Query) -> Query:
    """The same query without named mechanisms.

    Raises
    ------
    DPFrameError
        If the query has no other mechanism.
    """
    scope = query.scope
    outputs = tuple(
        replace(
            output, aggregates={p: _free(found, scope) for p, found in output.aggregates.items()}
        )
        for output in query.outputs
    )
    return replace(query, outputs=outputs)


def _is_named(aggregate: BoundAggregate) -> bool:
    return aggregate.request.mechanism != "auto"


def _free(aggregate: BoundAggregate, scope: QueryScope) -> BoundAggregate:
    if not _is_named(aggregate):
        return aggregate
    return rolled(bind(replace(aggregate.request, mechanism="auto"), scope), scope)


def cost_of_forcing(queries: Sequence[Query], plan: Plan, least: Plan) -> tuple[ForcedError, ...]:
    """The costs by output; empty if unknown.

    Parameters
    ----------
    queries
        The queries.
    plan, least
        Its plan, and that of the same where nothing is forced, at the same spend.
    """
    found: dict[int, ForcedError] = {}
    for query, mine, others in zip(
        queries, _places(plan, queries), _places(least, queries), strict=True
    ):
        for output, here, there in zip(query.outputs, mine, others, strict=True):
            ratio = _ratio(_error(plan, plan.outputs[here]), _error(least, least.outputs[there]))
            named = any(_is_named(aggregate) for aggregate in output.aggregates.values())
            if named or ratio is not None:
                found[here] = ForcedError(here, named, ratio)
    if all(error.times is None for error in found.values()):
        return ()
    return tuple(found[number] for number in sorted(found))


def _places(plan: Plan, queries: Sequence[Query]) -> list[Sequence[int]]:
    """Which of a plan's outputs those of each query are."""
    if plan.queries:
        return [query.outputs for query in plan.queries]
    return [range(len(query.outputs)) for query in queries]


def _ratio(error: float | None, least: float | None) -> float | None:
    """To three digits, so that it is the same on all machines."""
    if error is None or least is None or not (0 < least < math.inf and 0 < error < math.inf):
        return None
    ratio = float(f"{error / least:.3g}")
    return ratio if 0 < ratio < math.inf else None


def _error(plan: Plan, output: PlanOutput) -> float | None:
    """Something that the errors of an output are in proportion to, the same in both plans."""
    releases = [plan.releases[number] for number in output.releases]
    noises = [_deviation(release) for release in releases]
    parts = _OF_PARTS.get(type(output.error))
    if parts is not None:
        if len(parts) != len(noises):
            return None
        return math.sqrt(sum(w * n * n for w, n in zip(parts, noises, strict=True)))
    if len(noises) == 1 and noises[0] and isinstance(output.error, PartError):
        return noises[0]
    with suppress(DPFrameError):  # what depends on the data
        return plan.accuracy(output.name)
    return None


def _deviation(release: NoisyAggregate) -> float:
    """The deviation of the noise, relative to what one row adds; 0 where nothing is added."""
    noise = release.noise
    if not isinstance(noise, AdditiveMechanism) or not release.exact.linf:
        return 0.0
    return math.sqrt(noise.variance()) / float(release.exact.linf)
