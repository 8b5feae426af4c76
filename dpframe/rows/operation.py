"""What a row-wise operation is: one class with everything about it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeAlias, TypeVar, dataclass_transform

import polars as pl

from dpframe.core.domain import Domain
from dpframe.core.dtypes import DType
from dpframe.core.tree import Call, Constant, Operation, Tree
from dpframe.errors import DPFrameError
from dpframe.rows.given import Operand, operand

Namespace: TypeAlias = "Any"
"""The module that expressions are built with: `polars`, or another with the same functions."""
OPERAND = "..."
"""The operand in words of an operation that is refused before it has any."""
T = TypeVar("T")


class RowOperation(Operation):
    """One operation whose result in a row depends on that row alone.

    A subclass states four things: the domain of its result, how it is lowered, its words in a plan,
    and examples. Laws run each example on random frames. They check that the result is row-wise,
    never raises, has the inferred type, lies in the inferred interval, and is null or NaN only
    where inference allows it.

    Guarantee
    ---------
    `lower` gives a *total* row-wise function: for any values in a row, it yields a value or null,
    never an error, and rows do not influence each other.
    """

    __slots__ = ()

    summary: str
    """One line for documentation, with what differs from plain Polars, if anything."""
    examples: tuple[str, ...]
    """Polars expressions over the laws' frame, as text."""
    reads: tuple[str, ...]
    """The functions of Polars that are read into it, with their groups: ``"StringExpr.Slice"``;
    ``"Operator.Plus"`` and ``"Node.Cast"`` are operators and other nodes.
    """

    def of(self, *operands: Operand) -> Call:
        """Its call on some operands; a Series of one value becomes a constant."""
        return Call(self, tuple(map(operand, operands)))

    def reference(self, *values: Any, **_: Any) -> Any:
        """The result in plain Python, from a row's values; none is null.

        Laws compare the two on random frames. Where an operation has none, tests know its meaning.
        """
        raise NotImplementedError

    @abstractmethod
    def domain(self, args: Sequence[Domain]) -> Domain:
        """The domain of the result, from the domains of the operands.

        Raises
        ------
        UnsupportedOperation
            When the operation is not defined for these types; the caller adds the expression.
        """

    @abstractmethod
    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        """The same operation as a total expression of the engine."""

    @abstractmethod
    def words(self, args: Sequence[str]) -> str:
        """The operation as an analyst would write it, for plans and errors."""


class PlainOperation(RowOperation):
    """An operation without constants; all that it is follows from its name."""

    __slots__ = ()

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return ()

    def __hash__(self) -> int:
        return hash(self.name)

    def read(self, operands: Sequence[Operand], params: Any) -> Tree:
        """What a function of Polars means, from its operands and its parameters in Polars' form."""
        return self.of(*operands)


class ParametricOperation(RowOperation):
    """An operation with constants, which are its fields.

    They are checked once, when it is made: for the types of the fields, and by `check`.

    Raises
    ------
    TypeError
        When one is not of its field's type. No expression of today's Polars leads to that; the
        reader refuses the function by its name then.
    DPFrameError
        When they make no sense.
    """

    __slots__ = ()

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return tuple((name, getattr(self, name)) for name in _sorted_fields(type(self)))

    def __post_init__(self) -> None:
        for name, check in _checks(type(self)):
            check(name, getattr(self, name))
        try:
            self.check()
        except DPFrameError as error:
            with suppress(LookupError, ValueError):  # where it has a fixed number of operands
                error.at(self.words([OPERAND] * 3))
            raise

    def check(self) -> None:
        """Refuse constants that make no sense."""

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        """What a function of Polars means, from its operands and its parameters in Polars' form.

        Parameters of another form than today's may raise what Python raises; the caller refuses the
        function by its name then. Operations that others are read into need none.
        """
        raise LookupError(cls.name)


Kind: TypeAlias = "PlainOperation | type[ParametricOperation]"
"""An operation without constants, or all those with one meaning and different constants."""


@dataclass_transform(frozen_default=True, eq_default=False)
def operation(cls: type[T]) -> type[T]:
    """The class as a frozen value whose fields are its constants."""
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


def on(columns: str, call: str) -> tuple[str, ...]:
    """Examples of one call, on columns of the laws' frame whose names are separated by spaces."""
    return tuple(f'pl.col("{column}").{call}' for column in columns.split())


@cache
def _sorted_fields(kind: Any) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in fields(kind)))


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {value!r}")


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not -(2**63) <= value < 2**63:
        raise TypeError(f"{name} must fit in 64 bits")


def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value!r}")


def _texts(name: str, values: object) -> None:
    if not isinstance(values, tuple):
        raise TypeError(f"{name} must be a list of texts")
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of texts, and {value!r} is not one")


def _constants(name: str, values: object) -> None:
    if not isinstance(values, tuple):
        raise TypeError(f"{name} must be a list of constants")


def _type(name: str, value: object) -> None:
    if not isinstance(value, DType):
        raise TypeError(f"{name} must be a type, not {value!r}")


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise TypeError(f"{name} must fit in 64 bits")


def _anything(name: str, value: object) -> None:
    """A constant that its operation checks itself."""


def _or_none(check: Callable[[str, object], None]) -> Callable[[str, object], None]:
    def checked(name: str, value: object) -> None:
        if value is not None:
            check(name, value)

    return checked


_BY_TYPE: dict[object, Callable[[str, object], None]] = {
    "str": _text,
    "str | None": _or_none(_text),
    "int": _whole,
    "int | None": _or_none(_whole),
    "bool": _flag,
    "Closed": _text,
    "tuple[str, ...]": _texts,
    "tuple[Scalar, ...]": _constants,
    "tuple[float, ...]": _constants,
    "DType": _type,
    "DType | None": _or_none(_type),
    "float | None": _or_none(_number),
    "Scalar": _anything,
}
"""The checks of a constant, by the type of its field."""


@cache
def _checks(kind: Any) -> tuple[tuple[str, Callable[[str, object], None]], ...]:
    for field in fields(kind):
        if field.type not in _BY_TYPE:
            raise TypeError(f"no check is known for {kind.__name__}.{field.name}: {field.type}")
    return tuple((field.name, _BY_TYPE[field.type]) for field in fields(kind))
