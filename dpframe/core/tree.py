"""The tree that an expression is read into: columns, literals and calls of known operations.

A tree is a plain frozen value. It knows nothing of Polars: the reader makes it, inference and
lowering fold over it, and plans print it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import DType

Option: TypeAlias = "Scalar | DType | tuple[Option, ...]"
Options: TypeAlias = "Mapping[str, Option]"


def identity(option: Option | tuple[object, ...]) -> Hashable:
    """What tells constants apart that Python holds equal: 1, 1.0 and True, 0.0 and -0.0, 0.1 and
    0.10. Expressions that differ in such a constant differ, so that no result of one is taken for
    the other's.
    """
    if isinstance(option, tuple):
        return tuple(identity(item) for item in option)  # type: ignore[arg-type]
    if isinstance(option, (str, DType)):
        return option
    if isinstance(option, datetime):  # with its offset from UTC, whatever the zone is called
        return "datetime", option.isoformat()
    return type(option).__name__, repr(option)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the frame, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant that the analyst wrote. Public: it may be shown in plans."""

    value: Scalar
    dtype: DType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return identity(self.value) == identity(other.value) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((identity(self.value), self.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A row-wise operation, by the name it has in the registry of `dpframe.rows`.

    Parameters
    ----------
    op
        The operation's name.
    args
        Its operands: expressions whose values differ from row to row.
    options
        Its constant parameters, as sorted pairs, so that trees hash and compare.
    """

    op: str
    args: tuple[Tree, ...]
    options: tuple[tuple[str, Option], ...] = ()

    @property
    def params(self) -> dict[str, Option]:
        return dict(self.options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        return (
            self.op == other.op
            and self.args == other.args
            and identity(self.options) == identity(other.options)
        )

    def __hash__(self) -> int:
        return hash((self.op, self.args, identity(self.options)))


Tree: TypeAlias = "Column | Literal | Call"


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the name of the column that it makes."""

    name: str
    tree: Tree


def call(op: str, *args: Tree, **options: Option) -> Call:
    """A `Call` with its options in canonical order."""
    return Call(op, args, tuple(sorted(options.items())))


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
        case Call(op, args, options):
            return Call(op, tuple(substitute(a, replacements) for a in args), options)
