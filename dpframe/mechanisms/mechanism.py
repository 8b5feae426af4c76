"""The interface of every mechanism: its cost in each measure, its error, and its task."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import Budget
from dpframe.core.exact import dyadic_up, exact, show_input
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange
from dpframe.errors import InvalidBounds, InvalidBudget
from dpframe.kernel import plan as kernel
from dpframe.samplers import Arch

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.losses import Translated


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one individual can do to what a mechanism releases."""

    sensitivity: ExactSensitivity  # The sensitivity of the exact numbers, in steps
    # How often the individual meets the mechanism: rounds of a selection, rows that report on their
    # own, groups that may appear; else once.
    repeats: int = 1
    # For selections: the ranges of score changes, one for each group that the individual touches.
    ranges: tuple[Fraction, ...] = ()
    # `range_l1`, `range_l2_squared`: the largest sum, and sum of squares, of these ranges.
    range_l1: Fraction = Fraction(0)
    range_l2_squared: Fraction = Fraction(0)
    # Whether the ranges stand for others within their sum and maximum, see
    # `dpframe.core.sensitivity.ScoreRange.is_shared`.
    shared: bool = False


# What a confidence leaves over for each of several independent draws.

DIGITS: Final = Context(prec=60, Emin=-(10**9), Emax=10**9)
"""Sixty digits: the standard library's decimal logarithm and exponential are correctly rounded."""


def miss(confidence: float | Fraction) -> Fraction:
    """1 - confidence, exactly; a float means the decimal that it prints as. Raises `InvalidBounds`
    when the confidence does not lie between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise InvalidBounds(
            f"a confidence of {show_input(confidence)} does not lie between 0 and 1",
            remedy="write confidence=0.95",
        )
    return 1 - exact(confidence)


def miss_per_cell(confidence: float | Fraction, cells: int) -> Decimal:
    """The a with (1 - a)**cells = confidence: what each of `cells` independent draws may miss.
    Raises `InvalidBounds` when the confidence does not lie between 0 and 1. Raises `ValueError`
    when there are no cells.
    """
    if cells < 1:
        raise ValueError("at least one cell is needed")
    return _per_cell(miss(confidence), cells)


@lru_cache(maxsize=256)
def _per_cell(rest: Fraction, cells: int) -> Decimal:
    if cells == 1:
        return _decimal(rest)
    log = DIGITS.ln(_decimal(1 - rest))
    return DIGITS.subtract(Decimal(1), DIGITS.exp(DIGITS.divide(log, Decimal(cells))))


def _decimal(value: Fraction) -> Decimal:
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def log_tier(miss: float) -> int:
    """Down to which exp(-nats) a law must be known for a probability of `miss`: one of a few."""
    wanted = 12.0 - math.log(max(miss, 1e-300))
    tier = 1 << max(4, math.ceil(math.log2(wanted)))
    return 3 * tier // 4 if tier > 16 and 3 * tier // 4 >= wanted else tier


# Arguments of mechanisms: exact, in range, and if rounded then towards more noise.

_LONGEST: Final = 1024


def positive_budget(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction when it can be spent. Raises `InvalidBudget` when it is not an exact,
    positive number.
    """
    if not isinstance(value, (Fraction, int)) or value <= 0:
        raise InvalidBudget(
            f"{name} must be an exact number above 0, not {value!r}",
            remedy=f"write for example {name}=Fraction(1, 2)",
        )
    return Fraction(value)


