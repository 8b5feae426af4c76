"""Plans as JSON documents: their contents, and how edits are detected.

``physical`` is what happens: the plan that the kernel verifies, see `dpframe.kernel.plan`. ``plan``
says it for people, with all that a reviewer's decision rests on. The fingerprint is the digest of
both. ``session`` is what a session had left when the plan was made, which another run
changes. ``digest`` covers the whole document. In documents of version 1 fingerprint and digest are
made from lists, where definitions now have rules.

The previous edition left out of its fingerprints the request, forced choices, typical values,
columns named like identifiers, and types of columns. An editor of a document could remove these,
and risks with them, and keep its fingerprint. `earlier_fingerprint` is what that edition would
have stated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

from dpframe.core.regular import by_rules, canonical, require_room, write_out
from dpframe.core.sensitivity import ContributionBounds
from dpframe.core.tree import wire_name
from dpframe.errors import PlanMismatch, UnsupportedOperation
from dpframe.kernel import plan as kernel
from dpframe.kernel.plan import Plan, Refused, plan_of, write
from dpframe.ledger.amounts import decimals
from dpframe.plan.codec import Malformed, decode, encode
from dpframe.plan.data import Fields, PlanData
from dpframe.plan.parameters import template, without, without_values

# What happens by a physical plan, in the form that fingerprints are made of. The order of outputs
# does not change it, and values of parameters may be left out.

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
    return _digest_of_item(_in_order(found))


def _digest_of_item(found: object) -> str:
    text = json.dumps(found, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _in_order(plan: Fields) -> Fields:
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
            known[kind][place] = _digest_of_item(_replace_places(item, known))
    digests = [_digest_of_item(_replace_places(draw, known)) for draw in plan["draws"]]
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


def _replace_places(found: Fields, new: Mapping[str, Mapping[int, object]]) -> Fields:
    """A part of a plan with something else in place of the places that it names."""
    result = {}
    for name, item in found.items():
        if name in _PLACES:
            places = new[_PLACES[name]]
            result[name] = [*map(places.get, item)] if isinstance(item, list) else places[item]
        else:  # nothing in a list names a place
            result[name] = _replace_places(item, new) if isinstance(item, dict) else item
    return result


def _places_in(items: Iterable[Fields], kind: str) -> Iterator[int]:
    """The places in a list that some parts of a plan name, in order."""
    for found in items:
        for name, item in found.items():
            if _PLACES.get(name) == kind:
                yield from item if isinstance(item, list) else [item]
            elif isinstance(item, dict):
                yield from _places_in([item], kind)


def _by_use(plan: Fields, kind: str, first: Iterable[int]) -> list[int]:
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


def _without_values(found: object, allowed: Mapping[str, str]) -> Any:
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


# Which releases of a document are drawn jointly, and which are of weighed individuals.
#
# A release that is drawn alone says nothing of its draw, and one of individuals that are not
# weighed nothing of a norm: documents of such plans are what they were before there were any.


def without_own_draws(plan: Fields) -> Fields:
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


def with_draws(plan: Fields) -> Fields:
    """The document with the draws of all releases, numbered in the order in which they appear."""
    if not isinstance(plan.get("releases"), list):
        return {**plan}
    found, drawn = list[object](), set[object]()
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


def renumber(releases: Sequence[Fields]) -> list[Fields]:
    """Releases in another order, with draws numbered by it."""
    numbers: dict[object, int] = {}
    result = []
    for place, release in enumerate(releases):
        number = numbers.setdefault(release.get("draw", f"alone {place}"), len(numbers))
        result.append({**release, "draw": number} if "draw" in release else dict(release))
    return result


# Plan documents of earlier versions: the fields that they lack follow from the rest.
#
# Documents of the first edition lack
#
# - the budget to charge, which becomes None;
# - for a private choice, the range of an individual's score changes in one group. It becomes what
#   the rows of one group can change, or more where the sums do not show that;
# - for a mean or a variance, the middle of the bounds, at which values are centred. It becomes the
#   middle as a float.
#
# The fingerprint of a completed plan includes these fields.

_CENTRED = {"MeanError": ("GridSum", "grid"), "VarianceError": ("SquareSum", "inner")}
"""Which statistic of an output centres its values, and where that says the point."""


def complete_session(session: Fields) -> Fields:
    """The session of a document, with the budget."""
    return {"budget": None, **session}


def complete(plan: Fields) -> Fields:
    """The plan of a document, with its missing fields; equal to it if nothing is missing. Raises
    `Malformed` when that cannot follow because numbers are invalid.
    """
    result = dict(plan)
    for name, fill in (("releases", _with_largest), ("outputs", _with_middle)):
        if isinstance(result.get(name), list):
            result[name] = [fill(i) if isinstance(i, dict) else i for i in result[name]]
    return result


def _with_largest(release: Fields) -> Fields:
    scores = release.get("scores")
    if not isinstance(scores, dict) or scores.keys() != {"l1", "l2_squared"}:
        return release
    total = decode(Fraction, scores["l1"], "scores.l1")
    squared = decode(Fraction, scores["l2_squared"], "scores.l2_squared")
    spread = decode(ContributionBounds, with_norm(release.get("spread")), "spread")
    # the range in one group, whose sum and the sum of squares over groups are known
    root = Fraction(isqrt(max(0, squared.numerator * squared.denominator)), squared.denominator)
    largest = min(total, root)
    if spread.is_bounded and spread.tight[0]:
        rows, _, per_group = spread.tight
        if squared == spread.l2_squared * (total / rows) ** 2:
            largest = per_group * (total / rows)
    return {**release, "scores": {**scores, "linf": str(largest)}}


def _with_middle(output: Fields) -> Fields:
    error = output.get("error")
    if not isinstance(error, dict) or "middle" in error:
        return output
    for kind, (statistic, grid) in _CENTRED.items():
        if error.get("kind") == kind:
            centre = _centre(output.get("definition"), statistic, grid)
            return output if centre is None else {**output, "error": {**error, "middle": centre}}
    return output


def _centre(definition: object, statistic: str, grid: str) -> object:
    """The first point that such a statistic centres values at; None if none exists."""
    if isinstance(definition, list):
        parts = (_centre(part, statistic, grid) for part in definition)
        return next((centre for centre in parts if centre is not None), None)
    if not isinstance(definition, dict):
        return None
    if definition.get("type") != statistic:
        return _centre([*definition.values()], statistic, grid)
    try:
        return definition[grid]["centre"]["fraction"]
    except (KeyError, TypeError):
        return None


SCHEMA_VERSION = 2
_FIRST_VERSION = 1
"""Documents of it have no physical plan."""
_WHERE = "Plan.from_json(...)"
_OF_SESSION = ("remaining", "share", "budget")
"""Fields of a plan that are about the session, not about the release: no fingerprint has them."""
_STATED = ("forced", "typical", "identifying")
"""Fields that only plans write which have any."""
_ONCE_OF_SESSION = ("requested", *_STATED)
"""What documents of the edition before hold in ``session``."""
_LONGEST = 1 << 26
"""Bytes of a document: a hundred thousand edges that follow no rule are eight megabytes."""
_COLUMNS = "columns"
"""A field that documents of the edition before lack."""
_OF_SEVERAL = ("blocks", "queries")
"""Fields that only plans of several queries write."""
_NO_OTHERS: Mapping[str, object] = {
    **{name: [] for name in (*_OF_SEVERAL, "parameters", *_STATED)},
    **dict.fromkeys(("windows", "found", _COLUMNS)),
}
"""Fields that documents leave out where they are so: documents of one query, without parameters,
windows and so on, are what they were before there were any.
"""
_UNSAID = re.compile(r"^(counts: |)(noise may make )")
"""Where notes of the edition before called results unbiased, also where a limit, a weight or a
clamp moves them.
"""
_LATER_WARNINGS = re.compile(
    "no row can have the listed keys? |.* becomes null, and nothing tells how much does$", re.DOTALL
)
"""Warnings that the edition before did not give. They follow from the rest of a plan."""
_OF_KERNEL = ("physical", "dpframe_version")
"""Parts of a document that are fields of plans, and are not in the part that people read."""
_PARTS = {"schema_version", "fingerprint", "digest", "plan", "session"}
_ORDER = ("schema_version", "dpframe_version", "fingerprint", "physical", "plan", "session")
_BESIDE = ("remaining_decimal", "cost_decimal")
"""Fields that commands add to a document: amounts of it in another form."""
RISKS, QUESTIONS = "risks", "questions"
"""Fields that commands add to a document and that readers ignore: they follow from the rest, by
the rules of the version that shows them.
"""


def fingerprint(plan: PlanData) -> str:
    """The digest of all that happens and all that a reviewer's decision rests on."""
    return _fingerprint(_contents(plan) | _done(plan), of_first=plan.physical is None)


