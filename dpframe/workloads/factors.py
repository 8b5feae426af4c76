"""Integer maps of one axis: sums of nodes, and how children differ from their siblings' mean.

Both are orthogonal to scale on the levels of the tree. With E the sums of the nodes of a level over
m leaves each, E'E is m on the subspace of every level up to that one and 0 beyond. With C the
contrasts of b children, b times a child less the sum of its siblings and itself, C'C is b**2 m on
the subspace of its own level and 0 on all others. Of two children one difference says it all, and
C'C is 2 m. So the least squares estimate of a level's part of a table is a weighted mean, and no
matrix is ever solved (Xiao et al. 2023, ResidualPlanner, for trees of height 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis

__all__ = ["Factor", "Integers", "Relation", "block_sums", "compared"]

Integers: TypeAlias = "NDArray[np.int64]"
_Numbers = TypeVar("_Numbers", "NDArray[np.int64]", "NDArray[np.float64]")
Relation: TypeAlias = tuple[tuple[int, int, int], ...]
"""The entries of the images of two cells: what each has there, and in how many entries."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A map of one axis to integers.

    Parameters
    ----------
    axis
        What it maps.
    level
        The factors of the nodes that are summed up, or that are compared with their siblings.
    is_contrast
        Which of the two it is. Contrasts begin at level 1.
    """

    axis: Axis
    level: int
    is_contrast: bool = False

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        if not self.is_contrast:
            return self.axis.nodes(self.level)
        parents, children = self.axis.nodes(self.level - 1), self.axis.branching
        return parents if children == 2 else parents * children

    def energy(self, level: int) -> int:
        """What the squared norm of a vector in the subspace of a level is multiplied by."""
        width, b = self.axis.width(self.level), self.axis.branching
        if not self.is_contrast:
            return width if level <= self.level else 0
        if level != self.level:
            return 0
        return 2 * width if b == 2 else b * b * width

    @property
    def l0(self) -> int:
        """How many entries one cell is in."""
        return self.axis.branching if self._is_wide else 1

    @property
    def l1(self) -> int:
        """The sum of the absolute entries of one cell."""
        return 2 * (self.axis.branching - 1) if self._is_wide else 1

    @property
    def l2_squared(self) -> int:
        """The sum of their squares."""
        return self.axis.branching * (self.axis.branching - 1) if self._is_wide else 1

    @property
    def linf(self) -> int:
        """The largest of them."""
        return self.axis.branching - 1 if self._is_wide else 1

    @property
    def _is_wide(self) -> bool:
        return self.is_contrast and self.axis.branching > 2

    @property
    def is_injective(self) -> bool:
        """Whether each cell has an entry of its own."""
        return not self.is_contrast and self.level == self.axis.height

    @property
    def same(self) -> Relation:
        """Two cells with one image."""
        b = self.axis.branching
        return ((b - 1, b - 1, 1), (-1, -1, b - 1)) if self._is_wide else ((1, 1, 1),)

    @property
    def others(self) -> tuple[Relation, ...]:
        """How the images of two cells can differ."""
        axis, b = self.axis, self.axis.branching
        apart = axis.size > axis.width(self.level)
        if not self.is_contrast:
            return (((1, 0, 1), (0, 1, 1)),) if apart else ()
        found: list[Relation] = []
        if apart:
            found.append(
                ((b - 1, -1, 1), (-1, b - 1, 1), (-1, -1, b - 2)) if b > 2 else ((1, -1, 1),)
            )
        if axis.size > axis.width(self.level - 1):
            one = ((b - 1, 1), (-1, b - 1)) if b > 2 else ((1, 1),)
            found.append((*((u, 0, n) for u, n in one), *((0, u, n) for u, n in one)))
        return tuple(found)

    @property
    def merges(self) -> bool:
        """Whether different cells may have one image."""
        return self.axis.width(self.level) > 1 and self.axis.size > 1

    def of(self, table: Integers, at: int) -> Integers:
        """The map of each line of a table along its axis number `at`, modulo 2**64."""
        sums = block_sums(table, at, self.axis.width(self.level))
        if not self.is_contrast:
            return sums
        return compared(sums, at, self.axis.nodes(self.level - 1), self.axis.branching)


def compared(sums: _Numbers, at: int, parents: int, children: int) -> _Numbers:
    """The contrasts of this many children of each parent along one axis."""
    before, after = sums.shape[:at], sums.shape[at + 1 :]
    table = filled(sums, at, parents * children).reshape(*before, parents, children, *after)
    if children == 2:
        return cast("_Numbers", table.take(0, axis=at + 1) - table.take(1, axis=at + 1))
    total = table.sum(axis=at + 1, keepdims=True)
    return cast("_Numbers", (table * children - total).reshape(*before, -1, *after))


def filled(table: _Numbers, at: int, size: int) -> _Numbers:
    """The table with zeros up to this many entries along one axis."""
    missing = size - table.shape[at]
    if not missing:
        return table
    shape = (*table.shape[:at], missing, *table.shape[at + 1 :])
    return cast("_Numbers", np.concatenate([table, np.zeros(shape, dtype=table.dtype)], axis=at))


def block_sums(table: _Numbers, at: int, width: int) -> _Numbers:
    """Sums of this many neighbours each along one axis; the last block may have fewer."""
    size = table.shape[at]
    if width == 1:
        return table
    if width >= size:
        return cast("_Numbers", table.sum(axis=at, keepdims=True))
    blocks = -(-size // width)
    shape = (*table.shape[:at], blocks, width, *table.shape[at + 1 :])
    return cast("_Numbers", filled(table, at, blocks * width).reshape(shape).sum(axis=at + 1))
