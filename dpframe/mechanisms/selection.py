"""Private choices of one of many candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import float_up, sqrt_down, sqrt_up
from dpframe.core.sensitivity import ScoreRange
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combined import IndependentNoise
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace, chance_apart
from dpframe.mechanisms.mechanism import (
    DIGITS,
    AdditiveMechanism,
    AdditiveTask,
    Choice,
    Exposure,
    RecursiveTask,
    SelectionMechanism,
    SelectionTask,
    TogetherTask,
    charge_for,
    in_range,
    miss,
    nonnegative,
    positive_budget,
    positive_sensitivity,
)
from dpframe.mechanisms.noise import PLACES, TIES
from dpframe.samplers import MOST_CHOSEN
from dpframe.samplers.cells import MAX_SCALE, MIN_SCALE
from dpframe.samplers.selection import MAX_SELECTION_SCALE, MIN_SELECTION_SCALE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.losses import Translated

# What private selections have in common: a scale, and a cost of range / scale.


@dataclass(frozen=True, slots=True)
class ScaledSelection(SelectionMechanism):
    """A private choice whose pure cost is the range of score changes over its scale.

    Sensitivity enters as the *range* of score changes: the largest minus the smallest change of any
    candidate's score between neighbours. It is twice the sensitivity in general, and once when all
    scores move the same way (monotonic scores). Each mechanism says why its cost is no more.

    Raises
    ------
    InvalidBudget
        When the scale is larger than can be drawn.
    ValueError
        When the scale is not an exact number above 0.
    """

    # In units of the score. Below 2**-10 it is raised to that.
    scale: Fraction
    least: ClassVar[Fraction] = MIN_SELECTION_SCALE
    largest: ClassVar[Fraction] = MAX_SELECTION_SCALE

    def __post_init__(self) -> None:
        scale = in_range(self.scale, self.least, self.largest, "the scale of the selection")
        object.__setattr__(self, "scale", scale)

    @classmethod
    def for_pure(
        cls,
        # The range of score changes, summed over the groups that one unit can touch.
        range_l1: Fraction,
        epsilon: Fraction,  # Above 0
    ) -> Self:
        """The sharpest epsilon-private choice: scale = range / epsilon."""
        wide = positive_sensitivity(range_l1, "range_l1")
        return cls(wide / positive_budget(epsilon, "epsilon"))

    @classmethod
    def fit(cls, task: SelectionTask, share: Budget) -> Choice:
        """Each round at an equal part of the cost."""
        each = share.main / task.rounds
        if isinstance(share, ZCDP):
            law = cls.for_rho(task.score_range, each)
            cost = charge_for(share, law.rho_cost(task.exposure))
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
        return exposure.repeats * self.epsilon(require_ranges(exposure).range_l1)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of a purely private mechanism, epsilon**2 / 2, in each round."""
        return exposure.repeats * self.epsilon(require_ranges(exposure).range_l1) ** 2 / 2

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of a purely private mechanism, in each round."""
        from dpframe.kernel.trade_offs import pure_mu_squared  # few sessions need it

        whole = sum(require_ranges(exposure).ranges, Fraction(0))
        return exposure.repeats * pure_mu_squared(self.epsilon(whole))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each round: no theorem lets groups be distinguished, as by one range they could
        be less alike.
        """
        from dpframe.accounting.events import PermuteAndFlipEvent

        whole = sum(require_ranges(exposure).ranges, Fraction(0))
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


def require_ranges(exposure: Exposure) -> Exposure:
    """The exposure, which must have the range of scores: without it a choice would seem to cost
    nothing."""
    if not exposure.ranges:
        raise ValueError("the range of score changes is not known")
    return exposure


