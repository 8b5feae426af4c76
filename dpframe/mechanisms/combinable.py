"""Noise that allows releasing sums: of the numbers of a vector, or of numbers that are drawn
separately.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.mechanism import AdditiveMechanism, Mechanism
from dpframe.mechanisms.noise_sums import Tail, tail_of_independent
from dpframe.samplers import Arch

Floats = NDArray[np.float64]

_WIDE: Final = 64.0
"""The variance above which even and odd numbers are as likely, to more digits than floats have."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """A law under which numbers are independent and uniform once a radius is known: number j on
    the whole numbers up to floor(radius widths[j] / fineness) in size.

    Parameters
    ----------
    radii, weights
        The radii, and the probability of each.
    widths, fineness
        These.
    arches
        The places of counts, sums and sums of squares, where boxes are hulls of these: then vectors
        are uniform in the part of the box that is the hull of the same radius.
    """

    radii: Floats
    weights: Floats
    widths: tuple[int, ...]
    fineness: int
    arches: tuple[Arch, ...] = ()


class CombinableNoise(Mechanism):
    """Noise on several numbers; an output may be a sum of these times whole factors."""

    __slots__ = ()
    has_rough_tails: ClassVar[bool] = False
    """Whether rough tails of sums are quicker."""

    def requires(self, factors: tuple[int, ...]) -> None:
        """Require a factor for each number.

        Raises
        ------
        ValueError
            When the numbers of factors and numbers differ.
        """

    @abstractmethod
    def alike(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """A canonical form of factors: sums with the same law have the same one, if signs and
        exchangeable numbers show it.
        """

    def moves_with(self, place: int) -> int:
        """The number whose sign a number's goes with: its own, where each may change its sign on
        its own.
        """
        return place

    def boxes(self, miss: float) -> Boxes | None:
        """The law of all numbers; None where they are independent.

        Parameters
        ----------
        miss
            The probability that may lie beyond the last radius.
        """
        return None

    @abstractmethod
    def scale_of_sum(self, factors: tuple[int, ...], part: Fraction) -> float:
        """The scale that people read of a sum in units of a part of a step; rounded up."""

    @abstractmethod
    def variance_of_sum(self, factors: tuple[int, ...]) -> float:
        """In steps squared."""

    def cumulants_of_sum(self, factors: Floats) -> tuple[float, float] | None:
        """The variance and the fourth cumulant of a sum with any factors; None where they follow
        from numbers that are independent, or uniform within boxes.
        """
        return None

    @abstractmethod
    def oddness_of_sum(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd)."""

    @abstractmethod
    def tail_of_sum(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """P(sum > t) for whole t of at least 0, as a function, right down to exp(-tier).

        Parameters
        ----------
        factors
            The tail of a sum of the numbers; their signs do not matter.
        tier
            See `dpframe.mechanisms.confidence.log_tier`.
        rough
            Whether it is for many t, and may be off by a little more.
        """


class IndependentNoise(AdditiveMechanism, CombinableNoise):
    """Noise that each number has on its own, with a tail that sums can be made of."""

    __slots__ = ()

    @abstractmethod
    def farthest(self, tier: int) -> int:
        """A place beyond which barely more than exp(-tier) lies."""

    def bound_of_sum(self, terms: int, miss: float) -> float:
        """What a sum of this many draws exceeds with a probability of no more than `miss`, by
        moments; infinite where they are not known.
        """
        return math.inf

    def alike(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes, the largest first, without those of 0 but for one."""
        return tuple(sorted((abs(f) for f in factors if f), reverse=True)) or (0,)

    def variance_of_sum(self, factors: tuple[int, ...]) -> float:
        """In steps squared."""
        each = self.variance()
        return sum(factor * factor * each for factor in factors)

    def oddness_of_sum(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd)."""
        odd = sum(factor % 2 for factor in factors)
        if self.variance() > _WIDE:
            return 0.5 if odd else 0.0
        reach = np.arange(1.0, 1024.0)
        tails = self.above(reach - 1.0)
        masses = tails - self.above(reach)
        even = 1.0 - 4.0 * float(masses[::2].sum())
        return 0.5 * (1.0 - even**odd)

    def tail_of_sum(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """See `CombinableNoise.tail_of_sum`."""
        sizes = sorted((abs(factor) for factor in factors if factor), reverse=True)
        return tail_of_independent(self.above, self.farthest(tier), sizes)
