"""Which limit a noisy histogram of individuals gives, and how much it may drop.

The limit is the one that has the least error by what it drops and by noise together. All of it is
computed from noisy counts and from plans, so it is post-processing, and privacy does not rest on
it.

Which limit
-----------
`dpframe.planning.laws_of_rows` compares the counts with laws of the number of rows, and gives the
likelihood of each law and what each limit drops under it. A limit has a regret under each law:
the logarithm of its median error over that of the limit that is best under the law. The limit
whose mean regret is least is taken. docs/benchmarks.md has the errors.

How much it may drop
--------------------
Let h(i) be the individuals with more than n(i-1) and up to n(i) rows, and h(i) + e(i) the noisy
numbers. One of them loses at most n(i) - L under a limit L. If no individual has more than R =
n(r) rows, then with sums over i <= r

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
from dpframe.planning.laws_of_rows import Tail, tail_of

__all__ = ["BLIND", "GROUPS", "MUCH", "LimitRule", "LossOfLimit", "MostDropped", "remark_of"]

Floats = NDArray[np.float64]

BLIND: Final = 10
"""The least limit that is taken where noise hides who has more."""
GROUPS: Final = 10
"""How many groups there are taken to be, where groups are not listed."""
MUCH: Final = 0.1
"""A larger share that is dropped, or may be, is worth a warning."""
_MISS: Final = Fraction(1, 1000)
"""The probability that more is dropped than stated."""
_BLINDING = 20
"""This many standard deviations are more than all individuals where noise hides who has more."""
_LAPLACE, _NORMAL = math.log(20), 1.96
"""The error by noise that holds with 95%, in scales of Laplace noise and standard deviations."""


@dataclass(frozen=True, slots=True)
class MostDropped:
    """How much a limit may drop.

    Parameters
    ----------
    rows
        At most this many rows, or groups of individuals.
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
    """The loss of a limit, within noise.

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

    @property
    def seems_little(self) -> bool:
        """Whether about a tenth is dropped at most: only people whom noise hides could add more."""
        return self.share <= MUCH


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
    sizes
        The number of individuals that a group needs to appear almost always under each limit,
        where groups are not listed; else empty.
    law
        The noise of each count, independent of the others; None if none exists.
    is_normal
        Whether the noise of the query is normal; else it is taken to be Laplace noise.
    """

    limits: tuple[int, ...]
    noise: tuple[float, ...]
    sizes: tuple[int, ...] = ()
    law: AdditiveMechanism | None = None
    is_normal: bool = False

    def found(self, counts: Sequence[int]) -> LossOfLimit:
        """The limit that has the least error, and what it loses; `counts` are those of
        `place`."""
        return self.loss(counts, self.place(counts))

    def place(self, counts: Sequence[int]) -> int:
        """Which limit has the least error.

        Where two standard deviations are more than a tenth of all individuals, noise hides who has
        more, and no limit below `BLIND` is taken. If groups are not listed, it is a limit under
        which a group of a usual size appears; if none exists, the limit with the smallest such
        size.

        Parameters
        ----------
        counts
            The noisy number of individuals up to each limit and above the one before it, and last
            of those above all.
        """
        tail = self._tail(counts)
        places = [*range(len(self.noise))]
        variance = 0.0 if self.law is None else self.law.variance()
        if _BLINDING * math.sqrt(variance) > max(1.0, float(sum(counts))):
            places = [p for p in places if self.limits[p] >= BLIND] or places[-1:]
        if self.sizes:
            usual = self.usual_size(counts)
            appears = [p for p in places if self.sizes[p] <= usual]
            places = appears or [min(places, key=lambda p: self.sizes[p])]
        noise = np.clip(self.noise, 1e-9, 1e100)
        errors = np.log(
            median_error(tail.dropped[:, : noise.size], noise, is_normal=self.is_normal)
        )
        regret = ((errors - errors.min(axis=1)[:, None]) * tail.weights[:, None]).sum(axis=0)
        rounded = [round(float(each), 9) for each in regret]  # the same on every machine
        place: int = min(places, key=rounded.__getitem__)
        return place

    def loss(self, counts: Sequence[int], place: int) -> LossOfLimit:
        """What a limit loses; `counts` are those of `place`."""
        tail = self._tail(counts)
        dropped = tail.median(tail.dropped[:, place])
        most = self.most(counts, place, _MISS)
        return LossOfLimit(place, dropped, self._every(counts, tail), self.noise[place], most)

    def most(self, counts: Sequence[int], place: int, miss: Fraction) -> MostDropped:
        """How much a limit drops at most, with probability 1 - `miss`, if no individual has more
        than a number of rows that comes with it; see above for why that holds.

        Parameters
        ----------
        counts
            As for `place`.
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
        return min(1.0, tail.median(tail.dropped[:, place]) / self._every(counts, tail))

    def above(self, counts: Sequence[int]) -> list[float]:
        """About how many individuals have more than each limit."""
        tail = self._tail(counts)
        return [tail.median(tail.above[:, place]) for place in range(len(self.limits))]

    def _tail(self, counts: Sequence[int]) -> Tail:
        return tail_of(self.limits, tuple(map(int, counts)), self.law)

    def _every(self, counts: Sequence[int], tail: Tail) -> float:
        """About how many rows all individuals have; 1 at least."""
        whole, above = max(1.0, float(sum(counts))), tail.median(tail.above[:, 0])
        first = whole + (self.limits[0] - 1) * (whole + above) / 2
        return max(1.0, tail.median(tail.dropped[:, 0]) + first)

    def usual_size(self, counts: Sequence[int]) -> float:
        """About how many individuals a group has, if there are `GROUPS` and rows fall into all
        alike: one who has t rows is in a group with probability 1 - (1 - 1 / GROUPS)^t. In each bin
        it is taken half way between its ends.
        """
        tail, places = self._tail(counts), range(len(self.limits))
        whole = max(1.0, float(sum(counts)))
        above = [whole, *(tail.median(tail.above[:, place]) for place in places)]
        missed = [(1 - 1 / GROUPS) ** n for n in (1, *self.limits)]
        found = above[-1]
        for place in places:
            share = 1 - (missed[place] + missed[place + 1]) / 2
            found += (above[place] - above[place + 1]) * share
        return found


def median_error(dropped: Floats, noise: Floats, *, is_normal: bool) -> Floats:
    """The median of the absolute error of a number that lacks this much and has noise.

    Of |e - d| for Laplace noise e of scale b it is d + b log(1 + exp(-2 d / b)), because e is
    within m >= d >= 0 of d with probability 1 - exp(-m / b) cosh(d / b). For normal noise
    (d^p + m^p)^(1 / p) with its own median m and p = 3.2 is within 4%.

    Parameters
    ----------
    dropped
        How much it lacks.
    noise
        The error by noise, with 95%.
    is_normal
        Whether noise is normal, or else Laplace noise.
    """
    if is_normal:
        own, power = noise * (0.6745 / _NORMAL), 3.2
        most = np.maximum(dropped, own)
        normal: Floats = most * ((dropped / most) ** power + (own / most) ** power) ** (1 / power)
        return normal
    scale = noise / _LAPLACE
    laplace: Floats = dropped + scale * np.log1p(np.exp(-np.minimum(2 * dropped / scale, 700.0)))
    return laplace


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
        f"dpframe chose {limit}, which drops about {loss.dropped:,.0f} {what} "
        f"({_percent(loss.share)}); the noise would hide a few people with very many {of}: if some "
        f"have up to {loss.most.reach:,} each, up to {most:,.0f} {what} may be missing "
        f"({_percent(loss.most_share)})"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"
