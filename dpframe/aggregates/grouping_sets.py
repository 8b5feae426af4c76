"""Grouping sets: the margins that are drawn for them, and each set asked as its own query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from dpframe.aggregates.aggregate import BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.error import ErrorRule, PartError
from dpframe.aggregates.margins import (
    Margin,
    SetAxes,
    by_words,
    columns_of,
)
from dpframe.aggregates.measurement import Additive, Measurement, Selection, Table
from dpframe.aggregates.noise import JointNoise
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope, with_places
from dpframe.aggregates.shapes import Shape
from dpframe.aggregates.statistics import GridSum, RowCount, SquareSum, ValueCount
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange
from dpframe.core.tree import Tree
from dpframe.frames.groups import SetGroups
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import SelectionTask
from dpframe.workloads import (
    Axis,
    Degree,
    Factor,
    Part,
    Strategy,
    Wanted,
    Workload,
    tables,
    tables_with_total,
)

# -- which margins of a table to measure for grouping sets, at which shares, and how plans say it -

_ADDITIVE: Final = (RowCount, ValueCount, GridSum, SquareSum)
_BITS: Final = 20
Kept: TypeAlias = tuple[int, ...]


def adds_up(part: Measurement) -> bool:
    """Whether the numbers of a group are the sums of those of smaller groups."""
    if not isinstance(part, Additive) or part.table.cells is not None:
        return False
    return isinstance(part.table.statistic, _ADDITIVE)


def table_wanted(kept: Kept, columns: int, weight: Fraction = Fraction(1)) -> Wanted:
    """The table by some of this many columns."""
    return Wanted(tuple("cells" if i in kept else "total" for i in range(columns)), weight)


@lru_cache(maxsize=64)
def sets_wanted(sizes: tuple[int, ...], sets: tuple[tuple[Kept, Fraction], ...]) -> Workload:
    """The tables of grouping sets, by the numbers of their columns, each with its weight."""
    return Workload(
        tuple(map(Axis.nominal, sizes)),
        tuple(table_wanted(kept, len(sizes), weight) for kept, weight in sets),
    )


def best_margins(
    part: Measurement,
    axes: SetAxes,
    workload: Workload,
    scope: QueryScope,
    degree: Degree,
    has_total: bool = False,
) -> Strategy:
    """What to measure of a part, where each margin needs noise for its own sensitivity; with
    `has_total` the total may be one more number of another margin, where that costs nothing.
    """
    (table,) = part.tables
    unit = _norm(axes.margin(table, axes.everything), scope, degree)
    norms: dict[Part, Fraction] = {}
    for one in _parts(workload):
        norm = _norm(axes.margin_of_part(table, one), scope, degree)
        norms[one] = norm / (unit or 1) or Fraction(1)
    plain = _tables(workload, degree, tuple(norms.items()))
    if not has_total or not _has_free_total(axes.margin(table, axes.everything), scope):
        return plain
    found = _tables_with_total(workload, degree, tuple(norms.items()))
    return found if found is not None and found.objective() < plain.objective() else plain


def _has_free_total(margin: Margin, scope: QueryScope) -> bool:
    """Whether the total of a margin is one number more without further sensitivity."""
    adds = scope.rules.addition(margin.table)
    if not margin.spread(scope).changes or math.prod(margin.sizes) < 2 or adds.lo < 0 < adds.hi:
        return False
    plain, more = margin.sensitivity(scope), replace(margin, has_total=True).sensitivity(scope)
    same = (plain.l1, plain.l2_squared) == (more.l1, more.l2_squared)
    return same and not plain.is_zero


def _norm(margin: Margin, scope: QueryScope, degree: Degree) -> Fraction:
    found = margin.sensitivity(scope)
    return found.l2_squared if degree == 1 else found.l1**2


@lru_cache(maxsize=64)
def _parts(workload: Workload) -> tuple[Part, ...]:
    return tuple(_all_parts(workload))


def _all_parts(workload: Workload) -> Iterator[Part]:
    for levels in workload.subspaces:
        yield Part(tuple(Factor(a, level) for a, level in zip(workload.axes, levels, strict=True)))


@lru_cache(maxsize=64)
def _tables(
    workload: Workload, degree: Degree, norms: tuple[tuple[Part, Fraction], ...]
) -> Strategy:
    return tables(workload, degree, dict(norms).__getitem__)


@lru_cache(maxsize=64)
def _tables_with_total(
    workload: Workload, degree: Degree, norms: tuple[tuple[Part, Fraction], ...]
) -> Strategy | None:
    plain = _tables(workload, degree, norms)
    return tables_with_total(workload, degree, dict(norms).__getitem__, plain)


def margin_words(strategy: Strategy, axes: SetAxes) -> str:
    """What is measured, at which shares, in a plan."""
    parts, shares = strategy.parts, strategy.shares
    if strategy.total_of is not None:
        parts, shares = parts[:-1], shares[:-1]
    kind, total = "rho" if strategy.degree == 1 else "epsilon", sum(shares, Fraction(0))
    found: dict[str, Fraction] = {}
    for part, share in zip(parts, shares, strict=True):
        what = _part_words(part, axes, parts)
        found[what] = found.get(what, Fraction(0)) + share / total
    shown = [f"{what} ({float(100 * share):.0f}% of the {kind})" for what, share in found.items()]
    if strategy.total_of is not None:
        shown[0] += " with its total, which costs nothing, as no row that changes moves it further"
    return f"{len(parts)} noisy table{'s' * (len(parts) > 1)}: {', '.join(shown)}"


def _part_words(part: Part, axes: SetAxes, parts: Sequence[Part]) -> str:
    """By which columns a noisy table is, in a plan, with the runs of all that are by the same."""
    if not part.factors[-1].axis.is_ordered:
        return by_words(tuple(axes.names[i] for i in columns_of(part)))
    columns = part.levels[:-1]
    names = tuple(axes.names[i] for i in columns_of(part) if i < len(columns))
    return f"{by_words(names)} in {_run_words([p for p in parts if p.levels[:-1] == columns])}"


def _run_words(parts: Sequence[Part]) -> str:
    """How many steps are summed up, in tables of the same columns."""
    last = [part.factors[-1] for part in parts]
    widths = [str(w) for w in sorted(min(f.axis.width(f.level), f.axis.size) for f in last)]
    listed = " and ".join(filter(None, (", ".join(widths[:-1]), widths[-1])))
    return f"runs of {listed} step{'s' * (widths != ['1'])}"


# -- aggregates by grouping sets with one table each, because their results do not add up ---------


@dataclass(frozen=True, slots=True)
class AdditiveOfSet(Additive):
    """The vector of an aggregate by one of several grouping sets, with noise of its own.

    Guarantee
    ---------
    The sensitivities of the same vector in a query by the columns of this set alone.

    Proof
    -----
    It is that vector: its table is computed by the columns of the set from the same rows, with the
    keys that these have in the grouping sets. What the sets cost adds up.
    """

    by: tuple[str, ...]  # The names of the set's columns

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return Additive(self.table).spread(scope_of(self.table, scope))

    def entries(self, scope: QueryScope) -> int:
        return Additive(self.table).entries(scope_of(self.table, scope))

    def shape(self, groups: int, scope: QueryScope) -> tuple[int, int]:
        return self.entries(scope), 1

    def words(self) -> str:
        return f"{self.table.words()}, {by_words(self.by)}"


@dataclass(frozen=True, slots=True)
class SelectionOfSet(Selection):
    """The private choices of an aggregate by one of several grouping sets.

    Guarantee
    ---------
    What the same choices have in a query by the columns of this set alone.

    Proof
    -----
    They are these: scores are computed by the columns of the set from the same rows, with the keys
    that these have in the grouping sets. What the sets cost adds up.
    """

    choice: Selection  # The choices
    kept: tuple[int, ...]  # The columns of the set, by their numbers
    by: tuple[str, ...]  # Their names

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(replace(table, kept=self.kept) for table in self.choice.tables)

    @property
    def step(self) -> Fraction:
        return self.choice.step

    @property
    def candidates(self) -> int:
        return self.choice.candidates

    @property
    def has_weights(self) -> bool:
        return self.choice.has_weights

    @property
    def rounds(self) -> int:
        return self.choice.rounds

    @property
    def picks(self) -> int:
        return self.choice.picks

    @property
    def first(self) -> Selection:
        return replace(self, choice=self.choice.first)

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return self.choice.spread(self._scope(scope))

    def node(self, scope: QueryScope) -> kernel.What:
        mine = self._scope(scope)
        node, pairs = self.choice.node(mine), zip(self.choice.tables, self.tables, strict=True)
        return with_places(node, {mine.rules.place(a): scope.rules.place(b) for a, b in pairs})

    def sensitivity(self, scope: QueryScope) -> ExactSensitivity:
        return self.choice.sensitivity(self._scope(scope))

    def score_range(self, scope: QueryScope) -> ScoreRange:
        return self.choice.score_range(self._scope(scope))

    def entries(self, scope: QueryScope) -> int:
        return self.choice.entries(self._scope(scope))

    def task(
        self, name: str, sensitivity: ExactSensitivity, mechanism: str, scope: QueryScope
    ) -> SelectionTask:
        return self.choice.task(name, sensitivity, mechanism, self._scope(scope))

    def words(self) -> str:
        return f"{self.choice.words()}, {by_words(self.by)}"

    def _scope(self, scope: QueryScope) -> QueryScope:
        return scope_of(self.tables[0], scope)


def scope_of(table: Table, scope: QueryScope) -> QueryScope:
    """The rows by the columns of a table's own set."""
    assert isinstance(scope.groups, SetGroups)
    assert table.kept is not None
    return replace(scope, groups=scope.groups.margin(table.kept))


