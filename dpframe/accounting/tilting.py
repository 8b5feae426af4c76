"""Cumulants of privacy losses, ln E[exp(theta loss)]: where to look, and how far."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.connect_the_dots import Dots

__all__ = ["View", "cumulant", "view_at_delta", "view_at_epsilon"]

Floats: TypeAlias = NDArray[np.float64]

_BASES: Final[Floats] = np.exp2(np.arange(-8.0, 14.0, 0.5))
_BACK: Final[Floats] = np.exp2(np.arange(-4.0, 8.0, 0.5))
"""Orders that are tried, and how far they are taken back, in units of 1 / deviation."""
_STRIDE: Final = 4


@dataclass(frozen=True, slots=True)
class View:
    """Which losses matter for a question.

    Parameters
    ----------
    theta
        The tilt that makes them likely.
    steep
        A larger one, which shows best that nothing lies above the window.
    low, high
        A window around them: what is outside barely changes the answer.
    epsilon
        The neighbourhood of the answer, or of the requested point.
    """

    theta: float
    steep: float
    low: float
    high: float
    epsilon: float


def cumulant(parts: Sequence[tuple[Dots, int]], step: float, orders: Floats) -> Floats:
    """ln E[exp(theta loss); loss finite] of the sum, at each theta of `orders`."""
    total = np.zeros(len(orders))
    for part, count in parts:
        masses, losses = part.masses, _losses(part, step)
        held = masses > 0.0
        if not held.all():  # most points have no mass, where atoms are distant
            masses, losses = masses[held], losses[held]
        logs = np.log(masses)
        tilted = np.empty_like(losses)
        for i, theta in enumerate(orders.tolist()):
            np.multiply(losses, theta, out=tilted)
            tilted += logs
            top = tilted.max()
            tilted -= top
            total[i] += count * (top + math.log(np.exp(tilted, out=tilted).sum()))
    return total


def _losses(part: Dots, step: float) -> Floats:
    losses = np.arange(part.first, part.first + len(part.masses), dtype=np.float64)
    losses *= step
    return losses


def view_at_delta(parts: Sequence[tuple[Dots, int]], step: float, log_delta: float) -> View:
    """Where delta reaches a value: near the least (cumulant + gain - ln delta) / theta."""
    scale = _deviation(parts, step)
    orders = _Orders(lambda theta: cumulant(parts, step, theta), _BASES / scale)
    theta, bound = orders.least(lambda t, k: (k + _gain(t) - log_delta) / t)
    steep, high = orders.least(lambda t, k: (k - log_delta + 25.0) / t)
    return View(theta, steep, _low(parts, step, theta, scale), high, bound)


def view_at_epsilon(parts: Sequence[tuple[Dots, int]], step: float, epsilon: float) -> View:
    """Where losses exceed epsilon: tilted to where cumulant + gain - theta epsilon is least."""
    scale = _deviation(parts, step)
    orders = _Orders(lambda theta: cumulant(parts, step, theta), _BASES / scale)
    theta, bound = orders.least(lambda t, k: k + _gain(t) - t * epsilon)
    log_delta = min(0.0, bound)
    steep, high = orders.least(lambda t, k: (k - log_delta + 32.0) / t)
    return View(theta, steep, _low(parts, step, theta, scale), max(high, epsilon), epsilon)


class _Orders:
    """Cumulants at some orders, each computed when it is first asked for."""

    def __init__(self, cumulants: Callable[[Floats], Floats], orders: Floats) -> None:
        self._cumulants, self._orders = cumulants, orders
        self._values = np.full(len(orders), math.nan)

    def least(self, f: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """The order at which f(order, cumulant) is least, and how much it is there.

        f falls up to some order and rises from there on: cumulants are convex in their order, so
        where f is (K + c) / theta the sign of its slope is that of theta K' - K - c, which rises.
        So every fourth order is tried, and then those around the best of them.
        """
        some = np.arange(0, len(self._orders), _STRIDE)
        best = int(some[self._of(f, some).argmin()])
        near = np.arange(max(0, best - _STRIDE + 1), min(len(self._orders), best + _STRIDE))
        found = self._of(f, near)
        i = int(found.argmin())
        return float(self._orders[near[i]]), float(found[i])

    def _of(self, f: Callable[[Floats, Floats], Floats], places: NDArray[np.intp]) -> Floats:
        new = places[np.isnan(self._values[places])]
        if len(new):
            self._values[new] = self._cumulants(self._orders[new])
        return f(self._orders[places], self._values[places])


def _gain(orders: Floats) -> Floats:
    """ln of the largest (1 - exp(-x)) exp(-theta x), by which delta is less than Chernoff's bound
    on P(loss > epsilon) (Canonne, Kamath and Steinke 2020, Prop. 12).
    """
    return np.asarray(-np.log1p(orders) - orders * np.log1p(1.0 / orders))


def _deviation(parts: Sequence[tuple[Dots, int]], step: float) -> float:
    variance = 0.0
    for part, count in parts:
        losses = _losses(part, step)
        mean = float((part.masses * losses).sum())
        variance += count * float((part.masses * (losses - mean) ** 2).sum())
    return math.sqrt(max(variance, step * step))


def _low(parts: Sequence[tuple[Dots, int]], step: float, theta: float, scale: float) -> float:
    """Below lies 1e-13 of the tilted mass, by Chernoff's bound."""
    (whole,) = cumulant(parts, step, np.array([theta]))
    back = _Orders(lambda b: cumulant(parts, step, theta - b), _BACK / scale)
    _, bound = back.least(lambda b, k: (k - whole + 30.0) / b)
    return -bound
