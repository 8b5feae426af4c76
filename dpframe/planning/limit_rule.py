"""Which limit a noisy histogram of individuals gives, and how much it may drop.

The limit is the one that errs least by what it drops and by noise together. All of it is computed
from noisy counts and from plans, so it is post-processing, and privacy does not rest on it.

Why a model of the tail
-----------------------
Under the best limit one or two individuals have more rows, and noise of the search is of some tens
of individuals: nobody can see them. So the rule looks at where many individuals are, and infers
from how fast they become fewer. Curves N(>n) = N exp(-a x - b x^2 - c x^6) are compared with the
noisy counts, with x = log(n / start) or log((n / start + 1) / 2): c = b = 0 is a Pareto law, c = 0
is near a log-normal one, and c ends the tail soon. Each limit has a regret under each curve, the
logarithm of its error over that of the curve's best limit, and the limit whose mean regret is least
is taken. docs/benchmarks.md has the errors.

How much it may drop
--------------------
Let h(i) be the individuals with more than n(i-1) and up to n(i) rows, and h(i) + e(i) the noisy
numbers. One of them loses at most n(i) - L under a limit L. If nobody has more than R = n(r) rows,
then with sums over i <= r

    dropped(L) <= sum of h(i) (n(i) - L)+ <= sum of (h(i) + e(i)) (n(i) - L)+  +  Z,

    Z = sum of n(i) max(0, -e(i)),

because 0 <= (n(i) - L)+ <= n(i). Z depends neither on L nor on the counts, so its quantile gives a
bound that holds for whichever limit the same noisy counts give. Likewise no more individuals have
more than L rows than the sum of h(i) + e(i) over all bins above L and the sum of max(0, -e(i)) over
all bins. Half of what may go wrong is for that. R is chosen by the counts as well, among fixed
levels, so the k-th of these may fail with 2^-(k + 1) of it, which adds up to the other half (union
bound). Z is a sum of independent numbers; `quantile_of_losses` adds up their laws on a grid, each
rounded up.

A bound of this kind cannot be much smaller. A search at epsilon s hides k individuals with R rows
each up to a factor of exp(k s), so on most runs without them the bound has to be above k R for any
k up to about 1 / s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpframe.mechanisms import AdditiveMechanism
from dpframe.plan.pieces import REACH

__all__ = ["BLIND", "GROUPS", "MUCH", "LimitRule", "LossOfLimit", "MostDropped", "remark_of"]

Floats = NDArray[np.float64]

BLIND: Final = 10
"""The least limit that is taken where noise hides who has more."""
GROUPS: Final = 10
"""How many groups there are taken to be, where nobody listed them."""
MUCH: Final = 0.1
"""A larger share that is dropped, or may be, is worth a warning."""
_MISS: Final = Fraction(1, 1000)
"""How often more may be dropped than is said."""
_BLINDING = 20
"""So many standard deviations are more than all individuals where noise hides who has more."""
_BODY = 0.6
"""The tail is taken to begin at the last limit that so large a share of individuals exceeds."""
_ABOVE_NOISE = 4 / math.sqrt(2)
"""And so many standard deviations of them."""
_SEEN = 6.0
"""By how many standard deviations a number of individuals is seen, so that it needs no curve."""
_NOBODY = 0.7
"""A curve of fewer individuals than these ends there: as a rule there is nobody any more."""
_MIDDLE = 0.17
"""What counts of an error by noise that holds with 95%. Its median would be 0.23 of it (Laplace) or
0.34 (normal); less lets limits be higher, because curves that are cut off where nobody is expected
drop too little.
"""
_FARTHEST = 10.0**6
"""No curve goes on beyond so many rows."""
_SLOWEST = 0.8
"""With which power individuals become fewer at the last limit, at least."""
_ENDING = 6.0
"""By how much a curve that ends soon has to fit better, in logarithms of likelihood."""


def _curves() -> tuple[Floats, Floats, Floats, Floats]:
    powers = [*(step / 5 for step in range(1, 16)), 3.5, 4, 5, 7]
    bends, ends, shifts = (
        [0, 0.03, 0.1, 0.2, 0.4, 0.8, 1.5],
        [0, 0.01, 0.03, 0.1, 0.3, 1, 3],
        [0, 1],
    )
    grid = np.meshgrid(powers, bends, ends, shifts)
    a, b, c, d = (part.ravel().astype(np.float64) for part in grid)
    return a, b, c, d


_A, _B, _C, _D = _curves()


@dataclass(frozen=True, slots=True)
class MostDropped:
    """How much a limit may drop.

    Parameters
    ----------
    rows
        At most so many rows, or groups of individuals.
    reach
        If no individual has more than these.
    individuals
        How many have more than the limit at most, however many.
    """

    rows: int
    reach: int
    individuals: int


@dataclass(frozen=True, slots=True)
class LossOfLimit:
    """What a limit loses, as far as noise shows.

    Parameters
    ----------
    place
        Which of the limits, from 0.
    dropped
        About how many rows it drops (or groups of individuals).
    every
        About how many there are.
    noise
        The error by noise under it, with 95%, as a number of rows.
    most
        How many it may drop, with 99.9%.
    """

    place: int
    dropped: float
    every: float
    noise: float
    most: MostDropped

    @property
    def share(self) -> float:
        """Which share of all it drops, about."""
        return min(1.0, self.dropped / self.every)

    @property
    def most_share(self) -> float:
        """Which share of all it may drop."""
        most = max(self.dropped, self.most.rows)
        return most / max(1.0, self.every - self.dropped + most)

    @property
    def is_much(self) -> bool:
        """Whether more than a tenth is dropped, or may be."""
        return self.most_share > MUCH


@dataclass(frozen=True, slots=True, eq=False)
class _Tail:
    """Curves of how many individuals have more than a number of rows, as likely as they fit.

    Parameters
    ----------
    weights
        How likely each curve is.
    above
        The individuals with more than each limit, by curve.
    dropped
        What each limit drops, by curve.
    """

    weights: Floats
    above: Floats
    dropped: Floats

    def middle(self, numbers: Floats) -> float:
        """The median over the curves."""
        order = np.argsort(numbers)
        place = int(np.searchsorted(np.cumsum(self.weights[order]), 0.5))
        return float(numbers[order[min(place, len(order) - 1)]])


@dataclass(frozen=True, slots=True)
class LimitRule:
    """How a limit is found.

    Parameters
    ----------
    limits
        At which the bins of the histogram end, in rising order.
    noise
        The error of the query by noise under each that may be found, with 95%, as a number of rows:
        of one group times the number of groups. These are the first of `limits`, or all.
    variance
        Of the noise of each count of the histogram.
    sizes
        Of how many individuals a group has to be to appear nearly always under each, where nobody
        listed the groups; else empty.
    law
        The noise of each count, independent of the others; None where nothing is asked of what a
        limit may drop.
    """

    limits: tuple[int, ...]
    noise: tuple[float, ...]
    variance: float
    sizes: tuple[int, ...] = ()
    law: AdditiveMechanism | None = None

    def found(self, counts: Sequence[int]) -> LossOfLimit:
        """The limit that errs least, and what it loses.

        Where two standard deviations are more than a tenth of all individuals, noise hides who has
        more, and no limit below `BLIND` is taken. Where nobody listed the groups, it is one of
        those under which a group of a usual size appears; if there is none, the one under which a
        group has to be least.

        Parameters
        ----------
        counts
            The noisy number of individuals up to each limit and above the one before it, and last
            of those above all.
        """
        tail = self._tail(counts)
        places = [*range(len(self.noise))]
        if _BLINDING * math.sqrt(self.variance) > max(1.0, float(sum(counts))):
            places = [p for p in places if self.limits[p] >= BLIND] or places[-1:]
        if self.sizes:
            usual = self.usual_size(counts)
            appears = [p for p in places if self.sizes[p] <= usual]
            places = appears or [min(places, key=lambda p: self.sizes[p])]
        errors = np.hypot(_MIDDLE * np.array(self.noise), tail.dropped[:, : len(self.noise)])
        errors = np.maximum(errors, 1e-9)
        regret = tail.weights @ np.log(errors / errors.min(axis=1)[:, None])
        place = min(places, key=lambda p: float(regret[p]))
        dropped = tail.middle(tail.dropped[:, place])
        most = self.most(counts, place, _MISS)
        return LossOfLimit(place, dropped, self._every(counts, tail), self.noise[place], most)

    def most(self, counts: Sequence[int], place: int, miss: Fraction) -> MostDropped:
        """How much a limit drops at most, with probability 1 - `miss`, if no individual has more
        than a number of rows that comes with it; see above for why that holds.

        Parameters
        ----------
        counts
            As for `found`.
        place
            Which of the limits.
        miss
            How often more may be dropped.
        """
        times, least = REACH
        levels = [p for p, n in enumerate(self.limits) if n >= least] or [len(self.limits) - 1]
        wanted = times * self.limits[place]
        number, last = next(
            ((k, p) for k, p in enumerate(levels) if self.limits[p] >= wanted),
            (len(levels) - 1, levels[-1]),
        )
        seen = sum(
            int(counts[p]) * (self.limits[p] - self.limits[place])
            for p in range(place + 1, last + 1)
        )
        hidden, others = 0, 0
        if self.law is not None:
            ends = self.limits[: last + 1]
            hidden = quantile_of_losses(self.law, ends, miss / 2 ** (number + 2))
            others = quantile_of_losses(self.law, (1,) * len(counts), miss / 2)
        above = sum(map(int, counts[place + 1 :])) + others
        most = max(0, seen + hidden) if last > place else 0
        return MostDropped(most, self.limits[last], max(0, above))

    def share(self, counts: Sequence[int], place: int) -> float:
        """About which share of all rows a limit drops."""
        tail = self._tail(counts)
        return min(1.0, tail.middle(tail.dropped[:, place]) / self._every(counts, tail))

    def above(self, counts: Sequence[int]) -> list[float]:
        """About how many individuals have more than each limit."""
        tail = self._tail(counts)
        return [tail.middle(tail.above[:, place]) for place in range(len(self.limits))]

    def _tail(self, counts: Sequence[int]) -> _Tail:
        return _fit(self.limits, tuple(map(int, counts)), self.variance)

    def _every(self, counts: Sequence[int], tail: _Tail) -> float:
        """About how many rows all individuals have; 1 at least."""
        whole, above = max(1.0, float(sum(counts))), tail.middle(tail.above[:, 0])
        first = whole + (self.limits[0] - 1) * (whole + above) / 2
        return max(1.0, tail.middle(tail.dropped[:, 0]) + first)

    def usual_size(self, counts: Sequence[int]) -> float:
        """About how many individuals a group has, if there are `GROUPS` and rows fall into all
        alike: one who has t rows is in a group with probability 1 - (1 - 1 / GROUPS)^t. In each bin
        it is taken half way between its ends.
        """
        tail, places = self._tail(counts), range(len(self.limits))
        whole = max(1.0, float(sum(counts)))
        above = [whole, *(tail.middle(tail.above[:, place]) for place in places)]
        missed = [(1 - 1 / GROUPS) ** n for n in (1, *self.limits)]
        found = above[-1]
        for place in places:
            share = 1 - (missed[place] + missed[place + 1]) / 2
            found += (above[place] - above[place + 1]) * share
        return found


@lru_cache(maxsize=32)
def _fit(ends: tuple[int, ...], counts: tuple[int, ...], variance: float) -> _Tail:
    """The curves that fit best. Up to the last limit above which individuals are seen beyond noise
    the counts stand for themselves; above it no curve has more than noise may hide.
    """
    size, deviation = len(ends), math.sqrt(variance)
    limits, numbers = np.array(ends, dtype=np.float64), np.array(counts, dtype=np.float64)
    whole = max(1.0, float(numbers.sum()))
    seen = np.maximum.accumulate((whole - np.cumsum(numbers[:size]))[::-1])[::-1]
    seen = np.clip(seen, 0.0, whole)
    body = max(_BODY * whole, _ABOVE_NOISE * deviation)
    first = int(np.argmin(np.append(whole - np.cumsum(numbers[:size]) >= body, False))) - 1
    first = min(first, size - 2)
    start, many = (0.5, whole) if first < 0 else (float(limits[first]), float(seen[first]))
    many = max(1.0, many)

    def curve(n: Floats, keep: NDArray[np.bool_] | slice = slice(None)) -> Floats:
        d = _D[keep, None]
        x = np.log((np.maximum(n, start) / start + d) / (1 + d))
        powers = _A[keep, None] * x + _B[keep, None] * x**2 + _C[keep, None] * x**6
        numbers: Floats = many * np.exp(-np.minimum(powers, 700.0))
        return numbers

    later = curve(limits[first + 1 :])
    bins = np.concatenate([np.full((len(later), 1), many), later[:, :-1]], axis=1) - later
    spread = variance + bins + 1e-6  # of noise, and of who happens to be there
    off = numbers[first + 1 : size] - bins
    fit = -0.5 * (off**2 / spread + np.log(spread)).sum(axis=1) - _ENDING * (_C > 0)
    x = math.log(limits[-1] / start)
    fit[_A + 2 * _B * x + 6 * _C * x**5 < _SLOWEST] = -math.inf
    likely = np.exp(fit - fit.max())
    keep = likely > 0.01
    weights = likely[keep] / likely[keep].sum()
    # beyond the last limit where someone is seen no more than noise may hide
    left = np.arange(size, 0, -1)  # bins above each limit
    hidden = np.maximum(0.0, [numbers[p + 1 :].sum() for p in range(size)])
    hidden = hidden + _SEEN * deviation * np.sqrt(left)
    fine = np.unique(np.concatenate([limits, np.geomspace(start, _FARTHEST, 150)]))
    fine = fine[fine >= limits[0]]
    place = np.clip(np.searchsorted(limits, fine, side="right") - 1, 0, size - 1)
    found = np.minimum(curve(fine, keep), hidden[place])
    found = np.where(found < _NOBODY, 0.0, found)
    is_seen = seen > np.maximum(body if deviation else 0.0, _SEEN * deviation * np.sqrt(left))
    last = first if is_seen.all() else max(first, int(np.argmin(is_seen)) - 1)
    known = fine <= limits[last] if last >= 0 else np.zeros(fine.size, bool)
    found[:, known] = np.interp(fine[known], limits, seen)
    width = np.diff(fine)
    parts = _between(found[:, :-1], found[:, 1:], width)
    lost = np.concatenate(
        [np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], np.zeros((len(found), 1))], axis=1
    )
    at = np.searchsorted(fine, limits)
    return _Tail(weights, found[:, at], lost[:, at])


def _between(many: Floats, few: Floats, width: Floats) -> Floats:
    """What those lose between two numbers of rows who have more than the first: the sum over l of
    those with more than l (Abel), which are taken half way between their means, arithmetic and
    geometric.
    """
    middle = (many + few) / 4 + np.sqrt(many * few) / 2
    found: Floats = np.minimum(width, 1.0) * many + np.maximum(width - 1.0, 0.0) * middle
    return found


@lru_cache(maxsize=256)
def quantile_of_losses(law: AdditiveMechanism, ends: tuple[int, ...], miss: Fraction) -> int:
    """A z with P(sum of ends[i] max(0, -e[i]) > z) <= miss, for independent noise e of a law that
    is symmetric about 0; rounded up.

    Each term is rounded up to a grid, and their laws are convolved: so what comes out is at least
    the quantile, and at most about a twentieth above it.
    """
    largest = ends[-1]
    top = largest * law.quantile(1 - miss / 4)
    cells, step = 2048, max(1.0, top / 512)
    whole = np.zeros(cells)
    whole[0] = 1.0
    edges = np.arange(cells, dtype=np.float64) * step
    for end in ends:
        above = law.above(edges / end)
        masses = np.concatenate([[1 - above[0]], above[:-1] - above[1:]])
        used = int(np.max(np.nonzero(above > 1e-18)[0], initial=0)) + 2
        whole = np.convolve(whole, masses[:used])[:cells]
    reached = np.cumsum(whole)
    place = int(np.searchsorted(reached, 1 - float(miss) * (1 - 1e-9)))
    return math.ceil(place * step)


def remark_of(loss: LossOfLimit, limit: str, by_groups: bool) -> str:
    """What was found, in words.

    Parameters
    ----------
    loss
        What it loses.
    limit
        The limit as an analyst writes it.
    by_groups
        Whether groups of individuals are limited, or rows.
    """
    what, of = ("groups of individuals", "groups") if by_groups else ("rows", "rows")
    most = max(loss.dropped, loss.most.rows)
    return (
        f"{limit} was found: it drops about {loss.dropped:,.0f} {what} "
        f"({_percent(loss.share)}), perhaps up to {most:,.0f} ({_percent(loss.most_share)}) "
        f"if some people have up to {loss.most.reach:,} {of} each"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
