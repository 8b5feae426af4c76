"""How Polars writes aggregates down, in old and new versions: which node holds what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Node: TypeAlias = "Any"

_HELD = ("input", "expr")
_FUNCTIONS = ("Quantile", "NullCount")
"""Functions of one column that give one value, which newer Polars writes as functions."""


def held(body: Node) -> tuple[str, Node, Node]:
    """The name of an aggregate, its operand, and its other arguments."""
    [(name, inner)] = body.items()
    if isinstance(inner, list):
        return name, inner[0], inner[1:]
    key = next((key for key in _HELD if isinstance(inner, Mapping) and key in inner), None)
    if key is None:
        return name, inner, None
    return name, inner[key], {k: v for k, v in inner.items() if k != key}


def holding(body: Node, node: Node) -> Node:
    """The same aggregate of something else."""
    [(name, inner)] = body.items()
    if isinstance(inner, list):
        return {name: [node, *inner[1:]]}
    key = next((key for key in _HELD if isinstance(inner, Mapping) and key in inner), None)
    return {name: node if key is None else {**inner, key: node}}


def aggregates(node: Node) -> bool:
    """Whether an expression has one value for all rows, or is computed from such values."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node == "Len":
            return True
        if not isinstance(node, dict):
            continue
        [(kind, body)] = node.items()
        if kind == "Agg" or (kind == "Function" and _named(body) in _FUNCTIONS):
            return True
        waiting.extend(operands(kind, body))
    return False


def operands(kind: str, body: Node) -> list[Node]:
    """The parts of a node that its values are computed from, row by row."""
    match kind:
        case "Alias":
            return [body[0]]
        case "KeepName":
            return [body]
        case "Cast" | "RenameAlias":
            return [body["expr"]]
        case "BinaryExpr":
            return [body["left"], body["right"]]
        case "Ternary":
            return [body["predicate"], body["truthy"], body["falsy"]]
        case "Function":
            return list(body["input"])
        case "Filter":
            return [body["input"]]
        case _:
            return []


def _named(body: Node) -> str:
    function = body["function"]
    return function if isinstance(function, str) else next(iter(function))
