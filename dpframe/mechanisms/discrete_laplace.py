"""Discrete Laplace noise (two-sided geometric noise), and Laplace noise that is rounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import float_up, sqrt_up
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combined import IndependentNoise
from dpframe.mechanisms.mechanism import (
    DIGITS,
    AdditiveTask,
    Choice,
    Exposure,
    Mechanism,
    charge_for,
    in_range,
    log_deviation,
    miss_per_cell,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.mechanisms.pure_rho import laplace_rho, laplace_scale
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent

# Discrete Laplace noise, also called two-sided geometric noise.


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(IndependentNoise):
    """Noise with P(x) proportional to exp(-|x| / scale) on the integers.

    Added to every entry of an integer vector whose L1 sensitivity is `l1`, it is (l1 /
    scale)-differentially private. Moving the vector by d changes the probability of every output
    by a factor of at most exp(|d|_1 / scale) (Dwork, McSherry, Nissim and Smith 2006, Theorem
    3.1; Ghosh, Roughgarden and Sundararajan 2009 for the integers).

    Raises
    ------
    InvalidBudget
        When the scale is above 2**56.
    ValueError
        When the scale is not an exact number above 0.
    """

    # In grid steps. Below 2**-10 it is raised to that.
    scale: Fraction
    name: ClassVar[str] = "discrete_laplace"
    label: ClassVar[str] = "discrete Laplace"
    norm: ClassVar[str] = "by L1"
    fine: ClassVar[int] = 1
    """How many steps of the noise make one of the values."""

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Laplace(self.scale, 1)

    def __post_init__(self) -> None:
        scale = in_range(self.scale, MIN_SCALE, MAX_SCALE, "the scale of discrete Laplace noise")
        object.__setattr__(self, "scale", scale)

    @classmethod
    def for_pure(cls, l1: Fraction, epsilon: Fraction) -> Self:
        """The least noise that is epsilon-differentially private: scale = l1 / epsilon."""
        return cls(positive_sensitivity(l1, "l1") / positive_budget(epsilon, "epsilon"))

    @classmethod
    def for_zcdp(
        cls,
        l1: Fraction,
        rho: Fraction,
        l2_squared: Fraction | None = None,
        linf: Fraction | None = None,
    ) -> Self:
        """The least noise that costs rho at most, see `rho`; its scale is rounded up."""
        l1, rho = positive_sensitivity(l1, "l1"), positive_budget(rho, "rho")
        return cls(laplace_scale(l1, l2_squared, linf, rho))

    @classmethod
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice:
        """Noise by L1, which spends no delta."""
        moved = task.sensitivity
        if isinstance(share, ZCDP):
            norms = moved.l2_squared, moved.linf
            law = cls.for_zcdp(moved.l1, share.main, *norms)
            cost = charge_for(share, law.rho(moved.l1, *norms))
            return Choice(law, cost, "by L1, less noise here than Gaussian by L2")
        law = cls.for_pure(moved.l1, share.main)
        reason = (
            "by L1; pure DP knows no Gaussian noise"
            if not share.slack
            else "by L1, less noise here than Gaussian by L2, and no delta"
        )
        return Choice(law, share.of(law.epsilon(moved.l1)), reason)

    def epsilon(self, l1: Fraction) -> Fraction:
        """The pure cost of releasing a vector of this L1 sensitivity: l1 / scale, exactly."""
        return nonnegative(l1, "l1") / self.scale

    def rho(
        self,
        # `l1`, `l2_squared`, `linf`: in grid steps; where a norm is not known L1 bounds it.
        l1: Fraction,
        l2_squared: Fraction | None = None,
        linf: Fraction | None = None,
    ) -> Fraction:
        """The zCDP cost of releasing a vector of this sensitivity, rounded up to 17 digits.

        Never above epsilon**2 / 2, and less where several entries share L1. The proof is in
        `dpframe.mechanisms.pure_rho`.
        """
        return laplace_rho(self.scale, nonnegative(l1, "l1"), l2_squared, linf)

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """By L1."""
        return self.epsilon(exposure.sensitivity.l1)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """By all norms."""
        norms = exposure.sensitivity
        return self.rho(norms.l1, norms.l2_squared, norms.linf)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """By L1 and Linf."""
        from dpframe.kernel.trade_offs import laplace_mu_squared  # few sessions need it

        norms = exposure.sensitivity
        l1, linf = (self.fine * math.ceil(norm) for norm in (norms.l1, norms.linf))
        return laplace_mu_squared(1 / (self.scale * self.fine), l1, linf)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One, of the steps of the noise that L1 has."""
        from dpframe.accounting.events import DiscreteLaplaceEvent

        steps = math.ceil(exposure.sensitivity.l1) * self.fine
        return (DiscreteLaplaceEvent(self.scale * self.fine, steps),) * exposure.repeats

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation."""
        return log_deviation(self.variance())

    def variance(self) -> float:
        """2 q / (1 - q)**2 with q = exp(-1 / scale), in grid steps squared; nearest float."""
        half = math.sinh(self.scale.denominator / (2 * self.scale.numerator))
        return 0.5 / (half * half)

    def quantile(
        self,
        # Between 0 and 1; a float means the decimal that it prints as.
        confidence: float | Fraction,
        cells: int = 1,  # How many independent draws must keep within a together
    ) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence.

        P(|x| > a) = 2 q**(a + 1) / (1 + q) with q = exp(-1 / scale), evaluated to 60 digits. Raises
        `InvalidBounds` when the confidence does not lie between 0 and 1.
        """
        return _least_covering(self.scale, miss_per_cell(confidence, cells))

    def apart(self, missed: Fraction) -> int:
        """The least a with P(x - y > a) <= missed, where x and y are independent draws; see
        `chance_apart`.
        """
        allowed = DIGITS.divide(Decimal(missed.numerator), Decimal(missed.denominator))
        low, high = -1, 0
        while chance_apart(self.scale, high + 1) > allowed:
            low, high = high, 2 * high + 1
        while high - low > 1:
            middle = (low + high) // 2
            if chance_apart(self.scale, middle + 1) > allowed:
                low = middle
            else:
                high = middle
        return high

    def log_apart(self, missed: float) -> float:
        """From the continuous law: P(x - y > a) = (a / scale + 2) exp(-a / scale) / 4."""
        scales = reach = max(1e-3, -math.log(min(missed, 0.4)))
        for _ in range(8):  # a contraction beyond 0
            scales = max(1e-3, reach + math.log((scales + 2.0) / 4.0))
        return math.log(self.scale.numerator) - math.log(self.scale.denominator) + math.log(scales)

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(noise > x) for each x, in grid steps, to about 12 digits."""
        rate = float(1 / self.scale)
        return two_sided_tail(np.floor(x) + 1.0, rate, 0.0, rate)

    def farthest(self, tier: int) -> int:
        """A place beyond which exp(-tier) lies, and barely more."""
        return math.ceil(self.scale * tier) + 1

    def scale_of_sum(self, factors: tuple[int, ...], part: Fraction) -> float:
        """The scale of noise of this kind with the same deviation."""
        return float_up(self.scale * sqrt_up(Fraction(sum(f * f for f in factors))) * part)

    def bound_of_sum(self, terms: int, miss: float) -> float:
        """By Chernoff: the least (terms m(x) - ln(miss)) / x over some x > 0, where m(x) is the
        logarithm of the moment E[exp(x noise)] = (1 - q)**2 / ((1 - q e**x) (1 - q e**-x)), with
        q = exp(-1 / scale). Each x gives a bound.
        """
        rate = float(1 / self.scale)
        least = math.inf
        for share in range(1, 200):
            x = rate * share / 200
            ends = math.expm1(x - rate) * math.expm1(-x - rate)
            moment = 2 * math.log(-math.expm1(-rate)) - math.log(ends)
            least = min(least, (terms * moment - math.log(miss)) / x)
        return least

    def log_masses(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """By their sizes."""
        return np.asarray(np.abs(noise.astype(np.float64)) * -float(1 / self.scale))


@lru_cache(maxsize=256)
def _least_covering(scale: Fraction, missed: Decimal) -> int:
    """The smallest a with P(|noise| > a) <= missed."""
    s = DIGITS.divide(Decimal(scale.numerator), Decimal(scale.denominator))
    q = DIGITS.exp(DIGITS.divide(Decimal(-1), s))
    per_tail = DIGITS.multiply(DIGITS.add(Decimal(1), q), missed)
    steps = DIGITS.multiply(s, DIGITS.ln(DIGITS.divide(Decimal(2), per_tail)))
    return max(0, math.ceil(DIGITS.subtract(steps, Decimal(1))))


def chance_apart(scale: Fraction, a: int) -> Decimal:
    """P(x - y >= a) of two independent draws, for a of at least 1.

    q**a ((a + 1 + K)(1 - q) + q) / (1 + q)**2, with q = exp(-1 / scale) and K = 2 q**2 /
    (1 - q**2).
    """
    with localcontext(DIGITS):
        inverse = Decimal(scale.denominator) / Decimal(scale.numerator)
        q = (-inverse).exp()
        k = 2 * q * q / (1 - q * q)
        return (-inverse * a).exp() * ((a + 1 + k) * (1 - q) + q) / ((1 + q) * (1 + q))


def two_sided_tail(
    k: NDArray[np.float64], rate: float, start: float, step: float
) -> NDArray[np.float64]:
    """P(n >= k) for whole k of a symmetric n, where P(n >= k) = exp(start - k rate) / (1 +
    exp(-step)) for k of at least 1.
    """
    beyond = np.exp(start - np.where(k >= 1.0, k, 1.0 - k) * rate) / (1.0 + math.exp(-step))
    return np.where(k >= 1.0, beyond, 1.0 - beyond)


# Laplace noise drawn on a finer grid than the values lie on, and rounded to theirs.

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
