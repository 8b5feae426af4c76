"""Discrete box noise: one draw for several numbers that one row moves within a box.

What one row adds to several numbers at once, the j-th by at most its width w_j, lies in a box.
Noise for each number on its own, at a part of epsilon each, pays for changes that no row makes:
for as many times w_j in one number as there are numbers. The K-norm mechanism of the box (Hardt
and Talwar 2010) draws all noise jointly, P(z) ~ exp(-epsilon max(|z_j| / w_j)), as the noise for
the largest of several changes (Steinke and Ullman 2016). Among several shapes with the same cost
the least that holds all changes has the least error (Awan and Slavkovic 2021), and in pure
privacy it is drawn in closed form (Joseph and Yu 2023, arXiv 2309.15790). In the limit of fine
steps a number's deviation is w_j sqrt((d + 1) (d + 2) / 3) / epsilon, where d times Laplace noise
has sqrt(2) d w_j / epsilon.

On the integers, with box(R) all z with |z_j| <= floor(R w_j / m), and N(z) the least integer R >= 0
whose box holds z, P(z) ~ exp(-epsilon N(z) / m). Let k rows move the numbers by v, |v_j| <= k w_j.
If z is in box(R), then |z_j + v_j| <= floor(R w_j / m) + k w_j = floor((R + k m) w_j / m), so z + v
is in box(R + k m). Hence N(z + v) <= N(z) + k m and, as -v is such a move too, |N(z + v) - N(z)| <=
k m: probabilities differ by a factor of exp(k epsilon) at most, exactly, and by that where z = 0
and one number moves by k w_j. Vectors of different groups are independent, so k_1, k_2, ... rows in
several groups cost epsilon (k_1 + k_2 + ...), which is what as many rows in one group cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import dyadic_down, float_up, sqrt_down
from dpframe.errors import InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import combined
from dpframe.mechanisms.combined import Boxes, CombinableNoise, Tail, tail_in_box
from dpframe.mechanisms.mechanism import (
    AdditiveTask,
    Box,
    Choice,
    Exposure,
    VectorMechanism,
    charge_for,
    log_deviation,
    log_tier,
    positive_budget,
)
from dpframe.mechanisms.pure_rho import pure_rho
from dpframe.samplers.box import (
    MAX_BOX_DIMENSIONS,
    MAX_BOX_EPSILON,
    MAX_BOX_REACH,
    MAX_BOX_WIDTH,
    MAX_FINENESS,
)

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


Floats = NDArray[np.float64]

_SMALL: Final = Fraction(1, 1 << 40)
_LARGE: Final = 1 << 20
_SURE: Final = 1e-10
"""Relative to numbers between these, the error of floats is less than a ten-thousandth of
that."""
_FINE: Final = 1 << 10
"""Radii in which the probability falls by a factor of e, at least: deviations are then less than
0.05% above those of finer radii."""
_LONGEST: Final = 1024
_NODES: Final = 200


@dataclass(frozen=True, slots=True)
class DiscreteBox(VectorMechanism, CombinableNoise):
    """Noise z on vectors of integers with P(z) proportional to exp(-epsilon N(z) / fineness), where
    N(z) is the least integer R >= 0 with |z_j| <= floor(R w_j / fineness) for all widths w_j.

    Added to vectors whose j-th number one row moves by w_j at most, it costs epsilon for each row
    that an individual has in all vectors together. Here k rows take a vector from box(R) to
    box(R + k fineness) at most, and vectors of different groups are drawn independently (the K-norm
    mechanism of Hardt and Talwar 2010, for the box).

    Raises
    ------
    InvalidBudget
        When a width or the fineness is above 2**54 times epsilon.
    ValueError
        When a parameter is invalid.
    """

    # What one row costs, exactly. Above 2**14 it is lowered to that.
    epsilon: Fraction
    # How far one row moves each number at most, in steps; up to 64 numbers, from 1 to 2**32 each.
    widths: tuple[int, ...]
    # How many radii make one row's move: a power of two. For the noise only, the cost is the same
    # at any.
    fineness: int
    rows: int  # How many rows one individual has over all vectors
    name: ClassVar[str] = "discrete_box"
    label: ClassVar[str] = "discrete box"
    has_rough_tails: ClassVar[bool] = True

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Box(self.epsilon, self.widths, self.fineness, ())

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction | int) or self.epsilon <= 0:
            raise ValueError(f"epsilon must be an exact number above 0, not {self.epsilon!r}")
        if not 1 <= len(self.widths) <= MAX_BOX_DIMENSIONS:
            raise ValueError(f"a box has 1 to {MAX_BOX_DIMENSIONS} widths")
        if not all(type(w) is int and 1 <= w <= MAX_BOX_WIDTH for w in self.widths):
            raise ValueError("widths are whole numbers from 1 to 2**32")
        if not _is_power_of_two(self.fineness) or self.fineness > MAX_FINENESS:
            raise ValueError("the fineness is a power of two up to 2**30")
        if type(self.rows) is not int or self.rows < 1:
            raise ValueError("an individual has at least one row")
        epsilon = min(Fraction(self.epsilon), MAX_BOX_EPSILON)
        if epsilon.numerator.bit_length() + epsilon.denominator.bit_length() > _LONGEST:
            epsilon = dyadic_down(epsilon)
        if max(*self.widths, self.fineness) > MAX_BOX_REACH * epsilon:
            raise InvalidBudget(
                "the scale of discrete box noise would be above 2**54 grid steps, "
                "more than can be drawn",
                remedy=("spend more", "give narrower bounds or a smaller row limit"),
            )
        object.__setattr__(self, "epsilon", epsilon)

    @classmethod
    def for_pure(cls, widths: tuple[int, ...], rows: int, epsilon: Fraction) -> Self:
        """The least noise that costs `epsilon` for an individual with at most this many rows."""
        each = positive_budget(epsilon, "epsilon") / rows
        if max(widths, default=1) == 1:  # all radii up to the next whole row have the same box
            return cls(each, widths, 1, rows)
        wanted = math.ceil(min(each, MAX_BOX_EPSILON) * _FINE)
        return cls(each, widths, 1 << (wanted - 1).bit_length(), rows)

    @classmethod
    def for_zcdp(cls, widths: tuple[int, ...], rows: int, rho: Fraction) -> Self:
        """The least noise that costs at most `rho`, within a relative 2**-40."""
        return cls.for_pure(widths, rows, _epsilon_within(positive_budget(rho, "rho")))

    @classmethod
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """Noise by the box, which spends no delta, where one is known and no less than that."""
        if task.box is None or task.box.arches:
            return None
        widths, rows = task.box.widths, task.box.rows
        reason = "one draw for all of them, by the box that one row moves them within"
        if isinstance(share, ZCDP):
            law = cls.for_zcdp(widths, rows, share.main)
            return Choice(law, charge_for(share, law.rho), reason)
        law = cls.for_pure(widths, rows, share.main)
        return Choice(law, share.of(law.whole_epsilon), reason)

    @property
    def whole_epsilon(self) -> Fraction:
        """What an individual's rows cost together, exactly."""
        return self.rows * self.epsilon

    @property
    def rho(self) -> Fraction:
        """What an individual's rows cost in zCDP: that of any mechanism of this epsilon, epsilon
        tanh(epsilon / 2), rounded up.

        It grows convexly from 0, so spread over independent vectors the rows cost no more; without
        a limit on the rows in one vector, no less either. Nor is a box much better than the
        mechanism that it is worst for: far out, one row changes probabilities by exp(epsilon) or
        exp(-epsilon) almost always where it moves all numbers by their widths.
        """
        return pure_rho(self.whole_epsilon)

    def shown_scale(self, step: Fraction) -> float:
        """The largest width over epsilon, rounded up."""
        return float_up(max(self.widths) * step / self.epsilon)

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """The cost of all rows of an individual."""
        return self.whole_epsilon

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of all rows of an individual."""
        return self.rho

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """Of any mechanism of this epsilon."""
        from dpframe.kernel.trade_offs import pure_mu_squared  # few sessions need it

        return pure_mu_squared(self.whole_epsilon)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One that costs no less than any mechanism of this epsilon."""
        from dpframe.accounting.events import PermuteAndFlipEvent

        return (PermuteAndFlipEvent(self.whole_epsilon),) * exposure.repeats

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the deviation, the mean over the numbers."""
        found = self.variances()
        return sum(map(log_deviation, found)) / len(found)

    def details(self) -> str:
        """How many numbers are drawn jointly."""
        return f"one draw for {len(self.widths)} numbers" if len(self.widths) > 1 else ""

    def variances(self) -> tuple[float, ...]:
        """The variance of each number, in steps squared; right to about one part in 1000."""
        return combined.variances(self.epsilon / self.fineness, self.widths, self.fineness)

    def radius_law(
        self,
        miss: float,  # The probability that may lie beyond the last value
    ) -> tuple[Floats, Floats]:
        """The law of the radius R in at most 200 values: given it, number j is uniform on the whole
        numbers up to floor(R widths[j] / fineness) in size, independently of the others.

        Values are those at the ends of groups, so noise is a little too wide rather than too
        narrow; weights are probabilities.
        """
        radii = self.radii(log_tier(miss)).group(_NODES, miss)
        return radii.last, radii.weights

    def covers(self, box: Box) -> bool:
        """Whether it covers these widths and rows."""
        return (self.widths, self.rows, ()) == (box.widths, box.rows, box.arches)

    def requires(self, factors: tuple[int, ...]) -> None:
        """Require a factor for each number."""
        if len(factors) != len(self.widths):
            raise ValueError("combined noise has one factor for each number of the vector")

    def alike(self, factors: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes; numbers of one width have the largest first."""
        pairs = sorted(zip(self.widths, map(abs, factors), strict=True))
        sizes = {width: [f for w, f in pairs if w == width] for width in {*self.widths}}
        return tuple(sizes[width].pop() for width in self.widths)

    def boxes(self, miss: float) -> Boxes:
        """Given the radius, numbers are uniform within a box."""
        return Boxes(*self.radius_law(miss), self.widths, self.fineness)

    def scale_of_sum(self, factors: tuple[int, ...], part: Fraction) -> float:
        """How far one row moves it, over epsilon."""
        moved = sum(abs(f) * w for f, w in zip(factors, self.widths, strict=True))
        return float_up(moved * part / self.epsilon)

    def variance_of_sum(self, factors: tuple[int, ...]) -> float:
        """Numbers have signs of their own, so variances add up."""
        return sum(f * f * v for f, v in zip(factors, self.variances(), strict=True))

    def oddness_of_sum(self, factors: tuple[int, ...]) -> float:
        """P(sum is odd)."""
        odd = tuple(factor % 2 != 0 for factor in factors)
        return combined.oddness(self.epsilon / self.fineness, self.widths, self.fineness, odd)

    def tail_of_sum(self, factors: tuple[int, ...], tier: int, rough: bool) -> Tail:
        """See `CombinableNoise.tail_of_sum`."""
        numbers = zip(map(abs, factors), self.widths, self.variances(), strict=True)
        used = sorted(((f, width, variance) for f, width, variance in numbers if f), reverse=True)
        sides = [(factor, width) for factor, width, _ in used]
        return tail_in_box(self.radii(tier), sides, [variance for *_, variance in used], rough)

    def radii(self, nats: int) -> combined.Radii:
        """The law of the radius in fine blocks, to exp(-nats) or so."""
        return combined.radii_of(self.epsilon / self.fineness, self.widths, self.fineness, nats)

    def log_masses(self, noise: NDArray[np.int64]) -> Floats:
        """By the least radius whose box holds a vector."""
        shares = np.abs(noise.astype(np.float64)) / np.array(self.widths, np.float64)
        radius = np.ceil(shares.max(axis=-1, initial=0.0) * self.fineness)
        return np.asarray(radius * -float(self.epsilon / self.fineness))


def _is_power_of_two(value: int) -> bool:
    return type(value) is int and value > 0 and value & (value - 1) == 0


def _epsilon_within(rho: Fraction) -> Fraction:
    """The largest epsilon with epsilon tanh(epsilon / 2) at most rho, rounded down: epsilon**2 / 2
    and epsilon are never less.
    """
    low = max(dyadic_down(sqrt_down(2 * rho)), dyadic_down(rho))
    if pure_rho(low) > rho:  # where both are about the same but for roundings
        low *= 1 - Fraction(1, 1 << 40)
    high = 2 * low
    while _is_within(high, rho):
        low, high = high, 2 * high
    while high - low > low / (1 << 40):
        middle = dyadic_down((low + high) / 2)
        if _is_within(middle, rho):
            low = middle
        else:
            high = middle
    return low


def _is_within(epsilon: Fraction, rho: Fraction) -> bool:
    """Whether `pure_rho` is at most rho; by floats where their error cannot matter."""
    if _SMALL < epsilon < _LARGE and rho < _LARGE:
        about, wanted = float(epsilon), float(rho)
        about *= math.tanh(about / 2.0)
        if abs(about - wanted) > _SURE * wanted:
            return about < wanted
    return pure_rho(epsilon) <= rho
