"""Laplace noise drawn on a finer grid than the values lie on, and rounded to theirs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import DIGITS, miss_per_cell
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace, two_sided_tail
from dpframe.mechanisms.mechanism import Mechanism
from dpframe.mechanisms.pure_rho import laplace_rho
from dpframe.mechanisms.rounding import in_range, nonnegative
from dpframe.mechanisms.tasks import AdditiveTask
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE

_FINE: Final = 1025
_FEW_STEPS: Final = 16
"""Vectors that move by more steps than this have losses as finely spread as a finer grid gives."""


@dataclass(frozen=True, slots=True)
class RoundedLaplace(DiscreteLaplace):
    """Discrete Laplace noise on the multiples of 1 / 1025, rounded to the nearest integer.

    Values are integers, so rounding their noise is the same as rounding what was released, which is
    post-processing: the cost is that of the fine noise. Alone it is no cheaper than discrete
    Laplace noise of the same scale, whose privacy loss is one of two values when the vector moves
    by 1. The fine noise has losses between those, and therefore many of them together cost less.

    1025 is odd, so nothing lies halfway and rounding is symmetric.

    Parameters
    ----------
    scale
        In steps of the values. Below 2**-10 it is raised to that.

    Raises
    ------
    InvalidBudget
        When the scale is above 2**45.
    ValueError
        When the scale is not an exact number above 0.
    """

    fine: ClassVar[int] = _FINE
    refinement: ClassVar[str] = f"drawn on {_FINE} times finer steps and rounded"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Laplace(self.scale, _FINE)

    @classmethod
    def refining(cls, law: Mechanism, task: AdditiveTask) -> Self | None:
        """In place of discrete Laplace noise on few steps, which has losses that they do not."""
        if type(law) is DiscreteLaplace and task.sensitivity.l1 <= _FEW_STEPS:
            return cls(law.scale)
        return None

    def __post_init__(self) -> None:
        largest = Fraction(1 << (MAX_SCALE.numerator.bit_length() - 1 - _FINE.bit_length()))
        scale = in_range(self.scale, MIN_SCALE, largest, "the scale of rounded Laplace noise")
        object.__setattr__(self, "scale", scale)

    def rho(
        self, l1: Fraction, l2_squared: Fraction | None = None, linf: Fraction | None = None
    ) -> Fraction:
        """The zCDP cost of the fine noise, rounded up."""
        return laplace_rho(
            self.scale * _FINE,
            math.ceil(nonnegative(l1, "l1")) * Fraction(_FINE),
            None if l2_squared is None else l2_squared * _FINE**2,
            None if linf is None else math.ceil(linf) * Fraction(_FINE),
        )

    def variance(self) -> float:
        """In steps squared, but for the last digits of a float.

        E[n**2] = sum((2 a + 1) P(|n| > a), a >= 0), and P(|n| > a) = P(|n| > 0) exp(-a / scale).
        """
        over = math.exp(-float(Fraction(_FINE - 1, 2 * _FINE) / self.scale))
        over *= 2.0 / (1.0 + math.exp(float(1 / (_FINE * self.scale))))
        rate = float(1 / self.scale)
        return over * (1.0 + math.exp(-rate)) / (math.expm1(-rate) * math.expm1(-rate))

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence.

        P(|n| > a) = P(|x| > f a + (f - 1) / 2) for the fine noise x and f = 1025, evaluated to 60
        digits as for `DiscreteLaplace`.
        """
        scale = DIGITS.divide(Decimal(self.scale.numerator), Decimal(self.scale.denominator))
        scale = DIGITS.multiply(scale, Decimal(_FINE))
        q = DIGITS.exp(DIGITS.divide(Decimal(-1), scale))
        per_cell = DIGITS.multiply(DIGITS.add(Decimal(1), q), miss_per_cell(confidence, cells))
        steps = DIGITS.multiply(scale, DIGITS.ln(DIGITS.divide(Decimal(2), per_cell)))
        beyond = DIGITS.subtract(steps, Decimal((_FINE + 1) // 2))
        return max(0, math.ceil(DIGITS.divide(beyond, Decimal(_FINE))))

    def bound_of_sum(self, terms: int, miss: float) -> float:
        """Moments of what is rounded are not known."""
        return math.inf

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(noise > x) for each x, in steps, to about 12 digits."""
        rate = float(1 / self.scale)
        half = rate * (_FINE - 1) / (2 * _FINE)
        return two_sided_tail(np.floor(x) + 1.0, rate, half, rate / _FINE)
