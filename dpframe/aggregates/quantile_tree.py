"""Several quantiles that are chosen one inside the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.chosen_together import ChosenTogether, listed
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.request import QueryScope
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.kernel import plan as kernel
from dpframe.kernel.moves import LevelChoice, level_choices
from dpframe.mechanisms import RecursiveTask

__all__ = ["QuantileTree", "levels_for"]

Levels = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class QuantileTree(ChosenTogether):
    """Several quantiles, each chosen among the rows between those that were chosen before.

    The score of a choice is that of a `QuantileChoice` of these rows, in ranks. Its scale is in
    proportion to the range by which one row moves such scores, so all choices cost the same.

    Parameters
    ----------
    cells
        The candidates.
    quantiles
        In rising order, each once.
    levels
        Which of them are chosen at each level; no two of one level have the same neighbours among
        those of earlier ones, so their rows are disjoint.
    why
        Why they are chosen together, for plans.
    """

    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]
    levels: Levels
    why: str = ""

    @property
    def choices(self) -> tuple[LevelChoice, ...]:
        """The choice of each quantile, and by how much a row that comes or goes moves its scores
        against each other.
        """
        return _choices(self.quantiles, self.levels, False, False)

    @property
    def first(self) -> QuantileChoice:
        return QuantileChoice(self.cells, self.quantiles[self.levels[0][0]])

    @property
    def step(self) -> Fraction:
        return Fraction(1, math.lcm(*(q.denominator for q in self.quantiles)))

    @property
    def rounds(self) -> int:
        return len(self.levels)

    def node(self, scope: QueryScope) -> kernel.Levels:
        return kernel.Levels(scope.rules.place(self.tables[0]), self.quantiles, self.levels)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """The sensitivity of the choice that a row moves most, in its own rows as in a group."""
        self.spread(scope)
        q = max((choice.quantile for choice in self.choices), key=lambda q: max(q, 1 - q))
        low, high = -q.numerator, q.denominator - q.numerator
        most = max(len(level) for level in self.levels)
        whole = scope.rules.of_scores(self.tables[0], low, high, most)
        return whole.scaled(1 / (q.denominator * self.step)).repeated(self.candidates)

    def spans(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice, relative to the others: the range of its scores for one
        row."""
        changes = self.spread(scope).changes
        choices = _choices(self.quantiles, self.levels, changes, scope.entries is None)
        return tuple(choice.range for choice in choices)

    def scales(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice in steps of its own score, as a share of the whole scale in
        steps.
        """
        own = (choice.quantile.denominator * self.step for choice in self.choices)
        return tuple(a * b for a, b in zip(self.shares(scope), own, strict=True))

    def shares(self, scope: QueryScope) -> tuple[Fraction, ...]:
        """The scale of each choice as a share of the largest."""
        spans = self.spans(scope)
        return tuple(span / max(spans) for span in spans)

    def path(self, scope: QueryScope) -> Fraction:
        """How far off the rank of the worst quantile may be, where each choice is off by its share
        of 1 at most.
        """
        shares = self.shares(scope)
        return max(
            sum((near * shares[number] for number, near in found.items()), Fraction(0))
            for found in _moved_by(self)
        )

    def expected(self, scope: QueryScope) -> tuple[float, ...]:
        """About how far off ranks are, where choices are off by their spans independently."""
        spans = [float(span) for span in self.spans(scope)]
        return tuple(
            math.hypot(*(float(near) * spans[number] for number, near in found.items()))
            for found in _moved_by(self)
        )

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> RecursiveTask:
        found = self.score_range(scope)
        return RecursiveTask(
            name,
            sensitivity,
            found,
            mechanism,
            self.rounds,
            candidates=self.candidates,
            shared=found.is_shared(self.spread(scope).touched),
            chosen=self.chosen,
            path=self.path(scope),
            why=self.why,
        )

    def words(self) -> str:
        count = len(self.quantiles)
        named = ([self.quantiles[number] for number in level] for level in self.levels)
        levels = "; ".join(listed(level) for level in named)
        return (
            f"{count} quantiles of {self.cells.words()}, one inside the other, {levels}; "
            f"{self.cells.rest}; each among the rows between those before it, rows of one point in "
            "random order; score -max(q * rows - rows at or below, rows below - q * rows, 0) with "
            "the q that it is of these rows"
        )


@lru_cache(maxsize=256)
def _choices(
    quantiles: tuple[Fraction, ...], levels: Levels, changes: bool, alone: bool
) -> tuple[LevelChoice, ...]:
    """The choice of each quantile, in their order."""
    found = level_choices(quantiles, levels, changes, alone)
    return tuple(found[number] for number in range(len(quantiles)))


def _moved_by(tree: QuantileTree) -> list[dict[int, Fraction]]:
    """The error of each quantile if a choice is off by 1, for each choice that matters to it.
    These are its own choice and those of either end, which move a quantile between them in
    proportion to its nearness.

    Both ends may depend on one choice, as that of one is among rows that end at the other.
    """
    found: dict[int, dict[int, Fraction]] = {}
    for number in (number for level in tree.levels for number in level):
        choice = tree.choices[number]
        own, q = {number: Fraction(1)}, choice.quantile
        for end, near in ((choice.lower, 1 - q), (choice.upper, q)):
            for other, moved in found.get(end, {}).items():
                own[other] = own.get(other, Fraction(0)) + near * moved
        found[number] = own
    return [found[number] for number in range(len(tree.quantiles))]


def levels_for(quantiles: Sequence[Fraction], depth: int) -> Levels:
    """Which quantiles to choose at each of this many levels: of those that leave no more on
    either side than later levels can hold, the one nearest to the middle of its rows.

    Raises
    ------
    ValueError
        When this many levels are too few.
    """
    if len(quantiles) >= 1 << depth:
        raise ValueError("there are more quantiles than the levels can hold")
    levels: list[list[int]] = [[] for _ in range(depth)]
    _fill(levels, quantiles, (0, len(quantiles)), (Fraction(0), Fraction(1)))
    return tuple(tuple(level) for level in levels if level)


def _fill(
    levels: Sequence[list[int]],
    quantiles: Sequence[Fraction],
    among: tuple[int, int],
    ends: tuple[Fraction, Fraction],
) -> None:
    first, last = among
    if first == last:
        return
    room = (1 << len(levels) - 1) - 1
    middle = (ends[0] + ends[1]) / 2
    number = min(
        range(max(first, last - 1 - room), min(last, first + room + 1)),
        key=lambda n: (abs(quantiles[n] - middle), n),
    )
    levels[0].append(number)
    _fill(levels[1:], quantiles, (first, number), (ends[0], quantiles[number]))
    _fill(levels[1:], quantiles, (number + 1, last), (quantiles[number], ends[1]))
