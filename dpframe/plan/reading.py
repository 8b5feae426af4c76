"""What a plan that people read says, as parts of a physical plan.

A definition has all that decides what is computed. `value_of` makes the value that it is of, and
what writes physical plans for the planner (`dpframe.frames.nodes`, `Measurement.node`) writes its
node. A type of a key, the size of a public table and the bounds of an individual's sum are left
empty: no definition has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

from dpframe.aggregates.argmax import CategoryChoice, ScoredChoice
from dpframe.aggregates.cells import (
    BinCells,
    CategoryCells,
    Edges,
    PointCells,
    PositionCells,
    UpToCells,
    WholeCells,
)
from dpframe.aggregates.grouping_sets import AdditiveOfSet, SelectionOfSet
from dpframe.aggregates.margins import Margin, RootSums
from dpframe.aggregates.measurement import Additive, Measurement, Responses, Table
from dpframe.aggregates.quantile import QuantileChoice, QuantilesAtOnce, QuantileTree
from dpframe.aggregates.request import QueryScope
from dpframe.aggregates.statistics import (
    DistinctCount,
    DistinctIndividuals,
    GridSum,
    PairSum,
    RowCount,
    SquareSum,
    TotalValue,
    UnitCount,
    UnitPairSum,
    UnitRows,
    UnitTotal,
    ValueCount,
)
from dpframe.aggregates.values import Value
from dpframe.core.dtypes import DType
from dpframe.core.interval import Grid
from dpframe.core.regular import RULES, numbers_of_rule, text_of
from dpframe.core.tree import (
    Call,
    Column,
    Literal,
    Named,
    Tree,
    column_names,
    form_of,
    forms_of,
)
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.definition import Json, Written
from dpframe.frames.nodes import named_rows, plain_step_of, row_of, rows_of
from dpframe.frames.per_individual import Extremes, PerIndividual, WithoutFound
from dpframe.frames.row_steps import Drop, DropNulls, Filter, Rename, Select, WithColumns
from dpframe.kernel import plan as kernel
from dpframe.workloads.prefix_sums import coefficients

_OVER = "over_individual"
_PLAIN_STEPS = (
    *(WithColumns, Select, Rename, Drop, Filter, DropNulls, WithoutFound),
    *(LimitRows, LimitGroups, LimitNorm, PerIndividual),
)
_CLASSES: Final[Mapping[str, type]] = {
    name: kind
    for kind in (
        *(Column, DType, Named, Value, TotalValue, Grid, Extremes, Table),
        *(RowCount, ValueCount, GridSum, SquareSum, PairSum, UnitPairSum),
        *(DistinctIndividuals, DistinctCount, UnitCount, UnitRows, UnitTotal),
        *(BinCells, PointCells, PositionCells, WholeCells),
        *(Additive, AdditiveOfSet, Margin, RootSums, Responses),
        *(CategoryChoice, ScoredChoice, QuantileChoice, QuantilesAtOnce, QuantileTree),
        SelectionOfSet,
        *_PLAIN_STEPS,
    )
    for name in forms_of(kind)
}
Said: TypeAlias = Any
"""A part of a definition, whose form its reader knows; in another one Python raises an error."""
_UNREAD = ("domain", "of_rows")
"""What is known of values, which nodes do not have."""


def is_measurement(definition: Said) -> bool:
    """Whether a part of an output's definition is drawn: it is no formula, and no public table."""
    formulas = "Column", "Literal", "Call"
    return definition.get("type", "DataFrame") not in (*formulas, "DataFrame")


