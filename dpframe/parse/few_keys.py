"""Keys that need not be listed: parts of times, such as months, can only be one of few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from dpframe.core.domain import Domain
from dpframe.core.tree import Call, Column, Named, Tree
from dpframe.frames.contribution_limits import LimitGroups, LimitRows
from dpframe.frames.relation import Relation
from dpframe.frames.row_steps import Drop, DropNulls, Filter, Select, WithColumns

Origin: TypeAlias = "Callable[[str], Tree | None]"
"""The expression that a column was computed by, where that is known."""

_KEEP_COLUMNS = (Filter, DropNulls, LimitRows, LimitGroups, Drop)


def nothing_computed(name: str) -> Tree | None:
    """The origin for a frame whose columns are unchanged."""
    return None


def origin_in(relation: Relation) -> Origin:
    """The expressions that a frame's columns were computed by, from its last steps."""

    def origin(name: str) -> Tree | None:
        for step, _ in reversed(relation.steps):
            if isinstance(step, (WithColumns, Select)):
                for named in step.named:
                    if named.name == name and named.tree != Column(name):
                        return named.tree
            elif not isinstance(step, _KEEP_COLUMNS):
                return None
        return None

    return origin


def with_few_values(
    named: list[Named], domains: Mapping[str, Domain], origin: Origin
) -> dict[str, Domain]:
    """The domains of grouping columns, with the few values that one can have at all."""
    return {n.name: _with_few(n.tree, domains[n.name], origin) for n in named}


def _with_few(tree: Tree, found: Domain, origin: Origin) -> Domain:
    if found.categories is not None:
        return found
    computed = origin(tree.name) if isinstance(tree, Column) else tree
    few = computed.operation.few_values if isinstance(computed, Call) else None
    return found if few is None else replace(found, categories=tuple(few))
