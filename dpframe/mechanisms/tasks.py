"""What a mechanism is wanted for: one kind of task for each kind of mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.mechanisms.exposure import Exposure
from dpframe.samplers import Arch


class _Task:
    """What tasks have in common."""

    __slots__ = ()

    @property
    def alternatives(self) -> int:
        """Among how many outcomes is chosen; 1 where nothing is."""
        return 1


@dataclass(frozen=True, slots=True)
class Box:
    """Within what one individual moves vectors of several numbers.

    Parameters
    ----------
    widths
        How far one row moves each number at most, in integer steps.
    rows
        How many rows one individual has over all vectors (groups).
    arches
        The places of counts, sums and sums of squares of the same values, see `DiscreteHull`.
    """

    widths: tuple[int, ...]
    rows: int
    arches: tuple[Arch, ...] = ()


@dataclass(frozen=True, slots=True)
class AdditiveTask(_Task):
    """Numbers to which noise is added.

    Parameters
    ----------
    name
        The output, for messages.
    sensitivity
        In integer steps.
    mechanism
        ``"auto"`` or a mechanism's name.
    box
        Within what one row moves the numbers, where they may be drawn jointly.
    """

    name: str
    sensitivity: ExactSensitivity
    mechanism: str = "auto"
    box: Box | None = None

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity)


@dataclass(frozen=True, slots=True)
class SelectionTask(_Task):
    """Private choices among candidates.

    Parameters
    ----------
    name
        The output, for messages.
    sensitivity
        The sensitivity of the scores, in integer steps.
    score_range
        The largest change in the difference of two scores by one individual.
    mechanism
        ``"auto"`` or a mechanism's name.
    rounds
        How many winners are chosen, each at an equal part of the cost.
    weighted
        Whether candidates stand for several points.
    candidates
        How many there are.
    shared
        Whether the ranges of `score_range` stand for others, see `Exposure`.
    """

    name: str
    sensitivity: ExactSensitivity
    score_range: ScoreRange
    mechanism: str = "auto"
    rounds: int = 1
    weighted: bool = False
    candidates: int = 2
    shared: bool = False

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

    Parameters
    ----------
    chosen
        How many choices there are in all.
    path
        How far off they may be altogether, in multiples of one, see `RecursiveExponential`.
    why
        Why they are made like that, for plans.
    """

    chosen: int = 1
    path: Fraction = Fraction(1)
    why: str = ""


@dataclass(frozen=True, slots=True)
class TogetherTask(SelectionTask):
    """One private choice among tuples of candidates in order.

    Parameters
    ----------
    chosen
        How many candidates a tuple has.
    why
        Why they are chosen like that, for plans.
    """

    chosen: int = 1
    why: str = ""


@dataclass(frozen=True, slots=True)
class ResponseTask(_Task):
    """Rows that report on their own.

    Parameters
    ----------
    name
        The output, for messages.
    sensitivity
        The sensitivity of the counts, in integer steps.
    categories
        How many reports there are.
    rows
        How many rows are of one individual.
    """

    name: str
    sensitivity: ExactSensitivity
    categories: int
    rows: int = 1

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity, self.rows)


@dataclass(frozen=True, slots=True)
class KeyTask(_Task):
    """A choice of groups.

    Parameters
    ----------
    name
        The output, for messages.
    sensitivity
        The sensitivity of the numbers of individuals, in integer steps.
    groups
        In how many groups an individual may be.
    norm
        The most that the norm of an individual's weights over groups may be, in parts; None where
        individuals are not weighed.
    rounds
        In how many rounds groups are found, each among those that the rounds before did not find.
    """

    name: str
    sensitivity: ExactSensitivity
    groups: int
    norm: int | None = None
    rounds: int = 1

    @property
    def exposure(self) -> Exposure:
        """What one individual can do to it."""
        return Exposure(self.sensitivity, self.groups)


MechanismTask = AdditiveTask | SelectionTask | ResponseTask | KeyTask


def box_of(
    widths: tuple[int, ...],
    turned: tuple[int, ...],
    spread: ContributionBounds,
    grouped: bool,
    arches: tuple[Arch, ...] = (),
) -> Box:
    """What one individual moves vectors of sums within; see `joint_sensitivity`.

    Parameters
    ----------
    widths, turned
        By how much a row that comes or goes, or one that stays and changes, moves each number.
    spread
        How many rows of one individual may differ.
    grouped
        Whether a row that changes may leave one vector for another: then it moves two, or one by
        twice the width at most.
    arches
        The widths of a row's additions, see `Box`. One that leaves a vector for another moves
        each by that. One that stays takes away one point of an arch and adds another: over twice
        the widths of sums and squares that is half of each, so a point of the hull with a count
        of 0. And one that comes, goes, or gets a value there moves them to a point halfway to
        that of no value, which is above the arch as well. So `turned` must be twice the widths of
        these two.
    """
    rows = spread.tight[0]
    if not spread.changes:
        return Box(widths, rows, arches)
    return Box(widths, 2 * rows, arches) if grouped else Box(turned, rows, arches)
