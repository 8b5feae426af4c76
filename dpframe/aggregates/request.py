"""What an analyst asks for, the scope where it is computed, and how far one individual moves it."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from dpframe.core.interval import RESOLUTION_BITS
from dpframe.core.sensitivity import ContributionBounds, ExactSensitivity, ScoreRange
from dpframe.core.tree import Tree
from dpframe.core.units import WEIGHT_BITS
from dpframe.errors import Unsound
from dpframe.frames.contributions import spread_of, unlimited_refusal
from dpframe.frames.facts import FrameFacts
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.nodes import keys_of
from dpframe.kernel import plan as kernel
from dpframe.kernel.frame import PARTS, Facts
from dpframe.kernel.moves import Addition, addition_of, norms_of, ranges_of

# -- how far one individual moves what may be drawn of a query, by the kernel's rules -------------
# The planner has no rules of its own: it calls those by which the kernel verifies its plans.

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
    """The kernel's rules for tables of one frame by some groups."""

    # The frame and the groups.
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
            return ExactSensitivity.of(norms_of(self._plan, self._reach, node))

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


# -- what an analyst asks for: one dp aggregate, read and resolved against a frame's columns ------

GivenBounds: TypeAlias = "tuple[Any, ...] | None"
"""Bounds as they were given, not checked yet; None where they were left out."""
Per: TypeAlias = "Literal['unit'] | None"
"""Whether totals of individuals are aggregated; None for rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked(ABC):
    """An aggregate with all arguments except its column: the fields of its class."""

    kind: ClassVar[str]
    """The aggregate's name: ``"count"``, ``"sum"``, ..."""
    positional: ClassVar[tuple[str, ...]] = ()
    """The fields that are written without their names."""

    @property
    def method(self) -> str:
        """What it was written as, after ``dp_``."""
        return self.kind

    @property
    def name_without_column(self) -> str | None:
        """What its output is called where it has no column; None where it needs one."""
        return None

    @property
    def counts_missing(self) -> bool:
        """Whether a row without a value counts for something all the same."""
        return False

    def arguments(self) -> dict[str, Any]:
        """The arguments, by name, in the order in which plans show them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One dp aggregate of one expression."""

    aggregate: Asked  # Which one, with its bounds, q, bins, candidates, k,
    name: str  # The output column it is first used in
    tree: Tree | None  # The expression, None for a count of rows
    weight: Fraction = Fraction(1)  # Its share of the cost relative to the other outputs
    mechanism: str = "auto"  # ``"auto"`` or a mechanism's name
    # For a selection, the request that scores candidates, or None for the number of rows.
    score: Request | Tree | None = None
    denominator: Tree | None = None  # For a ratio, the expression below the line

    @property
    def kind(self) -> str:
        """The aggregate's name."""
        return self.aggregate.kind


UNKNOWN = 1 << 62
"""Stands for the number of unlisted groups."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryScope:
    """Where aggregates are computed: a frame, grouped or not."""

    facts: FrameFacts
    groups: Groups | None = None
    rules: Rules = field(init=False, repr=False)
    """How far one individual moves what is drawn in this scope."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", Rules(self.facts, self.groups))

    @property
    def entries(self) -> int | None:
        """The number of groups, None when the frame is not grouped; if unknown, more than there
        can be.
        """
        if self.groups is None:
            return None
        return UNKNOWN if self.groups.discovered else self.groups.size

    @property
    def spread(self) -> ContributionBounds:
        """How many rows one individual may have in these groups. Raises `UnboundedSensitivity` when
        nothing limits them.
        """
        found = self.rules.spread
        if self.norm is not None:
            found = found.weigh(self.norm)
        if not found.is_bounded:
            raise unlimited_refusal(self.facts, self.groups, found)
        return found

    @property
    def norm(self) -> Fraction | None:
        """What the norm of an individual's rows over the groups is limited to; None where rows
        count as they are.
        """
        return self.facts.norm

    @property
    def parts(self) -> int:
        """How many parts one row has in exact tables: 1 where rows are not weighed."""
        return 1 if self.norm is None else PARTS

    @property
    def resolution(self) -> int:
        """The binary places to which values are placed on grids, fewer where they are weighed:
        this many rows can be added up in either case.
        """
        return RESOLUTION_BITS - (0 if self.norm is None else WEIGHT_BITS)

    @property
    def unit_spread(self) -> ContributionBounds:
        """In how many of these groups one individual may be, once in each. Raises
        `UnboundedSensitivity` when nothing limits them.
        """
        found = self.rules.spread
        if found.groups is None and found.rows is None:
            raise unlimited_refusal(self.facts, self.groups, replace(found, per_group=1))
        _, groups, _ = replace(found, per_group=1).tight
        once = ContributionBounds(groups, groups, 1, found.changes)
        return once if self.norm is None else once.weigh(self.norm)
