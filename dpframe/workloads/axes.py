"""The columns of a table as trees of cells, whose levels are what can be measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of one column.

    They are the leaves of a tree in which every node has `branching` children: of height 1 where
    the cells have no order, so that its levels are their sum and how each differs from their mean.
    Leaves beyond `size` fill the tree up; they are known to be empty.
    """

    size: int  # How many cells there are, at least one
    branching: int  # How many children a node has, at least two
    # Whether neighbouring cells belong together, so that prefixes and ranges can be wanted.
    is_ordered: bool = False

    @classmethod
    def nominal(cls, size: int) -> Axis:
        """Cells without an order."""
        return cls(size, max(2, size))

    @classmethod
    def ordered(cls, size: int, branching: int = 2) -> Axis:
        """Cells in an order."""
        return cls(size, branching, is_ordered=True)

    def __post_init__(self) -> None:
        if self.size < 1 or self.branching < 2:
            raise ValueError("an axis has at least one cell, and nodes at least two children")

    @property
    def height(self) -> int:
        """The level of the cells; the whole is level 0."""
        height, leaves = 0, 1
        while leaves < self.size:
            height, leaves = height + 1, leaves * self.branching
        return height

    @property
    def leaves(self) -> int:
        """All leaves of the tree."""
        return self.width(0)

    def width(self, level: int) -> int:
        """How many leaves a node has."""
        width: int = self.branching ** (self.height - level)
        return width

    def nodes(self, level: int) -> int:
        """How many nodes of a level have cells."""
        return -(-self.size // self.width(level))


# The sums of the nodes of one axis, and how children differ from their siblings' mean.
#
# Both are orthogonal to scale on the levels of the tree. With E the sums of the nodes of a level
# over m leaves each, E'E is m on the subspace of every level up to that one and 0 beyond. With C
# the contrasts of b children, b times a child less the sum of its siblings and itself, C'C is b**2
# m on the subspace of its own level and 0 on all others. Of two children one difference says it
# all, and C'C is 2 m. So the least squares estimate of a level's part of a table is a weighted
# mean, and no matrix is ever solved (Xiao et al. 2023, ResidualPlanner, for trees of height 1).
# Sums are measured; contrasts only carry estimates.

Integers: TypeAlias = "NDArray[np.int64]"
_Numbers = TypeVar("_Numbers", "NDArray[np.int64]", "NDArray[np.float64]")


@dataclass(frozen=True, slots=True)
class Factor:
    """A map of one axis to integers: the sum of each node of a level. A cell is in one of them."""

    axis: Axis  # What it maps
    level: int  # The level of the nodes

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


def contrasts_of(sums: _Numbers, at: int, parents: int, children: int) -> _Numbers:
    """The contrasts of this many children of each parent along one axis."""
    before, after = sums.shape[:at], sums.shape[at + 1 :]
    table = pad(sums, at, parents * children).reshape(*before, parents, children, *after)
    if children == 2:
        return cast("_Numbers", table.take(0, axis=at + 1) - table.take(1, axis=at + 1))
    total = table.sum(axis=at + 1, keepdims=True)
    return cast("_Numbers", (table * children - total).reshape(*before, -1, *after))


def pad(table: _Numbers, at: int, size: int) -> _Numbers:
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
    return cast("_Numbers", pad(table, at, blocks * width).reshape(shape).sum(axis=at + 1))


# How much of each level of an axis its queries use: sums of squared norms, exactly.
#
# A node's sum is divided among those of its q children that have cells: each gets a q-th of it, and
# what the contrasts say. So take the estimate of a query with a multiple w_j of each child. Its
# error is the mean of w times the error of the node, plus contrasts with variance in proportion to
#
#     m (sum of w_j**2 - (sum of w_j)**2 / q)
#
# for m leaves below a child: the squared norm of the query in the subspace of the level. Prefixes
# take k children whole, and of the next one what a prefix of that takes, its `pull` on the child's
# own sum. All nodes of a level but the last one are alike. So sums over all prefixes follow from
# the first two moments of pulls in either kind of node, level by level, and no list of cells is
# made.

Kind: TypeAlias = Literal["total", "cells", "prefixes", "ranges"]
"""What is wanted of an axis: the sum of all cells, each cell, the sums of the first 1, 2, ...
cells, or the sums of all runs of neighbouring cells."""
KINDS: Final[tuple[Kind, ...]] = ("total", "cells", "prefixes", "ranges")

_NOTHING: Final = Fraction(0)


def outputs(axis: Axis, kind: Kind) -> int:
    """How many numbers are wanted."""
    n = axis.size
    return {"total": 1, "cells": n, "prefixes": n, "ranges": n * (n + 1) // 2}[kind]


def flat(axis: Axis, kind: Kind) -> Fraction:
    """The mean variance of the numbers where each cell has noise of variance 1; a total is
    measured on its own.
    """
    match kind:
        case "total" | "cells":
            return Fraction(1)
        case "prefixes":
            return Fraction(axis.size + 1, 2)
        case "ranges":
            return Fraction(axis.size + 2, 3)


def share(axis: Axis, level: int) -> Fraction:
    """The squared norm of one cell in the subspace of a level, were all leaves cells."""
    if level == 0:
        return Fraction(1, axis.leaves)
    return Fraction(axis.branching - 1, axis.branching * axis.width(level))


def needs_of(axis: Axis, kind: Kind) -> tuple[Fraction, ...]:
    """For each level, the sum of the squared norms of the queries in its subspace."""
    if kind == "total":
        return (Fraction(axis.leaves), *[_NOTHING] * axis.height)
    whole, last = _Node(1, _NOTHING, _NOTHING, Fraction(1)), None
    norms = list[Fraction]()
    for level in range(axis.height, 0, -1):
        width = axis.width(level)
        many, left = divmod(axis.size, axis.width(level - 1))
        full = _Parent(axis.branching, whole, None)
        partial = _Parent(left // width, whole, last) if left else None
        norms.append(
            width * (many * full.norm(kind, axis) + (partial.norm(kind, axis) if partial else 0))
        )
        whole, last = full.join(), partial.join() if partial else None
    top = whole if last is None else last
    return (axis.leaves * _of_the_whole(top, kind), *reversed(norms))


@dataclass(frozen=True, slots=True)
class _Node:
    """Sums over the prefixes that end in a node, before its last cell, and over its cells."""

    cells: int  # How many it has, and this many prefixes end there: after 0 cells, 1,
    # `pulls`, `squares`: the sums of what the prefixes take of the node's sum, and of the squares.
    pulls: Fraction
    squares: Fraction
    cell_squares: Fraction  # The sum of the squares of what each cell takes of it


@dataclass(frozen=True, slots=True)
class _Parent:
    """A node of this many equal children, and perhaps another one after them."""

    equal: int
    child: _Node
    last: _Node | None

    @property
    def children(self) -> int:
        return self.equal + (self.last is not None)

    def join(self) -> _Node:
        """The node."""
        q, f, one = self.children, self.equal, self.child
        taken, squares = self._sums_taken()
        cells, small = f * one.cells, f * one.cell_squares
        if self.last is not None:
            cells, small = cells + self.last.cells, small + self.last.cell_squares
        return _Node(cells, taken / q, squares / (q * q), small / (q * q))

    def _sums_taken(self) -> tuple[Fraction, Fraction]:
        """Over the prefixes, the sums of all that they take of the children, and of its square."""
        f, one = self.equal, self.child
        first, second = f * (f - 1) // 2, (f - 1) * f * (2 * f - 1) // 6
        taken = one.cells * first + f * one.pulls
        squares = one.cells * second + 2 * first * one.pulls + f * one.squares
        if self.last is not None:
            taken += self.last.cells * f + self.last.pulls
            squares += self.last.cells * f * f + 2 * f * self.last.pulls + self.last.squares
        return Fraction(taken), Fraction(squares)

    def norm(self, kind: Kind, axis: Axis) -> Fraction:
        """The sum of sum w**2 - (sum w)**2 / q over the queries of a kind."""
        q, f, one = self.children, self.equal, self.child
        last = _Node(0, _NOTHING, _NOTHING, _NOTHING) if self.last is None else self.last
        if kind == "cells":
            return (f * one.cell_squares + last.cell_squares) * Fraction(q - 1, q)
        first = f * (f - 1) // 2
        own = one.cells * first + last.cells * f + f * one.squares + last.squares
        _, squares = self._sums_taken()
        prefixes = own - squares / q
        return prefixes if kind == "prefixes" else (axis.size + 1) * prefixes - self._of_sum()

    def _of_sum(self) -> Fraction:
        """The same of the sum of all prefixes: a child is whole in those that end later."""
        q, f, one = self.children, self.equal, self.child
        after = 0 if self.last is None else self.last.cells
        start = one.pulls + after  # of the last of the equal ones; each before has `cells` more
        first, second = f * (f - 1) // 2, (f - 1) * f * (2 * f - 1) // 6
        total = f * start + first * one.cells
        squares = f * start**2 + 2 * first * start * one.cells + second * one.cells**2
        if self.last is not None:
            total, squares = total + self.last.pulls, squares + self.last.pulls**2
        return squares - total * total / q


def _of_the_whole(top: _Node, kind: Kind) -> Fraction:
    """The sum of the squares of what queries take of the sum of all cells."""
    if kind == "cells":
        return top.cell_squares
    if kind == "prefixes":  # of all cells, and not of none
        return top.squares + 1
    return (top.cells + 1) * (top.squares + 1) - (top.pulls + 1) ** 2
