"""Exact integers by way of pairs of individual and group: one row for each individual in a group.

Statistics of individuals need that; others that add up may share it.

A limit on groups can then drop pairs instead of rows (`dpframe.lower.pair_limits`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.statistics import Statistic, UnitStatistic
from dpframe.core.dtypes import DType
from dpframe.core.units import norm_in_parts
from dpframe.frames.groups import Groups
from dpframe.frames.public import grouped_keys, within_keys
from dpframe.frames.relation import Binary, Relation
from dpframe.kernel.frame import PARTS
from dpframe.lower.engines.polars_engine import POLARS
from dpframe.lower.pair_limits import PairLimit, RowLimit, owner_names
from dpframe.lower.together import RowsOfPairs, pairs_together
from dpframe.rows.layouts import GROUPED_AS_TEXT, unordered
from dpframe.rows.operation import Namespace

__all__ = ["ROWS", "once_weight", "rows_weight"]

# Which public key each row of an exact result belongs to.

_SPARSE = 4
"""Whole numbers are looked up in an array of at most this many entries per key."""


def number_rows(
    keys: pl.DataFrame, result: pl.DataFrame, names: Sequence[str]
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The rows of a result that have a public key, and the number of each one's key.

    Parameters
    ----------
    keys
        The public keys, each once; nulls are keys like others.
    result
        Rows with the columns `names`, in the order of the columns of `keys`.
    """
    found = _among_whole_numbers(keys, result[names[0]]) if len(names) == 1 else None
    if found is not None:
        kept = found >= 0
        return (result, found) if kept.all() else (result.filter(pl.Series(kept)), found[kept])
    joined = listed_keys(keys, names).join(result, on=list(names), how="inner", nulls_equal=True)
    return joined, joined["k"].cast(pl.Int64).to_numpy()


def listed_keys(keys: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The public keys in the columns that rows have them in, and their numbers, `k`."""
    text = keys.with_columns(pl.col(*GROUPED_AS_TEXT).cast(pl.String))
    return text.rename(dict(zip(text.columns, names, strict=True))).with_row_index("k")


def _among_whole_numbers(keys: pl.DataFrame, given: pl.Series) -> NDArray[np.int64] | None:
    """The number of the key of each entry, -1 for none; None where a join does it better."""
    listed = keys.to_series()
    whole = listed.dtype in (pl.Int64, pl.Int32, pl.Int16, pl.Int8, pl.UInt8, pl.UInt16, pl.UInt32)
    if not whole or given.dtype != listed.dtype or not len(listed) or listed.null_count():
        return None
    if not len(given):  # a rehearsal
        return np.empty(0, dtype=np.int64)
    numbers = listed.to_numpy().astype(np.int64, copy=False)
    lo, hi = int(numbers.min()), int(numbers.max())
    if hi - lo >= _SPARSE * len(numbers) + 1024:
        return None
    known = None if not given.null_count() else given.is_not_null().to_numpy()
    entries = given if known is None else given.fill_null(lo)
    above = (entries.to_numpy().astype(np.int64, copy=False) - np.int64(lo)).view(np.uint64)
    inside = above <= np.uint64(hi - lo)  # modulo 2**64, so what is below lo is far above hi
    if known is not None:
        inside &= known
    place = _places(numbers, lo, hi)
    if inside.all():
        found = above.view(np.int64)
        return found if place is None else place[found]
    found = np.where(inside, above, np.uint64(0)).view(np.int64)
    return np.where(inside, found if place is None else place[found], -1)


def _places(numbers: NDArray[np.int64], lo: int, hi: int) -> NDArray[np.int64] | None:
    """Which entry each number from `lo` to `hi` is, -1 for none; None where they are just those
    numbers in order.
    """
    if len(numbers) == hi - lo + 1 and (numbers[1:] > numbers[:-1]).all():
        return None
    place = np.full(hi - lo + 1, -1, dtype=np.int64)
    place[numbers - lo] = np.arange(len(numbers))
    return place


# Groups by several whole numbers at once, packed into one.
#
# Polars groups by one column of integers in two thirds of the time that it takes with two. So rows
# whose numbers are small enough are grouped by one, which packs the numbers in some bits each.
# Others are grouped by the numbers as they are. Which way a row goes depends on what it is grouped
# by, so no group is divided and each is the same either way.

FIRST_BITS, OTHER_BITS = 33, 30
"""The bits of the first number, and of all others together: 63 that an Int64 has for numbers
above zero."""
_MOST = 4
_SCANS: Final = re.compile(r"^\s*(DF|\w+(?= SCAN)) ", re.MULTILINE)
"""What a plan reads from."""
_IN_PIECES: Final = ("DF", "Parquet", "IPC", "PARQUET")


def packable(types: Sequence[DType]) -> bool:
    """Whether numbers of these types may be packed, and it pays."""
    return 1 < len(types) <= _MOST and all(t.is_integer and t.name != "Int128" for t in types)


def in_memory(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> bool:
    """Whether rows come from one frame in memory, so that their columns may be held there."""
    plan = _explain(source, relation)
    return plan is not None and plan.startswith("DF [")


def in_batches(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> bool:
    """Whether rows are made of one frame in memory or of one set of files, which Polars reads
    piece by piece.
    """
    plan = _explain(source, relation)
    return plan is not None and len(scans := _SCANS.findall(plan)) == 1 and scans[0] in _IN_PIECES


def _explain(source: pl.LazyFrame | Mapping[int, pl.LazyFrame], relation: Relation) -> str | None:
    """The plan of the only frame that rows are made of; None where there are several."""
    if any(isinstance(step, Binary) for step, _ in relation.steps):
        return None
    frame = source if isinstance(source, pl.LazyFrame) else source[relation.token]
    # of a copy: Polars 1.32 lets no other thread use a frame meanwhile
    return frame.clone().explain(optimized=False)


def group_packed(
    frame: pl.LazyFrame, names: Sequence[str], made: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """One row for each combination of some columns of whole numbers, with what the expressions make
    of its rows. The first of the columns has room for most values.
    """
    schema = frame.collect_schema()
    bits = [FIRST_BITS, *[OTHER_BITS // (len(names) - 1)] * (len(names) - 1)]
    numbers = [pl.col(name).cast(pl.Int64, strict=False) for name in names]
    small = pl.all_horizontal(
        number.is_between(0, 2**most - 1).fill_null(value=False)
        for number, most in zip(numbers, bits, strict=True)
    )
    parts, unpacked, below = [], [], 63
    for name, number, most in zip(names, numbers, bits, strict=True):
        below -= most
        parts.append(number * 2**below)
        found = pl.col(names[0]) // 2**below % 2**most
        unpacked.append(found.cast(schema[name]).alias(name))
    rest = [name for name in schema.names() if name not in names]
    results = [expression.meta.output_name() for expression in made]
    one = unordered(pl, pl.sum_horizontal(parts)).alias(names[0])
    by_one = frame.filter(small).select(one, *rest).group_by(names[0]).agg(*made)
    every = [unordered(pl, pl.col(name)).alias(name) for name in names]
    by_every = frame.filter(~small).select(*every, *rest).group_by(names).agg(*made)
    return pl.concat([by_one.select(*unpacked, *results), by_every.select(*names, *results)])


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
