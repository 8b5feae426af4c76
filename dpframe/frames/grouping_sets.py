"""Groups by several sets of columns at once, in one result."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from dpframe.core.tree import Named
from dpframe.frames.groups import Groups

__all__ = ["GROUPING", "SetGroups"]

GROUPING = "grouping"
"""The column that shows which columns a row's set leaves out."""


@dataclass(frozen=True, eq=False)
class SetGroups(Groups):
    """Groups by several sets of the columns. The keys are the product of those of each column, in
    the order of the columns, and a row counts only where all of its values are among them.

    Parameters
    ----------
    sets
        The columns of each set, by their numbers, in the order in which the sets are released.
    written
        How the sets were written.
    """

    sets: tuple[tuple[int, ...], ...] = ()
    written: str = ""

    @cached_property
    def values(self) -> tuple[pl.Series, ...]:
        """The keys of each column."""
        return tuple(column.unique(maintain_order=True) for column in self.keys.get_columns())

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many there are."""
        return tuple(map(len, self.values))

    def words(self) -> str:
        return f"group_by({self.written})"

    def margin(self, kept: tuple[int, ...]) -> Groups | None:
        """The groups by some of the columns alone; None where that is all rows together."""
        if not kept:
            return None
        by: tuple[Named, ...] = tuple(self.by[i] for i in kept)
        return Groups(by, self.table(kept), self.origin)

    def entries(self, kept: tuple[int, ...]) -> int:
        """How many groups there are by some of the columns."""
        return math.prod(self.sizes[i] for i in kept)

    def grouping(self, kept: tuple[int, ...]) -> int:
        """The columns that a set leaves out as bits, the first column's highest."""
        width = len(self.by)
        return sum(1 << (width - 1 - i) for i in range(width) if i not in kept)

    def shown(self) -> Groups:
        """The groups of all sets as they stand in a result."""
        frames = []
        for kept in self.sets:
            found = self.table(kept)
            columns = [
                found[name] if i in kept else pl.Series(name, [None], dtype=dtype)
                for i, (name, dtype) in enumerate(self.keys.schema.items())
            ]
            height = self.entries(kept)
            columns = [c if len(c) == height else c.new_from_index(0, height) for c in columns]
            bits = pl.Series(GROUPING, [self.grouping(kept)], dtype=pl.UInt32)
            frames.append(pl.DataFrame([*columns, bits.new_from_index(0, height)]))
        return Groups(self.by, pl.concat(frames), self.origin)

    def table(self, kept: tuple[int, ...]) -> pl.DataFrame:
        """The keys of the groups by some of the columns alone."""
        frames = [self.values[i].to_frame() for i in kept]
        if not frames:
            return pl.DataFrame()
        made = frames[0]
        for frame in frames[1:]:
            made = made.join(frame, how="cross", maintain_order="left_right")
        return made
