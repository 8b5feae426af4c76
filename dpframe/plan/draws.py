"""Which releases of a document are drawn jointly, and which are of weighed individuals.

A release that is drawn alone says nothing of its draw, and one of individuals that are not weighed
nothing of a norm: documents of such plans are what they were before there were any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def without_own_draws(plan: dict[str, Any]) -> dict[str, Any]:
    """The document of a plan, where releases that are drawn alone do not say so, and those of
    individuals that are not weighed say no norm. Of numbers that are moved separately conditions
    and arches are left out.
    """
    releases = []
    for release in plan["releases"]:
        spread, joint = release["spread"], release["joint"]
        if spread["norm"] is None:
            spread = {name: item for name, item in spread.items() if name != "norm"}
        release = {**release, "spread": spread}
        if joint is None:
            release = {n: item for n, item in release.items() if n not in ("draw", "joint")}
        else:
            conditions = () if joint["conditions"] else ("conditions", "kept")
            unsaid = (*conditions, *(() if joint["arches"] else ("arches",)))
            release["joint"] = {n: item for n, item in joint.items() if n not in unsaid}
        releases.append(release)
    return {**plan, "releases": releases}


def _with_nothing(joint: object) -> object:
    if not isinstance(joint, dict):
        return joint
    none = () if {"conditions", "kept"} & joint.keys() else ("conditions", "kept")
    return {"arches": [], **joint, **{name: [] for name in none}}


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


def renumber(releases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Releases in another order, with draws numbered by it."""
    numbers: dict[object, int] = {}
    result = []
    for place, release in enumerate(releases):
        number = numbers.setdefault(release.get("draw", f"alone {place}"), len(numbers))
        result.append({**release, "draw": number} if "draw" in release else dict(release))
    return result
