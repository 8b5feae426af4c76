"""Which of several ways to draw the parts of a plan has the least expected error.

What "least" means: the sum over parts of the variance relative to what the part has when each part
is drawn by itself. That is known from the plan alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpframe.aggregates.joint_sums import Rebuilt
from dpframe.aggregates.noise_law import noise_of
from dpframe.choose.together import ComposedChoice
from dpframe.errors import DPFrameError
from dpframe.mechanisms import MechanismTask

__all__ = ["AskedWay", "ChosenWay", "least_error_way"]

_ENOUGH: Final = 0.995
"""Less than that much of the error is worth another way."""
_MOST: Final = 150.0
"""Of logarithms of gains, whose squares floats hold."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedWay:
    """One way, as what mechanisms are asked for.

    Parameters
    ----------
    tasks
        The draws.
    weights, rho_weights
        Their costs relative to each other, of epsilon and of rho.
    parts
        For each part the number of its draw, and how it follows from it.
    """

    tasks: Sequence[MechanismTask]
    weights: Sequence[Fraction]
    rho_weights: Sequence[Fraction]
    parts: Sequence[tuple[int, Rebuilt | None]]


@dataclass(frozen=True, slots=True, eq=False)
class ChosenWay:
    """The way that is taken.

    Parameters
    ----------
    number
        Which one it is.
    together
        The mechanisms of its draws.
    gains
        For each part how many times less its deviation is than by itself.
    """

    number: int
    together: ComposedChoice
    gains: tuple[float, ...]


def least_error_way(
    ways: Sequence[AskedWay], choose: Callable[[AskedWay], ComposedChoice]
) -> ChosenWay:
    """The way with the least expected error.

    Parameters
    ----------
    ways
        The first draws each part by itself.
    choose
        Mechanisms for one way.

    Raises
    ------
    DPFrameError
        When no way can be released at the cost.
    """
    first = choose(ways[0])
    best = ChosenWay(0, first, (1.0,) * len(ways[0].parts))
    if len(ways) == 1:
        return best
    alone = _log_errors(ways[0], first)
    least = _ENOUGH * len(alone)
    for number, way in enumerate(ways[1:], 1):
        with suppress(DPFrameError):  # a measure that does not know the mechanism
            found = choose(way)
            gains = tuple(
                math.exp(min(_MOST, max(-_MOST, a - e)))
                for a, e in zip(alone, _log_errors(way, found), strict=True)
            )
            error = sum(gain**-2 for gain in gains)
            if error < least:
                best, least = ChosenWay(number, found, gains), error
    return best


def _log_errors(way: AskedWay, together: ComposedChoice) -> list[float]:
    return [
        noise_of(together.choices[draw].law, rebuilt).log_noise(way.tasks[draw].alternatives)
        for draw, rebuilt in way.parts
    ]
