"""The tree that an expression is read into: columns, literals and calls of known operations.

A tree is a plain frozen value. It knows nothing of Polars: the reader makes it, inference and
lowering fold over it, and plans print it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import DType

Option: TypeAlias = "Scalar | DType | tuple[Option, ...]"
Options: TypeAlias = "Mapping[str, Option]"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the frame, by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the analyst wrote. Public: it may be shown in plans."""

    value: Scalar
    dtype: DType


@dataclass(frozen=True, slots=True)
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
