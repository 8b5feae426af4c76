"""Which groups appear, by noisy weights of individuals, in several rounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.weights import PARTS
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.key_mechanism import KeyMechanism, slack_of
from dpframe.mechanisms.mechanism import Choice
from dpframe.mechanisms.tasks import KeyTask
from dpframe.mechanisms.weighed_threshold import WeighedThreshold

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


RATIO: Final = 8
"""How many times the rho of the round before a round has; docs/benchmarks.md says why."""
_HALF: Final = Fraction(1, 2)


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
    v_i - a**2, with one a for all (by smoothing, `dpframe.accounting.gaussian_delta`), and
    v_i - a**2 >= (v - a**2) v_i / v, as v_i >= v. Earlier results choose the later rounds, and
    continuous Gaussian noise in such rounds is dominated by a single one whose squared mu is the
    sum of norm**2 / (v_i - a**2) (Dong, Roth and Su 2022, Theorem 3.2 and Corollary 3.3). This is
    at most norm**2 / (v - a**2). So the rounds are (epsilon, (1 - s) delta + s)-private in both
    directions.

    Parameters
    ----------
    noise
        As much noise, in parts of weights, as costs what that of all rounds costs together.
    shares
        What part of it each round has, relative to the others.
    thresholds
        The least noisy sum with which a group appears, in each round.
    slack
        With which probability groups appear in which one individual is alone, in all rounds.
    norm, most
        The most that the norm of the weights of one individual may be, in parts, and in how many
        groups one is at most.

    Raises
    ------
    ValueError
        When there is only one round, or a threshold is lower than these rules require.
    """

    noise: DiscreteGaussian
    shares: tuple[int, ...]
    thresholds: tuple[int, ...]
    slack: Fraction
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
    def fitted(cls, task: KeyTask, share: Budget) -> Choice | None:
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
        whole = sum(self.shares)
        told = [
            f"of at least {threshold / PARTS:.4g} ({share / whole:.1%} of the cost of noise)"
            for threshold, share in zip(self.thresholds, self.shares, strict=True)
        ]
        first, *later = told
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
