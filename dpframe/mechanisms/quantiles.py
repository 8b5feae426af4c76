"""Several quantiles, chosen one after another or at once by the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget
from dpframe.core.exact import float_up
from dpframe.mechanisms.mechanism import (
    Choice,
    Exposure,
    RecursiveTask,
    SelectionTask,
    TogetherTask,
    miss,
)
from dpframe.mechanisms.noise import PLACES, TIES
from dpframe.mechanisms.selection import Exponential, require_ranges
from dpframe.samplers import MOST_CHOSEN

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent

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
