"""What a function of Polars is given: operands, and the constants among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpframe.core.domain import Scalar
from dpframe.core.dtypes import DType
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Literal, Tree
from dpframe.errors import UnsupportedOperation


@dataclass(frozen=True, slots=True)
class Values:
    """Several constants: a list, or a Series that the analyst wrote.

    Only `is_in` and `replace` take them; anywhere else they would be rows of their own.
    """

    values: tuple[Scalar, ...]
    dtype: DType
    parameter: Parameter | None = None


Operand: TypeAlias = "Tree | Values"
Reader: TypeAlias = "Callable[[Sequence[Operand], Any], Tree]"
"""Makes the tree of a function from its operands and its parameters in Polars' form."""


def single(values: Values) -> Literal:
    """The one value of a Series used as an operand."""
    if values.parameter is not None:
        raise UnsupportedOperation(
            f"the parameter {values.parameter.name!r} is a list, and one value is needed here",
            remedy="compare with the whole list: .is_in(...), in SQL IN",
        )
    if len(values.values) != 1:
        raise UnsupportedOperation(
            f"a list or Series of {len(values.values)} values cannot be an operand: "
            "its values would line up with private rows",
            remedy=("use one constant", "compare with several values: .is_in([...])"),
        )
    return Literal(values.values[0], values.dtype)


def operand(value: Operand) -> Tree:
    """An operand as a tree: several constants at once are refused."""
    return single(value) if isinstance(value, Values) else value


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
        remedy=("write a constant", "write one pl.when(...).then(...) branch for each constant"),
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
    if not isinstance(found, int) or isinstance(found, bool):
        raise _wrong(what, "an integer")
    if not -(2**63) <= found < 2**63:
        raise UnsupportedOperation(
            f"{what} does not fit in Int64",
            remedy="use a number between -2**63 and 2**63 - 1",
        )
    return found


def integer_or_none(value: Operand, what: str) -> int | None:
    return None if constant(value, what) is None else integer(value, what)


def _wrong(what: str, kind: str) -> UnsupportedOperation:
    return UnsupportedOperation(f"{what} is not {kind}", remedy=f"write {kind}")


def require_some(name: str, operands: Sequence[Operand]) -> Sequence[Operand]:
    """The operands; at least one is required."""
    if not operands:
        raise UnsupportedOperation(
            f"{name} needs at least one column, and none is selected", remedy="name a column"
        )
    return operands
