"""Plans as JSON documents: what they hold, and what tells whether one was edited.

``plan`` is what decides about privacy and what a reviewer reads of it; the fingerprint is its
digest. ``session`` is what a session had left when the plan was made, which another run changes.
``digest`` is that of the whole document. Both are made with all numbers listed, for which `regular`
writes rules.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpframe.core.fields import written
from dpframe.errors import PlanMismatch, UnsupportedOperation
from dpframe.ledger.decimals import decimals
from dpframe.plan.codec import Malformed, decode, encode
from dpframe.plan.data import PlanData
from dpframe.plan.draws import renumbered, with_draws, without_own_draws
from dpframe.plan.earlier import completed, completed_session
from dpframe.plan.parameters import template, without_values
from dpframe.plan.regular import by_rules, written_out

SCHEMA_VERSION = 1
_WHERE = "Plan.from_json(...)"
_OF_SESSION = ("requested", "remaining", "share", "budget")
"""Fields of a plan that are about the session, not about the release."""
_STATED = ("forced", "typical", "identifying")
"""Fields beside those of the session that only plans write which have any."""
_NOT_RELEASED = (*_OF_SESSION, *_STATED)
"""What no fingerprint covers."""
_OF_SEVERAL = ("blocks", "queries")
"""Fields that only plans of several queries write."""
_PARAMETERS = "parameters"
"""A field that only plans with parameters write."""
_WINDOWS = "windows"
"""A field that only plans write whose unit has windows."""
_FOUND = "found"
"""A field that only plans write in which a limit is found."""
_NO_OTHERS: Mapping[str, Any] = {
    "blocks": [],
    "queries": [],
    _PARAMETERS: [],
    _WINDOWS: None,
    _FOUND: None,
}
_PARTS = {"schema_version", "fingerprint", "digest", "plan", "session"}
_BESIDE = ("remaining_decimal", "cost_decimal")
"""What commands write beside a document: amounts of it in another form."""
RISKS = "risks"
"""What commands write beside a document, too, and nobody reads there: it follows from the rest, by
the rules of the version that shows it.
"""


def fingerprint(plan: PlanData) -> str:
    """The digest of all that matters to privacy and all that a reviewer reads of it."""
    return _fingerprint(_contents(plan))


def template_fingerprint(plan: PlanData, allowed: Mapping[str, str]) -> str:
    """The digest of all plans that differ from this one in the values of some parameters alone;
    `allowed` says of each, in words, what it may be.

    Raises
    ------
    KeyError
        When the plan has no such parameter.
    """
    known = {parameter.name for parameter in plan.parameters}
    for name in allowed:
        if name not in known:
            raise KeyError(name)
    return _fingerprint(template(_contents(plan), allowed))


def job_digest(plan: PlanData) -> str:
    """What tells a job from others: which frames it reads, by which steps and groups, and what its
    outputs are called. Values of parameters, bounds, listed keys, spend and noise are no part of
    it, so that one that was changed in these is the same job.
    """
    bare = without_values(plan)
    said = [
        [one.source, one.unit.kind, [step.definition for step in one.steps], one.grouped_by]
        for one in bare.blocks or (bare,)
    ]
    names = [output.name for output in bare.outputs]
    return _digest(["dpframe job 1", said, names, [list(query.names) for query in bare.queries]])


def to_json(plan: PlanData, indent: int | None) -> str:
    """The document of a plan."""
    return _written(by_rules(document_of(plan)), indent)


def document_of(plan: PlanData) -> dict[str, Any]:
    """The document as Python has it."""
    contents = _contents(plan)
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "fingerprint": _fingerprint(contents),
        "plan": contents,
        "session": {name: encode(getattr(plan, name)) for name in _OF_SESSION},
    }
    stated = {name: encode(getattr(plan, name)) for name in _STATED}
    document["session"] |= {name: found for name, found in stated.items() if found}
    return {**document, "digest": _digest(document)}


def _written(document: Mapping[str, Any], indent: int | None) -> str:
    """JSON that can be stored as UTF-8: names that cannot are escaped, and then all others too."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=indent, allow_nan=False)
    return text


