"""Which of several ways to draw the parts of a plan has the least expected error.

"Least" means the smallest weighted sum over outputs of their expected squared errors, each
relative to its error when every part is drawn separately. An output's error is the sum of its
parts' variances, each by its effect on the output. That is known from the plan alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.aggregates.measurement import Rebuilt
from dpframe.aggregates.noise import noise_of
from dpframe.choose.together import ComposedChoice
from dpframe.errors import DPFrameError
from dpframe.mechanisms import MechanismTask

WORTH_WHILE: Final = 0.98
"""Less than that much of the error is worth another way."""
_MOST: Final = 150.0
"""Of logarithms of gains, whose squares floats hold."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedWay:
    """One way, as the mechanisms that it needs."""

    tasks: Sequence[MechanismTask]  # The draws
    # Their costs relative to each other, of epsilon and of rho.
    weights: Sequence[Fraction]
    rho_weights: Sequence[Fraction]
    # For each part the number of its draw, and how it follows from it.
    parts: Sequence[tuple[int, Rebuilt | None]]
    # For each output its parts, each with the logarithm of what its variance does to the error.
    outputs: Sequence[Sequence[tuple[int, float]]]
    importance: Sequence[float]  # How much the error of each of these outputs counts


@dataclass(frozen=True, slots=True, eq=False)
class ChosenWay:
    """The way that is taken."""

    number: int  # Which one it is
    together: ComposedChoice  # The mechanisms of its draws
    # For each part, the factor by which its deviation is smaller than when drawn alone.
    gains: tuple[float, ...]


def least_error_way(
    ways: Sequence[AskedWay], choose: Callable[[AskedWay], ComposedChoice]
) -> ChosenWay:
    """The way with the least expected error. `ways`: the first draws each part separately.
    `choose`: mechanisms for one way. Raises `DPFrameError` when no way can be released at the cost.
    """
    first = choose(ways[0])
    best = ChosenWay(0, first, (1.0,) * len(ways[0].parts))
    if len(ways) == 1:
        return best
    alone = _log_errors(ways[0], first)
    before = _log_outputs(ways[0], alone)
    least = WORTH_WHILE * sum(ways[0].importance)
    for number, way in enumerate(ways[1:], 1):
        with suppress(DPFrameError):  # a measure that does not know the mechanism
            found = choose(way)
            errors = _log_errors(way, found)
            ratios = _ratios(_log_outputs(way, errors), before)
            error = sum(map(operator.mul, way.importance, ratios))
            if error < least:
                best, least = ChosenWay(number, found, _ratios(alone, errors)), error
    return best


def _ratios(above: Sequence[float], below: Sequence[float]) -> tuple[float, ...]:
    """Of numbers that are given by their logarithms."""
    pairs = zip(above, below, strict=True)
    return tuple(math.exp(min(_MOST, max(-_MOST, a - b))) for a, b in pairs)


def _log_outputs(way: AskedWay, errors: Sequence[float]) -> list[float]:
    """Logarithms of the outputs' expected squared errors, from those of the parts' deviations."""
    found = []
    for output in way.outputs:
        terms = [2.0 * errors[part] + effect for part, effect in output]
        most = max(terms)
        found.append(most + math.log(sum(math.exp(term - most) for term in terms)))
    return found


def _log_errors(way: AskedWay, together: ComposedChoice) -> list[float]:
    return [
        noise_of(together.choices[draw].law, rebuilt).log_noise(way.tasks[draw].alternatives)
        for draw, rebuilt in way.parts
    ]