# Expressions


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation, which is not looked up."""

    name: str
    constants: Written


def _call(operation: str, args: tuple[Tree, ...], options: Json) -> Call:
    return Call(cast("Any", _Operation(operation, Written(options))), args)


def _literal(said: Said, dtype: Any, parameter: Any) -> Literal:
    return Literal(_constant(said.get("value")), dtype, parameter)


def _constant(said: Json) -> Any:
    return Written(said)


def trees_in(said: Json) -> list[Tree]:
    """The outermost expressions of a definition as trees, whose constants stay as they are written.
    Documents of version 1 may hold what no planner writes: it is passed by.
    """
    if isinstance(said, list):
        return [tree for one in said for tree in trees_in(one)]
    if not isinstance(said, dict):
        return []
    match said:
        case {"type": "Column", "name": str(name)}:
            return [Column(name)]
        case {"type": "Literal"}:
            return [_literal(said, None, said.get("parameter"))]
        case {"type": "Call", "op": str(operation)}:
            return [_call(operation, tuple(trees_in(said.get("args"))), said.get("options"))]
    return trees_in([*said.values()])


def named_in(said: Json) -> list[Named]:
    """The columns that a step computes, or that groups are by, as named trees."""
    several = said.get("named") if isinstance(said, dict) else said
    return [
        Named(str(one.get("name")), tree)
        for one in (several if isinstance(several, list) else ())
        if isinstance(one, dict)
        for tree in trees_in(one.get("tree"))[:1]
    ]


def columns_in(said: Json) -> list[str]:
    """The columns that a definition reads, each once."""
    return list(dict.fromkeys(name for tree in trees_in(said) for name in column_names(tree)))


# Values


EdgesOf = Callable[[Said, Said], Sequence[Fraction]]
"""The exact edges for those of a definition, which are in the form of a type, or a digest."""


def value_of(said: Said, edges_of: EdgesOf | None = None) -> Any:
    """The value that a definition is of. Constants of expressions stay as they are written. Raises
    `LookupError`, `TypeError` or `ValueError` for what no planner writes.
    """

    def made(said: Said) -> Any:
        match said:
            case list():
                return tuple(map(made, said))
            case {"type": "Literal", "dtype": dtype}:
                parameter = said.get("parameter")
                named = None if parameter is None else SimpleNamespace(name=parameter["name"])
                return _literal(said, made(dtype), named)
            case {"type": "Call", "op": operation, "args": args, "options": options}:
                if _is_aggregate(said):  # the column that `frames_of` makes
                    return Column(text_of(said))
                return _call(operation, made(args), options)
            case {"type": "CategoryCells", "tree": tree, "categories": listed, "other": other}:
                return CategoryCells(made(tree), tuple(map(_constant, listed)), other)
            case {"type": "UpToCells", "value": value, "edges": edges, "above": above}:
                assert edges_of is not None
                exact = edges_of(edges, value["domain"]["dtype"])
                return UpToCells(made(value), Edges((), exact, edges["size"], None, None, 0), above)
            case {"type": str(name), **rest} | {"step": str(name), **rest}:
                kind, implied = _CLASSES[name], forms_of(_CLASSES[name])[name]
                parts = {str(f): made(part) for f, part in rest.items() if f not in _UNREAD}
                if implied and sorted([*parts, *implied]) != sorted(f.name for f in fields(kind)):
                    raise ValueError(name)
                every: dict[str, Any] = {**_without(kind), **parts, **implied}
                found = kind(**every)
                if form_of(found)[0] != name:
                    raise ValueError(name)
                return found
            case dict():
                return numbers_of_rule(said) if said.keys() <= RULES else number_of(said)
        return said

    return made(said)


@cache
def _without(kind: Any) -> dict[str, None]:
    """Fields that a definition does not have where they are None, or hold data."""
    known = (field for field in fields(kind) if field.init and field.default is MISSING)
    return {field.name: None for field in known}


def number_of(definition: Said) -> Fraction:
    """A number of a definition."""
    if not isinstance(definition, dict):
        return Fraction(definition)
    ((kind, text),) = definition.items()
    if kind == "float":
        return Fraction(float(text))
    if not re.fullmatch(r"-?[0-9]+(/[0-9]+)?", text):  # "1e999999999" would take all memory
        raise ValueError(text)
    return Fraction(text)


def _is_aggregate(definition: Said) -> bool:
    """Whether an expression is an aggregate of one individual's rows."""
    operation = definition.get("op", "")
    return bool(operation == _OVER or operation.startswith("individual_"))


def _aggregates_in(definition: Said) -> Iterator[Said]:
    if definition["type"] == "Call":
        if _is_aggregate(definition):
            yield definition
        else:
            for one in definition["args"]:
                yield from _aggregates_in(one)


# Steps with one frame


