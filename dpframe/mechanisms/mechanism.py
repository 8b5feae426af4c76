"""The interface of every mechanism: its cost in each measure, its type for accounting, its error.

All other code distinguishes mechanisms by these methods only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.confidence import miss
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.tasks import AdditiveTask, Box, ResponseTask, SelectionTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.loss_laws import Translated


_ROUNDING = Fraction(1, 2**36)


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism, what it costs, and why it was chosen.

    Parameters
    ----------
    law
        The mechanism with its scale, in integer steps.
    cost
        What it charges, never more than its share.
    reason
        Why, for the plan.
    """

    law: Mechanism
    cost: Budget
    reason: str


def charged(share: Budget, used: Fraction) -> Budget:
    """What a mechanism costs: its share, or what it uses where its scale was raised to the least
    one. A scale that was only rounded up in its last bits charges the whole share.
    """
    return share.of(share.main if used > share.main * (1 - _ROUNDING) else used)


class Mechanism(ABC):
    """A random function of exact numbers, with all that is known of it."""

    __slots__ = ()

    name: ClassVar[str]
    """What plans and `mechanism=` call it."""
    label: ClassVar[str]
    """What people call it."""
    scale_label: ClassVar[str] = "scale"
    """What people call its scale."""
    is_exact: ClassVar[bool] = False
    """Whether it changes nothing."""
    is_normal: ClassVar[bool] = False
    """Whether its noise has the shape of a normal law."""

    @property
    def kernel_law(self) -> kernel.Law:
        """Its law in physical plans, by which it is drawn.

        Raises
        ------
        Refused
            When the kernel has none, or when it rests on another draw.
        """
        raise kernel.Refused(f"the mechanism {self.name} has no law in the kernel")

    @abstractmethod
    def shown_scale(self, step: Fraction) -> float:
        """The scale that people read, in the value's units; 0 where there is no noise."""

    @abstractmethod
    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """What it costs of epsilon, apart from `failure`; None where it has no epsilon without a
        delta.
        """

    @abstractmethod
    def rho_cost(self, exposure: Exposure) -> Fraction:
        """What it costs of rho, apart from `failure`, rounded up."""

    @abstractmethod
    def mu_squared_cost(self, exposure: Exposure) -> Fraction | None:
        """The square of mu, which adds up; never too small (see `dpframe.kernel.trade_offs`).
        None where no mu holds.
        """

    def failure(self, exposure: Exposure) -> Fraction:
        """The probability with which it may fail altogether."""
        return Fraction(0)

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The least delta known at an epsilon, of what has no epsilon without one."""
        raise NotImplementedError(self.name)

    @abstractmethod
    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """Events that together cost as much; roots are rounded towards more cost."""

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """Pairs of privacy losses that dominate it, one for each time that it is used; None for one
        that is not known.

        Parameters
        ----------
        exposure
            What one individual can do to it.
        largest_stepped
            The variance beyond which Gaussian noise is smoothed, so that all of it is one law.
        """
        from dpframe.accounting.loss_laws import translated

        events = tuple(self.events(exposure))
        # One event may stand there thousands of times: each object is translated once.
        known = {id(event): event for event in events}
        found = {number: translated(event) for number, event in known.items()}
        return [found[id(event)] for event in events]

    @abstractmethod
    def log_noise(self, candidates: int) -> float:
        """The logarithm of about how far off its results are; only choices rest on it."""

    def details(self) -> str:
        """The words of plans about it besides its scale; empty if there are none."""
        return ""

    def least_repeats(self, rows: int, groups: int) -> int:
        """How often one individual with this many rows in this many groups meets it at least."""
        return 1


class AdditiveMechanism(Mechanism):
    """Noise, or none, that is added to numbers."""

    __slots__ = ()
    norm: ClassVar[str] = ""
    """The norm of the change that it covers, for plans."""
    unavailable: ClassVar[tuple[str, str]] = ("", "")
    """What is missing where a measure does not know it, and what to do."""

    @classmethod
    def fitted(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """The least noise that the share pays for; None where the measure knows none."""
        return None

    @classmethod
    def is_surely_least(cls, task: AdditiveTask, share: Budget) -> bool:
        """Whether all other mechanisms certainly have larger errors, so that none need be
        tried."""
        return False

    refinement: ClassVar[str] = ""
    """How it is finer than the noise whose place it takes, for plans."""

    @classmethod
    def refining(cls, law: Mechanism, task: AdditiveTask) -> Self | None:
        """Noise that is as wide as another mechanism's, where many together cost less by it."""
        return None

    @abstractmethod
    def variance(self) -> float:
        """In steps squared."""

    @abstractmethod
    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """The smallest a with P(max of |noise| over `cells` draws <= a) >= confidence."""

    def apart(self, missed: Fraction) -> int:
        """An a with P(x - y > a) <= missed, where x and y are independent draws; the least one
        where the noise knows better than that one of them is beyond a / 2.
        """
        return 2 * self.quantile(1 - missed, 2)

    def log_apart(self, missed: float) -> float:
        """The logarithm of about the least a with P(x - y > a) <= missed; only choices rest on it.
        As of normal noise, where the noise knows no better.
        """
        normal = -NormalDist().inv_cdf(min(0.4, max(missed, 1e-300)))
        return math.log(2.0) / 2 + self.log_noise(1) + math.log(normal)

    @abstractmethod
    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(noise > x) for each x, in steps."""

    def log_masses(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability of each number, up to a constant; 0 where it is not
        known. For audits, by floats.
        """
        return np.zeros(noise.shape)


