"""Which keys are parts of times, such as hours and months: numbers with an order of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dpframe.frames.definition import Json
from dpframe.plan import PlanData

_PARTS: Final = frozenset(
    f"dt_{part}"
    for part in (
        *("century", "millennium", "year", "iso_year", "quarter", "month", "week", "weekday"),
        *("day", "ordinal_day", "hour", "minute", "second"),
    )
)


def parts_of_times(plan: PlanData) -> frozenset[str]:
    """The keys that are a part of a time, as the plan's definitions say: grouped by, or computed in
    a step before.
    """
    made = {name: tree for step in plan.steps for name, tree in _named(step.definition)}
    return frozenset(
        name for name, tree in _named(plan.grouped_by) if _is_part(_computed(tree, made))
    )


def _computed(tree: Json, made: Mapping[str, Json]) -> Json:
    """What a key is computed by, where it is a column that a step made."""
    if isinstance(tree, dict) and tree.get("type") == "Column":
        return made.get(str(tree.get("name")), tree)
    return tree


def _is_part(tree: Json) -> bool:
    return isinstance(tree, dict) and tree.get("type") == "Call" and tree.get("op") in _PARTS


def _named(found: Json) -> Iterator[tuple[str, Json]]:
    """The names of expressions, in a list or in a step."""
    if isinstance(found, dict):
        found = found.get("named")
    for item in found if isinstance(found, list) else []:
        if isinstance(item, dict) and item.get("type") == "Named":
            yield str(item.get("name")), item.get("tree")
