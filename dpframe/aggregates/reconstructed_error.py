"""Errors of what is rebuilt from noisy sums: distributions, ranges, running totals, ranks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpframe.aggregates.cells import Comparable, Edges, comparable, edge_words
from dpframe.aggregates.error import MOST_CELLS, ErrorRule, MeanError, PartError, VarianceError
from dpframe.aggregates.noise import (
    Drawn,
    JointNoise,
    NoisyTables,
    WeightedNoise,
    excess_of,
    noise_of_numbers,
    reaches_of,
)
from dpframe.aggregates.values import Value, number_of
from dpframe.core.exact import nearest, show_input
from dpframe.core.tree import Forms
from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.mechanisms import (
    AdditiveMechanism,
    CombinedNoise,
    DiscreteLaplace,
    IndependentNoise,
    Mechanism,
)
from dpframe.workloads import (
    Axis,
    MeasuredTables,
    PeriodTree,
    RootPrefixes,
    RunningSums,
    SquareRoot,
    Strategy,
    rounding_variance,
    sum_of_squares,
)

# -- the error of distribution functions that are rebuilt from noisy sums of cells, by edge -------

Floats: TypeAlias = "NDArray[np.float64]"
Noises: TypeAlias = "Sequence[AdditiveMechanism]"
Columns: TypeAlias = tuple[int, ...]

_MOST_EDGES: Final = 10**6
_ROUNDING: Final = 1 / 12
"""The variance of rounding to a whole number."""
_NEXT_TO_NOTHING: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionError:
    """The number of rows up to an edge in a group, perhaps of one of several grouping sets, follows
    from noisy tables of neighbouring cells by weighted least squares. Which edge has the largest
    error depends on its set and place.
    """

    # How many values each column of the grouping sets has; empty without grouping sets.
    sizes: tuple[int, ...] = ()
    sets: tuple[Columns, ...] = ((),)  # The columns of each grouping set that is released
    cells: int  # How many cells a group has
    branching: int  # How many children a node of the tree of cells has
    measured: tuple[Columns, ...] = ()  # For each noisy table its columns, by grouping sets
    # For each the level of its runs of cells; the cells themselves are the last.
    levels: tuple[int, ...]
    # What a sum of each counts: the finest cells that it stands for over the variance of its noise,
    # in proportion.
    weights: tuple[Fraction, ...]
    # How many edges are released; cells after them, one by grouping sets and two at most without,
    # have rows above them, and those without a value.
    shown: int

    FORMS: ClassVar[Forms] = {
        "DistributionError": {"sizes": (), "sets": ((),), "measured": ()},
        "DistributionSetsError": {},
    }

    @classmethod
    def of(cls, strategy: Strategy, shown: int, sets: tuple[Columns, ...] = ((),)) -> Self:
        """The errors of what follows from a strategy, whose last axis has the cells."""
        *columns, axis = strategy.workload.axes
        last = range(len(columns))
        return cls(
            sizes=tuple(column.size for column in columns),
            sets=sets,
            cells=axis.size,
            branching=axis.branching,
            measured=tuple(tuple(i for i in last if p.shape[i] > 1) for p in strategy.parts)
            if columns
            else (),
            levels=tuple(part.levels[-1] for part in strategy.parts),
            weights=strategy.cell_weights,
            shown=shown,
        )

    def __post_init__(self) -> None:
        more = 1 if self.sizes else 2
        if not 1 <= self.shown <= self.cells <= min(_MOST_EDGES, self.shown) + more:
            raise ValueError("the number of edges is out of range")
        if (
            not 2 <= self.branching <= _MOST_EDGES + more
            or not self.sets
            or min(self.sizes, default=1) < 1
        ):
            raise ValueError("a tree of this shape does not exist, or no grouping set")
        tables, known = self.tables, range(len(self.sizes))  # which are checked as well
        if any(i not in known for kept in self.sets for i in kept):
            raise ValueError("a grouping set of a column that is not there")
        if not all(map(tables.tells, self.sets)):
            raise ValueError("a grouping set follows from no noisy table")
        if not self.sizes and list(self.levels) != sorted(self.levels):
            raise ValueError("levels of noisy tables rise")

    @property
    def tables(self) -> MeasuredTables:
        """What is measured."""
        axis = Axis.ordered(self.cells, self.branching)
        measured = self.measured if self.sizes else ((),) * len(self.levels)
        tables = tuple(zip(measured, self.levels, strict=True))
        return MeasuredTables(self.sizes, axis, tables, tuple(map(float, self.weights)))

    @property
    def parts(self) -> int:
        """How many noisy tables there are."""
        return len(self.levels)

    def groups(self, entries: int) -> int:
        """How many groups all sets have together, where the last noisy table has this many
        numbers.
        """
        if not self.sizes:
            return entries // self.cells
        return sum(math.prod(self.sizes[i] for i in kept) for kept in self.sets)

    def reaches(
        self, laws: Noises, level: Fraction | float, kept: Columns = ()
    ) -> NDArray[np.int64]:
        """For each cell how far the number of rows up to its upper edge may be off with that
        probability, in a group of one of the sets. `laws`: the noise of each noisy table. `level`:
        between 0 and 1, exclusive. `kept`: the columns of the set.
        """
        moments = _table_moments(self.tables, kept, *_cumulants(laws))
        return _reaches(*moments, self._rounding(kept), level)

    def range_noise(self, laws: Noises, start: int, stop: int, kept: Columns = ()) -> WeightedNoise:
        """The law of the noise of the cells from `start` to `stop` - 1 together, with what rounding
        to whole numbers adds.
        """
        moments = self.tables.moments_of(kept, start, stop, *_cumulants(laws))
        return _noise_of_range(*moments, self._rounding(kept), start)

    def _rounding(self, kept: Columns) -> float:
        """What rounding adds to a variance at most; sums of integers are whole."""
        if len(self.levels) == 1:
            return 0.0
        return rounding_variance([self.sizes[i] > 1 for i in kept])


@dataclass(frozen=True, slots=True)
class RunError:
    """A number of rows that is the sum of the first cells of a distribution function, or of all of
    them, and follows from the same noisy sums.
    """

    edges: DistributionError  # The error rule of these numbers
    cells: int  # How many of the first cells it is of

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= self.edges.cells or self.edges.sizes:
            raise ValueError("the number of cells is out of range")


@dataclass(frozen=True, slots=True)
class RootError:
    """The number of rows up to an edge follows from noisy sums of the square root factorisation."""

    cells: int  # How many cells there are
    # How many edges are released; the cell after them, if there is one, has rows above them.
    shown: int

    def __post_init__(self) -> None:
        if not 1 <= self.shown <= self.cells <= self.shown + 1:
            raise ValueError("the number of edges is out of range")
        _ = self.root  # is checked as well

    @property
    def root(self) -> RootPrefixes:
        """What is measured."""
        return RootPrefixes(self.cells)

    @property
    def parts(self) -> int:
        """How many noisy vectors there are."""
        return 1

    @property
    def sets(self) -> tuple[Columns, ...]:
        """No grouping sets: one set without columns."""
        return ((),)

    def groups(self, entries: int) -> int:
        """How many groups there are, where the vector has this many numbers."""
        return entries // self.cells

    def reaches(
        self, laws: Noises, level: Fraction | float, kept: Columns = ()
    ) -> NDArray[np.int64]:
        """As `DistributionError.reaches`."""
        (variance,), (fourth,) = _cumulants(laws)
        moments = self.root.power_sums(2) * variance, self.root.power_sums(4) * fourth
        return _reaches(*moments, _ROUNDING, level)

    def range_noise(self, laws: Noises, start: int, stop: int, kept: Columns = ()) -> WeightedNoise:
        """As `DistributionError.range_noise`."""
        (variance,), (fourth,) = _cumulants(laws)
        factors = self.root.factors_of(start, stop)
        spread, around = float((factors**2).sum()) * variance, float((factors**4).sum()) * fourth
        return _noise_of_range(spread, around, _ROUNDING, start)


EdgesError: TypeAlias = DistributionError | RootError
"""The errors of the numbers up to each edge."""
Cumulants: TypeAlias = tuple[float, ...]


def _cumulants(laws: Noises) -> tuple[Cumulants, Cumulants]:
    """Second and fourth cumulants."""
    variances = tuple(law.variance() for law in laws)
    return variances, tuple(excess_of(law) * v**2 for law, v in zip(laws, variances, strict=True))


def _reaches(
    spreads: Floats, fourths: Floats, rounding: float, level: Fraction | float
) -> NDArray[np.int64]:
    """Bounds on errors with these variances and fourth cumulants, to which rounding to a whole
    number adds no more variance than they have.
    """
    rounded = spreads + np.minimum(spreads, rounding)
    excesses = fourths / np.maximum(rounded, _NEXT_TO_NOTHING) ** 2
    return reaches_of(rounded, excesses, float(level))


def _noise_of_range(spread: float, fourth: float, rounding: float, start: int) -> WeightedNoise:
    """The law of the noise of a range, whose ends are both rounded where it starts after 0."""
    total = spread + (1 + (start > 0)) * min(spread, rounding)
    return WeightedNoise(total, fourth / total**2 if total > _NEXT_TO_NOTHING else 0.0)


@lru_cache(maxsize=64)
def _table_moments(
    tables: MeasuredTables, kept: Columns, variances: Cumulants, fourths: Cumulants
) -> tuple[Floats, Floats]:
    return tables.moments(kept, variances, fourths)


# -- numbers of rows between two edges, from what was released: post-processing -------------------

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
        """How many steps end at or before an edge. Raises `InvalidBounds` when it is not an edge;
        the nearest ones are named.
        """

    @abstractmethod
    def value(self, counts: Sequence[int], start: int, stop: int) -> int:
        """The number of rows in the steps from `start` to `stop` - 1. `counts`: what was released
        of a group, in order. `start`, `stop`: which steps.
        """

    @abstractmethod
    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        """What its error keeps within with probability `level`. `laws`: the noise of each noisy
        vector. `start`, `stop`: which steps. `level`: between 0 and 1, exclusive. Raises
        `UnsupportedOperation` when the error is not known.
        """


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeRanges(Ranges):
    """Ranges of a distribution function: rows above the lower edge, up to the upper one."""

    value_of: Value  # The number
    edges: Edges  # The upper edges
    rule: EdgesError  # The errors of the numbers
    # The columns of the grouping set that a group is of; the first set unless given.
    kept: Columns | None = None

    @property
    def words(self) -> str:
        return "above the lower edge, and up to the upper edge"

    def of_set(self, kept: Columns) -> CumulativeRanges:
        return replace(self, kept=kept)

    def place(self, edge: object, where: str) -> int:
        if edge is None:
            return 0
        number = comparable(number_of(edge, self.value_of.domain.dtype, where), self.value_of)
        return 1 + _find_edge(self.edges.numbers, number, edge, self.value_of, where)

    def value(self, counts: Sequence[int], start: int, stop: int) -> int:
        return counts[stop - 1] - (counts[start - 1] if start else 0)

    def error(self, laws: Laws, start: int, stop: int, level: Fraction) -> int:
        noises = [law for law in laws if isinstance(law, AdditiveMechanism)]
        kept = self.rule.sets[0] if self.kept is None else self.kept
        return self.rule.range_noise(noises, start, stop, kept).quantile(level)


@dataclass(frozen=True, slots=True, eq=False)
class BinRanges(Ranges):
    """Ranges of a histogram of bins: rows from the lower edge to below the upper one, or up to it
    where it is the last.
    """

    value_of: Value  # The number
    # Where bins begin and end, in the form that values are compared with.
    edges: Sequence[Comparable]
    nonnegative: bool  # Whether negative counts became 0
    rule: DistributionError | None = None  # The errors of rebuilt counts; None for plain counts

    @property
    def words(self) -> str:
        return "from the lower edge to below the upper edge, and up to it where it is the last"

    def place(self, edge: object, where: str) -> int:
        exact = number_of(edge, self.value_of.domain.dtype, where)
        whole = isinstance(self.edges[0], int) and exact.denominator == 1
        number = int(exact) if whole else nearest(exact)
        return _find_edge(self.edges, number, edge, self.value_of, where)

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


def _find_edge(
    edges: Sequence[Comparable], number: Comparable, given: object, value: Value, where: str
) -> int:
    """The place of a number among edges."""
    places = np.asarray(edges)
    place = int(np.searchsorted(places, number, side="right")) - 1
    if place >= 0 and edges[place] == number:
        return place
    near = [edge_words(edges[i], value) for i in (place, place + 1) if 0 <= i < len(edges)]
    raise InvalidBounds(
        f"{show_input(given)} is not an edge of the release",
        where=where,
        remedy=f"use an edge; next to it {'are' if len(near) > 1 else 'is'} {' and '.join(near)}",
    )


# -- noisy counts of candidates and of runs of them, off which quantiles are read -----------------

Integers: TypeAlias = "NDArray[np.int64]"

_SHARES: Final = tuple(Fraction(n, 20) for n in range(6, 11))
"""Shares of the epsilon for runs."""
_SHARPEST: Final = Fraction(1, 100)
"""Smaller scales are taken for it: next to no noise is left, and floats have its variance."""


@dataclass(frozen=True, slots=True)
class CountedRuns:
    """Counts of cells, and of runs of this many neighbouring cells, each with noise of its own."""

    size: int  # How many cells there are
    width: int  # How many a run has, but for the last one
    share: Fraction  # What runs get of the epsilon; cells get the rest

    def __post_init__(self) -> None:
        if not 1 < self.width < self.size <= self.width**2:
            raise ValueError("runs are a level of a tree of two levels")
        if not 0 < self.share < 1:
            raise ValueError("both levels cost something")

    @property
    def sizes(self) -> Integers:
        """How many cells each run has."""
        full, rest = divmod(self.size, self.width)
        return np.array([self.width] * full + [rest] * (rest > 0), dtype=np.int64)

    @property
    def weights(self) -> Floats:
        """How much of what a run's count differs from the sum of its cells is believed: with s
        cells of variance v and a run of variance u it is s v / (s v + u), and v / u is the square
        of the shares' ratio.
        """
        ratio = float((self.share / (1 - self.share)) ** 2)
        sharper: Floats = self.sizes.astype(np.float64) * ratio
        found: Floats = sharper / (sharper + 1.0)
        return found

    def rebuild(self, runs: Integers, cells: Integers) -> Floats:
        """The counts of cells with the least sum of weighted squared differences from both, of
        shape (groups, cells): what is believed of a difference is spread over the run evenly.
        """
        starts = np.arange(0, self.size, self.width)
        missing = runs - np.add.reduceat(cells, starts, axis=1)
        spread = np.repeat(missing * (self.weights / self.sizes), self.sizes, axis=1)
        found: Floats = cells.astype(np.float64) + spread
        return found

    def squares(self, quantiles: Sequence[Fraction], scale: Fraction) -> float:
        """About the sum of squared errors of ranks, where rows are spread over cells evenly, and a
        quantile may be anywhere in its run.

        Let n cells have variance v, in runs of s, and let w be the weight of the runs. Then the
        error of a rank is that of the cells before it times 1 - q, and of those after it times
        -q. A full run has the variance s v (1 - w): q (1 - q) (n - s) v (1 - w) of these. In the
        run of the quantile j cells are before it: v ((1 - q)**2 j + q**2 (s - j) - w (j - q s)**2
        / s), in the mean over j from 0 to s v (s ((1 - q)**2 + q**2) / 2 - w s (1 / 3 - q +
        q**2)).

        `quantiles`: which are wanted. `scale`: of noise of counts at the whole epsilon.
        """
        s, each = self.width, _variance(scale, 1 - self.share)
        believed = s * each / (s * each + _variance(scale, self.share))
        found = 0.0
        for q in map(float, quantiles):
            found += (1.0 - believed) * q * (1.0 - q) * (self.size - s)
            found += s * ((1.0 - q) ** 2 + q * q) / 2.0
            found -= believed * s * (1.0 / 3.0 - q + q * q)
        return each * found


@lru_cache(maxsize=64)
def best_runs(size: int, quantiles: tuple[Fraction, ...], scale: Fraction) -> CountedRuns | None:
    """The best runs to count in addition to this many cells; None where cells alone have no larger
    errors. `size`: how many cells there are. `quantiles`: which are wanted. `scale`: of noise of
    counts at the whole epsilon.
    """
    narrow = math.isqrt(size - 1) + 1
    widths = range(max(2, narrow), min(2 * narrow, size // 2) + 1)
    ways = [CountedRuns(size, width, share) for width in widths for share in _SHARES]
    if not ways:
        return None
    least, number = min((way.squares(quantiles, scale), n) for n, way in enumerate(ways))
    return ways[number] if least < squares_of_cells(size, quantiles, scale) else None


def squares_of_cells(size: int, quantiles: Sequence[Fraction], scale: Fraction) -> float:
    """The same of cells alone: q (1 - q) of the squared noise of all of them together."""
    spread = sum((q * (1 - q) for q in quantiles), Fraction(0))
    return float(size * spread) * _variance(scale, Fraction(1))


@lru_cache(maxsize=64)
def _variance(scale: Fraction, share: Fraction) -> float:
    """Of whole numbers: to share a large epsilon costs more than the squares of shares say."""
    return DiscreteLaplace(max(scale, _SHARPEST) / share).variance()


# -- the error of ranks that are read off noisy counts of cells and of runs of them ---------------

_STEP: Final = 0.05
_KINDS: Final = 24


@dataclass(frozen=True, slots=True)
class RunRankError:
    """A rank that is read off noisy counts of cells, and of runs of neighbouring ones, that are
    made to rise.

    Let N_i be the noise of the first i cells, as least squares rebuild them. A candidate is taken
    in place of the one with the rank where N_i - q N_k is as large as its rank is off, for some i
    <= k: see `RankError`. The variance and the fourth cumulant of each of these are sums over
    runs and bound how far one of them reaches. The union bound covers all of them together and
    the least and the largest q, between which others are.
    """

    cells: int  # How many there are
    width: int  # How many cells a run has
    share: Fraction  # The share of the epsilon for runs, which determines their weight
    # The least and the largest quantile.
    lowest: Fraction
    highest: Fraction
    # 2 where values between candidates have cells of their own, so that both that are compared may
    # be off; else 1.
    sides: int

    def __post_init__(self) -> None:
        if not 0 <= self.lowest <= self.highest <= 1 or self.sides not in (1, 2):
            raise ValueError("these quantiles do not exist")
        if self.cells > MOST_CELLS:
            raise ValueError("there are more cells than ranks are read off")
        _ = self.counted_runs  # is checked as well

    @property
    def counted_runs(self) -> CountedRuns:
        """What is counted."""
        return CountedRuns(self.cells, self.width, self.share)

    def quantile(self, laws: Sequence[AdditiveMechanism], level: Fraction) -> float:
        """The error in ranks that is kept within with probability `level`; 0 without noise.

        Parameters
        ----------
        laws
            The noise of runs, and the noise of cells.
        level
            Between 0 and 1, exclusive.
        """
        runs, cells = ((law.variance(), excess_of(law)) for law in laws)
        ends = {float(self.lowest), float(self.highest)}
        kinds = [kind for q in ends for kind in _kinds(self.counted_runs, q, runs, cells)]
        return _reach_of_all(kinds, 1.0 - float(level)) * self.sides


def _reach_of_all(kinds: Sequence[tuple[int, WeightedNoise]], miss: float) -> float:
    """What any of many noises exceeds with a probability of no more than `miss`, by the union
    bound; this many are of each kind.
    """

    def chance_beyond(x: float) -> float:
        far = np.array([x])
        return sum(2.0 * count * float(noise.above(far)[0]) for count, noise in kinds)

    if not kinds:
        return 0.0
    low, high = 0.0, math.sqrt(max(noise.spread for _, noise in kinds))
    while chance_beyond(high) > miss:
        low, high = high, 2.0 * high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance_beyond(middle) > miss else (low, middle)
    return high


@lru_cache(maxsize=16)
def _kinds(
    measured: CountedRuns, q: float, runs: tuple[float, float], cells: tuple[float, float]
) -> list[tuple[int, WeightedNoise]]:
    """The noises N_i - q N_k for i <= k in kinds, each with the largest deviation and the largest
    excess of its kind, deviations in steps of a twentieth; those far smaller than the largest are
    of one kind.
    """
    spreads, fourths = _run_moments(measured, q, runs, cells)
    if not spreads.size:
        return []
    excesses = fourths / spreads**2
    steps = np.minimum(np.log(spreads.max() / spreads) / (2.0 * _STEP), _KINDS).astype(np.int64)
    return [
        (int(of.sum()), WeightedNoise(float(spreads[of].max()), float(excesses[of].max())))
        for of in (steps == step for step in np.unique(steps))
    ]


def _run_moments(
    measured: CountedRuns, q: float, runs: tuple[float, float], cells: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The variances and the fourth cumulants of N_i - q N_k for i <= k, where there is noise."""
    starts, stops = np.triu_indices(measured.size + 1)
    found = []
    for power, run, cell in (
        (2, runs[0], cells[0]),
        (4, runs[1] * runs[0] ** 2, cells[1] * cells[0] ** 2),
    ):
        found.append(_cumulant(measured, q, (power, run, cell), (starts, stops)))
    noisy = found[0] > 0.0
    return found[0][noisy], found[1][noisy]


