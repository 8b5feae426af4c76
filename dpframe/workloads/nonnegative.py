"""Tables without negative numbers that still add up: the nearest ones, made whole.

The wanted tables y_s are margins of one table of cells. Of all tables x of cells that are not
negative the one is taken whose margins are nearest to them,

    the sum over s of sqrt(m_s) |margin_s(x) - y_s|**2 / v_s,

with v_s the variance of a number of y_s and m_s how many cells it adds up. Without the root that
would be the likeliest table, whose total is too large: all that is cut off below zero goes into it.
With it coarse tables stay nearly what they are, and cells that noise alone put below or above zero
go to zero. Cells are made whole so that sums along one axis after the other stay right.

All of it is post-processing of released numbers, without any randomness.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["apportioned", "nearest_nonnegative"]

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Kept: TypeAlias = tuple[bool, ...]

_ROUNDS: Final = 80
_NEAR: Final = 1e-4
"""Cells are found to this part of the deviation of what is known least of them."""
_RATE: Final = 5.0
_RELAXED: Final = 1.6
_LARGEST: Final = 2.0**62


def nearest_nonnegative(
    tables: Mapping[Kept, Floats], variances: Mapping[Kept, float], shape: tuple[int, ...]
) -> Floats:
    """The cells from zero up whose margins are nearest to the given ones.

    By alternating directions (Boyd, Parikh, Chu, Peleato and Eckstein 2011, section 5.2): a least
    squares step, which has a closed form because margins split into means and differences from
    means axis by axis, and a step that sets negative cells to zero.

    Parameters
    ----------
    tables
        The margins, by which axes they keep, with a length of 1 along the others; consistent.
    variances
        Of a number of each, above 0.
    shape
        The lengths of all axes.
    """
    cells = float(np.prod(shape))
    merged = {kept: cells / table.size for kept, table in tables.items()}
    weights = {kept: merged[kept] ** 0.5 / variances[kept] for kept in tables}
    pulls = np.zeros(shape)
    for kept, table in tables.items():
        pulls += table * weights[kept]
    energies = {
        axes: sum(merged[kept] * weights[kept] for kept in tables if _covers(kept, axes))
        for axes in itertools.product((False, True), repeat=len(shape))
    }
    known = [e for e in energies.values() if e > 0]
    rate = _RATE * min(known)
    solved = {axes: 1.0 / (e + rate) for axes, e in energies.items()}
    enough = _NEAR / min(known) ** 0.5
    inside = np.maximum(_filtered(pulls, {a: 1 / e for a, e in energies.items() if e > 0}, 0), 0.0)
    off = np.zeros(shape)
    for _ in range(_ROUNDS):
        free = _filtered(pulls + rate * (inside - off), solved, 0)
        mixed = _RELAXED * free + (1.0 - _RELAXED) * inside
        before, inside = inside, np.maximum(mixed + off, 0.0)
        off += mixed - inside
        if np.abs(free - inside).max() < enough and np.abs(inside - before).max() < enough:
            break
    return inside


def _covers(kept: Kept, axes: Kept) -> bool:
    return all(k or not a for k, a in zip(kept, axes, strict=True))


def _filtered(values: Floats, factors: Mapping[Kept, float], at: int, axes: Kept = ()) -> Floats:
    """The sum over subspaces of factor times what lies in them: along each axis a mean, or how far
    values are from it.
    """
    if at == values.ndim:
        return values * factors.get(axes, 0.0)
    mean = values.mean(axis=at, keepdims=True)
    common = _filtered(mean, factors, at + 1, (*axes, False))
    if values.shape[at] == 1:
        return common
    return common + _filtered(values - mean, factors, at + 1, (*axes, True))


def apportioned(cells: Floats) -> Integers:
    """Whole cells from zero up, near the given ones.

    Sums over all axes but the first ones are whole numbers next to the given sums; along each axis
    what rounding took from a slice is given to the next ones, so that sums over the first axes stay
    near as well.

    Parameters
    ----------
    cells
        From zero up.
    """
    held = np.minimum(cells, _LARGEST / max(1, cells.size))
    return _shared(held, int(np.rint(held.sum())))


def _shared(wanted: Floats, total: int) -> Integers:
    """Whole numbers from zero up with a given sum, near the wanted ones, which may be below 0."""
    if wanted.ndim <= 1:
        return _nearest(wanted.reshape(-1), total).reshape(wanted.shape)
    slices = _nearest(wanted.reshape(len(wanted), -1).sum(axis=1), total)
    found = np.zeros(wanted.shape, dtype=np.int64)
    rest = np.zeros(wanted.shape[1:])
    for place, whole in enumerate(slices.tolist()):
        here = wanted[place] + rest
        if whole:
            found[place] = _shared(here, whole)
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
