"""What a step or a noisy vector is, as JSON: everything about it that decides what is computed.

Words may shorten, such as a long list of categories; a definition never does. It does not depend on
the process, on the machine or on the version of Polars.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.core.dtypes import DType
from dpframe.core.exact import Rationals, rationals, texts
from dpframe.core.parameters import Listed, Parameter
from dpframe.core.regular import Json as Json
from dpframe.core.regular import canonical, rule_of
from dpframe.core.tree import Call, fields_of, form_of
from dpframe.frames.public import digest
from dpframe.frames.relation import Binary, Relation, Step, frames_of
from dpframe.kernel.plan import LISTED_UP_TO

PARAMETER = "parameter"
"""What a constant that is the value of a parameter names it by, in definitions."""


@dataclass(frozen=True, slots=True)
class Written:
    """A constant that is a definition already."""

    json: Json


def definition(value: object) -> Json:
    """A value of the plan's own types as JSON.

    Numbers that are not whole are text, because readers of JSON round them; a frame is its digest.
    A tuple is a list, and a constant of any other type an object that names the type.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Call):
        return _call(value)
    if isinstance(value, Written):
        return value.json
    if isinstance(value, Parameter):
        return {"name": value.name, "type": value.type, "value": value.value}
    if isinstance(value, Listed):
        listed: list[Json] = [definition(item) for item in value]
        return {"type": "Listed", "values": listed, PARAMETER: definition(value.parameter)}
    if fields_of(value) is not None:
        return _fields(value)
    match value:
        case int():
            return value if abs(value) < 2**53 else {"int": str(value)}
        case float():
            return {"float": repr(float(value))}  # NumPy's write themselves in another way
        case Fraction():
            return {"fraction": str(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case dt.datetime() | dt.date() | dt.time():
            return {type(value).__name__: value.isoformat()}
        case dt.timedelta():
            return {"microseconds": str(value // dt.timedelta(microseconds=1))}
        case Rationals():
            rule = rule_of(value)
            return [{"fraction": text} for text in texts(value)] if rule is None else rule
        case tuple() | list():
            if len(value) > LISTED_UP_TO and {*map(type, value)} == {Fraction}:
                numbers = rationals(value)
                if isinstance(numbers, Rationals):
                    return definition(numbers)
            return [definition(item) for item in value]
        case Mapping():
            return [[definition(k), definition(v)] for k, v in value.items()]
        case pl.DataFrame():
            return {
                "frame": digest(value),
                "rows": value.height,
                "columns": [*value.columns],
            }
    raise TypeError(f"plans have no {type(value).__name__}")


def objects_in(found: Json) -> Iterator[dict[str, Json]]:
    """All objects of a definition from the outermost in."""
    open_ = [found]
    while open_:
        found = open_.pop()
        if isinstance(found, dict):
            yield found
            open_ += reversed(found.values())
        elif isinstance(found, list):
            open_ += reversed(found)


def _call(call: Call) -> Json:
    """What an operation is called, its operands and its constants."""
    return {
        "type": "Call",
        "op": call.operation.name,
        "args": [definition(arg) for arg in call.args],
        "options": [[name, definition(value)] for name, value in call.operation.constants],
    }


def steps_of(relation: Relation) -> list[Json]:
    """The steps of a frame, in order; those with another frame have its steps too.

    Frames are numbered by where they first appear, for two may have one name.
    """
    numbers: dict[int, int] = {}
    for frame in frames_of(relation):
        numbers.setdefault(frame.token, len(numbers))
    return _chain(relation, numbers)


def _chain(relation: Relation, numbers: Mapping[int, int]) -> list[Json]:
    return [_step(step, numbers) for step, _ in relation.steps]


def _step(step: Step, numbers: Mapping[int, int]) -> Json:
    if not isinstance(step, Binary):
        return definition(step)
    other = step.other
    frame: dict[str, Json] = {
        "frame": other.name,
        "number": numbers[other.token],
        "unit": other.source.unit.words(),
        "steps": _chain(other, numbers),
    }
    if other.owners is not None:
        frame["owners"] = [*other.owners.parts()]
    fields = _fields(step)
    del fields["chain"]  # the other frame in Python's words
    return {**fields, "other": frame}


def _fields(value: Any) -> dict[str, Json]:
    """The fields that identify values, with the type's name."""
    kind = "step" if issubclass(type(value), Step) else "type"
    name, said = form_of(value)
    result: dict[str, Json] = {kind: name}
    for field in fields_of(value) or ():
        if field.repr and field.name not in said:
            content = getattr(value, field.name)
            if content is not None:
                result[field.name] = definition(content)
    return result


def type_words(dtype: DType) -> str:
    """A type as people read it, with a digest where that is not all of it."""
    if not dtype.is_nested and dtype.name != "Enum":
        return str(dtype)
    whole = canonical(definition(dtype)).encode("utf-8", "surrogatepass")
    return f"{dtype} {hashlib.sha256(whole).hexdigest()}"
