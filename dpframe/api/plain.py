"""Plain Polars aggregates, and arithmetic of them, as dp expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import polars as pl

from dpframe.api.expressions import DPExpr
from dpframe.api.make import make
from dpframe.core.domain import Columns
from dpframe.core import tree
from dpframe.errors import DPFrameError, UnsupportedOperation
from dpframe.parse.aggregate_nodes import Node, aggregates
from dpframe.parse.hints import function_key, function_name, node_name
from dpframe.parse.names import output_name
from dpframe.parse.outputs import polars_schema
from dpframe.parse.plain import read_plain
from dpframe.parse.reader import read_nodes, tree_of

PlainNumber: TypeAlias = "int | float"

_OPERATORS: Mapping[str, str] = MappingProxyType(
    {
        "Plus": "add",
        "Minus": "sub",
        "Multiply": "mul",
        "TrueDivide": "truediv",
        "FloorDivide": "floordiv",
        "Modulus": "mod",
    }
)
_LATER = "release the parts, and compute the rest with the released numbers"


def is_plain_aggregate(expression: object, columns: Columns) -> bool:
    """Whether Polars would make one value of all rows."""
    if not isinstance(expression, pl.Expr) or isinstance(expression, DPExpr):
        return False
    try:
        schema = polars_schema(columns)
        return read_nodes(expression, schema, lambda nodes, _: any(map(aggregates, nodes)))
    except DPFrameError:  # the next reader of the expression explains why
        return False


def dp_expressions(expression: pl.Expr, columns: Columns) -> list[DPExpr]:
    """The dp expressions that mean what Polars' aggregates mean, each with the name that Polars
    gives it; none where it is no aggregate.

    Raises
    ------
    DPFrameError
        For an aggregate that has no private form, or lacks bounds.
    """

    def found(nodes: Sequence[Node], _: bool) -> list[DPExpr]:
        if not any(map(aggregates, nodes)):
            return []
        return [_Reader(columns).output(node) for node in nodes]

    return read_nodes(expression, polars_schema(columns), found, what="agg")


class _Reader:
    """Reads aggregates, and arithmetic on their results."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def output(self, node: Node) -> DPExpr:
        made = self._read(node)
        if not isinstance(made, DPExpr):
            raise _rows_and_aggregates()
        return made.alias(output_name(node))

    def _read(self, node: Node) -> DPExpr | PlainNumber:
        plain = read_plain(node, self._columns)
        if plain is not None:
            given: Any = plain.values
            return make(plain.aggregate, given)
        [(kind, body)] = node.items()
        match kind:
            case "Alias":
                return self._read(body[0])
            case "KeepName":
                return self._read(body)
            case "RenameAlias":
                return self._read(body["expr"])
            case "Literal":
                return _number(node)
            case "BinaryExpr":
                return self._arithmetic(body)
            case "Function":
                return self._function(body)
            case _:
                raise self._refused(node, node_name(kind, body))

    def _arithmetic(self, body: Node) -> DPExpr:
        name = _OPERATORS.get(body["op"])
        if name is None:
            raise _beyond(f"the operator {body['op']}")
        left, right = self._read(body["left"]), self._read(body["right"])
        if isinstance(left, DPExpr):
            made: DPExpr = getattr(left, f"__{name}__")(right)
        else:
            made = getattr(right, f"__r{name}__")(left)
        return made

    def _function(self, body: Node) -> DPExpr:
        key, params = function_key(body["function"])
        if not any(map(aggregates, body["input"])):
            raise self._refused({"Function": body}, function_name(key, params))
        of, *others = (self._read(part) for part in body["input"])
        if not isinstance(of, DPExpr) or any(isinstance(o, DPExpr) for o in others):
            raise _beyond(function_name(key, params))
        match key, others:
            case "Negate", []:
                return -of
            case "Abs", []:
                return of.abs()
            case "Pow.Sqrt", []:
                return of.sqrt()
            case "Pow.Generic", [power]:
                return of**power
            case "Round", [] if params.get("mode", "HalfToEven") == "HalfToEven":
                return of.round(params["decimals"])
            case "Clip", ends:
                given = iter(ends)
                low = next(given) if params["has_min"] else None
                high = next(given) if params["has_max"] else None
                return of.clip(low, high)
            case _:
                raise _beyond(function_name(key, params))

    def _refused(self, node: Node, name: str) -> UnsupportedOperation:
        """The refusal of a call that is not an aggregate, next to one."""
        if aggregates(node):
            return _beyond(name)
        tree_of(node, polars_schema(self._columns))  # refuses what it knows by its name
        return _rows_and_aggregates()


def _number(node: Node) -> PlainNumber:
    found = tree_of(node, {})
    value = found.value if isinstance(found, tree.Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _beyond("a constant that is no number")
    return value


def _beyond(name: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"{name} cannot be applied to a private result inside the query", remedy=_LATER
    )


def _rows_and_aggregates() -> UnsupportedOperation:
    return UnsupportedOperation(
        "the expression mixes rows and aggregates, so rows would show an aggregate without noise",
        remedy=("aggregate both sides", "release the aggregate first, and use its number"),
    )
