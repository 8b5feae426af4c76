"""Many choices of one bounded range e, one after another: the most that they reveal together.

The losses of one choice lie within an interval of length e. The worst have two values, t and t - e,
for some t in (0, e), which the data and all earlier choices decide. The worst t depends on how much
has been revealed so far. So the largest delta of k choices at x is (Dong, Durfee and Rogers 2020,
whose adaptive optimum this is)

    F_k(x) = max over t of p(t) F_(k-1)(x - t) + (1 - p(t)) F_(k-1)(x - t + e),

with F_0(x) = max(0, 1 - exp(x)) and p(t) = (exp(e) - exp(t)) / (exp(e) - 1). Two values are enough,
because r F(x - ln r) is convex in the ratio r = P / Q: it is a largest value of sums of (r a - b)+.

*On a grid of step h = e / m.* F is convex in exp(x), so between grid points lines through upper
bounds are upper bounds. In y = exp(-t), for t in a cell, what is to be maximised is then
(c / y + linear in y) / (exp(e) - 1), where -c = A(x - t) - A(x - t + e), A being the intercepts of
the two lines. It lies above the larger of its values at the cell's ends by no more than its
second derivative times the cell's width squared over 8. F is taken from 0 on: exchanging P and Q
gives F(-x) = 1 - exp(-x) (1 - F(x)). Beyond the last point it is at most what it is there.

*A pair.* F_k is again convex in exp(x), so lines through upper bounds on the grid are the delta
of a pair of laws on the grid, which dominates all k choices as one mechanism. Blocks of choices
one after another are dominated by products of such pairs (Zhu, Dong and Wang 2022, Theorem 10).

*With other losses.* Let C be what another pair does to a curve, the mean of F(x - L). Then max over
t of a mean is at most the mean of a max, so it is worst for C to happen first. Losses may come in
any order: choices of one range are taken together, and all others by their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

_BLOCK = 64
"""This many choices are followed one by one."""
FEWEST = 3
"""Of two no less is known than of each alone, but for 0.2 percent."""
LARGEST = Fraction(2)
"""Grids are too coarse for choices of a larger range, and few of these can be paid."""
_TOP = 14.0
_UP = 1.0 + 1e-12


def blocks_of(times: int) -> Iterator[tuple[int, int]]:
    """Blocks of choices that are about equal: how many choices, and how many such blocks."""
    blocks = -(-times // _BLOCK)
    size, left = divmod(times, blocks)
    yield size, blocks - left
    if left:
        yield size + 1, left


def cells_of(times: int) -> int:
    """Into how many cells the range is divided. The grid adds a few parts in 1000 to what many
    choices cost, and less to what few cost.
    """
    return min(128, max(16, 1 << (512 // times).bit_length() - 1))


@lru_cache(maxsize=256)
def loss_masses(epsilon: Fraction, times: int) -> tuple[NDArray[np.float64], float]:
    """The losses of choices as one: how likely each of -n steps to n steps is, and that it is
    larger. A step is the range divided by `cells_of(times)`.
    """
    e = float(epsilon)
    h = e / cells_of(times)
    curve = _deltas(e, cells_of(times), times)
    x = np.arange(curve.size) * h
    slopes = (curve[:-1] - curve[1:]) * np.exp(-x[:-1]) / math.expm1(h)
    slopes = np.append(np.maximum.accumulate(slopes[::-1])[::-1], 0.0)  # falls, as F is convex
    rarer = slopes[:-1] - slopes[1:]  # under Q, from x = h on
    likelier = np.exp(x[1:]) * rarer * _UP
    beyond = float(curve[-1])
    middle = max(0.0, 1.0 - 2.0 * beyond - float(likelier.sum()) - float(rarer.sum()))
    return np.concatenate([rarer[::-1], [middle], likelier]), beyond


def _deltas(e: float, m: int, times: int) -> NDArray[np.float64]:
    """Upper bounds on F at 0, h, 2 h, ... with h = e / m."""
    h = e / m
    reach = times * e * e / 8 + _TOP * e * math.sqrt(times) / 2  # Hoeffding: beyond lies 1e-42
    last = min(times * m, max(m, math.ceil(reach / h)))
    shifts = np.arange(m, -1, -1) * h  # t, from e down to 0
    up = np.exp(shifts) * np.expm1(e - shifts) / math.expm1(e)
    down = np.expm1(shifts) / math.expm1(e)
    bulge = math.expm1(h) ** 2 * np.exp(shifts[:-1]) / (4.0 * math.expm1(e))
    back = np.arange(m, 0, -1) * h
    curve = np.zeros(last + 1)
    for _ in range(times):
        below = -np.expm1(-back) + np.exp(-back) * curve[m:0:-1]
        every = np.concatenate([below, curve, np.full(m, curve[-1])])
        intercepts = every[:-1] + (every[:-1] - every[1:]) / math.expm1(h)
        ends = sliding_window_view(every, m + 1)
        lines = sliding_window_view(intercepts, m)
        values = up * ends[: last + 1] + down * ends[m : m + last + 1]
        between = np.maximum(lines[: last + 1] - lines[m : m + last + 1], 0.0) * bulge
        most = (np.maximum(values[:, :-1], values[:, 1:]) + between).max(axis=1)
        curve = np.minimum(1.0, np.maximum.accumulate(most[::-1])[::-1] * _UP)
    return curve
