"""Quantiles that are read off noisy counts of all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from dpframe.aggregates.bound import Noisy
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.error_rules import ErrorRule, RankError
from dpframe.aggregates.isotonic import nondecreasing
from dpframe.aggregates.quantile import BoundQuantile

__all__ = ["CountedQuantile", "codes_from_counts"]


@dataclass(frozen=True, slots=True, eq=False)
class CountedQuantile(BoundQuantile):
    """Quantiles from noisy counts, which have noise that one row moves by 1, however many quantiles
    are read off them.

    Parameters
    ----------
    why
        Why they are, for plans.
    """

    why: str = ""

    @property
    def note(self) -> str:
        whole = super(CountedQuantile, self).note
        return f"{whole}, read off noisy counts that are made to rise: {self.why}"

    @property
    def error(self) -> ErrorRule:
        listed = isinstance(self.cells, PositionCells)
        return RankError(self.cells.size, (1 + listed) * (1 + max(self.quantiles)))

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        (counts,) = values
        codes = codes_from_counts(counts, self.cells, self.quantiles)
        return super(CountedQuantile, self).combine([*codes])


def codes_from_counts(
    counts: Noisy, cells: PointCells | PositionCells, quantiles: Sequence[Fraction]
) -> list[Noisy]:
    """For each quantile the candidate in each group whose ranks are nearest to it, the first one
    where several are: a larger quantile has no smaller candidate.

    Parameters
    ----------
    counts
        Of shape (groups, cells).
    cells
        What they count.
    quantiles
        Which are wanted.
    """
    upto = nondecreasing(np.cumsum(counts, axis=1, dtype=np.float64))
    below = np.concatenate([np.minimum(upto[:, :1], 0.0), upto[:, :-1]], axis=1)
    rows = np.maximum(upto[:, -1:], 0.0)
    if isinstance(cells, PositionCells):
        below, upto = below[:, 1::2], upto[:, 1::2]
    found = []
    for q in quantiles:
        target = rows * float(q)
        away = np.maximum(np.maximum(below - target, target - upto), 0.0)
        found.append(away.argmin(axis=1))
    return found