def earlier_fingerprint(plan: PlanData) -> str:
    """What the edition before would have stated as the fingerprint: the digest of what is released.
    Results that it kept, runs that it made and approvals that it recorded are found by it.
    """
    return _fingerprint(_earlier(_contents(plan)), of_first=True)


def template_fingerprint(
    plan: PlanData, allowed: Mapping[str, str], *, earlier: bool = False
) -> str:
    """The digest of all plans that differ from this one only in the values of some parameters;
    `allowed` gives the allowed values of each, in words. With `earlier` as the edition before
    made it. Raises `KeyError` when the plan does not have the parameter.
    """
    known = {parameter.name for parameter in plan.parameters}
    for name in allowed:
        if name not in known:
            raise KeyError(name)
    contents = _contents(plan)
    if earlier:
        return _fingerprint(template(_earlier(contents), allowed), of_first=True)
    of_first = plan.physical is None
    return _fingerprint(template(contents, allowed) | _done(plan, allowed), of_first=of_first)


def _done(plan: PlanData, allowed: Mapping[str, str] | None = None) -> Fields:
    """The part of a fingerprint that is about what happens; nothing for documents of version 1."""
    return {} if plan.physical is None else {"physical": meaning(plan.physical, allowed or {})}


def lacks_types(plan: PlanData) -> bool:
    """Whether a plan lacks the types of the columns that it reads, because it was read from a
    document of the previous edition.
    """
    return any(one.columns is None for one in plan.blocks or (plan,))


