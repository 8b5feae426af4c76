"""Slices of noise that several parts follow from: of a box, and of Gaussian noise.

In a box of given size the numbers are independent and uniform. Parts are sums of such numbers, so
all parts together are uniform within a polytope, and given all but the first, the first is uniform
between two ends. Slices are boxes of all sizes, and in each a grid of the other parts.

Gaussian noises are jointly normal; given all but the first, the first is normal.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import Slices
from dpframe.mechanisms import Boxes
from dpframe.mechanisms.discrete_gaussian import normal_above

__all__ = ["SLIGHT", "box_slices", "fewer_sizes", "gaussian_slices", "uniform_slices"]

Floats: TypeAlias = "NDArray[np.float64]"

_POINTS: Final = {1: 40, 2: 12}
"""The points of a grid, by the number of other coordinates."""
_SIZES: Final = 64
"""Of boxes."""
_SPACING: Final = 0.25
SLIGHT: Final = 1e-4
"""The share of what may be missed that slices may leave out."""


def gaussian_slices(variance: float, rows: Floats, units: list[float], miss: float) -> Slices:
    """Of equal Gaussian noise on all numbers of a vector.

    Parameters
    ----------
    variance
        The variance of each number's noise, in steps squared.
    rows
        For each part its factors of the numbers; parts are rounded to whole steps.
    units
        What a step of each part is.
    miss
        What probabilities are about.
    """
    scale = np.array(units)
    covariance = (rows @ rows.T) * variance
    covariance[np.diag_indices_from(covariance)] += (np.abs(rows).sum(axis=1) != 1) / 12
    covariance *= np.outer(scale, scale)
    rest = covariance[1:, 1:]
    reach = math.sqrt(-2 * math.log(min(0.1, miss * SLIGHT)))
    points = np.linspace(-reach, reach, 2 * math.ceil(reach / _SPACING) + 1)
    grid = np.stack(np.meshgrid(*[points] * (len(rows) - 1), indexing="ij")).reshape(len(rest), -1)
    weights = np.exp(-0.5 * (grid * grid).sum(axis=0))
    kept = weights > miss * SLIGHT / weights.size
    weights, others = weights[kept] / weights[kept].sum(), np.linalg.cholesky(rest) @ grid[:, kept]
    pull = np.linalg.solve(rest, covariance[1:, 0])
    mean = pull @ others
    deviation = math.sqrt(max(covariance[0, 0] - pull @ covariance[1:, 0], 1e-300))
    half = scale[0] / 2

    def above(x: Floats) -> Floats:
        return normal_above((np.floor(x / scale[0]) * scale[0] + half - mean) / deviation)

    def below(x: Floats) -> Floats:
        return normal_above((mean - np.ceil(x / scale[0]) * scale[0] + half) / deviation)

    return Slices(weights, tuple(others), above, below)


def box_slices(boxes: Boxes, rows: Floats, units: list[float]) -> Slices:
    """Of noise that is uniform in boxes; other parameters as for `gaussian_slices`.

    Each number lies in [-k - 1/2, k + 1/2] as if it were continuous, which for the tails of whole
    numbers is exact.
    """
    radii, weights = fewer_sizes(boxes.radii, boxes.weights)
    widths = np.floor(np.outer(radii, np.array(boxes.widths)) / boxes.fineness) + 0.5
    scale = np.array(units)
    rows = rows * scale[:, None]
    own = np.flatnonzero((rows[0] != 0) & (rows[1:] == 0).all(axis=0))
    if own.size:
        return _apart(rows, widths, weights, int(own[0]), scale[0])
    return _section(rows, widths, weights, scale[0])


def fewer_sizes(radii: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Sizes of boxes; some neighbours are merged, at their mean, and the last ones at the
    largest.
    """
    step = -(-radii.size // _SIZES)
    starts = np.arange(0, radii.size, step)
    total = np.add.reduceat(weights, starts)
    means = np.add.reduceat(weights * radii, starts) / np.where(total > 0, total, 1.0)
    means[-1] = radii[-1]
    return means, total


def _apart(rows: Floats, widths: Floats, weights: Floats, own: int, unit: float) -> Slices:
    """Where a number moves the first part alone: a grid of all other numbers that are used."""
    used = [j for j in np.flatnonzero((rows != 0).any(axis=0)).tolist() if j != own]
    places = _grid(len(used))
    numbers = {j: np.outer(widths[:, j], places[i]).reshape(-1) for i, j in enumerate(used)}
    each = places.shape[1]
    parts = [sum(rows[p, j] * numbers[j] for j in used) for p in range(len(rows))]
    half = np.repeat(widths[:, own] * abs(rows[0, own]), each)
    middle = np.asarray(parts[0]) + np.zeros(half.size)
    spread = np.repeat(weights / each, each)
    whole = np.count_nonzero(rows[0]) == 1
    return uniform_slices(
        spread, tuple(map(np.asarray, parts[1:])), middle - half, middle + half, unit, whole
    )


def _section(rows: Floats, widths: Floats, weights: Floats, unit: float) -> Slices:
    """Where the first part moves others: a grid of these, in which the first lies between ends.

    The first is then the number that others are centred on, and each other has one of its own.
    """
    pivot = int(np.flatnonzero(rows[0])[0])
    used = [int(np.flatnonzero((row != 0) & (rows[0] == 0))[0]) for row in rows[1:]]
    places = _grid(len(used))
    each = places.shape[1]
    reach = [
        widths[:, j] * abs(rows[p, j]) + widths[:, pivot] * abs(rows[p, pivot])
        for p, j in enumerate(used, 1)
    ]
    others = [np.outer(far, places[i]).reshape(-1) for i, far in enumerate(reach)]
    half = np.repeat(widths[:, pivot], each)
    low, high = -half, half
    for p, (j, other) in enumerate(zip(used, others, strict=True), 1):
        if rows[p, pivot]:
            room = np.repeat(widths[:, j] * abs(rows[p, j]), each)
            ends = (other - room) / rows[p, pivot], (other + room) / rows[p, pivot]
            low, high = np.maximum(low, np.minimum(*ends)), np.minimum(high, np.maximum(*ends))
    length = np.maximum(high - low, 0.0).reshape(len(weights), each)
    share = (length / length.sum(axis=1, keepdims=True) * weights[:, None]).reshape(-1)
    kept = share > 0
    turn = rows[0, pivot]
    ends = low[kept] * turn, high[kept] * turn
    found = tuple(other[kept] for other in others)
    return uniform_slices(share[kept], found, np.minimum(*ends), np.maximum(*ends), unit, True)


def _grid(numbers: int) -> Floats:
    """Middles of equal cells of [-1, 1] in each of this many dimensions, one point per column."""
    if not numbers:
        return np.zeros((0, 1))
    points = _POINTS.get(numbers, 10)
    middles = (2 * np.arange(points) + 1) / points - 1
    return np.stack(np.meshgrid(*[middles] * numbers, indexing="ij")).reshape(numbers, -1)


def uniform_slices(
    weights: Floats, others: tuple[Floats, ...], low: Floats, high: Floats, unit: float, whole: bool
) -> Slices:
    """Slices in which the first is uniform between two ends. Whole numbers are those of the cells
    around them; what else is rounded may be off by half a unit, which is added.
    """
    length = high - low
    moved = 0.0 if whole else unit / 2

    def above(x: Floats) -> Floats:
        at = np.floor(x / unit) * unit + unit / 2 if whole else x - moved
        return np.asarray(np.clip((high - at) / length, 0.0, 1.0))

    def below(x: Floats) -> Floats:
        at = np.ceil(x / unit) * unit - unit / 2 if whole else x + moved
        return np.asarray(np.clip((at - low) / length, 0.0, 1.0))

    return Slices(weights / weights.sum(), others, above, below)
