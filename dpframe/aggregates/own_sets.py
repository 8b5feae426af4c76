"""Aggregates by grouping sets with one table each, because their results do not add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import polars as pl

from dpframe.aggregates.bound import BoundAggregate, Clamp, MeasurementUse, Noisy
from dpframe.aggregates.error_rules import ErrorRule, PartError
from dpframe.aggregates.joint_noise import JointNoise
from dpframe.aggregates.margins import by_words
from dpframe.aggregates.measurement import Additive, Measurement, Selection, Table
from dpframe.aggregates.registry import bind
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.rules import with_places
from dpframe.aggregates.shapes import Shape
from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import ExactSensitivity
from dpframe.core.tree import Tree
from dpframe.frames.grouping_sets import SetGroups
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import SelectionTask

__all__ = ["AdditiveOfSet", "OwnSets", "SelectionOfSet", "in_own_sets"]


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

    Parameters
    ----------
    by
        The names of the set's columns.
    """

    by: tuple[str, ...]

    def spread(self, scope: QueryScope) -> ContributionBounds:
        return Additive(self.table).spread(scope_of(self.table, scope))

    def entries(self, scope: QueryScope) -> int:
        return Additive(self.table).entries(scope_of(self.table, scope))

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

    Parameters
    ----------
    choice
        The choices.
    kept
        The columns of the set, by their numbers.
    by
        Their names.
    """

    choice: Selection
    kept: tuple[int, ...]
    by: tuple[str, ...]

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
    def weighted(self) -> bool:
        return self.choice.weighted

    @property
    def rounds(self) -> int:
        return self.choice.rounds

    @property
    def chosen(self) -> int:
        return self.choice.chosen

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
    """An aggregate by several grouping sets, each with its own table.

    Parameters
    ----------
    inner
        The aggregate by the columns of each set.
    """

    inner: tuple[BoundAggregate, ...]

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


def in_own_sets(aggregate: BoundAggregate, scope: QueryScope) -> OwnSets | None:
    """The same aggregate with a table of its own for each grouping set; None for one that cannot be
    had so.

    Raises
    ------
    UnboundedSensitivity
        When nothing limits how far one individual moves the table of a set.
    """
    groups = scope.groups
    assert isinstance(groups, SetGroups)
    if scope.norm is not None:
        return None
    made, uses = list[BoundAggregate](), list[MeasurementUse]()
    for kept in groups.sets:
        inner = bind(aggregate.request, replace(scope, groups=groups.margin(kept)))
        parts = [_of_set(use.part, kept, groups) for use in inner.uses]
        if not isinstance(inner.error, PartError) or inner.shape.chooses_groups:
            return None
        for use, part in zip(inner.uses, parts, strict=True):
            if part is None:
                return None
            uses.append(replace(use, part=part))
        made.append(inner)
    return OwnSets(aggregate.request, tuple(uses), tuple(made))


def _of_set(part: Measurement, kept: tuple[int, ...], groups: SetGroups) -> Measurement | None:
    """A part by one of the sets; None for one that is no vector with noise, and no choice."""
    by = tuple(groups.names[i] for i in kept)
    if type(part) is Additive:
        return AdditiveOfSet(replace(part.table, kept=kept), by)
    return SelectionOfSet(part, kept, by) if isinstance(part, Selection) else None
