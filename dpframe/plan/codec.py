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
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any, Literal, TypeAlias

from dpframe.aggregates.error import (
    MeanError,
    NoErrorBound,
    PartError,
    RankError,
    VarianceError,
)
from dpframe.aggregates.reconstructed_error import (
    DistributionError,
    RebuiltError,
    RootError,
    RunError,
    RunningError,
    RunRankError,
)
from dpframe.core.budget import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpframe.core.regular import RULES, numbers_of_rule
from dpframe.core.tree import EXACT, fields_of, form_of, forms_of, wire_name
from dpframe.core.units import Identifier, Rows
from dpframe.errors import DPFrameError
from dpframe.ledger.approvals import StatedBudget
from dpframe.mechanisms import MECHANISMS
from dpframe.plan.data import Fields, LimitChoice, PlanBlock

KINDS: dict[str, type] = {
    name: kind
    for kind in (
        Rows,
        Identifier,
        *MECHANISMS,
        PartError,
        MeanError,
        VarianceError,
        RankError,
        RunRankError,
        NoErrorBound,
        RebuiltError,
        DistributionError,
        RootError,
        RunError,
        RunningError,
    )
    for name in forms_of(kind)
}
"""The types that carry their own name."""

_PLAIN = frozenset({bool, int, str, float, types.NoneType})
"""What JSON has itself."""
UNWRITTEN: dict[type, frozenset[str]] = {
    Identifier: frozenset(("window", "time")),
    StatedBudget: frozenset(("per",)),
    LimitChoice: frozenset(("noise",)),
    PlanBlock: frozenset(("columns",)),
}
"""Fields that are written only if they have a value, so that documents without them stay valid."""
_EXACT = re.compile(r"-?[0-9]+(/[0-9]+)?")
MEASURES: dict[str, type[Budget]] = {m.measure: m for m in (PureDP, ApproxDP, ZCDP, GDP)}


_LARGEST = 2**63
"""The bound for whole numbers that count or index something."""

_LONGEST = 2**1024
"""The bound for numbers that may need more than 64 bits (`EXACT`)."""


_NAMED: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("type", "op", "name", "how"), str),
    "step": (str, dict),
}
"""What definitions call things by, and the types that these have."""
_NUMBERS = {
    "fraction": re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,400})?"),
    "int": re.compile(r"-?[0-9]{1,400}"),
}
"""How definitions write numbers, which the largest float has 309 digits of."""
_PLAIN_BELOW = 2**53
"""Whole numbers of definitions from here on are text."""


class Malformed(Exception):
    """The document differs from the form that is written; the message names the place."""


def encode(value: object) -> object:
    """A value as JSON."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is Fraction:
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
    name, said = form_of(value)
    found = {
        wire_name(field): encode(getattr(value, field.name))
        for field in fields
        if field.name not in said
    }
    for optional in UNWRITTEN.get(kind, ()):
        if found[optional] is None:
            del found[optional]
    return {"kind": name} | found if name in KINDS else found


def decode(hint: object, data: object, where: str) -> Any:
    """The value of a type that was written as `data`. Raises `Malformed` when nothing is so."""
    return _decoder(hint)(data, where)


_Decoder: TypeAlias = Callable[[object, str], object]


@cache
def _decoder(hint: Any, largest: int = _LARGEST) -> _Decoder:
    """What reads a type, found out once for each; `largest` is that of whole numbers."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return partial(_decode_one_of, args)
    if origin is Literal:
        return partial(_decode_plain, str, largest, values=args)
    if origin is tuple:
        return partial(_decode_tuple, args, largest)
    if hint is Fraction:
        return _fraction
    if hint is Any:
        return _definition
    if hint in _PLAIN:
        return partial(_decode_plain, hint, largest)
    if isinstance(hint, type) and issubclass(hint, Budget):
        return _budget
    if isinstance(hint, type) and (not dataclasses.is_dataclass(hint) or hint in KINDS.values()):
        return partial(_decode_kind, (hint,))
    return partial(_decode_fields, hint)


def _decode_plain(
    kind: type, largest: int, data: object, where: str, values: tuple[object, ...] | None = None
) -> object:
    """A value that JSON has itself, one of some `values` where these are given."""
    if type(data) is not kind or (isinstance(data, int) and abs(data) > largest):
        raise Malformed(where)
    if values is not None and data not in values:
        raise Malformed(where)
    return data


def _decode_one_of(hints: tuple[object, ...], data: object, where: str) -> object:
    if data is None and types.NoneType in hints:
        return None
    if isinstance(data, dict) and "kind" in data:
        return _decode_kind(hints, data, where)
    plain = [hint for hint in hints if hint is not types.NoneType]
    if len(plain) != 1:
        raise Malformed(where)
    return _decoder(plain[0])(data, where)