def _cumulant(
    measured: CountedRuns,
    q: float,
    noise: tuple[int, float, float],
    ends: tuple[Integers, Integers],
) -> Floats:
    """The cumulant of N_i - q N_k: cells count 1 - q up to i, -q from there to k, and 0 after k.

    A run's noise counts its weight times the mean that its cells count, and this much less its
    cells.
    """
    power, run, cell = noise
    sizes, weights = measured.sizes, measured.weights

    def of_run(number: Integers, before: Integers, upto: Integers) -> Floats:
        size = sizes[number]
        between = upto - before
        shared = weights[number] * ((1.0 - q) * before - q * between) / size
        inner = before * (1.0 - q - shared) ** power + between * (q + shared) ** power
        return cell * (inner + (size - upto) * shared**power) + run * shared**power

    whole = np.append(
        0.0, np.cumsum(cell * sizes * (1.0 - weights) ** power + run * weights**power)
    )
    (first, before), (last, upto) = (_locate_ends(end, measured) for end in ends)
    apart = last > first
    own = of_run(first, before, np.where(apart, sizes[first], upto))
    other = of_run(last, np.zeros_like(upto), upto)
    middle = q**power * (whole[last] - whole[np.minimum(first + 1, sizes.size)])
    return (1.0 - q) ** power * whole[first] + own + np.where(apart, middle + other, 0.0)


