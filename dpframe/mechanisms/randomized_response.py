"""Randomised response: the local model, in which no one is trusted with the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import dyadic_down, float_up, sqrt_down
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import miss
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import Choice, ReportMechanism, charged
from dpframe.mechanisms.noise import truthful
from dpframe.mechanisms.pure_rho import response_rho
from dpframe.mechanisms.response_error import asymptotic_error, worst_error
from dpframe.mechanisms.rounding import positive_budget
from dpframe.mechanisms.tasks import ResponseTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


@dataclass(frozen=True, slots=True)
class RandomizedResponse(ReportMechanism):
    """Each row reports its category, or any one at random; the counts of reports are debiased.

    A report is any category with probabilities that differ by a factor of exp(epsilon) at most,
    for any content of the row. So changing a row costs epsilon, and changing k rows k epsilon
    (Warner 1965; Kairouz, Oh and Viswanath 2014). The presence of a row is not hidden: the number
    of reports is the number of rows.

    Parameters
    ----------
    row_epsilon
        What one report costs.
    categories
        How many there are, at least two, a category for all other values included.
    """

    row_epsilon: Fraction
    categories: int
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
    def fitted(cls, task: ResponseTask, share: Budget) -> Choice:
        """Each row of an individual at an equal part of the cost."""
        if isinstance(share, ZCDP):
            law = cls.for_zcdp(task.rows, share.main, task.categories)
            return Choice(law, charged(share, law.rho(task.rows)), "as asked")
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

    def error(self, confidence: float | Fraction, rows: float, cells: int = 1) -> float:
        """With this confidence a debiased count is off by no more than this, however many of the
        rows it counts; rounded up.

        From the exact law of the reports, two binomials, with the worst of all counts; the
        rounding of the result to an integer adds 1. See `dpframe.mechanisms.response_error`.

        Parameters
        ----------
        confidence
            Between 0 and 1, exclusive.
        rows
            How many rows there are.
        cells
            How many counts must keep within it together (union bound).

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        found = worst_error(math.ceil(rows), *self._chances, self._missed(confidence, cells))
        return float_up(Fraction(found) * (1 + Fraction(1, 2**30)))

    def error_per_root(self, confidence: float | Fraction, cells: int = 1) -> float:
        """The error in multiples of the root of the number of rows, where these are many."""
        return asymptotic_error(*self._chances, self._missed(confidence, cells))

    @property
    def _chances(self) -> tuple[float, float]:
        """About how often a row reports its category, and how often any one other."""
        rest = math.exp(-float(self.row_epsilon))
        total = 1 + (self.categories - 1) * rest
        return 1 / total, rest / total

    @staticmethod
    def _missed(confidence: float | Fraction, cells: int) -> float:
        return float(miss(confidence) / cells)
