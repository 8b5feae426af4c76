"""Frames, groups and exact tables, from the physical plan that the kernel verified.

A plan names protected frames, public frames and public keys, and does not hold them. `Handles` has
these. All else that decides what is computed is read from the plan: the inverse of the translation
in `dpframe.optimise.physical`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from inspect import signature
from math import lcm, prod
from typing import Any, Final
from zoneinfo import ZoneInfo

import polars as pl

from dpframe.aggregates.cells import (
    BinCells,
    CategoryCells,
    Cells,
    PointCells,
    PositionCells,
    UpToCells,
    WholeCells,
    edges_at,
)
from dpframe.aggregates.measurement import Table
from dpframe.aggregates.statistics import (
    DistinctCount,
    DistinctIndividuals,
    GridSum,
    PairSum,
    RowCount,
    SquareSum,
    Statistic,
    UnitCount,
    UnitPairSum,
    UnitRows,
    UnitTotal,
    ValueCount,
    totals_on,
)
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import DType, columns
from dpframe.core.exact import Rationals
from dpframe.core.interval import Grid, squares_on
from dpframe.core.parameters import Listed, Parameter
from dpframe.core.tree import Call, Column, Literal, Named, Operation, Tree
from dpframe.errors import DPFrameError
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.definition import type_words
from dpframe.frames.facts import FrameFacts, protected_facts
from dpframe.frames.group_by_individual import AGGREGATES, Gather, gather_parts
from dpframe.frames.groups import Groups, SetGroups
from dpframe.frames.joins import JoinPrivate, JoinPrivateKeys, JoinPublic
from dpframe.frames.nodes import unit_of
from dpframe.frames.partition import Part
from dpframe.frames.per_individual import Extremes, PerIndividual, WithoutFound
from dpframe.frames.relation import Concat, Relation, Step
from dpframe.frames.row_steps import Explode, Filter, Select
from dpframe.kernel import plan as kernel
from dpframe.rows.fold import domain
from dpframe.rows.layouts import type_of_keys
from dpframe.rows.registry import BY_NAME


@dataclass(frozen=True, slots=True, eq=False)
class Handles:
    """What a plan names and does not hold.

    Parameters
    ----------
    sources
        Protected frames without steps, by the names that the plan has for them.
    names
        The names of protected frames by their tokens, also of frames that only determine the owners
        of rows.
    public
        Public frames and public keys, by their digests.
    types
        Types of constants by the words that the plan has for them, with a digest.
    moments
        Operations with moments among their constants, by their names and constants in the plan.
        The plan has the offset of a moment from UTC and no name of its zone.
    """

    sources: Mapping[str, Relation]
    names: Mapping[int, str]
    public: Mapping[str, pl.DataFrame]
    types: Mapping[str, DType] = field(default_factory=dict)
    moments: Mapping[tuple[str, str], Operation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class PlanTables:
    """Tables of a plan that are made of one frame, by the same groups.

    Parameters
    ----------
    relation, groups
        These.
    tables
        The tables, by their places in the plan.
    """

    relation: Relation
    groups: Groups | None
    tables: Mapping[int, Table]


def tables_of_plan(
    plan: kernel.Plan, handles: Handles, parts: Iterable[tuple[Iterable[int], int | None]]
) -> list[list[PlanTables]]:
    """The tables of several parts of a plan. In each part those of one frame and of the same groups
    are together.

    Parameters
    ----------
    parts
        The places of the tables of each part, and the salt of the choice among an individual's
        rows, where several releases rest on it.

    Raises
    ------
    Refused
        When the plan names something that is not there or is not as the plan says, or states
        steps that cannot be done.
    """
    try:
        reader = _Reader(plan, handles)
        return [reader.together(places, salt) for places, salt in parts]
    except (DPFrameError, LookupError, TypeError, ValueError) as error:
        raise kernel.Refused(f"its tables cannot be computed: {error}") from None


@dataclass(slots=True, eq=False)
class _Reader:
    """Reads a plan. An input of a frame stands before it, so frames are made in their order."""

    plan: kernel.Plan
    handles: Handles
    frames: list[Relation] = field(default_factory=list)
    _types: dict[str, DType] = field(default_factory=dict)
    """The types that plans have by their digests, as they are written there."""

    def __post_init__(self) -> None:
        self._types |= self.handles.types
        for frame in self.plan.frames:
            self.frames.append(self._frame(frame))

    # Frames

    def _frame(self, frame: kernel.Frame) -> Relation:
        match frame:
            case kernel.Scan():
                return self._source(frame)
            case kernel.Union(left, right):
                return self._union(self.frames[left], self.frames[right])
            case kernel.Meet():
                return self._meet(frame)
            case kernel.Map(input, ()):
                before = self.frames[input]
                facts = before.facts.with_table({}, {}, "select()")
                steps = (*before.steps, (Select(()), before.facts))
                return replace(before, steps=steps, facts=facts)
        relation = self.frames[frame.input]
        step = self._step(frame, relation)
        after = relation.then(step)
        match frame:
            case kernel.Lookup(_, _, _, "inner" | "left", _, most):
                times = after.facts.copies // relation.facts.copies
                if times != max(1, most):
                    raise ValueError("a public table has another number of rows with one key")
            case kernel.Gather(bounds=bounds):
                made = gather_parts(step, relation.facts)
                if made is None or made[2] != bounds:
                    raise ValueError("values of one individual have other bounds")
        return after

    def _source(self, scan: kernel.Scan) -> Relation:
        source = self.handles.sources[scan.name]
        facts, owners = source.source, source.owners
        known = {name: facts.columns[name] for name, _ in scan.columns}
        for name, words in scan.columns:
            if type_words(known[name].dtype) != words:
                raise ValueError(f"{name!r} has another type")
            self._types |= types_of_digest(known[name].dtype)
        through = None
        if owners is not None:
            through = kernel.Owners(self.handles.names[owners.token], owners.here, owners.there)
        if scan.unit != unit_of(facts.unit) or scan.owners != through:
            raise ValueError(f"rows of {scan.name!r} belong to others")
        facts = protected_facts(columns(known), facts.unit)  # nothing else is known of the frame
        return replace(source, source=facts, steps=(), facts=facts, salt=None)

    @staticmethod
    def _union(left: Relation, right: Relation) -> Relation:
        """The rows of both. Columns of a plan have no order, and the left frame decides it."""
        mine, theirs = left.facts.columns, right.facts.columns
        if mine.keys() != theirs.keys():
            raise ValueError("frames with other columns")
        known = columns({name: theirs[name] for name in mine})
        other = replace(right, facts=replace(right.facts, columns=known))
        return left.then(Concat(other, ""))

    def _meet(self, meet: kernel.Meet) -> Relation:
        left, right = self.frames[meet.left], self.frames[meet.right]
        step = (
            JoinPrivateKeys(right, "", meet.how, "", meet.on, new=meet.new)
            if meet.on
            else JoinPrivate(right, "", meet.how, "", new=meet.new)
        )
        return left.then(step)

    def _step(self, frame: kernel.Frame, relation: Relation) -> Step:
        """A step on one frame."""
        before = relation.facts
        match frame:
            case kernel.Map(_, made):
                return Select(self.columns(made, before))
            case kernel.Filter(_, conditions):
                return Filter(self._trees(conditions, before))
            case kernel.Part(_, by, key):
                computed = any(step.computes for step, _ in relation.steps)
                computed = computed or not all(isinstance(row, kernel.Col) for row in by)
                return Part(self._keys(by, before), tuple(map(self._literal, key)), computed)
            case kernel.Without(_, by):
                keys = self._keys(by, before)
                return WithoutFound(keys, 1, _no_keys(keys, before))
            case kernel.Explode(_, column, most):
                return Explode(column, most)
            case kernel.Lookup(_, digest, on, how, new, _):
                here, there = tuple(name for name, _ in on), tuple(name for _, name in on)
                public = self.handles.public[digest]
                return JoinPublic(public, here, there, how, "", digest, new)
            case kernel.KeepRows(_, n, by_names, first, of):
                limit = LimitRows(n, by_names, first)
                if of is not None and limit.columns_of(before) != [*of]:
                    raise ValueError("rows are chosen by other columns")
                return limit
            case kernel.KeepGroups(_, n, by_names, first):
                return LimitGroups(n, by_names, first)
            case kernel.Weigh(_, norm):
                return LimitNorm(norm)
            case kernel.OneEach(_, by, listed, ends=ends):
                extremes = tuple(Extremes(self.tree(e.row, before), e.total) for e in ends)
                among = None if listed is None else self.handles.public[listed]
                return PerIndividual(self._keys(by, before), extremes, among, listed)
            case kernel.Gather(_, by_rows, new_columns, _, beside):
                aggregates = tuple(
                    (
                        name,
                        _aggregate(call.operation, call.constants),
                        self._trees(call.operands, before),
                    )
                    for name, call in new_columns
                )
                return Gather(self.columns(by_rows, before), aggregates, beside)
        raise TypeError(f"no step for {type(frame).__name__}")

    # Expressions

    def tree(self, row: kernel.Row, facts: FrameFacts) -> Tree:
        """An expression of a frame."""
        match row:
            case kernel.Col(name):
                return Column(name)
            case kernel.Lit():
                return self._literal(row)
            case kernel.Call(name, operands, constants):
                args = self._trees(operands, facts)
                known = self.handles.moments.get((name, constants))
                if known is not None:
                    return Call(known, args)
                zone = None
                if '{"datetime":' in constants:
                    zones = (domain(arg, facts.columns).dtype.zone for arg in args)
                    zone = next((one for one in zones if one), None)
                return Call(_operation(name, constants, zone), args)

    def _trees(self, rows: Iterable[kernel.Row], facts: FrameFacts) -> tuple[Tree, ...]:
        return tuple([self.tree(row, facts) for row in rows])

    def columns(
        self, pairs: Iterable[tuple[str, kernel.Row]], facts: FrameFacts
    ) -> tuple[Named, ...]:
        """Expressions and the names of their columns."""
        return tuple([Named(name, self.tree(row, facts)) for name, row in pairs])

    def _keys(self, rows: Iterable[kernel.Row], facts: FrameFacts) -> tuple[Named, ...]:
        """Expressions whose columns no plan names."""
        return self.columns(((f"key {i}", row) for i, row in enumerate(rows)), facts)

    def _literal(self, lit: kernel.Lit) -> Literal:
        found = self._types.get(lit.dtype)
        return _literal(lit.dtype, lit.value) if found is None else _literal_of(found, lit.value)

    def _value(self, row: kernel.Row, facts: FrameFacts) -> Value:
        tree = self.tree(row, facts)
        return Value(tree, domain(tree, facts.columns))

    # Tables

    def together(self, places: Iterable[int], salt: int | None) -> list[PlanTables]:
        """The tables of one part."""
        found = dict[tuple[int, kernel.Keys | None], dict[int, Table]]()
        for place in places:
            table = self.plan.tables[place]
            found.setdefault((table.frame, table.keys), {})[place] = self.table(table)
        return [
            PlanTables(replace(self.frames[frame], salt=salt), self.groups(keys, frame), tables)
            for (frame, keys), tables in found.items()
        ]

    def groups(self, keys: kernel.Keys | None, frame: int) -> Groups | None:
        """The groups of a table."""
        facts = self.frames[frame].facts
        match keys:
            case None:
                return None
            case kernel.Found(by):
                named = self.columns(by, facts)
                return Groups(named, _no_keys(named, facts), "", discovered=True)
            case kernel.Listed(by, sizes, digest):
                named, listed = self.columns(by, facts), self.handles.public[digest]
                if listed.width != len(named) or listed.height != prod(sizes):
                    raise ValueError("there are other public keys")
                # columns of wider and of narrower whole numbers may have one digest
                types = [*_types_of_keys(named, facts).values()]
                if listed.dtypes != types:
                    given = zip(listed.iter_columns(), types, strict=True)
                    listed = pl.DataFrame([column.cast(dtype) for column, dtype in given])
                return (SetGroups if len(sizes) > 1 else Groups)(named, listed, "")

    def table(self, table: kernel.Table) -> Table:
        """A table."""
        facts = self.frames[table.frame].facts
        cells = None if table.cells is None else self._cells(table.cells, facts)
        return Table(self._statistic(table.adds, facts), cells)

    def _statistic(self, adds: kernel.Adds, facts: FrameFacts) -> Statistic:
        match adds:
            case kernel.One():
                return RowCount()
            case kernel.Valued(row):
                return ValueCount(self.tree(row, facts))
            case kernel.Placed() | kernel.Squared() | kernel.Paired():
                return self._sum_on_grid(adds, facts)
            case kernel.Distinct(row):
                return DistinctCount(self.tree(row, facts))
            case kernel.People():
                return UnitCount()
            case kernel.DistinctPersons():
                return DistinctIndividuals(Column(str(facts.identifier)))
            case kernel.PersonRows(row, most):
                return UnitRows(most, None if row is None else self.tree(row, facts))
            case kernel.PersonTotal(of):
                placed = self._sum_on_grid(of, facts)
                return UnitPairSum(placed) if isinstance(placed, PairSum) else UnitTotal(placed)

    def _sum_on_grid(
        self, adds: kernel.Placed | kernel.Squared | kernel.Paired, facts: FrameFacts
    ) -> GridSum | SquareSum | PairSum:
        value, grid = self._value(adds.row, facts), _grid(adds.grid)
        match adds:
            case kernel.Placed():
                return GridSum(value, grid)
            case kernel.Squared(_, _, shift):
                return SquareSum(value, grid, squares_on(grid, shift))
            case kernel.Paired(_, _, other, other_grid):
                return PairSum(value, grid, self._value(other, facts), _grid(other_grid))

    def _cells(
        self, cells: kernel.Cells, facts: FrameFacts, totals: kernel.Grid | None = None
    ) -> Cells:
        match cells:
            case kernel.OfPeople(of_rows, grid):
                return self._cells(of_rows, facts, grid)
            case kernel.Whole(some):
                return WholeCells(self._cells(some, facts, totals))
            case kernel.Values(row, listed, other):
                tree = self.tree(row, facts)
                zone = domain(tree, facts.columns).dtype.zone
                categories = tuple(_by_clocks(_constant(json.loads(t)), zone) for t in listed)
                return CategoryCells(tree, categories, other)
        value = self._value(cells.row, facts)
        if totals is not None:
            value = totals_on(value, _grid(totals))
        match cells:
            case kernel.Edges(_, edges, other):
                return BinCells(value, _numbers(edges), other)
            case kernel.Points(_, low, step, count):
                return PointCells(value, low, step, count)
            case kernel.Between(_, candidates):
                return PositionCells(value, _numbers(candidates))
            case kernel.UpTo(_, edges, above):
                return UpToCells(value, edges_at(_numbers(edges), value), above)


def _types_of_keys(by: Iterable[Named], facts: FrameFacts) -> dict[str, Any]:
    """The type of each key in Polars."""
    return {n.name: type_of_keys(domain(n.tree, facts.columns).dtype) for n in by}


def _no_keys(by: Iterable[Named], facts: FrameFacts) -> pl.DataFrame:
    """Keys of groups, before any is found."""
    return pl.DataFrame(schema=_types_of_keys(by, facts))


def _grid(grid: kernel.Grid) -> Grid:
    return Grid(grid.step, grid.centre, grid.lo, grid.hi)


def _numbers(numbers: kernel.Numbers) -> Sequence[Fraction]:
    match numbers:
        case kernel.Progression(first, step, count):
            under = lcm(first.denominator, step.denominator)
            start, each = int(first * under), int(step * under)
            return Rationals(range(start, start + count * each, each), under)
        case kernel.Ratios(numerators, denominator):
            return Rationals(numerators, denominator)
    return numbers


# Types and constants


def types_of_digest(dtype: DType) -> dict[str, DType]:
    """Types for which a plan has a digest, in a type and its parts, by the words of the plan."""
    found = {type_words(dtype): dtype} if dtype.is_nested or dtype.name == "Enum" else {}
    inner = [] if dtype.inner is None else [dtype.inner]
    for part in [*inner, *(one for _, one in dtype.fields or ())]:
        found |= types_of_digest(part)
    return found


@lru_cache(maxsize=256)
def _dtype(words: str) -> DType:
    """The type that a plan writes so, if it does not write a digest of it."""
    found = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?", words)
    if found is None:
        raise LookupError(f"the type {words}")
    name, parts = str(found[1]), [] if found[2] is None else str(found[2]).split(", ")
    if name == "Decimal":
        return DType(name, precision=int(parts[0]), scale=int(parts[1]))
    unit, zone = (*parts, None, None)[:2]
    return DType(name, unit, zone)


@lru_cache(maxsize=1024)
def _literal(dtype: str, value: str) -> Literal:
    return _literal_of(_dtype(dtype), value)


def _literal_of(dtype: DType, value: str) -> Literal:
    return Literal(_by_clocks(_constant(json.loads(value)), dtype.zone), dtype)


@lru_cache(maxsize=1024)
def _operation(name: str, constants: str, zone: str | None) -> Operation:
    """The row-wise operation that a call names, with its constants, for operands of a zone."""
    kind = BY_NAME[name]
    found = _by_clocks(_constant(json.loads(constants)), zone)
    if not isinstance(kind, type):
        return kind
    names = signature(kind).parameters.keys()
    values = dict(found)
    return kind(**values) if values.keys() <= names else kind(*values.values())


@lru_cache(maxsize=256)
def _aggregate(name: str, constants: str) -> Any:
    """The aggregate of an individual's rows that a call names, with its constants."""
    return AGGREGATES[name](**dict(_constant(json.loads(constants))))


