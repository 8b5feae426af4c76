"""Randomised responses of rows, and random places of rows that tie."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.exponential import bracket_exp
from dpframe.samplers.source import OS, BitSource

# Randomised responses: every row reports its category, or any category at random.

_BLOCK: Final = 1 << 20
_GUARD: Final = 64


def randomized_responses(
    counts: NDArray[np.int64],  # Rows per category, at least two categories
    epsilon: Fraction,  # What one row's report costs, above 0
    source: BitSource = OS,  # For tests only
) -> NDArray[np.int64]:
    """How many of the rows in each category report each category.

    A row reports the truth with probability g = (1 - e**-epsilon) / (1 + (m - 1) e**-epsilon) and
    otherwise one of all m categories, each equally likely. That is the truth with probability
    e**epsilon / (e**epsilon + m - 1) in all, and any other with 1 / (e**epsilon + m - 1) (Warner
    1965; Kairouz, Oh and Viswanath 2014). g is irrational (Lindemann-Weierstrass), so comparisons
    with revealed bits of a uniform number end. Raises `ValueError` when there are fewer than two
    categories, or epsilon is not above 0.

    Returns
    -------
    numpy.ndarray
        Reports per category; they add up to the number of rows.
    """
    if counts.ndim != 1 or counts.size < 2 or (counts < 0).any() or epsilon <= 0:
        raise ValueError("randomised responses need two categories and an epsilon above 0")
    categories = counts.size
    reports = np.zeros(categories, np.int64)
    others = 0
    for category, rows in enumerate(counts.tolist()):
        kept = _truths(rows, epsilon, categories, source)
        reports[category] += kept
        others += rows - kept
    return reports + _spread(others, categories, source)


def _truths(rows: int, epsilon: Fraction, categories: int, source: BitSource) -> int:
    """How many of this many rows report the truth."""
    kept = 0
    floor = np.uint64(_floor(epsilon, categories, 64))
    for start in range(0, rows, _BLOCK):
        words = source.u64(min(_BLOCK, rows - start))
        kept += int(np.count_nonzero(words < floor))
        for _ in range(int(np.count_nonzero(words == floor))):
            kept += _decide(int(floor), epsilon, categories, source)
    return kept


def _decide(prefix: int, epsilon: Fraction, categories: int, source: BitSource) -> bool:
    """Whether U < g for a U whose first 64 bits are those of g."""
    bits = 64
    while True:
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64
        floor = _floor(epsilon, categories, bits)
        if prefix != floor:
            return prefix < floor


def _floor(epsilon: Fraction, categories: int, precision: int) -> int:
    """floor(2**precision g), exactly."""
    guard = _GUARD
    while True:
        width = precision + guard
        lo, hi = bracket_exp(epsilon, width)  # of 2**width e**-epsilon
        one = 1 << width
        least = (one - hi << precision) // (one + (categories - 1) * hi)
        most = (one - lo << precision) // (one + (categories - 1) * lo)
        if least == most:
            return least
        guard *= 2


def _spread(rows: int, categories: int, source: BitSource) -> NDArray[np.int64]:
    """Rows over categories, each as likely for each row, by rejection."""
    spread = np.zeros(categories, np.int64)
    unused = np.uint64(64 - (categories - 1).bit_length())
    left = rows
    while left:
        drawn = source.u64(min(_BLOCK, left)) >> unused
        inside = drawn[drawn < np.uint64(categories)].astype(np.int64)
        spread += np.bincount(inside, minlength=categories)
        left -= inside.size
    return spread


# Rows that tie, in random order: each takes one of many places by coins of its own.

PLACES: Final = 1 << 16
"""How many places there are: 16 fair coins a row."""

_AT_ONCE: Final = 1 << 22
"""Coins for this many rows are drawn at the same time, which bounds the memory."""

Counts = NDArray[np.int64]


def row_places(
    rows: Counts,  # How many rows each tie has
    source: BitSource = OS,  # For tests only
    places: int = PLACES,  # How many places each tie has: a power of two, up to `PLACES`
) -> tuple[Counts, Counts, Counts]:
    """How many rows take each place, where the rows of several ties each take one at random.

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
