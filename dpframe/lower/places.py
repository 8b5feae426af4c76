"""Counts of cells from rows, without a group-by.

Rows that come here, a column of a frame in memory or one piece of a file after another, are
counted in one of two ways. Numbers that are placed in cells are placed and counted in NumPy where
there are no groups (`dpframe.aggregates.cells`). If a table has hundreds of thousands of cells,
most rows have their own cell, and sorting one column of integers takes a fraction of the time of
a group-by. Then each row comes as the number of its cell among those of all groups.

Where rows stay in the engine, it groups them by the same numbers, so the table has one form. Which
way is taken follows from the plan, and from what kind of source there is: never from rows.
How often places are put in order and added to those before follows from how many rows there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.cells import Cells
from dpframe.aggregates.measurement import CellCounts
from dpframe.aggregates.statistics import RowCount, Statistic
from dpframe.frames.groups import Groups
from dpframe.lower.numbering import listed_keys
from dpframe.rows.layouts import in_order

__all__ = ["CountedRows", "count_places", "counted_rows", "counts_of_places", "places_of_rows"]

Integers: TypeAlias = "NDArray[np.int64]"

_MANY: Final = 1 << 17
"""From this many cells on, of all groups together, rows of groups are counted in this way."""
_DENSE: Final = 1 << 22
"""Up to this many cells each has a number in memory."""
_ROWS: Final = 1 << 24
"""This many places are put in order at a time."""
_PLACE: Final = "place"


class CountedRows(ABC):
    """How rows are counted that come here."""

    def grouped(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The places of cells that have rows, rising, and how many, of a column of all rows."""
        return self.counted([rows])

    def counted(self, batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The same of rows that come piece by piece."""
        places, values = self._count(batches)
        return pl.DataFrame({_PLACE: places, "v0": values})

    @abstractmethod
    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]: ...


@dataclass(frozen=True, slots=True, eq=False)
class TalliedRows(CountedRows):
    """Rows that come as numbers, which are placed in cells.

    Parameters
    ----------
    cells
        These; they have a tally.
    """

    cells: Cells

    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]:
        tally = self.cells.tally()
        assert tally is not None
        for rows in batches:
            tally.add(rows.to_series())
        return _of_dense(tally.counts())


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRows(CountedRows):
    """Rows that come as places of cells.

    Parameters
    ----------
    size
        How many cells all groups have together.
    """

    size: int

    def _count(self, batches: Iterable[pl.DataFrame]) -> tuple[Integers, Integers]:
        if self.size <= _DENSE:
            dense = np.zeros(self.size, np.int64)
            for rows in batches:
                np.add.at(dense, rows.to_series().to_numpy(), 1)
            return _of_dense(dense)
        sorted_ = _Sorted()
        for rows in batches:
            sorted_.add(rows.to_series())
        return sorted_.found()


@dataclass(slots=True, eq=False)
class _Sorted:
    """Counts of places, by putting them in order."""

    _before: list[tuple[Integers, Integers]] = field(default_factory=list)
    _more: list[pl.Series] = field(default_factory=list)
    _size: int = 0

    def add(self, places: pl.Series) -> None:
        self._more.append(places)
        self._size += places.len()
        if self._size >= _ROWS:
            self._settle()

    def found(self) -> tuple[Integers, Integers]:
        self._settle()
        return self._before[0]

    def _settle(self) -> None:
        """Put those that came in order, and add them to those before."""
        places = pl.concat(self._more) if self._more else pl.Series(dtype=pl.Int64)
        self._more, self._size = [], 0
        self._before.append(_runs(in_order(places)))
        if len(self._before) < 2:
            return
        both, values = (np.concatenate(parts) for parts in zip(*self._before, strict=True))
        order = np.argsort(both, kind="stable")  # which merges two that are in order
        both, values = both[order], values[order]
        first = np.flatnonzero(np.diff(both, prepend=-1))
        self._before = [(both[first], np.add.reduceat(values, first) if first.size else values)]


def _runs(places: pl.Series) -> tuple[Integers, Integers]:
    """The different ones of sorted places, and how often each is there."""
    found = places.rle().struct.unnest()
    return found["value"].cast(pl.Int64).to_numpy(), found["len"].cast(pl.Int64).to_numpy()


def _of_dense(counts: Integers) -> tuple[Integers, Integers]:
    places = np.flatnonzero(counts)
    return places, counts[places]


def counted_rows(
    cells: Cells | None, statistics: Sequence[Statistic], groups: Groups | None
) -> CountedRows | None:
    """How rows that come here are counted, where rows are counted and no more; None where a
    group-by does it as well. It follows from the plan alone.
    """
    if cells is None or list(statistics) != [RowCount()]:
        return None
    if groups is None and cells.tally() is not None:
        return TalliedRows(cells)
    if groups is not None and groups.discovered:
        return None
    size = cells.size * (1 if groups is None else groups.size)
    return PlacedRows(size) if _MANY <= size < 2**62 else None


def places_of_rows(
    frame: pl.LazyFrame, groups: Groups | None, names: Sequence[str], cells: int
) -> pl.LazyFrame:
    """One column, the number of each row's cell among those of all groups, which follow each other;
    rows of other groups have none.

    Parameters
    ----------
    frame
        Rows with the columns `names` and ``cell``, which is not null.
    names
        The columns that hold the keys of `groups`, in order.
    cells
        How many cells each group has.
    """
    place, size = pl.col("cell"), cells
    if groups is not None:
        listed = listed_keys(groups.keys, names).lazy()
        frame = frame.join(listed, on=list(names), how="inner", nulls_equal=True)
        place, size = pl.col("k").cast(pl.Int64) * cells + place, cells * groups.size
    small = pl.UInt32 if size <= 2**32 else pl.Int64
    return frame.select(place.cast(small).alias(_PLACE))


def count_places(places: pl.LazyFrame) -> pl.LazyFrame:
    """The table that `CountedRows` makes, counted by the engine, in any order."""
    counted = places.group_by(_PLACE).agg(pl.len().cast(pl.Int64).alias("v0"))
    return counted.select(pl.col(_PLACE).cast(pl.Int64), "v0")


def counts_of_places(found: pl.DataFrame, cells: int, groups: int) -> CellCounts:
    """The table of what `CountedRows` or `count_places` count."""
    places, values = (column.to_numpy() for column in found.iter_columns())
    if not (places[1:] > places[:-1]).all():  # of several buckets, or counted by the engine
        group, cell = np.divmod(places, cells)
        return CellCounts.of_cells(group, cell, values, groups)
    ends = np.searchsorted(places, np.arange(1, groups + 1) * cells)
    group = np.repeat(np.arange(groups), np.diff(ends, prepend=0))
    return CellCounts(group, places - group * cells if groups > 1 else places, values, groups)
