"""Noise of sums: of numbers drawn jointly, and of a number that several noisy ones give."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dpframe.core.exact import weighted_sum
from dpframe.errors import InvalidBounds
from dpframe.mechanisms.mechanism import (
    AdditiveMechanism,
    Exposure,
    Mechanism,
    log_deviation,
    log_tier,
    miss_per_cell,
)
from dpframe.samplers import OS, Arch, BitSource

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.losses import Translated

# The law of the discrete box by floats: how often boxes have which radius, and what follows.
#
# Radii R have weights exp(-rate R) V(R), V(R) = prod(2 floor(R w_j / m) + 1), see
# `dpframe.samplers.box`. Here they are in blocks of 2**k of them, where rate 2**k is a small part
# of one, and neighbouring blocks with equal boxes are one. Within a block, V and probabilities
# given R grow or fall, and the mean of both ends is taken. That is right to about one part in
# (blocks up to there / d)**2, and exact where both ends are the same. Tails are raised by more than
# that. What lies beyond all blocks is bounded.
#
# Given R, coordinates are independent and uniform. So a coordinate is a mixture of uniform laws,
# and two of them, added with whole factors, a mixture of sums of two.

Floats = NDArray[np.float64]

_FINE_RADII: Final = 64
"""Blocks in which exp(-rate R) falls by a factor of e, at least, where radii are that many."""
_COARSE: Final = 16
"""The same, for variances."""
_ROUNDED_UP: Final = 1.0 + 2.0**-12
"""Above what tails are off by."""
_SHALLOW: Final = 64
"""Blocks that reach beyond exp(-64) are wider."""
_USUAL: Final = 1e-3
"""The probability of radii that are taken to be small."""


@dataclass(frozen=True, slots=True, eq=False)
class Radii:
    """Blocks of radii."""

    # `first`, `last`: the radii at their ends.
    first: Floats
    last: Floats
    weights: Floats  # Their probabilities
    rest: float  # An upper bound on that of all radii beyond
    fineness: int  # The radii of the boxes

    def half_widths(self, width: int) -> tuple[Floats, Floats]:
        """The half-widths of a coordinate at the first and the last radius of each block."""
        return _half(self.first, width, self.fineness), _half(self.last, width, self.fineness)

    def group(self, most: int, miss: float = 0.0) -> Radii:
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

    def tail(
        self,
        # The factor above 0 and the width of each coordinate. Of two factors the second divides the
        # first, or else its coordinate is taken to be one step farther out.
        sides: Sequence[tuple[int, int]],
        threshold: float,  # A whole number of at least 0
    ) -> float:
        """P(sum > threshold) of one or two coordinates times factors."""
        ends = zip(*(self.half_widths(width) for _, width in sides), strict=True)
        factors = [float(factor) for factor, _ in sides]
        each = _of_one if len(sides) == 1 else _of_two
        shares = sum((each(factors, halves, threshold) for halves in ends), np.zeros(1))
        return min(1.0, (float(weighted_sum(shares, self.weights)) / 2.0 + self.rest) * _ROUNDED_UP)


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
    fine = _FINE_RADII if nats <= _SHALLOW else max(1, _FINE_RADII * _SHALLOW // nats)
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
    radii = _radii(rate, tuple(sorted(widths)), fineness, _SHALLOW, _FINE_RADII)
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


# Tails of weighted sums of noise: P(f_1 z_1 + f_2 z_2 + ... > t), never too small.
#
# *A box*: one coordinate or two, where one factor is a multiple of the other, in closed form for
# each radius, see `Radii`. Others, and *independent noise*, on a grid of steps
# g. Each term is put at the nearest multiple of g, at most g / 2 from its value, so k terms differ
# by at most k g / 2. The sum exceeds t less often than the sum on the grid exceeds t - k g / 2. If
# the sum has few values the grid is theirs and the result is exact. Convolutions add up positive
# numbers, so that small probabilities are equivalent to large ones. What lies beyond the grid is
# added to all tails.

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


def tail_of_independent(
    above: Callable[[Floats], Floats],  # P(term > x) before its factor
    farthest: int,  # A place beyond which barely anything lies
    sizes: list[int],  # The factors, above 0, the largest first
) -> Tail:
    """P(sum > t) for whole t of at least 0, of independent terms."""
    if not sizes:
        return _nothing
    if len(sizes) == 1:
        return lambda t: float(above(np.array([math.floor(t / sizes[0])], np.float64))[0])
    return _of_independent(above, farthest, sizes)


def _nothing(t: float) -> float:
    """Of no terms."""
    return 0.0


def reach_of_sum(
    # Each law in steps, at most `MOST_TERMS` of them, and what a step adds to the sum.
    laws: Sequence[tuple[SymmetricNoise, float]],
    missed: float,  # Above 0 and below 1
) -> float:
    """A bound that the sum of independent noises of several laws exceeds, in either direction, with
    at most this probability; never too small.
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
    radii: Radii,  # The law of the radius
    # Factors above 0, the largest first, each with the width of its number.
    sides: list[tuple[int, int]],
    variances: list[float],  # The law of the numbers
    rough: bool,  # Whether it is for many t, and may be off by a little more
) -> Tail:
    """P(sum > t) for whole t of at least 0, of the numbers of a box."""
    if not sides:
        return _nothing
    if len(sides) == 1 or (len(sides) == 2 and _is_closed(sides, variances)):
        used = radii.group(_ROUGH) if rough else radii
        return lambda t: used.tail(sides, t)
    return _of_sides(radii.group(_NODES), sides)


