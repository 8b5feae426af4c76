"""Errors of outputs: the rules of each part, of formulas over them, and guesses of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.noise import JointNoise, Slices, pulls
from dpframe.core.exact import exact, float_up, nearest, show_input
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.mechanisms import AdditiveMechanism, CombinedNoise, IndependentNoise

# -- a guess, from public knowledge, about the data that a result will be computed from -----------

_KNOWN: Final = ("count", "mean", "var", "std")
_REMEDY: Final = (
    'write a number, {"mean": 40, "std": 12}, or a public Series of values like those of the data'
)


@dataclass(frozen=True, slots=True)
class Guess:
    """What is guessed of the values of one group."""

    count: float | None = None  # How many there are
    # Theirs, in the units of the values; None where nothing is guessed.
    mean: float | None = None
    variance: float | None = None


def guess_of(
    value: object, kind: str, count: object = None, bounds: tuple[float, float] | None = None
) -> Guess:
    """A guess as callers write it. `value` is a number, date or duration, which is the result
    itself. Or it is a mapping of ``"count"``, ``"mean"``, ``"var"`` and ``"std"``, a Series of
    public values that are like those of the data, or None. Raises `InvalidBounds` for others. The
    result is a `kind`, ``"mean"``, ``"var"`` or ``"std"``. `count` is the number of values, if it
    is given separately, and the values of a Series are clamped to `bounds`.
    """
    given: Mapping[Any, object]
    if value is None:
        given = {}
    elif isinstance(value, pl.Series):
        given = _describe_values(value, bounds)
    elif isinstance(value, Mapping):
        given = value
    else:
        given = {kind: value}
    found = Guess()
    for name, item in given.items():
        if name not in _KNOWN:
            raise InvalidBounds(
                f"a guess of data says their {', '.join(_KNOWN[:-1])} or {_KNOWN[-1]}, and not "
                f"{name!r}",
                where="guess",
                remedy=_REMEDY,
            )
        found = _with(found, name, item)
    return found if count is None else replace(found, count=_number("count", count))


def _with(guess: Guess, name: str, item: object) -> Guess:
    number = _number(name, item)
    match name:
        case "mean":
            return replace(guess, mean=number)
        case "count":
            return replace(guess, count=number)
        case "var":
            return replace(guess, variance=number)
        case _:
            return replace(guess, variance=number * number)


def _number(name: str, item: object) -> float:
    """A finite number; moments and durations as Polars stores them."""
    if isinstance(item, date | datetime | time | timedelta):
        item = pl.Series([item]).to_physical().item()
    if isinstance(item, str):
        raise _refusal(name, item)
    try:
        number = float(exact(item))
    except (TypeError, ValueError, OverflowError):
        raise _refusal(name, item) from None
    if name != "mean" and number < 0:
        raise _refusal(name, item)
    return number


def _refusal(name: str, item: object) -> InvalidBounds:
    least = "" if name == "mean" else " that is not negative"
    return InvalidBounds(
        f"a guess of a {name} is a finite number{least}, and {show_input(item)} is not",
        where=name if name == "count" else "guess",
        remedy="write count=1000" if name == "count" else _REMEDY,
    )


def _describe_values(values: pl.Series, bounds: tuple[float, float] | None) -> dict[str, object]:
    """What matters of public values: null and NaN are skipped, as everywhere."""
    numbers = values.to_physical()
    if not (numbers.dtype.is_numeric() or numbers.dtype == pl.Boolean):
        raise InvalidBounds(
            f"a guess of type {values.dtype} has no mean", where="guess", remedy=_REMEDY
        )
    numbers = numbers.cast(pl.Float64).drop_nulls().drop_nans()
    numbers = numbers if bounds is None else numbers.clip(*bounds)
    found: dict[str, object] = {"count": numbers.len()}
    if numbers.len():
        found |= {"mean": numbers.mean(), "var": numbers.var(ddof=min(1, numbers.len() - 1))}
    return found


# -- the error of a mean, a variance or a standard deviation --------------------------------------
# The quantile of the error over data of a given size, the worst or those that are like a guess.
#
# Values lie in [-h, h] around the middle of their bounds; there are n of them with mean m and
# sample variance V. With noises X of the sum, Y of the count and Z of the sum of squares (less
# h^2/2 each), N = n + Y and U = X - m Y, the error of the release is
#
#     mean      (X - m Y) / N
#     variance  (Z - 2 m X + (h^2/2 + m^2 - V) Y - U^2 / N) / (N - ddof)
#
# before it is clamped to what the bounds allow; both follow from inserting S = n m + X and so on.
# So the error is within a just where the first noise is between two numbers that depend on the
# others, m and V. No sum over data is needed: n, m and V determine everything.
#
# *The worst data.* A sum of independent symmetric unimodal noises spreads more the larger its
# coefficients are (Birnbaum 1948; Anderson 1955), so errors are largest for values far from the
# middle: m near h. At m = h itself clamping cuts off half of the errors. The worst mean is
# therefore h - a, the farthest one at which an error of a is possible on both sides: for large n
# nearly all values are at one bound. Likewise the worst variance is one just above a with m as far
# out as that allows. For small n, where a division by a small N matters, the worst is sought among
# these and a grid of m and V.
#
# Results that are null, because the noisy count is too small, have no error: probabilities are
# those among results that are not null.

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

    def mirror(self) -> Data:
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

    def where_known(self, slices: Slices) -> NDArray[np.bool_]:
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
    """The least a, rounded up, with P(|error| <= a) >= level for any data. `errors`: the errors of
    a result over data of one size. `noise`: the joint law of its parts' noise. `level`: between 0
    and 1, exclusive.
    """
    if isinstance(errors, VarianceErrors) and errors.half**2 <= _LEAST:
        return errors.largest
    slices = noise.slices(float(1 - level), errors.pull)
    known = errors.where_known(slices)
    allowed = float(1 - level) * float(slices.weights[known].sum())
    if allowed <= 0.0:
        return errors.largest

    def chance_of_miss(data: Data, error: float) -> Floats:
        data = data if noise.even or errors.mean is not None else data.mirror()
        low, high = errors.window(data, error, slices)
        return slices.outside(np.where(known, low, -np.inf), np.where(known, high, np.inf))

    def excess(tried: Data | None, error: float) -> float:
        data = errors.edges(error) if tried is None else errors.edges(error).and_(tried)
        return math.log(max(float(chance_of_miss(data, error).max()), 1e-300) / allowed)

    def least(tried: Data | None, above: float) -> float:
        low, high = (above, math.inf), (errors.largest, -math.inf)
        while high[0] > low[0] * (1 + _CLOSE) and high[0] > errors.largest * 1e-15:
            middle = _between(low, high)
            found = excess(tried, middle)
            low, high = ((middle, found), high) if found > 0 else (low, (middle, found))
        return high[0]

    found, tried, spread = least(None, 0.0), None, errors.others()
    while found < errors.largest:
        worse = chance_of_miss(spread, found).reshape(-1, spread.mean.size).max(axis=0)
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
    """

    half: float  # Half the width of the bounds
    count: float  # How many values there are
    bias: float = 0.0  # How far rounding may move a value
    # The mean of the data, around the middle, where it is known; else the worst.
    mean: float | None = None

    @property
    def largest(self) -> float:
        return 2 * self.half if self.mean is None else self.half + abs(self.mean)

    @property
    def pull(self) -> tuple[float, ...]:
        return pulls((self.half,))

    def where_known(self, slices: Slices) -> NDArray[np.bool_]:
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
    """Of sample variances, or their roots; noise of squares, of the sum and of the count."""

    # As for means; `count` is above `ddof`.
    half: float
    count: float
    ddof: int  # The variance divides by the count less this
    root: bool  # Whether the result is a standard deviation
    biases: tuple[float, float] = (0.0, 0.0)  # How far rounding may move a square, and a value
    mean: float | None = None
    # The variance of the data where it is known (not its root); else the worst.
    variance: float | None = None

    @property
    def largest(self) -> float:
        most = self.half**2 * (self.ddof + 1)
        return math.sqrt(most) if self.root else most

    @property
    def pull(self) -> tuple[float, ...]:
        return pulls((2 * self.half, 1.5 * self.half**2))

    def where_known(self, slices: Slices) -> NDArray[np.bool_]:
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


