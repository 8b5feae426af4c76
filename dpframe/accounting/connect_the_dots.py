"""Laws of the privacy loss on a grid, never below the law itself.

*Connecting the dots* (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). delta is a convex
function of exp(epsilon). Joining its values at the grid's points by straight lines gives a larger
function, which is that of a law on the grid. In terms of masses: the mass in a cell between the
points t and t + h goes to its two ends, keeping its mass p under P and q under Q. The share of
the upper end is b = (p - exp(t) q) / (1 - exp(-h)), of the lower end p - b. More at the upper end
is never less private, so b is rounded up by more than the error of p and q. What lies beyond the
ends of the grid is moved up: to the lowest point, or to infinity.

Masses are right to a relative 1e-12 and positions to 2**-50 of the loss; the composition allows
for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.loss_laws import (
    Choices,
    HalfLine,
    LossLaw,
    Normal,
    Response,
    SteppedLaplace,
    SteppedNormal,
)
from dpframe.accounting.normal import mills_of_many
from dpframe.core.exact import float_up
from dpframe.kernel.choices import loss_masses

__all__ = ["Dots", "dots", "largest_loss", "spacing", "spread"]

Floats: TypeAlias = NDArray[np.float64]

_TOP: Final = 14.0
_BOTTOM: Final = 9.0
"""Gaussian losses are followed up to 14 deviations (beyond lies 1e-44) and down to 9."""
_BLOCK: Final = 4096
"""Points at a time: arrays that stay in the processor's cache are several times as fast."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Masses under P at losses (first + i) h, and at infinity; what is missing is at -infinity."""

    first: int
    masses: Floats
    infinite: float


def spacing(law: LossLaw) -> Fraction | None:
    """A step with all atoms as multiples; None when there are no atoms."""
    match law:
        case Response() | HalfLine():
            return law.epsilon
        case Choices():
            return law.step
        case SteppedLaplace():
            return law.step if law.steps % 2 else 2 * law.step
        case SteppedNormal():
            return 1 / (2 * law.sigma_squared)
        case Normal():
            return None
        case _:
            assert_never(law)


