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
from dpframe.lower.pair_limits import RowLimit
from dpframe.rows.layouts import in_order

__all__ = ["RowsOfPairs", "pairs_together", "sortable"]

Numbers: TypeAlias = "NDArray[np.int64]"

_BITS: Final = 63
"""Of an Int64 that is not negative."""
_KEY: Final = "k"
_SIZE: Final = "rows of it"
_FEW: Final = 10_000
"""This many different texts are numbered; more take longer than to group by them."""
_BLOCK: Final = 1 << 16
_CODES: Final = 22
"""This many bits the numbers of categories take at most; a table of them is made."""


def sortable(types: Sequence[DType]) -> bool:
    """Whether columns of these types are numbered: as the first, whole numbers alone."""
    whole = [t.is_integer and t.name != "Int128" for t in types]
    others = [t.is_text or t.name in ("Date", "Boolean") for t in types]
    return any(whole[:1]) and all(a or b for a, b in zip(whole[1:], others[1:], strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """How a column is written as whole numbers from zero.

    Parameters
    ----------
    bits
        How many bits they take.
    least
        What the number zero stands for.
    like
        An empty column of the same name and type.
    texts
        What the numbers stand for, where those are texts.
    null
        The number of nulls, or None if none exist.
    """

    bits: int
    least: int
    like: pl.Series
    texts: pl.Series | None = None
    null: int | None = None

    def values(self, numbers: Numbers) -> pl.Series:
        """What some of the numbers stand for; they may be changed by it."""
        name, dtype = self.like.name, self.like.dtype
        if self.texts is not None:
            return self.texts.gather(pl.Series(numbers.astype(np.uint32))).alias(name)
        there = pl.Series(numbers != self.null) if self.null is not None else None
        if dtype == pl.UInt64:
            found = pl.Series(name, numbers.astype(np.uint64) + np.uint64(self.least))
        else:
            numbers += self.least
            found = pl.Series(name, numbers)
        if there is not None:
            found = pl.select(pl.when(there).then(found).alias(name)).to_series()
        return found.cast(dtype)


def number_values(column: pl.Series) -> tuple[Numbered, Numbers] | None:
    """A column as numbers, one for each row; None where these would take too many bits."""
    if column.dtype == pl.String:
        return _of_texts(column)
    whole = column.to_physical() if column.dtype != pl.Boolean else column.cast(pl.UInt8)
    least, most = whole.min(), whole.max()
    if least is None or most is None:
        return Numbered(1, 0, column.clear(), null=0), np.zeros(column.len(), np.int64)
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
    return Numbered(bits, least, column.clear(), null=null), numbers


def _of_texts(column: pl.Series) -> tuple[Numbered, Numbers] | None:
    spread = column.gather_every(max(1, column.len() // _FEW))
    if spread.n_unique() > _FEW // 2:
        return None
    codes = column.cast(pl.Categorical)
    different = codes.unique()
    places = different.to_physical()
    found = number_values(codes.to_physical())
    if found is None or found[0].bits > _CODES:
        return None
    how, numbers = found
    texts = pl.DataFrame({_KEY: places, "text": different.cast(pl.String)}).with_columns(
        pl.col(_KEY).cast(pl.Int64) - how.least
    )
    last = how.null if how.null is not None else 2**how.bits - 1
    table = pl.DataFrame({_KEY: pl.int_range(last + 1, eager=True)})
    named = table.join(texts.drop_nulls(), on=_KEY, how="left", maintain_order="left")
    return Numbered(how.bits, 0, column.clear(), named["text"]), numbers


class RowsOfPairs:
    """Takes the place of Polars in expressions over the rows of each pair, and records the
    requests: the number of rows, and the sum or the number of values of a column.

    Parameters
    ----------
    rows
        All rows.
    used_up
        Whether the rows are not needed after pairs are made, so that their memory may be freed.
    """

    def __init__(self, rows: pl.DataFrame, used_up: bool = False) -> None:
        self.rows = rows
        self._used_up = used_up
        self.asked: dict[str, tuple[str, str]] = {}
        self.counts_rows = False

    def __getattr__(self, name: str) -> Any:
        return getattr(pl, name)

    def len(self) -> pl.Expr:
        """The number of rows of a pair."""
        self.counts_rows = True
        return pl.col(_SIZE)

    def col(self, name: str) -> Any:
        """A column of rows, or else of pairs."""
        return _ColumnOfRows(self, name) if name in self.rows.columns else pl.col(name)

    def forget(self) -> None:
        """Give their memory back."""
        for name in self.rows.columns if self._used_up else []:
            self.rows.drop_in_place(name)

    def needed_columns(self) -> list[str]:
        """The columns whose values are requested."""
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
    asked: RowsOfPairs,
    names: Sequence[str],
    made: Sequence[pl.Expr],
    few: RowLimit | None = None,
) -> pl.DataFrame | None:
    """One row for each combination of some columns of rows, with what expressions make of the
    others; those with equal values of the first column follow each other.

    None where the numbers of the columns take too many bits.

    Parameters
    ----------
    made
        Expressions for which `asked` stood for Polars.
    few
        What drops rows where a combination has too many.
    """
    rows, needed = asked.rows, asked.needed_columns()
    if not rows.height or not {rows[name].dtype for name in needed} <= {pl.Int64, pl.Boolean}:
        return None
    place = (rows.height - 1).bit_length() if needed or few else 0
    packed = _pack(rows, names, place)
    if packed is None:
        return None
    unsorted, columns = pl.Series(packed[0]), packed[1]
    del packed  # as large as the rows
    key = in_order(unsorted).to_numpy()
    del unsorted
    start = _starts(key, place)
    if few is not None and (kept := _few(key, start, place, rows, few)) is not None:
        key = key[kept]
        start = _starts(key, place)
    gathered = _of_runs(asked, key, start, place)
    own = key[start]
    del key, start
    asked.forget()
    own >>= place
    return pl.DataFrame([*_unpack(own, columns), *gathered]).select(*names, *made)


def _pack(
    rows: pl.DataFrame, names: Sequence[str], place: int
) -> tuple[Numbers, list[Numbered]] | None:
    """The number of the combination of each row, and its place among all rows in the last
    bits."""
    free = _BITS - place
    columns = list[Numbered]()
    key: Numbers = np.zeros(0, np.int64)
    for name in names:
        found = number_values(rows[name])
        if found is None or found[0].bits > free:
            return None
        how, numbers = found
        free -= how.bits
        if columns:
            key <<= how.bits
            key |= numbers
        else:
            key = numbers
        columns.append(how)
    if place:
        key <<= place
        for block in _blocks(key.size):
            key[block] |= np.arange(block.start, block.stop)
    return key, columns


def _blocks(size: int) -> list[slice]:
    """Places in pieces that a cache holds."""
    return [slice(i, min(i + _BLOCK, size)) for i in range(0, size, _BLOCK)]


def _starts(key: Numbers, place: int) -> Numbers:
    """Where each combination starts."""
    first = np.ones(key.size, np.bool_)
    for block in _blocks(key.size - 1):
        own = key[block.start : block.stop + 1] >> place
        np.not_equal(own[1:], own[:-1], out=first[block.start + 1 : block.stop + 1])
    return np.flatnonzero(first)


def _few(
    key: Numbers, start: Numbers, place: int, rows: pl.DataFrame, limit: RowLimit
) -> NDArray[np.bool_] | None:
    """Which rows are left of all; None where all are."""
    sizes = np.diff(start, append=key.size)
    large = sizes[sizes > limit.limit.n]
    if not large.size:
        return None
    many = np.flatnonzero(np.repeat(sizes > limit.limit.n, sizes))
    places = key[many] & ((1 << place) - 1)
    left = limit.keep_together(rows, places, np.cumsum(large) - large)
    kept = np.ones(key.size, np.bool_)
    kept[many] = False
    kept[many[left]] = True
    return kept


def _unpack(keys: Numbers, columns: Sequence[Numbered]) -> list[pl.Series]:
    """The columns that numbers are packed of, which are used up."""
    found = list[pl.Series]()
    for column in reversed(columns):
        found.append(column.values(keys & ((1 << column.bits) - 1)))
        keys >>= column.bits
    return found[::-1]


def _of_runs(asked: RowsOfPairs, key: Numbers, start: Numbers, place: int) -> list[pl.Series]:
    """The query of the rows of each combination.

    Parameters
    ----------
    key, start, place
        The rows in order, the start of each combination, and the number of bits for the place of
        a row among all.
    """
    sizes = np.diff(start, append=key.size)
    columns = [pl.Series(_SIZE, sizes)] if asked.counts_rows else []
    for result, (name, what) in asked.asked.items():
        column = asked.rows[name]
        if what == "count" and not column.null_count():
            columns.append(pl.Series(result, sizes))
            continue
        values = column.is_not_null() if what == "count" else column
        integers = values.cast(pl.Int64).fill_null(0).to_numpy()
        columns.append(pl.Series(result, _sums(integers, key, start, place)))
    return columns


def _sums(values: Numbers, key: Numbers, start: Numbers, place: int) -> Numbers:
    """The sum of the values of each combination, modulo 2**64."""
    sums = np.zeros(start.size, np.int64)
    for block in _blocks(key.size):
        own = values[key[block] & ((1 << place) - 1)]
        first, last = np.searchsorted(start, [block.start, block.stop])
        begun = start[first:last] - block.start
        rest = begun[0] if begun.size else own.size
        if rest:  # of one that started in a block before
            sums[first - 1 : first] += own[:rest].sum()
        if begun.size:
            sums[first:last] = np.add.reduceat(own, begun)
    return sums
