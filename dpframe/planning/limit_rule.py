"""Which limit a noisy histogram of individuals gives: the one that errs least by what it drops and
by noise together.

All of it is computed from noisy counts and from plans, so it is post-processing, and privacy does
not rest on it. The rule was chosen among others by how far from the best limit it was, on even,
lognormal and heavy-tailed data (docs/individuals.md has figures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["BLIND", "GROUPS", "LimitRule", "LossOfLimit", "remark_of"]

BLIND: Final = 10
"""The least limit that is found where noise hides who has more."""
GROUPS: Final = 10
"""How many groups there are taken to be, where nobody listed them."""
_SEEN, _SEEN_ABOVE = 2.0, 4.0
"""By how many standard deviations a bin counts as seen, and all individuals from it on."""
_UNSEEN = 0.25
"""How many of them are taken to hide in the first bin that is not seen."""
_SLOWEST = 1.0
"""By which power of the limit individuals become fewer at least, where noise hides how fast: with a
lower one rows in all would have no mean, however far one counts, and noise alone would look so.
"""
_HIDDEN = 3.0
"""Within how many of them noise nearly always is."""
_BLINDING = 20
"""So many of them are more than all individuals where noise hides who has more."""


@dataclass(frozen=True, slots=True)
class LossOfLimit:
    """What a limit loses, as far as noise lets see.

    Parameters
    ----------
    place
        Which of the limits, from 0.
    dropped, most
        About how many rows it drops (or groups of individuals), and how many it may drop.
    every
        About how many there are.
    noise
        The error by noise under it, with 95%, as a number of rows.
    hidden
        How many individuals may have more.
    """

    place: int
    dropped: float
    most: float
    every: float
    noise: float
    hidden: int

    @property
    def share(self) -> float:
        """Which share of all it drops, about."""
        return min(1.0, self.dropped / self.every)

    @property
    def most_share(self) -> float:
        """Which share of all it may drop."""
        return min(1.0, self.most / self.every)

    @property
    def is_much(self) -> bool:
        """Whether more is dropped than noise hides, and more than one percent."""
        return self.dropped > self.noise and self.share > 0.01


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
    """

    limits: tuple[int, ...]
    noise: tuple[float, ...]
    variance: float
    sizes: tuple[int, ...] = ()

    def found(self, counts: Sequence[int]) -> LossOfLimit:
        """The limit whose dropped rows and noise are the fewest together, and what it loses.

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
        deviation, whole = math.sqrt(self.variance), max(1.0, float(sum(counts)))
        above = self.above(counts)
        dropped, most = self.dropped(above), self.dropped(self.above(counts, _HIDDEN))
        places = [*range(len(self.noise))]
        if _BLINDING * deviation > whole:
            places = [p for p in places if self.limits[p] >= BLIND] or places[-1:]
        if self.sizes:
            usual = self.usual_size(counts)
            appears = [p for p in places if self.sizes[p] <= usual]
            places = appears or [min(places, key=lambda p: self.sizes[p])]
        place = min(places, key=lambda p: dropped[p] + self.noise[p])
        n = self.limits[place]
        return LossOfLimit(
            place,
            dropped[place],
            max(dropped[place], most[place]) + _HIDDEN * deviation * n,
            self.every(counts),
            self.noise[place],
            math.ceil(above[place] + _HIDDEN * deviation),
        )

    def above(self, counts: Sequence[int], unseen: float = _UNSEEN) -> list[float]:
        """About how many individuals have more than each limit.

        Limits are gone through in rising order as long as someone is seen above them: the next bin
        is two standard deviations above zero, or all from it on are four. Up to there bins are
        added up; beyond, noise is all that is seen, and individuals become fewer as fast as they
        did last: as a power of the limit, which holds of heavy tails, while others fall faster; the
        first at least, under which their mean is finite.

        Parameters
        ----------
        counts
            As for `found`.
        unseen
            How many standard deviations are taken to hide in the first bin that is not seen.
        """
        limits, size = self.limits, len(self.limits)
        whole = max(1.0, float(sum(counts)))
        last = self._last_seen(counts)
        seen = [sum(counts[p + 1 : last + 2]) for p in range(last + 1)]
        found, least = list[float](), whole
        for number in seen:
            least = max(0.0, min(least, float(number)))
            found.append(least)
        at, now = (float(limits[last]), found[-1]) if found else (limits[0] / 2, whole)
        before = (limits[last - 1], found[-2]) if last > 0 else (at / 2, whole)
        falls = max(_SLOWEST, _power(before, (at, now)))
        if last + 1 < size:
            few = max(1.0, counts[last + 2] + unseen * math.sqrt(self.variance))
            falls = max(falls, _power((at, now), (limits[last + 1], few)))
        found += [now * (at / n) ** falls for n in limits[last + 1 :]]
        return found

    def _last_seen(self, counts: Sequence[int]) -> int:
        """The place of the last limit of those above which someone is seen; -1 for none."""
        deviation, size = math.sqrt(self.variance), len(self.limits)
        for place in range(size):
            others = counts[place + 1 :]
            beyond = _SEEN_ABOVE * deviation * math.sqrt(len(others))
            if others[0] < _SEEN * deviation and sum(others) < beyond:
                return place - 1
        return size - 1

    def every(self, counts: Sequence[int]) -> float:
        """About how many rows all individuals have; 1 at least."""
        whole, above = max(1.0, float(sum(counts))), self.above(counts)
        first = whole + (self.limits[0] - 1) * (whole + above[0]) / 2
        return max(1.0, self.dropped(above)[0] + first)

    def usual_size(self, counts: Sequence[int]) -> float:
        """About how many individuals a group has, if there are `GROUPS` and rows fall into all
        alike: one who has t rows is in a group with probability 1 - (1 - 1 / GROUPS)^t. In each bin
        it is taken half way between its ends.
        """
        above = [max(1.0, float(sum(counts))), *self.above(counts)]
        missed = [(1 - 1 / GROUPS) ** n for n in (1, *self.limits)]
        found = above[-1]
        for place in range(len(self.limits)):
            share = 1 - (missed[place] + missed[place + 1]) / 2
            found += (above[place] - above[place + 1]) * share
        return found

    def dropped(self, above: Sequence[float]) -> list[float]:
        """About how many rows each limit drops.

        One that has t rows loses max(0, t - L), so all lose the sum over l from L on of those who
        have more than l (Abel). Between two limits these are taken to lie between the numbers at
        both: half way between their means, arithmetic and geometric. Above the largest limit
        nothing is added.
        """
        found = [0.0]
        for place in reversed(range(len(self.limits) - 1)):
            width = self.limits[place + 1] - self.limits[place]
            few, many = above[place + 1], above[place]
            between = (few + many) / 4 + math.sqrt(few * many) / 2
            found.append(found[-1] + many + (width - 1) * between)
        return found[::-1]


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
    what = "groups of individuals" if by_groups else "rows"
    return (
        f"{limit} was found: it drops about {loss.dropped:,.0f} {what} "
        f"({_percent(loss.share)}), perhaps up to {loss.most:,.0f} ({_percent(loss.most_share)}); "
        f"up to about {loss.hidden:,} individuals may have more, and lose rows"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.1 else f"{100 * share:.0f}%"


def _power(before: tuple[float, float], after: tuple[float, float]) -> float:
    """By which power of the limit numbers fall from one to the next; not below 0."""
    (low, many), (high, few) = before, after
    return max(0.0, math.log(max(many, 1e-9) / max(few, 1e-9)) / math.log(high / low))
