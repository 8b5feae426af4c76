"""Which releases of a document are drawn together.

A release that is drawn alone says nothing of its draw: documents of plans without joint draws are
what they were before there were any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def without_own_draws(plan: dict[str, Any]) -> dict[str, Any]:
    """The document of a plan, where releases that are drawn alone do not say so."""
    releases = [
        {name: item for name, item in release.items() if name not in ("draw", "joint")}
        if release["joint"] is None
        else release
        for release in plan["releases"]
    ]
    return {**plan, "releases": releases}


def with_draws(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the draws of all releases, numbered in the order in which they appear."""
    if not isinstance(plan.get("releases"), list):
        return {**plan}
    found, drawn = list[Any](), set[object]()
    for release in plan["releases"]:
        made = release
        if isinstance(release, dict) and "draw" not in release and "joint" not in release:
            made = {**release, "draw": len(drawn), "joint": None}
        found.append(made)
        if isinstance(made, dict):
            drawn.add(repr(made.get("draw")))
    return {**plan, "releases": found}


def renumbered(releases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Releases in another order, with draws numbered by it."""
    numbers: dict[object, int] = {}
    made = []
    for place, release in enumerate(releases):
        number = numbers.setdefault(release.get("draw", f"alone {place}"), len(numbers))
        made.append({**release, "draw": number} if "draw" in release else dict(release))
    return made
