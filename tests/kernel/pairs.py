"""How often the draws of a plan together reveal more than an epsilon: never more than they do.

A `Pair` has the logarithms of the chances of the results of a draw, on both sides. Whoever puts
several results together, or overlooks some, sees no more than before. So results whose losses are
nearly equal are put together, results that hardly ever occur are left out, and what is found is no
more than the true delta. Chances are right but for a part in `1 / MARGIN`.

It knows what `dpframe.kernel.plan` says of laws, and nothing else of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.kernel import plan as p

Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[Floats, Floats]

BINS = 4000
"""Losses of all draws are divided into so many parts."""
MARGIN = 1e-9
RARE = -300.0
"""Results with rarer chances than this are left out."""
FAR = 60.0
"""Noise is followed until its chances have fallen by this much, as logarithms."""
MOST = 400_000
"""A draw with more results is left out."""
DEAREST = 300.0
"""For a larger epsilon nothing is found."""
UNSEEN = 1e-150
"""More than is lost where floats are too small."""


def pair_of(one: Iterable[float], other: Iterable[float]) -> Pair:
    """Results with these logarithms of chances."""
    return np.array([*one], dtype=np.float64), np.array([*other], dtype=np.float64)


def delta_of(pairs: Sequence[Pair], epsilon: float, bins: int = BINS) -> float:
    """A lower bound of the delta of independent draws at an epsilon, in the worse direction."""
    if not 0 <= epsilon <= DEAREST:
        return 0.0
    seen = [known for pair in pairs if (known := _known(pair)) is not None]
    both = [np.isfinite(one) & np.isfinite(other) for one, other in seen]
    losses = [one[here] - other[here] for (one, other), here in zip(seen, both, strict=True)]
    step = sum(float(np.ptp(loss)) for loss in losses if loss.size) / bins or 1.0
    divided: list[Pair] = []
    for pair, here, loss in zip(seen, both, losses, strict=True):
        places = np.floor((loss - (loss.min() if loss.size else 0.0)) / step).astype(np.int64)
        divided.append((_sums(places, np.exp(pair[0][here])), _sums(places, np.exp(pair[1][here]))))
    sides: Pair = (np.ones(1), np.ones(1))
    for one, other in sorted(divided, key=lambda each: each[0].size):
        sides = np.convolve(sides[0], one), np.convolve(sides[1], other)
    grown, found = math.exp(epsilon), 0.0
    for side in (0, 1):
        here_, there = sides[side], sides[1 - side]
        more = (1 - MARGIN) * here_ - grown * (1 + MARGIN) * there
        # results that the other side never has
        never = [float(np.exp(pair[side][np.isneginf(pair[1 - side])]).sum()) for pair in seen]
        shared = [float(each[side].sum()) for each in divided]
        found = max(found, float(np.maximum(more, 0.0).sum()) + (1 - MARGIN) * _any(never, shared))
    return max(0.0, found - UNSEEN)


def _sums(places: NDArray[np.int64], chances: Floats) -> Floats:
    """The chances of all results in each place."""
    return np.bincount(places, chances, minlength=1).astype(np.float64)


def _any(never: Sequence[float], shared: Sequence[float]) -> float:
    """The chance of at least one of the first, where each has that of the second otherwise."""
    if 0 in shared:
        return math.prod(map(sum, zip(never, shared, strict=True)))
    grown = math.fsum(math.log1p(n / s) for n, s in zip(never, shared, strict=True))
    return math.prod(shared) * math.expm1(grown)


def _known(pair: Pair) -> Pair | None:
    """The results of a pair that are not too rare. None where it says nothing."""
    one, other = pair
    if one.shape != other.shape:
        return None
    keep = ((one > RARE) | np.isneginf(one)) & ((other > RARE) | np.isneginf(other))
    keep &= np.isfinite(one) | np.isfinite(other)
    one, other = one[keep], other[keep]
    if not one.size or np.array_equal(one, other):
        return None
    # no chances: some choices are not judged
    return None if max(np.exp(one).sum(), np.exp(other).sum()) > 1 + MARGIN else (one, other)


def noise_pairs(law: p.Law, moves: tuple[int, ...]) -> list[Pair]:
    """The pairs of numbers with noise that move so."""
    if isinstance(law, p.Box):
        found = [_of_box(law, moves)]
    else:
        found = [_of_number(law, abs(move)) for move in moves if move]
    return [pair for pair in found if pair is not None]


@cache
def _of_number(law: p.Law, move: int) -> Pair | None:
    """The pair of one number. None where there are too many results."""
    match law:
        case p.Exact():
            return pair_of([0.0, -math.inf], [-math.inf, 0.0])
        case p.Gaussian(variance):
            far = math.ceil(math.sqrt(2 * FAR * float(variance))) + 2
        case p.Laplace(scale, _):
            far = math.ceil(FAR * float(scale)) + 2
        case p.Staircase(rate, width, inner):
            far = inner + math.ceil(FAR / float(rate) + 1) * width
        case _:
            return None
    if far + move > MOST // 3:
        return None
    whole = _log_sum(_logs(law, np.arange(-far, far + 1, dtype=np.float64)))
    # beyond this the first side has next to nothing, and what the other one has mirrors its start
    x = np.arange(-far, far + move + 1, dtype=np.float64)
    return _logs(law, x) - whole, _logs(law, x - move) - whole


def _logs(law: p.Law, x: Floats) -> Floats:
    """The logarithms of the weights of noise."""
    match law:
        case p.Gaussian(variance):
            return np.asarray(-x * x / (2 * float(variance)))
        case p.Laplace(scale, 1):
            return np.asarray(-np.abs(x) / float(scale))
        case p.Laplace(scale, fine) if fine % 2:
            # all multiples of 1 / fine that are nearest to a whole number
            step, half = -1 / (float(scale) * fine), fine // 2
            near = np.arange(-half, half + 1)
            centre = _log_sum(step * np.abs(near))
            beside = _log_sum(step * (fine + near.astype(np.float64)))
            return np.where(x == 0, centre, beside - (np.abs(x) - 1) / float(scale))
        case p.Staircase(rate, width, inner):
            levels = np.maximum(0.0, np.ceil((np.abs(x) + 1 - inner) / width))
            return np.asarray(-float(rate) * levels)
    return np.zeros(x.size)  # which way a half is rounded is not said


def _log_sum(logs: Floats) -> float:
    """The logarithm of a sum."""
    most = float(logs.max())
    return most + math.log(math.fsum(np.exp(logs - most)))


@cache
def _of_box(law: p.Box, moves: tuple[int, ...]) -> Pair | None:
    """The pair of numbers in a box without arches, as far out as there is room."""
    if any(move and not width for move, width in zip(moves, law.widths, strict=True)):
        return pair_of([0.0, -math.inf], [-math.inf, 0.0])
    whole = _log_box(law)
    if law.arches or whole is None or not any(moves):
        return None
    radius = math.ceil(FAR * law.fineness / law.epsilon)
    while radius and math.prod(_sizes(law, moves, radius)) > MOST // 4:
        radius = radius * 4 // 5
    if not radius:
        return None
    axes = [
        np.arange(
            -(w * radius // law.fineness) + min(0, m), w * radius // law.fineness + max(1, m + 1)
        )
        for w, m in zip(law.widths, moves, strict=True)
    ]
    grids = np.meshgrid(*axes, indexing="ij")
    rate = float(law.epsilon / law.fineness)
    sides: list[Floats] = []
    for here in ([0] * len(moves), moves):
        far = np.zeros(grids[0].shape, dtype=np.int64)
        for grid, w, m in zip(grids, law.widths, here, strict=True):
            if w:
                far = np.maximum(far, -(-np.abs(grid - m) * law.fineness // w))
        sides.append(np.asarray(-rate * far.ravel() - whole, dtype=np.float64))
    return sides[0], sides[1]


def _sizes(law: p.Box, moves: Sequence[int], radius: int) -> list[int]:
    """How many whole numbers each number of a box may be, on either side."""
    pairs = zip(law.widths, moves, strict=True)
    return [2 * (w * radius // law.fineness) + 1 + abs(m) for w, m in pairs]


@cache
def _log_box(law: p.Box) -> float | None:
    """The logarithm of the sum of all weights of a box without arches; with them it is less."""
    rate = float(law.epsilon / law.fineness)
    number = math.ceil((FAR + 40 * len(law.widths)) / rate) + 1
    if number > 10 * MOST:
        return None
    radius = np.arange(number)
    logs = np.asarray(-rate * radius, dtype=np.float64)
    for w in law.widths:
        logs += np.log(2.0 * (w * radius // law.fineness) + 1)
    return _log_sum(logs) + math.log(-math.expm1(-rate))


def centre_pair(law: p.Box, radius: int) -> Pair | None:
    """What the least likely and the likeliest result of a box with arches say of a move whose N is
    `radius`. Both are taken for any other one now and then, as if weights were those of the box
    without arches.
    """
    whole = _log_box(law)
    if whole is None or not radius:
        return None
    near = -whole
    away = near - float(law.epsilon / law.fineness) * radius
    rest = math.log(max(1e-300, -math.expm1(np.logaddexp(near, away))))
    return pair_of([near, away, rest], [away, near, rest])


def report_pair(
    law: p.Response, cells: int, one: Mapping[int, int], other: Mapping[int, int]
) -> Pair | None:
    """The pair of how many rows report each cell, with this many rows in each."""
    rows = sum(one.values())
    if rows != sum(other.values()) or math.comb(rows + cells - 1, rows) > 5000 or rows > 8:
        return None
    sides = [_reports(law, cells, tuple(sorted(side.items()))) for side in (one, other)]
    results = sorted(sides[0])
    return pair_of(*([math.log(side[result]) for result in results] for side in sides))


@cache
def _reports(
    law: p.Response, cells: int, counts: tuple[tuple[int, int], ...]
) -> dict[tuple[int, ...], float]:
    """The chances of how many rows report each cell."""
    apart = math.exp(-min(float(law.epsilon), 200.0))
    found = {(0,) * cells: 1.0}
    for own, number in counts:
        for _ in range(number):
            later: dict[tuple[int, ...], float] = {}
            for result, chance in found.items():
                for cell in range(cells):
                    after = (*result[:cell], result[cell] + 1, *result[cell + 1 :])
                    share = (1.0 if cell == own else apart) / (1 + (cells - 1) * apart)
                    later[after] = later.get(after, 0.0) + chance * share
            found = later
    return found