def _decode_kind(hints: tuple[object, ...], data: Any, where: str) -> object:
    """The name that selects one of several types."""
    name = data.get("kind") if isinstance(data, dict) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    admitted = tuple(hint for hint in hints if isinstance(hint, type))
    if kind is None or not issubclass(kind, admitted):
        raise Malformed(f"{where}.kind")
    return _decode_fields(kind, {n: item for n, item in data.items() if n != "kind"}, where, name)


def _decode_tuple(args: tuple[object, ...], largest: int, data: object, where: str) -> object:
    if not isinstance(data, list):
        raise Malformed(where)
    if args[-1] is not Ellipsis:
        if len(args) != len(data):
            raise Malformed(where)
        return tuple(
            _decoder(hint, largest)(item, f"{where}[{i}]")
            for i, (hint, item) in enumerate(zip(args, data, strict=True))
        )
    read = _decoder(args[0], largest)
    return tuple([read(item, f"{where}[{i}]") for i, item in enumerate(data)])


def _decode_fields(kind: Any, data: object, where: str, name: str | None = None) -> object:
    """The value of a dataclass; `name` is what the document calls it."""
    said = forms_of(kind)[name or kind.__name__]
    decoders = {n: read for n, read in _decoders(kind).items() if n not in said}
    unwritten = UNWRITTEN.get(kind, frozenset())
    if not isinstance(data, dict) or not decoders.keys() - unwritten <= data.keys():
        raise Malformed(where)
    if not data.keys() <= decoders.keys() or any(data.get(n, 0) is None for n in unwritten):
        raise Malformed(where)
    values = {name: decoders[name](data[name], f"{where}.{name}") for name in data}
    try:
        found = kind(**as_fields(kind, values), **said)
        if name is not None and form_of(found)[0] != name:
            raise ValueError(name)
        return found
    except (ArithmeticError, ValueError, AssertionError, DPFrameError):  # a negative scale, say
        raise Malformed(where) from None


def as_fields(kind: Any, values: Fields) -> Fields:
    """Values by the names that fields have in Python, of those by what documents call them."""
    names = {wire_name(field): field.name for field in dataclasses.fields(kind)}
    return {names[name]: value for name, value in values.items()}


@cache
def hints_of(kind: Any) -> dict[str, object]:
    """The types of the fields of a dataclass, by what documents call them; a definition is any
    JSON.
    """
    found = typing.get_type_hints(kind, localns={"Json": Any})
    return {wire_name(field): found[field.name] for field in dataclasses.fields(kind)}


@cache
def _decoders(kind: Any) -> dict[str, _Decoder]:
    """What reads each field of a dataclass."""
    exact = {wire_name(field) for field in dataclasses.fields(kind) if field.metadata.get(EXACT)}
    return {
        name: _decoder(hint, _LONGEST if name in exact else _LARGEST)
        for name, hint in hints_of(kind).items()
    }


def _definition(data: object, where: str) -> object:
    """JSON as `dpframe.frames.definition` writes it: readers may rely on names being text, and on
    numbers that can be shown.
    """
    if isinstance(data, list):
        for item in data:
            _definition(item, where)
    elif isinstance(data, dict):
        for name, item in data.items():
            wanted = _NAMED.get(name, object)
            number = _NUMBERS.get(name)
            if not isinstance(item, wanted) or (
                number is not None and not (isinstance(item, str) and number.fullmatch(item))
            ):
                raise Malformed(where)
            if number is None:
                _definition(item, where)
        if data.keys() & RULES:
            try:
                numbers_of_rule(data)
            except ValueError:
                raise Malformed(where) from None
    elif isinstance(data, float) or (isinstance(data, int) and abs(data) >= _PLAIN_BELOW):
        raise Malformed(where)
    return data


def _fraction(data: object, where: str) -> Fraction:
    try:
        # nothing else that Fraction reads: "1e999999999" has a thousand million digits
        result = Fraction(data) if isinstance(data, str) and _EXACT.fullmatch(data) else None
    except (ValueError, ZeroDivisionError):
        result = None
    if result is None or str(result) != data:
        raise Malformed(where)
    return result


def _budget(data: Any, where: str) -> Budget:
    measure = MEASURES.get(str(data.get("measure"))) if isinstance(data, dict) else None
    if measure is None or data.keys() != {"measure", measure.currency, "delta"}:
        raise Malformed(where)
    main = _fraction(data[measure.currency], f"{where}.{measure.currency}")
    slack = _fraction(data["delta"], f"{where}.delta")
    if main < 0 or not 0 <= slack < 1 or (measure in (PureDP, GDP) and slack):
        raise Malformed(where)
    return measure.of(main, slack)
