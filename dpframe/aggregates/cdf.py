"""Distribution functions: counts up to each edge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.aggregates.aggregate import (
    Aggregate,
    BoundAggregate,
    Clamp,
    Laws,
    MeasurementUse,
    Noisy,
    variance_of,
)
from dpframe.aggregates.cells import UpToCells, edge_words, equal_edges, read_edges
from dpframe.aggregates.count import UNBIASED
from dpframe.aggregates.margins import (
    Margin,
    RootSums,
    best_levels,
    level_margins,
    strategy_words,
    uses_of,
)
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.noise import Independent, JointNoise
from dpframe.aggregates.reconstructed_error import (
    CumulativeRanges,
    DistributionError,
    EdgesError,
    RootError,
)
from dpframe.aggregates.request import GivenBounds, QueryScope, Request
from dpframe.aggregates.shapes import Cumulative, Shape
from dpframe.aggregates.statistics import RowCount
from dpframe.aggregates.values import numeric_value
from dpframe.core.exact import dyadic_down, show_input
from dpframe.errors import InvalidBounds
from dpframe.mechanisms import AdditiveMechanism
from dpframe.rows.fold import words
from dpframe.workloads import (
    MOST_ROOT_CELLS,
    Degree,
    Estimate,
    RootPrefixes,
    Strategy,
    WholeTables,
)

# -- numbers that rise, next to numbers that need not ---------------------------------------------

Floats: TypeAlias = "NDArray[np.float64]"


def nondecreasing(values: Floats) -> Floats:
    """The nondecreasing rows with the least sum of squared distances from the rows that are given
    (pool adjacent violators; Ayer, Brunk, Ewing, Reid and Silverman 1955).
    """
    result = np.empty_like(values)
    for row, line in zip(values, result, strict=True):
        means: list[float] = []
        sizes: list[int] = []
        for value in row.tolist():
            mean, size = value, 1
            while means and means[-1] > mean:
                mean = (mean * size + means[-1] * sizes[-1]) / (size + sizes[-1])
                size += sizes.pop()
                means.pop()
            means.append(mean)
            sizes.append(size)
        line[:] = np.repeat(means, sizes)
    return result


# -- distribution functions: how many rows have a value up to each of some edges ------------------

_BITS = 20
_MOST_WORK = 10**10
"""Groups times the square of cells, up to which the square root is a matter of seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundDistribution(BoundAggregate):
    """Noisy numbers of rows up to each edge."""

    cells: UpToCells  # The steps between edges
    listed: pl.DataFrame  # The edges as a public column, with a row each
    nonnegative: bool  # Whether numbers are made to rise from 0
    bounds: tuple[Fraction, Fraction] | None  # What values are clamped to, if anything
    of_all: Fraction  # See `best_levels`
    degree: Degree  # Whether a rho is shared (1) or an epsilon (2)
    has_free_total: bool = False  # See `best_levels`
    # The squared L2 norm of the sums of the square root factorisation, relative to the squared norm
    # of noisy cells; None where these sums are not drawn.
    root_norm: Fraction | None = None

    def by(self, degree: Degree) -> BoundDistribution:
        """The same where a rho is shared (1) or an epsilon (2)."""
        made = replace(self, degree=degree)
        if made.is_root:
            part = RootSums(Table(RowCount(), self.cells))
            impact = dyadic_down(Fraction(made.root_error), _BITS)
            return replace(made, uses=(MeasurementUse(part, "cdf", impact),))
        return replace(made, uses=_uses(self.cells, made.strategy))

    @property
    def is_root(self) -> bool:
        """Whether the square root factorisation is measured: where a rho is shared, and its
        numbers have smaller errors than those of a tree.
        """
        return self.gain is not None and self.gain > 1.0

    @property
    def gain(self) -> float | None:
        """By what factor the square root factorisation reduces errors compared with the best
        tree; None where it is not tried.
        """
        if self.degree == 2 or self.root_norm is None:
            return None
        return math.sqrt(_tree_error(self.strategy) / self.root_error)

    @property
    def root_error(self) -> float:
        """The mean squared error of its numbers by the square root factorisation, relative to that
        of noise of a cell.
        """
        assert self.root_norm is not None
        return float(self.root_norm) * _mean_of_root(self.cells.size)

    @property
    def strategy(self) -> Strategy:
        """What is measured."""
        return best_levels(self.cells.size, self.degree, self.of_all, self.has_free_total)

    @property
    def shape(self) -> Shape:
        return Cumulative(self.listed, self.cells.above)

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return () if self.bounds is None else (Clamp(self.cells.value.tree, self.bounds),)

    @property
    def note(self) -> str:
        return f"{self.sign}; {self._measurement_words}"

    @property
    def _measurement_words(self) -> str:
        """What is measured, and why."""
        gain, tree = self.gain, strategy_words(self.strategy)
        if gain is None:
            return tree
        if gain > 1.0:
            return (
                "rebuilt from noisy sums of each of its steps and those before it (square root "
                f"factorisation), {gain:.3g} times less expected error than by sums of neighbours"
            )
        return (
            f"{tree}; {1 / gain:.3g} times less expected error than by the square root "
            "factorisation"
        )

    @property
    def sign(self) -> str:
        """The note of a plan on numbers below 0, and on numbers that fall."""
        if self.nonnegative:
            return "the nearest numbers from 0 that never fall, which biases small ones"
        return f"{UNBIASED}noise may make numbers negative, or fall"

    @property
    def error(self) -> EdgesError:
        if self.is_root:
            return RootError(self.cells.size, self.cells.edges.size)
        return DistributionError.of(self.strategy, self.cells.edges.size)

    @property
    def ranges(self) -> CumulativeRanges:
        return CumulativeRanges(self.cells.value, self.cells.edges, self.error)

    def edge_words(self, number: int) -> str:
        """An edge as people write it."""
        return edge_words(self.cells.edges.numbers[number], self.cells.value)

    def squared_error(self, scope: QueryScope, laws: Laws) -> float:
        """The mean squared error of its numbers, in proportion to what it would be if they were
        added up from noisy cells.
        """
        variances = [variance_of(laws, key) for key in self.keys]
        if self.is_root:
            (variance,) = variances
            return variance * _mean_of_root(self.cells.size) / 2**32 / float(_flat(self.strategy))
        return self.strategy.objective(variances)

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return self.column_of(self._rebuild(values))

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        assert isinstance(noise, Independent)
        laws = [law for law, _ in noise.parts if isinstance(law, AdditiveMechanism)]
        found, reach = self._rebuild(values), self.error.reaches(laws, level)
        return self.column_of(found - reach), self.column_of(found + reach)

    def _rebuild(self, values: Sequence[Noisy]) -> NDArray[np.int64]:
        """The number of rows up to each edge, of shape (groups, cells)."""
        if self.is_root:
            return RootPrefixes(self.cells.size).prefixes(values[0])
        lines = [np.ascontiguousarray(numbers.T) for numbers in values]
        estimate = Estimate(self.strategy, lines, lines=lines[0].shape[1])
        return WholeTables(estimate).cells((True,), (True,)).T

    def column_of(self, counts: NDArray[np.int64]) -> pl.Series:
        """The result from the number of rows up to each edge, of shape (groups, cells)."""
        if self.nonnegative:
            risen = np.maximum(nondecreasing(counts.astype(np.float64)), 0.0)
            counts = np.rint(risen).astype(np.int64)
        return pl.Series(self.name, counts.reshape(-1), dtype=pl.Int64)


