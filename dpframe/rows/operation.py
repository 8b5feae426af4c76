"""What a row-wise operation is: one class with everything about it, and how it is read."""

from __future__ import annotations

import inspect
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import polars as pl

from dpframe.core.dtypes import Domain, DType, Scalar
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Constant, Literal, Operation, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation

# Text in the form for plans and messages.

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def quoted(text: str) -> str:
    """Text as an analyst would write it, with odd characters escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def snake(name: str) -> str:
    """``"CumSum"`` as ``"cum_sum"``."""
    return _CAMEL.sub("_", name).lower()


# What a function of Polars is given: operands, and the constants among them.


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
    """The constant that an operation needs. Raises `UnsupportedOperation` when it is computed from
    columns.
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


# Operations that are one method of Polars, with constants.

_CONSTANTS: Mapping[str, Callable[[Operand, str], Any]] = MappingProxyType(
    {"str": text, "str | None": text_or_none, "int": integer, "int | None": integer_or_none}
)
"""What reads a constant from an operand, by the type of its field."""


def _fields(kind: Any) -> tuple[Any, ...]:
    """The constants of a class or a value that `operation` has made a dataclass."""
    return fields(kind)


class MethodOperation(ParametricOperation):
    """One method of Polars, on one operand, with constants.

    Everything follows from the class statement. ``class StripPrefix`` with the `namespace` ``str``
    and the field ``prefix: str`` is ``.str.strip_prefix(prefix)``:

    - `name` is ``str_strip_prefix``, and `reads` has ``StripPrefix`` of each of its `groups`. Where
      the name of the class begins with the namespace, it counts once: ``ListGet`` is ``list_get``.
    - `summary` is the first paragraph of the docstring.
    - `read` takes constants from the operands after the first one, in the order of the fields. The
      fields for which no operand is left are parameters of Polars, with the same names.
    - `words` and `apply` call the method with the constants in this order. A flag has its keyword.

    A subclass states what differs. One without examples is a base of others.
    """

    __slots__ = ()
    namespace: ClassVar[str] = ""
    groups: ClassVar[tuple[str, ...]] = ()
    """The groups of Polars' functions that have one of this name."""
    called: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What refusals call a constant, where its field has a name that says little."""
    method: str
    """With its namespace: ``"str.strip_prefix"``."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        if "examples" not in own:
            return
        prefix = cls.namespace.capitalize()
        camel = cls.__name__
        if prefix and camel.removeprefix(prefix)[:1].isupper():  # ListGet, but not StripChars
            camel = camel.removeprefix(prefix)
        if "name" not in own:
            cls.name = "_".join(filter(None, (cls.namespace, snake(camel))))
        if "reads" not in own:
            cls.reads = tuple(f"{group}.{camel}" for group in cls.groups)
        if "summary" not in own:
            cls.summary = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        if "method" not in own:
            cls.method = cls.name.replace("_", ".", 1) if cls.namespace else cls.name

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Any) -> Tree:
        source, *given = operands
        constants, left = _fields(cls)[: len(given)], _fields(cls)[len(given) :]
        values = {
            field.name: _CONSTANTS[field.type](
                value, f"the {cls.called.get(field.name, field.name)} of {cls.method}"
            )
            for field, value in zip(constants, given, strict=True)
        }
        if left:
            named = cls.parameters(params)
            values |= {field.name: named[field.name] for field in left}
        return cls(**values).of(source)

    @classmethod
    def parameters(cls, params: Any) -> Mapping[str, Any]:
        """Constants by their names, from the parameters in Polars' form; one may stand alone."""
        return params if isinstance(params, Mapping) else {_fields(cls)[-1].name: params}

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        """The method of an operand that has the type which it takes."""
        values = {field.name: getattr(self, field.name) for field in _fields(self)}
        flags = {name: value for name, value in values.items() if isinstance(value, bool)}
        others = (value for name, value in values.items() if name not in flags)
        result: pl.Expr = attrgetter(self.method)(operand)(*others, **flags)
        return result

    def arguments(self) -> str:
        """The constants between the parentheses, without those that are as if left out."""
        shown = []
        for field in _fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool):
                shown += [f"{field.name}=True"] * value
            elif value is not None:
                shown.append(quoted(value) if isinstance(value, str) else repr(value))
        return ", ".join(shown)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}({self.arguments()})"


# Operations that are written as an operator.


class Infix(PlainOperation):
    """An operator between two operands."""

    __slots__ = ()

    symbol: ClassVar[str]

    def words(self, args: Sequence[str]) -> str:
        return f"({args[0]} {self.symbol} {args[1]})"
