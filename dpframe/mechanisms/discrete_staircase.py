"""Discrete staircase noise: the least squared error of one number in pure DP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget, PureDP
from dpframe.core.exact import float_up, sqrt_up
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combined import IndependentNoise
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace
from dpframe.mechanisms.mechanism import (
    DIGITS,
    AdditiveTask,
    Choice,
    Exposure,
    log_deviation,
    miss_per_cell,
)

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


LEAST_RATE: Final = Fraction(1, 8)
MOST_RATE: Final = Fraction(64)
MOST_WIDTH: Final = 1 << 56
_MOST_MOVES: Final = 1 << 10
"""Each number that moves is an event."""
_WORTH: Final = 0.95
"""Staircase noise is chosen where its variance is below this share of discrete Laplace noise's."""
_BITS: Final = 20
"""The bits of the share of a level that the first one has: plans should be the same on machines
whose floats differ in their last bits.
"""


@dataclass(frozen=True, slots=True)
class DiscreteStaircase(IndependentNoise):
    """Noise with P(x) proportional to exp(-rate level(|x|)) on the integers, where level 0 has the
    magnitudes below `inner` and each level after it the next `width` magnitudes. This is the
    discrete staircase law of Geng and Viswanath 2015, "The optimal noise-adding mechanism in
    differential privacy", Section IV.

    Guarantee
    ---------
    If one individual moves at most l0 of the integers, each by at most linf, the noise is (l0
    ceil(linf / width) rate)-differentially private.

    Proof
    -----
    level(m) = ceil((m - inner + 1) / width) for m >= inner, and 0 below, so level(m + d) <=
    level(m) + ceil(d / width) for every d >= 0, and level never falls. As |x + d| <= |x| + |d|, one
    number that moves by d changes each probability by a factor of at most
    exp(rate ceil(|d| / width)). Noises are independent, so the factors of the l0 numbers that move
    multiply.

    Raises
    ------
    ValueError
        When a parameter is out of range.
    """

    rate: Fraction  # The rate of one level, from 1/8 to 64
    width: int  # The width of each level but the first, in grid steps, from 1 to 2**56
    inner: int  # How many magnitudes level 0 has, from 1 to `width`
    name: ClassVar[str] = "discrete_staircase"
    label: ClassVar[str] = "discrete staircase"
    norm: ClassVar[str] = "by Linf"
    unavailable: ClassVar[tuple[str, str]] = (
        "staircase noise is for sessions in pure DP, with an epsilon between 1/8 and 64",
        "leave mechanism= out, or open the session with an epsilon alone",
    )

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Staircase(self.rate, self.width, self.inner)

    def __post_init__(self) -> None:
        rate, width, inner = Fraction(self.rate), int(self.width), int(self.inner)
        if not (LEAST_RATE <= rate <= MOST_RATE and 1 <= inner <= width <= MOST_WIDTH):
            raise ValueError("a parameter of staircase noise is out of range")
        if (rate, width, inner) != (self.rate, self.width, self.inner):
            raise ValueError("the parameters of staircase noise are exact")
        object.__setattr__(self, "rate", rate)

    @classmethod
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by the number and the size of moves, in pure DP alone: elsewhere privacy losses
        compose better by discrete Laplace and Gaussian noise.
        """
        moved = task.sensitivity
        width = math.ceil(moved.linf)
        if not isinstance(share, PureDP) or not 1 <= moved.l0 <= _MOST_MOVES or width > MOST_WIDTH:
            return None
        rate = share.main / moved.l0
        if not LEAST_RATE <= rate <= MOST_RATE:
            return None
        law = cls(rate, width, least_inner(rate, width))
        if task.mechanism == "auto":
            laplace = DiscreteLaplace.for_pure(moved.l1, share.main).variance()
            if law.variance() > _WORTH * laplace:
                return None
        return Choice(law, share, "less expected error here than discrete Laplace by L1")

    # -- what it costs --------------------------------------------------------------------------

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """By the number of moves and their size, exactly."""
        moved = exposure.sensitivity
        return moved.l0 * math.ceil(moved.linf / self.width) * self.rate

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """epsilon**2 / 2 for each number that moves (Bun and Steinke 2016, Proposition 1.4)."""
        moved = exposure.sensitivity
        each = math.ceil(moved.linf / self.width) * self.rate
        return moved.l0 * each * each / 2

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of randomised response with the same epsilon, which bounds the cost of each
        number that moves (Kairouz, Oh and Viswanath 2015).
        """
        from dpframe.kernel.trade_offs import response_mu_squared  # few sessions need it

        moved = exposure.sensitivity
        each = math.ceil(moved.linf / self.width) * self.rate
        return moved.l0 * response_mu_squared(each, 2)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """A randomised response for each number that moves: every mechanism with a pure epsilon
        follows from one with that epsilon (Kairouz, Oh and Viswanath 2015).
        """
        from dpframe.accounting.events import RandomizedResponseEvent

        moved = exposure.sensitivity
        each = math.ceil(moved.linf / self.width) * self.rate
        return (RandomizedResponseEvent(each, 2),) * (moved.l0 * exposure.repeats)

    # -- how far off it is ----------------------------------------------------------------------

    @property
    def scale(self) -> Fraction:
        """What discrete Laplace noise of the same epsilon has: width / rate, in grid steps."""
        return self.width / self.rate

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    def details(self) -> str:
        """How wide the first level is, in each direction."""
        return (
            f"the first step of the staircase {self.inner / self.width:.3g} as wide as the others"
        )

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation."""
        return log_deviation(self.variance())

    def variance(self) -> float:
        """In grid steps squared, by sums over levels; nearest float but for its last digits."""
        return _variance(float(self.rate), self.width, self.inner)

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence, evaluated to
        60 digits. Raises `InvalidBounds` when the confidence does not lie between 0 and 1.
        """
        missed = miss_per_cell(confidence, cells)
        low, high = -1, self.inner + self.width
        while self._beyond(high) > missed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if self._beyond(middle) > missed:
                low = middle
            else:
                high = middle
        return high

    def _beyond(self, a: int) -> Decimal:
        """P(|noise| > a), for a of at least 0."""
        with localcontext(DIGITS):
            q = (-Decimal(self.rate.numerator) / Decimal(self.rate.denominator)).exp()
            all_levels = 2 * self.width * q / (1 - q)
            total = 2 * self.inner - 1 + all_levels
            if a < self.inner:
                return (2 * (self.inner - 1 - a) + all_levels) / total
            full, part = divmod(a - self.inner + 1, self.width)
            rest = self.width - part + self.width * q / (1 - q)
            return 2 * q ** (full + 1) * rest / total

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(noise > x) for each x, in grid steps, to about 12 digits."""
        q, width, inner = math.exp(-float(self.rate)), float(self.width), float(self.inner)
        geometric = q / -math.expm1(-float(self.rate))
        total = 2.0 * inner - 1.0 + 2.0 * width * geometric
        whole = np.floor(x)
        a = np.where(whole >= 0.0, whole, -whole - 1.0)  # P(n > a) = 1 - P(n > -a - 1)
        full = np.floor(np.maximum(a - inner + 1.0, 0.0) / width)
        part = np.maximum(a - inner + 1.0, 0.0) - full * width
        outer = np.exp(-float(self.rate) * (full + 1.0)) * (width - part + width * geometric)
        beyond = np.where(a < inner, inner - 1.0 - a + width * geometric, outer) / total
        return np.asarray(np.where(whole >= 0.0, beyond, 1.0 - beyond))

    def farthest(self, tier: int) -> int:
        """A place beyond which exp(-tier) lies, and barely more."""
        return self.inner + self.width * (math.ceil(tier / self.rate) + 1)

    def scale_of_sum(self, factors: tuple[int, ...], part: Fraction) -> float:
        """The scale of noise of this kind with the same deviation."""
        return float_up(self.scale * sqrt_up(Fraction(sum(f * f for f in factors))) * part)

    def log_masses(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """By their levels."""
        magnitude = np.abs(noise.astype(np.float64))
        level = np.ceil(np.maximum(magnitude - (self.inner - 1), 0.0) / self.width)
        return np.asarray(-float(self.rate) * level)


@lru_cache(maxsize=256)
def least_inner(rate: Fraction, width: int) -> int:
    """How many magnitudes the first level should have for the least variance.

    Its share of a level in the continuous law is that of Geng and Viswanath 2015, Section V:
    -b / (1 - b) + (b - 2 b**2 + 2 b**4 - b**5)**(1/3) / (2**(1/3) (1 - b)**2), b = exp(-rate). Any
    number is as private.
    """
    b = math.exp(-float(rate))
    root = math.cbrt((b - 2.0 * b**2 + 2.0 * b**4 - b**5) / 2.0)
    share = min(max(-b / (1.0 - b) + root / (1.0 - b) ** 2, 0.0), 1.0)
    near = (2 * width * round(share * 2**_BITS) + (1 << _BITS)) >> (_BITS + 1)
    near = min(max(near, 1), width)
    tries = range(max(1, near - 1), min(width, near + 1) + 1) if width < 1 << 10 else [near]
    return min(tries, key=lambda inner: (_variance(float(rate), width, inner), inner))


def _variance(rate: float, width: int, inner: int) -> float:
    """Sums of squares over the magnitudes of each level, by the moments of a geometric number.

    With b = inner + j width, the squares of level j + 1 sum to width b**2 + b width (width - 1) +
    (width - 1) width (2 width - 1) / 6 on each side.
    """
    q, one_less = math.exp(-rate), -math.expm1(-rate)
    s0, s1, s2 = 1.0 / one_less, q / one_less**2, q * (1.0 + q) / one_less**3
    w, r = float(width), float(inner)
    squares = w * (r * r * s0 + 2.0 * r * w * s1 + w * w * s2)
    products = w * (w - 1.0) * (r * s0 + w * s1)
    within = (w - 1.0) * w * (2.0 * w - 1.0) / 6.0 * s0
    center = (r - 1.0) * r * (2.0 * r - 1.0) / 6.0
    total = 2.0 * r - 1.0 + 2.0 * w * q * s0
    return 2.0 * (center + q * (squares + products + within)) / total
