"""Selections of single people, told by the definitions that plans hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpframe.core.units import Identifier
from dpframe.plan import PlanData
from dpframe.plan.definition import Json, objects_in
from dpframe.plan.looks import looks_identifying

__all__ = ["identifying_columns", "single_people"]

_EQUAL = frozenset(("eq", "ne", "eq_missing", "ne_missing"))
_PICKING = frozenset(("inner", "semi", "anti"))
"""Joins with public rows that keep some rows and not others."""
_COMPARED = _EQUAL | {"lt", "le", "gt", "ge", "is_between"}


def identifying_columns(plan: PlanData) -> list[str]:
    """The columns that a plan reads and that are named as identifiers are."""
    found = {name: None for part in _definitions(plan) for name in _columns(part)}
    return [name for name in found if looks_identifying(name)]


def single_people(plan: PlanData) -> Iterator[str]:
    """What a plan does that picks people: comparisons of the identifier with constants, groups by
    it, joins by it with public rows, and comparisons of what looks like one with a single constant.
    """
    names = _identifiers(plan)
    said: dict[str, None] = {}
    for part in _definitions(plan):
        for call in _calls(part):
            said |= dict.fromkeys(_picked(call, names))
        if isinstance(part, dict):
            said |= dict.fromkeys(_of_step(part, names))
    if plan.grouped_by is not None:
        said |= {
            f"has a group for each {c!r}": None for c in _columns(plan.grouped_by) if c in names
        }
    yield from said


def _of_step(step: Mapping[str, Json], identifiers: set[str]) -> Iterator[str]:
    """Parts by the identifier, and joins by it with public rows that keep or leave out people."""
    if step.get("step") == "Part":
        yield from (f"divides the rows by {c!r}" for c in _columns(dict(step)) if c in identifiers)
    elif step.get("step") == "JoinPublic" and step.get("how") in _PICKING:
        for name in _listed(step.get("left_on")):
            if name in identifiers:
                yield f"picks rows by public rows with values of {name!r}"


def _identifiers(plan: PlanData) -> set[str]:
    """What the identifier is called, from the first step to the last."""
    if not isinstance(plan.unit, Identifier):
        return set()
    names = {plan.unit.column}
    for step in plan.steps:
        found = step.definition
        if not isinstance(found, dict):
            continue
        for pair in _listed(found.get("mapping")) if found.get("step") == "Rename" else ():
            if isinstance(pair, list) and len(pair) == 2 and pair[0] in names:
                names.add(str(pair[1]))
        for named in _listed(found.get("named")):
            if isinstance(named, dict) and _column(named.get("tree")) in names:
                names.add(str(named.get("name")))
    return names


def _listed(found: Json) -> list[Json]:
    return found if isinstance(found, list) else []


def _definitions(plan: PlanData) -> Iterator[Json]:
    yield from (step.definition for step in plan.steps)
    yield from (output.definition for output in plan.outputs)
    yield plan.grouped_by


def _calls(found: Json) -> Iterator[Mapping[str, Json]]:
    return (part for part in objects_in(found) if part.get("type") == "Call")


def _columns(found: Json) -> Iterator[str]:
    for part in objects_in(found):
        if part.get("type") == "Column" and isinstance(part.get("name"), str):
            yield str(part["name"])


def _column(found: Json) -> str | None:
    """The column that an operand is, perhaps cast to another type."""
    while isinstance(found, dict) and found.get("type") == "Call" and found.get("op") == "cast":
        found = next(iter(_listed(found.get("args"))), None)
    if isinstance(found, dict) and found.get("type") == "Column":
        return str(found.get("name"))
    return None


def _picked(call: Mapping[str, Json], identifiers: set[str]) -> Iterator[str]:
    operands, op = _listed(call.get("args")), call.get("op")
    columns = [name for operand in operands if (name := _column(operand)) is not None]
    constants = [o for o in operands if isinstance(o, dict) and o.get("type") == "Literal"]
    if len(columns) != 1:
        return
    (name,) = columns
    if op in _COMPARED and len(constants) == len(operands) - 1:
        if name in identifiers:
            yield f"compares {name!r} with a constant"
        elif op in _EQUAL and looks_identifying(name):
            yield f"compares {name!r} with one constant"
    elif op == "is_in":
        values = next(
            (v for k, v in map(_pair, _listed(call.get("options"))) if k == "values"), None
        )
        many = len(values) if isinstance(values, list) else 0
        if name in identifiers:
            yield f"picks rows by a list of values of {name!r}"
        elif many == 1 and looks_identifying(name):
            yield f"compares {name!r} with one constant"


def _pair(found: Json) -> tuple[Json, Json]:
    return (found[0], found[1]) if isinstance(found, list) and len(found) == 2 else (None, None)
