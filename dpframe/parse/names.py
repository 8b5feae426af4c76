"""The name that Polars gives to the result of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.parse.aggregate_nodes import held
from dpframe.parse.hints import refuse
from dpframe.parse.parameters import SQL, marked
from dpframe.rows.polars_dtypes import read_ipc

Node: TypeAlias = "Any"


def output_name(node: Node) -> str:
    """The name of an expanded node: an alias, else that of its leftmost column or constant."""
    while isinstance(node, dict):
        [(kind, body)] = node.items()
        match kind:
            case "Column":
                return _own_name(str(body))
            case "Alias" if body[1] == SQL:
                node = body[0]
            case "Alias":
                return _own_name(str(body[1]))
            case "Literal":
                return _literal_name(body)
            case "KeepName":
                return _kept_name(body)
            case "RenameAlias":
                return _renamed(output_name(body["expr"]), body["function"])
            case "Function":
                field = _field_name(body["function"])
                if field is not None:
                    return field
                node = body["input"][0] if body["input"] else None
            case _:
                node = _first_operand(kind, body)
    return "len" if node == "Len" else "literal"


def _own_name(name: str) -> str:
    """A name, which of a parameter is what it is called."""
    parameter = marked(name)
    return name if parameter is None else parameter.name


def _first_operand(kind: str, body: Node) -> Node:
    match kind:
        case "BinaryExpr":
            return body["left"]
        case "Ternary":
            return body["truthy"]
        case "Cast":
            return body["expr"]
        case "Agg":
            return held(body)[1]
        case "Filter":
            return body["input"]
        case _:
            return None


def _literal_name(body: Node) -> str:
    if isinstance(body, dict) and "Series" in body:
        return read_ipc(body["Series"]).name
    return "literal"


def _field_name(function: Node) -> str | None:
    if isinstance(function, dict):
        struct = function.get("StructExpr")
        if isinstance(struct, dict) and "FieldByName" in struct:
            return str(struct["FieldByName"])
    return None


def _kept_name(body: Node) -> str:
    name = next(_columns(body), None)
    if name is None:
        raise UnsupportedOperation(
            "name.keep is used on an expression without a column", remedy="use .alias(name)"
        )
    return name


def _columns(node: Node) -> Iterator[str]:
    """The columns of a node in the order in which Polars looks for a name to keep."""
    if not isinstance(node, dict):
        return
    [(kind, body)] = node.items()
    match kind:
        case "Column":
            yield str(body)
        case "Alias":
            yield from _columns(body[0])
        case "KeepName":
            yield from _columns(body)
        case "Cast" | "RenameAlias":
            yield from _columns(body["expr"])
        case "BinaryExpr":
            yield from _columns(body["left"])
            yield from _columns(body["right"])
        case "Ternary":
            for part in ("truthy", "falsy", "predicate"):
                yield from _columns(body[part])
        case "Function":
            for part in body["input"]:
                yield from _columns(part)
        case "Agg":
            yield from _columns(held(body)[1])
        case "Filter":
            yield from _columns(body["input"])


def _renamed(name: str, function: Node) -> str:
    match function:
        case "ToLowercase":
            return name.lower()
        case "ToUppercase":
            return name.upper()
        case {"Prefix": str(prefix)}:
            return prefix + name
        case {"Suffix": str(suffix)}:
            return name + suffix
        case {"Replace": {"pattern": str(pattern), "value": str(value), "literal": bool(literal)}}:
            return _replaced(name, pattern, value, literal)
        case _:
            raise refuse("name.map")


def _replaced(name: str, pattern: str, value: str, literal: bool) -> str:
    try:
        result = pl.Series([name]).str.replace_all(pattern, value, literal=literal)
    except pl.exceptions.PolarsError:
        raise UnsupportedOperation(
            f"{pattern!r} is not a regular expression", remedy="use .alias(name)"
        ) from None
    return str(result.item())
