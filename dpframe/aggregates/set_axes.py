"""The axes of tables by grouping sets: the columns of the sets, and cells of a histogram or of a
distribution function.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.aggregates.cells import BinCells, Cells
from dpframe.aggregates.margins import Margin
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.run_margins import RunMargin
from dpframe.aggregates.up_to_cells import UpToCells
from dpframe.frames.grouping_sets import SetGroups
from dpframe.workloads import Part

__all__ = ["SetAxes", "columns_of"]


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
        if isinstance(self.cells, UpToCells):
            return (*names, "step")
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

    def measured(self, table: Table, part: Part) -> Margin:
        """The sums of a table that a part of a strategy is, of runs of cells where it has such."""
        margin, last = self.margin(table, columns_of(part)), part.factors[-1]
        if not last.axis.is_ordered or last.level in (0, last.axis.height):
            return margin
        about = margin.table, margin.sizes, margin.kept, margin.by
        return RunMargin(*about, last.axis.branching, last.level)


def columns_of(part: Part) -> tuple[int, ...]:
    """The axes that a part is a table of, by their numbers."""
    return tuple(i for i, level in enumerate(part.levels) if level > 0 or part.shape[i] > 1)
