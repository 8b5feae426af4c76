"""Which columns say whose a row is."""

from __future__ import annotations

from dpframe.core.tree import Column
from dpframe.frames.relation import Relation
from dpframe.frames.with_columns import WithColumns

__all__ = ["own_columns"]


def own_columns(relation: Relation) -> frozenset[str]:
    """The identifier of a frame as it is named now, and copies of it; none where rows are
    protected.
    """
    found = set[str]()
    for step, before in relation.steps:
        if isinstance(step, WithColumns) and before.identifier is not None:
            own = {before.identifier, *found}
            found |= {n.name for n in step.named if n.tree in {Column(name) for name in own}}
    if relation.facts.identifier is not None:
        found.add(relation.facts.identifier)
    return frozenset(found & {*relation.facts.columns})
