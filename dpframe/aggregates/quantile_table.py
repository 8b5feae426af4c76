"""Quantiles that are read off noisy counts of all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.bound import Noisy
from dpframe.aggregates.cells import PointCells, PositionCells
from dpframe.aggregates.counted_runs import CountedRuns
from dpframe.aggregates.error_rules import RankError
from dpframe.aggregates.isotonic import nondecreasing
from dpframe.aggregates.quantile import BoundQuantile
from dpframe.aggregates.run_rank_error import RunRankError

__all__ = ["CountedQuantile", "codes_from_counts"]


@dataclass(frozen=True, slots=True, eq=False)
class CountedQuantile(BoundQuantile):
    """Quantiles from noisy counts, which have noise that one row moves by 1, however many quantiles
    are read off them.

    Parameters
    ----------
    why
        Why they are, for plans.
    runs
        The counts in addition to cells, if any.
    """

    why: str = ""
    runs: CountedRuns | None = None

    @property
    def note(self) -> str:
        whole = super(CountedQuantile, self).note
        return f"{whole}, read off noisy counts that are made to rise: {self.why}"

    @property
    def error(self) -> RankError | RunRankError:
        sides = 1 + isinstance(self.cells, PositionCells)
        least, most = min(self.quantiles), max(self.quantiles)
        if self.runs is None:
            return RankError(self.cells.size, sides * (1 + most))
        runs = self.runs
        return RunRankError(runs.size, runs.width, runs.share, least, most, sides)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        counts = values[0] if self.runs is None else self.runs.rebuilt(values[0], values[1])
        codes = codes_from_counts(counts, self.cells, self.quantiles)
        return super(CountedQuantile, self).combine([*codes])


def codes_from_counts(
    counts: NDArray[Any], cells: PointCells | PositionCells, quantiles: Sequence[Fraction]
) -> list[Noisy]:
    """For each quantile the candidate in each group whose ranks are nearest to it, the first one
    where several are: a larger quantile has no smaller candidate.

    Parameters
    ----------
    counts
        Of shape (groups, cells), whole or rebuilt from several.
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
