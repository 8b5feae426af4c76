"""Rules that decide which unlisted groups appear."""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import exact, float_up, sqrt_down
from dpframe.core.units import parts_in_each
from dpframe.errors import InvalidBudget, MissingKeys
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import PARTS
from dpframe.mechanisms.combined import IndependentNoise
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.mechanism import (
    AdditiveMechanism,
    Choice,
    Exposure,
    KeyTask,
    Mechanism,
    positive_budget,
)
from dpframe.mechanisms.noise import appearance_chances
from dpframe.samplers.source import ONE

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


class KeyMechanism(Mechanism):
    """A rule by which groups appear."""

    __slots__ = ()
    label: ClassVar[str] = "selection of groups"
    biases_numbers: ClassVar[bool] = False
    """Whether groups appear by released numbers, which are then too large on average."""

    @classmethod
    def fit(cls, task: KeyTask, share: Budget) -> Choice | None:
        """The rule by which most groups appear; None for one that rests on a released number."""
        return None

    @classmethod
    def over_number(
        cls,
        noise: AdditiveMechanism,
        task: KeyTask,
        most: int,  # How much one individual adds to the number
        slack: Fraction,  # The delta of all groups
    ) -> Self | None:
        """The rule by a released number with such noise; None where it has none for the task."""
        return None

    @property
    def in_rounds(self) -> tuple[KeyMechanism, ...]:
        """The rule of each round, where groups are found in several; else this one alone."""
        return (self,)

    def is_for(self, norm: int | None, groups: int) -> bool:
        """Whether it is for individuals whose weights have such a norm, or none, over this many
        groups.
        """
        return norm is None

    def noise_of_number(self) -> AdditiveMechanism | None:
        """The noise of the released number by which groups appear, if they do by one."""
        return None

    def is_hidden_by(self, laws: Iterable[tuple[Mechanism, Fraction]]) -> bool:
        """Whether a group with one individual alone is hidden as often as this says, where these
        are the other mechanisms, each with the most that one individual adds to a number.
        """
        return True

    @property
    @abstractmethod
    def rule(self) -> str:
        """The rule, for plans."""

    def mu_squared_cost(self, exposure: Exposure) -> None:
        """None: it fails with its delta, and then no mu holds."""
        return

    def failure(self, exposure: Exposure) -> Fraction:
        """Its delta in this many groups."""
        return self.delta(exposure.repeats)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the size at which a group appears with probability one half."""
        return math.log(self.size_at(Fraction(1, 2)))

    def least_repeats(self, rows: int, groups: int) -> int:
        """Each group may appear."""
        return max(1, groups)

    @abstractmethod
    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals with which a group appears with such a chance."""

    @abstractmethod
    def delta(self, groups: int) -> Fraction:
        """The delta of this many groups: at most the sum (union bound)."""


def slack_of(share: Budget) -> Fraction:
    """The delta of a share, without which no groups can be found. Raises `MissingKeys` when it does
    not exist.
    """
    if not share.slack:
        raise MissingKeys(
            "groups without listed keys can only be found with a delta",
            remedy=(
                "spend a delta, for example delta=1e-8",
                "list the groups: group_by(..., keys=[...])",
            ),
        )
    return share.slack


# Which groups appear, by a noisy number that is released anyway.

_NEXT_TO_NOTHING: Final = Fraction(1, 10**60)
"""The least epsilon of an event, because what costs none."""


