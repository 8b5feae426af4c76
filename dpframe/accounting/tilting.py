"""Cumulants of privacy losses, ln E[exp(theta loss)]: where to look, and how far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.dots import Dots

__all__ = ["View", "cumulant", "view_at_delta", "view_at_epsilon"]

Floats: TypeAlias = NDArray[np.float64]


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
        A window around them: what is outside hardly changes the answer.
    epsilon
        About the answer, or what was asked.
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
        losses = (part.first + np.arange(len(part.masses), dtype=np.float64)) * step
        with np.errstate(divide="ignore"):
            logs = np.log(part.masses)
        tilted = np.multiply.outer(orders, losses)
        tilted += logs
        top = tilted.max(axis=1)
        tilted -= top[:, None]
        total += count * (top + np.log(np.exp(tilted, out=tilted).sum(axis=1)))
    return total


def view_at_delta(parts: Sequence[tuple[Dots, int]], step: float, log_delta: float) -> View:
    """Where delta reaches a value: near the least (cumulant + gain - ln delta) / theta."""
    scale = _deviation(parts, step)
    orders = np.exp2(np.arange(-8.0, 14.0, 0.5)) / scale
    values = cumulant(parts, step, orders)
    bounds = (values + _gain(orders) - log_delta) / orders
    i = int(bounds.argmin())
    theta = float(orders[i])
    tops = (values - log_delta + 25.0) / orders
    high, steep = float(tops.min()), float(orders[int(tops.argmin())])
    return View(theta, steep, _low(parts, step, theta, scale), high, float(bounds[i]))


def view_at_epsilon(parts: Sequence[tuple[Dots, int]], step: float, epsilon: float) -> View:
    """Where losses exceed epsilon: tilted to where cumulant + gain - theta epsilon is least."""
    scale = _deviation(parts, step)
    orders = np.exp2(np.arange(-8.0, 14.0, 0.5)) / scale
    values = cumulant(parts, step, orders)
    logs = values + _gain(orders) - orders * epsilon
    i = int(logs.argmin())
    theta, log_delta = float(orders[i]), min(0.0, float(logs[i]))
    tops = (values - log_delta + 32.0) / orders
    high, steep = float(tops.min()), float(orders[int(tops.argmin())])
    return View(theta, steep, _low(parts, step, theta, scale), max(high, epsilon), epsilon)


def _gain(orders: Floats) -> Floats:
    """ln of the largest (1 - exp(-x)) exp(-theta x), by which delta is less than Chernoff's bound
    on P(loss > epsilon) (Canonne, Kamath and Steinke 2020, Prop. 12).
    """
    return np.asarray(-np.log1p(orders) - orders * np.log1p(1.0 / orders))


def _deviation(parts: Sequence[tuple[Dots, int]], step: float) -> float:
    variance = 0.0
    for part, count in parts:
        losses = (part.first + np.arange(len(part.masses), dtype=np.float64)) * step
        mean = float((part.masses * losses).sum())
        variance += count * float((part.masses * (losses - mean) ** 2).sum())
    return math.sqrt(max(variance, step * step))


def _low(parts: Sequence[tuple[Dots, int]], step: float, theta: float, scale: float) -> float:
    """Below lies 1e-13 of the tilted mass, by Chernoff's bound."""
    back = np.exp2(np.arange(-4.0, 8.0, 0.5)) / scale
    logs = cumulant(parts, step, theta - back) - cumulant(parts, step, np.array([theta]))
    return float(((-30.0 - logs) / back).max())
