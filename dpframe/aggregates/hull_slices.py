"""Slices of noise that is uniform in hulls of random size, see `dpframe.samplers.box`.

Given the size, all numbers but one that moves only the first part are put at points. The
remaining one is uniform between two ends: those of a section of its arch (`arch_body`), or of the
box.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import Slices
from dpframe.aggregates.joint_slices import fewer_sizes, uniform_slices
from dpframe.mechanisms import Arch, Boxes
from dpframe.mechanisms.discrete_hull import area, ends_at, reach_at

__all__ = ["hull_slices"]

Floats: TypeAlias = "NDArray[np.float64]"

_POINTS: Final = {1: (45,), 2: (15, 11)}
"""The sizes of a grid, in each of this many numbers, counts before others."""
_FEW: Final = 8.0
"""Counts up to it are whole: in 45 or 15 points 3, 5 or 15 of them are as often."""
_MORE: Final = 256
"""The number of points of a sequence, for more numbers."""


def hull_slices(boxes: Boxes, rows: Floats, units: list[float]) -> Slices:
    """Of noise that is uniform in hulls.

    Parameters
    ----------
    boxes
        The boxes that they lie in, and their arches.
    rows
        For each part its factors of the numbers; parts are rounded to whole steps.
    units
        What a step of each part is.
    """
    radii, weights = fewer_sizes(boxes.radii, boxes.weights)
    widths = np.floor(np.outer(radii, np.array(boxes.widths)) / boxes.fineness) + 0.5
    rows = rows * np.array(units)[:, None]
    first = np.flatnonzero(rows[0])
    alone = [place for place in first.tolist() if not rows[1:, place].any()]
    paired = [place for place in alone if not any(place == arch[0] for arch in boxes.arches)]
    own = paired[0] if paired else int(first[0])
    points, shares, ends = _points(boxes.arches, rows, own)
    counts = {arch[0] for arch in boxes.arches} - {own}
    values = {place: _values(widths[:, place], at, place in counts) for place, at in points.items()}
    spread: Floats = np.multiply.outer(weights, shares / shares.sum()).reshape(-1)
    low, high = (np.outer(widths[:, own], end).ravel() for end in ends)
    rest = [place for place in values if place != own or not paired]
    parts = [sum(rows[p, j] * values[j] for j in rest) for p in range(len(rows))]
    parts[1:] = [
        np.rint(part / unit) * unit if np.count_nonzero(row) > 1 else part
        for part, unit, row in zip(parts[1:], units[1:], rows[1:], strict=True)
    ]
    turn = rows[0, own]
    middle = np.asarray(parts[0]) - (0.0 if paired else turn * values[own])
    sides = middle + turn * low, middle + turn * high
    whole = np.count_nonzero(rows[0]) == 1
    kept = spread > 0
    return uniform_slices(
        spread[kept],
        tuple(np.broadcast_to(np.asarray(part), spread.shape)[kept] for part in parts[1:]),
        np.minimum(*sides)[kept],
        np.maximum(*sides)[kept],
        units[0],
        whole,
    )


def _values(widths: Floats, at: Floats, is_count: bool) -> Floats:
    """Numbers at each size and point; small counts are whole."""
    found = np.outer(widths, at)
    if is_count:
        found = np.where((widths <= _FEW)[:, None], np.rint(found), found)
    return found.ravel()


def _points(
    arches: tuple[Arch, ...], rows: Floats, own: int
) -> tuple[dict[int, Floats], Floats, tuple[Floats, Floats]]:
    """Numbers over their widths at points, what each point stands for, and between which ends the
    own number lies there. If the number itself is a count it is at points too, and within their
    cells.
    """
    used = np.flatnonzero((rows != 0).any(axis=0)).tolist()
    pairs = [arch for arch in arches if {*arch[1:]} & {*used}]
    counts = {arch[0] for arch in arches if arch[0] in used} | {arch[0] for arch in pairs}
    in_pairs = [place for arch in pairs for place in arch[1:]]
    free = [place for place in used if place not in counts and place not in in_pairs]
    sought = [*sorted(counts), *in_pairs, *free]
    if own not in counts:
        sought.remove(own)
    at, shares = _lattice(len(sought))
    found = dict(zip(sought, at, strict=True))
    for arch in arches:
        if arch not in pairs and arch[0] in found:
            shares = shares * area(found[arch[0]])
    one = np.ones(shares.shape)
    ends = -one, one
    for count, total, square in pairs:
        a = found[count]
        if own == total:
            reach = np.minimum(reach_at(a, found[square]), 1.0)
            shares, ends = shares * reach, (-reach, reach)
            continue
        low, high = ends_at(a, found[total])
        shares = shares * (high - low)
        if own == square:
            ends = low, high
        else:
            found[square] = low + (high - low) * (found[square] + 1.0) / 2.0
    if own in counts:
        size = 1.0 / _POINTS.get(len(sought), (_MORE,))[0]
        ends = found[own] - size, found[own] + size
    return found, shares, ends


def _lattice(numbers: int) -> tuple[Floats, Floats]:
    """Points all over [-1, 1] in this many dimensions, one per column, and what each stands
    for."""
    if not numbers:
        return np.zeros((0, 1)), np.ones(1)
    if numbers not in _POINTS:
        turns = _ratio(numbers) ** -np.arange(1.0, numbers + 1.0)
        places = (0.5 + np.outer(turns, np.arange(_MORE))) % 1.0
        return 2.0 * places - 1.0, np.ones(_MORE)
    first, *rest = _POINTS[numbers]
    middles = (2.0 * np.arange(first) + 1.0) / first - 1.0
    nodes = [np.polynomial.legendre.leggauss(n) for n in rest]
    grid = np.meshgrid(middles, *(places for places, _ in nodes), indexing="ij")
    shares = np.meshgrid(np.ones(first), *(weights for _, weights in nodes), indexing="ij")
    return np.stack(grid).reshape(numbers, -1), np.prod(np.stack(shares), axis=0).ravel()


def _ratio(numbers: int) -> float:
    """The root above 1 of x**(d + 1) = x + 1: multiples of its powers spread evenly (Roberts 2018,
    a generalised golden ratio).
    """
    found = 2.0
    for _ in range(64):
        found = (1.0 + found) ** (1.0 / (numbers + 1.0))
    return found
