"""From noisy parts to the tables that are wanted.

Tables without negative numbers that still add up: near ones of the same total, made whole.

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
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.workloads.axes import Axis, Integers, block_sums, contrasts_of
from dpframe.workloads.strategy import Levels, Strategy

# From noisy parts to the tables that are wanted: least squares, level by level.
#
# Sums of nodes are informative about every subspace up to their own levels, all of them with
# weights in the same proportion: leaves per node over the variance of the noise. So the weighted
# sums of these estimates follow from fine levels to coarse ones, each axis after the other, and
# every table is read once.


class Estimate:
    """The estimate of a table from noisy parts. All of it is post-processing.

    Parameters
    ----------
    strategy
        What was measured.
    measured
        The noisy integers of each vector, see `Strategy.parts_of`.
    lines
        The number of tables that are estimated at once, in a last axis of each part; None for one
        table without such an axis.

    Notes
    -----
    Without noise it is the table itself, up to roundings of floats.
    """

    def __init__(
        self, strategy: Strategy, measured: Sequence[Integers], lines: int | None = None
    ) -> None:
        self.strategy = strategy
        self.axes: tuple[Axis, ...] = strategy.workload.axes
        beside = () if lines is None else (lines,)
        held = [
            values.reshape(*part.shape, *beside).astype(np.float64)
            for part, values in zip(strategy.parts, strategy.parts_of(measured), strict=True)
        ]
        self.told: Mapping[Levels, Floats] = _of_tables(strategy, held)

    def cells(self, kept: Sequence[bool]) -> Floats:
        """The estimated table, summed up over the axes that are not kept; their length is 1.

        Sums of such a table are the tables of fewer axes, up to the rounding of floats.
        """
        reach = [axis.height if k else 0 for axis, k in zip(self.axes, kept, strict=True)]
        found = {
            levels: values
            for levels, values in self.told.items()
            if all(level <= most for level, most in zip(levels, reach, strict=True))
        }
        for at in range(len(self.axes)):
            found = _join_levels(found, at, self.axes[at], reach[at])
        (table,) = found.values()
        return table


def _of_tables(strategy: Strategy, held: Sequence[Floats]) -> dict[Levels, Floats]:
    """The contrasts of each subspace, as the weighted mean of what sums of nodes say."""
    axes = strategy.workload.axes
    sums: dict[Levels, Floats] = {}
    weights: dict[Levels, float] = {}
    for part, values, variance in zip(strategy.parts, held, strategy.unit_variances, strict=True):
        weight = part.energy(part.levels) / variance
        sums[part.levels], weights[part.levels] = values * weight, weight
    for at, axis in enumerate(axes):
        for level in range(axis.height, 0, -1):
            for levels in [levels for levels in sums if levels[at] == level]:
                coarser = (*levels[:at], level - 1, *levels[at + 1 :])
                summed = block_sums(sums[levels], at, axis.branching)
                sums[coarser] = sums[coarser] + summed if coarser in sums else summed
                weights[coarser] = weights.get(coarser, 0.0) + weights[levels]
    return {
        levels: _contrasts(sums[levels] / weights[levels], levels, axes)
        for levels in strategy.workload.subspaces
    }


def _contrasts(sums: Floats, levels: Levels, axes: Sequence[Axis]) -> Floats:
    for at, (level, axis) in enumerate(zip(levels, axes, strict=True)):
        if level:
            sums = contrasts_of(sums, at, axis.nodes(level - 1), axis.branching)
    return sums


def _join_levels(
    found: Mapping[Levels, Floats], at: int, axis: Axis, reach: int
) -> dict[Levels, Floats]:
    """The levels of one axis up to `reach` as one."""
    grouped: dict[Levels, dict[int, Floats]] = {}
    for levels, values in found.items():
        grouped.setdefault((*levels[:at], 0, *levels[at + 1 :]), {})[levels[at]] = values
    return {levels: _grow(values, at, axis, reach) for levels, values in grouped.items()}


def _grow(values: Mapping[int, Floats], at: int, axis: Axis, reach: int) -> Floats:
    """The sums of the nodes of a level, from that of all cells and contrasts level by level."""
    sums = values[0]
    for level in range(1, reach + 1):
        sums = _divide(sums, values[level], at, axis, level)
    return sums


def _divide(sums: Floats, contrasts: Floats, at: int, axis: Axis, level: int) -> Floats:
    """The sums of nodes divided among their children. Children that have no cells get nothing."""
    b, parents = axis.branching, axis.nodes(level - 1)
    before, after = sums.shape[:at], sums.shape[at + 1 :]
    whole = np.expand_dims(sums, at + 1)
    if b == 2:
        signed = np.stack([contrasts, -contrasts], axis=at + 1)
    else:
        signed = contrasts.reshape((*before, parents, b, *after))
    children = _child_sums(whole, signed, at + 1, b, b)
    flat = children.reshape((*before, parents * b, *after))
    real = axis.nodes(level) - (parents - 1) * b  # children of the last node that have cells
    if real == b:
        return flat
    here = (slice(None),) * at
    few = _child_sums(
        whole[(*here, slice(-1, None))],
        signed[(*here, slice(-1, None), slice(real))],
        at + 1,
        real,
        b,
    )
    return np.concatenate([flat[(*here, slice((parents - 1) * b))], few.squeeze(at)], axis=at)


def _child_sums(whole: Floats, signed: Floats, at: int, children: int, branching: int) -> Floats:
    """Each of this many children: an equal part of the whole, and by how much it is above the
    mean.

    The contrasts of two children are d and -d: their difference is twice that of each from the
    mean.
    """
    if branching == 2:
        return (whole + signed) / 2.0 if children == 2 else whole
    total = signed.sum(axis=at, keepdims=True)
    found: Floats = (branching * whole + children * signed - total) / (children * branching)
    return found


# Estimates as integers that add up: every table is the margin of every finer one, exactly.
#
# For each table the sums over all corners that begin at its first cell are rounded, and the cells
# are the differences of these. A corner that takes in all cells of an axis is a corner of the table
# without that axis, which is rounded first and taken over. So sums of cells are cells of the
# smaller tables, for any rounding of floats, and every prefix is off by half at most. A cell of a
# table of k axes is a difference of 2**k corners. Its rounding error is at most 2**(k - 1), with a
# variance of 2**k / 12 where the corners' fractional parts are spread evenly.

_LARGEST_WHOLE: Final = float(2**63 - 1024)

Kept: TypeAlias = tuple[bool, ...]


class WholeTables:
    """Integer tables of one estimate that add up.

    Parameters
    ----------
    estimate
        What is made whole.
    """

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        self._corners: dict[Kept, Integers] = {}

    def corners(self, kept: Sequence[bool]) -> Integers:
        """The sums over the first 1, 2, ... cells of each axis that is kept, and over all cells of
        the others, whose length is 1.
        """
        key = tuple(k and axis.size > 1 for k, axis in zip(kept, self.estimate.axes, strict=True))
        found = self._corners.get(key)
        if found is None:
            found = self._corners[key] = self._round(key)
        return found

    def cells(self, kept: Sequence[bool], prefixes: Sequence[bool] | None = None) -> Integers:
        """The table over the axes that are kept; along those with prefixes the sums of the first 1,
        2, ... cells.
        """
        table = self.corners(kept)
        for at, keep in enumerate(kept):
            if keep and not (prefixes is not None and prefixes[at]):
                table = np.diff(table, axis=at, prepend=np.int64(0))
        return table

    def _round(self, key: Kept) -> Integers:
        table = self.estimate.cells(key)
        for at, keep in enumerate(key):
            if keep:
                table = np.cumsum(table, axis=at)
        whole = np.rint(np.clip(table, -_LARGEST_WHOLE, _LARGEST_WHOLE)).astype(np.int64)
        for at, keep in enumerate(key):
            if keep:
                fewer = self.corners((*key[:at], False, *key[at + 1 :]))
                whole[(*[slice(None)] * at, slice(-1, None))] = fewer
        return whole


def rounding_variance(kept: Sequence[bool], prefixes: Sequence[bool] | None = None) -> float:
    """What making whole adds to the variance of a number of a table."""
    differences = sum(
        keep and not (prefixes is not None and prefixes[at]) for at, keep in enumerate(kept)
    )
    return float(2**differences) / 12.0


# Linear maps of tables that multiply what lies in each subspace of axes by a factor.
#
# A table splits into orthogonal parts, one for each set A of axes: along the axes of A what differs
# from the mean, and means along the others. So with f_A the factors, and M_B the means over all
# axes but those of B, the map is the sum over B of g_B M_B, where
#
#     g_B = the sum over A that hold B of (-1)**|A - B| f_A.
#
# Means follow from one another, from large tables to small ones, and their sum from small ones to
# large ones.

Floats: TypeAlias = "NDArray[np.float64]"

_NOTHING: Final = 1e-14
"""Factors that are smaller, relative to the largest, are rounding errors."""


class Filter:
    """A map of tables of one shape.

    Parameters
    ----------
    shape
        The lengths of the axes.
    factors
        The filter of each set of axes.
    """

    def __init__(self, shape: tuple[int, ...], factors: Mapping[Kept, float]) -> None:
        self.of_mean = factors[(False,) * len(shape)]
        """The factor of tables that are the same everywhere."""
        means = {kept: _of_means(kept, factors) for kept in factors}
        largest = max(map(abs, means.values()))
        self._whole: Kept = (True,) * len(shape)
        self._means = {k: g for k, g in means.items() if abs(g) > _NOTHING * largest}
        self._means.setdefault(self._whole, 0.0)
        self._down = list(_descend(shape, self._means))
        self._up = list(_ascend(shape, self._means))

    def of(self, table: Floats) -> Floats:
        """The map of a table."""
        means: dict[Kept, Floats] = {self._whole: table}
        for kept, finer, at in self._down:
            means[kept] = _mean_along(means[finer], at)
        made = {kept: means[kept] * factor for kept, factor in self._means.items()}
        for kept, wider in self._up:
            made[wider] += made.pop(kept)
        return made[self._whole]


def sum_margins(shape: tuple[int, ...], margins: Mapping[Kept, Floats]) -> Floats:
    """The sum of tables that are the same along all axes that they do not keep, where they have a
    length of 1.
    """
    whole: Kept = (True,) * len(shape)
    sums = {kept: table.copy() for kept, table in margins.items()}
    sums.setdefault(whole, np.zeros(shape))
    for kept, wider in _ascend(shape, sums):
        sums[wider] += sums.pop(kept)
    return sums[whole]


def _of_means(kept: Kept, factors: Mapping[Kept, float]) -> float:
    """The factor of the means over the axes that are not kept."""
    ways = ((k,) if k else (False, True) for k in kept)
    return math.fsum(
        (-1) ** (sum(axes) - sum(kept)) * factors[axes] for axes in itertools.product(*ways)
    )


def _descend(shape: tuple[int, ...], wanted: Iterable[Kept]) -> Iterable[tuple[Kept, Kept, int]]:
    """Tables in the order in which their means are made, each from which one, along which axis:
    large ones first, from the smallest that is known, along its longest axes.
    """
    known = [(True,) * len(shape)]
    for kept in sorted(wanted, key=lambda kept: -_size(shape, kept)):
        finer = min((k for k in known if _holds(k, kept)), key=lambda k: _size(shape, k))
        more = [i for i in range(len(shape)) if finer[i] and not kept[i]]
        for at in sorted(more, key=lambda i: -shape[i]):
            coarser = (*finer[:at], False, *finer[at + 1 :])
            known.append(coarser)
            yield coarser, finer, at
            finer = coarser


def _ascend(shape: tuple[int, ...], given: Iterable[Kept]) -> list[tuple[Kept, Kept]]:
    """Tables in the order in which they are added to others, and to which: small ones first, each
    to the smallest that keeps all of its axes.
    """
    rising = sorted(given, key=lambda kept: (_size(shape, kept), sum(kept)))
    return [
        (kept, next(wider for wider in rising[i + 1 :] if _holds(wider, kept)))
        for i, kept in enumerate(rising[:-1])
    ]


def _size(shape: tuple[int, ...], kept: Kept) -> int:
    return math.prod(n for n, k in zip(shape, kept, strict=True) if k)


def _holds(wider: Kept, kept: Kept) -> bool:
    return all(w or not k for w, k in zip(wider, kept, strict=True))


def _mean_along(table: Floats, at: int) -> Floats:
    """The means along one axis, which stays with a length of 1."""
    size, after = table.shape[at], math.prod(table.shape[at + 1 :])
    lines = np.ascontiguousarray(table).reshape(-1, size, after)
    # a product is far quicker than sums of short lines
    alone = after == 1
    scale = 1.0 / size
    found: Floats = lines[:, :, 0] @ np.full(size, scale) if alone else lines.sum(axis=1) * scale
    return found.reshape(*table.shape[:at], 1, *table.shape[at + 1 :])


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
    # The margins, by which axes they keep, with a length of 1 along the others; consistent.
    tables: Mapping[Kept, Floats],
    variances: Mapping[Kept, float],  # The variance of a number of each table, above 0
    shape: tuple[int, ...],  # The lengths of all axes
) -> Floats:
    """The cells from zero up whose margins are near to the given ones, and whose total is theirs.

    By alternating directions (Boyd, Parikh, Chu, Peleato and Eckstein 2011, section 5.2). One
    step is least squares, which has a closed form because margins split into means and
    differences from means axis by axis. The other finds the nearest cells from zero up with the
    total.
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
        axes: math.fsum(precision for kept, precision in precisions.items() if _covers(kept, axes))
        for axes in itertools.product((False, True), repeat=len(lengths))
    }
    start = None
    if energies[(True,) * len(lengths)] <= 0:  # no table has all axes
        start = _scale(tables, shape, total).reshape(lengths)
    return _alternating(sum_margins(lengths, pulls), energies, lengths, total, start).reshape(shape)


