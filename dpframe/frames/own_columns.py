"""The columns that identify the owner of a row."""

from __future__ import annotations

from typing import Final

from dpframe.core.tree import Call, Column, Literal, Tree
from dpframe.frames.relation import Relation
from dpframe.frames.with_columns import Select, WithColumns

__all__ = ["own_columns", "renamed_column"]

_ONE_TO_ONE: Final = frozenset({"add", "cast", "fill_null", "mul", "neg", "sub"})
"""Operations with constants that map each value, or nearly each, to a different value."""


def own_columns(relation: Relation) -> frozenset[str]:
    """The identifier of a frame under its present name, and columns that hold the same in another
    form; empty where rows are protected.
    """
    found = set[str]()
    for step, before in relation.steps:
        if isinstance(step, (Select, WithColumns)) and before.identifier is not None:
            own = {before.identifier, *found}
            found |= {n.name for n in step.named if renamed_column(n.tree) in own}
    if relation.facts.identifier is not None:
        found.add(relation.facts.identifier)
    return frozenset(found & {*relation.facts.columns})


def renamed_column(tree: Tree) -> str | None:
    """The column that an expression is, perhaps in another type, or shifted by constants."""
    while isinstance(tree, Call) and tree.operation.name in _ONE_TO_ONE:
        others = [arg for arg in tree.args if not isinstance(arg, Literal)]
        if len(others) != 1:
            return None
        (tree,) = others
    return tree.name if isinstance(tree, Column) else None
