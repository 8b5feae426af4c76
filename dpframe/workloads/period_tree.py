"""Trees of sums of neighbouring periods, each drawn when its last period ends; see
`dpframe.workloads.running`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpframe.workloads.running import Floats, Integers, Moved, RunningSums, require_length


@dataclass(frozen=True, slots=True)
class PeriodTree(RunningSums):
    """Sums of branching**h neighbouring periods for each h below `levels`, and of no more.

    Parameters
    ----------
    length
        How many periods there are.
    branching
        How many sums of one level make one of the next.
    levels
        How many levels there are; one is the periods separately.
    """

    length: int
    branching: int
    levels: int
    name: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        require_length(self.length)
        if self.branching < 2 or not 1 <= self.levels <= 64:
            raise ValueError("a tree of periods of this shape does not exist")

    @property
    def periods(self) -> int:
        return self.length

    @property
    def unit(self) -> int:
        return 1

    def rows_of(self, period: int) -> int:
        return len(self._closing(period))

    def _closing(self, period: int) -> list[int]:
        """The widths of the sums that end with a period, the narrowest first."""
        widths = [self.branching**level for level in range(self.levels)]
        return [width for width in widths if (period + 1) % width == 0]

    def moved(self, run: int) -> Moved:
        run, levels = min(run, self.length), self.levels
        return Moved(run * levels, run * levels, run * run * levels, run)

    def sums(self, exact: Integers, period: int) -> Integers:
        end = period + 1
        found = [
            exact[..., end - width : end].sum(axis=-1, dtype=np.int64)
            for width in self._closing(period)
        ]
        return np.stack(found, axis=-1)

    def own(self, drawn: Sequence[Integers], period: int) -> Floats:
        return drawn[period][..., 0].astype(np.float64)

    def total(self, drawn: Sequence[Integers], period: int) -> Floats:
        found = np.zeros(drawn[0].shape[:-1])
        for last, width in self._pieces(period):
            place = self._closing(last).index(width)
            found = found + drawn[last][..., place].astype(np.float64)
        return found

    def totals(self, drawn: Sequence[Integers]) -> Floats:
        return np.stack([self.total(drawn, period) for period in range(len(drawn))], axis=-1)

    def _pieces(self, period: int) -> set[tuple[int, int]]:
        """The sums that the total up to a period is made of: the last period of each, and how wide
        it is.
        """
        found, end = set[tuple[int, int]](), period + 1
        while end > 0:
            width = self._closing(end - 1)[-1]
            found.add((end - 1, width))
            end -= width
        return found

    def pieces(self, period: int) -> int:
        """The number of sums in the total up to a period."""
        return len(self._pieces(period))

    def total_factors(self, period: int) -> Floats:
        return np.ones(self.pieces(period))

    def window_factors(self, first: int, last: int) -> Floats:
        before = self._pieces(first - 1) if first else set()
        return np.ones(len(self._pieces(last) ^ before))

    def own_factors(self, period: int) -> Floats:
        return np.ones(1)

    @property
    def adds_up(self) -> bool:
        return self.levels == 1

    def words(self) -> str:
        if self.levels == 1:
            return "each period by itself, and totals add these up"
        widths = ", ".join(str(self.branching**level) for level in range(self.levels))
        return f"sums of {widths} neighbouring periods, each when its last one ends"


def best_tree(length: int) -> PeriodTree:
    """The tree with the least mean squared error of totals where noise grows with the number of
    levels, as it does for pure epsilon.
    """
    offered = [PeriodTree(length, 2, 1)]
    for levels in range(2, 13):
        top = max(2, round(length ** (1 / levels)) + 2)
        offered += [
            PeriodTree(length, b, levels) for b in range(2, top + 1) if b ** (levels - 1) <= length
        ]
    return min(offered, key=lambda tree: (tree.levels**2 * _digits(tree), tree.levels))


def _digits(tree: PeriodTree) -> int:
    """How many sums all totals are made of."""
    count = 0
    for end in range(1, tree.length + 1):
        left = end
        for _ in range(tree.levels - 1):
            left, digit = divmod(left, tree.branching)
            count += digit
        count += left
    return count
