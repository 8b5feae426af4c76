"""What private selections have in common: a scale, and a cost of range / scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import float_up, sqrt_down
from dpframe.core.score_range import ScoreRange
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import Choice, SelectionMechanism, charged
from dpframe.mechanisms.rounding import (
    in_range,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.mechanisms.tasks import SelectionTask
from dpframe.samplers.selection import MAX_SELECTION_SCALE, MIN_SELECTION_SCALE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


@dataclass(frozen=True, slots=True)
class ScaledSelection(SelectionMechanism):
    """A private choice whose pure cost is the range of score changes over its scale.

    Sensitivity enters as the *range* of score changes: the largest minus the smallest change of any
    candidate's score between neighbours. It is twice the sensitivity in general, and once when all
    scores move the same way (monotonic scores). Each mechanism says why its cost is no more.

    Parameters
    ----------
    scale
        In units of the score. Below 2**-10 it is raised to that.

    Raises
    ------
    InvalidBudget
        When the scale is larger than can be drawn.
    ValueError
        When the scale is not an exact number above 0.
    """

    scale: Fraction
    least: ClassVar[Fraction] = MIN_SELECTION_SCALE
    largest: ClassVar[Fraction] = MAX_SELECTION_SCALE

    def __post_init__(self) -> None:
        scale = in_range(self.scale, self.least, self.largest, "the scale of the selection")
        object.__setattr__(self, "scale", scale)

    @classmethod
    def for_pure(cls, range_l1: Fraction, epsilon: Fraction) -> Self:
        """The sharpest epsilon-private choice: scale = range / epsilon.

        Parameters
        ----------
        range_l1
            The range of score changes, summed over the groups that one unit can touch.
        epsilon
            Above 0.
        """
        wide = positive_sensitivity(range_l1, "range_l1")
        return cls(wide / positive_budget(epsilon, "epsilon"))

    @classmethod
    def fitted(cls, task: SelectionTask, share: Budget) -> Choice:
        """Each round at an equal part of the cost."""
        each = share.main / task.rounds
        if isinstance(share, ZCDP):
            law = cls.for_rho(task.score_range, each)
            cost = charged(share, law.rho_cost(task.exposure))
        else:
            law = cls.for_pure(task.score_range.l1, each)
            cost = share.of(law.epsilon_cost(task.exposure))
        return Choice(law, cost, cls.reason(task, share))

    @classmethod
    def for_rho(cls, moved: ScoreRange, rho: Fraction) -> Self:
        """By the epsilon whose square over two is at most rho."""
        return cls.for_pure(moved.l1, sqrt_down(2 * rho))

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        return "as asked"

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """By the sum of ranges over groups, in each round."""
        return exposure.repeats * self.epsilon(required_ranges(exposure).range_l1)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of a purely private mechanism, epsilon**2 / 2, in each round."""
        return exposure.repeats * self.epsilon(required_ranges(exposure).range_l1) ** 2 / 2

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of a purely private mechanism, in each round."""
        from dpframe.kernel.trade_offs import pure_mu_squared  # few sessions need it

        whole = sum(required_ranges(exposure).ranges, Fraction(0))
        return exposure.repeats * pure_mu_squared(self.epsilon(whole))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each round: no theorem lets groups be distinguished, as by one range they could
        be less alike.
        """
        from dpframe.accounting.events import PermuteAndFlipEvent

        whole = sum(required_ranges(exposure).ranges, Fraction(0))
        return (PermuteAndFlipEvent(self.epsilon(whole)),) * exposure.repeats

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the distance of the choice from the best score, 95% of the time."""
        scales = _scales_below(type(self)(Fraction(1)), max(2, candidates))
        return math.log(self.scale.numerator) - math.log(self.scale.denominator) + scales

    def epsilon(self, range_l1: Fraction) -> Fraction:
        """The pure cost, range / scale, exactly."""
        return nonnegative(range_l1, "range_l1") / self.scale


@lru_cache(maxsize=1024)
def _scales_below(law: ScaledSelection, candidates: int) -> float:
    return math.log(law.accuracy(Fraction(95, 100), candidates))


def required_ranges(exposure: Exposure) -> Exposure:
    """The exposure, which must have the range of scores: without it a choice would seem to cost
    nothing."""
    if not exposure.ranges:
        raise ValueError("the range of score changes is not known")
    return exposure
