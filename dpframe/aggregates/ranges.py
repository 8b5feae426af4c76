"""Numbers of rows between two edges, from what was released: post-processing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypeAlias

import numpy as np

from dpframe.aggregates.distribution_error import DistributionError, EdgesError
from dpframe.aggregates.distribution_sets_error import DistributionSetsError
from dpframe.aggregates.edges import Comparable, Edges, comparable, edge_words
from dpframe.aggregates.values import Value, number_of
from dpframe.aggregates.weighted_noise import WeightedNoise, excess_of
from dpframe.core.exact import as_given, nearest
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.frames.grouping_sets import SetGroups
from dpframe.mechanisms import (
    AdditiveMechanism,
    CombinedNoise,
    IndependentNoise,
    Mechanism,
)

__all__ = ["BinRanges", "CumulativeRanges", "Ranges", "RangesBySets"]

Laws: TypeAlias = "Sequence[Mechanism]"
_MOST_ADDED: Final = 24
"""For this many noises the law of their sum is computed fast enough."""


class Ranges(ABC):
    """The number of rows between two edges, from a release of counts in an order."""

    __slots__ = ()

    @property
    @abstractmethod
    def words(self) -> str:
        """Which rows are between two edges."""

    def of_set(self, kept: tuple[int, ...]) -> Ranges:
        """The ranges for groups of one of several grouping sets."""
        return self

    @abstractmethod
    def place(self, edge: object, where: str) -> int:
        """How many steps end at or before an edge.

        Raises
        ------
        InvalidBounds
            When it is not an edge; the nearest ones are named.
        """

    @abstractmethod
    def value(self, counts: Sequence[int], start: int, stop: int) -> int:
        """The number of rows in the steps from `start` to `stop` - 1.

        Parameters
        ----------
        counts
            What was released of a group, in order.
        start, stop
            Which steps.
        """

    @abstractmethod
    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        """What its error keeps within with probability `level`.

        Parameters
        ----------
        laws
            The noise of each noisy vector.
        start, stop
            Which steps.
        level
            Between 0 and 1, exclusive.

        Raises
        ------
        UnsupportedOperation
            When the error is not known.
        """


@dataclass(frozen=True, slots=True, eq=False)
class _UpToEdges(Ranges):
    """Ranges of a distribution function: rows above the lower edge, up to the upper one.

    Parameters
    ----------
    value_of
        The number.
    edges
        The upper edges.
    """

    value_of: Value
    edges: Edges

    @property
    def words(self) -> str:
        return "above the lower edge, and up to the upper edge"

    def place(self, edge: object, where: str) -> int:
        if edge is None:
            return 0
        number = comparable(number_of(edge, self.value_of.domain.dtype, where), self.value_of)
        return 1 + _found(self.edges.numbers, number, edge, self.value_of, where)

    def value(self, counts: Sequence[int], start: int, stop: int) -> int:
        return counts[stop - 1] - (counts[start - 1] if start else 0)


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeRanges(_UpToEdges):
    """Ranges of a distribution function.

    Parameters
    ----------
    rule
        The errors of the numbers.
    """

    rule: EdgesError

    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        noises = [law for law in laws if isinstance(law, AdditiveMechanism)]
        return self.rule.range_noise(noises, start, stop).quantile(level)


@dataclass(frozen=True, slots=True, eq=False)
class RangesBySets(_UpToEdges):
    """Of distribution functions by grouping sets.

    Parameters
    ----------
    rule
        The errors of the numbers.
    groups
        The grouping sets.
    kept
        The columns of the set that a group is of; the first set unless given.
    """

    rule: DistributionSetsError
    groups: SetGroups
    kept: tuple[int, ...] | None = None

    def of_set(self, kept: tuple[int, ...]) -> RangesBySets:
        return replace(self, kept=kept)

    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        noises = [law for law in laws if isinstance(law, AdditiveMechanism)]
        kept = self.groups.sets[0] if self.kept is None else self.kept
        return self.rule.range_noise(noises, kept, start, stop).quantile(level)


@dataclass(frozen=True, slots=True, eq=False)
class BinRanges(Ranges):
    """Ranges of a histogram of bins: rows from the lower edge to below the upper one, or up to it
    where it is the last.

    Parameters
    ----------
    value_of
        The number.
    edges
        Where bins begin and end, in the form that values are compared with.
    nonnegative
        Whether negative counts became 0.
    rule
        The errors of rebuilt counts; None for plain counts.
    """

    value_of: Value
    edges: Sequence[Comparable]
    nonnegative: bool
    rule: DistributionError | None = None

    @property
    def words(self) -> str:
        return "from the lower edge to below the upper edge, and up to it where it is the last"

    def place(self, edge: object, where: str) -> int:
        exact = number_of(edge, self.value_of.domain.dtype, where)
        whole = isinstance(self.edges[0], int) and exact.denominator == 1
        number = int(exact) if whole else nearest(exact)
        return _found(self.edges, number, edge, self.value_of, where)

    def value(self, counts: Sequence[int], start: int, stop: int) -> int:
        return sum(counts[start:stop])

    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        law, bins = laws[0], stop - start
        if not isinstance(law, AdditiveMechanism):
            raise UnsupportedOperation(
                "the error of randomised responses grows with the number of rows",
                where="between(...)",
                remedy="leave mechanism= out of the histogram",
            )
        if self.nonnegative and bins > 1:
            raise UnsupportedOperation(
                "nonnegative=True turned counts below 0 into 0",
                where="between(...)",
                why="sums of several bins are then too large on average",
                remedy=("leave nonnegative= out of the histogram", "use dp_cdf"),
            )
        if self.rule is not None:
            noises = [law for law in laws if isinstance(law, AdditiveMechanism)]
            return self.rule.range_noise(noises, start, stop).quantile(level)
        if bins == 1:
            return law.quantile(level)
        if bins <= _MOST_ADDED and isinstance(law, IndependentNoise):
            return CombinedNoise(law, (1,) * bins, 1).quantile(level)
        return WeightedNoise(law.variance() * bins, excess_of(law) / bins).quantile(level)


def _found(
    edges: Sequence[Comparable], number: Comparable, given: object, value: Value, where: str
) -> int:
    """The place of a number among edges."""
    places = np.asarray(edges)
    place = int(np.searchsorted(places, number, side="right")) - 1
    if place >= 0 and edges[place] == number:
        return place
    near = [edge_words(edges[i], value) for i in (place, place + 1) if 0 <= i < len(edges)]
    raise InvalidBounds(
        f"{as_given(given)} is not an edge of the release",
        where=where,
        remedy=f"use an edge; next to it {'are' if len(near) > 1 else 'is'} {' and '.join(near)}",
    )
