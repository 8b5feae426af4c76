"""Groups with public keys: which values the rows are grouped by, and which groups are released."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from dpframe.core.tree import Column, Named
from dpframe.rows.fold import outer_words


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A group-by whose keys are known without data.

    Every key gives a row of the result, even when no row of the frame has it; rows with other keys
    are dropped. So which groups appear says nothing about the data.

    Parameters
    ----------
    by
        The grouping expressions and the names of their columns.
    keys
        The public keys: one column for each of `by`, of its type, each row once.
    origin
        Where the keys come from, for the plan.
    """

    by: tuple[Named, ...]
    keys: pl.DataFrame
    origin: str

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.keys.height

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.by)

    def words(self) -> str:
        by = (
            outer_words(n.tree) if n.tree == Column(n.name) else f"{n.name}={outer_words(n.tree)}"
            for n in self.by
        )
        return f"group_by({', '.join(by)})"
