"""Discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.accounting.gaussian_noise import delta_bound, variance_for
from dpframe.core.budget import ZCDP, ApproxDP, Budget
from dpframe.core.exact import show, sqrt_down, sqrt_up
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.errors import InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.kernel.tails import TWO, D, gaussian_tail
from dpframe.mechanisms.combined import IndependentNoise
from dpframe.mechanisms.mechanism import (
    DIGITS,
    AdditiveTask,
    Choice,
    Exposure,
    charge_for,
    in_range,
    log_deviation,
    miss_per_cell,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.losses import Translated

# The upper tails of the normal and the discrete Gaussian law for whole arrays, rounded up.

Floats = NDArray[np.float64]

_STEP: Final = 2.0**-7
_FARTHEST: Final = 38.0
_SUMMED: Final = 64.0
_UP: Final = 1.0 + 2.0**-16
"""Above the error of interpolation: the logarithm of the tail is concave, its second derivative is
at most 1 in size, and so a chord over a step lies at most step**2 / 8 = 2**-17 below it."""


def normal_above(z: Floats) -> Floats:
    """P(Z > z) of a standard normal Z: at least that, and at most 2**-15 of it more.

    Beyond 38 it is that at 38, about 3e-316.
    """
    knots, logs = _table()
    tail: Floats = np.exp(np.interp(np.abs(z), knots, logs)) * _UP
    return np.where(z >= 0, tail, np.minimum(1.0, 1.0 - tail / (_UP * _UP)))


@cache
def _table() -> tuple[Floats, Floats]:
    knots = np.arange(0.0, _FARTHEST + _STEP, _STEP)
    knots = knots[knots <= _FARTHEST]
    logs = [math.log(math.erfc(z / math.sqrt(2)) / 2) for z in knots.tolist()]
    return knots, np.asarray(logs)


def gaussian_above(sigma_squared: Fraction, k: Floats) -> Floats:
    """P(noise >= k) of discrete Gaussian noise for whole k of at least 1: above it by 1 in 2**14 at
    most, never below but for the last digits of floats.

    From the series up to sigma = 64. Beyond that it comes from the continuous law. A term is
    close to the integral over the unit interval around it, up to (k**2 / sigma**2 + 1) / (24
    sigma**2) of it (the remainder of the midpoint rule), which is covered.
    """
    sigma = math.sqrt(sigma_squared)
    if sigma <= _SUMMED:
        tails = _tails(float(1 / (2 * sigma_squared)), math.ceil(39 * sigma) + 2)
        return np.asarray(tails[np.minimum(k, tails.size - 1.0).astype(np.int64)])
    z = np.minimum((k - 0.5) / sigma, 40.0)
    return normal_above(z) * (1.0 + (z * z + 1.0) / (20.0 * float(sigma_squared)))


@lru_cache(maxsize=64)
def _tails(half: float, reach: int) -> Floats:
    """P(noise >= k) for k = 0, 1, ..., reach; the first one is never needed."""
    terms = np.exp(-(np.arange(reach + 1, dtype=np.float64) ** 2) * half)
    sums: Floats = np.cumsum(terms[::-1])[::-1]
    return np.asarray(sums / (2.0 * sums[0] - 1.0))


# Tails of discrete Gaussian noise: the least whole number that is exceeded rarely enough.
#
# Floats find it almost always: it is accepted only where their error cannot matter. Else the upper
# bound of `dpframe.kernel.tails` decides, which is equal to the tail to 30 digits. A tie cannot be
# distinguished from an error of the last digits; then the number is taken to be too small.

_SERIES: Final = 512.0
"""Up to this sigma floats add up the terms."""


@lru_cache(maxsize=1024)
def least_covering(sigma_squared: Fraction, miss: Decimal) -> int:
    """The least a >= 0 with P(|X| > a) <= miss, a probability between 0 and 1."""
    low, high = _by_floats(sigma_squared, float(miss))
    if low == high:
        return low
    step = 1
    while low > 0 and _is_covering(sigma_squared, low - 1, miss):
        low, high, step = max(0, low - step), low - 1, 2 * step
    step = 1
    while not _is_covering(sigma_squared, high, miss):
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        if _is_covering(sigma_squared, middle, miss):
            high = middle
        else:
            low = middle + 1
    return high


def _by_floats(sigma_squared: Fraction, miss: float) -> tuple[int, int]:
    """Two numbers that are the same where it is certain, else about right."""
    sigma = math.sqrt(sigma_squared)
    normal = -NormalDist().inv_cdf(max(miss / 2, 1e-300))
    if sigma <= _SERIES and miss > 1e-290:
        reach = math.ceil(sigma * (normal + 9.0)) + 2
        k = np.arange(1, reach + 1, dtype=np.float64)
        terms = np.exp(-(k * k) * float(1 / (2 * sigma_squared)))
        tails = np.append(np.cumsum(terms[::-1])[::-1], 0.0)  # tails[a] = sum over k > a
        tails *= 2.0 / (1.0 + 2.0 * tails[0])
        low, high = (int(np.count_nonzero(tails * s > miss)) for s in (1.0 - 1e-11, 1.0 + 1e-11))
        return low, high
    edge = sigma * normal - normal / (24.0 * sigma) - 0.5
    error = 1e-5 + abs(edge) * 2.0**-42 if miss > 1e-290 else 1.0 + abs(edge) * 2.0**-42
    return max(0, math.ceil(edge - error)), max(0, math.ceil(edge + error))


def _is_covering(sigma_squared: Fraction, a: int, miss: Decimal) -> bool:
    """Whether P(|X| > a) <= miss for certain."""
    return D.multiply(TWO, gaussian_tail(sigma_squared, a + 1)[1]) <= miss


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(IndependentNoise):
    """Noise with P(x) proportional to exp(-x**2 / (2 sigma_squared)) on the integers.

    Added to every entry of an integer vector whose L2 sensitivity is `l2`, it is
    (l2**2 / (2 sigma_squared))-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4; the entries are
    independent, so their costs add up). What it costs as (epsilon, delta): see `delta`.

    Raises
    ------
    InvalidBudget
        When sigma_squared is above 2**112.
    ValueError
        When sigma_squared is not an exact number above 0.
    """

    # In grid steps squared. Below 2**-20 it is raised to that.
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
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by L2, where the measure knows it."""
        moved = task.sensitivity
        match share:
            case ZCDP():
                law = cls.for_zcdp(moved.l2_squared, share.main)
                cost = charge_for(share, law.rho(moved.l2_squared))
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
        l0: int,  # How many entries of the vector one unit can change
        l2_squared: Fraction,  # The squared L2 sensitivity, in grid steps squared
        # `epsilon`, `delta`: above 0; delta below 1.
        epsilon: Fraction,
        delta: Fraction,
        # The largest change of one entry, in grid steps, if it is known: less noise is needed where
        # that is 1.
        linf: Fraction | None = None,
    ) -> Self:
        """The least noise that is provably (epsilon, delta)-differentially private.

        See `dpframe.accounting.gaussian_noise` for the bounds and their sources.
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
        self,
        epsilon: Fraction,  # Above 0
        l0: int,  # How many entries of the vector one unit can change
        l2_squared: Fraction,  # The squared L2 sensitivity, in grid steps squared
        linf: Fraction | None = None,  # The largest change of one entry, if it is known
    ) -> float:
        """An upper bound on the delta at this epsilon, rounded up; at most 1."""
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
        from dpframe.accounting.losses import discrete_gaussian_pair

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

    def quantile(
        self,
        # Between 0 and 1; a float means the decimal that it prints as.
        confidence: float | Fraction,
        cells: int = 1,  # How many independent draws must keep within a together
    ) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence.

        Exactly: by floats where their error cannot matter, else by 60 digits, see
        `dpframe.mechanisms.discrete_gaussian`. Raises `InvalidBounds` when the confidence does not
        lie between 0 and 1.
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
