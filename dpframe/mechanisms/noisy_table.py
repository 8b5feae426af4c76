"""A noisy table: noise on every score, once, and the winners are read from what comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from dpframe.core.budget import Budget
from dpframe.kernel import plan as kernel
from dpframe.mechanisms.combinable import IndependentNoise
from dpframe.mechanisms.confidence import miss
from dpframe.mechanisms.discrete_gaussian import DiscreteGaussian
from dpframe.mechanisms.discrete_laplace import DiscreteLaplace
from dpframe.mechanisms.exposure import Exposure
from dpframe.mechanisms.mechanism import AdditiveMechanism, Choice, SelectionMechanism
from dpframe.mechanisms.tasks import AdditiveTask, SelectionTask

if TYPE_CHECKING:
    from dpframe.accounting.events import AnyEvent
    from dpframe.accounting.loss_laws import Translated


_NOISES: tuple[type[AdditiveMechanism], ...] = (DiscreteGaussian, DiscreteLaplace)


@dataclass(frozen=True, slots=True)
class NoisyTable(SelectionMechanism):
    """The candidates with the largest scores plus noise, which every score gets once.

    The noisy scores of all groups are one vector of integers with noise on every entry, and cost
    what that costs by the vector's sensitivity: Laplace noise by L1, Gaussian noise by L2. The
    winners are a function of it, so they cost nothing more, however many they are (post-processing:
    Dwork and Roth 2014, Proposition 2.1). Ties go to the candidate that is listed first, because
    the order is public. Several choices one after another, each among the remaining ones, cost
    several times as much. Here the cost depends on how far all scores move, there only on how far
    their differences change.

    Parameters
    ----------
    noise
        What is added to each score, in its steps.

    Raises
    ------
    ValueError
        When that is no noise of these kinds.
    """

    noise: IndependentNoise
    name: ClassVar[str] = "noisy_table"
    label: ClassVar[str] = "noisy table"

    @property
    def kernel_law(self) -> kernel.Law:
        """The same for the kernel."""
        return self.noise.kernel_law

    def __post_init__(self) -> None:
        if not isinstance(self.noise, IndependentNoise):
            raise ValueError("a noisy table needs noise")

    @classmethod
    def fitted(cls, task: SelectionTask, share: Budget) -> Choice:
        """With the noise under which two scores change places least."""
        scores = AdditiveTask(task.name, task.sensitivity)
        fitting = (kind.fitted(scores, share) for kind in _NOISES)
        made = [
            Choice(cls(choice.law), choice.cost, cls.reason(task, choice.law))
            for choice in fitting
            if choice is not None and isinstance(choice.law, IndependentNoise)
        ]
        return min(made, key=lambda choice: choice.law.log_noise(task.candidates))

    @classmethod
    def is_rival(cls, task: SelectionTask) -> bool:
        """Where several winners would share the cost, and each candidate is one point."""
        return task.rounds > 1 and not task.weighted

    @classmethod
    def reason(cls, task: SelectionTask, noise: AdditiveMechanism) -> str:
        """Why it chooses, for plans."""
        if task.mechanism != "auto":
            return f"{noise.norm}, as asked"
        return f"{noise.norm}, errs less than {task.rounds} choices that share the cost"

    def shown_scale(self, step: Fraction) -> float:
        """The scale of the noise."""
        return self.noise.shown_scale(step)

    def details(self) -> str:
        """Which noise, and how often."""
        scale = (
            "" if self.noise.scale_label == self.scale_label else f"as {self.noise.scale_label} "
        )
        return f"{scale}of {self.noise.label} noise that is added once to every score"

    def epsilon_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the noisy scores."""
        return self.noise.epsilon_cost(_once(exposure))

    def rho_cost(self, exposure: Exposure) -> Fraction:
        """The cost of the noisy scores."""
        return self.noise.rho_cost(_once(exposure))

    def mu_squared_cost(self, exposure: Exposure) -> Fraction | None:
        """The cost of the noisy scores."""
        return self.noise.mu_squared_cost(_once(exposure))

    def delta_at(self, epsilon: Fraction, exposure: Exposure) -> Fraction:
        """The delta of the noisy scores."""
        return self.noise.delta_at(epsilon, _once(exposure))

    def events(self, exposure: Exposure) -> tuple[AnyEvent, ...]:
        """The events of the noisy scores."""
        return self.noise.events(_once(exposure))

    def pairs(self, exposure: Exposure, largest_stepped: Fraction) -> Iterable[Translated | None]:
        """The dominating pairs of the noisy scores."""
        return self.noise.pairs(_once(exposure), largest_stepped)

    def log_noise(self, candidates: int) -> float:
        """The logarithm of the distance of the choice from the best score, 95% of the time."""
        return self.noise.log_apart(0.05 / max(1, candidates - 1))

    def accuracy(self, confidence: float | Fraction, candidates: int) -> float:
        """With this confidence the first winner's score is within this much of the best one."""
        return self.accuracy_of(confidence, candidates, 1, 1)

    def accuracy_of(
        self, confidence: float | Fraction, candidates: int, winners: int, choices: int
    ) -> float:
        """With this confidence winners are within this much of the best of those left; rounded
        up.

        The best candidate that is left when the j-th winner is taken is one of the j with the
        largest scores, for at most j - 1 of these were taken before. A candidate that is more than
        a below it is taken only if its noise exceeds that one's by more than a. Of pairs of one of
        the best k and another candidate there are k (candidates - 1), and the union bound over
        these is for all winners of a group at once.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        ValueError
            When there is no candidate.
        """
        if candidates < 1:
            raise ValueError("at least one candidate is needed")
        missed = miss(confidence)
        if candidates == 1:
            return 0.0
        groups = -(-choices // winners)
        return float(self.noise.apart(missed / (groups * winners * (candidates - 1))))


def _once(exposure: Exposure) -> Exposure:
    """All winners are of one table."""
    return replace(exposure, repeats=1)