def _locate_ends(ends: Integers, measured: CountedRuns) -> tuple[Integers, Integers]:
    """In which run this many first cells end, and after how many of its own."""
    number = np.minimum(ends // measured.width, measured.sizes.size - 1)
    return number, ends - number * measured.width


# -- the error of running totals, of periods and of windows, in advance ---------------------------

_UP: Final = 1.0 + 1e-9
_SURE: Final = 1.0 - 1e-15
_PARTS: Final = 1 << 10


def running_sums(periods: int, branching: int, levels: int) -> RunningSums:
    """What is drawn of this many periods: sums of a tree, or with no levels those of the root."""
    return PeriodTree(periods, branching, levels) if levels else SquareRoot(periods)


@dataclass(frozen=True, slots=True)
class RunningError:
    """A running total of this many periods follows from noisy sums of them, with public factors.

    For the square root, noises are Gaussian, and so is their sum, except for rounding to whole
    parts: each is a continuous Gaussian of nearly the same variance that was rounded at random
    (`dpframe.accounting.gaussian_noise`). For a tree, totals are sums of this many independent
    noises, whose law is `CombinedNoise`. Totals are rounded to whole steps.
    """

    periods: int  # How many there are
    # The branching of a tree of sums; 0 for the square root.
    branching: int
    levels: int

    def __post_init__(self) -> None:
        _ = self.sums  # is checked as well

    @property
    def sums(self) -> RunningSums:
        """What is drawn."""
        return running_sums(self.periods, self.branching, self.levels)

    def worst(self, law: AdditiveMechanism, level: Fraction) -> int:
        """The bound of the total with the largest error."""
        sums = self.sums
        at = self.periods - 1
        if isinstance(sums, PeriodTree):
            at = max(range(self.periods), key=sums.pieces)
        rounded = Fraction(0) if self.levels else Fraction(1, 2)
        return self.reach(law, sums.total_factors(at), level, rounded)

    def reach(
        self, law: AdditiveMechanism, factors: Floats, level: Fraction, rounded: Fraction
    ) -> int:
        """The least whole number of steps within which a number stays with that probability. `law`:
        the law of the noises. `factors`: by what they are multiplied in it. `level`: between 0 and
        1, exclusive. `rounded`: what rounding adds at most.
        """
        if law.is_exact:
            return 0
        if not self.levels:
            deviation = math.sqrt(sum_of_squares(factors) * law.variance()) * _UP
            sure = min((1.0 + nearest(level)) / 2.0, _SURE)
            return max(0, math.floor(NormalDist().inv_cdf(sure) * deviation + float(rounded)))
        if (factors == 1.0).all():
            return CombinedNoise.of(law, (1,) * len(factors), 1).quantile(level)
        parts = np.ceil(np.abs(factors) * _PARTS).astype(np.int64)
        used = tuple(int(part) for part in parts if part)
        noise = CombinedNoise.of(law, used, _PARTS).quantile(level) if used else 0
        return noise + math.floor(rounded)


# -- the error of results that are rebuilt from several noisy tables, by grouping set -------------

Sets: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class RebuiltError:
    """The result of a group follows from several noisy tables by weighted least squares; which
    one has the largest error depends on the grouping set.
    """

    # How the result's error follows from those of the rebuilt numbers.
    inner: PartError | MeanError | VarianceError
    sizes: tuple[int, ...]  # How many values each column has
    sets: Sets  # The columns of each grouping set that is released
    measured: tuple[Sets, ...]  # For each rebuilt number the columns of each of its noisy tables
    # For each the weights of these, in proportion to one over their variances.
    weights: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        columns = range(len(self.sizes))
        tables = [table for measured in self.measured for table in measured]
        if (
            not self.sets
            or min(self.sizes, default=0) < 1
            or len(self.measured) != self.inner.parts
        ):
            raise ValueError("an error of grouping sets that cannot be")
        if any(i not in columns for table in (*self.sets, *tables) for i in table):
            raise ValueError("a grouping set of a column that is not there")
        if [len(m) for m in self.measured] != [len(w) for w in self.weights] or not all(
            weight > 0 for weights in self.weights for weight in weights
        ):
            raise ValueError("tables without weights")

    @property
    def groups(self) -> int:
        """How many groups all sets have together."""
        return sum(math.prod(self.sizes[i] for i in kept) for kept in self.sets)

    @property
    def entries(self) -> int:
        """How many numbers the first noisy table has, of one group where it is one of cells."""
        return math.prod(self.sizes[i] for i in self.measured[0][0])

    @property
    def table_sizes(self) -> list[int]:
        """How many groups each noisy table has."""
        tables = (table for measured in self.measured for table in measured)
        return [math.prod(self.sizes[i] for i in table) for table in tables]

    @property
    def parts(self) -> int:
        """How many noisy tables there are."""
        return sum(map(len, self.measured))

    def noises(self, drawn: Sequence[Drawn], kept: tuple[int, ...]) -> JointNoise:
        """The law of the rebuilt numbers in a group of one of the sets, each with its step.
        `drawn`: the noise of each noisy table, its step and the number of its draw, in their order.
        `kept`: the columns of the set.
        """
        found, start = list[NoisyTables](), 0
        for measured, weights in zip(self.measured, self.weights, strict=True):
            here = tuple(drawn[start : start + len(measured)])
            start += len(measured)
            found.append(NoisyTables(measured, tuple(map(float, weights)), here))
        return noise_of_numbers(self.sizes, kept, tuple(found))


OutputError: TypeAlias = (
    ErrorRule
    | RunRankError
    | RebuiltError
    | DistributionError
    | RootError
    | RunError
    | RunningError
)
