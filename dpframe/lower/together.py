"""Pairs of individual and group by one sort of packed numbers, where rows are in memory.

A group-by that makes as many groups as there are pairs looks each row up in a table that no cache
holds. To sort one column of whole numbers takes a seventh of the time, where it fits: the number of
the individual, those of the groups and the row's place take some bits each. Rows of a pair follow
each other then, and pairs of an individual, so that sums and limits go over neighbours. Where the
bits are too few, rows are grouped as they are elsewhere. Both ways make the same pairs and keep the
same of them, bit by bit, so which one a frame goes decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.core.dtypes import DType

__all__ = ["RowsOfPairs", "pairs_together", "sortable"]

Numbers: TypeAlias = "NDArray[np.int64]"

_BITS: Final = 63
"""Of an Int64 that is not negative."""
_KEY: Final = "k"
_SIZE: Final = "rows of it"
_FEW: Final = 10_000
"""So many different texts are numbered; more take longer than to group by them."""
_CODES: Final = 22
"""So many bits the numbers of categories take at most; a table of them is made."""


def sortable(types: Sequence[DType]) -> bool:
    """Whether columns of these types are numbered: as the first, whole numbers alone."""
    whole = [t.is_integer and t.name != "Int128" for t in types]
    others = [t.is_text or t.name in ("Date", "Boolean") for t in types]
    return any(whole[:1]) and all(a or b for a, b in zip(whole[1:], others[1:], strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """A column as whole numbers from zero.

    Parameters
    ----------
    numbers
        One for each row.
    bits
        How many they take.
    least
        What the number zero stands for.
    like
        An empty column of the same name and type.
    texts
        What the numbers stand for, where those are texts.
    null
        The number of nulls, or None where there are none.
    """

    numbers: Numbers
    bits: int
    least: int
    like: pl.Series
    texts: pl.Series | None = None
    null: int | None = None

    def values(self, numbers: Numbers) -> pl.Series:
        """What some of the numbers stand for."""
        name, dtype = self.like.name, self.like.dtype
        if self.texts is not None:
            return self.texts.gather(pl.Series(numbers)).alias(name)
        if dtype == pl.UInt64:
            found = pl.Series(name, numbers.astype(np.uint64) + np.uint64(self.least))
        else:
            found = pl.Series(name, numbers + self.least)
        if self.null is not None:
            there = pl.Series(numbers != self.null)
            found = pl.select(pl.when(there).then(found).alias(name)).to_series()
        return found.cast(dtype)


def numbered(column: pl.Series) -> Numbered | None:
    """A column as numbers; None where these would take too many bits."""
    if column.dtype == pl.String:
        return _of_texts(column)
    whole = column.to_physical() if column.dtype != pl.Boolean else column.cast(pl.UInt8)
    least, most = whole.min(), whole.max()
    if least is None or most is None:
        return Numbered(np.zeros(column.len(), np.int64), 1, 0, column.clear(), null=0)
    assert isinstance(least, int)
    assert isinstance(most, int)
    span = most - least
    null = span + 1 if column.null_count() else None
    bits = (span + (null is not None)).bit_length()
    if bits > _BITS:
        return None
    values: NDArray[Any] = whole.fill_null(least).to_numpy()
    if whole.dtype == pl.UInt64:
        numbers = (values - np.uint64(least)).astype(np.int64)
    else:
        numbers = np.subtract(values, least, dtype=np.int64)
    if null is not None:
        numbers[column.is_null().to_numpy()] = null
    return Numbered(numbers, bits, least, column.clear(), null=null)


def _of_texts(column: pl.Series) -> Numbered | None:
    spread = column.gather_every(max(1, column.len() // _FEW))
    if spread.n_unique() > _FEW // 2:
        return None
    codes = column.cast(pl.Categorical)
    different = codes.unique()
    places = different.to_physical()
    found = numbered(codes.to_physical())
    if found is None or found.bits > _CODES:
        return None
    texts = pl.DataFrame({_KEY: places, "text": different.cast(pl.String)}).with_columns(
        pl.col(_KEY).cast(pl.Int64) - found.least
    )
    last = found.null if found.null is not None else 2**found.bits - 1
    table = pl.DataFrame({_KEY: pl.int_range(last + 1, eager=True)})
    named = table.join(texts.drop_nulls(), on=_KEY, how="left", maintain_order="left")
    return Numbered(found.numbers, found.bits, 0, column.clear(), named["text"])


class RowsOfPairs:
    """Stands for Polars in expressions that say what is made of the rows of each pair, and notes
    what they ask for: the number of rows, and the sum or the number of values of a column.

    Parameters
    ----------
    rows
        All rows.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.asked: dict[str, tuple[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(pl, name)

    def len(self) -> pl.Expr:
        """The number of rows of a pair."""
        return pl.col(_SIZE)

    def col(self, name: str) -> Any:
        """A column of rows, or else of pairs."""
        return _ColumnOfRows(self, name) if name in self.rows.columns else pl.col(name)

    def needed(self) -> list[str]:
        """The columns whose values are asked for."""
        return list(
            dict.fromkeys(
                name
                for name, what in self.asked.values()
                if what == "sum" or self.rows[name].null_count()
            )
        )


class _ColumnOfRows:
    def __init__(self, of: RowsOfPairs, name: str) -> None:
        self._of, self._name = of, name

    def sum(self) -> pl.Expr:
        return self._ask("sum")

    def count(self) -> pl.Expr:
        return self._ask("count")

    def _ask(self, what: str) -> pl.Expr:
        found = f"{what} of {self._name}"
        self._of.asked[found] = self._name, what
        return pl.col(found)


def pairs_together(
    asked: RowsOfPairs, names: Sequence[str], made: Sequence[pl.Expr]
) -> pl.DataFrame | None:
    """One row for each combination of some columns of rows, with what expressions make of the
    others; those with equal values of the first column follow each other.

    None where the numbers of the columns take too many bits.

    Parameters
    ----------
    made
        Expressions for which `asked` stood for Polars.
    """
    rows, needed = asked.rows, asked.needed()
    if not rows.height or not {rows[name].dtype for name in needed} <= {pl.Int64, pl.Boolean}:
        return None
    columns = list[Numbered]()
    place = (rows.height - 1).bit_length() if needed else 0
    free = _BITS - place
    for name in names:
        found = numbered(rows[name])
        if found is None or found.bits > free:
            return None
        free -= found.bits
        columns.append(found)
    key = columns[0].numbers
    for column in columns[1:]:
        key <<= column.bits
        key |= column.numbers
    if needed:
        key <<= place
        key |= np.arange(key.size)
    key.sort()
    places = key & ((1 << place) - 1) if needed else None
    key >>= place
    first = np.empty(key.size, np.bool_)
    first[0] = True
    np.not_equal(key[1:], key[:-1], out=first[1:])
    start = np.flatnonzero(first)
    pairs = pl.DataFrame(_unpacked(key[start], columns))
    return pairs.with_columns(*_of_runs(asked, start, places)).select(*names, *made)


def _unpacked(keys: Numbers, columns: Sequence[Numbered]) -> list[pl.Series]:
    """The columns that numbers are packed of."""
    found = list[pl.Series]()
    for column in reversed(columns):
        found.append(column.values(keys & ((1 << column.bits) - 1)))
        keys = keys >> column.bits
    return found[::-1]


def _of_runs(asked: RowsOfPairs, start: Numbers, places: Numbers | None) -> list[pl.Series]:
    """What was asked of runs of rows.

    Parameters
    ----------
    start, places
        Where each run starts, and the place among all rows of each row of the runs.
    """
    sizes = np.diff(start, append=asked.rows.height)
    found = [pl.Series(_SIZE, sizes)]
    for result, (name, what) in asked.asked.items():
        column = asked.rows[name]
        if what == "count" and not column.null_count():
            found.append(pl.Series(result, sizes))
            continue
        values = column.is_not_null() if what == "count" else column
        whole = values.cast(pl.Int64).fill_null(0).to_numpy()
        found.append(pl.Series(result, np.add.reduceat(whole[places], start)))
    return found