@dataclass(frozen=True, slots=True, eq=False)
class DistributionFunction(Aggregate):
    """How many rows have a value up to each of some edges, which are included.

    The result has one row per edge: the edge in a column of the expression's name, and `count`,
    the number of rows with this value or a smaller one. `share` is its share of all rows with a
    value in the same release, between 0 and 1; null if none exist. Null and NaN are no values.
    With listed edges, rows above the last one are in the total alone; a number of bins divides
    the bounds, values are clamped to these, and the last row has all.

    Guarantee
    ---------
    The release consists of sums over runs of neighbouring steps between edges, each level of runs
    with its own noise. A row lies in at most one run of one group, so each level has the
    sensitivities of a histogram: add-remove L1 = L2 = Linf = k for k rows per individual,
    change-one L1 = 2k, L2 = sqrt(2) k, Linf = k. What the levels cost adds up. Where a rho is
    spent and it has a smaller error, one vector is released instead: sums of all steps so far
    with falling factors, whose sensitivities are those of `RootSums`.

    Proof
    -----
    Runs of a level are disjoint sets of rows: the rule for sums with b = 1. Numbers at edges follow
    from the noisy sums by least squares with public weights, which is post-processing. What takes
    many steps takes few runs, so less noise adds up (Hay, Rastogi, Miklau and Suciu 2010; Qardaji,
    Yang and Li 2013, on how many children a node should have).
    """

    bins: Any = None
    bounds: GivenBounds = None
    nonnegative: bool = False

    kind: ClassVar[str] = "cdf"
    positional: ClassVar[tuple[str, ...]] = ("bins",)
    summary: ClassVar[str] = "rows up to each edge, and their share"
    examples: ClassVar[tuple[str, ...]] = (
        'pl.col("i64").dp_cdf([-1, 0, 1, 7, 100])',
        'pl.col("f64").dp_cdf([-1.0, 0.0, 0.1, 5.0], nonnegative=True)',
        'pl.col("f64").dp_cdf(70, bounds=(-3, 3))',
        'pl.col("dec").dp_cdf([0, 1.5])',
        'pl.col("f32").dp_cdf(1, bounds=(0, 1))',
    )

    def bind(self, request: Request, scope: QueryScope) -> BoundDistribution:
        assert request.tree is not None
        value = numeric_value(request.tree, scope.facts.columns, "cdf")
        where, bins = f"{words(request.tree)}.dp_cdf(...)", self.bins
        bounds: tuple[Fraction, Fraction] | None = None
        if bins is None or (isinstance(bins, int) and not isinstance(bins, bool)):
            edges, shown, bounds = equal_edges(
                10 if bins is None else bins, self.bounds, value, where
            )
        else:
            edges, shown = read_edges(_list_of(bins, self.bounds, where), value, where)
        cells = UpToCells(value, edges, above=bounds is None)
        listed = pl.DataFrame([shown.alias(request.name)])
        of_all = _of_all(cells, scope)
        is_free = scope.spread.changes and scope.entries in (None, 1)
        uses = _uses(cells, best_levels(cells.size, 2, of_all, is_free))
        about = cells, listed, self.nonnegative, bounds, of_all
        norm = _root_norm(cells, request, scope)
        return BoundDistribution(request, uses, *about, 2, is_free, norm)


