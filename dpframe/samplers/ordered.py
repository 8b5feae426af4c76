"""Several candidates at once, in order, by the exponential mechanism: exactly.

Candidates are numbered from 0 to P - 1. The rank of a candidate is the number of rows before it;
runs of candidates have one rank, which rises from run to run. A tuple of m candidates in order cuts
n rows into m + 1 parts; its cost is the sum over parts of |rows in it - rows there should be|, in
steps of 1 / b of a row. It has to be drawn with a probability in proportion to
f = exp(-cost / scale).

f is a product over parts, so the sum of f over all that the first j candidates may be, where the
last of them is in a given run, follows from those of j - 1, j - 2, ... (Gillenwater, Joseph and
Kulesza 2021). Such sums of floats only make proposals:

1. `Chain` holds upper bounds of these sums. From the end backwards it draws the run of the last
   candidate, how many more are in that run, and so on, by whole numbers w that are at least the
   terms of a bound, in units in which their sum S is at most the bound. So some runs are proposed
   with the known probability prod(w / S).
2. f times the number of tuples in these runs, over that probability, is at most `total`: put the
   bounds between factors, and each is at most 1, and all bounds but the last one cancel. What is
   proposed is accepted with the quotient of both, by an exact coin, else something else is.

The floats have to be large enough only, see `_ENOUGH`. Most proposals are accepted, as bounds
exceed sums by a share of 2**-12 or so.

Runs are looked at where ranks are within `reach` of what they should be. A tuple with another rank
costs more than twice that, so f < 2**-far for all of these: they are proposed uniformly with weight
2**-far each, and accepted with f over that (both kinds exclude each other). That hardly ever
happens, and makes the law exact. If reach is too short for that, it is doubled.

How long it takes depends on how many runs are within reach, and so on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from dpframe.samplers.exponential import bracket_exp, decay
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.uniform import uniform_below, uniform_integer

__all__ = ["Chain", "Line", "Runs", "ordered_exponential", "reach_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_FLOOR: Final = 2.0**-900
"""Bounds are at least that: then products that are not normal floats count for nothing."""
_WIDE: Final = 60
"""Whole numbers of one draw add up to about 2 to this."""
_TERM: Final = 1 + 2.0**-18
"""By how much terms are enlarged: `decay` is within 2**-25, and a few products lose 2**-50."""
_ENOUGH: Final = 1 + 2.0**-12
"""By how much sums are enlarged. A sum has at most 2**30 terms, and each is a product of at most 60
numbers of `decay` and 300 floats, all positive: it is within 60 * 2**-25 + 400 * 2**-53 < 2**-18.
Terms that are enlarged by 2**-18 and then by 1 in 2**-30 of the bound stay below it."""
_SPARE: Final = 30
_RARE: Final = 1 << 10
"""Tuples out of reach are proposed once in 2**30, about, and less often than this in any case."""


class Line(Protocol):
    """Rows among candidates."""

    @property
    def candidates(self) -> int:
        """How many there are."""
        ...

    @property
    def rows(self) -> int:
        """How many rows there are."""
        ...

    def runs(self, windows: Sequence[tuple[int, int]]) -> Runs:
        """The runs whose ranks are in one of the windows, from first to last rank."""
        ...

    def ranks(self, chosen: Sequence[int]) -> list[int]:
        """How many rows are before each of some candidates."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Candidates that have the same rank: their first one, how many they are, and the rank; in
    rising order, none of them empty.
    """

    starts: Integers
    lengths: Integers
    ranks: Integers


def reach_of(scale: Fraction, step: int, chosen: int, candidates: int) -> int:
    """How far from its target a rank is looked at, in steps. Beyond are tuples that have less than
    2**-30 of the probability altogether, unless many rows are between one candidate and the next.

    Parameters
    ----------
    scale
        In steps.
    step
        How many steps a row is.
    chosen, candidates
        How many of how many are drawn.
    """
    bits = chosen * candidates.bit_length() + _SPARE
    return math.ceil(scale * bits * Fraction(7, 20)) + 16 * chosen * step


class Chain:
    """Proposals of runs; see the module's description.

    Parameters
    ----------
    runs
        All runs within reach of a target.
    parts
        How many rows each part should have, in steps.
    step
        How many steps a row is.
    scale
        In steps.
    windows
        Of each candidate, the ranks that are looked at, from first to last.
    line
        How many candidates and rows there are: the ends.
    """

    def __init__(
        self,
        runs: Runs,
        parts: Sequence[int],
        step: int,
        scale: Fraction,
        windows: Sequence[tuple[int, int]],
        line: Line,
    ) -> None:
        self.runs, self.parts, self.step, self.scale = runs, tuple(parts), step, scale
        self.windows, self.line, self.chosen = tuple(windows), line, len(windows)
        self._rate = float(1 / scale)
        ends = np.array(windows, np.int64)
        self._first = np.searchsorted(runs.ranks, ends[:, 0], "left").tolist()
        self._end = np.searchsorted(runs.ranks, ends[:, 1], "right").tolist()
        nothing = np.full(runs.ranks.size, _FLOOR)
        self._before = [self._decay(np.abs(step * runs.ranks - self.parts[0])) * _TERM + _FLOOR]
        self._last = [nothing]
        for number in range(1, self.chosen + 1):
            whole = sum(self._together(number, size) for size in range(1, number + 1))
            self._last.append(np.asarray(whole * _ENOUGH + _FLOOR))
            if number < self.chosen:
                self._before.append(self._carried(number) * _ENOUGH + _FLOOR)

    @property
    def total(self) -> Fraction:
        """The bound on f times the number of tuples, over the probability of a proposal."""
        weights, unit = self.choices_of_run(self.chosen, self.line.rows, None)
        return int(weights.sum()) / unit

    def draw(self, source: BitSource) -> list[int] | None:
        """A tuple whose ranks are all within reach, where it is accepted."""
        found, odds = self.propose(source)
        count, cost = self.weight(found)
        if not _coin(count * odds / self.total, cost / self.scale, source):
            return None
        return [
            int(self.runs.starts[run]) + place
            for run, size in reversed(found)
            for place in _multiset(int(self.runs.lengths[run]), size, source)
        ]

    def propose(self, source: BitSource) -> tuple[list[tuple[int, int]], Fraction]:
        """Some runs with how many candidates of each, from the last to the first; and 1 over the
        probability of these.
        """
        number, found, odds = self.chosen, list[tuple[int, int]](), Fraction(1)
        rank, bound = self.line.rows, None
        while number:
            first = self._first[number - 1]
            weights, _ = self.choices_of_run(number, rank, bound)
            run, share = _drawn(weights, source)
            odds *= share
            weights, _ = self.choices_of_size(number, first + run)
            size, share = _drawn(weights, source)
            odds *= share
            found.append((first + run, size + 1))
            number, rank = number - size - 1, int(self.runs.ranks[first + run])
            bound = float(self._before[number][first + run])
        return found, odds

    def choices_of_run(
        self, number: int, rank: int, bound: float | None
    ) -> tuple[Integers, Fraction]:
        """Weights of the runs within reach that the candidate of a number may be in, where the next
        one is at some rank; and their unit. `bound` is that of their sum, if known already.
        """
        among = slice(
            self._first[number - 1],
            self._end[number - 1]
            if bound is None
            else min(self._end[number - 1], int(np.searchsorted(self.runs.ranks, rank, "left"))),
        )
        away = np.abs(self.step * (rank - self.runs.ranks[among]) - self.parts[number])
        return _whole(self._last[number][among] * self._decay(away), bound)

    def choices_of_size(self, number: int, run: int) -> tuple[Integers, Fraction]:
        """Weights of how many candidates up to one of a number are in its run, and their unit."""
        terms = [self._together(number, size, run)[0] for size in range(1, number + 1)]
        kept = 1
        while kept < number and self._within(number - kept, run):
            kept += 1
        return _whole(np.array(terms[:kept]), float(self._last[number][run]))

    def weight(self, found: Sequence[tuple[int, int]]) -> tuple[Fraction, int]:
        """How many tuples are in some runs, over all there would be without an order; and what each
        of them costs.
        """
        lengths, ranks = self.runs.lengths, self.runs.ranks
        count = math.prod(math.comb(int(lengths[run]) + size - 1, size) for run, size in found)
        each = [int(ranks[run]) for run, size in reversed(found) for _ in range(size)]
        return Fraction(count, self.line.candidates**self.chosen), self.cost(each)

    def cost(self, ranks: Sequence[int]) -> int:
        """Of a tuple, by its ranks."""
        ends = pairwise([0, *ranks, self.line.rows])
        return sum(
            abs(self.step * (b - a) - part) for (a, b), part in zip(ends, self.parts, strict=True)
        )

    def _within(self, number: int, run: int) -> bool:
        return bool(self._first[number - 1] <= run < self._end[number - 1])

    def _decay(self, gaps: Integers) -> Floats:
        return decay(gaps.astype(np.uint64), self._rate)

    def _together(self, number: int, size: int, run: int | None = None) -> Floats:
        """Terms where so many candidates up to one of a number are in one run: of all runs, or of
        one; 0 where that is out of reach.
        """
        among = slice(None) if run is None else slice(run, run + 1)
        lengths = self.runs.lengths[among].astype(np.float64)
        empty = sum(self.parts[number - size + 1 : number])
        terms = self._before[number - size][among] * self._decay(np.array([empty]))
        for i in range(size):
            terms = terms * ((lengths + i) / ((i + 1.0) * self.line.candidates))
        if run is None:
            terms[: max(self._first[number - size : number])] = 0
            terms[min(self._end[number - size : number]) :] = 0
        return np.asarray(terms, np.float64)

    def _carried(self, number: int) -> Floats:
        """Sums over all runs within reach of the candidate of a number, for each that the next may
        be in: of what is before it, falling with how far the part between is from its size.
        """
        among = slice(self._first[number - 1], self._end[number - 1])
        ranks, masses = self.runs.ranks[among], self._last[number][among]
        goal, upto = self.parts[number], self.runs.ranks
        end = np.searchsorted(ranks, upto, "left")
        split = np.searchsorted(ranks, (self.step * upto - goal) // self.step, "right")
        split = np.minimum(split, end)
        sums = _Sums(ranks, masses, self.step, self._rate)
        found = np.zeros(upto.size)
        far = np.flatnonzero(split)
        inner = split[far] - 1
        gaps = self.step * (upto[far] - ranks[inner]) - goal
        found[far] = sums.upto(inner) * self._decay(gaps)
        near = np.flatnonzero(split < end)
        gaps = goal - self.step * (upto[near] - ranks[split[near]])
        found[near] += sums.between(split[near], end[near]) * self._decay(gaps)
        return found


class _Sums:
    """Sums of masses that fall exponentially with the distance of their ranks from an end."""

    def __init__(self, ranks: Integers, masses: Floats, step: int, rate: float) -> None:
        self._ranks, self._step, self._rate = ranks, step, rate
        self._levels = [masses]
        before = masses.copy()
        width = 1
        while width < ranks.size:
            falls = decay((step * (ranks[width:] - ranks[:-width])).astype(np.uint64), rate)
            after = self._levels[-1].copy()
            after[:-width] += falls * self._levels[-1][width:]
            self._levels.append(after)
            before[width:] += falls * before[:-width]
            width *= 2
        self._before = before

    def upto(self, last: Integers) -> Floats:
        """Over all up to each of some places, as seen from there."""
        return self._before[last]

    def between(self, first: Integers, end: Integers) -> Floats:
        """Over all from each of some places on, before others, as seen from the first."""
        found, place, left = np.zeros(first.size), first.copy(), end - first
        for level, sums in enumerate(self._levels):
            lanes = np.flatnonzero(left >> level & 1)
            gaps = self._step * (self._ranks[place[lanes]] - self._ranks[first[lanes]])
            found[lanes] += sums[place[lanes]] * decay(gaps.astype(np.uint64), self._rate)
            place[lanes] += 1 << level
        return found


def ordered_exponential(
    line: Line, shares: Sequence[int], step: int, scale: Fraction, source: BitSource = OS
) -> list[int]:
    """Candidates in order, one for each of some quantiles.

    Parameters
    ----------
    line
        The rows among candidates.
    shares
        The quantiles in steps, rising: candidate j should have `shares[j] / step` of all rows
        before it.
    step
        How many steps a row is.
    scale
        In steps.
    source
        For tests only.
    """
    goals = [share * line.rows for share in shares]
    parts = [b - a for a, b in pairwise([0, *goals, step * line.rows])]
    reach = reach_of(scale, step, len(shares), line.candidates)
    while True:
        windows = windows_of(goals, step, reach, line.rows)
        chain = Chain(line.runs(windows), parts, step, scale, windows, line)
        inner, outer = chain.total, _outside(chain, reach)
        if outer * _RARE <= inner:
            break
        reach *= 2
    odds = inner / (inner + outer)
    while True:
        if uniform_integer(odds.denominator, source) < odds.numerator:
            found = chain.draw(source)
        else:
            found = _drawn_outside(chain, reach, source)
        if found is not None:
            return found


def windows_of(
    goals: Sequence[int], step: int, reach: int, rows: int
) -> tuple[tuple[int, int], ...]:
    """The first and last rank within reach of each goal, where there are any."""
    return tuple(
        (max(0, -((reach - goal) // step)), min(rows, (goal + reach) // step)) for goal in goals
    )


def _far(chain: Chain, reach: int) -> int:
    """Tuples with a rank out of reach cost more than twice that, so f < 2**-far."""
    return math.floor(2 * reach / chain.scale * Fraction(1442, 1000))  # below 1 / ln 2


def _outside(chain: Chain, reach: int) -> Fraction:
    """The weight of what is proposed out of reach."""
    line, chosen = chain.line, chain.chosen
    if all(window == (0, line.rows) for window in chain.windows):
        return Fraction(0)
    tuples = math.comb(line.candidates + chosen - 1, chosen)
    return Fraction(tuples, line.candidates**chosen << _far(chain, reach))


def _drawn_outside(chain: Chain, reach: int, source: BitSource) -> list[int] | None:
    """A tuple of all there are, where a rank of it is out of reach and it is accepted."""
    chosen = _multiset(chain.line.candidates, chain.chosen, source)
    ranks = chain.line.ranks(chosen)
    if all(lo <= rank <= hi for rank, (lo, hi) in zip(ranks, chain.windows, strict=True)):
        return None
    bound = Fraction(1 << _far(chain, reach))
    return chosen if _coin(bound, chain.cost(ranks) / chain.scale, source) else None


def _whole(terms: Floats, bound: float | None) -> tuple[Integers, Fraction]:
    """Integers that are at least the terms in some unit, which is 1 over the second number; those
    of a bound that is at least (1 + 2**-12) times the sum of the terms add up to less than it.
    """
    whole = float(terms.sum()) * _ENOUGH + _FLOOR if bound is None else bound
    up = _WIDE - int(np.frexp(whole)[1])
    weights = np.floor(np.ldexp(terms * _TERM, up)).astype(np.int64) + 1
    return weights, Fraction(1 << up) if up >= 0 else Fraction(1, 1 << -up)


def _drawn(weights: Integers, source: BitSource) -> tuple[int, Fraction]:
    """A place in proportion to weights, and their sum over its own."""
    sums = np.cumsum(weights)
    total = int(sums[-1])
    place = int(np.searchsorted(sums, uniform_below(total, source), "right"))
    return place, Fraction(total, int(weights[place]))


def _coin(ratio: Fraction, x: Fraction, source: BitSource) -> bool:
    """True with probability ratio * exp(-x), which is at most 1.

    exp(-x) is irrational unless x = 0 (Lindemann-Weierstrass), and then it is known exactly, so
    that both comparisons fail only as long as U and the product have the same binary digits.
    """
    up, down = ratio.numerator, ratio.denominator
    extra = 64 + max(0, up.bit_length() - down.bit_length())
    prefix, bits = source.int64bits(), 64
    while True:
        lo, hi = bracket_exp(x, bits + extra)
        if (prefix + 1) * down << extra <= up * lo:
            return True
        if prefix * down << extra >= up * hi:
            return False
        prefix, bits = prefix << 64 | source.int64bits(), bits + 64


def _multiset(end: int, size: int, source: BitSource) -> list[int]:
    """One of the nondecreasing sequences of integers in [0, end), uniformly: a subset of
    end + size - 1 numbers (Floyd's algorithm), each less its place.
    """
    taken: set[int] = set()
    for last in range(end - 1, end + size - 1):
        number = uniform_integer(last + 1, source)
        taken.add(last if number in taken else number)
    return [number - place for place, number in enumerate(sorted(taken))]
