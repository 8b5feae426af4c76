"""How far a mean, a variance or a standard deviation may be from the exact one: the quantile of its
error over data of a given size, the worst or those that are like a guess.

Values lie in [-h, h] around the middle of their bounds; there are n of them with mean m and sample
variance V. With noises X of the sum, Y of the count and Z of the sum of squares (less h^2/2
each), N = n + Y and U = X - m Y, the error of the release is

    mean      (X - m Y) / N
    variance  (Z - 2 m X + (h^2/2 + m^2 - V) Y - U^2 / N) / (N - ddof)

before it is clamped to what the bounds allow; both follow from inserting S = n m + X and so on.
So the error is within a just where the first noise is between two numbers that depend on the
others, m and V. No sum over data is needed: n, m and V determine everything.

The worst data
--------------
A sum of independent symmetric unimodal noises spreads more the larger its coefficients are
(Birnbaum 1948; Anderson 1955), so errors are largest for values far from the middle: m near h. At
m = h itself clamping cuts off half of the errors. The worst mean is therefore h - a, the farthest
one at which an error of a is possible on both sides: for large n nearly all values are at one
bound. Likewise the worst variance is one just above a with m as far out as that allows. For small
n, where a division by a small N matters, the worst is sought among these and a grid of m and V.

Results that are null, because the noisy count is too small, have no error: probabilities are those
among results that are not null.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.joint_noise import JointNoise, Slices, pulls

__all__ = ["MeanErrors", "VarianceErrors", "error_quantile"]

Floats: TypeAlias = "NDArray[np.float64]"
Window: TypeAlias = "tuple[Floats, Floats]"

_JUST: Final = 1.0 + 1e-9
_CLOSE: Final = 2e-3
_MARGIN: Final = 4e-3
"""Added to what is found, relative to it: for data between those tried, and for slices."""
_LEAST: Final = 2.0**-900
"""For smaller squares floats have too few digits to give more than their bound."""
_FRACTIONS: Final = (1.0, 0.97, 0.85, 0.6, 0.3, 0.0)
_TIMES: Final = (1.0, 1.25, 1.6, 2.5)


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Several data sets of one size: their means, around the middle, and variances."""

    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> Data:
        found = np.asarray(pairs, dtype=np.float64).reshape(-1, 2)
        return cls(found[:, :1], found[:, 1:])

    def part(self, places: NDArray[np.intp]) -> Data:
        return Data(self.mean[places], self.variance[places])

    def mirrored(self) -> Data:
        """With the same data on the other side of the middle."""
        return self.and_(Data(-self.mean, self.variance))

    def and_(self, other: Data) -> Data:
        return Data(
            np.concatenate((self.mean, other.mean)), np.concatenate((self.variance, other.variance))
        )


class Errors(Protocol):
    """The errors of one kind of result over data of one size."""

    @property
    def mean(self) -> float | None:
        """The mean of the data, around the middle, where it is known."""
        ...

    @property
    def largest(self) -> float:
        """No error is larger: results are clamped."""
        ...

    @property
    def pull(self) -> tuple[float, ...]:
        """See `JointNoise.slices`."""
        ...

    def known(self, slices: Slices) -> NDArray[np.bool_]:
        """In which slices the result is not null."""
        ...

    def window(self, data: Data, error: float, slices: Slices) -> Window:
        """Between what the first noise makes an error of at most `error`: a row per data set."""
        ...

    def edges(self, error: float) -> Data:
        """The data that are likely to be worst for errors of that size."""
        ...

    def others(self) -> Data:
        """Data all over the range."""
        ...