@dataclass(frozen=True, slots=True, eq=False)
class OwnSets(BoundAggregate):
    """An aggregate by several grouping sets, each with its own table."""

    inner: tuple[BoundAggregate, ...]  # The aggregate by the columns of each set

    @property
    def shape(self) -> Shape:
        return self.inner[0].shape

    @property
    def clamps(self) -> tuple[Clamp, ...]:
        return self.inner[0].clamps

    @property
    def note(self) -> str:
        own = self.inner[0].note
        return f"{own}; {_APART}" if own else _APART

    @property
    def error(self) -> ErrorRule:
        return PartError()

    def combine(self, values: Sequence[Noisy]) -> pl.Series:
        return pl.concat([inner.combine(own) for inner, own in self._of_each(values)])

    def interval(
        self, values: Sequence[Noisy], noise: JointNoise, level: Fraction
    ) -> tuple[pl.Series, pl.Series] | None:
        lows, highs, start = list[pl.Series](), list[pl.Series](), 0
        for inner, own in self._of_each(values):
            law = noise.of(tuple(range(start, start + len(own))))
            start += len(own)
            ends = inner.interval(own, law, level)
            if ends is None:
                return None
            lows.append(ends[0])
            highs.append(ends[1])
        return pl.concat(lows), pl.concat(highs)

    def _of_each(self, values: Sequence[Noisy]) -> list[tuple[BoundAggregate, Sequence[Noisy]]]:
        """Each set's aggregate, and its noisy numbers."""
        ends = np.cumsum([len(inner.uses) for inner in self.inner]).tolist()
        return [
            (inner, values[end - len(inner.uses) : end])
            for inner, end in zip(self.inner, ends, strict=True)
        ]

    def plain(self, column: pl.Expr | None) -> tuple[pl.Expr, ...]:
        return self.inner[0].plain(column)

    @property
    def plain_tree(self) -> Tree | None:
        return self.inner[0].plain_tree

    @property
    def is_of_totals(self) -> bool:
        return self.inner[0].is_of_totals

    def of_plain(self, numbers: Sequence[pl.Series]) -> pl.Series:
        return self.inner[0].of_plain(numbers)


