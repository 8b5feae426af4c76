"""Parameters in plans: which ones expressions have as constants, and plans without their values.

A plan says the value of a parameter twice: among its parameters, and as the constant that it is in
expressions, which names the parameter. A template is what is left when both are taken out: two
plans have one template when they differ in nothing else. So sensitivity, mechanism, scale, cost,
keys and frames are part of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dpframe.core.parameters import Parameter
from dpframe.frames.definition import PARAMETER, definition
from dpframe.plan.codec import encode
from dpframe.plan.data import Fields, PlanBlock, PlanData, PlanStep

_LISTED = "Listed"
P = TypeVar("P", bound=PlanData)


def constants_of(plan: PlanData) -> Iterator[Fields]:
    """The constants of its expressions that are values of parameters, as definitions have them."""
    every: list[PlanData | PlanBlock] = [plan, *plan.blocks]
    yield from _constants([one.grouped_by for one in every])
    yield from _constants([step.definition for one in every for step in one.steps])
    yield from _constants([output.definition for output in plan.outputs])


def parameters_of(plan: PlanData) -> dict[str, Parameter]:
    """The parameters that its expressions name. Raises `ValueError` when one has two values."""
    result: dict[str, Parameter] = {}
    for constant in constants_of(plan):
        parameter = Parameter(**constant[PARAMETER])
        if result.setdefault(parameter.name, parameter) != parameter:
            raise ValueError(parameter.name)
    return result


def contradicts_parameters(plan: PlanData) -> bool:
    """Whether a constant that names a parameter is not its value, or the plan does not have the
    parameter."""
    names = [parameter.name for parameter in plan.parameters]
    known = {parameter.name: parameter for parameter in plan.parameters}
    if len(known) != len(names) or names != sorted(names):
        return True
    try:
        return any(_is_wrong(constant, known) for constant in constants_of(plan))
    except (KeyError, TypeError):
        return True


def _is_wrong(constant: Fields, known: Mapping[str, Parameter]) -> bool:
    parameter = known[constant[PARAMETER]["name"]]
    if constant[PARAMETER] != encode(parameter):
        return True
    held = parameter.typed_value
    every = held if isinstance(held, tuple) else (held,)
    if constant["type"] != _LISTED:  # of a list one value, which is the key of a part
        right = constant["value"] in [definition(value) for value in every]
        return not right or constant["dtype"] != definition(parameter.kind.dtype)
    stated, wanted = (
        {json.dumps(value, sort_keys=True) for value in values}
        for values in (constant["values"], map(definition, every))
    )
    return stated != wanted


def _constants(value: object) -> Iterator[Fields]:
    open_ = [value]
    while open_:
        value = open_.pop()
        if isinstance(value, dict):
            if PARAMETER in value and value.get("type") in ("Literal", _LISTED):
                yield value
            else:
                open_ += reversed(value.values())
        elif isinstance(value, list):
            open_ += reversed(value)


def without_values(plan: P) -> P:
    """The plan with names of parameters in place of their values, for comparing expressions."""
    every = {parameter.name: "" for parameter in plan.parameters}
    if not every:
        return plan
    bare = partial(without, allowed=every)

    def steps(given: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
        return tuple(replace(step, definition=bare(step.definition)) for step in given)

    return replace(
        plan,
        steps=steps(plan.steps),
        grouped_by=bare(plan.grouped_by),
        outputs=tuple(replace(one, definition=bare(one.definition)) for one in plan.outputs),
        blocks=tuple(
            replace(block, steps=steps(block.steps), grouped_by=bare(block.grouped_by))
            for block in plan.blocks
        ),
    )


def template(contents: Fields, allowed: Mapping[str, str]) -> Fields:
    """What the document of a plan says, with what is allowed of some parameters in place of their
    values; `allowed` has them by name, in words.

    Facts about columns from the first such constant on are left out, because they may follow from
    the value, and so may the windows of time that are read. Everything else that depends on it
    (bounds, sensitivities, errors) is in the plan's releases, and these stay.
    """
    found = {name: without(value, allowed) for name, value in contents.items()}
    found["parameters"] = [
        one if one["name"] not in allowed else {**one, "value": {"any of": allowed[one["name"]]}}
        for one in contents["parameters"]
    ]
    found["steps"] = _without_facts(found["steps"], allowed)
    if "windows" in found:
        found["windows"] = found["windows"]["every"]
    if "blocks" in found:
        blocks = found["blocks"]
        found["blocks"] = [{**b, "steps": _without_facts(b["steps"], allowed)} for b in blocks]
    return {**found, "template": sorted(allowed)}


def without(value: object, allowed: Mapping[str, str]) -> Any:
    """A part of a definition without the values of some parameters."""
    if isinstance(value, list):
        return [without(inner, allowed) for inner in value]
    if not isinstance(value, dict):
        return value
    if _is_open(value, allowed):
        left = {name: item for name, item in value.items() if name not in ("value", "values")}
        return {**left, PARAMETER: {**value[PARAMETER], "value": None}}
    return {name: without(item, allowed) for name, item in value.items()}


def _is_open(value: Fields, allowed: Mapping[str, str]) -> bool:
    """Whether this is a constant that may be another one."""
    named = value.get(PARAMETER)
    is_constant = value.get("type") in ("Literal", _LISTED) and isinstance(named, dict)
    return is_constant and isinstance(named, dict) and named.get("name") in allowed


def _without_facts(steps: list[Fields], allowed: Mapping[str, str]) -> list[Fields]:
    result, met = [], False
    for step in steps:
        met = met or any(_is_open(found, allowed) for found in _constants(step["definition"]))
        result.append({**step, "learned": []} if met else step)
    return result