@lru_cache(maxsize=1024)
def error_quantile(errors: Errors, noise: JointNoise, level: Fraction) -> float:
    """The least a, rounded up, with P(|error| <= a) >= level for any data.

    Parameters
    ----------
    errors
        The errors of a result over data of one size.
    noise
        The joint law of its parts' noise.
    level
        Between 0 and 1, exclusive.
    """
    if isinstance(errors, VarianceErrors) and errors.half**2 <= _LEAST:
        return errors.largest
    slices = noise.slices(float(1 - level), errors.pull)
    known = errors.known(slices)
    allowed = float(1 - level) * float(slices.weights[known].sum())
    if allowed <= 0.0:
        return errors.largest

    def missed(data: Data, error: float) -> Floats:
        data = data if noise.even or errors.mean is not None else data.mirrored()
        low, high = errors.window(data, error, slices)
        return slices.outside(np.where(known, low, -np.inf), np.where(known, high, np.inf))

    def excess(tried: Data | None, error: float) -> float:
        data = errors.edges(error) if tried is None else errors.edges(error).and_(tried)
        return math.log(max(float(missed(data, error).max()), 1e-300) / allowed)

    def least(tried: Data | None, above: float) -> float:
        low, high = (above, math.inf), (errors.largest, -math.inf)
        while high[0] > low[0] * (1 + _CLOSE) and high[0] > errors.largest * 1e-15:
            middle = _between(low, high)
            found = excess(tried, middle)
            low, high = ((middle, found), high) if found > 0 else (low, (middle, found))
        return high[0]

    found, tried, spread = least(None, 0.0), None, errors.others()
    while found < errors.largest:
        worse = missed(spread, found).reshape(-1, spread.mean.size).max(axis=0)
        if not (worse > allowed).any():
            break
        few = spread.part(np.argsort(-worse)[:4])
        tried = few if tried is None else tried.and_(few)
        found = least(tried, found)
    return min(errors.largest, found * (1 + _MARGIN))


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where to look next: tails are about exponential. At least a tenth from either end."""
    (a, over), (b, under) = low, high
    if a < b / 16:
        return b / 16
    if math.isinf(over) or math.isinf(under):
        return math.sqrt(a * b)
    share = min(0.9, max(0.1, over / (over - under) + 0.02))
    return a + share * (b - a)


@dataclass(frozen=True, slots=True)
class MeanErrors:
    """Of means of `count` values within `half` of the middle of their bounds; noise of the sum and
    of the count.

    Parameters
    ----------
    half
        Half the width of the bounds.
    count
        How many values there are.
    bias
        How far rounding may move a value.
    mean
        The mean of the data, around the middle, where it is known; else the worst.
    """

    half: float
    count: float
    bias: float = 0.0
    mean: float | None = None

    @property
    def largest(self) -> float:
        return 2 * self.half if self.mean is None else self.half + abs(self.mean)

    @property
    def pull(self) -> tuple[float, ...]:
        return pulls((self.half,))

    def known(self, slices: Slices) -> NDArray[np.bool_]:
        return self.count + slices.others[0] > 0.5

    def window(self, data: Data, error: float, slices: Slices) -> Window:
        (noise,), m, h = slices.others, data.mean, self.half
        size, error = np.maximum(self.count + noise, 1.0), max(0.0, error - self.bias)
        low = np.where(m - error > -h, m * noise - error * size, -np.inf)
        high = np.where(m + error < h, m * noise + error * size, np.inf)
        return low, high

    def edges(self, error: float) -> Data:
        if self.mean is not None:
            return self.others()
        inner = self.half - max(0.0, error - self.bias) * _JUST
        return Data.of([(max(0.0, inner) * part, 0.0) for part in (1.0, 0.95)] + [(self.half, 0.0)])

    def others(self) -> Data:
        if self.mean is not None:
            return Data.of([(self.mean, 0.0)])
        return Data.of([(self.half * part / 16, 0.0) for part in range(17)])


@dataclass(frozen=True, slots=True)
class VarianceErrors:
    """Of sample variances, or their roots; noise of squares, of the sum and of the count.

    Parameters
    ----------
    half, count, mean
        As for means; `count` is above `ddof`.
    ddof
        The variance divides by the count less this.
    root
        Whether the result is a standard deviation.
    biases
        How far rounding may move a square, and a value.
    variance
        The variance of the data where it is known (not its root); else the worst.
    """

    half: float
    count: float
    ddof: int
    root: bool
    biases: tuple[float, float] = (0.0, 0.0)
    mean: float | None = None
    variance: float | None = None

    @property
    def largest(self) -> float:
        most = self.half**2 * (self.ddof + 1)
        return math.sqrt(most) if self.root else most

    @property
    def pull(self) -> tuple[float, ...]:
        return pulls((2 * self.half, 1.5 * self.half**2))

    def known(self, slices: Slices) -> NDArray[np.bool_]:
        return self.count + slices.others[1] > self.ddof + 0.5

    def window(self, data: Data, error: float, slices: Slices) -> Window:
        (x, y), m, v = slices.others, data.mean, data.variance
        size = np.maximum(self.count + y, self.ddof + 1.0)
        left = x - m * y
        base = (v - m * m - self.half**2 / 2) * y + 2 * m * x + left * left / size
        fall, rise = self._moves(v, error)
        over = size - self.ddof
        cap = self.half**2 * size / over
        low = np.where(np.isinf(fall), -np.inf, base - (fall - self._shift) * over)
        low = np.where(cap < v - fall, np.inf, low)
        high = np.where(v + rise < cap, base + (rise - self._shift) * over, np.inf)
        return low, np.maximum(low, high)

    def _moves(self, variance: Floats, error: float) -> tuple[Floats, Floats | float]:
        """How far the variance falls and rises for an error of `error` in the result; infinite
        where it cannot fall that far.
        """
        if not self.root:
            return np.where(variance > error, error, np.inf), error
        deviation = np.sqrt(variance)
        fall = np.where(deviation > error, (2 * deviation - error) * error, np.inf)
        return fall, (2 * deviation + error) * error

    @property
    def _shift(self) -> float:
        """How far rounding may move the variance."""
        return (self.biases[0] + 2 * self.half * self.biases[1]) / self._share

    @property
    def _share(self) -> float:
        return (self.count - self.ddof) / self.count

    def edges(self, error: float) -> Data:
        if self.variance is not None:
            return self.others()
        sizes = [(error * times * _JUST) ** (2 if self.root else 1) for times in _TIMES]
        return self._at([0.0, *sizes], (1.0, 0.9) if self.mean is None else (1.0,))

    def others(self) -> Data:
        most = self.half**2 / self._share
        if self.variance is not None:
            return self._at([self.variance], _FRACTIONS)
        return self._at([most * part for part in (0.0, 0.01, 0.05, 0.2, 0.5, 1.0)], _FRACTIONS)

    def _at(self, variances: list[float], fractions: tuple[float, ...]) -> Data:
        """Data of such variances, with the means that they allow or those farther in."""
        pairs = []
        for variance in variances:
            room = self.half**2 - min(variance * self._share, self.half**2)
            if self.mean is None:
                pairs += [
                    (math.sqrt(room * part), min(variance, self.half**2 / self._share))
                    for part in fractions
                ]
            else:
                most = max(0.0, self.half**2 - self.mean**2) / self._share
                pairs.append((self.mean, min(variance, most)))
        return Data.of(pairs)
