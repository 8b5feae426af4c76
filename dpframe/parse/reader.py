"""Reads Polars expressions into trees.

This package is the only place that knows how Polars writes expressions down. It is an allow-list:
what has no entry here is refused by its Polars name, so a function that a future Polars adds cannot
slip through. Nothing is executed on data; schemas are all that is known here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.build import Operand, make, operand
from dpframe.parse.dtypes import read_dtype_expression
from dpframe.parse.functions import FUNCTIONS
from dpframe.parse.hints import (
    function_key,
    function_name,
    node_name,
    refuse,
    refuse_unserialisable,
)
from dpframe.parse.literals import cast_literal, read_literal
from dpframe.parse.messagepack import decode
from dpframe.parse.names import output_name
from dpframe.parse.selectors import expand, unknown_column
from dpframe.parse.size import MAX_DEPTH, MAX_NODES, TooLargeError, serialised, too_large
from dpframe.rows.failures import FAILURES, unexpected
from dpframe.rows.logic import Or
from dpframe.rows.null_checks import IsNotNan, IsNull

_BINARY = {
    "Plus": "add",
    "Minus": "sub",
    "Multiply": "mul",
    "TrueDivide": "truediv",
    "FloorDivide": "floordiv",
    "Modulus": "mod",
    "Eq": "eq",
    "NotEq": "ne",
    "Lt": "lt",
    "LtEq": "le",
    "Gt": "gt",
    "GtEq": "ge",
    "EqValidity": "eq_missing",
    "NotEqValidity": "ne_missing",
    "And": "and",
    "LogicalAnd": "and",
    "Or": "or",
    "LogicalOr": "or",
    "Xor": "xor",
}
_OTHER_OPERATORS = {"TruncDivide": "truncdiv"}
_SEVERAL_OUTPUTS = ('"Selector"', '"SelectFields"')
_MISSING_FLOATS = ('"Float":null', '"Float32":null', '"Float64":null')


def read(
    expression: Any, schema: Mapping[str, pl.DataType], *, what: str = "expression"
) -> tuple[Named, ...]:
    """The trees of an expression, one for each column that it makes.

    Parameters
    ----------
    expression
        A Polars expression; a str is a column's name, and any other Python scalar a constant.
    schema
        Names and types of the frame's columns.
    what
        What the expression is used for, for messages: ``"filter"``, ``"group key"``.

    Raises
    ------
    UnsupportedOperation
        For everything that is not known to be row-wise and total, by its Polars name.
    UnknownColumn
        For a column that `schema` does not have.
    InvalidBounds
        For bounds, breaks or replacements that contradict themselves.
    """
    parsed = _as_expression(expression, what)
    try:
        text = _serialise(parsed, what)
    except TooLargeError:
        raise too_large(what) from None
    try:
        node = _load(text, parsed)
        several = any(sign in text for sign in _SEVERAL_OUTPUTS)
        nodes = expand(node, schema) if several else [node]
        outputs = tuple(Named(output_name(n), _Reader(schema).tree(n)) for n in nodes)
        if several and outputs:
            _check_distinct(outputs)
        return outputs
    except (TooLargeError, RecursionError):
        raise too_large(what) from None
    except DPFrameError as error:
        raise error.at(_where(parsed, text, what)) from None
    except FAILURES as error:
        raise unexpected("read", error).at(_where(parsed, text, what)) from None


def _as_expression(value: Any, what: str) -> pl.Expr:
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


def _serialise(expression: pl.Expr, what: str) -> str:
    try:
        return serialised(expression)
    except (DPFrameError, TooLargeError):
        raise
    except Exception:
        shown = str(expression)
        raise refuse_unserialisable(shown).at(_place(shown, what)) from None


def _load(text: str, expression: pl.Expr) -> Any:
    if any(sign in text for sign in _MISSING_FLOATS):
        return decode(expression.meta.serialize(format="binary"))
    return json.loads(text)


def _where(expression: pl.Expr, text: str, what: str) -> str:
    if len(text) > 20_000:
        return what
    try:
        return _place(str(expression), what)
    except FAILURES:  # Polars panics where it writes some Decimals
        return what


def _place(shown: str, what: str, limit: int = 240) -> str:
    line = " ".join(shown.split())
    line = line if len(line) <= limit else line[: limit - 3] + "..."
    return line if what == "expression" else f"{what}: {line}"


def _check_distinct(outputs: tuple[Named, ...]) -> None:
    name, count = Counter(output.name for output in outputs).most_common(1)[0]
    if count > 1:
        raise UnsupportedOperation(
            f"the expression makes {count} columns named {name!r}",
            remedy="use .name.suffix() or .name.prefix() instead of .alias()",
        )


class _Reader:
    """Reads one expanded expression, counting its parts."""

    __slots__ = ("_nodes", "_schema")

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = schema
        self._nodes = 0

    def tree(self, node: Any) -> Tree:
        return operand(self._node(node, 0))

    def _node(self, node: Any, depth: int) -> Operand:
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
                return read_literal(body)
            case "BinaryExpr":
                return self._binary(body, depth + 1)
            case "Function":
                return self._function(body, depth + 1)
            case "Ternary":
                return self._ternary(body, depth + 1)
            case "Cast":
                return self._cast(body, depth + 1)
            case "Alias":
                return self._node(body[0], depth)
            case "KeepName":
                return self._node(body, depth)
            case "RenameAlias":
                return self._node(body["expr"], depth)
            case _:
                raise refuse(node_name(kind, body))

    def _column(self, name: str) -> Column:
        if name not in self._schema:
            raise unknown_column(name, self._schema)
        return Column(name)

    def _binary(self, body: Any, depth: int) -> Tree:
        op = _BINARY.get(body["op"])
        if op is None:
            raise refuse(_OTHER_OPERATORS.get(body["op"], f"the operator {body['op']}"))
        left = self._node(body["left"], depth)
        return make(op, left, self._node(body["right"], depth))

    def _function(self, body: Any, depth: int) -> Tree:
        key, params = function_key(body["function"])
        if key == "AsStruct":
            return self._struct(body["input"], depth)
        handler = FUNCTIONS.get(key)
        if handler is None:
            raise refuse(function_name(key, params))
        operands = [self._node(node, depth) for node in body["input"]]
        try:
            return handler(operands, params)
        except DPFrameError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError):  # a form of a later Polars
            raise refuse(function_name(key, params)) from None

    def _struct(self, nodes: Any, depth: int) -> Tree:
        names = tuple(output_name(node) for node in nodes)
        if not names or len(set(names)) != len(names):
            raise UnsupportedOperation(
                "pl.struct needs at least one field, and a name of its own for each",
                remedy="name the fields: pl.struct(a=..., b=...)",
            )
        return make("struct", *[self._node(node, depth) for node in nodes], names=names)

    def _ternary(self, body: Any, depth: int) -> Tree:
        predicate = operand(self._node(body["predicate"], depth))
        then = operand(self._node(body["truthy"], depth))
        otherwise = operand(self._node(body["falsy"], depth))
        if _is_fill_nan(predicate, then):
            return make("fill_nan", then, otherwise)
        return make("when", predicate, then, otherwise)

    def _cast(self, body: Any, depth: int) -> Tree:
        if body["options"] == "Overflowing":
            raise UnsupportedOperation(
                "cast with wrap_numerical=True is not supported",
                remedy="leave it out: what does not fit becomes null",
            )
        if body["options"] not in ("Strict", "NonStrict"):
            raise refuse("an unknown kind of cast")
        inner = operand(self._node(body["expr"], depth))
        dtype = read_dtype_expression(body["dtype"])
        folded = cast_literal(inner, dtype) if isinstance(inner, Literal) else None
        return make("cast", inner, dtype=dtype) if folded is None else folded


def _is_fill_nan(predicate: Tree, then: Tree) -> bool:
    """Whether a choice is what Polars writes for `fill_nan`."""
    return (
        isinstance(predicate, Call)
        and isinstance(predicate.operation, Or)
        and predicate.args == (Call(IsNotNan(), (then,)), Call(IsNull(), (then,)))
    )