def says_the_same(earlier: PlanData, plan: PlanData, allowed: Mapping[str, str]) -> bool:
    """Whether a plan from a document of the edition before says all that another one does but types
    of columns, which it cannot; values of parameters in `allowed` may be others. Raises `KeyError`
    when one does not have the parameter.
    """
    untyped = replace(
        plan,
        physical=None,
        columns=None,
        blocks=tuple(replace(block, columns=None) for block in plan.blocks),
    )
    if not lacks_types(earlier):
        return False
    earlier = replace(
        earlier,
        typical=tuple(sorted(earlier.typical)),
        identifying=tuple(sorted(earlier.identifying)),
    )
    if not allowed:
        return fingerprint(earlier) == fingerprint(untyped)
    return template_fingerprint(earlier, allowed) == template_fingerprint(untyped, allowed)


def job_digest(plan: PlanData) -> str:
    """The identity of a job: the frames that it reads, its steps and groups, and the names of its
    outputs. Values of parameters, bounds, listed keys, spend and noise are no part of it, so that
    one that was changed in these is the same job.
    """
    bare = without_values(plan)
    said = [
        [one.source, one.unit.kind, [step.definition for step in one.steps], one.grouped_by]
        for one in bare.blocks or (bare,)
    ]
    names = [output.name for output in bare.outputs]
    queries = [list(query.names) for query in bare.queries]
    return _digest(["dpframe job 1", said, names, queries], of_first=True)


def to_json(plan: PlanData, indent: int | None) -> str:
    """The document of a plan, as JSON that can be stored as UTF-8: names that cannot are escaped,
    and then all others too.
    """
    document = document_of(plan)
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(document, indent=indent, allow_nan=False)
    return text


def document_of(plan: PlanData) -> Fields:
    """The document as Python has it."""
    contents = _contents(plan)
    document: Fields = {
        "schema_version": _FIRST_VERSION,
        "fingerprint": _fingerprint(contents | _done(plan), of_first=plan.physical is None),
        "plan": contents,
        "session": {name: encode(getattr(plan, name)) for name in _OF_SESSION},
    }
    if plan.physical is not None:
        document |= {
            "schema_version": SCHEMA_VERSION,
            "dpframe_version": plan.dpframe_version,
            "physical": json.loads(write(plan.physical)),
        }
    order = [name for name in _ORDER if name in document]
    digest = _digest(document, of_first=plan.physical is None)
    return {**{name: document[name] for name in order}, "digest": digest}


