"""Plans as JSON documents: what they hold, and what tells whether one was edited.

``plan`` is what decides about privacy and what a reviewer reads of it; the fingerprint is its
digest. ``session`` is what a session had left when the plan was made, which another run changes.
``digest`` is that of the whole document.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpframe.errors import PlanMismatch, UnsupportedOperation
from dpframe.plan.codec import Malformed, decode, encode

if TYPE_CHECKING:
    from dpframe.plan.plan import Plan

SCHEMA_VERSION = 1
_OF_SESSION = ("requested", "remaining", "share")
"""Fields of a plan that are about the session, not about the release."""
_PARTS = {"schema_version", "fingerprint", "digest", "plan", "session"}


def fingerprint(plan: Plan) -> str:
    """The digest of all that matters to privacy and all that a reviewer reads of it."""
    return _fingerprint(_contents(plan))


def to_json(plan: Plan, indent: int | None) -> str:
    """The document of a plan."""
    contents = _contents(plan)
    document = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": _fingerprint(contents),
        "plan": contents,
        "session": {name: encode(getattr(plan, name)) for name in _OF_SESSION},
    }
    document["digest"] = _digest(document)
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)


def from_json(text: str | bytes, hints: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the plan that a document holds, given the types of the fields.

    Raises
    ------
    UnsupportedOperation
        When it is not the document of a plan, or one of another version.
    PlanMismatch
        When it is not what was once written.
    """
    document = _parsed(text)
    stated = document.pop("digest")
    if stated != _digest(document) or document["fingerprint"] != _fingerprint(document["plan"]):
        raise edited("its contents are not those that its digest was made of")
    contents = {**document["plan"], **document["session"]}
    if contents.keys() != hints.keys():
        raise edited("it lacks fields, or has others")
    try:
        return {name: decode(hint, contents[name], name) for name, hint in hints.items()}
    except Malformed as error:
        raise edited(f"{error} is nothing that a plan holds") from None


def edited(why: str) -> PlanMismatch:
    """The refusal of a document that nobody's plan was written as."""
    return PlanMismatch(
        f"the plan was edited or damaged: {why}",
        where="Plan.from_json(...)",
        remedy="write it again with plan.to_json()",
    )


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "schema_version" not in found:
        raise UnsupportedOperation(
            "this is not the JSON of a plan",
            where="Plan.from_json(...)",
            remedy="write one with plan.to_json()",
        )
    version = found["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise UnsupportedOperation(
            f"the plan has schema version {version!r}, and this dpframe reads {SCHEMA_VERSION}",
            where="Plan.from_json(...)",
            remedy="read it with the dpframe that wrote it, or plan the query again",
        )
    if found.keys() != _PARTS or not all(isinstance(found[p], dict) for p in ("plan", "session")):
        raise edited("it lacks fields, or has others")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two, readers may show either."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _contents(plan: Plan) -> dict[str, Any]:
    names = (name for name in plan.__dataclass_fields__ if name not in _OF_SESSION)
    return {name: encode(getattr(plan, name)) for name in names}


def _fingerprint(contents: Mapping[str, Any]) -> str:
    """The digest whatever the order of the outputs and of what is drawn for them."""
    record = dict(contents)
    try:
        releases = record["releases"]
        names = [[release["name"], release["aggregate"]] for release in releases]
        record["outputs"] = sorted(
            (
                output | {"releases": [names[number] for number in output["releases"]]}
                for output in record["outputs"]
            ),
            key=_canonical,
        )
        record["releases"] = sorted(releases, key=_canonical)
    except (KeyError, TypeError, IndexError):
        raise edited("it lacks fields, or has others") from None
    return _digest(record)


def _digest(value: object) -> str:
    return hashlib.sha256(_canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def content(path: os.PathLike[str]) -> bytes:
    """What is in a file.

    Raises
    ------
    UnsupportedOperation
        When it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UnsupportedOperation(
            f"the plan {str(path)!r} cannot be read: {error.strerror}",
            where="Plan.from_json(...)",
            remedy="give the path of a file, or its text",
        ) from None


def on_one_line(text: str | bytes) -> str:
    """The same JSON without indentation."""
    return json.dumps(json.loads(text), ensure_ascii=False)
