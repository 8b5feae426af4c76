"""Several quantiles that are chosen at once, as one tuple."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.chosen_together import ChosenTogether, listed
from dpframe.aggregates.request import QueryScope
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import TogetherTask

__all__ = ["QuantilesAtOnce"]


@dataclass(frozen=True, slots=True)
class QuantilesAtOnce(ChosenTogether):
    """All of several quantiles, by one choice among all ways to place them in order.

    A tuple of candidates cuts n rows into parts, one more than quantiles; a row is in the part that
    ends at the first candidate above it. The score is minus half the sum over parts of
    |rows in it - d n|, with d what is between its two quantiles: as many rows are on a wrong side
    of something. So no candidate has a rank that is further off than the score says.

    A row that comes adds 1 - d to the excess of its own part, and takes d from each other part,
    which is 2 (1 - d) together. It moves the score by at most 1 - d, with d that of the narrowest
    part, and the difference of two scores by twice as much. A row that changes its value takes 1
    from one part and brings it to another: at most 1, and 2.

    Parameters
    ----------
    cells
        The candidates.
    quantiles
        In rising order, each once.
    why
        Why they are chosen together, for plans.
    """

    cells: PointCells | PositionCells
    quantiles: tuple[Fraction, ...]
    why: str = ""

    @property
    def parts(self) -> tuple[Fraction, ...]:
        """What is between neighbouring quantiles, and at the ends."""
        ends = (Fraction(0), *self.quantiles, Fraction(1))
        return tuple(b - a for a, b in pairwise(ends))

    @property
    def row(self) -> int:
        """How many steps of a part's size a row is."""
        return math.lcm(*(q.denominator for q in self.quantiles))

    @property
    def step(self) -> Fraction:
        """Half of that of parts, since half of their sum is the score."""
        return Fraction(1, 2 * self.row)

    def node(self, scope: QueryScope) -> kernel.Ranks:
        return kernel.Ranks(scope.rules.place(self.tables[0]), self.quantiles)

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        """As if a row added -d or 1 - d, whose larger is 1 - d and the difference 1."""
        self.spread(scope)
        d = min(self.parts)
        whole = scope.rules.of_scores(self.tables[0], -d.numerator, d.denominator - d.numerator)
        tuples = math.comb(self.candidates + self.chosen - 1, self.chosen)
        return whole.scaled(1 / (d.denominator * self.step)).repeated(tuples)

    def expected(self) -> float:
        """About the sum of squared errors of ranks, at a scale of 1 row.

        Where rows lie close and are many, the sizes of the m + 1 parts are off by independent
        Laplace numbers at a scale of 2, given that they add up to 0. Given that k of these are
        above 0, the sum of them is gamma distributed and divided evenly at random, and so is that
        of the others. With a scale of 1, the squares of all add up to m (m + 1) / 4 (2 / (k +
        1) + 2 / (m + 2 - k)), and k has a probability in proportion to C(m + 1, k) C(m - 1, k - 1).
        The error of quantile j is the sum of j parts of m + 1 that are exchangeable: j (m + 1 -
        j) / m times the square of one.
        """
        m = self.chosen
        weights = [math.comb(m + 1, k) * math.comb(m - 1, k - 1) for k in range(1, m + 1)]
        squares = sum(
            weight * (2 / (k + 1) + 2 / (m + 2 - k)) for k, weight in enumerate(weights, 1)
        )
        one = m / 4 * squares / sum(weights)
        return 4 * one * (m + 1) * (m + 2) / 6

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> TogetherTask:
        found = self.score_range(scope)
        return TogetherTask(
            name,
            sensitivity,
            found,
            mechanism,
            self.rounds,
            candidates=self.candidates,
            shared=found.is_shared(self.spread(scope).touched),
            chosen=self.chosen,
            why=self.why,
        )

    def words(self) -> str:
        return (
            f"{self.chosen} quantiles of {self.cells.words()}, all at once: "
            f"{listed(self.quantiles)}; {self.cells.rest}; rows of one point in random order; "
            "score -1/2 * sum over parts between neighbouring quantiles, from 0 to 1, of "
            "|rows in it - share of it * rows|"
        )
