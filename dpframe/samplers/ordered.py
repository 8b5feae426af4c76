"""Several candidates at once, in order, by the exponential mechanism: exactly.

A tuple of m candidates in order has to be drawn with a probability in proportion to
f = exp(-cost / scale) (see `dpframe.samplers.ordered_chain` for the cost). Runs of candidates
with one rank are proposed with an exactly known probability. Over that, f times the number of
tuples in these runs is at most `Chain.total`, which is known exactly too and proven there. A
proposal is accepted with the quotient of both, by an exact coin; otherwise another one is made.
Floats make proposals only. Nearly all of these are accepted.

Runs are looked at where ranks are within `reach` of what they should be. A tuple with another rank
costs more than twice that, so f < 2**-far for all of these: they are proposed uniformly with weight
2**-far each, and accepted with f over that (both kinds exclude each other). That almost never
happens, and makes the law exact. If reach is too short for that, it is doubled.

How long it takes depends on how many runs are within reach, and so on the rows. Few proposals are
needed as long as the best tuple has f / P**m above 2**-850 or so, for P candidates: the floats
that they are made by end at 2**-900. This holds if m log2(P) is at most 700, and each expected
rank is within some scales of an existing one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from dpframe.samplers.exponential import bracket_exp
from dpframe.samplers.ordered_chain import Chain, Line, Runs
from dpframe.samplers.source import OS, BitSource
from dpframe.samplers.uniform import uniform_integer

__all__ = ["Line", "Runs", "ordered_exponential", "reach_of"]

_SPARE: Final = 30
_RARE: Final = 1 << 10
"""Tuples out of reach are proposed once in 2**30, about, and less often than this in any case."""


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
        if chain.has_tuples and outer * _RARE <= inner:
            break
        reach *= 2
    odds = inner / (inner + outer)
    while True:
        if uniform_integer(odds.denominator, source) < odds.numerator:
            found = _drawn_inside(chain, inner, source)
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


def _drawn_inside(chain: Chain, total: Fraction, source: BitSource) -> list[int] | None:
    """A tuple whose ranks are all within reach, where it is accepted."""
    found, odds = chain.propose(source)
    count, cost = chain.weight(found)
    if not _coin(count * odds / total, cost / chain.scale, source):
        return None
    starts, lengths = chain.runs.starts, chain.runs.lengths
    return [
        int(starts[run]) + place
        for run, size in reversed(found)
        for place in _multiset(int(lengths[run]), size, source)
    ]


def _drawn_outside(chain: Chain, reach: int, source: BitSource) -> list[int] | None:
    """A tuple of all there are, where a rank of it is out of reach and it is accepted."""
    chosen = _multiset(chain.line.candidates, chain.chosen, source)
    ranks = chain.line.ranks(chosen)
    if all(lo <= rank <= hi for rank, (lo, hi) in zip(ranks, chain.windows, strict=True)):
        return None
    bound = Fraction(1 << _far(chain, reach))
    return chosen if _coin(bound, chain.cost(ranks) / chain.scale, source) else None


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
