"""The axes of tables by grouping sets: the columns of the sets, and cells of a histogram."""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.aggregates.cells import BinCells, Cells
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import Table
from dpframe.frames.grouping_sets import SetGroups

__all__ = ["SetAxes"]


@dataclass(frozen=True, slots=True, eq=False)
class SetAxes:
    """The axes of the tables that one aggregate is made of.

    Parameters
    ----------
    groups
        The grouping sets.
    cells
        What each group is divided into, in every set; None for one number.
    """

    groups: SetGroups
    cells: Cells | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each axis has."""
        sizes = self.groups.sizes
        return sizes if self.cells is None else (*sizes, self.cells.size)

    @property
    def width(self) -> int:
        """How many numbers a group has."""
        return 1 if self.cells is None else self.cells.size

    @property
    def names(self) -> tuple[str, ...]:
        """What each axis is called in plans."""
        names = tuple(self.groups.names)
        if self.cells is None:
            return names
        return (*names, "bin" if isinstance(self.cells, BinCells) else "category")

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The axes of each set's table, by their numbers."""
        if self.cells is None:
            return self.groups.sets
        last = len(self.groups.sizes)
        return tuple((*kept, last) for kept in self.groups.sets)

    @property
    def kept(self) -> list[tuple[bool, ...]]:
        """For each set whether its table has each axis."""
        axes = range(len(self.sizes))
        return [tuple(i in kept for i in axes) for kept in self.sets]

    @property
    def everything(self) -> tuple[int, ...]:
        """The numbers of all axes."""
        return tuple(range(len(self.sizes)))

    def margin(self, table: Table, kept: tuple[int, ...]) -> Margin:
        """The sums of a table over all axes but those."""
        return Margin(table, self.sizes, kept, tuple(self.names[i] for i in kept))
