"""The conditions that rows have to meet before a query counts them, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpframe.aggregates.measurement import Table
from dpframe.aggregates.query import Query
from dpframe.aggregates.statistics import RowCount
from dpframe.audit.people import Frames
from dpframe.core.tree import Call, Tree
from dpframe.frames.filter import Filter
from dpframe.frames.relation import Relation
from dpframe.lower import Execution
from dpframe.rows.logic import And

_ROWS = Table(RowCount())


class Conditions:
    """All filters of a query, condition by condition, and its groups.

    A row that meets one condition more is nearer to being counted, which the query itself does
    not show as long as another is not met.

    Parameters
    ----------
    query
        The query.
    """

    def __init__(self, query: Query) -> None:
        self._groups = query.groups
        self._alone = tuple(_alone(query.relation))
        self._free = _without_filters(query.relation)

    def met(self, frames: Frames) -> int:
        """How many are met by any row."""
        found = sum(_rows(relation, frames) > 0 for relation in self._alone)
        if self._groups is None or self._groups.discovered:
            return found
        counted = Execution.of_public(frames).run(self._free, self._groups, [_ROWS])
        return found + int(bool(counted[_ROWS].values.any()))


def _rows(relation: Relation, frames: Frames) -> int:
    counted = Execution.of_public(frames).run(relation, None, [_ROWS])
    return int(counted[_ROWS].values.sum())


def _alone(relation: Relation) -> Iterator[Relation]:
    """The frame with each of the conditions alone, at its place."""
    before = _start(relation)
    for step, _ in relation.steps:
        if not isinstance(step, Filter):
            before = before.then(step)
            continue
        for predicate in step.predicates:
            for condition in _conjuncts(predicate):
                yield before.then(Filter((condition,)))


def _without_filters(relation: Relation) -> Relation:
    free = _start(relation)
    for step, _ in relation.steps:
        free = free if isinstance(step, Filter) else free.then(step)
    return free


def _start(relation: Relation) -> Relation:
    return replace(relation, steps=(), facts=relation.source)


def _conjuncts(predicate: Tree) -> Iterator[Tree]:
    if isinstance(predicate, Call) and isinstance(predicate.operation, And):
        for arg in predicate.args:
            yield from _conjuncts(arg)
    else:
        yield predicate