# The exponential mechanism: private choice, cheaper under zCDP than its epsilon suggests.


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
    def for_zcdp(
        cls,
        # The squared range of score changes, summed over the groups that one unit can touch.
        range_l2_squared: Fraction,
        rho: Fraction,  # Above 0
    ) -> Self:
        """The sharpest rho-zCDP choice, scale = sqrt(range**2 / (8 rho)), rounded up."""
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
        return exposure.repeats * self.rho(require_ranges(exposure).range_l2_squared)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """The cost of each range on its own, in each round."""
        from dpframe.kernel.trade_offs import bounded_range_mu_squared  # few sessions need it

        each = (bounded_range_mu_squared(self.epsilon(r)) for r in require_ranges(exposure).ranges)
        return exposure.repeats * sum(each, Fraction(0))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each range, in each round."""
        from dpframe.accounting.events import ExponentialEvent, SharedExponentialEvent

        kind = SharedExponentialEvent if exposure.shared else ExponentialEvent
        ranges = require_ranges(exposure).ranges
        return tuple(kind(self.epsilon(r)) for r in ranges) * exposure.repeats

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        scale * ln(candidates / (1 - confidence)) (McSherry and Talwar 2007; Dwork and Roth 2014,
        Theorem 3.11). With weights, `candidates` is the sum of all weights over the weight of the
        best candidate. Raises `InvalidBounds` when the confidence does not lie between 0 and 1.
        Raises `ValueError` when there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        odds = candidates / miss(confidence)
        log = DIGITS.ln(DIGITS.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        return 0.0 if candidates == 1 else float_up(self.scale * Fraction(log))


# Permute-and-flip: the better private choice under pure differential privacy.


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(ScaledSelection):
    """Candidates in random order, each taken with probability exp((score - best) / scale).

    Sensitivity enters as the *range* of score changes, largest minus smallest, and the cost is
    range / scale. Why: only differences from the best score matter, so subtracting the smallest
    change from all scores changes nothing and leaves changes between 0 and the range. For such
    one-sided changes the bound holds without a factor of 2 (McKenna and Sheldon 2020, on monotonic
    scores). It follows from the equal law, the maximum of score + Exp(scale) noise (Ding, Kifer,
    Sayyid, Wang and Zhang 2021). With the others' noise fixed, i wins when its noise exceeds a
    threshold. The change moves that threshold by at most the range in either direction, and
    P(noise > x + range) >= exp(-range / scale) P(noise > x).
    """

    name: ClassVar[str] = "permute_and_flip"
    label: ClassVar[str] = "permute-and-flip"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.PermuteAndFlip(self.scale)

    @classmethod
    def is_preferred(cls, task: SelectionTask, share: Budget) -> bool:
        """If epsilon is shared and each candidate is one point."""
        return not task.weighted and not isinstance(share, ZCDP)

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        auto = task.mechanism == "auto" and not isinstance(share, ZCDP)
        return "never worse than the exponential mechanism" if auto else "as asked"

    def rho(self, range_l1: Fraction) -> Fraction:
        """The zCDP cost, epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4).

        There is no discount as for the exponential mechanism: with two candidates whose gap grows
        from 0 to r, the loser's probability falls from 1/2 to exp(-r / scale) / 2.
        """
        return self.epsilon(range_l1) ** 2 / 2

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        scale * ln((candidates - 1) / (2 (1 - confidence))), at least 0. A candidate that is a below
        the best succeeds with probability at most exp(-a / scale), and then it is chosen with
        probability at most 1/2, because the best one has succeeded too; sum over the candidates.
        That is less than the exponential mechanism's (McKenna and Sheldon 2020, Theorem 2). Raises
        `InvalidBounds` when the confidence does not lie between 0 and 1. Raises `ValueError` when
        there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        odds = (candidates - 1) / (2 * miss(confidence))
        if odds <= 1:
            return 0.0
        log = DIGITS.ln(DIGITS.divide(Decimal(odds.numerator), Decimal(odds.denominator)))
        return float_up(self.scale * Fraction(log))


# Report noisy max: a private choice by adding noise to every score.


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(ScaledSelection):
    """The candidate with the largest score plus discrete Laplace noise; ties at random.

    Sensitivity enters as the *range* of score changes, largest minus smallest, and the cost is
    range / scale (Dwork and Roth 2014, Claim 3.9). With the order in which ties are broken and
    the others' noise fixed, i wins when its noise reaches a threshold. Only differences of scores
    matter, so a change moves that threshold by at most the range. P(noise >= x + range) is at
    least exp(-range / scale) P(noise >= x), term by term, for whole ranges. It has a larger error
    than permute-and-flip at the same cost (Ding, Kifer, Sayyid, Wang and Zhang 2021), so it is
    never chosen unasked.
    """

    name: ClassVar[str] = "report_noisy_max"
    label: ClassVar[str] = "report noisy max"
    least: ClassVar[Fraction] = MIN_SCALE
    largest: ClassVar[Fraction] = MAX_SCALE

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.NoisyMax(self.scale)

    def rho(self, range_l1: Fraction) -> Fraction:
        """The zCDP cost, epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4)."""
        return self.epsilon(range_l1) ** 2 / 2

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded up.

        A candidate that is a below the best wins only if its noise exceeds the best one's by a, see
        `dpframe.mechanisms.discrete_laplace.chance_apart`; summed over the other candidates. Raises
        `InvalidBounds` when the confidence does not lie between 0 and 1. Raises `ValueError` when
        there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        rest = miss(confidence)
        allowed = DIGITS.divide(Decimal(rest.numerator), Decimal(rest.denominator))
        if candidates == 1:
            return 0.0
        low, high = -1, 1
        while (candidates - 1) * chance_apart(self.scale, high) > allowed:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if (candidates - 1) * chance_apart(self.scale, middle) > allowed:
                low = middle
            else:
                high = middle
        return float_up(Fraction(high))


# A noisy table: noise on every score, once, and the winners are read from what comes out.

_NOISES: tuple[type[AdditiveMechanism], ...] = (DiscreteGaussian, DiscreteLaplace)


@dataclass(frozen=True, slots=True)
class NoisyTable(SelectionMechanism):
    """The candidates with the largest scores plus noise, which every score gets once.

    The noisy scores of all groups are one vector of integers with noise on every entry, and cost
    what that costs by the vector's sensitivity: Laplace noise by L1, Gaussian noise by L2. The
    winners are a function of it, so they cost nothing more, however many they are (post-processing:
    Dwork and Roth 2014, Proposition 2.1). Ties go to the candidate that is listed first, because
    the order is public. Several choices one after another, each among the remaining ones, cost
    several times as much. Here the cost depends on how far all scores move, there only on how far
    their differences change.

    Raises
    ------
    ValueError
        When that is no noise of these kinds.
    """

    noise: IndependentNoise  # What is added to each score, in its steps
    draws_scores: ClassVar[bool] = True
    name: ClassVar[str] = "noisy_table"
    label: ClassVar[str] = "noisy table"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return self.noise.kernel_law

    def __post_init__(self) -> None:
        if not isinstance(self.noise, IndependentNoise):
            raise ValueError("a noisy table needs noise")

    @classmethod
    def fit(cls, task: SelectionTask, share: Budget) -> Choice:
        """With the noise under which two scores change places least."""
        scores = AdditiveTask(task.name, task.sensitivity)
        fitting = (kind.fit(scores, share) for kind in _NOISES)
        made = [
            Choice(cls(choice.law), choice.cost, cls.reason(task, choice.law))
            for choice in fitting
            if choice is not None and isinstance(choice.law, IndependentNoise)
        ]
        return min(made, key=lambda choice: choice.law.log_noise(task.candidates))

    @classmethod
    def is_rival(cls, task: SelectionTask) -> bool:
        """Where several winners would share the cost, and each candidate is one point."""
        return task.rounds > 1 and not task.weighted

    @classmethod
    def reason(cls, task: SelectionTask, noise: AdditiveMechanism) -> str:
        """Why it chooses, for plans."""
        if task.mechanism != "auto":
            return f"{noise.norm}, as asked"
        return f"{noise.norm}, errs less than {task.rounds} choices that share the cost"

    def shown_scale(self, step: Fraction) -> float:
        """The scale of the noise."""
        return self.noise.shown_scale(step)

    def details(self) -> str:
        """Which noise, and how often."""
        scale = (
            "" if self.noise.scale_label == self.scale_label else f"as {self.noise.scale_label} "
        )
        return f"{scale}of {self.noise.label} noise that is added once to every score"

    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the noisy scores."""
        return self.noise.epsilon_cost(_once(exposure))

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the noisy scores."""
        return self.noise.rho_cost(_once(exposure))

    def mu_squared_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the noisy scores."""
        return self.noise.mu_squared_cost(_once(exposure))

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the noisy scores."""
        return self.noise.delta_at(epsilon, _once(exposure))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """The events of the noisy scores."""
        return self.noise.events(_once(exposure))

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """The dominating pairs of the noisy scores."""
        return self.noise.pairs(_once(exposure), largest_stepped)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the distance of the choice from the best score, 95% of the time."""
        return self.noise.log_apart(0.05 / max(1, candidates - 1))

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the first winner's score is within this much of the best one."""
        return self.accuracy_of(confidence, candidates, 1, 1)

    def accuracy_of(
        self, confidence: float | Fraction, candidates: int, winners: int, choices: int
    ) -> float:
        """With this confidence winners are within this much of the best of those left; rounded
        up.

        The best candidate that is left when the j-th winner is taken is one of the j with the
        largest scores, for at most j - 1 of these were taken before. A candidate that is more than
        a below it is taken only if its noise exceeds that one's by more than a. Of pairs of one of
        the best k and another candidate there are k (candidates - 1), and the union bound over
        these is for all winners of a group at once. Raises `InvalidBounds` when the confidence does
        not lie between 0 and 1. Raises `ValueError` when there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        missed = miss(confidence)
        if candidates == 1:
            return 0.0
        groups = -(-choices // winners)
        return float(self.noise.apart(missed / (groups * winners * (candidates - 1))))


def _once(exposure: Exposure) -> Exposure:
    """All winners are of one table."""
    return replace(exposure, repeats=1)


# Several quantiles, chosen one after another or at once by the exponential mechanism.

# Several quantiles, each chosen among the rows between those that were chosen before.

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RecursiveExponential(Exponential):
    """Several quantiles, each by the exponential mechanism: the middle one first, then those on
    either side among the rows of that side.

    Given the earlier choices, the choices of one level are made among disjoint sets of rows. So
    one row moves the scores of one of them, and a level costs as much as one choice (Kaplan,
    Schnapp and Stemmer 2022, Theorem 3.3): range / scale, or range**2 / (8 scale**2) of rho.
    Several rows of one individual may be in several sets of a level; their ranges, and the
    squares of these, add up to no more than over groups. A row that changes may leave one set for
    another: that is half a range in each, as a choice that it stays within has half the range
    there. Levels compose as rounds do, since each holds for any earlier choices.

    Rows of one point are put in random order by 16 fair coins each, so that some can be on either
    side. For neighbours let equal rows have equal coins, and let a row that changes keep its own.
    For any coins, the frames with their coins are neighbours. So one pair of laws dominates both,
    and with it their mixtures, because each delta is convex in a pair of laws.
    """

    chosen: int = 1  # How many quantiles there are
    # The total error of the worst quantile's ranks, as a multiple of the error of one choice at the
    # full scale: choices move the ends of the rows that later ones see.
    path: Fraction = Fraction(1)

    name: ClassVar[str] = "recursive_exponential"
    label: ClassVar[str] = "recursive exponential mechanism"
    scale_label: ClassVar[str] = "largest scale"
    ties: ClassVar[int] = PLACES
    """At how many places of one point its rows may be."""

    def __post_init__(self) -> None:
        super(RecursiveExponential, self).__post_init__()
        if self.chosen < 1 or self.path < 1:
            raise ValueError("at least one quantile is chosen, and it may be off by its own scale")

    @classmethod
    def fit(cls, task: SelectionTask, share: Budget) -> Choice:
        """Each level at an equal part of the cost."""
        found = super(RecursiveExponential, cls).fit(task, share)
        assert isinstance(task, RecursiveTask)
        assert isinstance(found.law, cls)
        return replace(found, law=replace(found.law, chosen=task.chosen, path=task.path))

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        assert isinstance(task, RecursiveTask)
        return task.why

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """As of choices in groups; which parts the ranges of several rows of one individual have in
        a level depends on what was chosen before.
        """
        several = len(require_ranges(exposure).ranges) > 1
        return super(RecursiveExponential, self).events(
            replace(exposure, shared=exposure.shared or several)
        )

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence all chosen scores are within this much of the best ones in their
        rows; rounded up.

        Each place of a point is a candidate, and all choices are by the union bound. Ranks are then
        within `path` times as much of those of their quantiles, with the rows of one point in
        random order and but for those that share a place even so.
        """
        several = candidates * self.ties * self.chosen
        return super(RecursiveExponential, self).accuracy(confidence, several)

    def accuracy_of(
        self, confidence: float | Fraction, candidates: int, winners: int, choices: int
    ) -> float:
        """The same of all groups, by the union bound: it holds for all choices of one group."""
        groups = max(1, choices // self.chosen)
        return self.accuracy(1 - miss(confidence) / groups, candidates)

    @property
    def at_once(self) -> int:
        """All quantiles of one group."""
        return self.chosen

    @property
    def nearness(self) -> str:
        """What of all choices holds together."""
        return (
            f"all {self.chosen} chosen scores are within {{}} of the best of {{}} candidates in "
            f"their rows, and ranks within {float_up(self.path):.3g} times that"
        )

    def log_noise(self, candidates: int) -> float:
        """The logarithm for one choice at the full scale: only the scale depends on the cost."""
        return Exponential(self.scale).log_noise(candidates)


# Several quantiles at once: the exponential mechanism over all tuples of candidates in order.


@dataclass(frozen=True, slots=True)
class JointExponential(Exponential):
    """All of several quantiles by one choice of the exponential mechanism, among all tuples of
    candidates in order (Gillenwater, Joseph and Kulesza 2021, "JointExp").

    It is the exponential mechanism with a large public set to choose from, and costs what that
    does: range / scale, or range**2 / (8 scale**2) of rho, because its range is bounded (Cesar and
    Rogers 2021). The score is minus half the sum over parts between neighbouring quantiles of
    |rows in it - rows there should be|. `dpframe.aggregates.quantile` proves how much one
    row changes the difference of two scores, which is the range.

    Rows of one point are put in random order by 32 fair coins each, so that some can be on either
    side of a candidate; candidates are all places that rows may take. For neighbours let equal
    rows have equal coins, and let a row that changes keep its own. For any coins, the frames with
    their coins are neighbours. So one pair of laws dominates both, and with it their mixtures,
    because each delta is convex in a pair of laws. A score that knew ties, as that of one
    quantile does, would not be a sum over parts: rows of a point would have to be divided between
    two.
    """

    chosen: int = 1  # How many quantiles there are

    name: ClassVar[str] = "joint_exponential"
    label: ClassVar[str] = "joint exponential mechanism"
    ties: ClassVar[tuple[int, ...]] = TIES
    """At how many places of one point its rows may be, and at how many of such a place."""

    def __post_init__(self) -> None:
        super(JointExponential, self).__post_init__()
        if not 1 <= self.chosen <= MOST_CHOSEN:
            raise ValueError(f"from 1 to {MOST_CHOSEN} quantiles are chosen at once")

    @classmethod
    def fit(cls, task: SelectionTask, share: Budget) -> Choice:
        """One choice at the whole cost."""
        found = super(JointExponential, cls).fit(task, share)
        assert isinstance(task, TogetherTask)
        assert isinstance(found.law, cls)
        return replace(found, law=replace(found.law, chosen=task.chosen))

    @classmethod
    def reason(cls, task: SelectionTask, share: Budget) -> str:
        """Why it chooses, for plans."""
        assert isinstance(task, TogetherTask)
        return task.why

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the score of the tuple is within this much of the best one;
        rounded up.

        Each place of a point is a candidate of the union bound over all tuples in order. Where some
        candidate has each rank, the best score is at least -m / 2 for m quantiles: each rank is
        rounded by 1 / 2 at most, so that inner parts are off by 1 and those at the ends by 1 / 2.
        No rank is further off than the score says, as the parts on either side of it are together
        off by as much each.
        """
        places = candidates * math.prod(self.ties)
        tuples = math.comb(places + self.chosen - 1, self.chosen)
        return super(JointExponential, self).accuracy(confidence, tuples)

    def accuracy_of(
        self, confidence: float | Fraction, candidates: int, winners: int, choices: int
    ) -> float:
        """The same of all groups, by the union bound: it holds for all quantiles of one group."""
        groups = max(1, choices // self.chosen)
        return self.accuracy(1 - miss(confidence) / groups, candidates)

    @property
    def at_once(self) -> int:
        """All quantiles of one group."""
        return self.chosen

    @property
    def nearness(self) -> str:
        """What of all quantiles holds together."""
        return (
            f"the score of all {self.chosen} is within {{}} of the best of {{}} candidates for "
            f"each, and each rank within that and {self.chosen / 2:g} of its quantile"
        )

    def log_noise(self, candidates: int) -> float:
        """The logarithm for one choice: only the scale depends on the cost."""
        return Exponential(self.scale).log_noise(candidates)
