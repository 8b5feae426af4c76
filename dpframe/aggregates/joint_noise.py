"""The joint law of the noise that several parts of one result get, cut into slices.

The error of a mean or a variance depends on all of its noisy numbers at once. Given all of them
but the first, the error is at most a just where the first noise lies between two numbers, so that

    P(|error| > a) = sum over slices of weight * (P(first > up) + P(first < down)),

with `up` and `down` a function of the slice, of a and of the data. Each joint mechanism gives its
own slices; `Independent` gives those of noises drawn one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.core.sums import weighted_sum

__all__ = ["Independent", "JointNoise", "NoiseLaw", "Slices"]

Floats: TypeAlias = "NDArray[np.float64]"

_ATOMS: Final = 48
"""Noise within this many steps is taken number by number."""
_FINER: Final = 16
_MOST: Final = 400
_NOTHING: Final = 1e-4
"""All slices that are left out together have no more than this share of what may be missed."""
_WIDEST: Final = 0.25
"""Of knots, in standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """A joint law of noises, in the parts' own units.

    Parameters
    ----------
    weights
        The probability of each slice; their sum is 1.
    others
        The noises of all parts but the first, one array each.
    above, below
        P(first noise > x) and P(first noise < x) given the slice, for x whose last axis are slices.
    """

    weights: Floats
    others: tuple[Floats, ...]
    above: Callable[[Floats], Floats]
    below: Callable[[Floats], Floats]

    def outside(self, low: Floats, high: Floats) -> Floats:
        """P(first noise < low or > high), where these depend on the slice."""
        found: Floats = weighted_sum(self.above(high) + self.below(low), self.weights)
        return found


class NoiseLaw(Hashable, Protocol):
    """The law of one noise, in steps; symmetric around 0."""

    def variance(self) -> float:
        """In steps squared."""
        ...

    def quantile(self, confidence: float | Fraction, cells: int = 1, /) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence."""
        ...

    def above(self, x: Floats, /) -> Floats:
        """P(noise > x) for each x."""
        ...


class JointNoise(Hashable, Protocol):
    """The noise of several parts together; symmetric around 0."""

    @property
    def even(self) -> bool:
        """Whether each noise alone may change its sign and the law stays the same."""
        ...

    def unit(self, part: int) -> float:
        """What a step of one part is."""
        ...

    def reach(self, part: int, level: Fraction) -> int:
        """The least a with P(|noise of the part| <= a) >= level, in steps."""
        ...

    def of(self, parts: tuple[int, ...]) -> JointNoise:
        """The law of some of the noises."""
        ...

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        """Its law, for probabilities of about `miss`.

        Parameters
        ----------
        miss
            The request is where the error is with probability 1 - miss.
        pull
            By how much of the first noise a unit of each of the others moves the result at most;
            slices are so narrow that the first noise covers them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Independent:
    """Noises that are drawn one by one.

    Parameters
    ----------
    parts
        The law of each part in steps, and what a step is.
    """

    parts: tuple[tuple[NoiseLaw, Fraction], ...]

    @property
    def even(self) -> bool:
        return True

    def unit(self, part: int) -> float:
        return float(self.parts[part][1])

    def reach(self, part: int, level: Fraction) -> int:
        return self.parts[part][0].quantile(level)

    def of(self, parts: tuple[int, ...]) -> Independent:
        return Independent(tuple(self.parts[part] for part in parts))

    def slices(self, miss: float, pull: tuple[float, ...]) -> Slices:
        return _independent(self.parts, miss, pull)


@lru_cache(maxsize=256)
def _independent(
    parts: tuple[tuple[NoiseLaw, Fraction], ...], miss: float, pull: tuple[float, ...]
) -> Slices:
    (first, step), *rest = parts
    unit = float(step)
    cover = math.sqrt(first.variance()) * unit
    weights, others = np.ones(1), list[Floats]()
    for (law, size), coefficient in zip(rest, pull, strict=True):
        width = math.inf if coefficient == 0 else cover / (coefficient * float(size))
        points, masses = _knots(law, miss, width)
        others = [np.repeat(other, points.size) for other in others]
        others.append(np.tile(points * float(size), weights.size))
        weights = np.outer(weights, masses).reshape(-1)
    kept = weights > miss * _NOTHING / weights.size
    weights = weights[kept] / weights[kept].sum()
    return Slices(
        weights,
        tuple(other[kept] for other in others),
        above=lambda x: first.above(x / unit),
        below=lambda x: first.above(-x / unit),  # symmetric
    )


def _knots(law: NoiseLaw, miss: float, width: float) -> tuple[Floats, Floats]:
    """Points in steps, and masses: the law itself where it has few atoms.

    Else what lies between two points goes to both so that its mean stays. That spreads the noise a
    little and never narrows it: in the tail, where probabilities are convex in the noise, it gives
    at least what the law itself does.
    """
    reach = law.quantile(1 - Fraction(miss) / 4096)
    if reach <= _ATOMS:
        whole = np.arange(-reach, reach + 1, dtype=np.float64)
        masses = law.above(whole - 1.0) - law.above(whole)
        masses[[0, -1]] = law.above(whole[-1:] - 1.0)
        return (whole, masses) if reach else (whole, np.ones(1))
    width = max(min(_WIDEST * math.sqrt(law.variance()), width), 2.0 * reach / _MOST)
    cells = math.ceil(reach / width)
    points = np.linspace(-reach, reach, 2 * cells + 1)
    edges = np.unique(np.floor(np.linspace(0, reach, cells * _FINER + 1))) + 0.5
    tails = np.append(0.5, law.above(edges))
    mass = np.append(tails[:-1] - tails[1:], tails[-1])  # of one side; half of 0 in each
    middles = np.append((np.append(-0.5, edges[:-1]) + edges) / 2, float(reach))
    return points, _shared(points, np.append(-middles[::-1], middles), np.append(mass[::-1], mass))


def _shared(points: Floats, places: Floats, masses: Floats) -> Floats:
    """Masses at places, moved to the points on either side so that their means stay."""
    left = np.clip(np.searchsorted(points, places, side="right") - 1, 0, points.size - 2)
    part = np.clip((places - points[left]) / (points[left + 1] - points[left]), 0.0, 1.0)
    found = np.zeros(points.size)
    np.add.at(found, left, masses * (1.0 - part))
    np.add.at(found, left + 1, masses * part)
    return found


def pulls(noise: Sequence[float]) -> tuple[float, ...]:
    """Pulls in few digits, so that slices of nearly the same noise are made once."""
    return tuple(float(f"{abs(value):.2g}") for value in noise)
