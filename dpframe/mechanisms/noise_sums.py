"""Tails of weighted sums of noise: P(f_1 z_1 + f_2 z_2 + ... > t), never too small.

*A box*: one coordinate or two, where one factor is a multiple of the other, in closed form for
each radius, see `dpframe.mechanisms.box_law`. Others, and *independent noise*, on a grid of steps
g. Each term is put at the nearest multiple of g, at most g / 2 from its value, so k terms differ
by at most k g / 2. The sum exceeds t less often than the sum on the grid exceeds t - k g / 2.
If the sum has few values the grid is theirs and the result is exact. Convolutions add up positive
numbers, so that small probabilities are equivalent to large ones. What lies beyond the grid is
added to all tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.box_law import Radii

Floats = NDArray[np.float64]
Tail: TypeAlias = Callable[[float], float]

_CELLS: Final = 8192
"""The number of cells of a grid, on one side."""
_FINE: Final = 1 << 16
"""The number of cells of a grid on which noises of several laws are added."""
MOST_TERMS: Final = 64
"""The largest number of terms of several laws: the rounding to the grid stays small compared with
their sum."""
_BEYOND: Final = 1e-7
"""The share of the miss probability for the mass beyond the grid."""
_NODES: Final = 256
_ROUGH: Final = 512
_CLOSE: Final = 2.0**-10
"""Relative to the deviation: a distance up to this is rounded outwards."""
_LOST: Final = 1e-12
"""What transforms lose of a probability."""
_UP: Final = 1.0 + 2.0**-14
"""Above what tails of the terms are off by."""


class SymmetricNoise(Protocol):
    """The law of a noise in steps, symmetric around 0."""

    def quantile(self, confidence: float | Fraction, /) -> int:
        """The smallest a with P(|noise| <= a) >= confidence."""
        ...

    def above(self, x: Floats, /) -> Floats:
        """P(noise > x) for each x."""
        ...


def tail_of_independent(above: Callable[[Floats], Floats], farthest: int, sizes: list[int]) -> Tail:
    """P(sum > t) for whole t of at least 0, of independent terms.

    Parameters
    ----------
    above
        P(term > x) before its factor.
    farthest
        A place beyond which barely anything lies.
    sizes
        The factors, above 0, the largest first.
    """
    if not sizes:
        return _nothing
    if len(sizes) == 1:
        return lambda t: float(above(np.array([math.floor(t / sizes[0])], np.float64))[0])
    return _of_independent(above, farthest, sizes)


def _nothing(t: float) -> float:
    """Of no terms."""
    return 0.0


def reach_of_sum(laws: Sequence[tuple[SymmetricNoise, float]], missed: float) -> float:
    """A bound that the sum of independent noises of several laws exceeds, in either direction, with
    at most this probability; never too small.

    Parameters
    ----------
    laws
        Each law in steps, at most `MOST_TERMS` of them, and what a step adds to the sum.
    missed
        Above 0 and below 1.
    """
    beyond = missed * _BEYOND / len(laws)
    farthest = [law.quantile(1 - Fraction(beyond)) + 1 for law, _ in laws]
    size = sum(far * unit for far, (_, unit) in zip(farthest, laws, strict=True))
    step = size / _FINE
    spectrum, rest = np.ones(2 * _FINE + 1, np.complex128), 0.0
    for far, (law, unit) in zip(farthest, laws, strict=True):
        number = math.ceil(far * unit / step)
        above = law.above(np.asarray((np.arange(number + 1) + 0.5) * (step / unit), np.float64))
        mass = np.zeros(4 * _FINE)
        mass[1 : number + 1] = above[:-1] - above[1:]
        mass[-number:] = mass[number:0:-1]
        mass[0] = 1.0 - 2.0 * above[0]
        spectrum *= np.fft.rfft(mass)
        rest += 2.0 * float(above[-1])
    whole = np.maximum(np.fft.irfft(spectrum, 4 * _FINE)[: 2 * _FINE], 0.0)
    tails = 2.0 * (np.cumsum(whole[::-1])[::-1] * _UP + rest + _LOST)
    place = int(np.argmax(tails <= missed)) if tails[-1] <= missed else tails.size
    return (place - 1 + 0.5 * len(laws)) * step * _UP


def tail_in_box(
    radii: Radii, sides: list[tuple[int, int]], variances: list[float], rough: bool
) -> Tail:
    """P(sum > t) for whole t of at least 0, of the numbers of a box.

    Parameters
    ----------
    radii
        The law of the radius.
    sides
        Factors above 0, the largest first, each with the width of its number.
    variances
        The law of the numbers.
    rough
        Whether it is for many t, and may be off by a little more.
    """
    if not sides:
        return _nothing
    if len(sides) == 1 or (len(sides) == 2 and _is_closed(sides, variances)):
        used = radii.grouped(_ROUGH) if rough else radii
        return lambda t: used.tail(sides, t)
    return _of_sides(radii.grouped(_NODES), sides)


def _is_closed(sides: list[tuple[int, int]], variances: list[float]) -> bool:
    """Whether one factor is a multiple of the other, or small enough."""
    (first, _), (second, _) = sides
    if first % second == 0:
        return True
    variance = first * first * variances[0] + second * second * variances[1]
    return second <= _CLOSE * math.sqrt(variance)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A symmetric sum on a grid.

    Parameters
    ----------
    step
        The step of the grid.
    tails
        P(sum >= i step), i = 0, 1, ...
    off
        How far the sum may be from its place on the grid.
    rest
        The probability that is missing.
    """

    step: float
    tails: Floats
    off: float
    rest: float

    def __call__(self, t: float) -> float:
        place = math.floor((t - self.off) / self.step) + 1
        beyond = float(self.tails[max(place, 0)]) if place < self.tails.size else 0.0
        return min(1.0, (beyond + self.rest) * _UP)


