"""What will run, as a physical plan for the kernel.

Nothing here is trusted: the kernel checks what comes out, and refuses what it has no node for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import count
from typing import TypeAlias, cast, get_args

import polars as pl

from dpframe.aggregates.category_choice import CategoryChoice
from dpframe.aggregates.cells import BinCells, CategoryCells, NumberCells, PointCells, PositionCells
from dpframe.aggregates.cells import Cells as CellsOfRows
from dpframe.aggregates.joint_margins import JointMargins
from dpframe.aggregates.joint_sums import JointSums
from dpframe.aggregates.keys import KeySelection
from dpframe.aggregates.level_sums import LevelSums, LevelSumsWithTotal
from dpframe.aggregates.margins import Margin, MarginWithTotal
from dpframe.aggregates.measurement import (
    Additive,
    CellCounts,
    Integers,
    Measurement,
    Responses,
    Selection,
)
from dpframe.aggregates.measurement import Table as ExactTable
from dpframe.aggregates.nightly import NightlySums
from dpframe.aggregates.own_sets import SelectionOfSet
from dpframe.aggregates.pair_statistics import PairSum, UnitPairSum
from dpframe.aggregates.quantile import QuantileChoice
from dpframe.aggregates.quantile_tree import QuantileTree
from dpframe.aggregates.quantiles_at_once import QuantilesAtOnce
from dpframe.aggregates.query import Query
from dpframe.aggregates.root_sums import RootSums
from dpframe.aggregates.run_margins import RunMargin
from dpframe.aggregates.scored_choice import ScoredChoice
from dpframe.aggregates.statistics import (
    DistinctCount,
    DistinctIndividuals,
    GridSum,
    RowCount,
    SquareSum,
    Statistic,
    ValueCount,
)
from dpframe.aggregates.unit_statistics import UnitCount, UnitRows, UnitTotal
from dpframe.aggregates.up_to_cells import UpToCells
from dpframe.aggregates.whole_cells import WholeCells
from dpframe.core.grid import Grid, squares_shortened
from dpframe.core.parameters import Parameter
from dpframe.core.regular import text_of
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.frames.binary import Binary, Concat, shares_choices
from dpframe.frames.definition import definition, type_words
from dpframe.frames.explode import Explode
from dpframe.frames.facts import FrameFacts
from dpframe.frames.filter import DropNulls, Filter
from dpframe.frames.group_by_individual import gather_parts
from dpframe.frames.grouping_sets import SetGroups
from dpframe.frames.groups import Groups, digest_of_keys
from dpframe.frames.join_private import JoinPrivate
from dpframe.frames.join_public import JoinPublic
from dpframe.frames.limit_groups import LimitGroups
from dpframe.frames.limit_norm import LimitNorm
from dpframe.frames.limit_rows import LimitRows
from dpframe.frames.part import Part
from dpframe.frames.per_individual import FULLEST, GROUPS, ROWS, PerIndividual, ends_of
from dpframe.frames.relation import Relation
from dpframe.frames.schedule import Schedule
from dpframe.frames.step import FramePart
from dpframe.frames.with_columns import Drop, Rename, Select, WithColumns
from dpframe.frames.without_found import WithoutFound
from dpframe.kernel import plan as kernel
from dpframe.lower import Handles, PlannedTables
from dpframe.mechanisms import NoisyTable
from dpframe.plan.data import PlanData
from dpframe.plan.laws import number_law, numbers_of
from dpframe.plan.several import blocks_of
from dpframe.planning.prepared import Prepared, PreparedTogether
from dpframe.release import Draw, Places, draw_node, number_of
from dpframe.release.numbers import Runs, exact_numbers, first_choice, scores_of
from dpframe.workloads.running import coefficients

__all__ = ["Exact", "Translation", "physical", "translate"]


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """A physical plan, and what its items are of.

    Parameters
    ----------
    plan
        The plan.
    parts
        Where draws stand in it, for each query that it runs.
    handles
        The frames that it names.
    options
        The same of each plan that may run afterwards.
    tables
        The tables of each query, read from the plan once the kernel has verified it.
    """

    plan: kernel.Plan
    parts: tuple[Places, ...]
    handles: Handles
    options: tuple[Translation, ...] = ()
    tables: tuple[tuple[PlannedTables, ...], ...] = ()


def physical(prepared: PreparedTogether, sources: dict[int, str] | None = None) -> kernel.Plan:
    """The physical plan of what will run."""
    return translate(prepared, sources).plan


def translate(prepared: PreparedTogether, sources: dict[int, str] | None = None) -> Translation:
    """The physical plan of what will run. It is the same in every process.

    Parameters
    ----------
    prepared
        What will run.
    sources
        The names of the sources that a larger plan has already, by their tokens.

    Raises
    ------
    Refused
        When the kernel has no node for a part of it.
    """
    plan = prepared.plan
    composition, measure = _composition(prepared)
    lists, limits = _Lists(sources={} if sources is None else sources), prepared.limits
    parts = list(zip(prepared.parts, blocks_of(plan), strict=True))
    found = [lists.add(part, block) for part, block in (parts if limits is None else parts[:1])]
    options = () if limits is None else limits.options
    translated = tuple(translate(option, lists.sources) for option in options)
    made = kernel.Plan(
        plan.unit.adjacency,
        _of_columns_read(lists),
        tuple(lists.tables),
        tuple(lists.draws),
        measure,
        plan.cost.main,
        plan.cost.slack,
        tuple(option.plan for option in translated),
        composition,
    )
    places = tuple(Places(made, draws) for draws in found)
    return Translation(made, places, lists.handles, translated)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """Vectors of a query without noise, whether they are drawn or not.

    Parameters
    ----------
    plan
        A plan with their tables, and without draws.
    nodes
        What each vector is in it.
    handles
        The frames that the plan names.
    """

    plan: kernel.Plan
    nodes: Mapping[Measurement, kernel.What]
    handles: Handles

    @classmethod
    def of(cls, query: Query, parts: Iterable[Measurement]) -> Exact:
        """The same of these vectors."""
        lists = _Lists(sources={})
        nodes = {part: lists.what(part, query) for part in parts}
        unit, nothing = query.relation.facts.unit, Fraction(0)
        lasting = _of_columns_read(lists), tuple(lists.tables), ()
        plan = kernel.Plan(unit.adjacency, *lasting, "epsilon", nothing, nothing, ())
        return cls(plan, nodes, lists.handles)

    def tables_of(
        self, part: Measurement, counted: Mapping[ExactTable, CellCounts]
    ) -> list[CellCounts]:
        """The exact tables of a vector."""
        return [counted[table] for table in part.tables]

    def numbers(self, part: Measurement, counted: Mapping[ExactTable, CellCounts]) -> Integers:
        """What a vector is without noise; of choices the best candidates."""
        node = self.nodes[part]
        if isinstance(node, kernel.Reports):
            return exact_numbers(self.plan, node, self.tables_of(part, counted))
        numbers = draw_node(self.plan, node, kernel.Exact(), self.tables_of(part, counted))
        return numbers.reshape(-1, 1) if isinstance(part, Margin) else numbers

    def scores(
        self, part: Selection, counted: Mapping[ExactTable, CellCounts], first: int, end: int
    ) -> Integers | Runs:
        """The scores of a choice in groups `first` to `end` - 1, which depend on no other one."""
        node = self.nodes[part]
        assert isinstance(node, kernel.Choice | kernel.Rank | kernel.Ranks | kernel.Levels)
        tables = self.tables_of(part, counted)
        return scores_of(self.plan, first_choice(node), tables, first, end)


def _of_columns_read(lists: _Lists) -> tuple[kernel.Frame, ...]:
    """The frames without columns that nothing names."""
    named = _names_in(lists.frames, [*lists.tables, *lists.draws])

    def read(frame: kernel.Frame) -> kernel.Frame:
        if isinstance(frame, kernel.Scan):
            return replace(frame, columns=tuple(p for p in frame.columns if p[0] in named))
        if isinstance(frame, kernel.Map):
            return replace(frame, columns=tuple(p for p in frame.columns if p[0] in named))
        return frame

    return tuple(map(read, lists.frames))


def _names_in(frames: Iterable[kernel.Frame], naming: list[object]) -> set[str]:
    """What frames, and parts of a plan that are taken from the list, name. A step that only passes
    a column on does not name it; any other text that is the name of a column does.
    """
    for frame in frames:
        match frame:
            case kernel.Scan():
                naming += frame.unit, frame.owners
            case kernel.Map():
                naming += (pair for pair in frame.columns if not _stays(pair))
            case _:
                naming.append(frame)
    return _texts(naming)


def _stays(pair: tuple[str, kernel.Row]) -> bool:
    name, row = pair
    return isinstance(row, kernel.Col) and row.name == name


def _texts(open_: list[object]) -> set[str]:
    """All texts in parts of a physical plan, which are taken from the list."""
    found = set[str]()
    while open_:
        value = open_.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, tuple):
            if value and not isinstance(value[0], int | Fraction):  # there may be many numbers
                open_ += value
        elif hasattr(value, "__dict__"):
            open_ += vars(value).values()
    return found


def _missing(what: str) -> kernel.Refused:
    return kernel.Refused(f"there is no node for {what}")


def _composition(prepared: PreparedTogether) -> tuple[kernel.Composition, kernel.Measure]:
    """How costs of draws make the plan's, and their measure. A search and the queries after it are
    separate plans, whose costs add up.
    """
    plan = prepared.plan
    if prepared.limits is None and plan.composition == "zcdp":
        return "zcdp", "rho"
    if prepared.limits is None and plan.composition == "numerical":
        return "numerical", "rho"
    for measure in get_args(kernel.Measure):
        if measure == plan.cost.currency:
            return "sum", measure
    raise _missing(plan.cost.currency)


@dataclass
class _Lists:
    """The items of a plan, as they are added. An equal item is added once."""

    sources: dict[int, str]
    """Names of protected frames by their tokens: two frames may have one name."""
    frames: dict[kernel.Frame, int] = field(default_factory=dict)
    tables: dict[kernel.Table, int] = field(default_factory=dict)
    draws: list[kernel.Draw] = field(default_factory=list)
    protected: dict[str, Relation] = field(default_factory=dict)
    """Protected frames by these names, without steps."""
    public: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Public frames and public keys by their digests."""
    relations: dict[tuple[int, bool], tuple[Relation, int]] = field(default_factory=dict)
    """Frames after all steps, by their identities and choices, and their places. They are kept here
    so that no other one gets such an identity.
    """
    finder: int = 0
    """The draw that finds the groups of the query whose draws are added."""

    @property
    def handles(self) -> Handles:
        """What the plan names."""
        return Handles(self.protected, self.sources, self.public)

    def add(self, part: Prepared, plan: PlanData) -> dict[Draw, int]:
        """All draws of one query, and their places."""
        used = {(use.part, use.mechanism): n for n, use in enumerate(part.parts)}
        of_draws = [(plan.releases[used[d.keys[0]]], d) for d in part.draws]
        of_draws.sort(key=lambda one: one[0].draw)  # in the order of the plan that people read
        draws = [draw for _, draw in of_draws]
        finder = next(
            (n for n, d in enumerate(draws) if isinstance(d.measurement, KeySelection)), 0
        )
        first = len(self.draws)
        self.finder = first + finder
        for release, draw in of_draws:
            law, what = draw.law, self.what(draw.measurement, part.query)
            if isinstance(law, NoisyTable):  # the choice follows from the noisy numbers
                what = self.noisy(what)
            made: kernel.Law
            by_number = number_law(law)
            if by_number is not None:
                number = number_of(draw.measurement, [one.measurement for one in draws])
                if number is None:
                    raise kernel.Refused("a threshold of no number")
                if draws[number].law != by_number[1]:
                    raise kernel.Refused("a threshold has other noise than its number")
                made = kernel.Threshold(by_number[0], first + number)
            else:
                made = law.kernel_law
            self.draws.append(kernel.Draw(what, made, release.cost.main, release.cost.slack))
        return {draw: first + number for number, draw in enumerate(draws)}

    def frame(self, frame: kernel.Frame) -> int:
        """The place of a frame."""
        return self.frames.setdefault(frame, len(self.frames))

    def source(self, token: int, name: str) -> str:
        """The name of a protected frame, with a number where another one has it too."""
        if token not in self.sources:
            free = (name if n == 1 else f"{name} ({n})" for n in count(1))
            taken = {*self.sources.values()}
            self.sources[token] = next(one for one in free if one not in taken)
        return self.sources[token]

    def relation(self, relation: Relation, shares: bool) -> int:
        """The place of a frame after all its steps. It may share its choices of rows with other
        releases.
        """
        key = id(relation), shares
        if key in self.relations:
            return self.relations[key][1]
        owners = relation.owners
        facts = relation.source
        listed = sorted(facts.columns.items())  # sources have them in any order
        columns = tuple((n, type_words(domain.dtype)) for n, domain in listed)
        name = self.source(relation.token, relation.name)
        self.protected[name] = relation
        through = None
        if owners is not None:
            source = self.source(owners.token, owners.name)
            through = kernel.Owners(source, owners.here, owners.there)
        place = self.frame(kernel.Scan(name, columns, _unit(facts.unit), through))
        for step, before in relation.steps:
            if isinstance(step, Binary):
                place = self.frame(self.binary(step, before, place, shares))
                continue
            for part, known in step.parts(before):
                made = _step(part, known, place)
                match part:
                    case JoinPublic(public=public, digest=digest):
                        self.public[digest] = public
                    case PerIndividual(listed=pl.DataFrame() as listed_keys, digest=str(digest)):
                        self.public[digest] = listed_keys
                if shares and isinstance(made, kernel.KeepRows):
                    made = replace(made, of=tuple(sorted(known.columns)))
                place = self.frame(made)
        self.relations[key] = relation, place
        return place

    def binary(self, step: Binary, before: FrameFacts, place: int, shares: bool) -> kernel.Frame:
        """A step with another private frame."""
        other = self.relation(step.other, shares)
        match step:
            case Concat():
                return kernel.Union(place, other)
            case JoinPrivate(how=how):
                return kernel.Meet(
                    place, other, step.keys, how, tuple(step.new_columns(before).items())
                )
        raise _missing(type(step).__name__)

    def table(self, table: ExactTable, query: Query) -> int:
        """The place of a table."""
        groups = query.groups
        if table.kept is not None:
            assert isinstance(groups, SetGroups)
            groups = groups.margin(table.kept)
        facts = query.relation.facts
        made = kernel.Table(
            self.relation(query.relation, shares_choices(query.relation)),
            None if groups is None else self.keys(groups),
            None if table.cells is None else _cells(table.cells),
            _adds(table.statistic, facts),
        )
        return self.tables.setdefault(made, len(self.tables))

    def keys(self, groups: Groups) -> kernel.Keys:
        """The keys of a table."""
        if groups.discovered:
            return kernel.Found(_named(groups.by), self.finder)
        sizes = groups.sizes if isinstance(groups, SetGroups) else (groups.size,)
        digest = digest_of_keys(groups)
        self.public[digest] = groups.keys
        return kernel.Listed(_named(groups.by), sizes, digest)

    def what(self, measurement: Measurement, query: Query) -> kernel.What:
        """What is drawn."""
        match measurement:
            case SelectionOfSet(choice=choice, kept=kept):
                return self.choice(choice, query, kept)
            case Selection():
                return self.choice(measurement, query, None)
            case Responses(table=table):
                return kernel.Reports(self.table(table, query))
            case KeySelection(table=table, rows=rows):
                return kernel.Appear(self.table(table, query), rows)
            case RootSums(table=table):
                return kernel.Running(
                    self.table(table, query), tuple(coefficients(measurement.numbers))
                )
            case NightlySums(table=table):
                return _nights(measurement, self.table(table, query), query)
            case _:
                return self.vector(measurement, query)

    def choice(self, choice: Selection, query: Query, kept: tuple[int, ...] | None) -> kernel.What:
        """A choice, by the columns of one grouping set where some are kept."""
        tables = (replace(t, kept=kept) if kept is not None else t for t in choice.tables)
        places = tuple(self.table(table, query) for table in tables)
        match choice:
            case CategoryChoice(cells=cells, winners=winners):
                return kernel.Choice(places, "groups" if cells is None else "cells", winners)
            case ScoredChoice(winners=winners):
                return kernel.Choice(places, "tables", winners)
            case QuantileChoice(q=q):
                return kernel.Rank(places[0], q)
            case QuantilesAtOnce(quantiles=quantiles):
                return kernel.Ranks(places[0], quantiles)
            case QuantileTree(quantiles=quantiles, levels=levels):
                return kernel.Levels(places[0], quantiles, tuple(map(tuple, levels)))
        raise _missing(type(choice).__name__)

    def noisy(self, what: kernel.What) -> kernel.What:
        """The numbers of candidates, all with noise."""
        if isinstance(what, kernel.Rank):
            return what
        if not isinstance(what, kernel.Choice):
            raise kernel.Refused("noise of scores that are not numbers of tables")
        keys, number = list(self.tables)[what.tables[0]].keys, len(what.tables)
        kept = tuple(range(0 if keys is None else len(keys.by)))
        each = tuple(tuple(int(i == j) for j in range(number)) for i in range(number))
        return kernel.Vector(what.tables, each, kept, 1, total=False)

    def vector(self, measurement: Measurement, query: Query) -> kernel.Vector:
        """Numbers with noise."""
        tables: Sequence[ExactTable] = measurement.tables
        matrix: tuple[tuple[int, ...], ...] = ((1,),)
        kept = tuple(range(0 if query.groups is None else len(query.groups.by)))
        run, total = 1, False
        match measurement:
            case JointMargins():
                matrix, kept = measurement.matrix, measurement.columns
            case JointSums():
                matrix = measurement.matrix
            case Margin():
                run = _run(measurement)
                kept = tuple(i for i in measurement.kept if i < len(kept))
                total = isinstance(measurement, MarginWithTotal)
            case LevelSums():
                width = measurement.axis.width(measurement.level)
                run = min(width, measurement.axis.size)
                total = isinstance(measurement, LevelSumsWithTotal)
            case Additive():
                if measurement.table.kept is not None:
                    kept = tuple(range(len(measurement.table.kept)))
            case _:
                raise _missing(type(measurement).__name__)
        places = tuple(self.table(table, query) for table in tables)
        return kernel.Vector(places, matrix, kept, run, total)


