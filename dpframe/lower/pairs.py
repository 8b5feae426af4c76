"""Exact integers by way of pairs of individual and group: one row for each individual in a group.

Statistics of individuals need that; others that add up may share it.

A limit on groups can then drop pairs instead of rows (`dpframe.lower.pair_limits`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from dpframe.aggregates.statistics import Statistic, UnitStatistic
from dpframe.core.units import norm_in_parts
from dpframe.frames.groups import Groups
from dpframe.frames.public import grouped_keys, within_keys
from dpframe.frames.relation import Relation
from dpframe.kernel.frame import PARTS
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.lower.numbering import group_packed
from dpframe.lower.pair_limits import PairLimit, RowLimit, owner_names
from dpframe.lower.together import RowsOfPairs, pairs_together
from dpframe.rows.operation import Namespace

__all__ = ["ROWS", "once_weight", "rows_weight"]

# Weights of individuals, from the numbers of rows that each has in the groups, by integers alone.
#
# The weight of an individual with m_g rows in group g is k / 2**12, with k the largest whole number
# up to 2**12 for which k**2 S <= N**2, where S = sum(m_g**2). As k is whole that is k**2 <= q, with
# q the whole part of N**2 / S. An engine's square root only proposes k; whether k**2 <= q is
# decided by whole numbers, and where neither the proposal nor one less holds, k is 0. So for any
# rounding of floats, no individual has more than the norm.
#
# Nothing overflows. A number of rows above N makes k zero, and counts as N + 1 in S. S is then
# below (N + 1) times the number of rows, and N**2 at most 2**56. Where k is above 0, k times an
# individual's addition to a group is at most N times a row's.
#
# Weights are computed within a frame of pairs, by windows: so they are of the very rows that are
# weighed, also where an engine reads data that are not the same each time. The square root is that
# of IEEE 754, and rounded correctly, on every engine, so weights are the same on all of them.

ROWS = "rows"
"""The number of rows of an individual in a group, in a frame of pairs."""


def rows_weight(norm: int, whose: Sequence[str], ns: Namespace) -> pl.Expr:
    """The weight of each pair's individual, in parts, for the additions of its rows.

    Parameters
    ----------
    norm
        N, in parts of rows.
    whose
        The columns that identify the individuals in a frame of pairs; never null.
    """
    rows = ns.col(ROWS).clip(0, norm + 1)
    return _weight((rows * rows).sum().over([ns.col(name) for name in whose]), norm, ns)


def once_weight(norm: int, whose: Sequence[str], ns: Namespace) -> pl.Expr:
    """The same for what an individual adds once in each group."""
    return _weight(ns.len().over([ns.col(name) for name in whose]).cast(ns.Int64), norm, ns)


def _weight(squares: pl.Expr, norm: int, ns: Namespace) -> pl.Expr:
    room = (ns.lit(norm * norm, dtype=ns.Int64) // squares).clip(0, PARTS * PARTS)
    near = room.cast(ns.Float64).sqrt().cast(ns.Int64).clip(0, PARTS)
    less = (near - 1).clip(0, PARTS)
    lower = ns.when(less * less <= room).then(less).otherwise(0)
    found: pl.Expr = ns.when(near * near <= room).then(near).otherwise(lower)
    return found


def beside_name(number: int) -> str:
    """What the second column of a statistic that gathers two is called among those of rows."""
    return f"r{number}b"


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """How individuals are weighed in a frame of pairs.

    Parameters
    ----------
    norm
        The most that the norm of one may be, in parts of rows.
    keys, names
        The groups that are requested, and their columns; None where all are.
    whose
        The columns that identify individuals.
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


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One row per individual and group, and the integers of a group from those.

    Parameters
    ----------
    keys, whose
        The columns of rows that make groups, and those that identify individuals.
    statistics, columns
        The request, and the column that each made of the rows.
    limit, weighing
        What drops pairs, and how individuals are weighed, if anything does.
    few
        What drops rows of pairs, of rows in memory.
    packed
        Whether what makes pairs is packed into one column, where it is grouped in memory.
    """

    keys: Sequence[str]
    whose: Sequence[str]
    statistics: Sequence[Statistic]
    columns: Sequence[str]
    limit: PairLimit | None
    weighing: Weighing | None
    few: RowLimit | None = None
    packed: bool = False

    def group(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The columns of groups and values, of rows in memory, which are used up."""
        return POLARS.collect([by_columns(self.keys, *self.of_memory(rows))])[0]

    def of(
        self, frame: pl.LazyFrame, ns: Namespace, packed: bool = False
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """The pairs of rows.

        Parameters
        ----------
        packed
            Whether what makes pairs is packed into one column to be grouped.
        """
        made, settled, reduced = self._stages(ns, ns)
        if packed:
            pairs = group_packed(frame, [*self.whose, *self.keys], made)
        else:
            if self.limit is not None and ns is not pl:  # which ranks those of an individual
                frame = ns.gathered(frame, self.whose)
            pairs = frame.group_by([*self.keys, *self.whose]).agg(*made)
        kept = pairs if self.limit is None else self.limit.keep(pairs, ns)
        return self._weigh(kept.with_columns(*settled) if settled else kept, reduced, ns)

    def of_memory(self, rows: pl.DataFrame) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """The pairs of rows in memory, which are used up."""
        asked = RowsOfPairs(rows, used_up=True)
        made, settled, reduced = self._stages(pl, asked)
        pairs = pairs_together(asked, [*self.whose, *self.keys], made, self.few)
        if pairs is None:
            frame = rows.lazy() if self.few is None else self.few.keep(rows.lazy())
            return self.of(frame, pl, self.packed)
        kept = pairs if self.limit is None else self.limit.keep_together(pairs)
        return self._weigh(kept.lazy().with_columns(*settled), reduced, pl)

    def _stages(
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

    def _weigh(
        self, pairs: pl.LazyFrame, reduced: list[pl.Expr], ns: Namespace
    ) -> tuple[pl.LazyFrame, list[pl.Expr]]:
        """The pairs that are left, weighed if individuals are."""
        if self.weighing is None:
            return pairs, reduced
        return self.weighing.of(pairs, self.statistics, ns)


def by_columns(
    keys: Sequence[str], frame: pl.LazyFrame, reduced: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """The value columns by some columns, or of all rows."""
    named = [expression.alias(f"v{i}") for i, expression in enumerate(reduced)]
    return frame.group_by(keys).agg(*named) if keys else frame.select(*named)
