"""Frames of the same values, with each column stored in a way of its own.

Frames that are made from lists, or by gathering rows, are all stored alike: plain rows in one
piece. What the engine does otherwise with other forms is never seen on those, so laws run on frames
that went through `stored`.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import polars as pl

Way: TypeAlias = "Callable[[pl.Series, random.Random], pl.Series]"
TALL = 1_000
"""Rows beyond which pieces of one row are only at both ends, and values at the start decide."""


def _one_piece(column: pl.Series, rng: random.Random) -> pl.Series:
    return column.rechunk()


def _pieces_of_one(column: pl.Series, rng: random.Random) -> pl.Series:
    return pl.concat([column.slice(*at) for at in _ones(len(column))], rechunk=False)


def _ones(height: int) -> list[tuple[int, int]]:
    """Where pieces of one row begin, and how long they are."""
    if height <= TALL:
        return [(i, 1) for i in range(height)]
    end = TALL // 10
    ends = [*range(end), *range(height - end, height)]
    return sorted([*((i, 1) for i in ends), (end, height - 2 * end)])


def _pieces(column: pl.Series, rng: random.Random) -> pl.Series:
    """Pieces of any lengths, some of them empty."""
    cuts = sorted(rng.randint(0, len(column)) for _ in range(rng.randint(1, 3)))
    ends = [0, *cuts, len(column)]
    return pl.concat([column.slice(a, b - a) for a, b in pairwise(ends)], rechunk=False)


def _within_longer(column: pl.Series, rng: random.Random) -> pl.Series:
    """A part of a longer column, which starts within a byte of its mask."""
    before = column.head(rng.randint(1, 9))
    return pl.concat([before, column, column], rechunk=True).slice(len(before), len(column))


def _masked(column: pl.Series, rng: random.Random) -> pl.Series:
    """With a mask of nulls, though none may be null."""
    null = pl.Series(column.name, [None], dtype=column.dtype)
    return pl.concat([column, null], rechunk=True).slice(0, len(column))


def _without_mask(column: pl.Series, rng: random.Random) -> pl.Series:
    """Without a mask, or rows that are null throughout."""
    if column.null_count() == len(column):
        return pl.Series(column.name, [None] * len(column), dtype=column.dtype)
    return column.rechunk() if column.null_count() else column.drop_nulls().rechunk()


def _field(column: pl.Series, rng: random.Random) -> pl.Series:
    return column.to_frame("field").to_struct("row").struct.field("field").alias(column.name)


def _marked(column: pl.Series, rng: random.Random) -> pl.Series:
    """Marked as sorted, where it is."""
    orders = [d for d in (False, True) if not column.dtype.is_nested() and in_order(column, d)]
    return column.clone().set_sorted(descending=rng.choice(orders)) if orders else column


WAYS: Mapping[str, Way] = {
    "in one piece": _one_piece,
    "in pieces of one row": _pieces_of_one,
    "in pieces": _pieces,
    "within a longer column": _within_longer,
    "with a mask of nulls": _masked,
    "without a mask": _without_mask,
    "a field of a struct": _field,
    "marked as sorted": _marked,
}
"""How rows are stored; besides, a column of equal values may be kept as one."""


def stored(frame: pl.DataFrame, seed: int | None = None) -> pl.DataFrame:
    """The same frame, with each column stored in a way of its own.

    Without a seed the values decide, so that a failing example fails again.
    """
    if not frame.height or not frame.width:
        return frame
    rng = random.Random(_digest(frame) if seed is None else seed)
    if rng.random() < 0.1:  # equal pieces of one row become one value
        return pl.concat([frame.slice(*at) for at in _ones(frame.height)], rechunk=False)
    ways = list(WAYS.values())
    made = pl.DataFrame([rng.choice(ways)(column, rng) for column in frame.iter_columns()])
    made.columns = frame.columns  # Polars names a column that has an empty name
    for column in frame.iter_columns():
        if is_one_value(column) and rng.random() < 0.7:
            made = as_one_value(made, column)
    return made


def as_one_value(frame: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    """The frame with a column kept as the value that is its first; by itself, as Polars takes nulls
    of unlike types for one where several columns are made at once.
    """
    return frame.with_columns(pl.lit(column.slice(0, 1)).first().alias(column.name))


def is_one_value(column: pl.Series) -> bool:
    """Whether all rows have the same value, to the last bit."""
    if len(column) == 1 or column.null_count() == len(column):
        return True
    if column.dtype.is_float():
        first, *numbers = column.cast(pl.Float64).to_list()
        bits = _bits(first)
        return all(_bits(number) == bits for number in numbers)
    return column.head(-1).equals(column.slice(1), null_equal=True)


def _bits(number: float | None) -> str:
    return "NaN" if number is not None and math.isnan(number) else repr(number)


def _digest(frame: pl.DataFrame) -> int:
    plain = [c for c in frame.head(TALL).iter_columns() if not c.dtype.is_nested()][:6]
    shown = [c.to_physical().to_list() for c in plain if not isinstance(c.dtype, pl.Categorical)]
    return zlib.crc32(repr((frame.columns, frame.height, shown)).encode())


def in_order(column: pl.Series, descending: bool) -> bool:
    """Whether a column is sorted, with its nulls at one end and NaN as the largest number."""
    if isinstance(column.dtype, pl.Categorical):
        return False
    nulls = column.null_count()
    ends = column.head(nulls).is_null().all() or column.tail(nulls).is_null().all()
    known = column.drop_nulls()
    if known.dtype.is_temporal() or isinstance(known.dtype, pl.Enum):
        known = known.to_physical()
    listed: list[Any] = known.to_list()
    if descending:
        listed.reverse()
    return bool(ends) and all(_at_most(a, b) for a, b in pairwise(listed))


def _at_most(a: Any, b: Any) -> bool:
    if isinstance(b, float) and math.isnan(b):
        return True
    return bool(a <= b)
