"""Quantiles one inside the other, written down from their definition: slow, and nothing is lazy.

Points have so many places each, numbered on one line; every row is at a place of its point.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.quantile import QuantileTree
from dpframe.aggregates.request import QueryScope
from dpframe.kernel.moves import LevelChoice
from dpframe.mechanisms import RecursiveExponential

Chosen = Mapping[int, int]
Ends = tuple[int | None, int | None]
Law = dict[tuple[int, ...], float]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recursion:
    """A tree with the scales of its choices, in ranks, on a line of so many points."""

    tree: QuantileTree
    scales: tuple[Fraction, ...]
    points: int
    ties: int

    @classmethod
    def of(
        cls, tree: QuantileTree, law: RecursiveExponential, scope: QueryScope, ties: int
    ) -> Recursion:
        scales = tuple(law.scale * tree.step * share for share in tree.shares(scope))
        return cls(tree, scales, tree.candidates, ties)

    @cached_property
    def nodes(self) -> tuple[LevelChoice, ...]:
        return self.tree.choices

    def placements(self, points: Sequence[int]) -> Counter[tuple[int, ...]]:
        """All places that rows of these points may take, and how many ways of taking them there
        are, each as likely as any other; which row is at which place makes no difference.
        """
        places = (range(p * self.ties, (p + 1) * self.ties) for p in points)
        return Counter(tuple(sorted(taken)) for taken in product(*places))

    def ends(self, number: int, chosen: Chosen) -> Ends:
        """The places between which a choice is made: those that were chosen before."""
        node = self.nodes[number]
        low = None if node.lower < 0 else chosen[node.lower]
        return low, None if node.upper < 0 else chosen[node.upper]

    def candidates(self, ends: Ends) -> range:
        low, high = ends
        return range(
            0 if low is None else low, self.points * self.ties if high is None else high + 1
        )

    def rows(self, ends: Ends, rows: Sequence[int]) -> list[int]:
        """Rows of a choice: those at the place of a quantile are above it."""
        low, high = ends
        return [row for row in rows if (low or 0) <= row and (high is None or row < high)]

    def scores(self, number: int, ends: Ends, rows: Sequence[int]) -> list[Fraction]:
        """Minus the distance of the rank in question from those of each candidate."""
        own = self.rows(ends, rows)
        target = self.nodes[number].quantile * len(own)
        found = []
        for place in self.candidates(ends):
            below, upto = sum(r < place for r in own), sum(r <= place for r in own)
            found.append(-max(target - upto, below - target, Fraction(0)))
        return found

    def shares(self, number: int, ends: Ends, rows: Sequence[int]) -> list[tuple[int, float]]:
        """The candidates of a choice and the probability of each."""
        scale = self.scales[number]
        weights = [math.exp(float(s / scale)) for s in self.scores(number, ends, rows)]
        total = sum(weights)
        return [(p, w / total) for p, w in zip(self.candidates(ends), weights, strict=True)]

    def of_places(self, rows: Sequence[int]) -> dict[tuple[int, ...], float]:
        """The probability of all chosen places."""
        order = [number for level in self.tree.levels for number in level]
        shares = cache(partial(self.shares, rows=rows))  # a choice follows from its ends
        found: list[tuple[dict[int, int], float]] = [({}, 1.0)]
        for number in order:
            found = [
                ({**chosen, number: place}, mass * share)
                for chosen, mass in found
                for place, share in shares(number, self.ends(number, chosen))
            ]
        return {tuple(chosen[n] for n in range(len(order))): mass for chosen, mass in found}

    def law(self, points: Sequence[int]) -> Law:
        """The probability of all chosen points, given where rows are."""
        law: Law = {}
        placements = self.placements(points)
        for rows, ways in placements.items():
            share = ways / placements.total()
            for places, mass in self.of_places(rows).items():
                codes = tuple(place // self.ties for place in places)
                law[codes] = law.get(codes, 0.0) + mass * share
        return law


def log_masses(found: Recursion, rows: Sequence[int]) -> NDArray[np.float64]:
    """The logarithms of the probabilities of all choices, where points have one place each; of so
    many rows at each point, which may be many.
    """
    known: list[tuple[dict[int, int], float]] = [({}, 0.0)]
    for number in (number for level in found.tree.levels for number in level):
        node, scale = found.nodes[number], float(found.scales[number])
        grown = []
        for chosen, mass in known:
            places = found.candidates(found.ends(number, chosen))
            own = np.array(rows, np.float64)
            own[: places.start] = 0
            if node.upper >= 0:
                own[places.stop - 1 :] = 0
            upto, target = np.cumsum(own), float(node.quantile) * own.sum()
            away = np.maximum(np.maximum(target - upto, upto - own - target), 0)
            logs = -away[places.start : places.stop] / scale
            logs -= logs.max() + math.log(np.exp(logs - logs.max()).sum())
            grown += [
                ({**chosen, number: place}, mass + float(log))
                for place, log in zip(places, logs, strict=True)
            ]
        known = grown
    return np.array([mass for _, mass in known])


def largest_log_ratio(one: Law, other: Law) -> float:
    return max(abs(math.log(one[codes] / other[codes])) for codes in one)


@dataclass(frozen=True)
class Line:
    """Candidates in order, each with so many rows; places between them that nobody may choose, of
    which there are so many, make up their mass.

    Parameters
    ----------
    rows
        Of each entry.
    sizes
        How many candidates an entry stands for: those of which there are several are not chosen,
        so whatever is chosen ends where an entry does.
    """

    rows: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @classmethod
    def of(cls, gaps: Sequence[int], rows: Sequence[int]) -> Line:
        """Points with rows, and before, between and after them gaps of 2 ** gap places and two."""
        entries: list[tuple[int, int]] = []
        for number, gap in enumerate(gaps):
            entries += [(0, 1), (0, 1 << gap), (0, 1), *((n, 1) for n in rows[number : number + 1])]
        found = np.array(entries, np.float64)
        return cls(found[:, 0], found[:, 1])

    def with_row(self, at: int, more: int = 1) -> Line:
        """With more rows at a point, by its number."""
        rows = self.rows.copy()
        rows[4 * at + 3] += more
        return Line(rows, self.sizes)

    def log_masses(self, q: float, scale: float, low: int, high: int | None) -> Floats:
        """Of each candidate from one entry to another, among the rows between them."""
        end = self.rows.size if high is None else high + 1
        own = self.rows[low:end].copy()
        if high is not None:
            own[-1] = 0
        upto, target = np.cumsum(own), q * own.sum()
        logs = -np.maximum(np.maximum(target - upto, upto - own - target), 0) / scale
        weighed = logs + np.log(self.sizes[low:end])
        found: Floats = logs - weighed.max() - math.log(np.exp(weighed - weighed.max()).sum())
        return found


def told_by_a_path(found: Recursion, one: Line, other: Line) -> float:
    """The largest logarithm of how much likelier choices are on one line than on another, over all
    that may be chosen: each choice adds to it, and what is below one does not depend on what is
    above.
    """
    nodes = found.tree.choices
    by_ends = {(node.lower, node.upper): number for number, node in enumerate(nodes)}
    known: dict[tuple[int, int, int | None], float] = {}

    def most(lower: int, upper: int, low: int, high: int | None) -> float:
        number = by_ends.get((lower, upper))
        if number is None:
            return 0.0
        key = number, low, high
        if key not in known:
            q, scale = float(nodes[number].quantile), float(found.scales[number])
            told = one.log_masses(q, scale, low, high) - other.log_masses(q, scale, low, high)
            known[key] = max(
                told[place - low]
                + most(lower, number, low, place)
                + most(number, upper, place, high)
                for place in range(low, low + told.size)
                if one.sizes[place] == 1
            )
        return known[key]

    return most(-1, -1, 0, None)


def divergence(found: Recursion, one: Line, other: Line, order: float) -> float:
    """The Rényi divergence of all that is chosen, where each entry is one candidate: what follows
    a choice adds to it as it depends on that choice.
    """
    nodes = found.tree.choices
    by_ends = {(node.lower, node.upper): number for number, node in enumerate(nodes)}
    known: dict[tuple[int, int, int | None], float] = {}

    def logarithm(lower: int, upper: int, low: int, high: int | None) -> float:
        number = by_ends.get((lower, upper))
        if number is None or (one.rows[low:high] == other.rows[low:high]).all():
            return 0.0
        key = number, low, high
        if key not in known:
            q, scale = float(nodes[number].quantile), float(found.scales[number])
            p = one.log_masses(q, scale, low, high)
            powers = order * p + (1 - order) * other.log_masses(q, scale, low, high)
            for place in range(low, low + p.size):
                powers[place - low] += logarithm(lower, number, low, place)
                powers[place - low] += logarithm(number, upper, place, high)
            known[key] = float(powers.max() + math.log(np.exp(powers - powers.max()).sum()))
        return known[key]

    return logarithm(-1, -1, 0, None) / (order - 1)
