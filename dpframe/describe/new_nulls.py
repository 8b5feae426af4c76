"""Casts and formats that may turn values into nulls, which results do not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from dpframe.aggregates.query import Query
from dpframe.core.domain import Columns
from dpframe.core.tree import Call, Tree
from dpframe.errors import DPFrameError
from dpframe.rows.fold import domain, words

_FORMATS: Final = ("str_to_date", "str_to_time", "str_to_datetime", "str_to_integer")


def new_nulls(query: Query, trees: Iterable[Tree]) -> Iterator[str]:
    """What becomes null, for each cast and format in the steps of a query and in `trees`, which are
    over its last columns. Follows from types alone.
    """
    said: dict[str, None] = {}
    for step, before in query.relation.steps:
        held = list[Tree]()

        def hand_out(tree: Tree, held: list[Tree] = held) -> Tree:
            held.append(tree)
            return tree

        step.map_exprs(hand_out)
        for tree in held:
            said |= dict.fromkeys(_in_tree(tree, before.columns))
    for tree in trees:
        said |= dict.fromkeys(_in_tree(tree, query.relation.facts.columns))
    yield from said


def _in_tree(tree: Tree, columns: Columns) -> Iterator[str]:
    if not isinstance(tree, Call):
        return
    for arg in tree.args:
        yield from _in_tree(arg, columns)
    name = tree.operation.name
    if name != "cast" and name not in _FORMATS:
        return
    try:
        known = [domain(arg, columns) for arg in tree.args]
        made = tree.operation.domain([found.with_null(nullable=False) for found in known])
    except DPFrameError:  # of a step that is over columns of another frame
        return
    if not made.nullable:
        return
    source = known[0].dtype
    if name in _FORMATS:
        what = "text of another form"
    elif source.is_text and made.dtype.is_numeric:
        what = "text that is not a number"
    else:
        what = "what that type cannot hold"
    yield (
        f"{words(tree)} ({source} to {made.dtype}): {what} becomes null, and nothing tells how "
        "much does"
    )
