"""Reads Polars expressions into trees.

This package knows how Polars writes expressions down, and each row operation which functions it is
read from. Together these are an allow-list: what no operation reads is refused by its Polars name,
so a function that a future Polars adds cannot slip through. Nothing is executed on data; schemas
are all that is known here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

import polars as pl

from dpframe.core.dtypes import FLOAT32
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
from dpframe.parse.literals import decode, read_literal
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
from dpframe.rows.constants import nearest_float32
from dpframe.rows.failures import FAILURES, unexpected
from dpframe.rows.fold import words
from dpframe.rows.operation import OPERAND, Node, Operand, Values, operand
from dpframe.rows.registry import READERS
from dpframe.rows.suggest import unknown_column

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
