"""Groups that appear by noisy weights of individuals, without a limit on their groups."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.exact import exact
from dpframe.core.weights import PARTS, parts_in_each
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combinable import IndependentNoise
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.key_mechanism import KeyMechanism, slack_of
from dpframe.mechanisms.mechanism import AdditiveMechanism, Choice, Mechanism
from dpframe.mechanisms.rounding import positive_budget
from dpframe.mechanisms.tasks import KeyTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


_HALF: Final = Fraction(1, 2)
_NEXT_TO_NOTHING: Final = Fraction(1, 10**60)
"""The least epsilon of an event, because what costs none."""
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

    Parameters
    ----------
    noise
        The threshold of the sum, in parts of weights.
    threshold
        The least noisy sum with which a group appears, in parts.
    slack
        With which probability groups appear in which one individual is alone.
    norm
        The most that the norm of the weights of one individual may be, in parts.
    most
        In how many groups one individual is at most.
    alone
        Whether noise is drawn for this alone; else a noisy sum is released, and costs nothing here.

    Raises
    ------
    ValueError
        When the threshold is lower than all that asks for.
    """

    noise: IndependentNoise
    threshold: int
    slack: Fraction
    norm: int
    most: int
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
        cls, noise: IndependentNoise, norm: int, most: int, slack: Fraction, *, alone: bool
    ) -> Self:
        """The least threshold over some noise.

        Parameters
        ----------
        noise
            The noise of the sums of weights.
        norm, most, slack, alone
            As above.
        """
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
    def fitted(cls, task: KeyTask, share: Budget) -> Choice | None:
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
