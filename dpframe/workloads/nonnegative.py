"""Tables without negative numbers that still add up: near ones of the same total, made whole.

The wanted tables y_s are margins of one table of cells, with one total. To set negative numbers to
zero would make every total too large, by all that noise has taken below zero, and in a table with
many empty cells that is more than anything else. So the total is kept (0 where it is negative),
and noise is taken out of all cells alike:

1. Each wanted table is moved to the nearest one from zero up with the total, which takes one number
   off all of its cells, and leaves zero where less is left (Held, Wolfe and Crowder 1974).
2. Of all tables x of cells from zero up with the total that one is taken whose margins are nearest
   to these, each by its own precision:

    the sum over s of |margin_s(x) - y_s|**2 / v_s,  v_s the variance of a number of y_s.

Cells are made whole so that sums along one axis after the other stay right.

All of it is post-processing of released numbers, without any randomness.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.factors import Integers
from dpframe.workloads.subspaces import Filter, joined

Floats: TypeAlias = "NDArray[np.float64]"
Kept: TypeAlias = tuple[bool, ...]

_ROUNDS: Final = 80
_ROUNDS_OF_MANY: Final = 16
MANY_CELLS: Final = 1 << 17
"""With more cells fewer rounds are enough for margins to have no larger errors than they did, and
each takes longer.
"""
_NEAR: Final = 1e-4
"""Cells are found to this part of the deviation of what is known least of them."""
_RELAXED: Final = 1.6
_CYCLES: Final = 10
_EVEN: Final = 1e-3
"""The part of each margin that is spread evenly, so that none is 0."""
_LEAST: Final = 1e-300
_LARGEST: Final = 2.0**62
_BLOCKS: Final = 100
"""This many blocks of cells are made whole one after another: in more of them, what rounding
takes from cells that are zero later on adds up in margins.
"""


def nearest_nonnegative(
    tables: Mapping[Kept, Floats], variances: Mapping[Kept, float], shape: tuple[int, ...]
) -> Floats:
    """The cells from zero up whose margins are near to the given ones, and whose total is theirs.

    By alternating directions (Boyd, Parikh, Chu, Peleato and Eckstein 2011, section 5.2). One
    step is least squares, which has a closed form because margins split into means and
    differences from means axis by axis. The other finds the nearest cells from zero up with the
    total.

    Parameters
    ----------
    tables
        The margins, by which axes they keep, with a length of 1 along the others; consistent.
    variances
        The variance of a number of each table, above 0.
    shape
        The lengths of all axes.
    """
    total = float(min(tables.values(), key=lambda table: table.size).sum())
    cells = math.prod(shape)
    if total <= 0 or cells == 1:
        return np.full(shape, max(total, 0.0))
    wide = [i for i, size in enumerate(shape) if size > 1]
    lengths = tuple(shape[i] for i in wide)
    pulls: dict[Kept, Floats] = {}
    precisions: dict[Kept, float] = {}
    for kept, table in tables.items():
        key = tuple(kept[i] for i in wide)
        near = _with_total(table, total) / variances[kept]
        near = near.reshape([n if k else 1 for n, k in zip(lengths, key, strict=True)])
        pulls[key] = pulls[key] + near if key in pulls else near
        merged = cells / table.size
        precisions[key] = precisions.get(key, 0.0) + merged / variances[kept]
    energies = {
        axes: math.fsum(found for kept, found in precisions.items() if _covers(kept, axes))
        for axes in itertools.product((False, True), repeat=len(lengths))
    }
    start = None
    if energies[(True,) * len(lengths)] <= 0:  # no table has all axes
        start = _scaled(tables, shape, total).reshape(lengths)
    return _alternating(joined(lengths, pulls), energies, lengths, total, start).reshape(shape)


def _scaled(tables: Mapping[Kept, Floats], shape: tuple[int, ...], total: float) -> Floats:
    """Cells above 0 with about the given margins, and otherwise even: each table in turn scales
    the cells to its numbers (Deming and Stephan 1940).

    Where nothing is known of single cells, rounds of least squares from anywhere else take hundreds
    of times as long to get near.
    """
    wanted = []
    for kept, table in tables.items():
        if table.size > 1:
            even = total / table.size
            near = (1.0 - _EVEN) * _with_total(table, total) + _EVEN * even
            wanted.append((tuple(i for i, k in enumerate(kept) if not k), near))
    cells = np.full(shape, total / math.prod(shape))
    for _ in range(_CYCLES):
        for others, near in wanted:
            cells *= near / np.maximum(cells.sum(axis=others, keepdims=True), _LEAST)
    if not np.isfinite(cells).all():  # of this many tables that products of shares are too small
        return np.full(shape, total / math.prod(shape))
    return cells


def _alternating(
    pulls: Floats,
    energies: Mapping[Kept, float],
    shape: tuple[int, ...],
    total: float,
    start: Floats | None,
) -> Floats:
    """The cells x from zero up with a total, that make the sum over subspaces of energy times the
    square of x there, less twice the product of x and the pulls, small.

    With m the point, t what is taken off so that max(m - t, 0) has the total, and u = m - t, the
    cells are max(u, 0), the duals min(u, 0) + t, and their difference |u| - t. So a round asks for
    least squares of |u| alone. The first point is `start`, or the least squares of all real cells.
    """
    least = min(energy for energy in energies.values() if energy > 0)
    # the more cells a margin has, the more is known of it, and the faster it has to settle
    rate, enough = pulls.size**0.5 * least, _NEAR / least**0.5
    step = Filter(shape, {axes: rate / (e + rate) for axes, e in energies.items()})
    pulled = step.of(pulls)
    if start is None:
        known = Filter(shape, {axes: 1 / e if e > 0 else 0.0 for axes, e in energies.items()})
        start = known.of(pulls)
    point = start
    pulled *= _RELAXED / rate
    taken = _taken_off(point, total, None)
    for number in range(_ROUNDS if point.size <= MANY_CELLS else _ROUNDS_OF_MANY):
        before = point.copy() if number % 4 == 3 else None
        point -= taken
        size = np.abs(point)
        moved = step.of(size)
        # (1 - r) max(u, 0) + min(u, 0) = (1 - r / 2) u - (r / 2) |u|, for the relaxation r
        moved *= _RELAXED
        size *= _RELAXED / 2.0
        moved -= size
        moved += pulled
        point *= 1.0 - _RELAXED / 2.0
        point += moved
        point += taken - _RELAXED * step.of_mean * taken
        taken = _taken_off(point, total, taken)
        if before is not None and np.abs(np.subtract(point, before, out=before)).max() < enough:
            break
    return np.maximum(point - taken, 0.0)


def _with_total(table: Floats, total: float) -> Floats:
    """The nearest numbers from zero up with a total above 0."""
    found: Floats = np.maximum(table - _taken_off(table, total, None), 0.0)
    return found


def _taken_off(table: Floats, total: float, guess: float | None) -> float:
    """The number t for which max(table - t, 0) has the total, which is above 0.

    Newton's method: that sum falls with t and is convex, so after one step t is never too large and
    only rises, and entries up to t can be left out (Michelot 1986).
    """
    entries = table.reshape(-1)
    found = (float(entries.sum()) - total) / entries.size
    if guess is not None and guess > found:
        above = entries[entries > guess]
        if above.size:
            better = (float(above.sum()) - total) / above.size
            # it is below what is sought wherever the guess was
            found, entries = (better, above) if better >= guess else (max(found, better), entries)
    while True:
        above = entries[entries > found]
        if not above.size:  # by the rounding of floats
            return found
        better = (float(above.sum()) - total) / above.size
        if better <= found or above.size == entries.size:
            return max(found, better)
        found, entries = better, above


def _covers(kept: Kept, axes: Kept) -> bool:
    return all(k or not a for k, a in zip(kept, axes, strict=True))


def apportioned(cells: Floats) -> Integers:
    """Whole cells from zero up, near the given ones.

    Sums over all axes but the first ones are whole numbers next to the given sums. Along each
    axis the amount that rounding took from a slice is given to the next ones, so that sums over
    the first axes stay near as well. Of many cells, blocks of neighbours are made whole at once.

    Parameters
    ----------
    cells
        From zero up.
    """
    held = np.minimum(cells, _LARGEST / max(1, cells.size))
    return _shared(held, int(np.rint(held.sum())), held.size // _BLOCKS)


def whole_deviation(kept: Kept, shape: tuple[int, ...]) -> float:
    """What `apportioned` adds to the deviation of a margin's numbers, at most; 0 where they stay
    next to what they were.

    Along the first axes what rounding took is given to the next slices, until blocks of the last
    ones are small enough. Sums of whole blocks, and sums over the first axes alone, stay near. A
    sum over some of the last axes but not all has a rounding of its own for each of the cells that
    it adds up, whose variance is 1/4 at most.
    """
    last = [i for i in range(len(shape)) if not _is_split(shape, i)]
    left_out = [shape[i] for i in last if not kept[i] and shape[i] > 1]
    if not left_out or not any(kept[i] and shape[i] > 1 for i in last):
        return 0.0
    return math.sqrt(math.prod(left_out)) / 2.0


def _is_split(shape: tuple[int, ...], axis: int) -> bool:
    """Whether slices along an axis are made whole one after another."""
    return axis < len(shape) - 1 and math.prod(shape[axis:]) > math.prod(shape) // _BLOCKS


def _shared(wanted: Floats, total: int, block: int) -> Integers:
    """Whole numbers from zero up with a given sum, near the wanted ones, which may be below 0."""
    if wanted.ndim <= 1 or wanted.size <= block:
        return _nearest(wanted.reshape(-1), total).reshape(wanted.shape)
    slices = _nearest(wanted.reshape(len(wanted), -1).sum(axis=1), total)
    found = np.zeros(wanted.shape, dtype=np.int64)
    rest = np.zeros(wanted.shape[1:])
    for place, whole in enumerate(slices.tolist()):
        here = wanted[place] + rest
        if whole:
            found[place] = _shared(here, whole, block)
        rest = here - found[place]
    return found


def _nearest(wanted: Floats, total: int) -> Integers:
    """The nearest whole numbers from zero up with a given sum; among equals those whose places are
    spread.
    """
    whole = np.maximum(np.floor(wanted), 0.0).astype(np.int64)
    while (short := total - int(whole.sum())) != 0:
        sign = 1 if short > 0 else -1
        open_to = np.flatnonzero(whole >= (0 if sign > 0 else 1))
        each = abs(short) // open_to.size
        if each:
            whole[open_to] = np.maximum(whole[open_to] + sign * each, 0)
            continue
        off = sign * (whole[open_to] - wanted[open_to])
        order = open_to[np.lexsort((_spread(open_to.size), off))]
        whole[order[: abs(short)]] += sign
    return whole


def _spread(size: int) -> Integers:
    """An order of places without a period."""
    return np.argsort(np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
