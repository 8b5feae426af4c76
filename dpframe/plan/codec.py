"""Frozen values as JSON and back, by the types of their fields.

Exact numbers are text, such as ``"1/3"``. Where a field may hold one of several types, an object
names its type as ``"kind"``. Reading is strict: what a field cannot hold is refused, and so is an
object that lacks a field or has another.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from dpframe.aggregates.distribution_error import DistributionError
from dpframe.aggregates.error_rules import (
    MeanError,
    NoErrorBound,
    PartError,
    RankError,
    VarianceError,
)
from dpframe.aggregates.rebuilt_error import RebuiltError
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.core.fields import fields_of
from dpframe.core.units import Identifier, Rows
from dpframe.errors import DPFrameError
from dpframe.mechanisms import MECHANISMS

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Rows,
        Identifier,
        *MECHANISMS,
        PartError,
        MeanError,
        VarianceError,
        RankError,
        NoErrorBound,
        RebuiltError,
        DistributionError,
    )
}
"""The types that say which they are."""

_EXACT = re.compile(r"-?[0-9]+(/[0-9]+)?")
MEASURES: dict[str, type[Budget]] = {m.measure: m for m in (PureDP, ApproxDP, ZCDP, GDP)}


_LARGEST = 2**63
"""Of a whole number that counts or indexes something."""


class Malformed(Exception):
    """What is read is not what was written; says where."""


def encode(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Budget):
        return {
            "measure": value.measure,
            value.currency: str(value.main),
            "delta": str(value.slack),
        }
    fields = fields_of(value)
    if fields is None:
        return value
    name = type(value).__name__
    kind = {"kind": name} if name in KINDS else {}
    return kind | {field.name: encode(getattr(value, field.name)) for field in fields}


def decode(hint: Any, data: Any, where: str) -> Any:
    """The value of a type that was written as `data`.

    Raises
    ------
    Malformed
        When nothing of that type is written so.
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _decode_one_of(args, data, where)
    if origin is Literal:
        if data not in args or not isinstance(data, str):
            raise Malformed(where)
        return data
    if origin is tuple:
        return _decode_tuple(args, data, where)
    if hint is Fraction:
        return _fraction(data, where)
    if hint is Any:  # a definition, which is JSON
        return data
    if hint in (bool, int, str, float, types.NoneType):
        if type(data) is not hint or (isinstance(data, int) and abs(data) > _LARGEST):
            raise Malformed(where)
        return data
    if isinstance(hint, type) and issubclass(hint, Budget):
        return _budget(data, where)
    if isinstance(hint, type) and (not dataclasses.is_dataclass(hint) or hint.__name__ in KINDS):
        return _decode_kind((hint,), data, where)
    return _decode_fields(hint, data, where)


def _decode_one_of(hints: tuple[Any, ...], data: Any, where: str) -> Any:
    if data is None and types.NoneType in hints:
        return None
    if isinstance(data, dict) and "kind" in data:
        return _decode_kind(hints, data, where)
    plain = [hint for hint in hints if hint is not types.NoneType]
    if len(plain) != 1:
        raise Malformed(where)
    return decode(plain[0], data, where)


def _decode_kind(hints: tuple[Any, ...], data: Any, where: str) -> Any:
    """What says which of several types it is."""
    name = data.get("kind") if isinstance(data, dict) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not any(_admits(hint, kind) for hint in hints):
        raise Malformed(f"{where}.kind")
    return _decode_fields(kind, {n: item for n, item in data.items() if n != "kind"}, where)


def _admits(hint: Any, kind: type) -> bool:
    return isinstance(hint, type) and issubclass(kind, hint)


def _decode_tuple(args: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise Malformed(where)
    if args[-1] is not Ellipsis:
        if len(args) != len(data):
            raise Malformed(where)
        return tuple(
            decode(hint, item, f"{where}[{i}]")
            for i, (hint, item) in enumerate(zip(args, data, strict=True))
        )
    return tuple(decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(data))


def _decode_fields(kind: Any, data: Any, where: str) -> Any:
    hints = hints_of(kind)
    if not isinstance(data, dict) or data.keys() != hints.keys():
        raise Malformed(where)
    values = {name: decode(hint, data[name], f"{where}.{name}") for name, hint in hints.items()}
    try:
        return kind(**values)
    except (ArithmeticError, ValueError, AssertionError, DPFrameError):  # a negative scale, say
        raise Malformed(where) from None


def hints_of(kind: type) -> dict[str, Any]:
    """The types of the fields of a dataclass; a definition is any JSON."""
    return _hints(kind)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    found = typing.get_type_hints(kind, localns={"Json": Any})
    return {field.name: found[field.name] for field in dataclasses.fields(kind)}


def _fraction(data: Any, where: str) -> Fraction:
    try:
        # nothing else that Fraction reads: "1e999999999" has a thousand million digits
        found = Fraction(data) if isinstance(data, str) and _EXACT.fullmatch(data) else None
    except (ValueError, ZeroDivisionError):
        found = None
    if found is None or str(found) != data:
        raise Malformed(where)
    return found


def _budget(data: Any, where: str) -> Budget:
    measure = MEASURES.get(str(data.get("measure"))) if isinstance(data, dict) else None
    if measure is None or data.keys() != {"measure", measure.currency, "delta"}:
        raise Malformed(where)
    main = _fraction(data[measure.currency], f"{where}.{measure.currency}")
    slack = _fraction(data["delta"], f"{where}.delta")
    if main < 0 or not 0 <= slack < 1 or (measure in (PureDP, GDP) and slack):
        raise Malformed(where)
    return measure.of(main, slack)
