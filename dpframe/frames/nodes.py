"""Units, expressions, steps and groups as the kernel writes them in physical plans.

Nothing here is trusted: the kernel checks what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count

from dpframe.core.parameters import Parameter
from dpframe.core.regular import text_of
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.core.units import Identifier, Rows, Unit
from dpframe.frames.contribution_limits import LimitGroups, LimitNorm, LimitRows
from dpframe.frames.definition import definition, type_words
from dpframe.frames.facts import FrameFacts
from dpframe.frames.group_by_individual import gather_parts
from dpframe.frames.groups import Groups, SetGroups, digest_of_keys
from dpframe.frames.joins import JoinPublic
from dpframe.frames.partition import Part
from dpframe.frames.per_individual import (
    FULLEST,
    GROUPS,
    ROWS,
    PerIndividual,
    WithoutFound,
    ends_of,
)
from dpframe.frames.relation import FramePart
from dpframe.frames.row_steps import Drop, DropNulls, Explode, Filter, Rename, Select, WithColumns
from dpframe.frames.sampling import new_name
from dpframe.kernel import plan as kernel

__all__ = [
    "has_no_node",
    "keys_of",
    "named_rows",
    "plain_step_of",
    "row_of",
    "rows_of",
    "step_of",
    "text_of_constant",
    "unit_of",
]


def has_no_node(what: str) -> kernel.Refused:
    """The refusal of what the kernel has no node for."""
    return kernel.Refused(f"there is no node for {what}")


def unit_of(unit: Unit) -> kernel.Unit:
    """Who is protected."""
    match unit:
        case Rows(_, contributions):
            return kernel.Rows(contributions)
        case Identifier(column, window, time):
            return kernel.Person(column, window, time)


def row_of(tree: Tree) -> kernel.Row:
    """An expression."""
    match tree:
        case Column(name):
            return kernel.Col(name)
        case Literal(value, dtype, parameter):
            return _literal(type_words(dtype), value, parameter)
        case Call():
            return _call(tree)


def _call(call: Call) -> kernel.Call:
    operation = call.operation
    return kernel.Call(
        operation.name, tuple(map(row_of, call.args)), text_of_constant(operation.constants)
    )


def _literal(dtype: str, value: object, parameter: Parameter | None) -> kernel.Lit:
    return kernel.Lit(dtype, text_of_constant(value), None if parameter is None else parameter.name)


def text_of_constant(value: object) -> str:
    """A constant as JSON, which distinguishes all constants that mean different things."""
    return text_of(definition(value))


def named_rows(named: Sequence[Named]) -> tuple[tuple[str, kernel.Row], ...]:
    """Expressions and the names of their columns."""
    return tuple((n.name, row_of(n.tree)) for n in named)


def rows_of(named: Iterable[Named]) -> tuple[kernel.Row, ...]:
    """Expressions whose columns have no names."""
    return tuple(row_of(n.tree) for n in named)


def step_of(step: FramePart, before: FrameFacts, place: int) -> kernel.Frame:
    """One step on one frame."""
    match step:
        case Part(by, key):
            types = (type_words(dtype) for _, dtype, _ in step.pairs(before))
            values = tuple(
                _literal(dtype, one.value, one.parameter)
                if isinstance(one, Literal)
                else _literal(dtype, one, None)
                for dtype, one in zip(types, key, strict=True)
            )
            return kernel.Part(place, rows_of(by), values)
        case Explode(column):
            return kernel.Explode(place, column, step.times(before))
        case JoinPublic(_, left_on, right_on, how, _, digest):
            new_columns = tuple(step.new_columns(before).values())
            keys = tuple(zip(left_on, right_on, strict=True))
            return kernel.Lookup(place, digest, keys, how, new_columns, step.fan_out)
    aggregates = gather_parts(step, before)
    if aggregates is None:
        owners = before.identifier, before.time
        return plain_step_of(step, sorted(before.columns), owners, place)
    keys_of_rows, made, bounds, beside = aggregates
    calls = tuple((n.name, _call(n.tree)) for n in made if isinstance(n.tree, Call))
    return kernel.Gather(place, named_rows(keys_of_rows), calls, bounds, beside)


def plain_step_of(
    step: FramePart, columns: Iterable[str], owners: Iterable[str | None], place: int
) -> kernel.Frame:
    """A step whose node follows from itself and the names of the columns before it. `owners` are
    the columns that determine who owns a row.
    """
    same: dict[str, kernel.Row] = {name: kernel.Col(name) for name in columns}
    new: Iterable[tuple[str, kernel.Row]]
    match step:
        case Filter(predicates):
            return kernel.Filter(place, tuple(map(row_of, predicates)))
        case DropNulls(names):
            filled = (kernel.Call("is_not_null", (kernel.Col(name),), "[]") for name in names)
            return kernel.Filter(place, tuple(filled))
        case WithoutFound(by):
            return kernel.Without(place, rows_of(by))
        case LimitRows(n, limited, first):
            return kernel.KeepRows(place, n, limited, first)
        case LimitGroups(n, limited, first):
            return kernel.KeepGroups(place, n, limited, first)
        case LimitNorm(norm):
            return kernel.Weigh(place, norm)
        case PerIndividual(by, extremes, _, listed):
            name_of = partial(new_name, [name for name in owners if name is not None])
            ends = (map(name_of, ends_of(i)) for i in count())
            made = tuple(
                kernel.Ends(least, largest, row_of(e.tree), e.total)
                for e, (least, largest) in zip(extremes, ends, strict=False)
            )
            numbers = name_of(ROWS), name_of(GROUPS), name_of(FULLEST)
            return kernel.OneEach(place, rows_of(by), listed, *numbers, made)
        case WithColumns(named):
            new = (same | dict(named_rows(named))).items()
        case Select(named):
            new = named_rows(named)
        case Rename(mapping):
            called = dict(mapping)
            new = ((called.get(name, name), row) for name, row in same.items())
        case Drop(names):
            new = ((name, row) for name, row in same.items() if name not in names)
        case _:
            raise has_no_node(type(step).__name__)
    return kernel.Map(place, tuple(new))


def keys_of(groups: Groups, finder: int = 0, digest: str | None = None) -> kernel.Keys:
    """The keys of groups, by their digest if none is given; those that are not listed are found by
    the draw `finder`.
    """
    if groups.discovered:
        return kernel.Found(named_rows(groups.by), finder)
    sizes = groups.sizes if isinstance(groups, SetGroups) else (groups.size,)
    digest = digest_of_keys(groups) if digest is None else digest
    return kernel.Listed(named_rows(groups.by), sizes, digest)
