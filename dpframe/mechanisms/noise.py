"""From the law of a physical plan to what is drawn: noise, choices, groups that appear, reports.

The kernel has checked what a law costs. Everything is drawn here, by the exact samplers, from that
law alone. All functions take a `source` of bits for tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.kernel import plan as kernel
from dpframe.mechanisms.mechanism import in_range
from dpframe.samplers import (
    OS,
    PLACES,
    BitSource,
    Line,
    Runs,
    discrete_box,
    discrete_gaussian,
    discrete_hull,
    discrete_laplace,
    exponential_mechanism,
    exponential_mechanism_each,
    exponential_mechanism_runs,
    flips,
    ordered_exponential,
    permute_and_flip,
    permute_and_flip_each,
    randomized_responses,
    report_noisy_max,
    report_noisy_max_each,
    row_places,
    staircase,
    uniform_words,
    uniforms_below,
)
from dpframe.samplers.cells import discrete_laplace_wide, wrap
from dpframe.samplers.exponential import bracket_exp
from dpframe.samplers.selection import MAX_SELECTION_SCALE, MIN_SELECTION_SCALE
from dpframe.samplers.source import ONE, coins

__all__ = [
    "PLACES",
    "TIES",
    "Runs",
    "appear",
    "appearance_chances",
    "choose_each",
    "choose_points",
    "choose_top_each",
    "choose_tuple",
    "keep_points",
    "noise",
    "place_rows",
    "report",
    "selection_scale",
    "truthful",
]

Integers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

TIES: Final = (1 << 16, 1 << 16)
"""At how many places of one point its rows may be where several quantiles are one choice, and at
how many of such a place.
"""
_BITS: Final = 192
"""Of exp(-epsilon), which is down to exp(-64) and must be known to many digits."""


def noise(law: kernel.Law, n: int, source: BitSource = OS) -> Integers:
    """`n` independent draws, exact given ideal bits, modulo 2**64: numbers, or vectors of a box.

    Returns
    -------
    numpy.ndarray
        Of shape (n,); of a box (n, numbers).
    """
    match law:
        case kernel.Exact():
            return np.zeros(n, np.int64)
        case kernel.Laplace(scale, 1):
            return discrete_laplace(scale, n, source)
        case kernel.Laplace(scale, fine):
            return _rounded_laplace(scale, fine, n, source)
        case kernel.Gaussian(sigma_squared):
            return discrete_gaussian(sigma_squared, n, source)
        case kernel.Staircase(rate, width, inner):
            return staircase(rate, width, inner, n, source)
        case kernel.Box(epsilon, widths, fineness, ()):
            return discrete_box(epsilon, widths, fineness, n, source)
        case kernel.Box(epsilon, widths, fineness, arches):
            return discrete_hull(epsilon, widths, fineness, arches, n, source)
        case _:
            raise _not_drawn(law, "noise")


def _rounded_laplace(scale: Fraction, fine: int, n: int, source: BitSource) -> Integers:
    """Laplace noise on multiples of 1 / fine, for an odd `fine`, rounded to whole numbers."""
    drawn, wide = discrete_laplace_wide(scale * fine, n, source)
    half = fine // 2
    rounded = np.asarray((drawn + half) // fine)
    for place, x in wide.items():  # where the draw or the sum may have wrapped
        rounded[place] = wrap((x + half) // fine)
    return rounded


def choose_each(law: kernel.Law, scores: Integers, source: BitSource = OS) -> Integers:
    """The index of one candidate per row of `scores`, each choice on its own."""
    match law:
        case kernel.Exponential(scale):
            return exponential_mechanism_each(scores, scale, source)
        case kernel.PermuteAndFlip(scale):
            return permute_and_flip_each(scores, scale, source)
        case kernel.NoisyMax(scale):
            return report_noisy_max_each(scores, scale, source)
        case kernel.Exact() | kernel.Laplace() | kernel.Gaussian():
            # the largest number with noise, or without where no individual changes any
            noisy = noise(law, scores.size, source).reshape(scores.shape) + scores
            return np.asarray(np.argmax(noisy, axis=1), np.int64)
        case _:
            raise _not_drawn(law, "a choice")


def choose_top_each(law: kernel.Law, scores: Integers, k: int, source: BitSource = OS) -> Integers:
    """`k` different candidates per row of `scores`, in order of selection.

    Each is chosen among those that are left, which costs k times what one choice does. The largest
    of numbers with noise follow from these. Raises `ValueError` when there are fewer than `k`
    candidates.
    """
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"cannot choose {k} of {scores.shape[1]} candidates")
    if isinstance(law, kernel.Exact | kernel.Laplace | kernel.Gaussian):
        noisy = noise(law, scores.size, source).reshape(scores.shape) + scores
        falling = ~noisy  # -1 - x, which every integer has
        return np.argsort(falling, axis=1, kind="stable")[:, :k]
    select = _choice(law)
    return np.array([_peel(select, line, k, source) for line in scores], np.int64).reshape(-1, k)


_Choice: TypeAlias = Callable[[Integers, BitSource], int]


def _choice(law: kernel.Law) -> _Choice:
    """The index of one candidate, of the scores of one group."""
    match law:
        case kernel.Exponential(scale):
            return lambda scores, source: exponential_mechanism(scores, scale, None, source)
        case kernel.PermuteAndFlip(scale):
            return lambda scores, source: permute_and_flip(scores, scale, source)
        case kernel.NoisyMax(scale):
            return lambda scores, source: report_noisy_max(scores, scale, source)
        case _:
            raise _not_drawn(law, "a choice")


def _peel(select: _Choice, scores: Integers, k: int, source: BitSource) -> list[int]:
    """`k` candidates, each chosen among those that are left."""
    left = np.arange(scores.size)
    chosen = list[int]()
    for _ in range(k):
        i = select(scores[left], source)
        chosen.append(int(left[i]))
        left = np.delete(left, i)
    return chosen


def choose_points(
    scale: Fraction,  # In units of the score
    # `scores`, `weights`: the score and the number of points of each run, group after group.
    scores: Integers,
    weights: Integers,
    sizes: Integers,  # How many runs each group has, at least one
    source: BitSource = OS,
) -> tuple[Integers, Integers]:
    """The exponential mechanism over all points of each group, which are in runs of one score.

    Returns
    -------
    tuple
        The index of each group's run, and the point's place in it, from 0.
    """
    run = exponential_mechanism_runs(scores, sizes, scale, weights, source)
    return run, uniforms_below(weights[run], source)


def selection_scale(scale: Fraction) -> Fraction:
    """A scale that choices can be drawn with: raised, or shortened upwards, where it must be."""
    return in_range(scale, MIN_SELECTION_SCALE, MAX_SELECTION_SCALE, "the scale of the selection")


def keep_points(scale: Fraction, gaps: Integers, source: BitSource = OS) -> Flags:
    """Whether points are kept whose scores are this much below what they were proposed by: each
    with a probability of exp(-gap / scale), exactly.
    """
    return flips(gaps.astype(np.uint64), scale, source)


def choose_tuple(
    scale: Fraction, line: Line, shares: Sequence[int], row: int, source: BitSource = OS
) -> list[int]:
    """The exponential mechanism over all tuples of candidates in order, with `share / row` of all
    rows before each.
    """
    return ordered_exponential(line, shares, row, scale, source)


def place_rows(
    rows: Integers, places: int = PLACES, source: BitSource = OS
) -> tuple[Integers, Integers, Integers]:
    """Which ties, which of their places, and how many rows are there, where this many rows of each
    tie take one of `places` places at random.
    """
    return row_places(rows, source, places)


def appear(law: kernel.Geometric, individuals: Integers, source: BitSource = OS) -> Flags:
    """Whether groups with this many individuals appear."""
    table = appearance_chances(law.epsilon, law.delta)
    return coins(table, np.clip(individuals, 0, len(table) - 1), source)


@lru_cache(maxsize=16)
def appearance_chances(epsilon: Fraction, delta: Fraction) -> list[int]:
    """p(0), p(1), ... of `kernel.Geometric` up to the first that is 1, in multiples of 2**-128.

    The recursion uses a rational number below exp(epsilon) and rounds down, so that both
    inequalities of privacy hold of the numbers that coins are thrown with.
    """
    growth = (1 << 2 * _BITS) // bracket_exp(min(epsilon, Fraction(64)), _BITS)[1]
    slack = (delta.numerator << 128) // delta.denominator
    table = [0]
    while table[-1] < ONE:
        p = table[-1]
        up = (p * growth >> _BITS) + slack
        left = -((-(ONE - p - slack) << _BITS) // growth)
        table.append(min(up, ONE - max(left, 0), ONE))
    return table


def report(law: kernel.Response, counts: Integers, source: BitSource = OS) -> Integers:
    """Unbiased whole estimates of the counts of categories, from reports of all rows; they may be
    negative.

    (reports - rows (1 - g) / categories) / g with g of `truthful`, rounded down or up at random in
    proportion, which is post-processing of the reports.
    """
    reports = randomized_responses(counts, law.epsilon, source)
    g, rows = truthful(law.epsilon, counts.size), int(reports.sum())
    estimates = (reports - rows * (1 - g) / counts.size) / g
    down = np.floor(estimates)
    up = uniform_words(counts.size, source) < estimates - down
    return np.asarray(down + up, np.int64)


def truthful(epsilon: Fraction, categories: int) -> float:
    """About how often a report is the truth rather than any category at random."""
    rest = math.exp(-float(epsilon))
    return -math.expm1(-float(epsilon)) / (1 + (categories - 1) * rest)


def _not_drawn(law: kernel.Law, what: str) -> kernel.Refused:
    return kernel.Refused(f"{what} cannot be drawn by the law {type(law).__name__}")
