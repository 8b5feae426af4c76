"""The columns of a table as trees of cells, whose levels are what can be measured of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of one column.

    They are the leaves of a tree in which every node has `branching` children: of height 1 where
    the cells have no order, so that its levels are their sum and how each differs from their mean.
    Leaves beyond `size` fill the tree up; they are known to be empty.

    Parameters
    ----------
    size
        How many cells there are, at least one.
    branching
        How many children a node has, at least two.
    is_ordered
        Whether neighbouring cells belong together, so that prefixes and ranges can be wanted.
    """

    size: int
    branching: int
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