def frames_of(
    definition: Said, columns: Iterable[str], owner: str | None, time: str | None
) -> Iterator[kernel.Frame]:
    """A step, one part after another; `owner` and `time` are those of the columns before it that
    identify individuals, and whose windows do.
    """
    match definition["step"]:
        case "Part":
            yield kernel.Part(
                0, rows_of(value_of(definition["by"])), tuple(map(_key_of, definition["key"]))
            )
        case "Explode":
            yield kernel.Explode(0, definition["column"], definition.get("max_length") or 0)
        case "JoinPublic":
            on = tuple(zip(definition["left_on"], definition["right_on"], strict=True))
            yield kernel.Lookup(0, definition["digest"], on, definition["how"], (), 0)
        case "GroupByIndividual":
            named, outputs = named_rows(value_of(definition["by"])), definition["outputs"]
            calls = [one for n in outputs for one in _aggregates_in(n["tree"])]
            new = {text_of(c): _aggregate(c["op"], c["args"], c["options"]) for c in calls}
            yield kernel.Gather(0, named, tuple(new.items()), (), beside=False)
            stay = ((name, kernel.Col(name)) for name, _ in named)
            who = definition["who"], kernel.Col(owner or "")
            yield kernel.Map(0, (who, *stay, *named_rows(value_of(outputs))))
        case "OverIndividual":
            inner, known = definition["inner"], [*columns]
            trees = inner.get("predicates") or [one["tree"] for one in inner["named"]]
            for call in (one for tree in trees for one in _aggregates_in(tree)):
                (_, operation), *options = call["options"]
                arity = 0 if operation == "individual_len" else 1
                of, (_, *others) = call["args"][:arity], call["args"][arity:]
                rows = map(row_of, value_of(others))
                keys = tuple((f"key {i}", row) for i, row in enumerate(rows))
                cells = _aggregate(operation, of, options)
                yield kernel.Gather(0, keys, ((text_of(call), cells),), (), beside=True)
                known.append(text_of(call))
            yield from frames_of(inner, known, owner, time)
        case _:
            yield plain_step_of(value_of(definition), columns, (owner, time), 0)


def _aggregate(operation: str, args: Sequence[Said], options: Json) -> kernel.Call:
    rows = tuple(map(row_of, value_of(args)))
    return kernel.Call(operation, rows, text_of(options))


def _key_of(definition: Said) -> kernel.Lit:
    if isinstance(definition, dict) and definition.get("type") == "Literal":
        row = row_of(value_of(definition))
        assert isinstance(row, kernel.Lit)
        return row
    return kernel.Lit("", text_of(definition))


# Draws


@dataclass(frozen=True, slots=True)
class Scope:
    """What gives tables their places in the node of a draw, in place of the rules of its query."""

    number: Callable[[Table], int]  # Numbers of tables
    keys: int  # How many key columns there are
    kept: tuple[int, ...] | None = None  # Those of the draw, where it has some of them alone

    def place(self, table: Table) -> int:
        """The number of a table."""
        return self.number(table if self.kept is None else replace(table, kept=self.kept))

    def columns(self, kept: tuple[int, ...] | None) -> tuple[int, ...]:
        """All key columns of a table."""
        return tuple(range(self.keys if kept is None else len(kept)))


def what_of(
    definition: Said, by: Sequence[Named], scope: Scope, edges_of: EdgesOf, stated: kernel.What
) -> kernel.What:
    """What is drawn on its own by these key columns, with numbers of tables in place of their
    places. `stated` is what the physical plan draws: it has the type of a date and the first one,
    which no reading has. No list is made that is longer than its own.
    """
    if definition["type"] == "NightlySums":
        part = value_of(definition["part"], edges_of)
        return _nights_of(definition, by, scope.place(part.table), stated)
    found: Measurement = value_of(definition, edges_of)
    if isinstance(found, SelectionOfSet):
        scope = replace(scope, kept=found.kept)
        found = found.choice
    if isinstance(found, RootSums):
        known = isinstance(stated, kernel.Running) and len(stated.column) == found.numbers
        if not known:
            return kernel.Running(scope.place(found.table), ())
    return found.node(cast("QueryScope", SimpleNamespace(rules=scope)))


def _nights_of(
    definition: Said, by: Sequence[Named], table: int, stated: kernel.What
) -> kernel.Nights:
    """The sums of a stream: its last key is the period."""
    if not isinstance(stated, kernel.Nights):
        raise ValueError("periods")
    if definition["periods"] != stated.periods:  # there may be very many
        raise ValueError("periods")
    day, every, periods = row_of(by[-1].tree), "1d", definition["periods"]
    if isinstance(day, kernel.Call) and day.operation == "dt_truncate":
        every = json.loads(day.constants)[0][1]
        (day,) = day.operands
    if isinstance(day, kernel.Call):
        (day,) = day.operands
    assert isinstance(day, kernel.Col)
    levels, about = definition["levels"], (stated.dtype, every, stated.start, periods)
    strategy = (
        kernel.Tree(definition["branching"], levels)
        if levels
        else kernel.Root(coefficients(periods))
    )
    return kernel.Nights(table, day.name, *about, strategy)  # type: ignore[arg-type]
