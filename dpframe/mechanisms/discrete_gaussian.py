"""Discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.gaussian_delta import delta_bound, variance_for
from dpframe.core.budget import ZCDP, ApproxDP, Budget
from dpframe.core.exact import show, sqrt_down, sqrt_up
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combinable import IndependentNoise
from dpframe.mechanisms.confidence import DIGITS, miss_per_cell
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.gaussian_tail import least_covering
from dpframe.mechanisms.mechanism import Choice, charged, log_deviation
from dpframe.mechanisms.normal_tail import gaussian_above
from dpframe.mechanisms.rounding import (
    in_range,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.mechanisms.tasks import AdditiveTask
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.loss_laws import Translated


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IndependentNoise):
    """Noise with P(x) proportional to exp(-x**2 / (2 sigma_squared)) on the integers.

    Added to every entry of an integer vector whose L2 sensitivity is `l2`, it is
    (l2**2 / (2 sigma_squared))-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4; the entries are
    independent, so their costs add up). What it costs as (epsilon, delta): see `delta`.

    Parameters
    ----------
    sigma_squared
        In grid steps squared. Below 2**-20 it is raised to that.

    Raises
    ------
    InvalidBudget
        When sigma_squared is above 2**112.
    ValueError
        When sigma_squared is not an exact number above 0.
    """

    sigma_squared: Fraction
    name: ClassVar[str] = "discrete_gaussian"
    label: ClassVar[str] = "discrete Gaussian"
    norm: ClassVar[str] = "by L2"
    unavailable: ClassVar[tuple[str, str]] = (
        "Gaussian noise has no pure epsilon, so it needs a delta or zCDP",
        "use mechanism='discrete_laplace', or spend a delta or rho",
    )
    scale_label: ClassVar[str] = "sigma"
    is_normal: ClassVar[bool] = True

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Gaussian(self.sigma_squared)

    def __post_init__(self) -> None:
        low, high = MIN_SCALE**2, MAX_SCALE**2
        value = in_range(self.sigma_squared, low, high, "the variance of discrete Gaussian noise")
        object.__setattr__(self, "sigma_squared", value)

    @classmethod
    def for_zcdp(cls, l2_squared: Fraction, rho: Fraction) -> Self:
        """The least noise that is rho-zCDP: sigma**2 = l2**2 / (2 rho), exactly."""
        wide = positive_sensitivity(l2_squared, "l2_squared")
        return cls(wide / (2 * positive_budget(rho, "rho")))

    @classmethod
    def fitted(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by L2, where the measure knows it."""
        moved = task.sensitivity
        match share:
            case ZCDP():
                law = cls.for_zcdp(moved.l2_squared, share.main)
                cost = charged(share, law.rho(moved.l2_squared))
            case ApproxDP() if share.slack:
                law = cls.for_approx(
                    moved.l0, moved.l2_squared, share.main, share.slack, moved.linf
                )
                cost = share
            case _:
                return None
        return Choice(law, cost, "by L2, less noise here than Laplace by L1")

    @classmethod
    def is_surely_least(cls, task: AdditiveTask, share: Budget) -> bool:
        """Whether so little rho is spent on each entry that Laplace noise certainly has a larger
        error: an entry that moves by x scales costs x - 1 + exp(-x), which is above x**2 / 4 up
        to 1.6.
        """
        moved = task.sensitivity
        return isinstance(share, ZCDP) and share.main * moved.linf <= moved.l1

    @classmethod
    def for_approx(
        cls,
        l0: int,
        l2_squared: Fraction,
        epsilon: Fraction,
        delta: Fraction,
        linf: Fraction | None = None,
    ) -> Self:
        """The least noise that is provably (epsilon, delta)-differentially private.

        See `dpframe.accounting.gaussian_delta` for the bounds and their sources.

        Parameters
        ----------
        l0
            How many entries of the vector one unit can change.
        l2_squared
            The squared L2 sensitivity, in grid steps squared.
        epsilon, delta
            Above 0; delta below 1.
        linf
            The largest change of one entry, in grid steps, if it is known: less noise is needed
            where that is 1.
        """
        wide = positive_sensitivity(l2_squared, "l2_squared")
        epsilon, delta = positive_budget(epsilon, "epsilon"), positive_budget(delta, "delta")
        return cls(variance_for(l0, wide, epsilon, delta, linf))

    @classmethod
    def classic(cls, l0: int, l2_squared: Fraction, epsilon: Fraction, delta: Fraction) -> Self:
        """Noise by the classic formula, for comparison: sigma = sqrt(2 ln(1.25 / delta)) l2 /
        epsilon (Dwork and Roth 2014, Theorem A.1). Never used unasked: `for_approx` needs less.

        Parameters
        ----------
        l0, l2_squared, epsilon, delta
            As for `for_approx`.

        Raises
        ------
        InvalidBudget
            Where the formula is not valid: for epsilon above 1, and where noise on the integers
            with this sigma does not keep delta.
        """
        wide = positive_sensitivity(l2_squared, "l2_squared")
        epsilon, delta = positive_budget(epsilon, "epsilon"), positive_budget(delta, "delta")
        odds = Fraction(5, 4) / delta
        log = DIGITS.ln(DIGITS.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        up = Fraction(log) * (1 + Fraction(1, 10**50)) if odds > 1 else Fraction(0)
        made = cls(2 * up * wide / epsilon**2) if up else None
        if made is None or epsilon > 1 or made.delta(epsilon, l0, wide) > delta:
            raise InvalidBudget(
                f"the classic formula for Gaussian noise is not valid at epsilon {show(epsilon)} "
                f"and delta {show(delta)}",
                remedy="use DiscreteGaussian.for_approx, which is exact at any epsilon",
            )
        return made

    @property
    def sigma(self) -> float:
        """The square root of `sigma_squared`, about; for people."""
        return math.sqrt(self.sigma_squared)

    def rho(self, l2_squared: Fraction) -> Fraction:
        """The zCDP cost of releasing a vector of this squared L2 sensitivity, exactly."""
        return nonnegative(l2_squared, "l2_squared") / (2 * self.sigma_squared)

    def delta(
        self, epsilon: Fraction, l0: int, l2_squared: Fraction, linf: Fraction | None = None
    ) -> float:
        """An upper bound on the delta at this epsilon, rounded up; at most 1.

        Parameters
        ----------
        epsilon
            Above 0.
        l0
            How many entries of the vector one unit can change.
        l2_squared
            The squared L2 sensitivity, in grid steps squared.
        linf
            The largest change of one entry, if it is known.
        """
        wide = nonnegative(l2_squared, "l2_squared")
        if wide == 0:
            return 0.0
        price = positive_budget(epsilon, "epsilon")
        return delta_bound(self.sigma_squared, l0, wide, price, linf)

    def shown_scale(self, step: Fraction) -> float:
        """Sigma, nearest."""
        return float(sqrt_up(self.sigma_squared) * step)

    def epsilon_cost(self, exposure: Exposure) -> None:
        """Gaussian noise has no epsilon without a delta."""
        return

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """Delta by its exact curve, a little rounded up."""
        norms = exposure.sensitivity
        l0 = math.floor(norms.l0)
        return Fraction(self.delta(epsilon, l0, norms.l2_squared, norms.linf))

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """By L2."""
        return self.rho(exposure.sensitivity.l2_squared)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """By L2."""
        from dpframe.kernel.trade_offs import gaussian_mu_squared  # few sessions need it

        return gaussian_mu_squared(self.sigma_squared, math.ceil(exposure.sensitivity.l2_squared))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One by L2, or one for each of a few entries that move by 1 each."""
        from dpframe.accounting.events import DiscreteGaussianEvent

        sigma, ones = sqrt_down(self.sigma_squared), unit_moves(exposure.sensitivity)
        if ones > 1:
            return (DiscreteGaussianEvent(sigma),) * ones * exposure.repeats
        l2 = sqrt_up(exposure.sensitivity.l2_squared)
        return (DiscreteGaussianEvent(sigma, l2),) * exposure.repeats

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """The pairs of its steps, or smoothed: one by L2, or one for each of a few entries that
        move by 1."""
        from dpframe.accounting.loss_laws import discrete_gaussian_pair

        ones = unit_moves(exposure.sensitivity)
        each = ones > 1 and self.sigma_squared <= largest_stepped
        l2_squared = Fraction(1) if each else exposure.sensitivity.l2_squared
        pair = discrete_gaussian_pair(self.sigma_squared, l2_squared, largest_stepped)
        return [pair] * (ones if each else 1)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation."""
        return log_deviation(self.variance())

    def variance(self) -> float:
        """The variance, in grid steps squared: just below sigma**2 (CKS 2020, Corollary 9).

        From sigma = 4 on the two agree in every digit of a float.
        """
        if self.sigma_squared >= 16:
            return float(self.sigma_squared)
        x = np.arange(1, 40, dtype=np.float64) ** 2
        weights = np.exp(-x * float(1 / (2 * self.sigma_squared)))
        return float(2.0 * (x * weights).sum() / (1.0 + 2.0 * weights.sum()))

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence.

        Exactly: by floats where their error cannot matter, else by 60 digits, see
        `dpframe.mechanisms.gaussian_tail`.

        Parameters
        ----------
        confidence
            Between 0 and 1; a float means the decimal that it prints as.
        cells
            How many independent draws must keep within a together.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        return least_covering(self.sigma_squared, miss_per_cell(confidence, cells))

    def apart(self, missed: Fraction) -> int:
        """An a with P(x - y > a) <= missed, where x and y are independent draws; the least one but
        for `_apart_factor`, which is 1 in every digit of a float from sigma = 2 on.

        P(x - y = d) is exp(-d**2 / (4 sigma**2)) times a sum of exp(-n**2 / sigma**2) over integers
        n, or over halves of odd ones, which is less (Poisson summation: its terms alternate). So
        the difference has the tail of discrete Gaussian noise of twice the variance, times a
        factor.
        """
        whole = 2 * missed / _apart_factor(self.sigma_squared)
        if whole >= 1:  # P(x > y) is below a half
            return 0
        part = DIGITS.divide(Decimal(whole.numerator), Decimal(whole.denominator))
        return least_covering(2 * self.sigma_squared, part)

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(noise > x) for each x, in grid steps; see `gaussian_above`."""
        k = np.floor(x) + 1.0
        beyond = gaussian_above(self.sigma_squared, np.where(k >= 1.0, k, 1.0 - k))
        return np.where(k >= 1.0, beyond, 1.0 - beyond)

    def farthest(self, tier: int) -> int:
        """A place beyond which exp(-tier) lies, and barely more."""
        return math.ceil(math.sqrt(2.0 * tier * self.sigma_squared)) + 1

    def scale_of_sum(self, factors: tuple[int, ...], part: Fraction) -> float:
        """The scale of noise of this kind with the same deviation."""
        squares = Fraction(sum(f * f for f in factors))
        return float(sqrt_up(self.sigma_squared * squares) * part)

    def bound_of_sum(self, terms: int, miss: float) -> float:
        """By Chernoff: ln E[exp(x noise)] is at most x**2 sigma**2 / 2 (Canonne, Kamath and Steinke
        2020, Fact 19).
        """
        return math.sqrt(-2.0 * terms * float(self.sigma_squared) * math.log(miss))

    def log_masses(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """By their squares."""
        return np.asarray(noise.astype(np.float64) ** 2 * -float(1 / (2 * self.sigma_squared)))


@lru_cache(maxsize=256)
def _apart_factor(sigma_squared: Fraction) -> Fraction:
    """The sums of exp(-n**2 / sigma**2) and of exp(-n**2 / (4 sigma**2)) over that of
    exp(-n**2 / (2 sigma**2)) squared, rounded up; beyond sigma = 4 it is 1 + 3 exp(-16 pi**2) at
    most.
    """
    if sigma_squared >= 16:
        return 1 + Fraction(1, 10**60)
    squares = np.arange(1, 160, dtype=np.float64) ** 2
    one, half, quarter = (
        1.0 + 2.0 * float(np.exp(-squares * float(1 / (times * sigma_squared))).sum())
        for times in (1, 2, 4)
    )
    return Fraction(one * quarter / half**2 * (1.0 + 1e-12))


_MOST_ONES: Final = 256


def unit_moves(sensitivity: ExactSensitivity) -> int:
    """The number of entries that move by 1 each, if no entry moves farther and there are at most
    `_MOST_ONES`: the bound by entries is then tighter than the one by their vector. Otherwise 0.
    """
    ones = min(sensitivity.l0, math.floor(sensitivity.l2_squared))
    return ones if sensitivity.linf <= 1 and ones <= _MOST_ONES else 0
