"""Which releases of a document are drawn jointly, and which are of weighed individuals.

A release that is drawn alone says nothing of its draw, and one of individuals that are not weighed
nothing of a norm: documents of such plans are what they were before there were any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def without_own_draws(plan: dict[str, Any]) -> dict[str, Any]:
    """The document of a plan, where releases that are drawn alone do not say so."""
    releases = [
        {name: item for name, item in release.items() if name not in ("draw", "joint")}
        if release["joint"] is None
        else {**release, "joint": _without_nothing(release["joint"])}
        for release in map(_without_no_norm, plan["releases"])
    ]
    return {**plan, "releases": releases}


def _without_nothing(joint: dict[str, Any]) -> dict[str, Any]:
    """Conditions and arches are left out if numbers are moved separately."""
    conditions = () if joint["conditions"] else ("conditions", "kept")
    unsaid = (*conditions, *(() if joint["arches"] else ("arches",)))
    return {name: item for name, item in joint.items() if name not in unsaid}


def _with_nothing(joint: object) -> object:
    if not isinstance(joint, dict):
        return joint
    result = joint if "arches" in joint else {**joint, "arches": []}
    if not {"conditions", "kept"} & joint.keys():
        return {**result, "conditions": [], "kept": []}
    return result


def _without_no_norm(release: dict[str, Any]) -> dict[str, Any]:
    spread = release["spread"]
    if spread["norm"] is not None:
        return release
    return {**release, "spread": {n: item for n, item in spread.items() if n != "norm"}}


def with_norm(spread: object) -> object:
    """The document of how an individual's rows are spread, with a norm."""
    return {**spread, "norm": None} if isinstance(spread, dict) and "norm" not in spread else spread


def with_draws(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the draws of all releases, numbered in the order in which they appear."""
    if not isinstance(plan.get("releases"), list):
        return {**plan}
    found, drawn = list[Any](), set[object]()
    for release in plan["releases"]:
        made = release
        if isinstance(release, dict) and "draw" not in release and "joint" not in release:
            made = {**release, "draw": len(drawn), "joint": None}
        elif isinstance(release, dict) and "joint" in release:
            made = {**release, "joint": _with_nothing(release["joint"])}
        if isinstance(made, dict) and "spread" in made:
            made = {**made, "spread": with_norm(made["spread"])}
        found.append(made)
        if isinstance(made, dict):
            drawn.add(repr(made.get("draw")))
    return {**plan, "releases": found}


def renumbered(releases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Releases in another order, with draws numbered by it."""
    numbers: dict[object, int] = {}
    result = []
    for place, release in enumerate(releases):
        number = numbers.setdefault(release.get("draw", f"alone {place}"), len(numbers))
        result.append({**release, "draw": number} if "draw" in release else dict(release))
    return result