def _list_of(bins: object, bounds: object, where: str) -> Iterable[Any]:
    """Edges that are listed."""
    if isinstance(bins, (str, bool)) or not isinstance(bins, Iterable):
        raise InvalidBounds(
            f"bins must be a number or a list, not {show_input(bins)}",
            where=where,
            remedy=(
                "write for example bins=[10, 20]",
                "write bins=10 where the bounds of the column are known",
            ),
        )
    if bounds is not None:
        raise InvalidBounds(
            "bounds= says where equal bins begin and end, and these bins are listed",
            where=where,
            remedy=("leave bounds= out", "give a number of bins"),
        )
    return bins


def _of_all(cells: UpToCells, scope: QueryScope) -> Fraction:
    """How much less noise the sum of all cells needs, squared: rows that change stay in it."""
    table = Table(RowCount(), cells)
    whole = Margin(table, branching=max(2, cells.size)).sensitivity(scope)
    level = int(cells.size > 1)
    steps = Margin(table, branching=max(2, cells.size), level=level).sensitivity(scope)
    return (whole.l1 / steps.l1) ** 2 if steps.l1 else Fraction(1)


def _root_norm(cells: UpToCells, request: Request, scope: QueryScope) -> Fraction | None:
    """How much more noise the sums of the square root factorisation need than cells do, squared.
    None where they are not drawn: other than Gaussian noise is requested, individuals are
    weighted, there is nothing to add up, or the computation takes too long.
    """
    groups = 1 if scope.entries is None else scope.entries
    if request.mechanism not in ("auto", "discrete_gaussian") or scope.norm is not None:
        return None
    if not 2 <= cells.size <= MOST_ROOT_CELLS or groups * cells.size**2 > _MOST_WORK:
        return None
    table = Table(RowCount(), cells)
    steps = Margin(table, branching=cells.size, level=1).sensitivity(scope)
    if scope.parts != 1 or steps.is_zero:
        return None
    root = RootSums(table)
    return root.sensitivity(scope).l2_squared * root.step**2 / steps.l2_squared


@lru_cache(maxsize=64)
def _mean_of_root(cells: int) -> float:
    """The mean over prefixes of the variance where sums have noise of the variance of a unit."""
    root = RootPrefixes(cells)
    return float(root.power_sums(2).mean()) * root.unit**2


@lru_cache(maxsize=64)
def _tree_error(strategy: Strategy) -> float:
    """The mean squared error of the numbers, relative to that of noise of a cell."""
    variances = strategy.unit_variances
    tables = DistributionError.of(strategy, strategy.workload.axes[0].size).tables
    spreads, _ = tables.moments((), variances, (0.0,) * len(variances))
    return float(spreads.mean())


def _flat(strategy: Strategy) -> Fraction:
    """The mean squared error of numbers that are added up from noisy cells."""
    return strategy.workload.flat(strategy.workload.tables[0])


def _uses(cells: UpToCells, strategy: Strategy) -> tuple[MeasurementUse, ...]:
    """The levels, with what makes the shares of a plan's cost those of the strategy."""
    table = Table(RowCount(), cells)
    return tuple(uses_of(strategy, level_margins(table, strategy), "cdf", _flat(strategy)))
