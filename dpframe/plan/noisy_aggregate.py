"""One vector that is drawn with noise, or one private selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from dpframe.accounting.events import AnyEvent
from dpframe.core.budget import Budget
from dpframe.core.exact import Number, exact, show_input
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange, Sensitivity
from dpframe.core.tree import EXACT
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Addition, moves_of
from dpframe.mechanisms import (
    AdditiveMechanism,
    Arch,
    Box,
    CombinedNoise,
    Exposure,
    KeyMechanism,
    Mechanism,
    SelectionMechanism,
    box_of,
)

# How a number of a plan follows from several that are drawn jointly.


@dataclass(frozen=True, slots=True)
class JointDraw:
    """A vector that is drawn at once, and one number that follows from it."""

    # By how much a row that comes or goes moves each number of the vector at most, and by how much
    # one that stays and changes does.
    widths: tuple[int, ...]
    turned: tuple[int, ...]
    exact: ExactSensitivity  # The sensitivity of all vectors, one for each group, in steps
    # The number is the sum of factor times drawn number, over the divisor.
    factors: tuple[int, ...] = field(metadata={EXACT: True})
    divisor: int = field(metadata={EXACT: True})
    # For rows that change: the condition of each number (0 means that the row is there, else an
    # expression has a value), and its movement by a row that meets the condition before and after;
    # see `dpframe.kernel.moves.moves_of`. Empty where each number is one on its own.
    conditions: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    # The places of numbers that are a count of values, their sum, and the sum of their squares.
    arches: tuple[Arch, ...] = ()

    def box(self, spread: ContributionBounds, grouped: bool) -> Box:
        """What one individual moves the vectors within."""
        return box_of(self.widths, self.turned, spread, grouped, self.arches)

    def is_of(
        self, draw: kernel.Draw, additions: Sequence[Addition], *, changes: bool, whole: bool
    ) -> bool:
        """Whether rows move the numbers of a draw in the physical plan as is stated here, given
        what a row adds to each table. `changes` if neighbours have other values in rows, `whole` if
        it is one group of all rows.
        """
        assert isinstance(draw.what, kernel.Vector)
        arches = draw.law.arches if isinstance(draw.law, kernel.Box) else ()
        moves = _row_moves(additions, draw.what.matrix, changes, whole)
        if (
            moves[2]
            and not isinstance(draw.law, kernel.Gaussian)
            and not _is_centred(draw.what.matrix)
        ):
            moves = (*moves[:2], (), ())  # a box bounds each number on its own
        stated = self.widths, self.turned, self.conditions, self.kept
        return (*stated, self.arches) == (*moves, arches)


Numbers: TypeAlias = tuple[int, ...]


def _is_centred(matrix: Sequence[Numbers]) -> bool:
    """Whether the number of rows is taken from sums."""
    return any(sum(map(bool, factors)) > 1 for factors in matrix)


def _row_moves(
    additions: Sequence[Addition], matrix: Sequence[Numbers], changes: bool, whole: bool
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Widths, `turned`, conditions and `kept` of numbers, each of its own table, and of the first
    table where they are centred on the number of rows.
    """
    widths = moves_of(additions, matrix).widths
    if not changes or len(matrix) == 1:
        return widths, widths, (), ()
    own = [(abs(row[place]), additions[place]) for place, row in enumerate(matrix)]
    if _is_centred(matrix):
        stays = tuple(2 * width for width in widths[1:])
        return widths, (widths[0], *stays), (0,) * len(own), (0, *stays)
    needs = dict.fromkeys(a.needs for _, a in own if a.needs is not None)
    numbers = {None: 0, **{need: number for number, need in enumerate(needs, 1)}}
    return (
        widths,
        tuple(0 if whole and a.needs is None else f * a.length for f, a in own),
        tuple(numbers[a.needs] for _, a in own),
        tuple(f * (a.hi - a.lo) for f, a in own),
    )


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
        scores, shared = self.scores, self.scores.is_shared(self.spread.changed_groups)
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
            f"a confidence lies between 0 and 1, and {show_input(value)} does not",
            where=where,
            remedy=f"write for example {where}=0.95",
        )
    return level