def positive_sensitivity(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction when noise can be calibrated to it.

    Raises
    ------
    ValueError
        When it is not an exact, positive number; a sensitivity of 0 needs no noise.
    """
    if nonnegative(value, name) == 0:
        raise ValueError(f"{name} is 0: release it with NoNoise()")
    return Fraction(value)


def nonnegative(value: Fraction, name: str) -> Fraction:
    """`value` as a Fraction. Raises `ValueError` when it is not an exact number of at least 0."""
    if not isinstance(value, (Fraction, int)) or value < 0:
        raise ValueError(f"{name} must be an exact number of at least 0, not {value!r}")
    return Fraction(value)


def in_range(value: Fraction, low: Fraction, high: Fraction, name: str) -> Fraction:
    """A noise parameter, shortened and raised to `low`: both only ever add noise.

    Raises
    ------
    InvalidBudget
        When it is above `high`: that much noise cannot be drawn.
    """
    if not isinstance(value, (Fraction, int)) or value <= 0:
        raise ValueError(f"{name} must be an exact number above 0, not {value!r}")
    if value > high:
        raise InvalidBudget(
            f"{name} would be above 2**{high.numerator.bit_length() - 1} grid steps, "
            "more than can be drawn",
            remedy=("spend more", "give narrower bounds or a smaller row limit"),
        )
    return short_up(max(Fraction(value), low))


def short_up(value: Fraction) -> Fraction:
    """`value` itself, or if it takes very many digits a short number at most 2**-63 above it."""
    if value.numerator.bit_length() + value.denominator.bit_length() <= _LONGEST:
        return value
    return dyadic_up(value)


# What a mechanism is wanted for: one kind of task for each kind of mechanism.


class _Task:
    """What tasks have in common."""

    __slots__ = ()

    @property
    def alternatives(self) -> int:
        """Among how many outcomes is chosen; 1 where nothing is."""
        return 1


@dataclass(frozen=True, slots=True)
class Box:
    """Within what one individual moves vectors of several numbers."""

    widths: tuple[int, ...]  # How far one row moves each number at most, in integer steps
    rows: int  # How many rows one individual has over all vectors (groups)
    # The places of counts, sums and sums of squares of the same values, see `DiscreteHull`.
    arches: tuple[Arch, ...] = ()


@dataclass(frozen=True, slots=True)
class AdditiveTask(_Task):
    """Numbers to which noise is added."""

    name: str  # The output, for messages
    sensitivity: ExactSensitivity  # In integer steps
    mechanism: str = "auto"  # ``"auto"`` or a mechanism's name
    box: Box | None = None  # Within what one row moves the numbers, where they may be drawn jointly

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity)


@dataclass(frozen=True, slots=True)
class SelectionTask(_Task):
    """Private choices among candidates."""

    name: str  # The output, for messages
    sensitivity: ExactSensitivity  # The sensitivity of the scores, in integer steps
    score_range: ScoreRange  # The largest change in the difference of two scores by one individual
    mechanism: str = "auto"  # ``"auto"`` or a mechanism's name
    rounds: int = 1  # How many winners are chosen, each at an equal part of the cost
    weighted: bool = False  # Whether candidates stand for several points
    candidates: int = 2  # How many there are
    shared: bool = False  # Whether the ranges of `score_range` stand for others, see `Exposure`

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        moved = self.score_range
        return Exposure(
            self.sensitivity, self.rounds, moved.groups, moved.l1, moved.l2_squared, self.shared
        )

    @property
    def alternatives(self) -> int:
        """How many candidates there are."""
        return self.candidates


@dataclass(frozen=True, slots=True)
class RecursiveTask(SelectionTask):
    """Private choices that follow one another, each level among disjoint sets of rows; a round is a
    level.
    """

    chosen: int = 1  # How many choices there are in all
    # How far off they may be altogether, in multiples of one, see `RecursiveExponential`.
    path: Fraction = Fraction(1)
    why: str = ""  # Why they are made like that, for plans


@dataclass(frozen=True, slots=True)
class TogetherTask(SelectionTask):
    """One private choice among tuples of candidates in order."""

    chosen: int = 1  # How many candidates a tuple has
    why: str = ""  # Why they are chosen like that, for plans


@dataclass(frozen=True, slots=True)
class ResponseTask(_Task):
    """Rows that report on their own."""

    name: str  # The output, for messages
    sensitivity: ExactSensitivity  # The sensitivity of the counts, in integer steps
    categories: int  # How many reports there are
    rows: int = 1  # How many rows are of one individual

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity, self.rows)


@dataclass(frozen=True, slots=True)
class KeyTask(_Task):
    """A choice of groups."""

    name: str  # The output, for messages
    sensitivity: ExactSensitivity  # The sensitivity of the numbers of individuals, in integer steps
    groups: int  # In how many groups an individual may be
    # The most that the norm of an individual's weights over groups may be, in parts; None where
    # individuals are not weighed.
    norm: int | None = None
    # In how many rounds groups are found, each among those that the rounds before did not find.
    rounds: int = 1

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity, self.groups)


MechanismTask = AdditiveTask | SelectionTask | ResponseTask | KeyTask


def box_of(
    # `widths`, `turned`: by how much a row that comes or goes, or one that stays and changes, moves
    # each number.
    widths: tuple[int, ...],
    turned: tuple[int, ...],
    spread: ContributionBounds,  # How many rows of one individual may differ
    # Whether a row that changes may leave one vector for another: then it moves two, or one by
    # twice the width at most.
    grouped: bool,
    # The widths of a row's additions, see `Box`. One that leaves a vector for another moves each by
    # that. One that stays takes away one point of an arch and adds another: over twice the widths
    # of sums and squares that is half of each, so a point of the hull with a count of 0. And one
    # that comes, goes, or gets a value there moves them to a point halfway to that of no value,
    # which is above the arch as well. So `turned` must be twice the widths of these two.
    arches: tuple[Arch, ...] = (),
) -> Box:
    """What one individual moves vectors of sums within; see `Norms` in `dpframe.kernel.moves`."""
    rows = spread.tight[0]
    if not spread.changes:
        return Box(widths, rows, arches)
    return Box(widths, 2 * rows, arches) if grouped else Box(turned, rows, arches)


# The interface of every mechanism: its cost in each measure, its type for accounting, its error.
#
# All other code distinguishes mechanisms by these methods only.

_ROUNDING = Fraction(1, 2**36)


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism, what it costs, and why it was chosen."""

    law: Mechanism  # The mechanism with its scale, in integer steps
    cost: Budget  # What it charges, never more than its share
    reason: str  # Why, for the plan


def charge_for(share: Budget, used: Fraction) -> Budget:
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
    draws_scores: ClassVar[bool] = False
    """Whether it draws the scores of all candidates, and the choice follows from these."""

    @property
    def number_law(self) -> tuple[int, Mechanism] | None:
        """For groups that appear by a number of another draw, the threshold and the noise of it."""
        return None

    @property
    def kernel_law(self) -> kernel.Law:
        """Its law in physical plans, by which it is drawn. Raises `Refused` when the kernel has
        none, or when it rests on another draw.
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

    def pairs(
        self,
        exposure: Exposure,  # What one individual can do to it
        # The variance beyond which Gaussian noise is smoothed, so that all of it is one law.
        largest_stepped: Fraction,
    ) -> Iterable[Translated | None]:
        """Pairs of privacy losses that dominate it, one for each time that it is used; None for one
        that is not known.
        """
        from dpframe.accounting.losses import translate

        events = tuple(self.events(exposure))
        # One event may stand there thousands of times: each object is translated once.
        known = {id(event): event for event in events}
        found = {number: translate(event) for number, event in known.items()}
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
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
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
    def fit(cls, task: AdditiveTask, share: Budget) -> Choice | None:
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
    def fit(cls, task: SelectionTask, share: Budget) -> Choice:
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
        self,
        confidence: float | Fraction,  # Between 0 and 1, exclusive
        candidates: int,  # How many there are in a group
        winners: int,  # How many are chosen in a group
        # For how many it holds at once: 1, or those of all groups (by the union bound).
        choices: int,
    ) -> float:
        """With this confidence chosen scores are within this much of the best of those left."""
        return self.accuracy(1 - miss(confidence) / choices, candidates)


class ReportMechanism(Mechanism):
    """Rows that report on their own, each at random; what is released are debiased counts."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def fit(cls, task: ResponseTask, share: Budget) -> Choice:
        """The most truthful reports that the share pays for."""

    @abstractmethod
    def error(self, confidence: float | Fraction, rows: float, cells: int = 1) -> float:
        """With this confidence a count is off by no more than this, of this many rows."""

    @abstractmethod
    def error_per_root(self, confidence: float | Fraction, cells: int = 1) -> float:
        """The error in multiples of the root of the number of rows, where these are many."""


# No noise, for results that no individual's data can change.


@dataclass(frozen=True, slots=True)
class NoNoise(AdditiveMechanism):
    """Release an exact number: right only when its sensitivity is exactly 0.

    The cost is 0 under every privacy measure, because neighbouring data give the same number.
    """

    name: ClassVar[str] = "none"
    label: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Exact()

    @property
    def scale(self) -> Fraction:
        """0."""
        return Fraction(0)

    def epsilon(self) -> Fraction:
        """0."""
        return Fraction(0)

    def rho(self) -> Fraction:
        """0."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """0."""
        return 0.0

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def mu_squared_cost(self, exposure: Exposure) -> Fraction:
        """0."""
        _require_public(exposure)
        return Fraction(0)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """None at all."""
        _require_public(exposure)
        return ()

    def log_noise(self, candidates: int) -> float:
        """0, as if it were one step: what costs nothing changes no choice."""
        return 0.0

    def variance(self) -> float:
        """0."""
        return 0.0

    def quantile(self, confidence: float | Fraction, cells: int = 1) -> int:
        """0, for any confidence."""
        return 0

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(0 > x) for each x."""
        return np.where(x < 0, 1.0, 0.0)


def _require_public(exposure: Exposure) -> None:
    """Refuse a cost for numbers that individuals can change: no finite cost would be enough."""
    if not exposure.sensitivity.is_zero:
        raise ValueError("a number that individuals can change is not released without noise")
