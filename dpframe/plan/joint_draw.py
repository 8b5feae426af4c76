"""How a number of a plan follows from several that are drawn jointly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity
from dpframe.core.tree import EXACT
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import Addition, moves_of
from dpframe.mechanisms import Arch, Box, box_of


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