_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    "int": int,
    "float": float,
    "fraction": Fraction,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "microseconds": lambda text: timedelta(microseconds=int(text)),
}


def _constant(said: Any) -> Any:
    """A constant of an operation, from its JSON: what `dpframe.frames.definition` writes."""
    if isinstance(said, list):
        return tuple(map(_constant, said))
    if not isinstance(said, dict):
        return said
    match said:
        case {"type": "DType", **parts}:
            return DType(**{name: _constant(part) for name, part in parts.items()})
        case {"type": "Listed", "values": values, "parameter": parameter}:
            return Listed.of(_constant(values), Parameter(**parameter))
    ((kind, text),) = said.items()
    return _KINDS[kind](text)


def _by_clocks(value: Any, zone: str | None) -> Any:
    """A constant with moments on the clocks of a zone. A plan has the time there and the offset
    from UTC, and no name of the zone.
    """
    if isinstance(value, Listed):
        return Listed.of([_by_clocks(one, zone) for one in value], value.parameter)
    if isinstance(value, tuple):
        return tuple(_by_clocks(one, zone) for one in value)
    if not isinstance(value, datetime) or value.tzinfo is None or zone is None:
        return value
    clocks = (value.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    return next((at for at in clocks if at.utcoffset() == value.utcoffset()), value)
