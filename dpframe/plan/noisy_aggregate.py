"""One vector that is drawn with noise, or one private selection."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpframe.accounting.events import AnyEvent
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, as_given, exact
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange, Sensitivity
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.mechanisms import (
    AdditiveMechanism,
    CombinedNoise,
    Exposure,
    KeyMechanism,
    Mechanism,
    SelectionMechanism,
)
from dpframe.plan.joint_draw import JointDraw

_MOST_EVENTS = 10**6


@dataclass(frozen=True, slots=True)
class NoisyAggregate:
    """One vector that is drawn with noise, or one private selection.

    Parameters
    ----------
    name
        The first output column that uses it.
    aggregate
        Its role there: ``"count"``, ``"sum"``, ``"mean.sum"``, ``"histogram"``, ...
    sensitivity
        The sensitivity of the whole vector, in the value's own units; for selections that of the
        scores.
    mechanism
        Its name.
    scale
        In the value's units: b of Laplace, sigma of Gaussian, t of exp(score / t), 0 for "none".
    cost
        Its part of the plan's cost.
    law
        The mechanism with its exact scale, in steps.
    step
        The value of one integer step.
    exact
        The sensitivity in steps, exactly.
    entries
        How many numbers, or selections, are released.
    spread
        How many rows of one individual may count, and in how many groups.
    repeats
        How many runs of the mechanism depend on one individual: rounds of a selection, groups that
        may appear, or rows that report separately. Otherwise 1.
    candidates
        For selections: how many candidates there are.
    scores
        For selections: the range of the changes of scores by one individual, in steps.
    contents, reason
        What the vector holds, and why the mechanism was chosen.
    users
        The outputs that use it.
    asked
        The mechanism that is requested.
    bias
        The largest rounding error of one row on the grid, in the value's units; 0 for exact sums.
    draw
        The number of the draw. Parts that are drawn jointly have the same number and the same
        `cost`: that of the whole draw, which counts once.
    joint
        How the number is computed from a joint draw; None if it is drawn alone.
    """

    name: str
    aggregate: str
    sensitivity: Sensitivity
    mechanism: str
    scale: float
    cost: Budget
    law: Mechanism = field(repr=False)
    step: Fraction = field(repr=False)
    exact: ExactSensitivity = field(repr=False)
    entries: int = field(repr=False)
    spread: ContributionBounds = field(repr=False)
    repeats: int = field(repr=False)
    candidates: int | None = field(repr=False)
    scores: ScoreRange | None = field(repr=False)
    contents: str = field(repr=False)
    reason: str = field(repr=False)
    users: tuple[str, ...] = field(repr=False)
    asked: str = field(default="auto", repr=False)
    bias: Fraction = field(default=Fraction(0), repr=False)
    draw: int = 0
    joint: JointDraw | None = field(default=None, repr=False)

    @property
    def noise(self) -> Mechanism:
        """The mechanism of this number alone: the law of its noise, for any joint draw. `law` is
        what is drawn, and paid for.
        """
        if self.joint is None:
            return self.law
        return CombinedNoise.of(self.law, self.joint.factors, self.joint.divisor)

    def accuracy(self, confidence: Number = 0.95, simultaneous: bool = False) -> float:
        """The smallest a with P(|error| <= a) >= confidence, in the value's units.

        Parameters
        ----------
        confidence
            Between 0 and 1, exclusive.
        simultaneous
            Whether all entries (groups, bins) keep within a together.

        Returns
        -------
        float
            For noise, the exact quantile of its discrete law. For selections, how far the chosen
            score may be below the best (McSherry & Talwar 2007, Theorem 7). For groups found in
            the data, the size at which a group appears with this confidence.

        Raises
        ------
        InvalidBounds
            When the confidence does not lie between 0 and 1.
        """
        level = confidence_of(confidence)
        if isinstance(self.law, SelectionMechanism):
            assert self.candidates is not None
            choices = max(1, self.entries) if simultaneous else 1
            within = self.law.accuracy_of(level, self.candidates, max(1, self.repeats), choices)
            return float(within) * float(self.step)
        if isinstance(self.law, KeyMechanism):
            return float(self.law.size_at(level))
        noise = self.noise
        if not isinstance(noise, AdditiveMechanism):
            raise needs_count((*self.users, self.name)[0])
        cells = self.entries if simultaneous else 1
        return float(noise.quantile(level, max(1, cells)) * self.step)

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        """The events of this draw for `dpframe.accounting`; roots are rounded towards more privacy
        loss. Parts that are drawn jointly each return the events of the one draw.

        Raises
        ------
        UnsupportedOperation
            When there are too many to be listed.
        """
        if self.repeats > _MOST_EVENTS:
            raise UnsupportedOperation(
                f"the mechanism of {self.name!r} runs {self.repeats} times for each individual, "
                f"more than the {_MOST_EVENTS} events that can be listed",
                remedy="read plan.cost, which is the cost of all of them",
            )
        return self.law.events(self.exposure)

    @property
    def exposure(self) -> Exposure:
        """How much one individual can change it."""
        if self.joint is not None:
            return Exposure(self.joint.exact, self.repeats)
        if self.scores is None:
            return Exposure(self.exact, self.repeats)
        scores, shared = self.scores, self.scores.is_shared(self.spread.touched)
        norms = scores.l1, scores.l2_squared
        return Exposure(self.exact, self.repeats, scores.groups, *norms, shared)


def needs_count(name: str) -> UnsupportedOperation:
    """The refusal of an output whose error depends on the number of rows."""
    return UnsupportedOperation(
        f"the error of the randomised responses of {name!r} grows with the number of rows",
        remedy=f"give a public guess of it: plan.accuracy({name!r}, count=1000)",
    )


def confidence_of(value: Number, where: str = "confidence") -> Fraction:
    """A confidence as a fraction.

    Raises
    ------
    InvalidBounds
        When it does not lie between 0 and 1.
    """
    try:
        level = exact(value)
    except (TypeError, ValueError, ZeroDivisionError):
        level = Fraction(0)
    if not 0 < level < 1:
        raise InvalidBounds(
            f"a confidence lies between 0 and 1, and {as_given(value)} does not",
            where=where,
            remedy=f"write for example {where}=0.95",
        )
    return level
