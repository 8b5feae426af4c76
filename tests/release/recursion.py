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

from dpframe.aggregates.quantile_tree import QuantileNode, QuantileTree
from dpframe.aggregates.request import QueryScope
from dpframe.mechanisms import RecursiveExponential

Chosen = Mapping[int, int]
Ends = tuple[int | None, int | None]
Law = dict[tuple[int, ...], float]


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
    def nodes(self) -> tuple[QuantileNode, ...]:
        return self.tree.nodes

    def placements(self, points: Sequence[int]) -> Counter[tuple[int, ...]]:
        """All places that rows of these points may take, and how many ways of taking them there
        are, each as likely as any other; which row is at which place makes no difference.
        """
        places = (range(p * self.ties, (p + 1) * self.ties) for p in points)
        return Counter(tuple(sorted(taken)) for taken in product(*places))

    def ends(self, number: int, chosen: Chosen) -> Ends:
        """The places between which a choice is made: those that were chosen before."""
        node = self.nodes[number]
        low = None if node.lower is None else chosen[node.lower]
        return low, None if node.upper is None else chosen[node.upper]

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
        target = self.nodes[number].q * len(own)
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
            if node.upper is not None:
                own[places.stop - 1 :] = 0
            upto, target = np.cumsum(own), float(node.q) * own.sum()
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
