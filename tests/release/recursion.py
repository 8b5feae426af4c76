"""Quantiles one inside the other, written down from their definition: slow, and nothing is lazy.

Points have so many places each, numbered on one line; every row is at a place of its point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.quantile_tree import QuantileTree
from dpframe.aggregates.request import QueryScope
from dpframe.mechanisms import RecursiveExponential

Chosen = Mapping[int, int]
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

    def placements(self, points: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """All places that rows of these points may take, each as likely as any other."""
        yield from product(*(range(p * self.ties, (p + 1) * self.ties) for p in points))

    def candidates(self, number: int, chosen: Chosen) -> range:
        node = self.tree.nodes[number]
        low = 0 if node.lower is None else chosen[node.lower]
        high = self.points * self.ties - 1 if node.upper is None else chosen[node.upper]
        return range(low, high + 1)

    def rows(self, number: int, chosen: Chosen, rows: Sequence[int]) -> list[int]:
        """Rows of a choice: those at the place of a quantile are above it."""
        node = self.tree.nodes[number]
        low = 0 if node.lower is None else chosen[node.lower]
        high = math.inf if node.upper is None else chosen[node.upper]
        return [row for row in rows if low <= row < high]

    def scores(self, number: int, chosen: Chosen, rows: Sequence[int]) -> list[Fraction]:
        """Minus the distance of the rank in question from those of each candidate."""
        own = self.rows(number, chosen, rows)
        target = self.tree.nodes[number].q * len(own)
        found = []
        for place in self.candidates(number, chosen):
            below, upto = sum(r < place for r in own), sum(r <= place for r in own)
            found.append(-max(target - upto, below - target, Fraction(0)))
        return found

    def of_places(self, rows: Sequence[int]) -> dict[tuple[int, ...], float]:
        """The probability of all chosen places."""
        order = [number for level in self.tree.levels for number in level]
        found: list[tuple[dict[int, int], float]] = [({}, 1.0)]
        for number in order:
            grown = []
            for chosen, mass in found:
                scores = self.scores(number, chosen, rows)
                weights = [math.exp(float(s / self.scales[number])) for s in scores]
                total = sum(weights)
                for place, weight in zip(self.candidates(number, chosen), weights, strict=True):
                    grown.append(({**chosen, number: place}, mass * weight / total))
            found = grown
        return {tuple(chosen[n] for n in range(len(order))): mass for chosen, mass in found}

    def law(self, points: Sequence[int]) -> Law:
        """The probability of all chosen points, given where rows are."""
        law: Law = {}
        placements = [*self.placements(points)]
        for rows in placements:
            for places, mass in self.of_places(rows).items():
                codes = tuple(place // self.ties for place in places)
                law[codes] = law.get(codes, 0.0) + mass / len(placements)
        return law


def log_masses(found: Recursion, rows: Sequence[int]) -> NDArray[np.float64]:
    """The logarithms of the probabilities of all choices, where points have one place each; of so
    many rows at each point, which may be many.
    """
    known: list[tuple[dict[int, int], float]] = [({}, 0.0)]
    for number in (number for level in found.tree.levels for number in level):
        node, scale = found.tree.nodes[number], float(found.scales[number])
        grown = []
        for chosen, mass in known:
            places = found.candidates(number, chosen)
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
