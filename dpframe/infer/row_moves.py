"""The best scales of several numbers for Gaussian noise, where rows change.

With y_j the squared width of number j at its scale, and r_j the square of what a row that stays
moves it by over that width, the squared norm of what one row moves is at most 1 where

    c sum(y) <= 1,  and  z <= 1,

with c = 2 where rows leave one group for another, else 1, and z the sum over numbers that need the
row alone of y_j r_j, and over each other condition of the larger of sum(y_j r_j) and sum(y_j).
`moves_of` of the kernel has the proof. The noise of number j goes with 1 / y_j, so errors are
sum(a_j / y_j).

For fixed weights of these inequalities they are sum(y_j u_j) <= 1, and the least error under that
is (sum sqrt(a_j u_j))**2 at y_j in proportion to sqrt(a_j / u_j) (Cauchy and Schwarz). By duality
the largest of these, over all weights, is the least error under all of them: weight w of the first
inequality, and in what is left, at each condition, a share of the second sum. That is concave,
with each share on its own once w is known, so both are found by halving intervals. The scales
make noise good, not private: norms are computed exactly from any scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["best_shares"]

_HALVINGS: Final = 24


@dataclass(frozen=True, slots=True)
class _Group:
    """The numbers of one condition.

    Parameters
    ----------
    places
        Which they are.
    needs
        What errors need of each one.
    ratios
        What a row that stays moves each by, over its width, squared.
    is_met
        Whether every row that stays meets the condition, before and after.
    """

    places: tuple[int, ...]
    needs: tuple[float, ...]
    ratios: tuple[float, ...]
    is_met: bool

    def burdens(self, left: float, weight: float, once: float) -> list[float]:
        """What the square of each number counts: `left` for each unit of the weight of rows that
        come or go, and in the rest this much where the condition is met once.
        """
        rest = 1.0 - weight
        return [left * weight + rest * (once + (1.0 - once) * r) for r in self.ratios]

    def once(self, left: float, weight: float) -> float:
        """The share of what is left at which the error is largest."""
        if self.is_met or max(self.ratios) <= 1.0:
            return 0.0 if self.is_met else 1.0

        turns = [1.0 - r for r in self.ratios]
        return _largest(lambda once: self._slope(self.burdens(left, weight, once), turns) > 0.0)

    def rises(self, left: float, weight: float) -> float:
        """How fast the root of the error rises with the weight."""
        once = self.once(left, weight)
        turns = [left - once - (1.0 - once) * r for r in self.ratios]
        return self._slope(self.burdens(left, weight, once), turns)

    def _slope(self, burdens: Sequence[float], turns: Sequence[float]) -> float:
        return sum(
            turn * math.sqrt(need / burden)
            for turn, need, burden in zip(turns, self.needs, burdens, strict=True)
        )


def best_shares(
    needs: Sequence[float], ratios: Sequence[float], conditions: Sequence[int], vectors: int
) -> tuple[float, ...]:
    """The squared width of each number at its best scale, up to one factor.

    Parameters
    ----------
    needs
        What errors need of each number's variance, in squared widths; above 0.
    ratios, conditions
        What a row that stays moves each by, over its width, squared; and what it needs for that, 0
        where it needs to be there.
    vectors
        How many vectors a row moves that leaves one of them.
    """
    groups = []
    for condition in dict.fromkeys(conditions):
        places = tuple(p for p, other in enumerate(conditions) if other == condition)
        of = tuple(needs[p] for p in places), tuple(ratios[p] for p in places)
        groups.append(_Group(places, *of, condition == 0))
    left = float(vectors)
    weight = _largest(lambda w: sum(group.rises(left, w) for group in groups) > 0.0)
    found = [0.0] * len(needs)
    for group in groups:
        burdens = group.burdens(left, weight, group.once(left, weight))
        for place, need, burden in zip(group.places, group.needs, burdens, strict=True):
            found[place] = math.sqrt(need / burden)
    return tuple(found)


def _largest(rises: Callable[[float], bool]) -> float:
    """Where a concave function between 0 and 1 is largest."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return (low + high) / 2
