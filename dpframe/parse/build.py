"""Builds calls, and takes the constants that operations need out of operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dpframe.core.domain import Scalar
from dpframe.core.tree import Call, Constant, Literal, Tree
from dpframe.errors import UnsupportedOperation
from dpframe.parse.literals import Values, single
from dpframe.rows.registry import operation

Operand: TypeAlias = "Tree | Values"
Handler: TypeAlias = "Callable[[Sequence[Operand], Any], Tree]"
"""Makes the tree of a function from its operands and its parameters in Polars' form."""


def make(op: str, *operands: Operand, **constants: Constant) -> Call:
    """A call of a registered operation; a Series of one value becomes a constant."""
    return Call(operation(op, **constants), tuple(map(operand, operands)))


def operand(value: Operand) -> Tree:
    """An operand as a tree: several constants at once are refused."""
    return single(value) if isinstance(value, Values) else value


def simple(op: str) -> Handler:
    """The handler of a function without parameters."""

    def handle(operands: Sequence[Operand], params: Any) -> Tree:
        return make(op, *operands)

    return handle


def constant(value: Operand, what: str) -> Scalar:
    """The constant that an operation needs.

    Raises
    ------
    UnsupportedOperation
        When it is computed from columns.
    """
    tree = operand(value)
    if isinstance(tree, Literal):
        return tree.value
    raise UnsupportedOperation(
        f"{what} must be a constant, not a column or an expression",
        remedy="write a constant, or one pl.when(...).then(...) branch per constant",
    )


def text(value: Operand, what: str) -> str:
    found = constant(value, what)
    if isinstance(found, str):
        return found
    raise _wrong(what, "a text")


def text_or_none(value: Operand, what: str) -> str | None:
    return None if constant(value, what) is None else text(value, what)


def integer(value: Operand, what: str) -> int:
    found = constant(value, what)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    raise _wrong(what, "an integer")


def integer_or_none(value: Operand, what: str) -> int | None:
    return None if constant(value, what) is None else integer(value, what)


def _wrong(what: str, kind: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"{what} is not {kind}", remedy=f"write {kind}")
