"""Which noisy vectors a query needs, each once, and what their noise does to errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dpframe.aggregates.aggregate import MeasurementKey, MeasurementUse, Query
from dpframe.aggregates.keys import key_selection
from dpframe.aggregates.measurement import Measurement
from dpframe.aggregates.request import Request
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.frames.groups import Groups
from dpframe.frames.per_individual import rounds_of

# -- which noisy vectors a query needs, each once, and what each may cost relative to the others --


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMeasurement:
    """A part of the plan."""

    part: Measurement  # The vector
    name: str  # The first output that uses it
    role: str  # What it is there: ``"count"``, ``"mean.sum"``,
    mechanism: str  # The request: ``"auto"`` or a name
    sensitivity: ExactSensitivity  # In the part's integer units
    weight: Fraction  # Its share of the cost, relative to the other parts; 0 for what costs nothing
    users: tuple[str, ...]  # The requests that use it
    # The sum of its squared effects on the relative errors of the outputs; 0 for what costs
    # nothing.
    impact: Fraction = Fraction(1)


def measurements_of(query: Query) -> tuple[PlannedMeasurement, ...]:
    """The parts of a query in order of first use.

    Two outputs share a part when they need the same statistic of the same rows by the same
    mechanism. An output spends its weight on its parts, but never pays for a part that
    another output pays for as much already: what it saves goes to its other parts.

    Raises `UnboundedSensitivity` when nothing limits what one individual contributes.
    """
    scope = query.scope
    numbers: dict[MeasurementKey, int] = {}
    collected: list[list[tuple[Request, MeasurementUse]]] = []
    demands: list[tuple[Request, dict[int, Fraction]]] = []
    for aggregate in query.aggregates:
        request, wanted = aggregate.request, dict[int, Fraction]()
        for use, key in zip(aggregate.uses, aggregate.keys, strict=True):
            number = numbers.setdefault(key, len(collected))
            if number == len(collected):
                collected.append([])
            collected[number].append((request, use))
            wanted.setdefault(number, use.portion)
        demands.append((request, wanted))
    sensitivities = [part.sensitivity(scope) for part, _ in numbers]
    free = {number for number, found in enumerate(sensitivities) if found.is_zero}
    apart = {n for n, users in enumerate(collected) if not all(use.is_shared for _, use in users)}
    weights = _weights(demands, free, apart)
    used = tuple(
        PlannedMeasurement(
            part,
            users[0][0].name,
            users[0][1].role,
            mechanism,
            sensitivities[number],
            weights.get(number, Fraction(0)),
            tuple(dict.fromkeys(request.name for request, _ in users)),
            Fraction(0) if number in free else sum((use.impact for _, use in users), Fraction(0)),
        )
        for number, ((part, mechanism), users) in enumerate(zip(numbers, collected, strict=True))
    )
    if query.groups is None or not query.groups.discovered:
        return used
    return (_keys(query, query.groups), *used)


def _keys(query: Query, groups: Groups) -> PlannedMeasurement:
    """The choice of the groups, which every output needs."""
    part = key_selection(query.scope, rounds_of(query.relation))
    users = tuple(dict.fromkeys(request.name for request in query.requests))
    weight = max(request.weight for request in query.requests)
    sensitivity = part.sensitivity(query.scope)
    return PlannedMeasurement(part, groups.names[0], "keys", "auto", sensitivity, weight, users)


def _weights(
    demands: list[tuple[Request, dict[int, Fraction]]], free: set[int], apart: set[int]
) -> dict[int, Fraction]:
    """Relative costs by the number of a part; outputs with fewer parts first, because they have
    nothing to choose. Of parts that are `apart` each output pays for its own share.
    """
    weights: dict[int, Fraction] = {}
    for request, wanted in sorted(demands, key=lambda demand: len(demand[1])):
        paying = [number for number in wanted if number not in free]
        portions = sum((wanted[number] for number in paying), Fraction(0))
        unpaid = [
            n
            for n in paying
            if n in apart or weights.get(n, Fraction(0)) < request.weight * wanted[n] / portions
        ]
        portions = sum((wanted[number] for number in unpaid), Fraction(0))
        for number in unpaid:
            before = weights.get(number, Fraction(0)) if number in apart else Fraction(0)
            weights[number] = before + request.weight * wanted[number] / portions
    return weights


# -- what the noise of parts does to the errors of outputs ----------------------------------------

Effects: TypeAlias = list[tuple[Fraction, list[tuple[int, float]]]]
"""For each aggregate its weight, and the effects of its parts by their numbers."""


def effects_of(query: Query, parts: Sequence[PlannedMeasurement]) -> Effects:
    """For each aggregate its weight, and its parts that individuals move, with the logarithm of
    what the variance of one, in steps, does to the squared error relative to what one row can make.
    """
    numbers = {(use.part, use.mechanism): n for n, use in enumerate(parts)}
    found = []
    for aggregate in query.aggregates:
        effects = []
        for use, key in zip(aggregate.uses, aggregate.keys, strict=True):
            linf = parts[numbers[key]].sensitivity.linf
            if linf and use.impact:
                effects.append((numbers[key], _log(use.impact) - 2 * _log(linf)))
        if effects:
            found.append((aggregate.request.weight, effects))
    return found


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
