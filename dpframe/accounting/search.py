"""Searches whose answer is right wherever they stop: a point that was tried, not a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MOST_STEPS: Final = 100


def minimum(f: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """The least value found on ever finer grids of orders a > 1; any order gives a valid bound."""
    low, high = -12.0, 40.0
    best = math.inf
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        with np.errstate(over="ignore", invalid="ignore"):
            values = f(1.0 + np.exp(grid))
        values = np.where(np.isnan(values), math.inf, values)
        i = int(np.argmin(values))
        best = min(best, float(values[i]))
        low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, 64)])
    return best


def least_root(f: Callable[[float], float], start: float, width: float, tolerance: float) -> float:
    """A point where the falling function f is at most 0, within `tolerance` of one where it is not.

    Widens an interval around `start`, then false position, kept off the ends of the interval.
    """
    low, high = start - width, start + width
    f_low, f_high = f(low), f(high)
    while f_low <= 0.0:
        width *= 3.0
        high, f_high, low = low, f_low, low - width
        f_low = f(low)
    while f_high > 0.0:
        width *= 3.0
        low, f_low, high = high, f_high, high + width
        f_high = f(high)
    steps = 0
    while high - low > tolerance:
        steps += 1
        share = 0.5 if steps % 4 == 0 else f_low / (f_low - f_high)
        inset = tolerance / 4.0
        middle = min(max(low + share * (high - low), low + inset), high - inset)
        value = f(middle)
        if value > 0.0:
            low, f_low = middle, value
        else:
            high, f_high = middle, value
    return high


def least_reaching(f: Callable[[float], float], target: float, start: float, near: float) -> float:
    """A point of at least 0 where the falling function f, which is below 0, was seen to be at most
    `target`, within about a relative `near` of where it first is; infinity if none was found.

    Secants through the last two points, kept between a point that is too small and one that is
    large enough. The first step takes f to fall as the square of its argument.
    """
    low, high = 0.0, math.inf
    at, last, slope = start, None, math.nan
    for step in range(_MOST_STEPS):
        value = f(at)
        low, high = (at, high) if value > target else (low, at)
        if last is not None and value != last[1]:
            slope = (value - last[1]) / (at - last[0])
        if math.isinf(slope):  # f may fall to minus infinity
            slope = math.nan
        near_enough = high == at and value >= target + slope * near * at
        if near_enough or (high < math.inf and high - low <= near * high):
            break
        if math.isnan(slope):
            then = at * math.sqrt(target / value) if value < 0.0 else 2.0 * at
        else:
            then = at + (target - value) / slope + 0.5 * near * at
        if then <= 0.0 == low and f(0.0) <= target:
            return 0.0
        if not low < then < high or step % 8 == 7:
            then = 2.0 * at if high == math.inf else 0.5 * (low + high)
        at, last = then, (at, value)
    return high


def least_true(holds: Callable[[float], bool], low: float, high: float, near: float) -> float:
    """A point where `holds` was seen, within a relative `near` of one where it was not.

    Infinity when it never held. `holds` must not stop holding as its argument grows.
    """
    while not holds(high):
        low, high = high, 2.0 * high + 1e-300
        if high > 1e300:
            return math.inf
    while high - low > near * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