def from_json(text: object, hints: Mapping[str, object]) -> tuple[Fields, str]:
    """The fields of the plan that a document holds, given their types, and the document in the form
    that digests are made of, which does not depend on the order of names in objects. Raises
    `UnsupportedOperation` when it is not the document of a plan, or one of another version, and
    `PlanMismatch` when it is not what was once written.
    """
    try:
        document = _parsed(content_of(text))
        beside = {name: document.pop(name) for name in _BESIDE if name in document}
        document.pop(RISKS, None)
        document.pop(QUESTIONS, None)
        stated, of_first = document.pop("digest"), document["schema_version"] == _FIRST_VERSION
        try:
            require_room(canonical(document))
            right = stated == _digest(document, of_first=of_first)
        except ValueError:
            raise Malformed("regular") from None
        if not right:
            raise edited("its contents do not match its digest")
        ruled = by_rules(document["plan"])
        if of_first:
            document = _complete({**document, "plan": ruled})
        elif ruled != document["plan"]:
            raise Malformed("a list")
        whole = canonical({**document, "digest": _digest(document, of_first=of_first)})
        plan, session = with_draws(document["plan"]), document["session"]
        contents = {**_NO_OTHERS, **plan, **session}
        said = {n: hint for n, hint in hints.items() if n not in _OF_KERNEL}
        if session.keys() != {*_OF_SESSION} or contents.keys() != said.keys():
            raise edited("fields are missing or unknown")
        fields = {n: decode(hint, contents[n], n) for n, hint in said.items()}
        fields |= {"physical": _physical(document), "dpframe_version": None}
        if not of_first:
            said = document["dpframe_version"]
            fields["dpframe_version"] = decode(str, said, "dpframe_version")
        if any(fields_beside(fields)[name] != found for name, found in beside.items()):
            raise edited("its decimals do not match its exact amounts")
        return fields, whole
    except Malformed as error:
        raise edited(f"{error} has a value that no plan has") from None


def _physical(document: Fields) -> Plan | None:
    """The physical plan of a document; None for one of version 1."""
    if document["schema_version"] == _FIRST_VERSION:
        return None
    try:
        return plan_of(document["physical"])
    except (Refused, RecursionError):
        raise _other_physical() from None


def _other_physical() -> PlanMismatch:
    """The refusal of a physical plan that no dpframe of this version writes."""
    return PlanMismatch(
        "the physical plan of the document lacks fields, or has others than this dpframe writes",
        where=_WHERE,
        remedy=(
            "plan the query again, if an earlier dpframe wrote the document",
            "write it again, if it was edited: plan.to_json()",
        ),
    )


def physical_in(text: object) -> Plan | None:
    """The physical plan of a document, before anything else in it is checked; None in a document of
    version 1. Raises `UnsupportedOperation` when it is not the document of a plan, or one of
    another version, and `PlanMismatch` when it has no physical plan.
    """
    try:
        return _physical(_parsed(content_of(text)))
    except RecursionError:
        raise _other_physical() from None


def fields_beside(fields: Fields) -> Fields:
    """The fields that commands add to the document of a plan with these fields: the remaining
    budget and the cost, as decimals.
    """
    left, cost = fields["remaining"], fields["cost"]
    made = (None if left is None else decimals(left), decimals(cost, up=True))
    return dict(zip(_BESIDE, made, strict=True))


def stated_in(text: str) -> str:
    """The fingerprint that the document of a plan has, which of an earlier version is that of less
    than this one reads in it. Raises `UnsupportedOperation` as `physical_in` does.
    """
    return str(_parsed(text)["fingerprint"])


def _complete(document: Fields) -> Fields:
    """A document of version 1 as this edition writes it."""
    plan, session = complete(document["plan"]), complete_session(document["session"])
    if "requested" not in plan:
        moved = {name: session.pop(name) for name in _ONCE_OF_SESSION if name in session}
        plan |= moved
    found = {**document, "plan": plan, "session": session}
    if plan != document["plan"]:
        try:
            stated = _fingerprint(document["plan"], of_first=True)
            found["fingerprint"] = _fingerprint(plan, of_first=True)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise Malformed("plan") from None
        if document["fingerprint"] != stated:
            raise edited("its fingerprint does not match the rest")
    return found


def edited(why: str) -> PlanMismatch:
    """The refusal of a document that was edited."""
    return PlanMismatch(
        f"the plan was edited or damaged: {why}",
        where=_WHERE,
        remedy="write it again: plan.to_json()",
    )


def _parsed(text: str | bytes) -> Fields:
    if len(text) > _LONGEST:
        raise edited(f"it has more than {_LONGEST >> 20} megabytes")
    try:
        fields = json.loads(
            text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
        )
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "schema_version" not in fields:
        raise no_plan()
    version = fields["schema_version"]
    if type(version) is not int or version not in (_FIRST_VERSION, SCHEMA_VERSION):
        shown = f"{version}" if type(version) is int else "that is not an integer"
        known = f"{_FIRST_VERSION} and {SCHEMA_VERSION}"
        raise UnsupportedOperation(
            f"the plan has the schema version {shown}, and this dpframe reads {known}",
            where=_WHERE,
            remedy=("plan the query again", "read it with the version of dpframe that wrote it"),
        )
    inner = (fields.get("plan"), fields.get("session"))
    of_version = _PARTS if version == _FIRST_VERSION else _PARTS.union(_OF_KERNEL)
    if fields.keys() - {*_BESIDE, RISKS, QUESTIONS} != of_version or not all(
        isinstance(one, dict) for one in inner
    ):
        raise edited("fields are missing or unknown")
    return fields


