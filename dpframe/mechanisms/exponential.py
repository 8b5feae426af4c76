"""The exponential mechanism: private choice, cheaper under zCDP than its epsilon suggests."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import float_up, sqrt_up
from dpframe.core.score_range import ScoreRange
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import DIGITS, miss
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.rounding import (
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.mechanisms.scaled_selection import ScaledSelection, required_ranges
from dpframe.mechanisms.tasks import SelectionTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


@dataclass(frozen=True, slots=True)
class Exponential(ScaledSelection):
    """A candidate chosen with probability proportional to weight * exp(score / scale).

    Sensitivity enters as the *range* of score changes: the largest minus the smallest change of any
    candidate's score between neighbours. It is twice the sensitivity in general and once when all
    scores move the same way (monotonic scores). The probability of a choice changes by at most
    exp(range / scale). Its own score contributes exp(-change / scale), and the normaliser at most
    exp(largest change / scale) (McSherry and Talwar 2007; Dwork and Roth 2014, Theorem 3.10). The
    range in place of twice the sensitivity is from Durfee and Rogers 2019, "bounded range".
    """

    name: ClassVar[str] = "exponential"
    label: ClassVar[str] = "exponential mechanism"

    draws_points: ClassVar[bool] = True
    adds_squares: ClassVar[frozenset[str]] = frozenset({"rho"})

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Exponential(self.scale)

    @classmethod
    def for_rho(cls, moved: ScoreRange, rho: Fraction) -> Self:
        """By the sum of squared ranges."""
        return cls.for_zcdp(moved.l2_squared, rho)

    @classmethod
    def is_preferred(cls, task: SelectionTask, share: Budget) -> bool:
        """In zCDP, and where candidates stand for several points."""
        return task.weighted or isinstance(share, ZCDP)

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        if isinstance(share, ZCDP):
            return "its bounded range costs little rho"
        weighted = "a run of points with equal scores weighs as much as its length"
        return weighted if task.weighted else "as asked"

    @classmethod
    def for_zcdp(cls, range_l2_squared: Fraction, rho: Fraction) -> Self:
        """The sharpest rho-zCDP choice, scale = sqrt(range**2 / (8 rho)), rounded up.

        Parameters
        ----------
        range_l2_squared
            The squared range of score changes, summed over the groups that one unit can touch.
        rho
            Above 0.
        """
        wide = positive_sensitivity(range_l2_squared, "range_l2_squared")
        return cls(sqrt_up(wide / (8 * positive_budget(rho, "rho"))))

    def rho(self, range_l2_squared: Fraction) -> Fraction:
        """The zCDP cost, (range / scale)**2 / 8.

        The exponential mechanism is (range / scale)-bounded range, and bounded range eta implies
        (eta**2 / 8)-zCDP (Cesar and Rogers 2021; Dong, Durfee and Rogers 2020).
        """
        return nonnegative(range_l2_squared, "range_l2_squared") / (8 * self.scale**2)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """By the sum of squared ranges, in each round."""
        return exposure.repeats * self.rho(required_ranges(exposure).range_l2_squared)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of each range on its own, in each round."""
        from dpframe.kernel.trade_offs import bounded_range_mu_squared  # few sessions need it

        each = (bounded_range_mu_squared(self.epsilon(r)) for r in required_ranges(exposure).ranges)
        return exposure.repeats * sum(each, Fraction(0))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each range, in each round."""
        from dpframe.accounting.events import ExponentialEvent, SharedExponentialEvent

        kind = SharedExponentialEvent if exposure.shared else ExponentialEvent
        ranges = required_ranges(exposure).ranges
        return tuple(kind(self.epsilon(r)) for r in ranges) * exposure.repeats

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        scale * ln(candidates / (1 - confidence)) (McSherry and Talwar 2007; Dwork and Roth 2014,
        Theorem 3.11). With weights, `candidates` is the sum of all weights over the
        weight of the best candidate.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        ValueError
            When there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        odds = candidates / miss(confidence)
        log = DIGITS.ln(DIGITS.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        return 0.0 if candidates == 1 else float_up(self.scale * Fraction(log))
