"""The tree that an expression is read into: columns, literals and calls of known operations.

A tree is a plain frozen value. It knows nothing of Polars: the reader makes it, inference and
lowering fold over it, and plans print it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from dpframe.core.domain import Domain, Scalar
from dpframe.core.dtypes import DType
from dpframe.core.engines import POLARS
from dpframe.core.parameters import Listed, Parameter

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
        return self._told_by() == other._told_by()

    def __hash__(self) -> int:
        return hash(self._told_by())

    def _told_by(self) -> Hashable:
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
