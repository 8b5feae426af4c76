"""Limits that drop pairs of individual and group, and rows where those of a pair are together.

Lowered step by step, a limit on groups makes all pairs, ranks them and keeps the rows of those that
are left, and the group-by after it groups these rows by pairs once more. All rows of a pair are
kept or all are dropped, though. So if the limit comes last and has just the columns that make the
groups, and every statistic adds up over pairs, each pair is made once, with its integers, and the
limit drops pairs. It decides the same: `LimitGroups.keep` looks at the individual, the values and
the salt alone, and each way of it keeps the same. So the exact tables are the same as well, bit
by bit, and what is inferred of the limit holds unchanged. A limit on rows in the same groups,
just before it, is done where pairs are made in memory. The rows of each pair are counted there
anyway, and are ranked as elsewhere only if there are too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import (
    GridSum,
    PairSum,
    RowCount,
    SquareSum,
    Statistic,
    UnitStatistic,
    ValueCount,
)
from dpframe.core.dtypes import DType
from dpframe.core.tree import Column
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups
from dpframe.frames.relation import Relation
from dpframe.frames.sampling import owner_columns
from dpframe.rows.operation import Namespace

UNIT, WINDOW = "unit", "window"
"""What the identifier is called in a frame of pairs, and the number of its window."""


def owner_names(facts: FrameFacts) -> list[str]:
    """The names of the columns that identify individuals in a frame of pairs."""
    return [UNIT] if facts.time is None else [UNIT, WINDOW]


@dataclass(frozen=True, slots=True)
class PairLimit:
    """A limit that drops pairs of individual and group.

    Parameters
    ----------
    limit, before
        The step, and the facts before it.
    salt
        The salt of the release.
    names
        What the columns of the limit are called in a frame of pairs.
    """

    limit: LimitGroups
    before: FrameFacts
    salt: int
    names: dict[str, str]

    def keep(self, pairs: pl.LazyFrame, ns: Namespace) -> pl.LazyFrame:
        """The pairs that are left, of a frame with one row for each."""
        return self.limit.keep(pairs, self.names, self._whose(ns), self.before, self.salt, ns)

    def keep_together(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """The same of a frame in memory, where those of an individual follow each other."""
        whose = self._whose(pl)
        return self.limit.keep_together(pairs, self.names, whose, self.before, self.salt)

    def _whose(self, ns: Namespace) -> dict[str, DType]:
        """The columns that identify individuals."""
        types = (dtype for _, dtype in owner_columns(self.before, ns))
        return dict(zip(owner_names(self.before), types, strict=True))


@dataclass(frozen=True, slots=True)
class RowLimit:
    """A limit on the rows of each pair, which are in memory.

    Parameters
    ----------
    limit, before
        The step, and the facts before it.
    salt
        The salt of the release.
    """

    limit: LimitRows
    before: FrameFacts
    salt: int

    @property
    def names(self) -> dict[str, str]:
        """What the columns that decide are called among rows of pairs."""
        return {name: f"c{i}" for i, name in enumerate(self.limit.columns_of(self.before))}

    def columns(self) -> dict[str, pl.Expr]:
        """These columns."""
        return {named: pl.col(name) for name, named in self.names.items()}

    def keep(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows that are left."""
        return self.limit.keep(rows, self.names, self.before, self.salt)

    def keep_together(
        self, rows: pl.DataFrame, places: NDArray[np.int64], start: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows that are kept at some places; the rows of a pair follow each other and start
        at `start`.
        """
        names, before = self.names, self.before
        return self.limit.keep_together(rows, names, places, start, before, self.salt)


def limit_on_pairs(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    columns: Sequence[str],
    salt: int,
) -> tuple[Relation, PairLimit | None]:
    """The frame without its last step, and that step as a limit on pairs; or the frame and None,
    if rows have to be limited.

    Parameters
    ----------
    columns
        What the grouping columns are called in a frame of pairs.
    """
    if groups is None or not relation.steps or not all(adds_up(table) for table in tables):
        return relation, None
    step, before = relation.steps[-1]
    names: dict[str, str] = {}
    for named, column in zip(groups.by, columns, strict=True):
        if not isinstance(named.tree, Column):
            return relation, None
        names[named.tree.name] = column
    if not isinstance(step, LimitGroups) or names.keys() != set(step.by):
        return relation, None
    assert before.identifier is not None
    names[before.identifier] = UNIT
    earlier = replace(relation, steps=relation.steps[:-1], facts=before)
    return earlier, PairLimit(step, before, salt, names)


def limit_on_rows_of_pairs(
    relation: Relation, limit: PairLimit
) -> tuple[Relation, RowLimit | None]:
    """The frame without its last step, and that step as a limit on the rows of each pair; or the
    frame and None, if it is another step.
    """
    step, before = relation.steps[-1] if relation.steps else (None, relation.facts)
    who = before.identifier
    if not isinstance(step, LimitRows) or step.order_by is not None or before.time is not None:
        return relation, None
    if {*step.by, who} != {*limit.limit.by, who}:
        return relation, None
    earlier = replace(relation, steps=relation.steps[:-1], facts=before)
    return earlier, RowLimit(step, before, limit.salt)


def adds_up(table: Table) -> bool:
    """Whether its integer of a group is the sum of those of the pairs there."""
    return table.cells is None and adds_up_over_people(table.statistic)


def adds_up_over_people(statistic: Statistic) -> bool:
    """Whether its integer is the sum of those that it is for disjoint sets of people."""
    sums = UnitStatistic, RowCount, ValueCount, GridSum, SquareSum, PairSum
    return isinstance(statistic, sums)