def _nights(sums: NightlySums, table: int, query: Query) -> kernel.Nights:
    """The sums of a stream, from its keys: the last one is the period."""
    groups = query.groups
    assert groups is not None
    last = groups.by[-1]
    every, day = "1d", last.tree
    if isinstance(day, Call) and day.operation.name == "dt_truncate":
        every = str(day.operation.constants[0][1])
        (day,) = day.args
    if isinstance(day, Call):
        (day,) = day.args
    dates = groups.keys[last.name].to_list()
    if not isinstance(day, Column) or not dates:
        raise kernel.Refused("a stream without dates")
    schedule = Schedule(day.name, every, dates[0], sums.periods)
    if dates != schedule.dates() * (len(dates) // sums.periods):
        raise kernel.Refused("the periods of a stream are not one after the other")
    dtype = type_words(query.relation.facts.columns[day.name].dtype)
    drawn = (
        kernel.Tree(sums.branching, sums.levels)
        if sums.levels
        else kernel.Root(tuple(coefficients(sums.periods)))
    )
    start = schedule.start.isoformat()
    span = cast("kernel.Every", every)  # which the schedule accepted
    return kernel.Nights(table, day.name, dtype, span, start, sums.periods, drawn)


def _run(margin: Margin) -> int:
    """How many neighbouring cells of a margin are added up; 0 for all."""
    if isinstance(margin, RunMargin):
        return min(margin.axis.width(margin.level), margin.sizes[-1])
    in_cells = margin.table.cells is not None
    return 0 if in_cells and len(margin.sizes) - 1 not in margin.kept else 1


def _unit(unit: Unit) -> kernel.Unit:
    match unit:
        case Rows(_, contributions):
            return kernel.Rows(contributions)
        case Identifier(column, window, time):
            return kernel.Person(column, window, time)


def _row(tree: Tree) -> kernel.Row:
    match tree:
        case Column(name):
            return kernel.Col(name)
        case Literal(value, dtype, parameter):
            return _literal(type_words(dtype), value, parameter)
        case Call():
            return _call(tree)


def _call(call: Call) -> kernel.Call:
    operation = call.operation
    return kernel.Call(operation.name, tuple(map(_row, call.args)), _text(operation.constants))


def _literal(dtype: str, value: object, parameter: Parameter | None) -> kernel.Lit:
    return kernel.Lit(dtype, _text(value), None if parameter is None else parameter.name)


def _text(value: object) -> str:
    """A constant as JSON, which distinguishes all constants that mean different things."""
    return text_of(definition(value))


def _named(named: Sequence[Named]) -> tuple[tuple[str, kernel.Row], ...]:
    return tuple((n.name, _row(n.tree)) for n in named)


def _map(place: int, columns: Sequence[tuple[str, kernel.Row]]) -> kernel.Map:
    return kernel.Map(place, tuple(columns))


def _step(step: FramePart, before: FrameFacts, place: int) -> kernel.Frame:
    """One step on one frame."""
    same: dict[str, kernel.Row] = {name: kernel.Col(name) for name in sorted(before.columns)}
    match step:
        case WithColumns(named):
            return _map(place, [*(same | dict(_named(named))).items()])
        case Select(named):
            return _map(place, _named(named))
        case Rename(mapping):
            new = dict(mapping)
            return _map(place, [(new.get(name, name), row) for name, row in same.items()])
        case Drop(names):
            return _map(place, [(name, row) for name, row in same.items() if name not in names])
        case Filter(predicates):
            return kernel.Filter(place, tuple(map(_row, predicates)))
        case DropNulls(names):
            filled = (kernel.Call("is_not_null", (kernel.Col(name),), "[]") for name in names)
            return kernel.Filter(place, tuple(filled))
        case Part(by, key):
            types = (type_words(dtype) for _, dtype, _ in step.pairs(before))
            values = tuple(
                _literal(dtype, one.value, one.parameter)
                if isinstance(one, Literal)
                else _literal(dtype, one, None)
                for dtype, one in zip(types, key, strict=True)
            )
            return kernel.Part(place, tuple(_row(n.tree) for n in by), values)
        case WithoutFound(by):
            return kernel.Without(place, tuple(_row(n.tree) for n in by))
        case Explode(column):
            return kernel.Explode(place, column, step.times(before))
        case JoinPublic(_, left_on, right_on, how, _, digest):
            new_columns = tuple(step.new_columns(before).values())
            keys = tuple(zip(left_on, right_on, strict=True))
            return kernel.Lookup(place, digest, keys, how, new_columns, step.fan_out)
        case LimitRows(n, limited, first):
            return kernel.KeepRows(place, n, limited, first)
        case LimitGroups(n, limited, first):
            return kernel.KeepGroups(place, n, limited, first)
        case LimitNorm(norm):
            return kernel.Weigh(place, norm)
        case PerIndividual(by, extremes, _, listed):
            ends = (map(partial(step.name_of, facts=before), ends_of(i)) for i in count())
            return kernel.OneEach(
                place,
                tuple(_row(n.tree) for n in by),
                listed,
                step.name_of(ROWS, before),
                step.name_of(GROUPS, before),
                step.name_of(FULLEST, before),
                tuple(
                    kernel.Ends(least, largest, _row(e.tree), e.total)
                    for e, (least, largest) in zip(extremes, ends, strict=False)
                ),
            )
    aggregates = gather_parts(step, before)
    if aggregates is None:
        raise _missing(type(step).__name__)
    keys_of_rows, made, bounds, beside = aggregates
    calls = tuple((n.name, _call(n.tree)) for n in made if isinstance(n.tree, Call))
    return kernel.Gather(place, _named(keys_of_rows), calls, bounds, beside)


_OneKind: TypeAlias = (
    kernel.Edges | kernel.Values | kernel.Points | kernel.Between | kernel.UpTo | kernel.Whole
)


def _cells(cells: CellsOfRows) -> kernel.Cells:
    made: _OneKind
    match cells:
        case CategoryCells(tree, categories, other):
            return kernel.Values(_row(tree), tuple(map(_text, categories)), other)
        case BinCells(value, edges, other):
            made = kernel.Edges(_row(value.tree), numbers_of(edges), other)
        case PointCells(value, lo, step, points):
            made = kernel.Points(_row(value.tree), lo, step, points)
        case PositionCells(value, candidates):
            made = kernel.Between(_row(value.tree), numbers_of(candidates))
        case UpToCells(value, upper, above):
            made = kernel.UpTo(_row(value.tree), numbers_of(upper.exact), above)
        case WholeCells(some):
            inner = _cells(some)
            if isinstance(inner, kernel.OfPeople | kernel.Whole):
                raise _missing("cells of individuals with one more for all others")
            made = kernel.Whole(inner)
        case _:
            raise _missing(type(cells).__name__)
    if isinstance(cells, NumberCells) and cells.of_individuals:
        return kernel.OfPeople(made, _grid(cells.totals.grid))
    return made


def _adds(statistic: Statistic, facts: FrameFacts) -> kernel.Adds:
    match statistic:
        case RowCount():
            return kernel.One()
        case ValueCount(tree):
            return kernel.Valued(_row(tree))
        case GridSum() | SquareSum() | PairSum():
            return _placed(statistic)
        case DistinctIndividuals():
            return kernel.People() if facts.time is None else kernel.DistinctPersons()
        case DistinctCount(tree):
            return kernel.Distinct(_row(tree))
        case UnitCount(tree):
            return kernel.People() if tree is None else kernel.PersonRows(_row(tree), 1)
        case UnitRows(most, tree):
            return kernel.PersonRows(None if tree is None else _row(tree), most)
        case UnitTotal(of) | UnitPairSum(of):
            return kernel.PersonTotal(_placed(of))
    raise _missing(type(statistic).__name__)


def _placed(
    statistic: GridSum | SquareSum | PairSum,
) -> kernel.Placed | kernel.Squared | kernel.Paired:
    """The place of a row's value on a grid, or of its square."""
    match statistic:
        case GridSum(value, grid):
            return kernel.Placed(_row(value.tree), _grid(grid))
        case SquareSum(value, inner, grid):
            shift = squares_shortened(inner, grid)
            return kernel.Squared(_row(value.tree), _grid(inner), shift)
        case PairSum(value, grid, other, other_grid):
            return kernel.Paired(_row(value.tree), _grid(grid), _row(other.tree), _grid(other_grid))


def _grid(grid: Grid) -> kernel.Grid:
    return kernel.Grid(grid.step, grid.centre, grid.lo, grid.hi)
