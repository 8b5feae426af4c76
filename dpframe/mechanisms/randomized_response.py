"""Randomised response: the local model, in which no one is trusted with the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import dyadic_down, float_up, sqrt_down
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.mechanism import (
    Choice,
    Exposure,
    ReportMechanism,
    ResponseTask,
    charge_for,
    miss,
    positive_budget,
)
from dpframe.mechanisms.noise import truthful
from dpframe.mechanisms.pure_rho import response_rho

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent

# How far debiased counts of randomised responses are off: their exact law.
#
# With c of n rows in a category, the reports of it are a sum of two binomials: c rows report it
# with probability p = exp(eps) / (exp(eps) + K - 1), the others with q = 1 / (exp(eps) + K - 1),
# for K categories. The estimate is off by the deviation of that sum from its mean, over p - q, and
# by less than 1 for its rounding. How many rows are in the category is private, so the worst c
# counts.

Floats = NDArray[np.float64]
_ALL = 200
"""Up to this many rows every c is tried; above, this many evenly spaced ones, and one report is
added: the quantile changes little from one c to the next.
"""
_SPACED = 33
_MOST_ROWS = 10**7
"""More reports are normal, but for less than the rounding."""
_WIDE = 12.0
"""Standard deviations beyond which nothing is left in double precision."""


def worst_error(
    n: int,  # How many rows there are
    # `p`, `q`: the probability with which a row reports the category, when it is in it and when
    # not.
    p: float,
    q: float,
    miss: float,  # Above 0 and below 1
) -> float:
    """What the estimate of a category is off by with a probability of at most `miss`, for the worst
    number of rows in it; the rounding to an integer included.
    """
    if n > _MOST_ROWS:
        return asymptotic_error(p, q, miss) * math.sqrt(n) + 1
    every = n <= _ALL
    tried = range(n + 1) if every else np.linspace(0, n, _SPACED).astype(np.int64).tolist()
    reports = max(_quantile(c, n - c, p, q, miss) for c in tried)
    return (reports + (0 if every else 1)) / (p - q) + 1


def asymptotic_error(p: float, q: float, miss: float) -> float:
    """The same as a multiple of the root of the number of rows, for many rows: the reports are
    normal then (de Moivre and Laplace), with a variance of p (1 - p) or q (1 - q) each.
    """
    return -NormalDist().inv_cdf(miss / 2) * math.sqrt(max(p * (1 - p), q * (1 - q))) / (p - q)


def _quantile(c: int, rest: int, p: float, q: float, miss: float) -> float:
    """The least a for which the number of reports is further than a from its mean with a
    probability of at most `miss`.
    """
    first, one = _binomial(c, p)
    start, other = _binomial(rest, q)
    mass = _convolve(one, other)
    away = np.abs(np.arange(mass.size) + (first + start) - (c * p + rest * q))
    order = np.argsort(-away, kind="stable")
    beyond = np.cumsum(mass[order])
    within = int(np.searchsorted(beyond, miss, "right"))
    return float(away[order[min(within, order.size - 1)]])


def _binomial(n: int, p: float) -> tuple[int, Floats]:
    """The first count that matters, and the probabilities from it on."""
    if n == 0 or not 0.0 < p < 1.0:
        return n if p >= 1.0 else 0, np.ones(1)
    spread = _WIDE * math.sqrt(n * p * (1 - p)) + 40
    low = max(0, math.floor(n * p - spread))
    high = min(n, math.ceil(n * p + spread))
    counts = np.arange(low, high)
    # ratios of neighbouring probabilities, added up from the mode
    steps = np.log((n - counts) / (counts + 1.0)) + math.log(p) - math.log1p(-p)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(logs - logs.max())
    return low, mass / mass.sum()


def _convolve(one: Floats, other: Floats) -> Floats:
    if min(one.size, other.size) < 500:
        return np.convolve(one, other)
    size = 1 << (one.size + other.size - 1).bit_length()
    product = np.fft.rfft(one, size) * np.fft.rfft(other, size)
    found = np.fft.irfft(product, size)[: one.size + other.size - 1]
    return np.maximum(found, 0.0)


@dataclass(frozen=True, slots=True)
class RandomizedResponse(ReportMechanism):
    """Each row reports its category, or any one at random; the counts of reports are debiased.

    A report is any category with probabilities that differ by a factor of exp(epsilon) at most,
    for any content of the row. So changing a row costs epsilon, and changing k rows k epsilon
    (Warner 1965; Kairouz, Oh and Viswanath 2014). The presence of a row is not hidden: the number
    of reports is the number of rows.
    """

    row_epsilon: Fraction  # What one report costs
    categories: int  # How many there are, at least two, a category for all other values included
    name: ClassVar[str] = "randomized_response"
    label: ClassVar[str] = "randomised response"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Response(self.row_epsilon)

    def __post_init__(self) -> None:
        positive_budget(self.row_epsilon, "row_epsilon")
        if self.categories < 2:
            raise ValueError("randomised response needs at least two categories")

    @classmethod
    def fit(cls, task: ResponseTask, share: Budget) -> Choice:
        """Each row of an individual at an equal part of the cost."""
        if isinstance(share, ZCDP):
            law = cls.for_zcdp(task.rows, share.main, task.categories)
            return Choice(law, charge_for(share, law.rho(task.rows)), "as asked")
        law = cls.for_pure(task.rows, share.main, task.categories)
        return Choice(law, share.of(law.epsilon(task.rows)), "as asked")

    @classmethod
    def for_pure(cls, rows: int, epsilon: Fraction, categories: int) -> Self:
        """Reports that together cost `epsilon` for an individual with at most this many rows."""
        return cls(positive_budget(epsilon, "epsilon") / rows, categories)

    @classmethod
    def for_zcdp(cls, rows: int, rho: Fraction, categories: int) -> Self:
        """Reports that together cost `rho`, within a relative 2**-20 and never more."""
        each = positive_budget(rho, "rho") / rows
        low = sqrt_down(2 * each, 24)  # epsilon**2 / 2 is never less than the cost
        high = 2 * low
        while response_rho(high, categories) <= each:
            low, high = high, 2 * high
        while high - low > low / 2**20:
            middle = dyadic_down((low + high) / 2, 24)
            if response_rho(middle, categories) <= each:
                low = middle
            else:
                high = middle
        return cls(low, categories)

    @property
    def scale(self) -> Fraction:
        """The t of exp(score / t), where the truth scores 1 and all else 0."""
        return 1 / self.row_epsilon

    @property
    def truthful(self) -> float:
        """g, about: how often a report is the truth rather than any category at random."""
        return truthful(self.row_epsilon, self.categories)

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many reports."""
        return self.epsilon(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many reports."""
        return self.rho(exposure.repeats)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many reports."""
        from dpframe.kernel.trade_offs import response_mu_squared  # few sessions need it

        return exposure.repeats * response_mu_squared(self.row_epsilon, self.categories)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each report."""
        from dpframe.accounting.events import RandomizedResponseEvent

        event = RandomizedResponseEvent(self.row_epsilon, self.categories)
        return (event,) * exposure.repeats

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the number of reports per one that is the truth."""
        return -math.log(self.truthful)

    def details(self) -> str:
        """The share of true reports."""
        return (
            f"each row reports the truth {self.truthful:.3g} of the time and otherwise any of "
            f"{self.categories} categories"
        )

    def least_repeats(self, rows: int, groups: int) -> int:
        """Each row reports."""
        return max(1, rows)

    def epsilon(self, rows: int) -> Fraction:
        """The cost of changing this many rows, exactly."""
        return rows * self.row_epsilon

    def rho(self, rows: int) -> Fraction:
        """The zCDP cost of changing this many rows, if each reports on its own; rounded up.

        See `dpframe.mechanisms.pure_rho`.
        """
        return rows * response_rho(self.row_epsilon, self.categories)

    def error(
        self,
        confidence: float | Fraction,  # Between 0 and 1, exclusive
        rows: float,  # How many rows there are
        cells: int = 1,  # How many counts must keep within it together (union bound)
    ) -> float:
        """With this confidence a debiased count is off by no more than this, however many of the
        rows it counts; rounded up.

        From the exact law of the reports, two binomials, with the worst of all counts; the rounding
        of the result to an integer adds 1. See `dpframe.mechanisms.randomized_response`. Raises
        `InvalidBounds` when the confidence does not lie between 0 and 1.
        """
        found = worst_error(math.ceil(rows), *self._chances, self._miss_per_cell(confidence, cells))
        return float_up(Fraction(found) * (1 + Fraction(1, 2**30)))

    def error_per_root(self, confidence: float | Fraction, cells: int = 1) -> float:
        """The error in multiples of the root of the number of rows, where these are many."""
        return asymptotic_error(*self._chances, self._miss_per_cell(confidence, cells))

    @property
    def _chances(self) -> tuple[float, float]:
        """About how often a row reports its category, and how often any one other."""
        rest = math.exp(-float(self.row_epsilon))
        total = 1 + (self.categories - 1) * rest
        return 1 / total, rest / total

    @staticmethod
    def _miss_per_cell(confidence: float | Fraction, cells: int) -> float:
        return float(miss(confidence) / cells)
