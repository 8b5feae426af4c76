"""Exact integers by way of pairs of individual and group: one row for each individual in a group.

Statistics of individuals need that; others that add up may share it.

A limit on groups can then drop pairs instead of rows. Lowered step by step, it makes all pairs,
ranks them and keeps the rows of those that are left, and the group-by after it groups these rows by
pairs once more. All rows of a pair are kept or all are dropped, though. So where the limit comes
last and speaks of just the columns that make the groups, and every statistic adds up over pairs,
each pair is made once, with its integers, and the limit drops pairs. It decides the same:
`LimitGroups.keep` looks at the individual, the values and the salt alone, and both ways run the
same code of it. So the exact tables are the same as well, bit by bit, and what is inferred of the
limit holds unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from dpframe.aggregates.measurement import Table
from dpframe.aggregates.pair_statistics import PairSum
from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, Statistic, ValueCount
from dpframe.aggregates.unit_statistics import UnitStatistic
from dpframe.core.dtypes import DType
from dpframe.core.tree import Column
from dpframe.core.weights import norm_in_parts
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups
from dpframe.frames.individuals import owner_columns
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.public import grouped_keys, within_keys
from dpframe.frames.relation import Relation
from dpframe.lower.packing import group_packed
from dpframe.lower.together import RowsOfPairs, pairs_together
from dpframe.lower.weighed import ROWS, once_weight, rows_weight
from dpframe.rows.operation import Namespace

UNIT, WINDOW = "unit", "window"
"""What the identifier is called in a frame of pairs, and the number of its window."""


def beside_name(number: int) -> str:
    """What the second column of a statistic that gathers two is called among those of rows."""
    return f"r{number}b"


@dataclass(frozen=True, slots=True)
class PairLimit:
    """A limit that drops pairs of individual and group.

    Parameters
    ----------
    limit, before
        The step, and the facts before it.
    salt
        That of the release.
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
        """The columns that tell individuals apart."""
        types = (dtype for _, dtype in owner_columns(self.before, ns))
        return dict(zip(owner_names(self.before), types, strict=True))


