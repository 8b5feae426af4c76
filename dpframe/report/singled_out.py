"""Selections of single people, recognised by the definitions in plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpframe.core.units import Identifier
from dpframe.frames.definition import Json, objects_in
from dpframe.plan import PlanData
from dpframe.plan.looks import looks_identifying

_EQUAL = frozenset(("eq", "ne", "eq_missing", "ne_missing"))
_PICKING = frozenset(("inner", "semi", "anti"))
"""Joins with public rows that keep some rows and not others."""
_TESTS = frozenset(("str_contains", "str_starts_with", "str_ends_with"))
"""What a text is tested for."""
_COMPARED = _EQUAL | {"lt", "le", "gt", "ge", "is_between"}
_LOGIC = frozenset(("and", "or", "not", "xor"))
_OF_NULLS = frozenset(("is_null", "is_not_null"))


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
        for atom in _atoms(part):
            said |= dict.fromkeys(_computed(atom, names))
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
            if _is_one_of(name, identifiers):
                yield f"picks rows by public rows with values of {name!r}"


def _identifiers(plan: PlanData) -> set[str]:
    """What the identifier is called, and what is computed from it alone, from the first step to
    the last.
    """
    if not isinstance(plan.unit, Identifier):
        return set()
    names = {plan.unit.column}
    for step in plan.steps:
        found = step.definition
        if not isinstance(found, dict):
            continue
        for pair in _listed(found.get("mapping")) if found.get("step") == "Rename" else ():
            if isinstance(pair, list) and len(pair) == 2 and _is_one_of(pair[0], names):
                names.add(str(pair[1]))
        for named in _listed(found.get("named")):
            used = set(_columns(named.get("tree"))) if isinstance(named, dict) else set()
            if isinstance(named, dict) and used and used <= names:
                names.add(str(named.get("name")))
    return names


def _is_one_of(name: Json, names: set[str]) -> bool:
    """Whether this is one of some names; in a document it may be anything."""
    return isinstance(name, str) and name in names


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


def _values_of(call: Mapping[str, Json]) -> list[Json]:
    """The values that a list of is_in has."""
    if call.get("op") != "is_in":
        return []
    return next(
        (_listed(v) for k, v in map(_pair, _listed(call.get("options"))) if k == "values"), []
    )


def _text_of(found: Json) -> str | None:
    """The column that an operand is, or is a text of: after casts and operations on text."""
    while isinstance(found, dict) and found.get("type") == "Call":
        op = str(found.get("op"))
        if op != "cast" and not op.startswith("str_"):
            return None
        found = next(iter(_listed(found.get("args"))), None)
    return _column(found)


def _picked(call: Mapping[str, Json], identifiers: set[str]) -> Iterator[str]:
    operands, op = _listed(call.get("args")), call.get("op")
    columns = [name for operand in operands if (name := _column(operand)) is not None]
    constants = [o for o in operands if isinstance(o, dict) and o.get("type") == "Literal"]
    if op in _TESTS or ((op in _COMPARED or op == "is_in") and not columns):
        texts = [n for operand in operands if (n := _text_of(operand)) in identifiers]
        yield from (f"picks rows by the text of {name!r}" for name in texts)
    if len(columns) != 1:
        return
    (name,) = columns
    if op in _COMPARED and len(constants) == len(operands) - 1:
        if name in identifiers:
            yield f"compares {name!r} with a constant"
        elif op in _EQUAL and looks_identifying(name):
            yield f"compares {name!r} with one constant"
    elif op == "is_in":
        many = len(_values_of(call))
        if name in identifiers:
            yield f"picks rows by a list of values of {name!r}"
        elif many == 1 and looks_identifying(name):
            yield f"compares {name!r} with one constant"


def _atoms(found: Json) -> Iterator[Mapping[str, Json]]:
    """What the conditions of filters and of when/then are put together from."""
    for part in objects_in(found):
        if part.get("step") == "Filter":
            for predicate in _listed(part.get("predicates")):
                yield from _parts_of(predicate)
        elif part.get("type") == "Call" and part.get("op") == "when":
            yield from _parts_of(next(iter(_listed(part.get("args"))), None))


def _parts_of(condition: Json) -> Iterator[Mapping[str, Json]]:
    if not isinstance(condition, dict) or condition.get("type") != "Call":
        return
    if condition.get("op") in _LOGIC:
        for arg in _listed(condition.get("args")):
            yield from _parts_of(arg)
    else:
        yield condition


def _computed(atom: Mapping[str, Json], identifiers: set[str]) -> Iterator[str]:
    """Conditions on values computed from the identifier, such as ``patient % 1000 == 7``.
    Comparisons of plain columns and tests for null select no single person.
    """
    operands, op = _listed(atom.get("args")), atom.get("op")
    if op in _OF_NULLS or all(_column(operand) is not None for operand in operands):
        plain = op in _COMPARED or op in _OF_NULLS
        if plain or op == "is_in":
            return
    if next(_picked(atom, identifiers), None) is not None:  # which says more
        return
    columns = list(dict.fromkeys(_columns(dict(atom))))
    for name in columns:
        if name in identifiers:
            yield f"picks rows by what it computes from {name!r}"
    others = [o for o in operands if isinstance(o, dict) and o.get("type") == "Literal"]
    single = op in _EQUAL and others and len(columns) == 1
    if single and columns[0] not in identifiers and looks_identifying(columns[0]):
        yield f"compares what it computes from {columns[0]!r} with one constant"


def _pair(found: Json) -> tuple[Json, Json]:
    return (found[0], found[1]) if isinstance(found, list) and len(found) == 2 else (None, None)
