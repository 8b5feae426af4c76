"""Ways to edit a document, and to cover that up as whoever edits it can."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from dpframe.kernel.plan import Refused, plan_of
from dpframe.plan import document
from dpframe.plan.document import meaning

Path = tuple[str | int, ...]


def paths(found: Any, at: Path = ()) -> Iterator[Path]:
    """Where everything in a document is."""
    yield at
    if isinstance(found, dict):
        for name, item in found.items():
            yield from paths(item, (*at, name))
    elif isinstance(found, list):
        for number, item in enumerate(found):
            yield from paths(item, (*at, number))


def at(found: Any, path: Path) -> Any:
    for step in path:
        found = found[step]
    return found


def with_value(found: Any, path: Path, value: Any) -> Any:
    """The document with something else in one place."""
    if not path:
        return value
    made = copy.copy(found)  # what lies elsewhere is shared: documents are read only
    made[path[0]] = with_value(found[path[0]], path[1:], value)
    return made


def edited(value: Any) -> Iterator[Any]:
    """Other values of a like kind, and of others."""
    match value:
        case bool():
            yield from (not value, None)
        case int():
            yield from (value + 1, -value - 1, float(value), str(value), bool(value))
        case float():
            yield from (value + 1.0, -value - 1.0, value / 3, int(value))
        case str():
            yield from (value + "x", value[:-1] if value else "y", value.swapcase() + "0", 1, None)
            if value.lstrip("-").replace("/", "", 1).isdigit():
                yield from (f"{value}0", f"-{value}", f" {value}", "1/3", "0")
        case None:
            yield from (0, "", [], {}, False)
        case list():
            yield from ([*value, *value[-1:]] if value else [None], value[:-1] if value else "")
            for i in range(min(len(value) - 1, 3)):
                yield [*value[:i], value[i + 1], value[i], *value[i + 2 :]]
        case dict():
            yield {**value, "extra": None}
            for name in value:
                yield {other: item for other, item in value.items() if other != name}


def edits(found: Any, part: str) -> Iterator[tuple[Path, Any]]:
    """Each edit of one place in a part of the document."""
    for path in paths(found[part], (part,)):
        old = at(found, path)
        written = json.dumps(old)
        for value in edited(old):
            if json.dumps(value) != written:
                yield path, with_value(found, path, value)


def digest_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def with_digest(found: Any) -> Any:
    """The document with the digest that it should have."""
    rest = {name: item for name, item in found.items() if name != "digest"}
    return {**rest, "digest": digest_of(rest)}


def with_fingerprint(found: Any) -> Any:
    """The document with the fingerprint that it should have, where it can have one."""
    try:
        contents = found["plan"]
        if "physical" in found:
            contents = contents | {"physical": meaning(plan_of(found["physical"]), {})}
        return {**found, "fingerprint": document._fingerprint(contents)}
    except (KeyError, TypeError, IndexError, AttributeError, Refused):
        return {**found, "fingerprint": digest_of(found.get("plan"))}