# -- how far a result may be from the exact one: the rule of each output, as its plan holds it ----

_UP: Final = 1.0 + 1e-9
"""Above what floats lose."""
_MOST_ADDED: Final = 24
"""For this many terms the law of their sum is computed fast enough."""
MOST_CELLS: Final = 512
"""Of noisy counts that quantiles are read off."""


@dataclass(frozen=True, slots=True)
class PartError:
    """The result is its part; of several, all alike, the largest error counts."""

    parts: ClassVar[int] = 1

    def bound(self, errors: Sequence[Fraction | float]) -> float:
        """The largest of the parts' errors."""
        return max(float(error) for error in errors)


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean of values in bounds around the middle, from a centred sum and a count."""

    # The width of the bounds.
    width: Fraction
    middle: Fraction
    parts: ClassVar[int] = 2

    def read_guess(self, value: object, count: object) -> Guess:
        """What a caller guesses of the data; see `guess_of`."""
        return guess_of(value, "mean", count, _bounds(self))

    def quantile(
        self, noise: JointNoise, level: Fraction, biases: Sequence[Fraction], guess: Guess
    ) -> float:
        """The error that a result keeps within with probability `level`.

        Parameters
        ----------
        noise
            The error of the sum and the count, in the values' units.
        level
            Between 0 and 1, exclusive.
        biases
            How far rounding may move what a value adds to each part.
        guess
            What is guessed of the data; without a count the bound is what clamping guarantees.
        """
        half = nearest(self.width) / 2
        mean = None if guess.mean is None else _within(guess.mean - nearest(self.middle), half)
        errors = MeanErrors(half, guess.count or 0.0, nearest(biases[0]), mean)
        return _quantile(errors, noise, level, guess, least=1)


@dataclass(frozen=True, slots=True)
class VarianceError:
    """A sample variance of values in bounds of this width around the middle, or its root; from
    centred squares, a centred sum and a count.
    """

    # The width of the bounds.
    width: Fraction
    middle: Fraction
    ddof: int  # Delta degrees of freedom
    root: bool = False  # Whether it is the root
    parts: ClassVar[int] = 3

    def read_guess(self, value: object, count: object) -> Guess:
        """As for means."""
        return guess_of(value, "std" if self.root else "var", count, _bounds(self))

    def quantile(
        self, noise: JointNoise, level: Fraction, biases: Sequence[Fraction], guess: Guess
    ) -> float:
        """As for means, of squares, the sum and the count."""
        half = nearest(self.width) / 2
        mean = None if guess.mean is None else _within(guess.mean - nearest(self.middle), half)
        errors = VarianceErrors(
            half,
            guess.count or 0.0,
            self.ddof,
            self.root,
            (nearest(biases[0]), nearest(biases[1])),
            mean,
            guess.variance,
        )
        return _quantile(errors, noise, level, guess, least=self.ddof + 1)


@dataclass(frozen=True, slots=True)
class RankError:
    """The error of a rank that is read from noisy cumulative counts of this many cells.

    The noise of a cumulative count is the sum of the noise of some first cells. The largest of
    these sums exceeds x at most twice as often as the sum of all does (Levy's inequality for
    symmetric noise). Isotonic regression, which makes the counts rise, does not increase the
    largest error. The requested rank is q times the noisy total, so its error is at most q times
    that of the total.

    A second bound does without the factor 1 + q. Let N_i be the noise of the first i cells, with
    N_0 = 0, and u_i the true cumulative counts. A fitted count is the mean of a pool of
    neighbours; the first ones of a pool have no smaller mean than all of it, and the last ones no
    larger mean. Suppose the chosen candidate ends at cell i.

    Suppose its true rank is too low: u_i < q u_n, while its fitted count is at least q times the
    last one, which is at least u_n + N_n. The mean of u + N from the start of its pool to i is no
    less than the fitted count, and u is at most u_i there. So q u_n - u_i <= N_h - q N_n for some
    h <= i. Suppose it is too high: the fitted count before it is at most q times the last one. The
    mean of u + N from i - 1 to the end of its pool is no more, and u is at least u_(i-1) there. The
    last fitted count is the mean of a later pool, so it is at most u_n + N_k for one k of that
    pool. So u_(i-1) - q u_n <= q N_k - N_h for some h <= k.

    Both are at most the range of N. Consider the first cell at which N has risen or fallen by x:
    later noise is as likely to increase this as to reduce it. So the range of N exceeds x at most
    twice as often as the noise of some last cells does, and that at most twice as often as the sum
    of all does. Where values between candidates have cells, both counts that are compared may be
    wrong.
    """

    cells: int  # How many there are
    # In how many such errors a rank may be off: 1 + q, or twice that, which is above 2, where
    # values between the candidates have cells of their own.
    factor: Fraction

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_CELLS or not 1 <= self.factor <= 4:
            raise ValueError("there are more cells than ranks are read off")

    def quantile(self, law: AdditiveMechanism, level: Fraction) -> float:
        """The error in ranks that is kept within with probability `level`; 0 without noise."""
        if law.is_exact:
            return 0.0
        ends = 2 if self.factor > 2 else 1
        found = [
            Fraction(self.cells * law.quantile(level, self.cells)) * ends,
            self._of_sum(law, (1 - level) / 2) * self.factor,
            self._of_sum(law, (1 - level) / 4) * ends,
        ]
        return float_up(min(found))

    def _of_sum(self, law: AdditiveMechanism, miss: Fraction) -> Fraction:
        """What the noise of all cells exceeds, one way or the other, no more often than that."""
        bounds = [float(self.cells * law.quantile(1 - miss, self.cells))]
        if isinstance(law, IndependentNoise):
            bounds.append(_UP * law.bound_of_sum(self.cells, nearest(miss) / 2))
            if self.cells <= _MOST_ADDED:
                total = CombinedNoise(law, (1,) * self.cells, 1)
                bounds.append(float(total.quantile(1 - miss)))
        return Fraction(min(bounds))


_ASKED, _COLLECTED = "ask for interval=0.95", "collect it with .collect(..., interval=0.95)"
"""Plans contain the first form, which stays unchanged. Messages contain the second, because
`interval` is an argument of `collect` and not of aggregates.
"""


@dataclass(frozen=True, slots=True)
class NoErrorBound:
    """The error depends on the data."""

    # For who asks.
    why: str
    remedy: str

    def refusal(self) -> UnsupportedOperation:
        """Why no bound can be given."""
        return UnsupportedOperation(self.why, remedy=self.remedy.replace(_ASKED, _COLLECTED))


DerivedError: TypeAlias = MeanError | VarianceError
ErrorRule: TypeAlias = PartError | DerivedError | RankError | NoErrorBound


def _quantile(
    errors: MeanErrors | VarianceErrors,
    noise: JointNoise,
    level: Fraction,
    guess: Guess,
    least: int,
) -> float:
    if guess.count is None or guess.count < least or not 0 < errors.half < math.inf:
        return errors.largest
    return error_quantile(errors, noise, level)


def _within(offset: float, half: float) -> float:
    """Where the mean of clamped values is, around the middle."""
    return min(half, max(-half, offset))


def _bounds(rule: MeanError | VarianceError) -> tuple[float, float]:
    return nearest(rule.middle - rule.width / 2), nearest(rule.middle + rule.width / 2)