def from_json(text: object, hints: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The fields of the plan that a document holds, given their types, and the document in the form
    that digests are made of, which does not depend on the order of names in objects.

    Raises
    ------
    UnsupportedOperation
        When it is not the document of a plan, or one of another version.
    PlanMismatch
        When it is not what was once written.
    """
    try:
        document = _with_parts(written_out(_parsed(_content(text))))
        beside = {name: document.pop(name) for name in _BESIDE if name in document}
        document.pop(RISKS, None)
        whole = canonical(document)
        stated = document.pop("digest")
        if stated != _digest(document):
            raise edited("its contents are not those that its digest was made of")
        document, whole = _completed(document, whole)
        session = {**{name: [] for name in _STATED}, **document["session"]}
        plan = with_draws(document["plan"])
        contents = {**_NO_OTHERS, **plan, **session}
        if contents.keys() != hints.keys():
            raise edited("it lacks fields, or has others")
        fields = {n: decode(hint, contents[n], n) for n, hint in hints.items()}
        if any(fields_beside(fields)[name] != found for name, found in beside.items()):
            raise edited("its decimals are not those of its amounts")
        return fields, whole
    except Malformed as error:
        raise edited(f"{error} is nothing that a plan holds") from None


def fields_beside(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What commands write beside the document of a plan with these fields: what remains, and what
    it costs, as decimals.
    """
    left, cost = fields["remaining"], fields["cost"]
    made = (None if left is None else decimals(left), decimals(cost, up=True))
    return dict(zip(_BESIDE, made, strict=True))


def stated_in(text: str) -> str:
    """The fingerprint that the document of a plan has, which of an earlier version is that of less
    than this one reads in it.

    Raises
    ------
    UnsupportedOperation
        When it is not the document of a plan, or one of another version.
    """
    return str(_parsed(text)["fingerprint"])


def _completed(document: dict[str, Any], whole: str) -> tuple[dict[str, Any], str]:
    """A document of an earlier version as this one writes it; others as they are."""
    plan, session = completed(document["plan"]), completed_session(document["session"])
    if plan == document["plan"] and session == document["session"]:
        return document, whole
    found = {**document, "plan": plan, "session": session}
    if plan != document["plan"]:
        try:
            stated = _fingerprint(document["plan"])
        except (AttributeError, IndexError, KeyError, TypeError):
            raise Malformed("plan") from None
        if document["fingerprint"] != stated:
            raise edited("the fingerprint does not follow from the rest")
        found["fingerprint"] = _fingerprint(plan)
    return found, canonical({**found, "digest": _digest(found)})


def edited(why: str) -> PlanMismatch:
    """The refusal of a document that nobody's plan was written as."""
    return PlanMismatch(
        f"the plan was edited or damaged: {why}",
        where=_WHERE,
        remedy="write it again with plan.to_json()",
    )


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(
            text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
        )
    except ValueError:
        found = None
    if not isinstance(found, dict) or "schema_version" not in found:
        raise no_plan()
    version = found["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        shown = f"{version}" if type(version) is int else "that is not an integer"
        raise UnsupportedOperation(
            f"the plan has a schema version {shown}, and this dpframe reads {SCHEMA_VERSION}",
            where=_WHERE,
            remedy="read it with the dpframe that wrote it, or plan the query again",
        )
    return _with_parts(found)


def _with_parts(document: dict[str, Any]) -> dict[str, Any]:
    """A document, which has what plans have; what is a list may have been written as a rule."""
    inner = (document.get("plan"), document.get("session"))
    if document.keys() - {*_BESIDE, RISKS} != _PARTS or not all(
        isinstance(one, dict) for one in inner
    ):
        raise edited("it lacks fields, or has others")
    return document


def no_plan() -> UnsupportedOperation:
    """The refusal of what is no document of a plan at all."""
    return UnsupportedOperation(
        "this is not the JSON of a plan",
        where=_WHERE,
        remedy="give what plan.to_json() wrote, or the path of a file with it as a pathlib.Path",
    )


def _finite(text: str) -> float:
    """A number that JSON has."""
    found = float(text)
    if not math.isfinite(found):
        raise ValueError
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two, readers may show either."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _contents(plan: PlanData) -> dict[str, Any]:
    fields = (f for name, f in plan.__dataclass_fields__.items() if name not in _NOT_RELEASED)
    contents = {written(field): encode(getattr(plan, field.name)) for field in fields}
    if not plan.blocks:  # documents of one query are what they were before there were others
        contents = {n: found for n, found in contents.items() if n not in _OF_SEVERAL}
    if not plan.parameters:
        del contents[_PARAMETERS]
    if plan.windows is None:
        del contents[_WINDOWS]
    if plan.found is None:
        del contents[_FOUND]
    return without_own_draws(contents)


def _fingerprint(contents: Mapping[str, Any]) -> str:
    """The digest whatever the order of the outputs and of what is drawn for them: outputs are
    sorted by name, and releases numbered as these use them. Results of several queries come in an
    order, which is part of what is planned.
    """
    if "blocks" in contents:
        return _digest(contents)
    outputs = sorted(contents["outputs"], key=lambda output: str(output["name"]))
    numbers: dict[int, int] = {}
    for number in (number for output in outputs for number in output["releases"]):
        numbers.setdefault(number, len(numbers))
    for number in range(len(contents["releases"])):
        numbers.setdefault(number, len(numbers))
    record = dict(contents)
    record["outputs"] = [o | {"releases": [numbers[n] for n in o["releases"]]} for o in outputs]
    record["releases"] = renumbered([contents["releases"][number] for number in numbers])
    return _digest(record)


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """JSON of which there is one form only."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _content(source: object) -> str | bytes:
    """The text itself, or what is in a file.

    Raises
    ------
    UnsupportedOperation
        When it cannot be read.
    """
    if isinstance(source, str | bytes):
        return source
    if not isinstance(source, os.PathLike):
        raise no_plan()
    path = Path(source)
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no file has such a name"
        raise UnsupportedOperation(
            f"the plan {str(path)!r} cannot be read: {why}",
            where=_WHERE,
            remedy="give the path of a file, or its text",
        ) from None
