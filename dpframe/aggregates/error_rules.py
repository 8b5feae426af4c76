"""How far a result may be from the exact one: the rule of each output, as its plan holds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, TypeAlias

from dpframe.aggregates.derived_error import MeanErrors, VarianceErrors, error_quantile
from dpframe.aggregates.guess import Guess, guess_of
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.core.exact import float_up, nearest
from dpframe.errors import UnsupportedOperation
from dpframe.mechanisms import (
    AdditiveMechanism,
    CombinedNoise,
    IndependentNoise,
)

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
    """A mean of values in bounds of this width around the middle, from a centred sum and a count.

    Parameters
    ----------
    width, middle
        The width of the bounds.
    """

    width: Fraction
    middle: Fraction
    parts: ClassVar[int] = 2

    def guessed(self, value: object, count: object) -> Guess:
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

    Parameters
    ----------
    width, middle
        The width of the bounds.
    ddof
        Delta degrees of freedom.
    root
        Whether it is the root.
    """

    width: Fraction
    middle: Fraction
    ddof: int
    root: bool = False
    parts: ClassVar[int] = 3

    def guessed(self, value: object, count: object) -> Guess:
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

    Parameters
    ----------
    cells
        How many there are.
    factor
        In how many such errors a rank may be off: 1 + q, or twice that, which is above 2, where
        values between the candidates have cells of their own.
    """

    cells: int
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
        found = [float(self.cells * law.quantile(1 - miss, self.cells))]
        if isinstance(law, IndependentNoise):
            found.append(_UP * law.bound_of_sum(self.cells, nearest(miss) / 2))
            if self.cells <= _MOST_ADDED:
                whole = CombinedNoise(law, (1,) * self.cells, 1)
                found.append(float(whole.quantile(1 - miss)))
        return Fraction(min(found))


_ASKED, _COLLECTED = "ask for interval=0.95", "collect it with .collect(..., interval=0.95)"
"""Plans contain the first form, which stays unchanged. Messages contain the second, because
`interval` is an argument of `collect` and not of aggregates.
"""


@dataclass(frozen=True, slots=True)
class NoErrorBound:
    """The error depends on the data.

    Parameters
    ----------
    why, remedy
        For who asks.
    """

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