def _is_closed(sides: list[tuple[int, int]], variances: list[float]) -> bool:
    """Whether one factor is a multiple of the other, or small enough."""
    (first, _), (second, _) = sides
    if first % second == 0:
        return True
    variance = first * first * variances[0] + second * second * variances[1]
    return second <= _CLOSE * math.sqrt(variance)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A symmetric sum on a grid."""

    step: float  # The step of the grid
    tails: Floats  # P(sum >= i step), i = 0, 1,
    off: float  # How far the sum may be from its place on the grid
    rest: float  # The probability that is missing

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


# Noise that allows releasing sums: of the numbers of a vector, or of numbers that are drawn
# separately.

_WIDE: Final = 64.0
"""The variance above which even and odd numbers are as likely, to more digits than floats have."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """A law under which numbers are independent and uniform once a radius is known: number j on
    the whole numbers up to floor(radius widths[j] / fineness) in size.
    """

    # `radii`, `weights`: the radii, and the probability of each.
    radii: Floats
    weights: Floats
    # `widths`, `fineness`: these.
    widths: tuple[int, ...]
    fineness: int
    # The places of counts, sums and sums of squares, where boxes are hulls of these: then vectors
    # are uniform in the part of the box that is the hull of the same radius.
    arches: tuple[Arch, ...] = ()


class CombinableNoise(Mechanism):
    """Noise on several numbers; an output may be a sum of these times whole factors."""

    __slots__ = ()
    has_rough_tails: ClassVar[bool] = False
    """Whether rough tails of sums are quicker."""

    def requires(self, factors: tuple[int, ...]) -> None:
        """Require a factor for each number. Raises `ValueError` when the numbers of factors and
        numbers differ.
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

    def boxes(
        self,
        miss: float,  # The probability that may lie beyond the last radius
    ) -> Boxes | None:
        """The law of all numbers; None where they are independent."""
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
    def tail_of_sum(
        self,
        factors: tuple[int, ...],  # The tail of a sum of the numbers; their signs do not matter
        tier: int,  # See `dpframe.mechanisms.mechanism.log_tier`
        rough: bool,  # Whether it is for many t, and may be off by a little more
    ) -> Tail:
        """P(sum > t) for whole t of at least 0, as a function, right down to exp(-tier)."""


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


# The noise of a number that is rebuilt from several noisy ones.
#
# The release is a vector of noisy integers. An output may be a sum of some of them, times whole
# factors, over a divisor: a count c from the noisy n and 2 c - n is half of their sum. That is
# rounded to the nearest integer, and what lies halfway goes up or down by a fair coin. All of it is
# post-processing: the cost is that of the vector.
#
# Without noise the sum is a multiple of the divisor, so the noise is that of the sum, over the
# divisor and rounded the same way. It is symmetric, and with D the divisor and S the noise of the
# sum
#
#     P(noise > a) = (P(S >= D (a + 1/2)) + P(S > D (a + 1/2))) / 2
#
# for whole a of at least 0.

_FEW: Final = 8.0
"""Deviations, in steps, up to which the variance is added up: above it, rounding is equivalent to
independent."""
_KNOTS: Final = 1024
"""Up to this many steps tails are known at each; beyond at as many places, with chords between
them: tails are convex, so chords lie above."""
_DEEP: Final = 1e-18
_DEEPEST: Final = 1e-250
"""Tails are found one by one below the first, and taken to be the second below that."""


class _OfLaw:
    """An attribute of a class that its objects take from the law that they hold."""

    def __init__(self, name: str, otherwise: str) -> None:
        self._name, self._otherwise = name, otherwise

    def __get__(self, instance: CombinedNoise | None, owner: type) -> str:
        return self._otherwise if instance is None else getattr(instance.law, self._name)


