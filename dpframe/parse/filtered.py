"""Rows that an expression leaves out before it aggregates: `filter`, `drop_nulls`, `drop_nans`.

``f(x.filter(c))`` has the values of ``f(x)`` where c is true, as f is row-wise. So conditions move
outwards, and what is aggregated is ``when(c).then(f(x))``, whose nulls private aggregates skip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import polars as pl

from dpframe.core.tree import Tree, column_names
from dpframe.errors import UnsupportedOperation
from dpframe.parse.aggregate_nodes import Node, operands
from dpframe.parse.hints import function_key
from dpframe.parse.parameters import SQL, marked
from dpframe.parse.reader import tree_of
from dpframe.rows.constants import constant
from dpframe.rows.logic import And, When
from dpframe.rows.nulls import FillNull, IsNotNan, IsNotNull

_NULLS, _NANS = "DropNulls", "DropNans"


@dataclass(frozen=True, slots=True)
class Kept:
    """Values, and which rows they are of.

    Parameters
    ----------
    values
        What each row has.
    filters
        The conditions of `filter`; rows for which all of them are true are kept.
    nulls, nans
        Values whose nulls or NaN were dropped, at the time when they were.
    """

    values: Tree
    filters: tuple[Tree, ...] = ()
    nulls: tuple[Tree, ...] = ()
    nans: tuple[Tree, ...] = ()

    @property
    def conditions(self) -> tuple[Tree, ...]:
        """The conditions that a kept row meets."""
        present = tuple(IsNotNull().of(tree) for tree in self.nulls)
        numbers = tuple(FillNull().of(IsNotNan().of(tree), constant(True)) for tree in self.nans)
        return (*self.filters, *present, *numbers)

    @property
    def drops_nulls(self) -> bool:
        """Whether there is no null among the values."""
        return self.values in self.nulls

    @property
    def drops_nans(self) -> bool:
        """Whether there is no NaN among the values."""
        return self.values in self.nans

    @property
    def or_null(self) -> Tree:
        """The values, and null in rows that are left out."""
        if not self.conditions:
            return self.values
        both = reduce(lambda a, b: And().of(a, b), self.conditions)
        return When().of(both, self.values, constant(None))

    def without_missing(self) -> Kept:
        """The same for an aggregate that skips nulls and NaN on its own."""
        nulls = tuple(tree for tree in self.nulls if tree != self.values)
        nans = tuple(tree for tree in self.nans if tree != self.values)
        return replace(self, nulls=nulls, nans=nans)


def tree_or_null(node: Node, schema: Mapping[str, pl.DataType]) -> Tree:
    """The tree of an expression for an aggregate that skips nulls: null in rows that it leaves out.

    Raises
    ------
    UnsupportedOperation, UnknownColumn, InvalidBounds
        As `kept_rows` and `dpframe.parse.reader.tree_of`.
    """
    if not leaves_out(node):
        return tree_of(node, schema)
    return kept_rows(node, schema).without_missing().or_null


def kept_rows(node: Node, schema: Mapping[str, pl.DataType]) -> Kept:
    """What an expression is of, where it may leave out rows.

    Raises
    ------
    UnsupportedOperation
        For what is not row-wise otherwise, and where numbers of rows would differ in Polars.
    """
    return _Rows(schema).read(node)


class _Rows:
    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = schema

    def read(self, node: Node) -> Kept:
        core, kept = self._split(node)
        return replace(kept, values=self._tree(core))

    def _tree(self, node: Node) -> Tree:
        return tree_of(node, self._schema)

    def _split(self, node: Node) -> tuple[Node, Kept]:
        """The node without what leaves out rows, and what does."""
        if not leaves_out(node):
            return node, Kept(constant(None))
        [(kind, body)] = node.items()
        if kind == "Filter":
            return self._filtered(body)
        if kind in ("Alias", "KeepName", "RenameAlias"):
            return self._split(operands(kind, body)[0])
        name = _dropping(node)
        if name is None:
            return self._computed(kind, body)
        core, kept = self._split(body["input"][0])
        tree = self._tree(core)
        if name == _NULLS:
            return core, replace(kept, nulls=(*kept.nulls, tree))
        return core, replace(kept, nans=(*kept.nans, tree))

    def _filtered(self, body: Node) -> tuple[Node, Kept]:
        if leaves_out(body["input"]):
            raise _unlike()
        return body["input"], Kept(constant(None), filters=(self._tree(body["by"]),))

    def _computed(self, kind: str, body: Node) -> tuple[Node, Kept]:
        """What is computed of values that were left out in part, and of constants."""
        found = operands(kind, body)
        (place, *more) = (i for i, part in enumerate(found) if leaves_out(part))
        if more or kind == "Ternary":
            raise _unlike()
        if not all(self._is_constant(p) for i, p in enumerate(found) if i != place):
            raise _unlike()
        core, kept = self._split(found[place])
        return _with(kind, body, place, core), kept

    def _is_constant(self, node: Node) -> bool:
        return "Literal" in node or not column_names(self._tree(node))


def leaves_out(node: Node) -> bool:
    """Whether an expression has other rows than its columns, if that can be read."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        [(kind, body)] = node.items()
        if kind == "Filter" or _dropping(node) is not None:
            return True
        if kind == "Alias" and (body[1] == SQL or marked(body[1]) is not None):
            continue
        waiting.extend(operands(kind, body))
    return False


def _dropping(node: Node) -> str | None:
    function = node.get("Function")
    key = None if function is None else function_key(function["function"])[0]
    return key if key in (_NULLS, _NANS) else None


def _with(kind: str, body: Node, place: int, part: Any) -> Node:
    """A node with another operand."""
    if kind == "Cast":
        return {kind: {**body, "expr": part}}
    if kind == "BinaryExpr":
        return {kind: {**body, ("left", "right")[place]: part}}
    inputs = list(body["input"])
    inputs[place] = part
    return {kind: {**body, "input": inputs}}


def _unlike() -> UnsupportedOperation:
    return UnsupportedOperation(
        "the expression filters some operands and not others, so their numbers of rows differ",
        remedy=(
            "put all conditions into one .filter(...), right before the aggregate",
            "filter the frame: frame.filter(...)",
        ),
    )