_APART = (
    "each grouping set is a table of its own with its share of the cost, of all rows with listed "
    "values of its columns, so results of different sets need not agree"
)


def by_own_sets(aggregate: BoundAggregate, scope: QueryScope) -> OwnSets | None:
    """The same aggregate with a table of its own for each grouping set; None for one that cannot be
    had so. Raises `UnboundedSensitivity` when nothing limits how far one individual moves the table
    of a set.
    """
    groups = scope.groups
    assert isinstance(groups, SetGroups)
    if scope.norm is not None:
        return None
    by_set, uses = list[BoundAggregate](), list[MeasurementUse]()
    for kept in groups.sets:
        inner = bind(aggregate.request, replace(scope, groups=groups.margin(kept)))
        parts = [_of_set(use.part, kept, groups) for use in inner.uses]
        if not isinstance(inner.error, PartError) or inner.shape.chooses_groups:
            return None
        for use, part in zip(inner.uses, parts, strict=True):
            if part is None:
                return None
            uses.append(replace(use, part=part))
        by_set.append(inner)
    return OwnSets(aggregate.request, tuple(uses), tuple(by_set))


def _of_set(part: Measurement, kept: tuple[int, ...], groups: SetGroups) -> Measurement | None:
    """A part by one of the sets; None for one that is no vector with noise, and no choice."""
    by = tuple(groups.names[i] for i in kept)
    if type(part) is Additive:
        return AdditiveOfSet(replace(part.table, kept=kept), by)
    return SelectionOfSet(part, kept, by) if isinstance(part, Selection) else None
