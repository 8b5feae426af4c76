"""Reads Polars expressions into trees.

This package knows how Polars writes expressions down, and each row operation which functions it is
read from. Together these are an allow-list: what no operation reads is refused by its Polars name,
so a function that a future Polars adds cannot slip through. Nothing is executed on data; schemas
are all that is known here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import polars as pl

from dpframe.core.dtypes import FLOAT32
from dpframe.core.tree import Call, Column, Literal, Named, Tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.hints import (
    function_key,
    function_name,
    node_name,
    refuse,
    refuse_unserialisable,
)
from dpframe.parse.literals import decode, read_literal
from dpframe.parse.selectors import expand, output_name
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
from dpframe.rows.operation import OPERAND, Operand, Values, operand
from dpframe.rows.registry import READERS
from dpframe.rows.suggest import unknown_column

T = TypeVar("T")
Each: TypeAlias = "Callable[[Any, Mapping[str, pl.DataType]], Tree]"
_OTHER_OPERATORS = {"TruncDivide": "truncdiv"}
_SEVERAL_OUTPUTS = ('"Selector"', '"SelectFields"')
_MISSING_FLOATS = ('"Float":null', '"Float32":null', '"Float64":null')


def read(
    expression: Any,
    schema: Mapping[str, pl.DataType],
    *,
    what: str = "expression",
    each: Each | None = None,
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
    each
        What reads one column's node; `tree_of` where it is left out.
    """
    parsed = _as_expression(expression, what)
    reading = each or tree_of

    def found(nodes: Sequence[Any], several: bool) -> tuple[Named, ...]:
        outputs = tuple(Named(output_name(n), reading(n, schema)) for n in nodes)
        if several and outputs:
            _check_distinct(outputs)
        return outputs

    return read_nodes(parsed, schema, found, what=what)


def read_nodes(
    expression: pl.Expr,
    schema: Mapping[str, pl.DataType],
    found: Callable[[Sequence[Any], bool], T],
    *,
    what: str = "expression",
) -> T:
    """What `found` makes of an expression, given as Polars' nodes, one for each column that it
    makes, and whether a selection of columns made them. What it refuses is refused with its place.
    """
    try:
        text = _serialise(expression, what)
    except TooLargeError:
        raise too_large(what) from None
    try:
        node = _load(text, expression)
        several = any(sign in text for sign in _SEVERAL_OUTPUTS)
        return found(expand(node, schema) if several else [node], several)
    except (TooLargeError, RecursionError):
        raise too_large(what) from None
    except DPFrameError as error:
        raise error.at(_where(expression, text, what)) from None
    except FAILURES as error:
        raise unexpected("read", error).at(_where(expression, text, what)) from None


def tree_of(node: Any, schema: Mapping[str, pl.DataType]) -> Tree:
    """The tree of one node without selections."""
    return Reader(schema).tree(node)


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
    line = " ".join(readable(shown).split())
    line = line if len(line) <= limit else line[: limit - 3] + "..."
    return line if what == "expression" else f"{what}: {line}"


def _check_distinct(outputs: tuple[Named, ...]) -> None:
    name, count = Counter(output.name for output in outputs).most_common(1)[0]
    if count > 1:
        raise UnsupportedOperation(
            f"the expression makes {count} columns named {name!r}",
            remedy='write .name.suffix("_x") or .name.prefix("x_") for several columns',
        )


def _operator_name(op: str) -> str:
    return _OTHER_OPERATORS.get(op, f"the operator {op}")


def _located(error: DPFrameError, operands: Sequence[Operand]) -> DPFrameError:
    """The refusal of an operation that was made, with its operand."""
    if error.where is not None and error.where.startswith(OPERAND):
        with suppress(DPFrameError):
            error.where = words(operand(operands[0])) + error.where.removeprefix(OPERAND)
    return error


class Reader:
    """Reads one expanded expression, counting its parts."""

    __slots__ = ("_nodes", "_schema", "_sql")

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = schema
        self._nodes = 0
        self._sql = False

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
                return standing(read_literal(body)) if self._sql else read_literal(body)
            case "BinaryExpr":
                return self._binary(body, depth + 1)
            case "Function":
                return self._function(body, depth + 1)
            case "Ternary":
                return self._ternary(body, depth + 1)
            case "Cast":
                return self._cast(body, depth + 1)
            case "Alias":
                return self._alias(body, depth)
            case "KeepName":
                return self._node(body, depth)
            case "RenameAlias":
                return self._node(body["expr"], depth)
            case _:
                raise refuse(node_name(kind, body))

    def _alias(self, body: Any, depth: int) -> Operand:
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

    def _binary(self, body: Any, depth: int) -> Tree:
        op = body["op"]
        nodes = [body["left"], body["right"]]
        return self._call(f"Operator.{op}", nodes, None, depth, lambda: _operator_name(op))

    def _function(self, body: Any, depth: int) -> Tree:
        key, params = function_key(body["function"])
        if key == "AsStruct":
            params = [output_name(node) for node in body["input"]]
        return self._call(key, body["input"], params, depth, lambda: function_name(key, params))

    def _ternary(self, body: Any, depth: int) -> Tree:
        nodes = [body["predicate"], body["truthy"], body["falsy"]]
        return self._call("Node.Ternary", nodes, None, depth, lambda: "when")

    def _cast(self, body: Any, depth: int) -> Tree:
        name = "an unknown kind of cast"
        return self._call("Node.Cast", [body["expr"]], body, depth, lambda: name)

    def _call(
        self, key: str, nodes: Sequence[Any], params: Any, depth: int, name: Callable[[], str]
    ) -> Tree:
        """What a function means, where there is an operation that it is read into; else it is
        refused by its name.
        """
        reader = READERS.get(key)
        if reader is None:
            raise refuse(name())
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
            raise _located(error, operands) from None
        except (LookupError, TypeError, ValueError, AttributeError):  # a form of a later Polars
            raise refuse(name()) from None

    def _in_float32(
        self, nodes: Sequence[object], operands: Sequence[Operand]
    ) -> Sequence[Operand]:
        """The operands of a comparison. As in Polars, a number without a type is rounded to Float32
        where everything else that is compared has that type.
        """
        untyped = list(map(_is_untyped_number, nodes))
        typed = [o for o, is_free in zip(operands, untyped, strict=True) if not is_free]
        if not any(untyped) or not all(_is_float32(o, self._schema) for o in typed):
            return operands
        return [_rounded(o) if is_free else o for o, is_free in zip(operands, untyped, strict=True)]


def _is_untyped_number(node: object) -> bool:
    match node:
        case {"Literal": {"Dyn": {"Int": _} | {"Float": _}}}:
            return True
        case _:
            return False


def _is_float32(operand: Operand, schema: Mapping[str, pl.DataType]) -> bool:
    return not isinstance(operand, Values) and dtype_of(operand, schema) == FLOAT32


def _rounded(operand: Operand) -> Operand:
    """The nearest Float32 of a number that is a Float64; anything else stays."""
    if not isinstance(operand, Literal) or not isinstance(operand.value, int | float):
        return operand
    number = float(operand.value)
    return Literal(nearest_float32(number), FLOAT32) if number == operand.value else operand
