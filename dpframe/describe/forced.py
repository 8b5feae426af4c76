"""What it costs that somebody asked for a mechanism, or for an equal division of the cost: errors
beside those of the plan that takes what has the least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
from dpframe.plan import NoisyAggregate, PlanOutput
from dpframe.report import Plan

__all__ = ["cost_of_forcing", "is_forced", "unforced"]

_SHOWN: Final = 8
_SAME: Final = 0.005
_OF_PARTS: Final = {MeanError: (1.0, 1.0), VarianceError: (0.25, 1.0, 0.25)}
"""What the squared errors of parts, each relative to what a row adds, do to that of the result."""


def is_forced(queries: Sequence[Query], split: str) -> bool:
    """Whether mechanisms were asked for, or the cost is divided otherwise than for least error."""
    return split == "equal" or any(True for query in queries for _ in _named(query))


def unforced(query: Query) -> Query:
    """The same query where no mechanism was asked for.

    Raises
    ------
    DPFrameError
        Where what is asked has no mechanism but that.
    """
    scope = query.scope
    outputs = tuple(
        replace(
            output, aggregates={p: _free(found, scope) for p, found in output.aggregates.items()}
        )
        for output in query.outputs
    )
    return replace(query, outputs=outputs)


def _named(query: Query) -> Iterator[BoundAggregate]:
    return (found for found in query.aggregates if found.request.mechanism != "auto")


def _free(aggregate: BoundAggregate, scope: QueryScope) -> BoundAggregate:
    if aggregate.request.mechanism == "auto":
        return aggregate
    return rolled(bind(replace(aggregate.request, mechanism="auto"), scope), scope)


def cost_of_forcing(queries: Sequence[Query], plan: Plan, least: Plan) -> str:
    """In words, by output; empty where nothing can be told.

    Parameters
    ----------
    queries
        What was asked.
    plan, least
        Its plan, and that of the same where nothing is forced, at the same spend.
    """
    if len(plan.outputs) != len(least.outputs):
        return ""
    pairs = zip(plan.outputs, least.outputs, strict=True)
    ratios = {a.name: _ratio(_error(plan, a), _error(least, b)) for a, b in pairs}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if not known:
        return ""
    names = sorted(dict.fromkeys(found.name for query in queries for found in _named(query)))
    asked = [f"mechanism= of {', '.join(names)}"] if names else []
    asked += ['split="equal"'] if plan.split == "equal" else []
    said, least_error = f"{' and '.join(asked)}, as asked", "those of a plan with the least error"
    if all(abs(ratio - 1) < _SAME for ratio in known.values()):
        return f"{said}: errors are {least_error}"
    shown = [f"{name} {ratio:.3g}" for name, ratio in list(known.items())[:_SHOWN]]
    more = f", and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{said}: errors are so many times {least_error}: {', '.join(shown)}{more}"


def _ratio(error: float | None, least: float | None) -> float | None:
    if error is None or least is None or not (0 < least < math.inf and error < math.inf):
        return None
    return error / least


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
    """Of the noise, relative to what one row adds; 0 where nothing is added."""
    noise = release.noise
    if not isinstance(noise, AdditiveMechanism) or not release.exact.linf:
        return 0.0
    return math.sqrt(noise.variance()) / float(release.exact.linf)
