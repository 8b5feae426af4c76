"""What happens by a physical plan, in the form that fingerprints are made of. The order of outputs
does not change it, and values of parameters may be left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpframe.kernel import plan as kernel
from dpframe.plan.parameters import without

_PLACES = {
    "input": "frames",
    "left": "frames",
    "right": "frames",
    "frame": "frames",
    "table": "tables",
    "tables": "tables",
    "draw": "draws",
}
"""Fields that name other items by their places, each with the list of these items."""


def meaning(plan: kernel.Plan, allowed: Mapping[str, str]) -> str:
    """The digest of a physical plan. Values of the parameters in `allowed`, which has what is
    allowed of each in words, are no part of it.
    """
    found = json.loads(kernel.write(plan))
    if allowed:
        found = _without_values(found, allowed)
    return _digest(_in_order(found))


def _digest(found: object) -> str:
    text = json.dumps(found, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _in_order(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan with its draws in the order of their digests, and tables and frames in the order of
    their first use. A plan that finds groups in rounds keeps its own order.
    """
    plan = {**plan, "options": list(map(_in_order, plan["options"]))}
    if len(plan["draws"]) < 2 or any(frame["node"] == "Without" for frame in plan["frames"]):
        return plan
    # digests of draws, in which digests of tables and frames stand for their places, and nothing
    # for places of other draws
    known: dict[str, dict[int, Any]] = {
        "frames": {},
        "tables": {},
        "draws": dict.fromkeys(range(len(plan["draws"]))),
    }
    for kind in ("frames", "tables"):
        for place, item in enumerate(plan[kind]):
            known[kind][place] = _digest(_replace_places(item, known))
    digests = [_digest(_replace_places(draw, known)) for draw in plan["draws"]]
    draws = sorted(range(len(digests)), key=lambda place: digests[place])
    tables = _by_use(
        plan, "tables", _places_in([plan["draws"][place] for place in draws], "tables")
    )
    frames = _by_use(
        plan, "frames", _places_in([plan["tables"][place] for place in tables], "frames")
    )
    orders = {"frames": frames, "tables": tables, "draws": draws}
    new = {kind: {old: n for n, old in enumerate(order)} for kind, order in orders.items()}
    return plan | {
        kind: [_replace_places(plan[kind][old], new) for old in order]
        for kind, order in orders.items()
    }


def _replace_places(
    found: Mapping[str, Any], new: Mapping[str, Mapping[int, Any]]
) -> dict[str, Any]:
    """A part of a plan with something else in place of the places that it names."""
    result = {}
    for name, item in found.items():
        if name in _PLACES:
            places = new[_PLACES[name]]
            result[name] = [*map(places.get, item)] if isinstance(item, list) else places[item]
        else:  # nothing in a list names a place
            result[name] = _replace_places(item, new) if isinstance(item, dict) else item
    return result


def _places_in(items: Iterable[Mapping[str, Any]], kind: str) -> Iterator[int]:
    """The places in a list that some parts of a plan name, in order."""
    for found in items:
        for name, item in found.items():
            if _PLACES.get(name) == kind:
                yield from item if isinstance(item, list) else [item]
            elif isinstance(item, dict):
                yield from _places_in([item], kind)


def _by_use(plan: Mapping[str, Any], kind: str, first: Iterable[int]) -> list[int]:
    """All places of a list: those that are named first, each after those that it names itself, and
    then those that nothing names.
    """
    order: dict[int, None] = {}
    left = [*reversed([*first, *range(len(plan[kind]))])]
    while left:
        place = left.pop()
        inner = [p for p in _places_in([plan[kind][place]], kind) if p not in order]
        if place in order:
            continue
        if inner:
            left += [place, *reversed(inner)]
        else:
            order[place] = None
    return [*order]


def _without_values(found: Any, allowed: Mapping[str, str]) -> Any:
    """A part of a plan without the values of some parameters."""
    if isinstance(found, list):
        return [_without_values(item, allowed) for item in found]
    if not isinstance(found, dict):
        return found
    if found["node"] == "Lit" and found["parameter"] in allowed:
        return {**found, "value": None}
    result = {name: _without_values(item, allowed) for name, item in found.items()}
    if found["node"] == "Call":
        result["constants"] = without(json.loads(found["constants"]), allowed)
    return result
