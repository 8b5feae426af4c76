"""The part of the published schema that describes physical plans, made of the kernel's classes.

``python -m tests.plan.physical_schema`` writes it into ``docs/plan.schema.json``.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from fractions import Fraction
from typing import Any, Literal

from dpframe.kernel import plan as kernel
from tests.documentation import ROOT

PATH = ROOT / "docs" / "plan.schema.json"
PREFIX = "physical_"


def definitions() -> dict[str, Any]:
    """A definition for each class that a physical plan may have."""
    found: dict[str, Any] = {}
    open_: list[type] = [kernel.Plan]
    while open_:
        kind = open_.pop(0)
        if PREFIX + kind.__name__ in found:
            continue
        hints = typing.get_type_hints(kind)
        found[PREFIX + kind.__name__] = {
            "description": " ".join((inspect.getdoc(kind) or "").split()),
            "type": "object",
            "properties": {
                "node": {"const": kind.__name__},
                **{name: schema_of(hint, open_) for name, hint in hints.items()},
            },
            "required": ["node", *hints],
            "additionalProperties": False,
        }
    return found


def schema_of(hint: Any, open_: list[type]) -> dict[str, Any]:
    """The schema of a type; classes in it are put on a list."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(option, open_) for option in options]}
    if origin is Literal:
        return {"enum": [*options]}
    if origin is tuple and options[-1] is ...:
        return {"type": "array", "items": schema_of(options[0], open_)}
    if origin is tuple:
        items = [schema_of(option, open_) for option in options]
        size = len(items)
        return {"type": "array", "prefixItems": items, "minItems": size, "maxItems": size}
    if hint is Fraction:
        return {"$ref": "#/$defs/exact"}
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        open_.append(hint)
        return {"$ref": f"#/$defs/{PREFIX}{hint.__name__}"}
    return {"type": {int: "integer", bool: "boolean", str: "string", types.NoneType: "null"}[hint]}


def main() -> None:
    """Write the definitions."""
    schema = json.loads(PATH.read_text(encoding="utf-8"))
    others = {n: d for n, d in schema["$defs"].items() if not n.startswith(PREFIX)}
    schema["$defs"] = others | definitions()
    PATH.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