@dataclass(frozen=True, slots=True)
class NoisyThreshold(KeyMechanism):
    """A group appears when its noisy number of rows or individuals reaches a threshold.

    The noise is that of a number which is released, so it costs no epsilon. It hides a group only
    where other individuals are in it as well: one that is there with one individual alone must
    almost never appear. If such a group appears with probability p at most, g of them cost a
    delta of g p (Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilson et al. 2020, Theorem 1).

    Raises
    ------
    ValueError
        When the number has no noise.
    """

    noise: AdditiveMechanism  # The law of the number's noise
    threshold: int  # The least noisy number with which a group appears
    # p, the probability with which it appears although one individual is alone in it.
    row_delta: Fraction
    name: ClassVar[str] = "noisy_threshold"
    biases_numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.noise.is_exact:
            raise ValueError("a threshold needs noise")

    @classmethod
    def for_delta(
        cls,
        noise: AdditiveMechanism,  # The law of the number's noise
        most: int,  # How much one individual adds to it
        delta: Fraction,  # For one group; above 0
    ) -> Self:
        """The least threshold: most + a + 1, where the noise exceeds a with probability delta."""
        row = min(positive_budget(delta, "delta"), Fraction(1, 4))
        return cls(noise, most + noise.quantile(1 - 2 * row) + 1, row)

    @classmethod
    def over_number(
        cls, noise: AdditiveMechanism, task: KeyTask, most: int, slack: Fraction
    ) -> Self | None:
        """Where individuals are not weighed."""
        return None if task.norm is not None else cls.for_delta(noise, most, slack / task.groups)

    @property
    def scale(self) -> Fraction:
        """0: its only noise is that of the number."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """0: its only noise is that of the number."""
        return 0.0

    @property
    def rule(self) -> str:
        """Its threshold."""
        return f"noisy number of at least {self.threshold}"

    @property
    def number_law(self) -> tuple[int, AdditiveMechanism]:
        return self.threshold, self.noise_of_number()

    def noise_of_number(self) -> AdditiveMechanism:
        """The noise of the number."""
        return self.noise

    def is_hidden_by(self, laws: Iterable[tuple[Mechanism, Fraction]]) -> bool:
        """Whether there is such a number, with this small a contribution of one individual."""
        return any(
            law == self.noise
            and self.threshold
            >= NoisyThreshold.for_delta(self.noise, int(most), self.row_delta).threshold
            for law, most in laws
        )

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """0: the number is paid for."""
        return Fraction(0)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """0: the number is paid for."""
        return Fraction(0)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each group."""
        from dpframe.accounting.events import ApproxEvent

        return (ApproxEvent(_NEXT_TO_NOTHING, self.row_delta),) * exposure.repeats

    def delta(self, groups: int) -> Fraction:
        """The delta of this many groups: at most the sum (union bound)."""
        return groups * self.row_delta

    def size_at(self, chance: Fraction | float) -> int:
        """The least number with which a group appears with such a chance, at least a half."""
        wanted = 2 * exact(chance) - 1
        return self.threshold if wanted <= 0 else self.threshold + self.noise.quantile(wanted)


# Which groups appear: the optimal private selection of partitions by numbers of individuals.

_MOST_INDIVIDUALS: Final = 1 << 22
"""Groups of this many individuals would have to be distinguished: more than is worth while."""


