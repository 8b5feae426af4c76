"""What the noise of parts does to the errors of outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from dpframe.aggregates.aggregate import Query
from dpframe.infer.measurements import PlannedMeasurement

__all__ = ["Effects", "effects_of"]

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