def _of_independent(above: Callable[[Floats], Floats], farthest: int, sizes: list[int]) -> _Grid:
    """By convolution."""
    whole = math.gcd(*sizes)
    cells = farthest * sum(sizes) // whole + 1
    exact = cells <= _CELLS
    step = float(whole) if exact else farthest * sum(sizes) / _CELLS
    mass = np.ones(1)
    for size in sizes:
        number = math.ceil(farthest * size / step)
        edges = np.asarray((np.arange(number + 1) + 0.5) * (step / size), np.float64)
        beyond = above(edges)
        side = beyond[:-1] - beyond[1:]
        mass = np.convolve(mass, np.concatenate((side[::-1], [1.0 - 2.0 * beyond[0]], side)))
    middle = mass.size // 2
    tails = np.cumsum(mass[middle:][::-1])[::-1]
    rest = 2.0 * len(sizes) * float(above(np.array([farthest], np.float64))[0])
    return _Grid(step, tails, 0.0 if exact else 0.5 * step * len(sizes), rest)


def _of_sides(radii: Radii, sides: list[tuple[int, int]]) -> _Grid:
    """Several coordinates of a box, or two on few steps, by convolution at each of some radii, with
    half-widths in the middle of those that a block has.
    """
    middles = [(f, np.floor(sum(radii.half_widths(width)) / 2.0)) for f, width in sides]
    reach = float(sum(f * half[-1] for f, half in middles))
    whole = float(math.gcd(*(f for f, _ in sides)))
    exact = reach <= _CELLS * whole
    step = whole if exact else reach / _CELLS
    size = 1 << (2 * math.ceil(reach / step) + 2 * len(sides) + 2).bit_length()
    tails = np.zeros(size // 2)
    for node in range(radii.weights.size):
        spectrum = np.ones(size // 2 + 1, np.complex128)
        for factor, half in middles:
            spectrum *= np.fft.rfft(_uniform(factor, float(half[node]), step, size))
        mass = np.maximum(np.fft.irfft(spectrum, size)[: size // 2], 0.0)
        tails += radii.weights[node] * np.cumsum(mass[::-1])[::-1]
    return _Grid(step, tails, 0.0 if exact else 0.5 * step * len(sides), radii.rest)


def _uniform(factor: int, half: float, step: float, size: int) -> Floats:
    """The masses of a factor times a uniform coordinate at multiples of the step, around 0."""
    number = math.ceil(factor * half / step)
    edges = np.floor((np.arange(number + 1) + 0.5) * (step / factor))
    below = np.minimum(edges, half) + 0.5  # of one side and half of 0
    side = np.diff(below, prepend=0.0) / (2.0 * half + 1.0)
    mass = np.zeros(size)
    mass[: number + 1] = side
    mass[0] *= 2.0
    mass[size - number :] = side[:0:-1] if number else mass[size:]
    return mass