@dataclass(frozen=True, slots=True)
class TruncatedGeometric(KeyMechanism):
    """A group with n individuals appears with probability p(n), the largest that is private:

        p(0) = 0,  p(n + 1) = min(exp(epsilon) p(n) + delta,
                                  1 - exp(-epsilon) (1 - p(n) - delta), 1).

    For one group that one individual may be in or not this is (epsilon, delta)-differentially
    private, and no rule with this guarantee lets any group appear more often (Desfontaines, Voss
    and Gipson 2022, Theorem 1). It is truncated geometric noise and a threshold. An individual in
    g groups pays g epsilon and g delta.

    The recursion is computed in multiples of 2**-128, with a rational number below exp(epsilon) and
    rounded down, so that both inequalities hold of the numbers that coins are thrown with.

    Raises
    ------
    InvalidBudget
        When so little is spent that almost no group could appear.
    """

    # `row_epsilon`, `row_delta`: what one individual in one group costs.
    row_epsilon: Fraction
    row_delta: Fraction
    name: ClassVar[str] = "truncated_geometric"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return kernel.Geometric(self.row_epsilon, self.row_delta)

    def __post_init__(self) -> None:
        positive_budget(self.row_epsilon, "epsilon")
        positive_budget(self.row_delta, "delta")
        # the table ends after about 2 ln(epsilon / delta) / epsilon steps
        rate = float(max(_LEAST, min(self.row_epsilon, Fraction(100))))
        slack = float(max(self.row_delta, _LEAST))
        if self.row_delta < _LEAST or math.log1p(rate / slack) / rate > _MOST_INDIVIDUALS / 4:
            raise InvalidBudget(
                "the spend is too small to find groups: almost none would appear",
                remedy=(
                    "spend more epsilon or delta",
                    "list the groups: group_by(..., keys=[...])",
                ),
            )

    @classmethod
    def fit(cls, task: KeyTask, share: Budget) -> Choice:
        """Each group of an individual at an equal part of epsilon or rho, and of delta."""
        slack_of(share)
        groups, reason = task.groups, "the rule by which most groups appear"
        if isinstance(share, ZCDP):
            law = cls(sqrt_down(2 * share.main / groups), share.slack / groups)
            return Choice(law, share.of(law.rho(groups), law.delta(groups)), reason)
        law = cls(share.main / groups, share.slack / groups)
        return Choice(law, share.of(law.epsilon(groups), law.delta(groups)), reason)

    @property
    def scale(self) -> Fraction:
        """The scale of the equivalent geometric noise."""
        return 1 / self.row_epsilon

    def shown_scale(self, step: Fraction) -> float:
        """Rounded up."""
        return float_up(self.scale * step)

    @property
    def rule(self) -> str:
        """Its name."""
        return "truncated geometric rule"

    def epsilon_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many groups."""
        return self.epsilon(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of this many groups."""
        return self.rho(exposure.repeats)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One for each group."""
        from dpframe.accounting.events import ApproxEvent

        return (ApproxEvent(self.row_epsilon, self.row_delta),) * exposure.repeats

    def epsilon(self, groups: int) -> Fraction:
        """What an individual in this many groups costs."""
        return groups * self.row_epsilon

    def delta(self, groups: int) -> Fraction:
        """The delta of this many groups: at most the sum (union bound)."""
        return groups * self.row_delta

    def rho(self, groups: int) -> Fraction:
        """The zCDP cost besides `delta`, epsilon**2 / 2 for each group (Bun and Steinke 2016)."""
        return groups * self.row_epsilon**2 / 2

    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals with which a group appears with such a chance."""
        table = appearance_chances(self.row_epsilon, self.row_delta)
        return bisect_left(table, math.ceil(exact(chance) * ONE))  # chances grow with the size

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the size at which a group appears with a probability of one half. At
        this size the sum of delta * e**(k * epsilon) over all smaller k reaches a half. A float,
        because it only serves to compare mechanisms.
        """
        epsilon, delta = float(self.row_epsilon), float(self.row_delta)
        if epsilon > _LARGEST_SUMMED or not delta:
            return KeyMechanism.log_noise(self, candidates)
        return math.log(math.ceil(math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon))


_LEAST: Final = Fraction(1, 1 << 100)
_LARGEST_SUMMED: Final = 32


# Groups that appear by noisy weights of individuals, without a limit on their groups.

_HALF: Final = Fraction(1, 2)
_REASON: Final = "by weights of individuals, with Gaussian noise of its own"


@dataclass(frozen=True, slots=True)
class WeighedThreshold(KeyMechanism):
    """A group appears when the noisy sum of the weights of its individuals reaches a threshold.

    An individual in t groups (at most `most`) has a weight of at most k(t) parts in each of them,
    see `parts_in_each`, so that the root of the sum of their squares is at most `norm`. So one
    draw of Gaussian noise hides in which groups it is, however many these are (Gopi, Gulhane,
    Kulkarni, Shen, Shokouhi and Yekhanin 2020, Algorithms 1 and 5; Swanberg, Desfontaines and
    Haney 2023). Groups in which it is alone must almost never appear: the threshold is at least
    k(t) + a(t) + 1 for every t, where the noise exceeds a(t) with a probability of slack / t at
    most.

    Theorem: assume noise that is (epsilon, delta)-differentially private for vectors which move
    by `norm` in L2, and any delta' = `slack`. Then this is (epsilon, delta +
    slack)-differentially private; with noise that is rho-zCDP it is slack-approximately rho-zCDP.

    Proof: let one frame have one individual more than the other, and S be the groups in which the
    weights of all others make more than 0. Let A and A' be what is released of groups in S, without
    and with the individual. They are made of noisy sums, and these are of two vectors that differ
    by the individual's weights alone, so by `norm` at most: A and A' are as close as the noise is.
    Let B and B' be what is released of all other groups. Without the individual their sums are 0 or
    they are not there, so B is nothing. With it there are t of them at most, each with a sum of
    k(t) at most, so each appears with probability P(noise >= threshold - k(t)) <=
    P(noise > a(t)) <= slack / t, and B' is something with a probability q of slack at most. The
    noise of different groups is independent, so B' is independent of A'. For a set E of results let
    E0 be those A with which, and nothing else, the result is in E. Then P(A', B' in E) is at most
    (1 - q) P(A' in E0) + q and at least (1 - q) P(A' in E0), and P(A, B in E) = P(A in E0). So

        P(A', B' in E) <= (1 - q) (e^epsilon P(A in E0) + delta) + q
                       <= e^epsilon P(A, B in E) + delta + slack,
        P(A, B in E)    = (1 - q) P(A in E0) + q P(A in E0)
                       <= (1 - q) (e^epsilon P(A' in E0) + delta) + q
                       <= e^epsilon P(A', B' in E) + delta + slack.

    Given that B' is nothing, which fails with probability slack at most, results are A and A', and
    the noise bounds their Renyi divergences: that is slack-approximate zCDP (Bun and Steinke 2016,
    Definition 8.1). Both inequalities turn delta into (1 - q) delta + q, as an event that fails
    with probability slack does in a privacy loss distribution.

    Raises
    ------
    ValueError
        When the threshold is lower than all that asks for.
    """

    noise: IndependentNoise  # The threshold of the sum, in parts of weights
    threshold: int  # The least noisy sum with which a group appears, in parts
    slack: Fraction  # With which probability groups appear in which one individual is alone
    norm: int  # The most that the norm of the weights of one individual may be, in parts
    most: int  # In how many groups one individual is at most
    # Whether noise is drawn for this alone; else a noisy sum is released, and costs nothing here.
    alone: bool
    name: ClassVar[str] = "weighed_threshold"

    @property
    def biases_numbers(self) -> bool:  # type: ignore[override]
        """Whether the number by which groups appear is released."""
        return not self.alone

    def __post_init__(self) -> None:
        least = _least_threshold(self.noise, self.slack, self.norm, self.most)
        if self.threshold < least:
            raise ValueError("groups of one individual would appear too often")

    @property
    def kernel_law(self) -> kernel.WeighedThreshold:
        """One round, with noise of its own."""
        if not self.alone or not isinstance(self.noise, DiscreteGaussian):
            raise kernel.Refused("weights without Gaussian noise of their own")
        return kernel.WeighedThreshold(((self.threshold, self.noise.sigma_squared),))

    @classmethod
    def over(
        cls,
        noise: IndependentNoise,  # The noise of the sums of weights
        # `norm`, `most`, `slack`, `alone`: as above.
        norm: int,
        most: int,
        slack: Fraction,
        *,
        alone: bool,
    ) -> Self:
        """The least threshold over some noise."""
        delta = min(positive_budget(slack, "delta"), Fraction(1, 4))
        least = _least_threshold(noise, delta, norm, most)
        return cls(noise, least, delta, norm, most, alone)

    @classmethod
    def over_number(
        cls, noise: AdditiveMechanism, task: KeyTask, most: int, slack: Fraction
    ) -> Self | None:
        """Where individuals are weighed, and the noise is by the norm of weights."""
        if task.norm is None or task.rounds > 1 or not isinstance(noise, IndependentNoise):
            return None
        if noise.norm != DiscreteGaussian.norm:
            return None
        return cls.over(noise, task.norm, task.groups, slack, alone=False)

    def is_for(self, norm: int | None, groups: int) -> bool:
        """For weights of this norm in this many groups."""
        return (self.norm, self.most) == (norm, groups)

    @classmethod
    def fit(cls, task: KeyTask, share: Budget) -> Choice | None:
        """Noise at the share, with half of delta where it needs some; the other half, or all of it,
        is for the threshold. None where individuals are not weighed.
        """
        if task.norm is None:
            return None
        moved, slack = task.sensitivity, slack_of(share)
        if isinstance(share, ZCDP):
            noise = DiscreteGaussian.for_zcdp(moved.l2_squared, share.main)
        else:
            slack = slack * _HALF
            noise = DiscreteGaussian.for_approx(
                moved.l0, moved.l2_squared, share.main, share.slack - slack, moved.linf
            )
        law = cls.over(noise, task.norm, task.groups, slack, alone=True)
        return Choice(law, share, _REASON)

    @property
    def scale(self) -> Fraction:
        """0: plans show that of the sum."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """Sigma of noise that is drawn for this alone, else 0: its only noise is that of the
        number.
        """
        return self.noise.shown_scale(step) if self.alone else 0.0

    @property
    def rule(self) -> str:
        """Its threshold."""
        return (
            "noisy sum of the weights of individuals of at least "
            f"{self.threshold / PARTS:.4g}, each in {self.most} groups at most"
        )

    @property
    def number_law(self) -> tuple[int, AdditiveMechanism] | None:
        noise = self.noise_of_number()
        return None if noise is None else (self.threshold, noise)

    def noise_of_number(self) -> AdditiveMechanism | None:
        """The noise of the released sum, if it is released."""
        return None if self.alone else self.noise

    def is_hidden_by(self, laws: Iterable[tuple[Mechanism, Fraction]]) -> bool:
        """Whether such a sum is there, to which one individual adds its weight at most."""
        most = parts_in_each(self.norm, 1)
        return self.alone or any(law == self.noise and moved <= most for law, moved in laws)

    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """0 where the sum is paid for; none without a delta where it is not."""
        return None if self.alone else Fraction(0)

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the noise and of groups that appear although one individual is alone
        there."""
        return self.noise.delta_at(epsilon, exposure) + self.delta(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the noise."""
        return self.noise.rho_cost(exposure) if self.alone else Fraction(0)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """One of the noise, and one of what appears although one individual is alone there."""
        from dpframe.accounting.events import ApproxEvent

        once = Exposure(exposure.sensitivity)
        noise = self.noise.events(once) if self.alone else ()
        return (*noise, ApproxEvent(_NEXT_TO_NOTHING, self.delta(exposure.repeats)))

    def delta(self, groups: int) -> Fraction:
        """Its slack, which is for all groups of one individual together."""
        return self.slack if groups <= self.most else Fraction(1)

    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals that are nowhere else, with which a group appears with
        such a chance, at least a half.
        """
        wanted = 2 * exact(chance) - 1
        parts = self.threshold if wanted <= 0 else self.threshold + self.noise.quantile(wanted)
        return math.ceil(Fraction(parts, parts_in_each(self.norm, 1)))


_MOST: Final = 1 << 31
"""Limits on groups are below that."""
_FINE: Final = 256
"""From this many groups on weights are small, and steps from one number of groups to the next are
coarser."""


@lru_cache(maxsize=64)
def _least_threshold(noise: IndependentNoise, slack: Fraction, norm: int, most: int) -> int:
    """The largest over t of k(t) + a + 1, where the noise exceeds a with probability slack / t.

    Where k(t) is small against what it may lack, several t share the threshold of the largest of
    them, with the weight of the least: never too low.
    """
    if noise.is_exact or not 0 < slack <= Fraction(1, 4) or norm < 1 or not 0 < most < _MOST:
        raise ValueError("a threshold needs noise, a delta, and individuals in groups")
    least, first = 0, 1
    while first <= most:
        last = min(most, first + first // (32 if first < _FINE else 4))
        row = slack / last
        least = max(least, parts_in_each(norm, first) + noise.quantile(1 - 2 * row) + 1)
        first = last + 1
    return least


# Which groups appear, by noisy weights of individuals, in several rounds.

RATIO: Final = 8
"""How many times the rho of the round before a round has; docs/benchmarks.md says why."""


@dataclass(frozen=True, slots=True)
class WeighedRounds(KeyMechanism):
    """A group appears when the noisy sum of the weights of its individuals reaches a threshold,
    in one of several rounds; each round weighs only the groups that earlier rounds have not
    released.

    A person in many groups gives each little weight. Most of its groups are large, and a first
    round at a small part of the cost finds them. The next one leaves them out, so that the weight
    goes to the remaining groups (Swanberg, Desfontaines and Haney 2023, Algorithm 1). Each round
    is a `WeighedThreshold`, with noise of its own.

    Theorem: let v_i be the variance of each round, v that of `noise`, where 1 / v is the sum of
    all 1 / v_i, and s the sum of their slacks. All rounds together are s-approximately (norm**2 /
    (2 v))-zCDP. Consider one vector with noise of variance v and as many entries as all rounds have
    together. If `delta_bound` proves (epsilon, delta) for it, through zCDP or by smoothing, then
    the rounds are (epsilon, delta + s)-differentially private.

    Proof: the groups that a round leaves out follow from the releases of earlier rounds, so they
    are public when the round begins. Rows are left out by their own keys, so neighbouring frames
    stay neighbours, and the proof of `WeighedThreshold` holds for the round after any earlier
    releases. Noise, thresholds and slacks are fixed before anything is read, so rounds are
    mechanisms that earlier results choose and that have fixed bounds. In zCDP these add up,
    slacks too (Bun and Steinke 2016, Lemma 8.2).

    For (epsilon, delta): compare a round with one that reveals more. It always reveals the noisy
    sums A of groups in which the individual is not alone, and with probability s_i, by an
    independent coin, which of the two frames it reads. The round is post-processing of this one.
    Without the individual the release follows from A. With it, groups in which it is alone appear
    with a probability q <= s_i, independently of A: let them appear in q / s_i of the cases in
    which the frame is revealed. All coins can be tossed before the first round, and with a
    probability of at most s one of them reveals the frame. Otherwise only sums with noise remain.
    Up to exp(K) per entry, noise of variance v_i is post-processing of continuous noise of variance
    v_i - a**2, with one a for all (by smoothing, `dpframe.accounting.gaussian_noise`), and
    v_i - a**2 >= (v - a**2) v_i / v, as v_i >= v. Earlier results choose the later rounds, and
    continuous Gaussian noise in such rounds is dominated by a single one whose squared mu is the
    sum of norm**2 / (v_i - a**2) (Dong, Roth and Su 2022, Theorem 3.2 and Corollary 3.3). This is
    at most norm**2 / (v - a**2). So the rounds are (epsilon, (1 - s) delta + s)-private in both
    directions.

    Raises
    ------
    ValueError
        When there is only one round, or a threshold is lower than these rules require.
    """

    # As much noise, in parts of weights, as costs what that of all rounds costs together.
    noise: DiscreteGaussian
    shares: tuple[int, ...]  # What part of it each round has, relative to the others
    thresholds: tuple[int, ...]  # The least noisy sum with which a group appears, in each round
    # With which probability groups appear in which one individual is alone, in all rounds.
    slack: Fraction
    # `norm`, `most`: the most that the norm of the weights of one individual may be, in parts, and
    # in how many groups one is at most.
    norm: int
    most: int
    name: ClassVar[str] = "weighed_rounds"

    def __post_init__(self) -> None:
        number = len(self.shares)
        if number < 2 or min(self.shares) < 1 or len(self.thresholds) != number:
            raise ValueError("these are no rounds of one choice of groups")
        if number * self.most > self.norm**2:
            raise ValueError("more sums than the proof knows of")
        _ = self.in_rounds  # which refuse lower thresholds

    @property
    def kernel_law(self) -> kernel.WeighedThreshold:
        """The threshold and the noise of each round."""
        return kernel.WeighedThreshold(
            tuple(r for one in self.in_rounds for r in one.kernel_law.rounds)
        )

    @classmethod
    def over(
        cls, noise: DiscreteGaussian, shares: tuple[int, ...], norm: int, most: int, slack: Fraction
    ) -> Self:
        """The least thresholds over some noise.

        Parameters
        ----------
        noise, shares, norm, most, slack
            As above.
        """
        slack = min(slack, Fraction(1, 4))
        each = slack / len(shares)
        thresholds = tuple(
            WeighedThreshold.over(own, norm, most, each, alone=True).threshold
            for own in _noises(noise, shares)
        )
        return cls(noise, shares, thresholds, slack, norm, most)

    @classmethod
    def fit(cls, task: KeyTask, share: Budget) -> Choice | None:
        """Rounds with the whole of the noise at the share, half of delta for it where it needs
        some, and what is left of delta shared equally by the thresholds. None where one round is
        requested, or individuals are not weighed.
        """
        if task.norm is None or task.rounds < 2:
            return None
        slack, moved = slack_of(share), task.sensitivity
        if isinstance(share, ZCDP):
            noise = DiscreteGaussian.for_zcdp(moved.l2_squared, share.main)
        else:
            slack = slack * _HALF
            noise = DiscreteGaussian.for_approx(
                moved.l0 * task.rounds, moved.l2_squared, share.main, share.slack - slack
            )
        shares = tuple(RATIO**number for number in range(task.rounds))
        law = cls.over(noise, shares, task.norm, task.groups, slack)
        return Choice(law, share, f"each round costs {RATIO} times what the one before does")

    @property
    def in_rounds(self) -> tuple[WeighedThreshold, ...]:
        """The rule of each round."""
        each = self.slack / len(self.shares)
        return tuple(
            WeighedThreshold(noise, threshold, each, self.norm, self.most, True)
            for noise, threshold in zip(
                _noises(self.noise, self.shares), self.thresholds, strict=True
            )
        )

    def is_for(self, norm: int | None, groups: int) -> bool:
        """For weights of this norm in this many groups."""
        return (self.norm, self.most) == (norm, groups)

    @property
    def scale(self) -> Fraction:
        """0: plans show those of rounds in words."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """Sigma of the last round, the least."""
        return self.in_rounds[-1].shown_scale(step)

    @property
    def rule(self) -> str:
        """The thresholds, and what part of the cost of noise each round has."""
        total = sum(self.shares)
        rounds = [
            f"of at least {threshold / PARTS:.4g} ({share / total:.1%} of the cost of noise)"
            for threshold, share in zip(self.thresholds, self.shares, strict=True)
        ]
        first, *later = rounds
        others = "".join(f", then without the groups found so far {words}" for words in later)
        return (
            f"in {len(self.shares)} rounds, by noisy sums of the weights of individuals, each in "
            f"{self.most} groups at most: {first}{others}"
        )

    def epsilon_cost(self, exposure: Exposure) -> None:
        """None without a delta."""
        return

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the noise of all rounds, and of groups that appear although one individual
        is alone there.
        """
        norms = exposure.sensitivity
        entries = norms.l0 * len(self.shares)
        noise = Fraction(self.noise.delta(epsilon, entries, norms.l2_squared))
        return noise + self.delta(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the noise."""
        return self.noise.rho_cost(exposure)

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """The events of the rounds."""
        return tuple(event for law in self.in_rounds for event in law.events(exposure))

    def delta(self, groups: int) -> Fraction:
        """Its slack, which is for all groups of one individual together."""
        return self.slack if groups <= self.most else Fraction(1)

    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals that are in no other group, with which one of the rounds
        finds a group with such a chance.
        """
        return min(law.size_at(chance) for law in self.in_rounds)


def _noises(whole: DiscreteGaussian, shares: tuple[int, ...]) -> list[DiscreteGaussian]:
    """The noise of each round: as many times the variance as its share is of all."""
    total = sum(shares)
    return [DiscreteGaussian(whole.sigma_squared * Fraction(total, share)) for share in shares]
