"""Operands that a lowered operation needs several times, computed once, as columns before it.

An operation may have its operand several times in its lowered form: a quotient looks whether the
divisor is zero before it divides. Nested a few times, such forms double at each level, and engines
take time and memory exponential in the depth, in which they write, optimise and compute them.
So an operand that would be repeated much becomes a separate column in an earlier step. The
lowered expressions of a query grow in proportion to the analyst's text, for any nesting. Values
are the same: what is read is a column of the results of the same row operations
(docs/decisions/0015-operands-that-are-bound.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import polars as pl

from dpframe.core.dtypes import Columns, Domain, columns
from dpframe.core.tree import Call, Change, Column, HasExprs, Literal, Named, Tree
from dpframe.errors import require
from dpframe.frames.facts import FrameFacts
from dpframe.frames.sampling import new_name
from dpframe.rows.fold import domain, lower
from dpframe.rows.operation import Namespace

_FEW = 8
"""How many more operands than it was given a lowered operation may have, before these are bound."""
_FLAT = 3
"""Trees of fewer levels are lowered as they are."""
T = TypeVar("T")


def bind(
    frame: pl.LazyFrame, value: T, before: Columns, ns: Namespace, *, whole: bool = False
) -> tuple[pl.LazyFrame, T, Columns]:
    """The frame with a column for each operand that `value` would repeat, `value` with these
    columns in their place, and what is known of the columns then.

    Parameters
    ----------
    value
        A step, statistics, cells, or named expressions: everything that holds trees.
    whole
        Whether whole trees may become columns too, because `value` repeats them itself.
    """
    steps, value, known = bind_layers(value, before, ns, whole=whole)
    for step in steps:
        frame = frame.with_columns(*step)
    return frame, value, known


def bind_layers(
    value: T, before: Columns, ns: Namespace, *, whole: bool = False
) -> tuple[list[list[pl.Expr]], T, Columns]:
    """The same with the columns of each step that comes before, for any frame."""
    trees = [tree for tree in _exprs(value) if _is_deep(tree)]
    if not trees:
        return [], value, before
    binder = _Binder(before)
    made = {tree: binder.bind(tree, whole) for tree in trees}
    known = before
    steps = []
    for layer in binder.layers:
        steps.append([lower(n.tree, known, ns).alias(n.name) for n in layer])
        known = columns({**known, **{n.name: domain(n.tree, known) for n in layer}})
    return (
        steps,
        (_map(value, lambda tree: made.get(tree, tree)) if binder.layers else value),
        known,
    )


def bind_facts(
    frame: pl.LazyFrame, value: T, facts: FrameFacts, ns: Namespace, *, whole: bool = False
) -> tuple[pl.LazyFrame, T, FrameFacts]:
    """The same where more is known of the frame than its columns."""
    frame, value, known = bind(frame, value, facts.columns, ns, whole=whole)
    return frame, value, facts if known is facts.columns else replace(facts, columns=known)


@dataclass(slots=True)
class _Part:
    """A tree whose repeated operands are columns, and how it would be lowered.

    Parameters
    ----------
    tree
        The tree.
    lowered
        Its lowered form, with a column in place of every constant.
    size
        How often that reads a column.
    level
        How many steps have to come before it.
    """

    tree: Tree
    known: Domain
    lowered: pl.Expr
    size: int = 1
    level: int = 0


@dataclass(slots=True)
class _Binder:
    """Makes columns of operands, each once."""

    known: Columns
    layers: list[list[Named]] = field(default_factory=list)
    _names: dict[Tree, _Part] = field(default_factory=dict)

    def bind(self, tree: Tree, whole: bool) -> Tree:
        part = self._part(tree)
        return (self._column(part) if whole and part.size > _FEW else part).tree

    def _part(self, tree: Tree) -> _Part:
        if not isinstance(tree, Call):
            name = tree.name if isinstance(tree, Column) else ""
            return _Part(tree, domain(tree, self.known), pl.col(name))
        given = [self._part(arg) for arg in tree.args]
        part = self._apply(tree, given)
        if part.size > _FEW + sum(g.size for g in given):
            return self._apply(tree, [self._column(g) for g in given])
        return part

    def _apply(self, tree: Call, given: Sequence[_Part]) -> _Part:
        """The operation on these operands."""
        domains = [g.known for g in given]
        lowered = tree.operation.lower(pl, [g.lowered for g in given], domains)
        return _Part(
            Call(tree.operation, tuple(g.tree for g in given)),
            tree.operation.domain(domains),
            lowered,
            len(lowered.meta.root_names()),
            max((g.level for g in given), default=0),
        )

    def _column(self, part: _Part) -> _Part:
        """A column with the values of an expression."""
        if not isinstance(part.tree, Call):
            return part
        found = self._names.get(part.tree)
        if found is None:
            name = new_name(self.known, f"operand {len(self._names)}")
            found = _Part(Column(name), part.known, pl.col(name), 1, part.level + 1)
            self._names[part.tree] = found
            self.known = {**self.known, name: part.known}
            while len(self.layers) <= part.level:
                self.layers.append([])
            self.layers[part.level].append(Named(name, part.tree))
        return found


def _is_deep(tree: Tree, levels: int = _FLAT) -> bool:
    """Whether operations are nested this many levels deep."""
    if not isinstance(tree, Call):
        return False
    return levels == 1 or any(_is_deep(arg, levels - 1) for arg in tree.args)


def _exprs(value: object) -> tuple[Tree, ...]:
    """The expressions of a value that `bind` takes."""
    match value:
        case HasExprs():
            return value.exprs
        case Named(_, tree):
            return (tree,)
        case Column() | Literal() | Call():
            return (value,)
        case tuple():
            return tuple(tree for item in value for tree in _exprs(item))
    require(value is None, "an expression is found in each part of a query")
    return ()


def _map(value: Any, change: Change) -> Any:
    """The value with other expressions."""
    match value:
        case HasExprs():
            return value.map_exprs(change)
        case Named(name, tree):
            return Named(name, change(tree))
        case Column() | Literal() | Call():
            return change(value)
        case tuple():
            return tuple(_map(item, change) for item in value)
    return value
