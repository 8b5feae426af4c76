"""The tree that an expression is read into: columns, literals and calls of known operations.

A tree is a plain frozen value. It knows nothing of Polars: the reader makes it, inference and
lowering fold over it, and plans print it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeAlias

from dpframe.core.dtypes import Domain, DType, Scalar
from dpframe.core.parameters import Listed, Parameter
from dpframe.core.units import POLARS

Constant: TypeAlias = "Scalar | DType | tuple[Constant, ...]"
"""The constants of an operation."""


def identity(constant: Constant | tuple[object, ...]) -> Hashable:
    """A key that distinguishes constants which Python holds equal: 1, 1.0 and True, 0.0 and -0.0,
    0.1 and 0.10. Expressions that differ in such a constant differ, so that no result of one is
    taken for the other's.
    """
    if isinstance(constant, Listed):
        return constant.parameter, tuple(identity(item) for item in constant)
    if isinstance(constant, tuple):
        return tuple(identity(item) for item in constant)  # type: ignore[arg-type]
    if isinstance(constant, (str, DType)):
        return constant
    if isinstance(constant, datetime):  # with its offset from UTC, because zones have several names
        return "datetime", constant.isoformat()
    return type(constant).__name__, repr(constant)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the frame, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant that the analyst wrote, or the value of a parameter. Public: it may be shown in
    plans.
    """

    value: Scalar
    dtype: DType
    parameter: Parameter | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> Hashable:
        return identity(self.value), self.dtype, self.parameter


class Operation(ABC):
    """What a call does with its operands; `dpframe.rows` has them all.

    Two operations are the same when they have one name and the same constants.
    """

    __slots__ = ()

    name: str
    """The name in plans, which no other operation has."""
    engines: frozenset[str] = frozenset({POLARS})
    """The engines that give it one meaning, which `tests/engines` compare bit by bit; on others it
    is refused by name.
    """
    propagates_null: bool = False
    """Whether its result is null whenever one operand is."""

    @property
    def few_values(self) -> range | None:
        """The whole numbers that its result can be for any operands, if they are few enough for
        unlisted groups.
        """
        return None

    @property
    @abstractmethod
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        """Its constants and their names, in the order of these; plans keep them."""

    @abstractmethod
    def domain(self, args: Sequence[Domain]) -> Domain:
        """What is known of the result, from what is known of the operands."""

    @abstractmethod
    def lower(self, ns: Any, args: Sequence[Any], domains: Sequence[Domain]) -> Any:
        """The same operation as an expression of an engine, which is unknown here."""

    @abstractmethod
    def words(self, args: Sequence[str]) -> str:
        """The operation as an analyst would write it."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Operation):
            return NotImplemented
        return self.name == other.name and identity(self.constants) == identity(other.constants)

    def __hash__(self) -> int:
        return hash((self.name, identity(self.constants)))

    def __repr__(self) -> str:
        constants = ", ".join(f"{name}={value!r}" for name, value in self.constants)
        return f"{self.name}({constants})"


@dataclass(frozen=True, slots=True)
class Call:
    """A row-wise operation on some operands.

    Parameters
    ----------
    operation
        The operation, with its constants.
    args
        Its operands: expressions whose values differ from row to row.
    """

    operation: Operation
    args: tuple[Tree, ...]


Tree: TypeAlias = "Column | Literal | Call"


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the name of the column that it makes."""

    name: str
    tree: Tree


def walk(tree: Tree) -> Iterator[Tree]:
    """The tree's nodes, each before its operands."""
    yield tree
    if isinstance(tree, Call):
        for arg in tree.args:
            yield from walk(arg)


def column_names(tree: Tree) -> tuple[str, ...]:
    """The columns that the tree reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(node.name for node in walk(tree) if isinstance(node, Column)))


def substitute(tree: Tree, replacements: Mapping[str, Tree]) -> Tree:
    """The tree with named columns replaced by other trees."""
    match tree:
        case Column(name):
            return replacements.get(name, tree)
        case Literal():
            return tree
        case Call(operation, args):
            return Call(operation, tuple(substitute(a, replacements) for a in args))


# Objects that hold expressions and hand them out: steps of frames, statistics, cells.


Change: TypeAlias = "Callable[[Tree], Tree]"


class HasExprs(ABC):
    """A frozen value with expressions over the columns of a frame.

    Engines check all of them before anything runs, so a class that holds some names every one.
    """

    __slots__ = ()

    engines: ClassVar[frozenset[str]]
    """The engines on which it runs, declared by each class for itself; `tests/engines` cover
    this."""

    @abstractmethod
    def map_exprs(self, change: Change) -> Self:
        """The same with other expressions."""

    @property
    def exprs(self) -> tuple[Tree, ...]:
        """Its expressions."""
        found: list[Tree] = []

        def note(tree: Tree) -> Tree:
            found.append(tree)
            return tree

        self.map_exprs(note)
        return tuple(found)


def map_named(named: Iterable[Named], change: Change) -> tuple[Named, ...]:
    """Named expressions with other expressions."""
    return tuple(replace(n, tree=change(n.tree)) for n in named)


# The fields of dataclasses, remembered by type: plans are walked by them many times.


EXACT: Final = "exact"
"""Marks, in the metadata of a field, whole numbers for which 64 bits may be too few: terms of an
exact fraction, and the number of ways in which several quantiles may be placed.
"""
WRITTEN: Final = "written"
"""In the metadata of a field, what documents call it, where that is not its name."""


def fields_of(value: object) -> tuple[dataclasses.Field[Any], ...] | None:
    """The fields of a dataclass's instance, in order; None for any other value."""
    kind: type = type(value)
    return _fields(kind)


@cache
def _fields(kind: type) -> tuple[dataclasses.Field[Any], ...] | None:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else None


def wire_name(field: dataclasses.Field[Any]) -> str:
    """What documents call a field."""
    return str(field.metadata.get(WRITTEN, field.name))


Forms: TypeAlias = Mapping[str, Mapping[str, object]]
"""The names that documents give to the values of a class, each with the fields that it stands for,
and their values. Documents do not write these fields. A class without the attribute `FORMS` has one
name, its own.
"""


def form_of(value: object) -> tuple[str, Mapping[str, object]]:
    """The name that documents give to a value, and the fields that this name stands for."""
    kind: type = type(value)
    forms = forms_of(kind)
    for name, said in forms.items():
        if len(forms) == 1 or said.items() <= {f: getattr(value, f) for f in said}.items():
            return name, said
    raise ValueError(f"documents have no name for this {kind.__name__}")


@cache
def forms_of(kind: type) -> Forms:
    """The names that documents give to the values of a class."""
    found: Forms = getattr(kind, "FORMS", {kind.__name__: {}})
    return found


# Text from another person, made safe to show: on one line, and read in one direction.


def visible(text: str) -> str:
    """Text without characters that make new lines, move a terminal's cursor, turn the reading
    direction, or are invisible: each is written as Python does, such as ``\\n`` or ``\\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quote_name(name: str) -> str:
    """A name between back quotes, which end where it does."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def shorten(text: str, length: int) -> str:
    """The first characters of a long text, with dots where something was left out."""
    return text if len(text) <= length else text[: length - 3] + "..."
