"""Rows that tie, in random order: each takes one of many places by coins of its own."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.source import OS, BitSource

PLACES: Final = 1 << 16
"""How many places there are: 16 fair coins a row."""

_AT_ONCE: Final = 1 << 22
"""Coins for this many rows are drawn at the same time, which bounds the memory."""

Counts = NDArray[np.int64]


def row_places(
    rows: Counts, source: BitSource = OS, places: int = PLACES
) -> tuple[Counts, Counts, Counts]:
    """How many rows take each place, where the rows of several ties each take one at random.

    Parameters
    ----------
    rows
        How many rows each tie has.
    source
        For tests only.
    places
        How many places each tie has: a power of two, up to `PLACES`.

    Returns
    -------
    tuple
        The tie, the place, and how many rows are there, sorted by tie and place; those of no row
        are left out.
    """
    unused = (PLACES // places).bit_length() - 1
    many = rows > _AT_ONCE
    few = np.flatnonzero(~many)
    turns = np.cumsum(rows[few]) // _AT_ONCE
    parts = np.split(few, np.flatnonzero(np.diff(turns)) + 1)
    found = [_few(rows, ties, source, unused) for ties in parts]
    found += [_many(int(rows[tie]), int(tie), source, unused) for tie in np.flatnonzero(many)]
    keys, counts = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(keys, kind="stable")
    tie, place = np.divmod(keys[order], PLACES)
    return tie, place, counts[order]


def _few(rows: Counts, ties: Counts, source: BitSource, unused: int) -> tuple[Counts, Counts]:
    """Tie and place as one number, and how many rows are there: one number a row, counted."""
    keys = np.repeat(ties, rows[ties]) * PLACES
    keys += source.u16(keys.size) >> unused
    places, counts = np.unique(keys, return_counts=True)
    return places, counts.astype(np.int64)


def _many(rows: int, tie: int, source: BitSource, unused: int) -> tuple[Counts, Counts]:
    """The same of one tie with more rows than fit in memory at once."""
    counts = np.zeros(PLACES, np.int64)
    for start in range(0, rows, _AT_ONCE):
        drawn = source.u16(min(_AT_ONCE, rows - start)) >> unused
        counts += np.bincount(drawn, minlength=PLACES)
    taken = np.flatnonzero(counts)
    return tie * PLACES + taken, counts[taken]