@dataclass(frozen=True, slots=True)
class CombinedNoise(AdditiveMechanism):
    """The noise of one number that is made of several noisy ones: the nearest integer to
    (f_1 z_1 + f_2 z_2 + ...) / divisor, halves up or down by a fair coin.

    Nothing is drawn from it on its own, and it costs what drawing the vector costs.

    Raises
    ------
    ValueError
        When the numbers of factors and numbers differ, or the divisor is not above 0.
    """

    # The law of the noise z: of the vector, or of each of its numbers, drawn independently.
    law: CombinableNoise
    factors: tuple[int, ...]  # The factors of the numbers of the vector
    divisor: int  # Above 0
    name: ClassVar[str] = cast("str", _OfLaw("name", "combined_noise"))
    label: ClassVar[str] = cast("str", _OfLaw("label", "combined noise"))
    scale_label: ClassVar[str] = cast("str", _OfLaw("scale_label", "scale"))

    @classmethod
    def of(cls, law: Mechanism, factors: tuple[int, ...], divisor: int) -> Self:
        """Of a law that is not yet known to be one. Raises `ValueError` when it is no noise that
        numbers can be made of.
        """
        if not isinstance(law, CombinableNoise):
            raise ValueError(f"no numbers are made of {law.name} noise")
        return cls(law, factors, divisor)

    def __post_init__(self) -> None:
        if {*map(type, self.factors)} != {int}:
            raise ValueError("the factors of combined noise are whole numbers")
        self.law.requires(self.factors)
        if type(self.divisor) is not int or self.divisor < 1:
            raise ValueError("the divisor of combined noise is a whole number above 0")

    @property
    def alike(self) -> CombinedNoise:
        """The same noise, of numbers that are alike the same ones: what is known of one is known of
        all.
        """
        return CombinedNoise(self.law, self.law.alike(self.factors), self.divisor)

    def shown_scale(self, step: Fraction) -> float:
        """The scale of the sum, by the law of its numbers; rounded up."""
        return self.law.scale_of_sum(self.factors, step / self.divisor)

    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the vector."""
        return self.law.epsilon_cost(exposure)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the vector."""
        return self.law.rho_cost(exposure)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the vector."""
        return self.law.mu_squared_cost(exposure)

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the vector."""
        return self.law.delta_at(epsilon, exposure)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """The events of the vector."""
        return self.law.events(exposure)

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """The dominating pairs of the vector."""
        return self.law.pairs(exposure, largest_stepped)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation."""
        return log_deviation(self.variance())

    def details(self) -> str:
        """The details of the vector."""
        return self.law.details()

    def variance(self) -> float:
        """In steps squared, right to about one part in 1000."""
        return _variance(self.alike)

    def quantile(
        self,
        # Between 0 and 1; a float means the decimal that it prints as.
        confidence: float | Fraction,
        # How many independent vectors there are; the number of each must keep within a.
        cells: int = 1,
    ) -> int:
        """An a with P(max of |noise| over `cells` draws <= a) >= confidence, the smallest one but
        for half a percent. Raises `InvalidBounds` when the confidence does not lie between 0 and 1,
        or is so near to 1 that tails are not known.
        """
        miss = float(miss_per_cell(confidence, cells)) * (1.0 - 2.0**-50)
        if miss < _DEEPEST:
            raise InvalidBounds(
                "the error of numbers with joint noise is known for a confidence of up to "
                "1 - 1e-250 only",
                remedy=(
                    "write a lower confidence",
                    "write mechanism='discrete_laplace' for the output",
                ),
            )
        return _least_covering(self.alike, miss)

    def beyond(self, a: int, miss: float, rough: bool = False) -> float:
        """P(|noise| > a) for whole a of at least 0, never too small, where it is above `miss`; a
        little more of it where that may be rough.
        """
        return self.at_least(a + 1, _tail_of(self.law, self.factors, log_tier(miss), rough))

    def at_least(self, k: int, tail: Tail) -> float:
        """P(|noise| >= k) for whole k of at least 1, by the tail of the sum."""
        odd = self.divisor * (2 * k - 1)  # over 2 is the place from which on it is rounded farther
        if odd % 2:
            return min(1.0, 2.0 * tail(odd // 2))
        return min(1.0, tail(odd // 2 - 1) + tail(odd // 2))

    def above(self, x: Floats) -> Floats:
        """P(noise > x) for each x, in steps, never too small for x of at least 0."""
        k = np.floor(x) + 1.0
        beyond = _above(self.alike, np.where(k >= 1.0, k, 1.0 - k))
        return np.where(k >= 1.0, beyond, 1.0 - beyond)


@lru_cache(maxsize=256)
def _tail_of(law: CombinableNoise, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
    return law.tail_of_sum(factors, tier, rough)


@lru_cache(maxsize=4096)
def _least_covering(noise: CombinedNoise, miss: float) -> int:
    """The least a with P(|noise| > a) <= miss, sought first where tails are known roughly."""

    def rough(a: int) -> float:
        return noise.beyond(a, miss, rough=True)

    def fine(a: int) -> float:
        return noise.beyond(a, miss)

    wide = max(1, math.ceil(2.0 * math.sqrt(_unrounded_variance(noise))))
    if not noise.law.has_rough_tails:
        return _least(fine, miss, wide, wide)
    about = _least(rough, miss, wide, wide)
    return _least(fine, miss, about, max(1, about >> 10))


def _least(
    # `beyond`, `miss`: these.
    beyond: Callable[[int], float],
    miss: float,
    guess: int,  # Where it is sought first
    step: int,  # How far from there next, then twice as far each time
) -> int:
    """The least a >= 0 with beyond(a) <= miss, where beyond falls."""
    found = beyond(guess)
    if found > miss:
        low, high = (guess, found), (guess, found)
        while high[1] > miss:
            low, high = high, (high[0] + step, beyond(high[0] + step))
            step *= 2
    else:
        low, high = (guess, found), (guess, found)
        while low[1] <= miss:
            if low[0] == 0:
                return 0
            high, place = low, max(0, low[0] - step)
            low = (place, beyond(place))
            step *= 2
    return _between(beyond, miss, low, high)


def _between(
    beyond: Callable[[int], float], miss: float, low: tuple[int, float], high: tuple[int, float]
) -> int:
    """The least a with beyond(a) <= miss, between a place where that does not hold and one where it
    does: at the place where a line through the logarithms meets it, or in the middle.
    """
    (below, over), (above, under) = ((a, math.log(max(p, 1e-300) / miss)) for a, p in (low, high))
    middle = False
    while above - below > 1:
        share = 0.5 if middle else over / (over - under)
        at = min(max(below + round((above - below) * share), below + 1), above - 1)
        width, found = above - below, beyond(at)
        if found > miss:
            below, over = at, math.log(found / miss)
        else:
            above, under = at, math.log(max(found, 1e-300) / miss)
        middle = above - below > width // 2
    return above


@lru_cache(maxsize=1024)
def _variance(noise: CombinedNoise) -> float:
    found, divisor = _unrounded_variance(noise), noise.divisor
    if divisor == 1:
        return found
    if divisor == 2:
        return found + noise.law.oddness_of_sum(noise.factors) / 4
    if found <= _FEW**2:
        return _summed_variance(noise)
    return found + (divisor**2 - 1 if divisor % 2 else divisor**2 + 2) / (12.0 * divisor**2)


def _unrounded_variance(noise: CombinedNoise) -> float:
    """The variance of the sum over the divisor."""
    return noise.law.variance_of_sum(noise.factors) / noise.divisor**2


def _summed_variance(noise: CombinedNoise) -> float:
    """The sum of (2 k - 1) P(|noise| >= k)."""
    k = np.arange(1.0, 2.0 + _least_covering(noise, _DEEP))
    return 2.0 * float((2.0 * k - 1.0) @ _above(noise, k))


def _above(noise: CombinedNoise, k: Floats) -> Floats:
    """P(noise >= k) for whole k of at least 1."""
    found = np.interp(k, *_table(noise, _DEEP))
    reach = _least_covering(noise, _DEEP)
    if (k > reach).any():
        far = np.interp(k, *_table(noise, _DEEPEST))
        found = np.where(k > reach, far, found)
    return found


@lru_cache(maxsize=256)
def _table(noise: CombinedNoise, miss: float) -> tuple[Floats, Floats]:
    """Places, and P(noise >= place) at each, down to about `miss`."""
    reach = 1 + _least_covering(noise, miss)
    if reach <= _KNOTS:
        places = np.arange(1.0, reach + 1.0)
    else:
        places = np.unique(np.rint(np.linspace(1.0, float(reach), _KNOTS)))
    tail = _tail_of(noise.law, noise.factors, log_tier(miss), noise.law.has_rough_tails)
    return places, np.array([0.5 * noise.at_least(int(place), tail) for place in places])


def fair_coins(n: int, source: BitSource | None = None) -> NDArray[np.int64]:
    """`n` independent numbers that are 0 or 1 as often, by which halves are rounded. `source` is
    for tests.
    """
    return (OS if source is None else source).bits(n).astype(np.int64)
