"""Reads Polars expressions into trees.

This package knows how Polars writes expressions down, and each row operation which functions it is
read from. Together these are an allow-list: what no operation reads is refused by its Polars name,
so a function that a future Polars adds cannot slip through. Nothing is executed on data; schemas
are all that is known here.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

import polars as pl

from dpframe.core.dtypes import (
    DATE,
    FLOAT32,
    FLOAT64,
    NULL,
    STRING,
    TIME,
    DType,
    datetime_type,
    duration_type,
    enum_type,
)
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.hints import (
    function_key,
    function_name,
    node_name,
    parts,
    refuse,
    refuse_unserialisable,
)
from dpframe.parse.selectors import Schema, expand, output_name
from dpframe.parse.size import (
    MAX_DEPTH,
    MAX_NODES,
    SQL,
    TooLargeError,
    given,
    marked,
    readable,
    serialised,
    too_large,
)
from dpframe.parse.sql import COMPARISONS, adapted, dtype_of, standing
from dpframe.rows.constants import constant, decimal_literal, from_physical, nearest_float32
from dpframe.rows.failures import FAILURES, unexpected
from dpframe.rows.fold import words
from dpframe.rows.operation import OPERAND, Node, Operand, Values, operand
from dpframe.rows.polars_dtypes import TIME_UNITS, from_polars, read_dtype, read_ipc, read_zone
from dpframe.rows.registry import READERS
from dpframe.rows.suggest import unknown_column

# Constants: from Polars' form to `Literal`, and lists of constants to `Values`.


def read_literal(body: Node) -> Literal | Values:
    """The constant in a ``Literal`` node."""
    if not isinstance(body, Mapping) or len(body) != 1:
        raise _not_a_scalar()
    [(kind, value)] = body.items()
    match kind:
        case "Scalar":
            return _scalar(value)
        case "Dyn" if {*value} & {"Int", "Float", "Str"}:  # without a type
            return _scalar(value)
        case "Series":
            series = read_ipc(value)
            if len(series) == 1 and isinstance(series.dtype, pl.List):  # one list means its values
                inner = series.item()
                series = inner if inner is not None else pl.Series([], dtype=series.dtype.inner)
            return _values(series)
        case _:
            raise _not_a_scalar()


def _whole(value: int | bytes) -> int:
    """A whole number; 128 bits are bytes where there are no larger numbers."""
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else int(value)


def _scalar(node: Node) -> Literal | Values:
    [(kind, value)] = node.items()
    match kind:
        case "Null":
            return Literal(None, NULL if value == "Null" else read_dtype(value))
        case "Boolean":
            return Literal(bool(value), DType("Boolean"))
        case "Int":
            return constant(_whole(value))
        case "Str" | "String" | "StringOwned":
            return Literal(str(value), STRING)
        case "Binary" | "BinaryOwned":
            return Literal(bytes(value), DType("Binary"))
        case "Float32":
            return Literal(nearest_float32(float(value)), DType("Float32"))
        case "Float" | "Float64":
            return Literal(float(value), FLOAT64)
        case "Decimal":  # the oldest Polars leaves out the precision
            digits, *precision, scale = value
            dtype = DType("Decimal", precision=precision[0] if precision else 38, scale=scale)
            return decimal_literal(_whole(digits), dtype)
        case "Date" | "Time":
            return from_physical(int(value), DATE if kind == "Date" else TIME)
        case "Datetime" | "DatetimeOwned":
            unit, zone = TIME_UNITS[value[1]], read_zone(value[2])
            return from_physical(int(value[0]), datetime_type(unit, zone))
        case "Duration":
            return from_physical(int(value[0]), duration_type(TIME_UNITS[value[1]]))
        case "Enum" | "EnumOwned":
            names = tuple(read_ipc(value["categories"]).to_list())
            return Literal(names[value["value"]], enum_type(names))
        case "Categorical" | "CategoricalOwned":
            return Literal(str(value["value"]), DType("Categorical"))
        case "List":
            return _values(read_ipc(value))
        case _ if DType(kind).is_integer:
            return Literal(_whole(value), DType(kind))
        case _:
            raise _not_a_scalar()


def _values(series: pl.Series) -> Values:
    dtype = from_polars(series.dtype)
    if dtype.is_nested or not dtype.is_known:
        raise _not_a_scalar()
    if dtype.name in ("Datetime", "Duration", "Time"):
        physical = series.to_physical().cast(pl.Int64).to_list()
        values = tuple(None if p is None else from_physical(p, dtype).value for p in physical)
    else:
        values = tuple(series.to_list())
    return Values(values, dtype)


def _not_a_scalar() -> UnsupportedOperation:
    return UnsupportedOperation(
        "a constant that is not a single number, text, Boolean, date or time is not supported",
        remedy=("use one constant", "compare with several values: .is_in([...])"),
    )


# Decodes the MessagePack form of an expression.
#
# JSON has no NaN and no infinities: Polars writes ``null`` for all three. Its other form keeps them
# and has the same structure, so it is read instead when a float is missing.


_FIXED = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h",
    0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(data: bytes) -> Node:
    """The one value in `data`; maps become dicts and binary strings become bytes."""
    try:
        value, end = _value(data, 0)
    except (IndexError, struct.error):
        raise ValueError("not a MessagePack value") from None
    if end != len(data):
        raise ValueError("bytes after a MessagePack value")
    return value


def _value(data: bytes, at: int) -> tuple[Node, int]:
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag in _CONSTANTS:
        return _CONSTANTS[tag], at
    if tag in _FIXED:
        return _number(data, at, _FIXED[tag])
    if tag < 0xC0:
        read = _map if tag < 0x90 else _array if tag < 0xA0 else _text
        return read(data, at, tag & (0x0F if tag < 0xA0 else 0x1F))
    if tag not in _SIZED:
        raise ValueError("an extension type of MessagePack")
    reader, form = _SIZED[tag]
    size, at = _number(data, at, form)
    return reader(data, at, size)


def _number(data: bytes, at: int, form: str) -> tuple[Node, int]:
    return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)


def _bytes(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(data):
        raise IndexError
    return data[at : at + size], at + size


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    raw, at = _bytes(data, at, size)
    return raw.decode(), at


def _array(data: bytes, at: int, size: int) -> tuple[list[Node], int]:
    items = []
    for _ in range(size):
        item, at = _value(data, at)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, size: int) -> tuple[dict[Node, Node], int]:
    entries = {}
    for _ in range(size):
        key, at = _value(data, at)
        entries[key], at = _value(data, at)
    return entries, at


_SIZED: Mapping[int, tuple[Callable[[bytes, int, int], tuple[Node, int]], str]] = {
    0xC4: (_bytes, ">B"), 0xC5: (_bytes, ">H"), 0xC6: (_bytes, ">I"),
    0xD9: (_text, ">B"), 0xDA: (_text, ">H"), 0xDB: (_text, ">I"),
    0xDC: (_array, ">H"), 0xDD: (_array, ">I"), 0xDE: (_map, ">H"), 0xDF: (_map, ">I"),
}  # fmt: skip
"""What reads a value whose size is written before it, and the form of that size."""


T = TypeVar("T")
Each: TypeAlias = "Callable[[Node, Schema], Tree]"
_SEVERAL_OUTPUTS = ('"Selector"', '"SelectFields"')
_MISSING_FLOATS = ('"Float":null', '"Float32":null', '"Float64":null')


def read(
    expression: object,
    schema: Schema,
    *,
    what: str = "expression",  # What it is used for, for messages: "filter", "group key"
    each: Each | None = None,  # What reads one column's node; `tree_of` where it is left out
) -> tuple[Named, ...]:
    """The trees of an expression, one for each column that it makes. A str is a column's name, and
    any other Python scalar a constant.
    """
    parsed = _as_expression(expression, what)
    reading = each or tree_of

    def found(nodes: Sequence[Node], several: bool) -> tuple[Named, ...]:
        outputs = tuple(Named(output_name(n), reading(n, schema)) for n in nodes)
        if several and outputs:
            name, count = Counter(output.name for output in outputs).most_common(1)[0]
            if count > 1:
                raise UnsupportedOperation(
                    f"the expression makes {count} columns named {name!r}",
                    remedy='write .name.suffix("_x") or .name.prefix("x_") for several columns',
                )
        return outputs

    return read_nodes(parsed, schema, found, what=what)


def read_nodes(
    expression: pl.Expr,
    schema: Schema,
    found: Callable[[Sequence[Node], bool], T],
    *,
    what: str = "expression",
) -> T:
    """What `found` makes of an expression, given as Polars' nodes, one for each column that it
    makes, and whether a selection of columns made them. What it refuses is refused with its place.
    """
    try:
        text = serialised(expression)
    except TooLargeError:
        raise too_large(what) from None
    except DPFrameError:
        raise
    except Exception:
        shown = str(expression)
        raise refuse_unserialisable(shown).at(_place(shown, what)) from None
    try:
        if any(sign in text for sign in _MISSING_FLOATS):
            node = decode(expression.meta.serialize(format="binary"))
        else:
            node = json.loads(text)
        several = any(sign in text for sign in _SEVERAL_OUTPUTS)
        return found(expand(node, schema) if several else [node], several)
    except (TooLargeError, RecursionError):
        raise too_large(what) from None
    except DPFrameError as error:
        raise error.at(_where(expression, text, what)) from None
    except FAILURES as error:
        raise unexpected("read", error).at(_where(expression, text, what)) from None


def tree_of(node: Node, schema: Schema) -> Tree:
    """The tree of one node without selections."""
    return Reader(schema).tree(node)


def _as_expression(value: object, what: str) -> pl.Expr:
    if isinstance(value, pl.Expr):
        return value
    if isinstance(value, str):
        return pl.col(value)
    try:
        made = pl.lit(value)
        made.meta.serialize(format="json")  # Polars 1.32 makes constants of objects at times
        return made
    except Exception:
        raise UnsupportedOperation(
            f"a {type(value).__name__} is not an expression",
            where=what,
            remedy="use a Polars expression, a column name or a constant",
        ) from None


def _where(expression: pl.Expr, text: str, what: str) -> str:
    if len(text) > 20_000:
        return what
    try:
        return _place(str(expression), what)
    except FAILURES:  # Polars panics where it writes some Decimals
        return what


def _place(shown: str, what: str, limit: int = 240) -> str:
    line = " ".join(readable(shown).split())
    line = line if len(line) <= limit else line[: limit - 3] + "..."
    return line if what == "expression" else f"{what}: {line}"


def _name(key: str, params: Node) -> str:
    """What the analyst wrote for a function or an operator."""
    if key.startswith("Operator."):
        op = key.removeprefix("Operator.")
        return "truncdiv" if op == "TruncDivide" else f"the operator {op}"
    named = {"Node.Ternary": "when", "Node.Cast": "an unknown kind of cast"}
    return named[key] if key in named else function_name(key, params)


class Reader:
    """Reads one expanded expression, counting its parts."""

    __slots__ = ("_nodes", "_schema", "_sql")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._nodes = 0
        self._sql = False

    def tree(self, node: Node) -> Tree:
        return operand(self._node(node, 0))

    def _node(self, node: Node, depth: int) -> Operand:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise TooLargeError
        if not isinstance(node, dict) or len(node) != 1:
            raise refuse(node_name(node, None) if isinstance(node, str) else "an unknown function")
        [(kind, body)] = node.items()
        match kind:
            case "Column":
                return self._column(body)
            case "Literal":
                return standing(read_literal(body)) if self._sql else read_literal(body)
            case "BinaryExpr" | "Function" | "Ternary" | "Cast":
                return self._call(kind, body, depth + 1)
            case "Alias":
                return self._alias(body, depth)
            case "KeepName":
                return self._node(body, depth)
            case "RenameAlias":
                return self._node(body["expr"], depth)
            case _:
                raise refuse(node_name(kind, body))

    def _alias(self, body: Node, depth: int) -> Operand:
        """An expression with a name, which may have a special meaning: a parameter, or written in
        SQL."""
        parameter = marked(body[1])
        if parameter is not None:
            return given(parameter)
        before, self._sql = self._sql, self._sql or body[1] == SQL
        try:
            return self._node(body[0], depth)
        finally:
            self._sql = before

    def _column(self, name: str) -> Operand:
        if name not in self._schema:
            parameter = marked(name)
            if parameter is not None:
                return given(parameter)
            raise unknown_column(name, self._schema)
        return Column(name)

    def _call(self, kind: str, body: Node, depth: int) -> Tree:
        """What a function means, where there is an operation that it is read into; else it is
        refused by its name.
        """
        params: Node = body if kind == "Cast" else None
        key = f"Operator.{body['op']}" if kind == "BinaryExpr" else f"Node.{kind}"
        if kind == "Function":
            key, params = function_key(body["function"])
        if key == "AsStruct":
            params = [output_name(node) for node in body["input"]]
        reader = READERS.get(key)
        if reader is None:
            raise refuse(_name(key, params))
        nodes = parts(kind, body)
        operands: Sequence[Operand] = [self._node(node, depth) for node in nodes]
        try:
            if key in COMPARISONS:
                operands = self._in_float32(nodes, operands)
            if self._sql:
                found = adapted(key, operands, params, self._schema)
                if isinstance(found, Column | Literal | Call):
                    return found
                operands = found
            return reader(operands, params)
        except DPFrameError as error:
            if error.where is not None and error.where.startswith(OPERAND):
                with suppress(
                    DPFrameError
                ):  # an operation that was made is refused with its operand
                    place = error.where.removeprefix(OPERAND)
                    error.where = words(operand(operands[0])) + place
            raise error from None
        except (LookupError, TypeError, ValueError, AttributeError):  # a form of a later Polars
            raise refuse(_name(key, params)) from None

    def _in_float32(self, nodes: Sequence[Node], operands: Sequence[Operand]) -> Sequence[Operand]:
        """The operands of a comparison. As in Polars, a number without a type is rounded to Float32
        where everything else that is compared has that type.
        """
        untyped = [_is_untyped_number(node) for node in nodes]
        if not any(untyped):
            return operands
        rounded = list(operands)
        for place, (value, is_free) in enumerate(zip(operands, untyped, strict=True)):
            if not is_free and (
                isinstance(value, Values) or dtype_of(value, self._schema) != FLOAT32
            ):
                return operands
            match value:
                case Literal(int() | float() as number) if is_free and float(number) == number:
                    rounded[place] = Literal(nearest_float32(float(number)), FLOAT32)
        return rounded


def _is_untyped_number(node: Node) -> bool:
    match node:
        case {"Literal": {"Dyn": {"Int": _} | {"Float": _}}}:
            return True
        case _:
            return False
