"""Several quantiles, each chosen among the rows between those that were chosen before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget
from dpframe.core.exact import float_up
from dpframe.mechanisms.confidence import miss
from dpframe.mechanisms.exponential import Exponential
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import Choice
from dpframe.mechanisms.noise import PLACES
from dpframe.mechanisms.scaled_selection import required_ranges
from dpframe.mechanisms.tasks import RecursiveTask, SelectionTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


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

    Parameters
    ----------
    chosen
        How many quantiles there are.
    path
        The total error of the worst quantile's ranks, as a multiple of the error of one choice at
        the full scale: choices move the ends of the rows that later ones see.
    """

    chosen: int = 1
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
    def fitted(cls, task: SelectionTask, share: Budget) -> Choice:
        """Each level at an equal part of the cost."""
        found = super(RecursiveExponential, cls).fitted(task, share)
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
        several = len(required_ranges(exposure).ranges) > 1
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
