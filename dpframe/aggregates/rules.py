"""How far one individual moves what may be drawn of a query, by the kernel's rules.

The planner has no rules of its own: it calls those by which the kernel verifies its plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, Protocol

from dpframe.core.contribution_bounds import ContributionBounds
from dpframe.core.score_range import ScoreRange
from dpframe.core.sensitivity import NO_SENSITIVITY, ExactSensitivity
from dpframe.errors import Unsound
from dpframe.frames.contributions import spread_of
from dpframe.frames.facts import FrameFacts
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups
from dpframe.frames.nodes import keys_of
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import Facts
from dpframe.kernel.moves import Addition, addition_of, norms_of, ranges_of

__all__ = ["Rules", "with_places"]

_ROW = kernel.Lit("Int64", "0", None)
"""Stands for an expression of each row."""


class _Statistic(Protocol):
    of_individuals: ClassVar[bool]

    def adds(self, facts: FrameFacts) -> kernel.Adds: ...


class _Cells(Protocol):
    @property
    def node(self) -> kernel.Cells: ...


class Table(Protocol):
    """What the kernel needs of an exact table; see `dpframe.aggregates.measurement.Table`."""

    @property
    def statistic(self) -> _Statistic: ...

    @property
    def cells(self) -> _Cells | None: ...

    @property
    def kept(self) -> tuple[int, ...] | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """The kernel's rules for tables of one frame by some groups.

    Parameters
    ----------
    facts, groups
        The frame and the groups.
    """

    facts: FrameFacts
    groups: Groups | None
    tables: dict[Table, int] = field(default_factory=dict)
    """The places of tables."""
    nodes: list[kernel.Table] = field(default_factory=list)
    """These tables as the kernel has them, of frame 0."""
    keys: dict[tuple[int, ...] | None, kernel.Keys | None] = field(default_factory=dict)
    """The keys of tables, by the columns that they keep."""
    reach: list[Facts] = field(default_factory=list)
    """The facts of the frame in the kernel; empty until they are needed."""
    bounds: list[ContributionBounds] = field(default_factory=list)
    """How rows may lie among the groups; empty until it is needed."""
    norms: dict[object, ExactSensitivity] = field(default_factory=dict)
    ranges: dict[object, ScoreRange] = field(default_factory=dict)
    """What is known already, by what it is of."""

    @property
    def spread(self) -> ContributionBounds:
        """How the rows of one individual may lie among the groups, where limits say so."""
        if not self.bounds:
            self.bounds.append(spread_of(self.facts, self.groups))
        return self.bounds[0]

    def place(self, table: Table) -> int:
        """The place of a table."""
        place = self.tables.get(table)
        if place is None:
            cells = None if table.cells is None else table.cells.node
            adds = table.statistic.adds(self.facts)
            place = self.add(kernel.Table(0, self._keys(table.kept), cells, adds))
            self.tables[table] = place
        return place

    def add(self, node: kernel.Table) -> int:
        """The place of a table that the kernel has."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _keys(self, kept: tuple[int, ...] | None) -> kernel.Keys | None:
        if self.groups is None:
            return None
        if kept not in self.keys:
            groups: Groups | None = self.groups
            if kept is not None:
                assert isinstance(groups, SetGroups)
                groups = groups.margin(kept)
            self.keys[kept] = None if groups is None else keys_of(groups, digest="")
        return self.keys[kept]

    def sensitivity(self, what: object, node: Callable[[], kernel.What]) -> ExactSensitivity:
        """How far one individual moves the numbers of a node, in steps; computed once for each
        `what`.
        """
        found = self.norms.get(what)
        if found is None:
            found = self.norms[what] = self._norms(node())
        return found

    def _norms(self, node: kernel.What) -> ExactSensitivity:
        assert isinstance(node, kernel.Vector | kernel.Running | kernel.Nights | kernel.Rank)
        with _no_rule():
            norms = norms_of(self._plan, self._reach, node)
        if not norms.l1:
            return NO_SENSITIVITY
        of_one = Fraction(norms.l1), Fraction(norms.l2_squared), Fraction(norms.linf)
        return ExactSensitivity(max(1, norms.l0), *of_one)

    def score_range(self, what: object, node: Callable[[], kernel.What]) -> ScoreRange:
        """How far one individual moves scores of a choice against each other; also once."""
        found = self.ranges.get(what)
        if found is None:
            choice = node()
            assert isinstance(choice, kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels)
            with _no_rule():
                ranges = ranges_of(self._plan, self._reach, choice)
            found = self.ranges[what] = ScoreRange(ranges.l1, ranges.squares, ranges.linf)
        return found

    def of_scores(self, of: Table, low: int, high: int, choices: int = 1) -> ExactSensitivity:
        """How far one individual moves the score of one candidate in each group, or in each of
        several choices of a group, where a row adds between `low` and `high`.
        """
        node, grid = self.nodes[self.place(of)], kernel.Grid(Fraction(1), Fraction(0), low, high)
        each = kernel.Placed(_ROW, grid)
        adds = kernel.PersonTotal(each) if of.statistic.of_individuals else each
        several = choices > 1 and not of.statistic.of_individuals
        cells = kernel.Points(_ROW, Fraction(0), Fraction(1), choices) if several else None
        place = self.add(kernel.Table(0, node.keys, cells, adds))
        return self._norms(kernel.Vector((place,), ((1,),), self.columns(of.kept), 1, total=False))

    def columns(self, kept: tuple[int, ...] | None) -> tuple[int, ...]:
        """All key columns of a table, by their numbers."""
        if kept is not None:
            return tuple(range(len(kept)))
        return tuple(range(0 if self.groups is None else len(self.groups.by)))

    def addition(self, table: Table) -> Addition:
        """What a row, or an individual in a group, adds to a table."""
        place = self.place(table)
        return addition_of(self.nodes[place], place)

    @property
    def _reach(self) -> list[Facts]:
        if not self.reach:
            self.reach.append(self.facts.reach)
        return self.reach

    @property
    def _plan(self) -> kernel.Plan:
        neighbours, nothing = self.facts.unit.adjacency, Fraction(0)
        lists = (), tuple(self.nodes), ()
        return kernel.Plan(neighbours, *lists, "epsilon", nothing, nothing, ())


@contextmanager
def _no_rule() -> Iterator[None]:
    """Say that the kernel has no rule for what the planner asks, which it never should."""
    try:
        yield
    except kernel.Refused as refused:
        raise Unsound(
            f"the kernel has no sensitivity for the query: {refused}",
            remedy="report this as an error of dpframe, with the query; nothing was charged",
        ) from None


def with_places(what: kernel.What, places: Mapping[int, int]) -> kernel.What:
    """What is drawn, with other places of its tables."""
    if isinstance(what, kernel.Vector | kernel.Choice):
        return replace(what, tables=tuple(places[place] for place in what.tables))
    return replace(what, table=places[what.table])
