"""Renyi divergences, which add up at every order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.accountant import ACROSS, Accountant, ValidFor
from dpframe.accounting.costs import pure_epsilon, zcdp_rho
from dpframe.accounting.events import (
    AnyEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    RandomizedResponseEvent,
    ZCDPEvent,
)
from dpframe.accounting.zcdp import renyi_epsilon
from dpframe.core.exact import exact, float_up

Floats: TypeAlias = NDArray[np.float64]
_MOST_STEPS: Final = 256


class RenyiAccountant(Accountant):
    """Sums of Renyi divergences (Mironov 2017, Prop. 1), converted at the best order by Canonne,
    Kamath and Steinke 2020, Proposition 12. Failures add to delta.

    Across plans it is the curve, or its value at one order, that is to be budgeted beforehand
    (Feldman and Zrnic 2021).
    """

    method: ClassVar[str] = "Renyi"
    valid_for: ClassVar[ValidFor] = ACROSS

    def curve(self, orders: Floats) -> Floats:
        """Upper bounds on the divergence of all events together, at each order above 1."""
        total = np.zeros(len(orders))
        for event, count in self.counts.items():
            total = total + count * renyi_divergence(event, orders)
        return total

    def _epsilon(self, delta: Fraction) -> float:
        left = self._left(delta)
        return renyi_epsilon(self.curve, left) if left > 0.0 else math.inf


def renyi_divergence(event: AnyEvent, orders: Floats) -> Floats:
    """An upper bound on the Renyi divergence of each order above 1, but for the event's slack.

    Laplace noise: Mironov 2017, Table II; for integers the sum over the privacy loss
    (`dpframe.accounting.loss_laws`). Gaussian: order * (sensitivity / sigma)**2 / 2 (the same; for
    integers Canonne, Kamath and Steinke 2020, Prop. 5). Pure privacy: what randomised response has,
    and for bounded range order * rho if that is less.
    """
    a = np.asarray(orders, dtype=np.float64)
    with np.errstate(over="ignore"):
        concentrated = a * float_up(zcdp_rho(event))
    epsilon = pure_epsilon(event)
    if isinstance(event, (GaussianEvent, DiscreteGaussianEvent, ZCDPEvent)) or epsilon is None:
        return concentrated
    e = float_up(epsilon)
    match event:
        case LaplaceEvent():
            found = _laplace(e, a)
        case DiscreteLaplaceEvent() if exact(event.sensitivity) <= _MOST_STEPS:
            found = _discrete_laplace(float_up(1 / exact(event.scale)), int(event.sensitivity), a)
        case DiscreteLaplaceEvent():
            found = _laplace(float_up(epsilon + 1 / (4 * exact(event.scale) ** 2)), a)
        case RandomizedResponseEvent():
            found = _response(e, int(event.categories), a)
        case _:
            found = _response(e, 2, a)
    if isinstance(event, ExponentialEvent):
        found = np.minimum(found, concentrated)
    return np.minimum(found, e)


def _over(logs: Floats, size: float, a: Floats) -> Floats:
    """logs / (a - 1), raised by the rounding of logarithms of numbers up to exp(a size)."""
    return np.asarray((logs + 4e-16 * (2.0 + a * size)) / (a - 1.0))


def _laplace(e: float, a: Floats) -> Floats:
    up = np.log(a / (2.0 * a - 1.0)) + (a - 1.0) * e
    down = np.log((a - 1.0) / (2.0 * a - 1.0)) - a * e
    return _over(np.logaddexp(up, down), e, a)


def _response(e: float, categories: int, a: Floats) -> Floats:
    logs = np.logaddexp(a * e, (1.0 - a) * e)
    if categories > 2:
        logs = np.logaddexp(logs, math.log(categories - 2))
    top = e + math.log1p((categories - 1) * math.exp(-e))
    return _over(logs - top, e, a)


def _discrete_laplace(step: float, steps: int, a: Floats) -> Floats:
    """E[exp((a - 1) loss)]: moved from 0 to D, x <= 0 has a loss of D steps, x >= D one of -D, and
    those between D - 2 x.
    """
    total = -math.log1p(math.exp(-step))
    x = np.arange(steps + 1)
    logs = total - step * x
    logs[1:-1] += math.log(-math.expm1(-step))
    losses = step * (steps - 2.0 * x)
    exponents = logs + np.multiply.outer(a - 1.0, losses)
    return _over(np.asarray(np.logaddexp.reduce(exponents, axis=-1)), step * steps, a)
