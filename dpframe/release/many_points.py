"""One quantile of very many rows, chosen without a score of every row.

Far from its rank no point is likely, and points there need no scores of their own: many of them are
proposed together, by the best score among them. One that is proposed is kept with probability
exp((its score - that score) / scale), else the group proposes again. So each point is chosen as
often as if all had been proposed by their own scores (rejection under an envelope, whichever points
are taken together).

Points are merged if their scores are within an eighth of their distance to the best, so that few
proposals are rejected. This matters only where they are eight scales and more away, and there a
point weighs exp(-8) of one at the rank at most. How long it takes depends on the rows, as it does
where an engine counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms.noise import choose_points, keep_points

__all__ = ["MANY", "choose_point"]

NEAR: Final = 1 << 12
"""This many points with rows on either side of the rank have scores of their own."""
MANY: Final = 4 * NEAR
"""Of fewer points with rows each has a score of its own."""
_GROWTH: Final = 9 / 8

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The rows of one group, sorted.

    Parameters
    ----------
    cells
        The points that have rows, rising.
    ranks
        How many rows there are before each of them, and how many in all.
    target, step
        The rank that is wanted times `step`, the denominator of the quantile.
    """

    cells: Integers
    ranks: Integers
    target: int
    step: int

    def score(self, below: Integers, upto: Integers) -> Integers:
        """Scores of points with this many rows before them, and this many up to them, as
        `QuantileChoice` has them.
        """
        short, over = self.target - self.step * upto, self.step * below - self.target
        return np.asarray(-np.maximum(np.maximum(short, over), 0), np.int64)

    def score_of(self, point: int) -> int:
        """The score of one point."""
        ends = np.searchsorted(self.cells, [point, point + 1])
        return int(self.score(*self.ranks[ends]))

    def near(self) -> tuple[int, int]:
        """From which entry on, and up to which, each point has a score of its own. The rows before
        the first are too few for the rank, and those up to the last are enough.
        """
        wanted = -(-self.target // self.step)
        middle = int(np.searchsorted(self.ranks[1:], wanted))
        return max(0, middle - NEAR), min(self.cells.size, middle + NEAR)

    def outwards(self, entry: int, towards: int) -> list[int]:
        """Entries from one on, to the first or to behind the last. Before each there are an
        eighth more rows too few or too many than before the previous one. Rounding only moves
        them.
        """
        result, last = [entry], 0 if towards < 0 else self.cells.size
        rank = self.target / self.step
        while result[-1] != last:
            now = result[-1]
            away = abs(int(self.ranks[now]) - rank) * _GROWTH
            place = int(np.searchsorted(self.ranks, rank + towards * away))
            place = min(place, now - 1) if towards < 0 else max(place, now + 1)
            result.append(min(max(place, 0), self.cells.size))
        return result


def choose_point(scale: Fraction, q: Fraction, cells: Integers, rows: Integers, points: int) -> int:
    """The point that the exponential mechanism chooses of one group, as if all had scores.

    Parameters
    ----------
    scale
        The scale of the exponential mechanism, in units of the score.
    q
        The quantile.
    cells, rows
        The points that have rows, rising, and how many each has; at least one.
    points
        How many points there are in all.
    """
    ranks = np.append(0, np.cumsum(rows))
    found = _Rows(cells, ranks, q.numerator * int(ranks[-1]), q.denominator)
    starts, scores, own = _proposals(found)
    weights = np.diff(starts, append=points)
    kept = np.flatnonzero(weights)
    sizes = np.array([kept.size])
    while True:
        run, place = choose_points(scale, scores[kept], weights[kept], sizes)
        chosen = int(kept[run[0]])
        point = int(starts[chosen] + place[0])
        gap = 0 if chosen in own else int(scores[chosen]) - found.score_of(point)
        if keep_points(scale, np.array([gap]))[0]:
            return point


def _proposals(found: _Rows) -> tuple[Integers, Integers, range]:
    """Where each run of points begins, the best score in it, and which runs have it at each of
    their points.

    A run on the left is from one entry to before another, which has the most rows before it; as
    they are too few, the points just before it are the best. One on the right begins with an entry
    that has enough rows before it; the more there are before a point, the worse it is.
    """
    low, high = found.near()
    left, right = found.outwards(low, -1), found.outwards(high, 1)
    entries = np.arange(low, high)
    near = np.stack([found.cells[entries], found.cells[entries] + 1], axis=1).reshape(-1)
    before, after = found.ranks[entries], found.ranks[entries + 1]
    scores = np.stack([found.score(before, after), found.score(after, after)], axis=1).reshape(-1)
    if not low:  # the points before all entries
        left = [0, 0]
    beginnings = np.array([found.cells[n] if n else 0 for n in reversed(left[1:])], np.int64)
    of_left, of_right = found.ranks[left[-2::-1]], found.ranks[right[:-1]]
    return (
        np.concatenate([beginnings, near, found.cells[right[:-1]]]),
        np.concatenate([found.score(of_left, of_left), scores, found.score(of_right, of_right)]),
        range(len(beginnings), len(beginnings) + len(near)),
    )
