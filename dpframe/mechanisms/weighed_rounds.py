"""Which groups appear, by noisy weights of individuals, in several rounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dpframe.core.budget import ZCDP, Budget
from dpframe.core.weights import PARTS
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.key_mechanism import KeyMechanism
from dpframe.mechanisms.mechanism import Choice, Mechanism
from dpframe.mechanisms.tasks import KeyTask
from dpframe.mechanisms.weighed_threshold import WeighedThreshold, slack_of
from dpframe.samplers import BitSource

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent

__all__ = ["WeighedRounds"]

RATIO: Final = 8
"""How many times the rho of the round before a round has; docs/benchmarks.md says why."""
_HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class WeighedRounds(KeyMechanism):
    """A group appears when the noisy sum of the weights of its individuals reaches a threshold, in
    one of several rounds, of which each weighs what the rounds before have not found.

    A person in many groups gives each little weight. Most of its groups are large, and a first
    round at a small part of the cost finds them; the next one leaves them out, so that the weight
    goes to the groups that are left (Swanberg, Desfontaines and Haney 2023, Algorithm 1). Each
    round is a `WeighedThreshold`, with noise of its own.

    Theorem: with Gaussian noise of variances v_1, v_2, ... and thresholds with slacks s_1, s_2, ...
    all rounds together are (s_1 + s_2 + ...)-approximately rho-zCDP, where rho is the sum of
    norm**2 / (2 v_i). They are (epsilon, delta + s_1 + s_2 + ...)-differentially private for every
    (epsilon, delta) that `delta_bound` proves of one noise of variance v = 1 / (1 / v_1 + 1 / v_2 +
    ...) and as many times as many entries as there are rounds, through zCDP or by smoothing.

    Proof: which groups a round leaves out follows from what rounds before released, so it is public
    when the round begins; rows are left out by their own keys, so neighbouring frames stay
    neighbours, and the theorem of `WeighedThreshold` holds for the round whatever was found. Its
    noise, threshold and slack were fixed before anything was read. So the rounds are mechanisms
    that are chosen by earlier results and have fixed bounds. In zCDP these add up, slacks too (Bun
    and Steinke 2016, Lemma 8.2). For (epsilon, delta): given that no round lets a group appear
    with the individual alone, which fails with a probability of at most the sum of slacks, what is
    released is post-processing of vectors with noise. By smoothing (`dpframe.accounting.
    gaussian_delta`) noise of variance v_i is, up to exp(K) per entry, post-processing of continuous
    noise of variance v_i - s**2, and v_i - s**2 >= (v - s**2) v_i / v as v_i >= v. Continuous
    Gaussian noise in rounds, each chosen by results of those before, is dominated by one with the
    sum of norm**2 / (v_i - s**2) as the square of its mu (Dong, Roth and Su 2022, Theorem 3.2 and
    Corollary 3.3), and that sum is at most norm**2 / (v - s**2).

    Parameters
    ----------
    rounds
        The rule of each round, in order; their norms and numbers of groups are the same, and each
        draws noise for itself alone.

    Raises
    ------
    ValueError
        When there are not several such rounds.
    """

    rounds: tuple[WeighedThreshold, ...]
    name: ClassVar[str] = "weighed_rounds"

    def __post_init__(self) -> None:
        first, *others = self.rounds
        whole = all(type(r.noise) is DiscreteGaussian and r.alone for r in self.rounds)
        same = all((r.norm, r.most) == (first.norm, first.most) for r in others)
        if not others or not whole or not same or self._entries > first.norm**2:
            raise ValueError("these are no rounds of one choice of groups")

    @classmethod
    def fitted(cls, task: KeyTask, share: Budget) -> Choice | None:
        """Rounds with the whole of the noise at the share, half of delta for it where it needs
        some, and what is left of delta shared equally by the thresholds. None where one round is
        asked for, or individuals are not weighed.
        """
        if task.norm is None or task.rounds < 2:
            return None
        slack, moved = slack_of(share), task.sensitivity
        if isinstance(share, ZCDP):
            whole = DiscreteGaussian.for_zcdp(moved.l2_squared, share.main)
        else:
            slack = slack * _HALF
            whole = DiscreteGaussian.for_approx(
                moved.l0 * task.rounds, moved.l2_squared, share.main, share.slack - slack
            )
        parts = [Fraction(RATIO**number) for number in range(task.rounds)]
        noises = [DiscreteGaussian(whole.sigma_squared * sum(parts) / part) for part in parts]
        each = slack / task.rounds
        rounds = tuple(
            WeighedThreshold.over(noise, task.norm, task.groups, each, alone=True)
            for noise in noises
        )
        return Choice(cls(rounds), share, f"each round costs {RATIO} times the one before")

    @property
    def whole(self) -> DiscreteGaussian:
        """Noise that costs as much as that of all rounds together."""
        return DiscreteGaussian(1 / sum((1 / v for v in self._variances), Fraction(0)))

    @property
    def _variances(self) -> list[Fraction]:
        return [r.noise.sigma_squared for r in self.rounds if isinstance(r.noise, DiscreteGaussian)]

    @property
    def _entries(self) -> int:
        """How many sums one individual moves in all rounds, at most."""
        return len(self.rounds) * self.rounds[0].most

    @property
    def in_rounds(self) -> tuple[WeighedThreshold, ...]:
        """Its rounds."""
        return self.rounds

    def is_for(self, norm: int | None, groups: int) -> bool:
        """For weights of this norm in so many groups."""
        return self.rounds[0].is_for(norm, groups)

    @property
    def scale(self) -> Fraction:
        """0: plans show those of rounds in words."""
        return Fraction(0)

    def shown_scale(self, step: Fraction) -> float:
        """Sigma of the last round, the least."""
        return self.rounds[-1].shown_scale(step)

    @property
    def rule(self) -> str:
        """The thresholds, and what part of the cost of noise each round has."""
        v = self.whole.sigma_squared
        told = [
            f"of at least {r.threshold / PARTS:.4g} ({float(v / own):.1%} of the cost of noise)"
            for r, own in zip(self.rounds, self._variances, strict=True)
        ]
        first, *later = told
        others = "".join(f", then without the groups found so far {words}" for words in later)
        return (
            f"in {len(self.rounds)} rounds, by noisy sums of the weights of individuals, each in "
            f"{self.rounds[0].most} groups at most: {first}{others}"
        )

    def epsilon_cost(self, exposure: Exposure) -> None:
        """None without a delta."""
        return

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """Of the noise of all rounds, and of groups that appear although one individual is alone
        there.
        """
        norms = exposure.sensitivity
        entries = norms.l0 * len(self.rounds)
        noise = Fraction(self.whole.delta(epsilon, entries, norms.l2_squared))
        return noise + self.delta(exposure.repeats)

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The sum of those of the rounds."""
        return sum((r.rho_cost(exposure) for r in self.rounds), Fraction(0))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """Those of the rounds."""
        return tuple(event for r in self.rounds for event in r.events(exposure))

    def delta(self, groups: int) -> Fraction:
        """The slacks of all rounds."""
        return min(Fraction(1), sum((r.delta(groups) for r in self.rounds), Fraction(0)))

    def size_at(self, chance: Fraction | float) -> int:
        """The least number of individuals that are in no other group, with which one of the rounds
        finds a group with such a chance.
        """
        return min(r.size_at(chance) for r in self.rounds)

    def is_hidden_by(self, laws: Iterable[tuple[Mechanism, Fraction]]) -> bool:
        """As its rounds draw noise of their own."""
        return True

    def keep(self, sums: NDArray[np.int64], source: BitSource | None = None) -> NDArray[np.bool_]:
        """Never: sums of a round follow from what rounds before found, so each is asked by itself.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(self.name)