def owner_names(facts: FrameFacts) -> list[str]:
    """What the columns that tell individuals apart are called in a frame of pairs."""
    return [UNIT] if facts.time is None else [UNIT, WINDOW]


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """How individuals are weighed in a frame of pairs, see `dpframe.lower.weighed`.

    Parameters
    ----------
    norm
        The most that the norm of one may be, in parts of rows.
    keys, names
        The groups that are asked for, and their columns; None where all are.
    whose
        The columns that tell individuals apart.
    """

    norm: int
    keys: pl.DataFrame | None
    names: Sequence[str]
    whose: Sequence[str]

    def of(
        self, pairs: pl.LazyFrame, statistics: Sequence[Statistic], ns: Namespace
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """The pairs with weighed integers, and those of a group from them."""
        if self.keys is not None:
            pairs = within_keys(pairs, self.keys, self.names, ns)
        of_rows = rows_weight(self.norm, self.whose, ns)
        once = once_weight(self.norm, self.whose, ns)
        weighed, reduced = list[pl.Expr](), list[pl.Expr]()
        for i, statistic in enumerate(statistics):
            if isinstance(statistic, UnitStatistic):
                value = once if statistic.counts_pairs else ns.col(f"p{i}") * once
            else:
                value = ns.col(f"p{i}") * of_rows
            weighed.append(value.alias(f"w{i}"))
            reduced.append(ns.col(f"w{i}").sum().cast(ns.Int64))
        return pairs.with_columns(*weighed), reduced


def weighing_of(
    relation: Relation, groups: Groups | None, columns: Sequence[str]
) -> Weighing | None:
    """How the individuals of a frame are weighed; None where they are not.

    Parameters
    ----------
    columns
        What the grouping columns are called in a frame of pairs.
    """
    norm = relation.facts.norm
    if norm is None:
        return None
    if groups is None or groups.discovered:
        return Weighing(norm_in_parts(norm), None, columns, owner_names(relation.facts))
    listed = grouped_keys(groups.keys, columns)
    return Weighing(norm_in_parts(norm), listed, columns, owner_names(relation.facts))


def limit_on_pairs(
    relation: Relation,
    groups: Groups | None,
    tables: Sequence[Table],
    columns: Sequence[str],
    salt: int,
) -> tuple[Relation, PairLimit | None]:
    """The frame without its last step, and that step as a limit on pairs; or the frame as it is,
    and None, where rows have to be limited.

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


def adds_up(table: Table) -> bool:
    """Whether its integer of a group is the sum of those of the pairs there."""
    return table.cells is None and adds_up_over_people(table.statistic)


def adds_up_over_people(statistic: Statistic) -> bool:
    """Whether its integer is the sum of those that it is for disjoint sets of people."""
    sums = UnitStatistic, RowCount, ValueCount, GridSum, SquareSum, PairSum
    return isinstance(statistic, sums)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One row per individual and group, and the integers of a group from those.

    Parameters
    ----------
    keys, whose
        The columns of rows that make groups, and those that tell individuals apart.
    statistics, columns
        What is asked for, and the column that each made of the rows.
    limit, weighing
        What drops pairs, and how individuals are weighed, if anything does.
    """

    keys: Sequence[str]
    whose: Sequence[str]
    statistics: Sequence[Statistic]
    columns: Sequence[str]
    limit: PairLimit | None
    weighing: Weighing | None

    def of(
        self, frame: pl.LazyFrame, ns: Namespace, packed: bool = False
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """Those of rows.

        Parameters
        ----------
        packed
            Whether what makes pairs is packed into one column to be grouped.
        """
        made, settled, reduced = self._made(ns, ns)
        if packed:
            pairs = group_packed(frame, [*self.whose, *self.keys], made)
        else:
            pairs = frame.group_by([*self.keys, *self.whose]).agg(*made)
        kept = pairs if self.limit is None else self.limit.keep(pairs, ns)
        return self._weighed(kept.with_columns(*settled) if settled else kept, reduced, ns)

    def of_memory(
        self, rows: pl.DataFrame, packed: bool = False
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """Those of rows in memory; `packed` is for where they cannot be sorted."""
        asked = RowsOfPairs(rows)
        made, settled, reduced = self._made(pl, asked)
        pairs = pairs_together(asked, [*self.whose, *self.keys], made)
        if pairs is None:
            return self.of(rows.lazy(), pl, packed)
        kept = pairs if self.limit is None else self.limit.keep_together(pairs)
        return self._weighed(kept.lazy().with_columns(*settled), reduced, pl)

    def _made(
        self, ns: Namespace, of_rows: Namespace
    ) -> tuple[list[pl.Expr], list[pl.Expr], list[pl.Expr]]:
        """What is made of the rows of a pair, what of that in the end, and what of pairs."""
        made, settled, reduced = list[pl.Expr](), list[pl.Expr](), list[pl.Expr]()
        if self.weighing is not None:
            made.append(of_rows.len().cast(ns.Int64).alias(ROWS))
        for i, (statistic, column) in enumerate(zip(self.statistics, self.columns, strict=True)):
            name, rows = f"p{i}", of_rows.col(column)
            if isinstance(statistic, UnitStatistic) and statistic.counts_pairs:
                reduced.append(ns.len().cast(ns.Int64))
            elif isinstance(statistic, UnitStatistic):
                made.append(statistic.per_unit(rows, of_rows).alias(name))
                clamped = statistic.clamp_per_unit(ns.col(name), ns)
                if statistic.gathers_two:
                    beside = of_rows.col(beside_name(i))
                    made.append(statistic.per_unit(beside, of_rows).alias(f"{name}b"))
                    clamped = statistic.clamp_pair(ns.col(name), ns.col(f"{name}b"), ns)
                settled.append(clamped.alias(name))
                reduced.append(statistic.reduce(ns.col(name), ns))
            else:
                made.append(statistic.reduce(rows, of_rows).alias(name))
                reduced.append(ns.col(name).sum().cast(ns.Int64))
        return made, settled, reduced

    def _weighed(
        self, pairs: pl.LazyFrame, reduced: list[pl.Expr], ns: Namespace
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """The pairs that are left, weighed if individuals are."""
        if self.weighing is None:
            return pairs, reduced
        return self.weighing.of(pairs, self.statistics, ns)
