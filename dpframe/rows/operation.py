"""What a row-wise operation is: one class with everything about it, and how it is read."""

from __future__ import annotations

import inspect
import json
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import polars as pl

from dpframe.core.dtypes import Domain, DType, Scalar
from dpframe.core.parameters import Parameter
from dpframe.core.tree import Call, Constant, Literal, Operation, Tree
from dpframe.errors import DPFrameError, InvalidBounds, UnsupportedOperation

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
Node: TypeAlias = "Any"
"""A part of an expression in Polars' JSON form; in an unknown form Python raises an error."""
Reader: TypeAlias = "Callable[[Sequence[Operand], Node], Tree]"
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


def constant(value: Operand, what: str, kind: str = "Scalar") -> Any:
    """The constant that an operation needs, of the type of a field. Raises `UnsupportedOperation`
    when it is computed from columns, or of another type.
    """
    tree = operand(value)
    if not isinstance(tree, Literal):
        raise UnsupportedOperation(
            f"{what} must be a constant, not a column or an expression",
            remedy=(
                "write a constant",
                "write one pl.when(...).then(...) branch for each constant",
            ),
        )
    require_type(tree.value, kind, what)
    return tree.value


def _are(kind: type, values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)


_TYPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "Closed": (lambda value: isinstance(value, str), "a text"),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), "an integer"),
    "float": (
        lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
        "a number",
    ),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "DType": (lambda value: isinstance(value, DType), "a type"),
    "tuple[str, ...]": (lambda value: _are(str, value), "a list of texts"),
    "tuple[float, ...]": (lambda value: _are(object, value), "a list of numbers"),
    "tuple[Scalar, ...]": (lambda value: _are(object, value), "a list of constants"),
    "Scalar": (lambda value: True, "a constant"),  # which its operation checks itself
}
"""Whether a constant is of the type of a field, and what such constants are called."""


def require_type(value: object, kind: str, what: str) -> None:
    """Refuse a constant that is not of the type of its field, or an integer beyond 64 bits; one
    that is used as a float may be as large as floats are.
    """
    if value is None and kind.endswith(" | None"):
        return
    is_one, named = _TYPES[kind.removesuffix(" | None")]
    if not is_one(value):
        raise UnsupportedOperation(f"{what} is not {named}", remedy=f"write {named}")
    is_real = kind.startswith("float")
    if isinstance(value, int) and kind != "Scalar":
        fits = abs(value) <= sys.float_info.max if is_real else -(2**63) <= value < 2**63
        if not fits:
            raise InvalidBounds(
                f"{what} does not fit in {'Float64' if is_real else 'Int64'}",
                remedy="use a number between -2**63 and 2**63 - 1",
            )


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
    method: str
    """What Polars' method is called, with its namespace: ``"str.strip_prefix"``."""

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
        """The domain of the result, from the domains of the operands. Raises `UnsupportedOperation`
        when the operation is not defined for these types; the caller adds the expression.
        """

    @abstractmethod
    def lower(self, ns: Namespace, args: Sequence[pl.Expr], domains: Sequence[Domain]) -> pl.Expr:
        """The same operation as a total expression of the engine."""


@dataclass_transform(frozen_default=True, eq_default=False)
def operation(cls: type[T]) -> type[T]:
    """The class as a frozen value whose fields are its constants."""
    return dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)


@operation
class PlainOperation(RowOperation):
    """One of several operations that differ in a few values. These are the fields of their class,
    and its name identifies it.
    """

    name: str
    method: str
    reads: tuple[str, ...]
    summary: str
    examples: tuple[str, ...]

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return ()

    def __hash__(self) -> int:
        return hash(self.name)

    def read(self, operands: Sequence[Operand], params: Node) -> Tree:
        """What a function of Polars means, from its operands and its parameters in Polars' form."""
        return self.of(*operands)

    def words(self, args: Sequence[str]) -> str:
        return f"{args[0]}.{self.method}()"


@cache
def _fields(kind: Any) -> tuple[Field[object], ...]:
    """The constants of a class that `operation` has made a dataclass."""
    return fields(kind)


