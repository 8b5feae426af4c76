"""How far a result may be from the exact one, given how far its parts are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dpframe.errors import UnsupportedOperation

Bounds: TypeAlias = "Sequence[Fraction | float]"
"""A bound on the error of each part, in the part's units."""


@dataclass(frozen=True, slots=True)
class PartError:
    """The result is its part; of several, all alike, the largest error counts."""

    def bound(self, errors: Bounds, count: float | None) -> float:
        return max(float(error) for error in errors)


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean of values in bounds of this width, from a centred sum and a count."""

    width: Fraction

    def bound(self, errors: Bounds, count: float | None) -> float:
        width = float(self.width)
        return _ratio_error(float(errors[0]), float(errors[1]), width / 2, width, count)


@dataclass(frozen=True, slots=True)
class VarianceError:
    """A sample variance of values in bounds of this width, or its root; from centred squares, a
    centred sum and a count.
    """

    width: Fraction
    ddof: int
    root: bool = False

    def bound(self, errors: Bounds, count: float | None) -> float:
        found = self._variance([float(error) for error in errors], count)
        return math.sqrt(found) if self.root else found  # |sqrt(a) - sqrt(b)| <= sqrt(|a - b|)

    def _variance(self, errors: Sequence[float], count: float | None) -> float:
        h, ddof = float(self.width) / 2, self.ddof
        most = h * h * (ddof + 1)  # n / (n - ddof) is largest for n = ddof + 1
        few = 0.0 if count is None else count - errors[2]
        if count is None or few < ddof + 1:
            return most
        second = _ratio_error(errors[0], errors[2], h * h / 2, h * h, count)
        first = _ratio_error(errors[1], errors[2], h, 2 * h, count)
        plain = min(h * h, second + 2 * h * first + first * first)
        bessel, true = few / (few - ddof), count / (count - ddof)
        return min(most, plain * bessel + h * h * (bessel - true))


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

    def bound(self, errors: Bounds, count: float | None) -> float:
        raise UnsupportedOperation(self.why, remedy=self.remedy)


ErrorRule: TypeAlias = PartError | MeanError | VarianceError | NoErrorBound


def _ratio_error(
    total: float, divisor: float, h: float, width: float, count: float | None
) -> float:
    """|S'/N' - S/N| <= (e_S + h e_N) / (N - e_N) for |S| <= h N; `width` when nothing is known."""
    if count is None or count - divisor < 1:
        return width
    return min(width, (total + h * divisor) / (count - divisor))
