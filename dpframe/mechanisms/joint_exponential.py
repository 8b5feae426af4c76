"""Several quantiles at once: the exponential mechanism over all tuples of candidates in order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget
from dpframe.mechanisms.confidence import miss
from dpframe.mechanisms.exponential import Exponential
from dpframe.mechanisms.mechanism import Choice
from dpframe.mechanisms.noise import TIES
from dpframe.mechanisms.tasks import SelectionTask, TogetherTask
from dpframe.samplers import MOST_CHOSEN

if TYPE_CHECKING:
    from fractions import Fraction


Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JointExponential(Exponential):
    """All of several quantiles by one choice of the exponential mechanism, among all tuples of
    candidates in order (Gillenwater, Joseph and Kulesza 2021, "JointExp").

    It is the exponential mechanism with a large public set to choose from, and costs what that
    does: range / scale, or range**2 / (8 scale**2) of rho, because its range is bounded (Cesar and
    Rogers 2021). The score is minus half the sum over parts between neighbouring quantiles of
    |rows in it - rows there should be|. `dpframe.aggregates.quantiles_at_once` proves how much one
    row changes the difference of two scores, which is the range.

    Rows of one point are put in random order by 32 fair coins each, so that some can be on either
    side of a candidate; candidates are all places that rows may take. For neighbours let equal
    rows have equal coins, and let a row that changes keep its own. For any coins, the frames with
    their coins are neighbours. So one pair of laws dominates both, and with it their mixtures,
    because each delta is convex in a pair of laws. A score that knew ties, as that of one
    quantile does, would not be a sum over parts: rows of a point would have to be divided between
    two.

    Parameters
    ----------
    chosen
        How many quantiles there are.
    """

    chosen: int = 1

    name: ClassVar[str] = "joint_exponential"
    label: ClassVar[str] = "joint exponential mechanism"
    ties: ClassVar[tuple[int, ...]] = TIES
    """At how many places of one point its rows may be, and at how many of such a place."""

    def __post_init__(self) -> None:
        super(JointExponential, self).__post_init__()
        if not 1 <= self.chosen <= MOST_CHOSEN:
            raise ValueError(f"from 1 to {MOST_CHOSEN} quantiles are chosen at once")

    @classmethod
    def fitted(cls, task: SelectionTask, share: Budget) -> Choice:
        """One choice at the whole cost."""
        found = super(JointExponential, cls).fitted(task, share)
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