def no_plan() -> UnsupportedOperation:
    """The refusal of what is no document of a plan at all."""
    return UnsupportedOperation(
        "this is not the JSON of a plan",
        where=_WHERE,
        remedy=(
            "pass the text that plan.to_json() returns",
            "pass its file as a pathlib.Path",
        ),
    )


def _finite(text: str) -> float:
    """A number that JSON has."""
    result = float(text)
    if not math.isfinite(result):
        raise ValueError
    return result


def _once(pairs: list[tuple[str, object]]) -> Fields:
    """An object whose names are all different: of two, readers may show either."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError
    return result


def _contents(plan: PlanData) -> Fields:
    beside = (*_OF_SESSION, *_OF_KERNEL)
    fields = (f for name, f in plan.__dataclass_fields__.items() if name not in beside)
    contents = {wire_name(field): encode(getattr(plan, field.name)) for field in fields}
    unsaid = {name for name, nothing in _NO_OTHERS.items() if contents[name] == nothing}
    if plan.blocks:
        unsaid -= {*_OF_SEVERAL}
    return without_own_draws({n: item for n, item in contents.items() if n not in unsaid})


def _earlier(contents: Fields) -> Fields:
    """What the edition before made fingerprints of."""
    left = (*_ONCE_OF_SESSION, _COLUMNS)
    result = _without_later_warnings(
        {name: item for name, item in contents.items() if name not in left}
    )
    if "blocks" in result:
        result["blocks"] = [
            _without_later_warnings({n: item for n, item in block.items() if n != _COLUMNS})
            for block in result["blocks"]
        ]
    result["outputs"] = [{**o, "note": _as_of_before(o["note"])} for o in result["outputs"]]
    return result


def _without_later_warnings(contents: Fields) -> Fields:
    kept = [text for text in contents["warnings"] if not _LATER_WARNINGS.match(text)]
    return {**contents, "warnings": kept}


def _as_of_before(note: str) -> str:
    """A note in the words of the edition before, which called all totals of streams unbiased."""
    of_stream = note.startswith("its running total is ") and note.endswith(" all nights so far")
    return f"{note}; unbiased" if of_stream else _UNSAID.sub(r"\1unbiased; \2", note)


def _fingerprint(contents: Fields, *, of_first: bool = False) -> str:
    """The digest for any order of the outputs and draws: outputs are sorted by name, and releases
    numbered as these use them. Results of several queries come in an order, which is part of what
    is planned.
    """
    if "blocks" in contents:
        return _digest(contents, of_first=of_first)
    order = sorted(enumerate(contents["outputs"]), key=lambda place: str(place[1]["name"]))
    outputs = [output for _, output in order]
    numbers: dict[int, int] = {}
    for number in (number for output in outputs for number in output["releases"]):
        numbers.setdefault(number, len(numbers))
    for number in range(len(contents["releases"])):
        numbers.setdefault(number, len(numbers))
    record = dict(contents)
    record["outputs"] = [o | {"releases": [numbers[n] for n in o["releases"]]} for o in outputs]
    record["releases"] = renumber([contents["releases"][number] for number in numbers])
    if "forced" in record:
        places = {number: place for place, (number, _) in enumerate(order)}
        forced = [{**one, "output": places[one["output"]]} for one in record["forced"]]
        record["forced"] = sorted(forced, key=lambda one: int(one["output"]))
    return _digest(record, of_first=of_first)


def _digest(value: object, *, of_first: bool = False) -> str:
    """The digest of JSON; for documents of the first version, of its long lists, too."""
    text = write_out(canonical(value)) if of_first else canonical(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def content_of(source: object) -> str | bytes:
    """The text of a document itself, or what is in a file. Raises `UnsupportedOperation` when it
    cannot be read.
    """
    if isinstance(source, str | bytes):
        return source
    if not isinstance(source, os.PathLike):
        raise no_plan()
    path = Path(source)
    try:
        with path.open("rb") as opened:
            return opened.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise UnsupportedOperation(
            f"the plan {str(path)!r} cannot be read: {why}",
            where=_WHERE,
            remedy=(
                "pass the path of a file that exists",
                "pass the text that plan.to_json() returns",
            ),
        ) from None
