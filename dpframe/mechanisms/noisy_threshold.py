"""Which groups appear, by a noisy number that is released anyway."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Self

from dpframe.core.exact import exact
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.key_mechanism import KeyMechanism
from dpframe.mechanisms.mechanism import AdditiveMechanism, Mechanism
from dpframe.mechanisms.rounding import positive_budget
from dpframe.mechanisms.tasks import KeyTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent


_NEXT_TO_NOTHING: Final = Fraction(1, 10**60)
"""The least epsilon of an event, because what costs none."""


@dataclass(frozen=True, slots=True)
class NoisyThreshold(KeyMechanism):
    """A group appears when its noisy number of rows or individuals reaches a threshold.

    The noise is that of a number which is released, so it costs no epsilon. It hides a group only
    where other individuals are in it as well: one that is there with one individual alone must
    almost never appear. If such a group appears with probability p at most, g of them cost a
    delta of g p (Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilson et al. 2020, Theorem 1).

    Parameters
    ----------
    noise
        The law of the number's noise.
    threshold
        The least noisy number with which a group appears.
    row_delta
        p, the probability with which it appears although one individual is alone in it.

    Raises
    ------
    ValueError
        When the number has no noise.
    """

    noise: AdditiveMechanism
    threshold: int
    row_delta: Fraction
    name: ClassVar[str] = "noisy_threshold"
    biases_numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.noise.is_exact:
            raise ValueError("a threshold needs noise")

    @classmethod
    def for_delta(cls, noise: AdditiveMechanism, most: int, delta: Fraction) -> Self:
        """The least threshold: most + a + 1, where the noise exceeds a with probability delta.

        Parameters
        ----------
        noise
            The law of the number's noise.
        most
            How much one individual adds to it.
        delta
            For one group; above 0.
        """
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