class VectorMechanism(Mechanism):
    """Noise that is drawn for several numbers together."""

    __slots__ = ()

    @classmethod
    def fitted(cls, task: AdditiveTask, share: Budget) -> Choice | None:
        """The least noise that the share pays for; None where the task or the measure has none."""
        return None

    @abstractmethod
    def covers(self, box: Box) -> bool:
        """Whether it is for vectors that one individual moves within a box."""

    @abstractmethod
    def log_masses(self, noise: NDArray[np.int64]) -> NDArray[np.float64]:
        """The logarithm of the probability of each vector, which the last axis holds, up to a
        constant. For audits, by floats.
        """


def log_deviation(variance: float) -> float:
    """The logarithm of a standard deviation, which may be nearly 0."""
    return math.log(max(variance, 5e-324)) / 2


class SelectionMechanism(Mechanism):
    """A private choice among candidates with scores."""

    __slots__ = ()
    draws_points: ClassVar[bool] = False
    """Whether it chooses among candidates that stand for several points."""
    adds_squares: ClassVar[frozenset[str]] = frozenset()
    """The currencies in which its cost grows with the squares of ranges, added over groups."""

    @property
    def at_once(self) -> int:
        """How many choices of one group its accuracy holds for together."""
        return 1

    @property
    def nearness(self) -> str:
        """What its accuracy says, of this much and this many candidates."""
        return "the chosen score is within {} of the best of {} candidates"

    @classmethod
    @abstractmethod
    def fitted(cls, task: SelectionTask, share: Budget) -> Choice:
        """The sharpest choice that the share pays for."""

    @classmethod
    def is_preferred(cls, task: SelectionTask, share: Budget) -> bool:
        """Whether it chooses where no mechanism is requested."""
        return False

    @classmethod
    def is_rival(cls, task: SelectionTask) -> bool:
        """Whether it chooses in place of the one that is preferred, where it has a smaller
        error."""
        return False

    @abstractmethod
    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the chosen score is within this much of the best one; rounded
        up."""

    def accuracy_of(
        self, confidence: float | Fraction, candidates: int, winners: int, choices: int
    ) -> float:
        """With this confidence chosen scores are within this much of the best of those left.

        Parameters
        ----------
        confidence
            Between 0 and 1, exclusive.
        candidates
            How many there are in a group.
        winners
            How many are chosen in a group.
        choices
            For how many it holds at once: 1, or those of all groups (by the union bound).
        """
        return self.accuracy(1 - miss(confidence) / choices, candidates)


class ReportMechanism(Mechanism):
    """Rows that report on their own, each at random; what is released are debiased counts."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def fitted(cls, task: ResponseTask, share: Budget) -> Choice:
        """The most truthful reports that the share pays for."""

    @abstractmethod
    def error(self, confidence: float | Fraction, rows: float, cells: int = 1) -> float:
        """With this confidence a count is off by no more than this, of this many rows."""

    @abstractmethod
    def error_per_root(self, confidence: float | Fraction, cells: int = 1) -> float:
        """The error in multiples of the root of the number of rows, where these are many."""
