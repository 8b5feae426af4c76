"""The law of the discrete box by floats: how often boxes have which radius, and what follows.

Radii R have weights exp(-rate R) V(R), V(R) = prod(2 floor(R w_j / m) + 1), see
`dpframe.samplers.box`. Here they are in blocks of 2**k of them, where rate 2**k is a small part
of one, and neighbouring blocks with equal boxes are one. Within a block, V and probabilities
given R grow or fall, and the mean of both ends is taken. That is right to about one part in
(blocks up to there / d)**2, and exact where both ends are the same. Tails are raised by more than
that. What lies beyond all blocks is bounded.

Given R, coordinates are independent and uniform. So a coordinate is a mixture of uniform laws, and
two of them, added with whole factors, a mixture of sums of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.sums import weighted_sum

Floats = NDArray[np.float64]

_FINE: Final = 64
"""Blocks in which exp(-rate R) falls by a factor of e, at least, where radii are that many."""
_COARSE: Final = 16
"""The same, for variances."""
_UP: Final = 1.0 + 2.0**-12
"""Above what tails are off by."""
_SHALLOW: Final = 64
"""Blocks that reach beyond exp(-64) are wider."""
_USUAL: Final = 1e-3
"""The probability of radii that are taken to be small."""


@dataclass(frozen=True, slots=True, eq=False)
class Radii:
    """Blocks of radii.

    Parameters
    ----------
    first, last
        The radii at their ends.
    weights
        Their probabilities.
    rest
        An upper bound on that of all radii beyond.
    fineness
        The radii of the boxes.
    """

    first: Floats
    last: Floats
    weights: Floats
    rest: float
    fineness: int

    def half_widths(self, width: int) -> tuple[Floats, Floats]:
        """The half-widths of a coordinate at the first and the last radius of each block."""
        return _half(self.first, width, self.fineness), _half(self.last, width, self.fineness)

    def grouped(self, most: int, miss: float = 0.0) -> Radii:
        """At most this many blocks; only `miss`, or what is beyond these, lies beyond them.

        Blocks have like parts of the sum of the roots of probabilities, which makes the last radius
        exceed those in a block least on average, and of the logarithm of the radius, for those far
        out.
        """
        beyond = np.append(np.cumsum(self.weights[::-1])[::-1][1:], 0.0) + self.rest
        kept = min(self.weights.size, int(np.count_nonzero(beyond > miss)) + 1)
        rest = float(beyond[kept - 1])
        first, last, weights = self.first[:kept], self.last[:kept], self.weights[:kept]
        if kept > most:
            roots = np.cumsum(np.sqrt(weights))
            usual = max(1.0, float(last[np.searchsorted(np.cumsum(weights), _USUAL)]))
            logs = np.log(np.maximum(last, usual) / usual)
            part = 0.7 * roots / roots[-1] + 0.3 * logs / logs[-1]
            group = np.minimum((part * most).astype(np.int64), most - 1)
            starts = np.flatnonzero(np.diff(group, prepend=-1))
            ends = np.append(starts[1:], kept) - 1
            first, last = first[starts], last[ends]
            weights = np.add.reduceat(weights, starts)
        return Radii(first, last, weights, rest, self.fineness)

    def tail(self, sides: Sequence[tuple[int, int]], threshold: float) -> float:
        """P(sum > threshold) of one or two coordinates times factors.

        Parameters
        ----------
        sides
            The factor above 0 and the width of each coordinate. Of two factors the second divides
            the first, or else its coordinate is taken to be one step farther out.
        threshold
            A whole number of at least 0.
        """
        ends = zip(*(self.half_widths(width) for _, width in sides), strict=True)
        factors = [float(factor) for factor, _ in sides]
        each = _of_one if len(sides) == 1 else _of_two
        shares = sum((each(factors, halves, threshold) for halves in ends), np.zeros(1))
        return min(1.0, (float(weighted_sum(shares, self.weights)) / 2.0 + self.rest) * _UP)


def _of_one(factors: Sequence[float], halves: Sequence[Floats], threshold: float) -> Floats:
    """P(f z > t)."""
    (half,) = halves
    shares = (half - math.floor(threshold / factors[0])) / (2.0 * half + 1.0)
    return np.clip(shares, 0.0, 1.0)


def _of_two(factors: Sequence[float], halves: Sequence[Floats], threshold: float) -> Floats:
    """By adding up P(z_2 > (t - f_1 z_1) / f_2), which falls from 1 to 0 in a straight line, over
    all z_1.
    """
    (f_1, f_2), (half_1, half_2) = factors, halves
    even = f_1 % f_2 == 0  # then multiples of f_2 exceed t where they exceed the one below it
    t = float(math.floor(threshold / f_2)) if even else (threshold - f_2 + 1.0) / f_2
    f_1 /= f_2
    sure = np.clip(np.ceil((t + half_2 + 1.0) / f_1), -half_1, half_1 + 1.0)
    some = np.clip(np.ceil((t - half_2) / f_1), -half_1, half_1 + 1.0)
    number = sure - some
    ramp = number * (half_2 - t + f_1 * (0.5 * (some + sure - 1.0)))
    ramp = np.clip(ramp / (2.0 * half_2 + 1.0), 0.0, number)
    return np.asarray((half_1 + 1.0 - sure + ramp) / (2.0 * half_1 + 1.0))


def _half(radii: Floats, width: int, fineness: int) -> Floats:
    """floor(R w / m), but for the last digits of a float."""
    return np.asarray(np.floor(radii * (width / fineness)))


def radii_of(
    rate: Fraction, widths: tuple[int, ...], fineness: int, nats: int, coarse: bool = False
) -> Radii:
    """Blocks that reach to exp(-nats) or so; wide ones do for moments."""
    if coarse:
        return _radii(rate, tuple(sorted(widths)), fineness, nats, _COARSE)
    fine = _FINE if nats <= _SHALLOW else max(1, _FINE * _SHALLOW // nats)
    return _radii(rate, tuple(sorted(widths)), fineness, nats, fine)


@lru_cache(maxsize=64)
def _radii(rate: Fraction, widths: tuple[int, ...], fineness: int, nats: int, fine: int) -> Radii:
    shift = max(0, int(1 / (fine * rate)).bit_length() - 1)
    shape = len(widths) + 1
    reach = shape + math.sqrt(2 * shape * nats) + nats  # as many exponential times reach
    step = float(rate * 2**shift)
    blocks = np.arange(math.ceil(reach / step) + 2, dtype=np.float64)
    first = blocks * 2.0**shift
    last = first + (2.0**shift - 1.0)
    inner, outer = (_log_volume(r, widths, fineness) for r in (first, last))
    logs = np.logaddexp(inner, outer) - step * blocks
    masses = np.exp(logs - logs.max())
    ratio = math.exp(-step) * (1.0 + 1.0 / blocks.size) ** len(widths)
    rest = masses[-1] * ratio / (1.0 - ratio)
    uneven = inner != outer
    apart = uneven[1:] | uneven[:-1] | (outer[:-1] != inner[1:])
    starts = np.flatnonzero(np.append(True, apart))
    ends = np.append(starts[1:], blocks.size) - 1
    total = float(masses.sum()) + rest
    weights = np.add.reduceat(masses, starts) / total
    return Radii(first[starts], last[ends], weights, float(rest / total), fineness)


def _log_volume(radii: Floats, widths: tuple[int, ...], fineness: int) -> Floats:
    found = np.zeros(radii.size)
    for width in dict.fromkeys(widths):
        found += widths.count(width) * np.log(2.0 * _half(radii, width, fineness) + 1.0)
    return found


@lru_cache(maxsize=1024)
def oddness(
    rate: Fraction, widths: tuple[int, ...], fineness: int, used: tuple[bool, ...]
) -> float:
    """P(sum of the coordinates that are used is odd), about: of one that is uniform on the whole
    numbers up to f in size, (-1)**z is (-1)**f / (2 f + 1) on average.
    """
    radii = _radii(rate, tuple(sorted(widths)), fineness, _SHALLOW, _FINE)
    even = np.ones(radii.weights.size)
    for width, counts in zip(widths, used, strict=True):
        if counts:
            half = radii.half_widths(width)[1]
            even *= (1.0 - 2.0 * np.fmod(half, 2.0)) / (2.0 * half + 1.0)
    return 0.5 * (1.0 - float(weighted_sum(even, radii.weights)))


@lru_cache(maxsize=1024)
def variances(rate: Fraction, widths: tuple[int, ...], fineness: int) -> tuple[float, ...]:
    """The approximate variance of each coordinate."""
    radii = _radii(rate, tuple(sorted(widths)), fineness, _SHALLOW, _COARSE)
    found = {}
    for width in dict.fromkeys(widths):
        squares = sum((half * (half + 1.0) for half in radii.half_widths(width)), np.zeros(1))
        found[width] = float(weighted_sum(squares, radii.weights)) / 6.0
    return tuple(found[width] for width in widths)
