"""What stands for several columns (selectors, regex columns, several struct fields), and the name
that Polars gives to the result of an expression.

As in Polars, an expression is expanded before anything else: inside `pl.struct`, `pl.coalesce`,
`pl.concat_str` and the horizontal functions into more arguments, elsewhere into more outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import TypeAlias

import polars as pl

from dpframe.errors import UnknownColumn, UnsupportedOperation
from dpframe.parse.hints import function_key, parts, refuse, with_parts
from dpframe.parse.size import SQL, marked
from dpframe.rows.operation import Node
from dpframe.rows.polars_dtypes import read_ipc
from dpframe.rows.suggest import did_you_mean, unknown_column


def output_name(node: Node) -> str:
    """The name of an expanded node: an alias, else the name of its leftmost column or constant."""
    while isinstance(node, dict):
        [(kind, body)] = node.items()
        match kind:
            case "Column":
                return _own_name(str(body))
            case "Alias" if body[1] == SQL:
                node = body[0]
            case "Alias":
                return _own_name(str(body[1]))
            case "Literal" if isinstance(body, dict) and "Series" in body:
                return read_ipc(body["Series"]).name
            case "Literal":
                return "literal"
            case "KeepName":
                name = next(_columns(body), None)
                if name is None:
                    raise UnsupportedOperation(
                        "name.keep is used on an expression without a column",
                        remedy="use .alias(name)",
                    )
                return name
            case "RenameAlias":
                return _renamed(output_name(body["expr"]), body["function"])
            case "Function":
                key, params = function_key(body["function"])
                if key == "StructExpr.FieldByName":
                    return str(params)
                node = body["input"][0] if body["input"] else None
            case _:
                inner = parts(kind, body)
                node = inner[kind == "Ternary"] if inner else None
    return "len" if node == "Len" else "literal"


def _own_name(name: str) -> str:
    """A name, which of a parameter is what it is called."""
    parameter = marked(name)
    return name if parameter is None else parameter.name


def _columns(node: Node) -> Iterator[str]:
    """The columns of a node in the order in which Polars looks for a name to keep."""
    if not isinstance(node, dict):
        return
    [(kind, body)] = node.items()
    if kind == "Column":
        yield str(body)
    inner = parts(kind, body)
    if kind == "Ternary":
        inner = [*inner[1:], inner[0]]
    for part in inner[:1] if kind == "Filter" else inner:
        yield from _columns(part)


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


# -- Several columns ------------------------------------------------------------------------------


Schema: TypeAlias = "Mapping[str, pl.DataType]"

VARIADIC = {
    *("AsStruct", "Coalesce", "MinHorizontal", "MaxHorizontal", "SumHorizontal", "MeanHorizontal"),
    *("Boolean.AnyHorizontal", "Boolean.AllHorizontal", "StringExpr.ConcatHorizontal"),
    "StringExpr.Format",
}


def expand(node: Node, schema: Schema) -> list[Node]:
    """The node once per output, without any selectors."""
    if not isinstance(node, dict):
        return [node]
    [(kind, body)] = node.items()
    if kind == "Selector":
        return [{"Column": name} for name in expand_selector(body, schema)]
    inner = [expand(part, schema) for part in parts(kind, body)]
    if not inner:
        return [node]
    key, params = function_key(body["function"]) if kind == "Function" else ("", None)
    if key in VARIADIC:
        return [with_parts(kind, body, [part for column in inner for part in column])]
    if key == "StructExpr.SelectFields":
        return [
            {"Function": {"input": [part], "function": {"StructExpr": {"FieldByName": name}}}}
            for part in inner[0]
            for name in _field_names(params, part, schema)
        ]
    return [with_parts(kind, body, row) for row in _broadcast(inner)]


def _broadcast(columns: Sequence[Sequence[Node]]) -> list[tuple[Node, ...]]:
    """One row per output; a single expansion is repeated to match a longer one."""
    lengths = {len(column) for column in columns} - {1}
    if len(lengths) > 1:
        few, many = sorted(lengths)[:2]
        raise UnsupportedOperation(
            f"selections of {few} and {many} columns cannot be combined",
            remedy=(
                "select the same number of columns on both sides",
                "select one column on one side",
            ),
        )
    length = lengths.pop() if lengths else 1
    return list(zip(*(c if len(c) != 1 else list(c) * length for c in columns), strict=True))


def _field_names(selector: Node, node: Node, schema: Schema) -> list[str]:
    fields = _fields(node, schema)
    if fields is not None:
        return expand_selector(selector, fields)
    names: list[str] = []
    for part in _simple(selector):
        if isinstance(part, dict) and "ByName" in part:
            names += part["ByName"]["names"]
        elif part != "Empty":
            raise UnsupportedOperation(
                "the fields of this struct are not known before data is read",
                remedy="name them: .struct.field('x')",
            )
    return names


def _fields(node: Node, schema: Schema) -> dict[str, pl.DataType] | None:
    """The fields of a struct that is a column, a field of one, or made by `pl.struct`."""
    dtype = _dtype(node, schema)
    if not isinstance(dtype, pl.Struct):
        return None
    return {field.name: field.dtype for field in dtype.fields}  # type: ignore[misc]


def _dtype(node: Node, schema: Schema) -> pl.DataType | None:
    """The type of a node if it is known without inference, else None."""
    if not isinstance(node, dict):
        return None
    [(kind, body)] = node.items()
    if kind == "Column":
        return schema.get(body)
    if kind == "Alias":
        return _dtype(body[0], schema)
    if kind != "Function":
        return None
    key, params = function_key(body["function"])
    if key == "StructExpr.FieldByName":
        return (_fields(body["input"][0], schema) or {}).get(params)
    if key == "AsStruct":
        parts = {output_name(part): _dtype(part, schema) or pl.Null() for part in body["input"]}
        return pl.Struct(parts)
    return None


def expand_selector(selector: Node, schema: Schema) -> list[str]:
    """The names that a selector stands for, in Polars' order."""
    if selector == "Wildcard":
        return list(schema)
    for part in _simple(selector):
        if isinstance(part, dict) and "ByName" in part and part["ByName"].get("strict", True):
            for name in part["ByName"]["names"]:
                if name not in schema:
                    raise unknown_column(name, schema)
    if isinstance(selector, dict) and "ByName" in selector:
        return [n for n in dict.fromkeys(selector["ByName"]["names"]) if n in schema]
    return list(_select(json.dumps(selector), tuple(schema.items())))


@lru_cache(maxsize=512)
def _select(selector: str, schema: tuple[tuple[str, pl.DataType], ...]) -> tuple[str, ...]:
    """What Polars selects from a frame without rows that has this schema."""
    source = BytesIO(f'{{"Selector":{selector}}}'.encode())
    try:
        expression = pl.Expr.deserialize(source, format="json")
        empty = pl.LazyFrame(schema=dict(schema))
        return tuple(empty.select(expression).collect_schema().names())
    except pl.exceptions.ColumnNotFoundError:
        raise UnknownColumn(
            f"the frame has {len(schema)} columns, and one is selected by a position beyond them",
            remedy=did_you_mean("", [name for name, _ in schema]),
        ) from None
    except pl.exceptions.PolarsError:
        raise UnsupportedOperation(
            "the column selection is not valid",
            remedy="check its regular expression, or name the columns",
        ) from None


def _simple(selector: Node) -> Iterator[Node]:
    """The simple selectors that a selector is made of."""
    if isinstance(selector, dict):
        [(kind, body)] = selector.items()
        if kind in ("Union", "Difference", "Intersect", "ExclusiveOr"):
            for part in body:
                yield from _simple(part)
            return
    yield selector
