"""Plans whose tables are read back, and translated again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dpframe.aggregates.aggregate import Query
from dpframe.kernel import plan as p
from dpframe.lower import Handles, tables_of_plan
from dpframe.optimise import physical
from dpframe.optimise.physical import Translation


def without_parameters(value: Any) -> Any:
    """A part of a plan without the names of parameters, which decide no table."""
    if isinstance(value, p.Lit):
        return replace(value, parameter=None)
    if isinstance(value, tuple):
        return tuple(map(without_parameters, value))
    if is_dataclass(value) and not isinstance(value, type):
        made = {one.name: without_parameters(getattr(value, one.name)) for one in fields(value)}
        return type(value)(**made)
    return value


def translate_again(plan: p.Plan, handles: Handles) -> p.Plan:
    """The plan with the frames and tables that follow from those that were read from it."""
    lists = physical.Lists(sources={**handles.names})
    shared = any(isinstance(frame, p.KeepRows) and frame.of is not None for frame in plan.frames)
    for place, table in enumerate(plan.tables):
        ((found,),) = tables_of_plan(plan, handles, [([place], 1 if shared else None)])
        if isinstance(table.keys, p.Found):
            lists.finder = table.keys.draw
        query = Query(found.relation, found.groups, ())
        assert lists.table(found.tables[place], query) == place
    lists.draws = list(plan.draws)
    return replace(plan, frames=physical._of_columns_read(lists), tables=tuple(lists.tables))


def require_inverse(translation: Translation) -> None:
    """Check that a plan says all that decides its frames and tables."""
    plan = without_parameters(translation.plan)
    again = translate_again(translation.plan, translation.handles)
    assert without_parameters(again) == plan
    for option in translation.options:
        require_inverse(option)


@contextmanager
def watch_translations() -> Iterator[list[Translation]]:
    """The translations that are made while this is entered."""
    found, before = list[Translation](), physical.translate

    def translate(*args: Any) -> Translation:
        found.append(before(*args))
        return found[-1]

    physical.translate = translate
    try:
        yield found
    finally:
        physical.translate = before