class RowMethod(RowOperation):
    """An operation whose fields are its constants: one method of Polars, if it says nothing else.

    All else follows from the class statement. ``class StripPrefix`` with the `namespace` ``str``
    and the field ``prefix: str`` is ``.str.strip_prefix(prefix)``:

    - `name` is ``str_strip_prefix``, and `reads` has ``StripPrefix`` of each of its `groups`. Where
      the name of the class begins with the namespace, it counts once: ``ListGet`` is ``list_get``.
    - `summary` is the first paragraph of the docstring.
    - `read` takes constants from the operands after the first `arity`, in the order of the fields.
      The fields for which no operand is left are parameters of Polars, with the same names.
    - `words` and `apply` call the method with the constants in this order. A flag has its keyword,
      and words leave out a constant that has its default.
    - A constant is checked once, when the operation is made: for the type of its field, and by
      `check`.

    A subclass states what differs. One without examples is a base of others.
    """

    __slots__ = ()
    namespace: ClassVar[str] = ""
    groups: ClassVar[tuple[str, ...]] = ("",)
    """The groups of Polars' functions that have one of this name; ``""`` for those without one."""
    arity: ClassVar[int | None] = 1
    """How many operands are expressions; None for one or more."""
    called: ClassVar[Mapping[str, str]] = {}
    """What refusals call a constant, where its field has a name that says little."""
    keywords: ClassVar[Mapping[str, str]] = {}
    """The keywords of constants that are written with one, in addition to flags."""

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
            cls.reads = tuple(f"{group}.{camel}".removeprefix(".") for group in cls.groups)
        if "summary" not in own:
            cls.summary = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        if "method" not in own:
            cls.method = cls.name.replace("_", ".", 1) if cls.namespace else cls.name

    @property
    def constants(self) -> tuple[tuple[str, Constant], ...]:
        return tuple((name, getattr(self, name)) for name in _sorted_names(type(self)))

    def __post_init__(self) -> None:
        for field in _fields(type(self)):
            kind = str(field.type)
            if kind.removesuffix(" | None") not in _TYPES:
                raise TypeError(f"no check is known for {type(self).__name__}.{field.name}: {kind}")
            require_type(getattr(self, field.name), kind, self._what(field.name))
        try:
            self.check()
        except DPFrameError as error:
            with suppress(LookupError, ValueError):  # where it has a fixed number of operands
                error.at(self.words([OPERAND] * (self.arity or 3)))
            raise

    def check(self) -> None:
        """Refuse constants that make no sense: numbers and lists of them with `InvalidBounds`,
        texts, types and names that mean nothing with `UnsupportedOperation`.
        """

    @classmethod
    def _what(cls, name: str) -> str:
        return f"the {cls.called.get(name, name)} of {cls.method}"

    @classmethod
    def read(cls, operands: Sequence[Operand], params: Node) -> Tree:
        """What a function of Polars means, from its operands and its parameters in Polars' form.

        Parameters of another form than today's may raise what Python raises; the caller refuses the
        function by its name then.
        """
        if cls.arity is None and not operands:
            raise UnsupportedOperation(
                f"{cls.name} needs at least one column, and none is selected",
                remedy="name a column",
            )
        count = len(operands) if cls.arity is None else cls.arity
        sources, given = operands[:count], operands[count:]
        if len(sources) < count:
            raise LookupError(cls.name)
        read, left = _fields(cls)[: len(given)], _fields(cls)[len(given) :]
        values = {
            field.name: constant(value, cls._what(field.name))
            for field, value in zip(read, given, strict=True)
        }
        if left:
            named = cls.parameters(params)
            values |= {field.name: named[field.name] for field in left}
        return cls(**values).of(*sources)

    @classmethod
    def parameters(cls, params: Node) -> Mapping[str, object]:
        """Constants by their names, from the parameters in Polars' form; one may stand alone."""
        return params if isinstance(params, Mapping) else {_fields(cls)[-1].name: params}

    def apply(self, ns: Namespace, operand: pl.Expr) -> pl.Expr:
        """The method of an operand that has the type which it takes."""
        values = {field.name: getattr(self, field.name) for field in _fields(type(self))}
        flags = {name: value for name, value in values.items() if isinstance(value, bool)}
        others = (value for name, value in values.items() if name not in flags)
        result: pl.Expr = attrgetter(self.method)(operand)(*others, **flags)
        return result

    def arguments(self) -> list[str]:
        """The constants between the parentheses."""
        shown = []
        for field in _fields(type(self)):
            value = getattr(self, field.name)
            if value != field.default:
                text = quoted(value) if isinstance(value, str) else str(value)
                keyword = self.keywords.get(field.name, "")
                keyword = field.name if isinstance(value, bool) else keyword
                shown.append(f"{keyword}={text}" if keyword else text)
        return shown

    def words(self, args: Sequence[str]) -> str:
        first, *others = args
        return f"{first}.{self.method}({', '.join([*others, *self.arguments()])})"


class Infix(RowMethod):
    """An operator between two operands."""

    __slots__ = ()
    groups = ("Operator",)
    arity = 2
    symbol: ClassVar[str]

    def words(self, args: Sequence[str]) -> str:
        return f"({args[0]} {self.symbol} {args[1]})"


class Function(RowMethod):
    """A function of several operands."""

    __slots__ = ()
    arity: ClassVar[int | None] = None

    def words(self, args: Sequence[str]) -> str:
        return f"{self.name}({', '.join([*args, *self.arguments()])})"


Kind: TypeAlias = "PlainOperation | type[RowMethod]"
"""An operation without constants, or all those with one meaning and different constants."""


@cache
def _sorted_names(kind: object) -> tuple[str, ...]:
    return tuple(sorted(field.name for field in _fields(kind)))


# Examples, over the columns of the frame on which laws run them.

_BARE = re.compile(
    r'"[^"]*"|(?<![\w.])(?:i8|i32|i64b?|u8|u32|u64|f32|f64b?|dec|bb?|sb?|e|d|dt(?:b|ms|z)?|t|durb?|'
    r"li|lf|ls|arr|st)(?![\w(=])"
)
"""A text, or the name of a column outside of one."""


def on(columns: str, call: str) -> tuple[str, ...]:
    """Examples of one call, on columns whose names are separated by spaces."""
    return tuple(f'pl.col("{column}").{call}' for column in columns.split())


def spell_out(examples: str) -> tuple[str, ...]:
    """Examples separated by semicolons, in which ``i64`` stands for ``pl.col("i64")``."""

    def column(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else f'pl.col("{found[0]}")'

    return tuple(_BARE.sub(column, example) for example in examples.split("; "))
