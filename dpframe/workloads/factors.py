"""The sums of the nodes of one axis, and how children differ from their siblings' mean.

Both are orthogonal to scale on the levels of the tree. With E the sums of the nodes of a level over
m leaves each, E'E is m on the subspace of every level up to that one and 0 beyond. With C the
contrasts of b children, b times a child less the sum of its siblings and itself, C'C is b**2 m on
the subspace of its own level and 0 on all others. Of two children one difference says it all, and
C'C is 2 m. So the least squares estimate of a level's part of a table is a weighted mean, and no
matrix is ever solved (Xiao et al. 2023, ResidualPlanner, for trees of height 1). Sums are measured;
contrasts only carry estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis

Integers: TypeAlias = "NDArray[np.int64]"
_Numbers = TypeVar("_Numbers", "NDArray[np.int64]", "NDArray[np.float64]")


@dataclass(frozen=True, slots=True)
class Factor:
    """A map of one axis to integers: the sum of each node of a level. A cell is in one of them.

    Parameters
    ----------
    axis
        What it maps.
    level
        The level of the nodes.
    """

    axis: Axis
    level: int

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        return self.axis.nodes(self.level)

    def energy(self, level: int) -> int:
        """What the squared norm of a vector in the subspace of a level is multiplied by."""
        return self.axis.width(self.level) if level <= self.level else 0

    def of(self, table: Integers, at: int) -> Integers:
        """The map of each line of a table along its axis number `at`, modulo 2**64."""
        return block_sums(table, at, self.axis.width(self.level))


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
