"""The published schema: every plan keeps to it, and it names exactly what plans have."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import dpframe as dp
from dpframe.aggregates.reconstructed_error import RunError
from dpframe.core.budget import Budget
from dpframe.core.tree import forms_of, wire_name
from dpframe.kernel import plan as kernel
from dpframe.mechanisms import (
    MECHANISMS,
    NoisyThreshold,
)
from dpframe.plan import codec, consistency, document
from tests.documentation import ROOT
from tests.plan.documents import ALL, plan_of
from tests.plan.physical_schema import PREFIX, definitions

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "plan.schema.json").read_text())
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]
VALIDATOR = Draft202012Validator(SCHEMA)
each = pytest.mark.parametrize("name", ALL)
OPTIONAL = {
    "release": ["draw", "joint"],
    "joint": ["arches", "conditions", "kept"],
    "plan": [
        "blocks",
        "queries",
        "forced",
        "parameters",
        "windows",
        "found",
        "typical",
        "identifying",
        "columns",
    ],
    "block": ["columns"],
    "Identifier": ["window", "time"],
    "stated_budget": ["per"],
    "limit_choice": ["noise"],
    "spread": ["norm"],
    "decimals": ["epsilon", "rho", "mu_squared"],
    "": ["risks", "remaining_decimal", "cost_decimal"],
}
"""What is left out where it goes without saying."""


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == document.SCHEMA_VERSION


@each
def test_plans_keep_to_it(name: str) -> None:
    VALIDATOR.validate(json.loads(plan_of(name).to_json()))


def test_physical_plans_are_those_of_the_kernel() -> None:
    listed = {name: found for name, found in DEFINITIONS.items() if name.startswith(PREFIX)}
    assert listed == definitions(), "python -m tests.plan.physical_schema"


def nodes(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        yield found
        for item in found.values():
            yield from nodes(item)
    elif isinstance(found, list):
        for item in found:
            yield from nodes(item)


def test_the_schema_is_strict_and_says_what_each_field_is() -> None:
    for node in nodes(SCHEMA):
        if node.get("type") == "object" and node != DEFINITIONS["definition"]["anyOf"][-1]:
            assert node["additionalProperties"] is False
            name = next((n for n, d in DEFINITIONS.items() if d is node), "")
            left_out = OPTIONAL.get(name, [])
            assert node["required"] == [n for n in node["properties"] if n not in left_out]
            assert name.startswith(PREFIX) or all(
                "description" in field or "const" in field for field in node["properties"].values()
            )
    assert all("description" in definition for definition in DEFINITIONS.values())


# -- neither drifts from the other ----------------------------------------------------------------

NAMES = {
    "Plan": "plan",
    "Share": "share",
    "StatedBudget": "stated_budget",
    "PlanStep": "step",
    "NoisyAggregate": "release",
    "JointDraw": "joint",
    "Sensitivity": "sensitivity",
    "ExactSensitivity": "exact_sensitivity",
    "ScoreRange": "scores",
    "ContributionBounds": "spread",
    "PlanOutput": "output",
    "PlanBlock": "block",
    "PlanQuery": "query",
    "ForcedError": "forced_error",
    "FoundLimit": "found_limit",
    "LimitChoice": "limit_choice",
    "PlanTypical": "typical",
    "PlanIdentifying": "identifying",
    "PlanColumn": "column",
    "Parameter": "parameter",
    "Windows": "windows",
}
"""What the schema calls the parts of plans that do not name their kind."""


def parts_of(kind: type) -> Iterator[type]:
    """All dataclasses that values of one hold, by its types; what is Any is no dataclass."""
    found, open_ = {kind}, [kind]
    while open_:
        one = open_.pop()
        yield one
        for hint in codec.hints_of(one).values():
            for part in flat(hint):
                if dataclasses.is_dataclass(part) and part not in found:
                    found.add(part)
                    open_.append(part)


def flat(hint: Any) -> Iterator[Any]:
    yield hint
    if inspect.isabstract(hint):
        yield from (kind for kind in codec.KINDS.values() if issubclass(kind, hint))
    for part in typing.get_args(hint):
        yield from flat(part)


OF_KERNEL = ["physical", "dpframe_version"]
"""Fields of plans that documents have beside the plan."""
PARTS = [
    part
    for part in parts_of(dp.Plan)
    if not issubclass(part, Budget) and part.__module__ != kernel.__name__
]


FORMS = [(part, name) for part in PARTS for name in forms_of(part)]
of_each_form = pytest.mark.parametrize(("part", "form"), FORMS, ids=[name for _, name in FORMS])


@of_each_form
def test_fields_are_those_of_the_code(part: type, form: str) -> None:
    named = form in codec.KINDS
    properties = DEFINITIONS[form if named else NAMES[form]]["properties"]
    said = forms_of(part)[form]
    fields = [wire_name(field) for field in dataclasses.fields(part) if field.name not in said]
    if part is dp.Plan:
        session = [*DEFINITIONS["session"]["properties"]]
        assert session == ["remaining", "share", "budget"]
        fields = [name for name in fields if name not in (*session, *OF_KERNEL)]
    assert [*properties] == (["kind", *fields] if named else fields)
    if named:
        assert properties["kind"] == {"const": form}


WITHOUT = {NoisyThreshold: {"NoNoise"}, RunError: {"DistributionSetsError"}}
"""Kinds that a part refuses."""


@of_each_form
def test_types_are_those_of_the_code(part: type, form: str) -> None:
    named = form in codec.KINDS
    properties = DEFINITIONS[form if named else NAMES[form]]["properties"]
    session = DEFINITIONS["session"]["properties"]
    for name, hint in codec.hints_of(part).items():
        if name in OF_KERNEL or name in forms_of(part)[form]:
            continue
        listed = properties[name] if name in properties else session[name]
        assert admits_null(listed) == (type(None) in typing.get_args(hint) or hint is typing.Any), (
            name
        )
        kinds = {kind.__name__ for kind in flat(hint) if kind in codec.KINDS.values()}
        if kinds and typing.get_origin(hint) is not tuple and hint not in (NAMES,):
            expected = {
                k
                for k in codec.KINDS
                if any(issubclass(codec.KINDS[k], codec.KINDS[n]) for n in kinds)
            }
            assert set(kinds_of(listed)) == expected - WITHOUT.get(part, set()), name


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        node = DEFINITIONS[node["$ref"].removeprefix("#/$defs/")]
    return node


def admits_null(node: dict[str, Any]) -> bool:
    node = resolved(node)
    if "anyOf" in node:
        return any(admits_null(option) for option in node["anyOf"])
    return node.get("type") == "null" or "null" in node.get("type", ())


def kinds_of(node: dict[str, Any]) -> Iterator[str]:
    node = resolved(node)
    if "kind" in node.get("properties", {}):
        yield node["properties"]["kind"]["const"]
    for option in (*node.get("oneOf", ()), *node.get("anyOf", ())):
        yield from kinds_of(option)


def test_every_kind_is_listed_and_seen() -> None:
    listed = {
        definition["properties"]["kind"]["const"]
        for definition in DEFINITIONS.values()
        if "kind" in definition.get("properties", {})
    }
    assert listed == codec.KINDS.keys()
    seen = {
        node["kind"]
        for name in ALL
        for node in nodes(json.loads(plan_of(name).to_json())["plan"])
        if "kind" in node
    }
    assert seen == listed


def test_choices_are_those_of_the_code() -> None:
    plan, release = DEFINITIONS["plan"]["properties"], DEFINITIONS["release"]["properties"]
    assert plan["composition"]["enum"] == [*consistency.COMPOSITIONS]
    assert plan["split"]["enum"] == [*consistency.SPLITS]
    assert {*release["mechanism"]["enum"]} == {law.name for law in MECHANISMS}
    measures = [resolved(option) for option in DEFINITIONS["budget"]["oneOf"]]
    assert {m["properties"]["measure"]["const"] for m in measures} == codec.MEASURES.keys()
    for measure in measures:
        kind = codec.MEASURES[measure["properties"]["measure"]["const"]]
        assert [*measure["properties"]] == ["measure", kind.currency, "delta"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 1),
        (("schema_version",), 3),
        (("dpframe_version",), None),
        (("physical", "cost"), 1),
        (("physical", "frames", 0, "node"), "Read"),
        (("digest",), "A" * 64),
        (("plan", "extra"), 1),
        (("plan", "cost", "epsilon"), 0.5),
        (("plan", "cost", "epsilon"), "0.5"),
        (("plan", "releases", 0, "law", "kind"), "Gaussian"),
        (("plan", "releases", 0, "candidates"), 0),
        (("plan", "unit", "contributions"), 0),
        (("plan", "composition"), "magic"),
        (("session", "remaining"), {}),
    ],
)
def test_other_documents_do_not(path: tuple[str | int, ...], value: object) -> None:
    found = json.loads(plan_of("grouped").to_json())
    node = found
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    assert not VALIDATOR.is_valid(found)