def _scale(tables: Mapping[Kept, Floats], shape: tuple[int, ...], total: float) -> Floats:
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
    taken = _find_offset(point, total, None)
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
        taken = _find_offset(point, total, taken)
        if before is not None and np.abs(np.subtract(point, before, out=before)).max() < enough:
            break
    return np.maximum(point - taken, 0.0)


def _with_total(table: Floats, total: float) -> Floats:
    """The nearest numbers from zero up with a total above 0."""
    found: Floats = np.maximum(table - _find_offset(table, total, None), 0.0)
    return found


def _find_offset(table: Floats, total: float, guess: float | None) -> float:
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


def apportion(
    cells: Floats,  # From zero up
) -> Integers:
    """Whole cells from zero up, near the given ones.

    Sums over all axes but the first ones are whole numbers next to the given sums. Along each
    axis the amount that rounding took from a slice is given to the next ones, so that sums over
    the first axes stay near as well. Of many cells, blocks of neighbours are made whole at once.
    """
    held = np.minimum(cells, _LARGEST / max(1, cells.size))
    return _share_out(held, int(np.rint(held.sum())), held.size // _BLOCKS)


def whole_deviation(kept: Kept, shape: tuple[int, ...]) -> float:
    """What `apportion` adds to the deviation of a margin's numbers, at most; 0 where they stay
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


def _share_out(wanted: Floats, total: int, block: int) -> Integers:
    """Whole numbers from zero up with a given sum, near the wanted ones, which may be below 0."""
    if wanted.ndim <= 1 or wanted.size <= block:
        return _nearest(wanted.reshape(-1), total).reshape(wanted.shape)
    slices = _nearest(wanted.reshape(len(wanted), -1).sum(axis=1), total)
    shares = np.zeros(wanted.shape, dtype=np.int64)
    rest = np.zeros(wanted.shape[1:])
    for place, whole in enumerate(slices.tolist()):
        here = wanted[place] + rest
        if whole:
            shares[place] = _share_out(here, whole, block)
        rest = here - shares[place]
    return shares


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
        order = open_to[np.lexsort((_scattered_order(open_to.size), off))]
        whole[order[: abs(short)]] += sign
    return whole


def _scattered_order(size: int) -> Integers:
    """An order of places without a period."""
    return np.argsort(np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