def largest_loss(law: LossLaw) -> float:
    """The largest finite loss that is followed, about."""
    match law:
        case Response() | HalfLine():
            return float_up(law.epsilon)
        case Choices():
            return float_up(law.step * (len(loss_masses(law.epsilon, law.times)[0]) // 2))
        case SteppedLaplace():
            return float_up(law.step * law.steps)
        case SteppedNormal():
            return float_up((2 * _reach(law) + 1) / (2 * law.sigma_squared))
        case Normal():
            return _middle_and_width(law)[0] + _TOP * _middle_and_width(law)[1]
        case _:
            assert_never(law)


def spread(law: LossLaw) -> float:
    """The standard deviation of the loss, within a factor of 2 or so; for the choice of a grid."""
    match law:
        case Normal():
            return math.sqrt(law.d_squared)
        case SteppedNormal():
            return math.sqrt(1 / law.sigma_squared)
        case Choices():
            return float(law.epsilon) * math.sqrt(law.times) / 2
        case _:
            return largest_loss(law)


def dots(law: LossLaw, h: Fraction) -> Dots:
    """The law on the multiples of h."""
    match law:
        case Response():
            return _response(law, h)
        case HalfLine():
            return _half_line(law, h)
        case Choices():
            return _choices(law, h)
        case SteppedLaplace():
            return _stepped_laplace(law, h)
        case SteppedNormal():
            return _stepped_normal(law, h)
        case Normal():
            return _normal(law, h)
        case _:
            assert_never(law)


def _response(law: Response, h: Fraction) -> Dots:
    rest = math.exp(-float(law.epsilon))
    total = 1.0 + (law.categories - 1) * rest
    weights = np.array([rest, (law.categories - 2) * rest, 1.0]) / total
    if law.categories == 2:
        return _atoms(law.epsilon, np.array([-1, 1]), weights[[0, 2]], h)
    return _atoms(law.epsilon, np.array([-1, 0, 1]), weights, h)


def _choices(law: Choices, h: Fraction) -> Dots:
    masses, infinite = loss_masses(law.epsilon, law.times)
    reach = len(masses) // 2
    made = _atoms(law.step, np.arange(-reach, reach + 1), masses, h)
    return Dots(made.first, made.masses, infinite)


def _stepped_laplace(law: SteppedLaplace, h: Fraction) -> Dots:
    """Moved from 0 to D: x <= 0 has loss D steps, x >= D has -D, and those between D - 2 x."""
    q = math.exp(-float(law.step))
    x = np.arange(law.steps + 1)
    masses = np.exp(-float(law.step) * x) * (-math.expm1(-float(law.step)) / (1.0 + q))
    masses[0] = 1.0 / (1.0 + q)
    masses[-1] = math.exp(-float(law.step * law.steps)) / (1.0 + q)
    return _atoms(law.step, law.steps - 2 * x[::-1], masses[::-1], h)


def _reach(law: SteppedNormal) -> int:
    return math.ceil(_TOP * math.sqrt(law.sigma_squared)) + 1


def _stepped_normal(law: SteppedNormal, h: Fraction) -> Dots:
    half = float(1 / (2 * law.sigma_squared))
    reach = _reach(law)
    x = np.arange(-reach, reach + 1)
    terms = np.exp(-half * x.astype(np.float64) ** 2)
    # sum(exp(-k**2 half), k > reach) <= its last term / (exp(2 reach half) - 1)
    beyond = float(terms[-1]) / math.expm1(min(700.0, 2.0 * reach * half))
    norm = float(terms.sum())
    masses = terms / norm
    masses[-1] += beyond / norm  # the lowest loss
    made = _atoms(1 / (2 * law.sigma_squared), 1 - 2 * x[::-1], masses[::-1], h)
    return Dots(made.first, made.masses, made.infinite + beyond / norm)


def _atoms(step: Fraction, places: NDArray[np.int64], masses: Floats, h: Fraction) -> Dots:
    """Masses at losses step * places, in rising order, split between the grid's points."""
    ratio = step / h
    if ratio.denominator == 1:
        first = int(places[0]) * int(ratio)
        made = np.zeros(int(places[-1] - places[0]) * int(ratio) + 1)
        np.add.at(made, (places - places[0]) * int(ratio), masses)
        return Dots(first, made, 0.0)
    position = places.astype(np.float64) * float(ratio)
    position += 2.0**-50 * np.abs(position)
    below = np.floor(position).astype(np.int64)
    upper = np.expm1((below - position) * float(h)) / math.expm1(-float(h)) * masses
    upper = np.minimum(upper, masses)
    made = np.zeros(int(below[-1] - below[0]) + 2)
    np.add.at(made, below - below[0], masses - upper)
    np.add.at(made, below - below[0] + 1, upper)
    return Dots(int(below[0]), made, 0.0)


def _cells(first: int, p: Floats, excess: Floats, h: float, infinite: float = 0.0) -> Dots:
    """Masses p of the cells from grid point `first` on, with their p - exp(t) q rounded up, which
    is overwritten.
    """
    upper = np.maximum(excess, 0.0, out=excess)
    upper /= -math.expm1(-h)
    np.minimum(upper, p, out=upper)
    made = np.zeros(len(p) + 1)
    np.subtract(p, upper, out=made[:-1])
    made[1:] += upper
    return Dots(first, made, infinite)


def _half_line(law: HalfLine, h: Fraction) -> Dots:
    """The density under P is c exp((t - epsilon) / 2), under Q exp(-t) times that."""
    e, step = float(law.epsilon), float(h)
    last = math.ceil(law.epsilon / h)
    t = np.arange(-last, last + 1, dtype=np.float64) * step
    low, high = np.maximum(t[:-1], -e), np.minimum(t[1:], e)
    width = np.maximum(high - low, 0.0)
    c = 0.25 if law.atoms else -0.5 / math.expm1(-e)
    p = 2.0 * c * np.exp((low - e) * 0.5) * np.expm1(0.5 * width)
    q = -2.0 * c * np.exp(t[:-1] - (low + e) * 0.5) * np.expm1(-0.5 * width)
    found = _cells(-last, p, p - q + 1e-15 * (2.0 + e) * p, step)
    if not law.atoms:
        return found
    ends = _atoms(law.epsilon, np.array([-1, 1]), np.array([0.5 * math.exp(-e), 0.5]), h)
    return _sum(found, ends)


def _sum(a: Dots, b: Dots) -> Dots:
    first = min(a.first, b.first)
    end = max(a.first + len(a.masses), b.first + len(b.masses))
    made = np.zeros(end - first)
    for part in (a, b):
        made[part.first - first : part.first - first + len(part.masses)] += part.masses
    return Dots(first, made, a.infinite + b.infinite)


def _middle_and_width(law: Normal) -> tuple[float, float]:
    return float_up(law.d_squared / 2), math.sqrt(float_up(law.d_squared))


def _normal(law: Normal, h: Fraction) -> Dots:
    """The masses of cells from 9 deviations below the middle to 14 above, and what lies beyond."""
    middle, d = _middle_and_width(law)
    step = float(h)
    first, last = math.floor((middle - _BOTTOM * d) / step), math.ceil((middle + _TOP * d) / step)
    p, excess = np.empty(last - first), np.empty(last - first)
    below = beyond = 0.0
    for start in range(0, last - first, _BLOCK):
        end = min(start + _BLOCK, last - first)
        t = np.arange(first + start, first + end + 1, dtype=np.float64) * step
        outer, p[start:end], excess[start:end] = _normal_cells(t, middle, d, step)
        below, beyond = below or float(outer[0]), float(outer[-1])
    found = _cells(first, p, excess, step, beyond)
    found.masses[0] += below  # what lies below is moved up
    return found


def _normal_cells(t: Floats, middle: float, d: float, step: float) -> tuple[Floats, Floats, Floats]:
    """Tails at the points t, away from the middle; masses p between them, and p - exp(t) q rounded
    up.

    With z = (t - d**2 / 2) / d, M = Mills' ratio and phi the density: P(L > t) = phi(z) M(z) and
    exp(t) Q(L > t) = phi(z) M(z + d).
    """
    z = (t - middle) / d
    phi = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    outer = phi * mills_of_many(np.abs(z))
    above = np.where(z > 0, outer, 1.0 - outer)
    p = np.where(z[:-1] > 0, outer[:-1] - outer[1:], above[:-1] - above[1:])
    left = z[1:] <= 0
    p[left] = outer[1:][left] - outer[:-1][left]
    p = np.maximum(p, 0.0) + 1e-14 * np.maximum(outer[:-1], outer[1:])
    # in floats all of Q lies above where z + d < -30
    q = np.where(
        z + d < -30.0, np.exp(np.minimum(t, 0.0)), phi * mills_of_many(np.maximum(z + d, -30))
    )
    return outer, p, p - (q[:-1] - math.exp(-step) * q[1:]) + 2e-14 * q[:-1]
