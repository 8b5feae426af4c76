"""Calls of row operations, by their names in plans."""

from __future__ import annotations

from typing import Any

from dpframe.core.tree import Call, Tree
from dpframe.rows.operation import PlainOperation
from dpframe.rows.registry import BY_NAME


def call(op: str, *args: Tree, **constants: Any) -> Call:
    """The operation of that name with these constants, on these operands."""
    kind = BY_NAME[op]
    if isinstance(kind, PlainOperation):
        assert not constants
        return Call(kind, args)
    return Call(kind(**constants), args)
