"""Parameters of jobs: values that each run is given, with their types.

A value is kept as a text that is unique for each value, such as ``2026-11-22``: plans and records
hold it, and it decides whether two runs are the same.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from dpframe.core.dtypes import DATE, FLOAT64, INT64, STRING, DType, datetime_type

Value: TypeAlias = "bool | int | float | Decimal | str | date | datetime"
Held: TypeAlias = "Value | tuple[Value, ...]"
"""What a parameter is: one value, or a list of them."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
"""What a parameter may be called: it is part of the name of an environment variable."""

KINDS = ("bool", "int", "float", "decimal", "string", "date", "datetime")
MOST_SCALE = 18
_ONE_KIND = re.compile(r"(bool|int|float|string|date|decimal\[([0-9]{1,2})\]|datetime(\[(.+)\])?)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_FIXED = re.compile(r"[+-]?[0-9]{1,38}(\.[0-9]{1,38})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_BOOLEANS = {"true": True, "false": False}
_MOST_VALUES = 10_000
_WANTED = {
    "bool": "true or false",
    "int": "an integer of 64 bits, such as 40",
    "float": "a finite number, such as 0.5",
    "decimal": "a decimal number with no more digits after the point than the type has",
    "string": "text",
    "date": "a date, such as 2026-11-22",
    "datetime": "a date and time, such as 2026-11-22T06:00:00",
}


class NotAValue(ValueError):
    """A text or value that is not of a type; the message shows what is expected."""


@dataclass(frozen=True, slots=True)
class ParameterType:
    """The type of a parameter.

    Parameters
    ----------
    kind
        One of `KINDS`.
    zone
        For a datetime: its time zone; None for one without.
    scale
        For a decimal: the digits after the point.
    many
        Whether it is a list of such values.
    """

    kind: str
    zone: str | None = None
    scale: int | None = None
    many: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise NotAValue(f"a type is one of {', '.join(KINDS)}, or a list of one")
        if self.zone is not None:
            if self.kind != "datetime":
                raise NotAValue("only a datetime has a zone")
            zone_of(self.zone)
        if (self.scale is None) != (self.kind != "decimal"):
            raise NotAValue("a decimal has a scale, and nothing else has")
        if self.scale is not None and not 0 <= self.scale <= MOST_SCALE:
            raise NotAValue(f"the scale of a decimal is from 0 to {MOST_SCALE}")

    @property
    def dtype(self) -> DType:
        """The type of one value as a constant of an expression."""
        match self.kind:
            case "bool":
                return DType("Boolean")
            case "int":
                return INT64
            case "float":
                return FLOAT64
            case "decimal":
                return DType("Decimal", precision=38, scale=self.scale)
            case "string":
                return STRING
            case "date":
                return DATE
            case _:
                return datetime_type("us", self.zone)

    @property
    def is_ordered(self) -> bool:
        """Whether values lie between others."""
        return not self.many and self.kind not in ("bool", "string")

    def words(self) -> str:
        """In words, which `read_type` reads: ``date``, ``datetime[Europe/Zurich]``,
        ``list[string]``.
        """
        inner = {"datetime": self.zone, "decimal": self.scale}.get(self.kind)
        one = self.kind if inner is None else f"{self.kind}[{inner}]"
        return f"list[{one}]" if self.many else one

    def of(self, value: object) -> Held:
        """The value that Python has, checked.

        Raises
        ------
        NotAValue
            When it is of another type.
        """
        if not self.many:
            return _check_value(value, self)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self._not("a list")
        if len(value) > _MOST_VALUES:
            raise NotAValue(f"a list has at most {_MOST_VALUES} values")
        return tuple(_check_value(item, self) for item in value)

    def read(self, text: str) -> Held:
        """The value that a text stands for. A list is written as JSON, or with commas.

        Raises
        ------
        NotAValue
            When the text is not a value of the type.
        """
        if not self.many:
            return _parse_value(text, self)
        if text.strip().startswith("["):
            parts = _json_list(text)
        else:
            parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return self.of([_parse_value(part, self) for part in parts])

    def text(self, value: Held) -> str:
        """The one form of a value, which `read` reads."""
        if isinstance(value, tuple):
            return json.dumps([_text(item) for item in value], ensure_ascii=False)
        return _text(value)

    def _not(self, wanted: str) -> NotAValue:
        return NotAValue(f"give {wanted}: its type is {self.words()}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter and the value that it has in a plan.

    Parameters
    ----------
    name
        How expressions call it.
    type
        In words, as `ParameterType.words` gives them.
    value
        As text, as `ParameterType.text` gives it.
    """

    name: str
    type: str
    value: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise NotAValue(f"{self.name!r} is not a name: use letters, digits and _")
        found = read_type(self.type)
        if found.words() != self.type or found.text(found.read(self.value)) != self.value:
            raise NotAValue("the value is not written in the form of its type")

    @classmethod
    def of(cls, name: str, kind: ParameterType, value: Held) -> Parameter:
        """A parameter of a value that is of the type."""
        return cls(name, kind.words(), kind.text(value))

    @property
    def kind(self) -> ParameterType:
        return read_type(self.type)

    @property
    def typed_value(self) -> Held:
        """The value."""
        return self.kind.read(self.value)

    def words(self) -> str:
        """In words: ``day = 2026-11-22 (date)``."""
        return f"{self.name} = {self.value_words} ({self.type})"

    @property
    def value_words(self) -> str:
        """The value for people: text in quotes."""
        return json.dumps(self.value, ensure_ascii=False) if self.type == "string" else self.value


class Listed(tuple[Any, ...]):
    """The values of a parameter that is a list, where an operation has them as a constant."""

    parameter: Parameter

    @classmethod
    def of(cls, values: Sequence[Any], parameter: Parameter) -> Listed:
        made = cls(values)
        made.parameter = parameter
        return made


def read_type(words: str) -> ParameterType:
    """The type that words say.

    Raises
    ------
    NotAValue
        When they say none.
    """
    many = words.startswith("list[") and words.endswith("]")
    one = words[5:-1] if many else words
    found = _ONE_KIND.fullmatch(one)
    if found is None:
        raise NotAValue(f"{words!r} is not a type: use one of {', '.join(KINDS)}, or list[...]")
    kind = one.partition("[")[0]
    scale = None if found[2] is None else int(found[2])
    return ParameterType(kind, found[4], scale, many)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name.

    Raises
    ------
    NotAValue
        When the zone is unknown.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise NotAValue(f"there is no time zone {name!r}, such as Europe/Zurich") from None


def _check_value(value: object, kind: ParameterType) -> Value:
    """One value of a Python type that stands for it and loses nothing."""
    match kind.kind, value:
        case "bool", bool():
            return value
        case "int", int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value
        case "float", int() | float() | Decimal() if not isinstance(value, bool):
            number = _float(value)
            if math.isfinite(number):
                return number + 0.0
        case "decimal", int() | float() | Decimal() | str() if not isinstance(value, bool):
            return _parse_decimal(str(value), kind)
        case "string", str():
            return _plain(value, kind)
        case "date", date() if not isinstance(value, datetime):
            return value
        case "datetime", datetime():
            return _moment(value, kind)
    raise _refusal(kind)


def _parse_value(text: str, kind: ParameterType) -> Value:
    """One value from text; blanks around it are no part of it but of text."""
    if kind.kind == "string":
        return _plain(text, kind)
    bare = text.strip()
    try:
        match kind.kind:
            case "bool":
                return _BOOLEANS[bare]
            case "int" if _INTEGER.fullmatch(bare):
                return _check_value(int(bare), kind)
            case "float" if _NUMBER.fullmatch(bare):
                return _check_value(float(bare), kind)
            case "decimal":
                return _parse_decimal(bare, kind)
            case "date" if _DAY.fullmatch(bare):
                return date.fromisoformat(bare)
            case "datetime" if _MOMENT.fullmatch(bare):
                return _moment(datetime.fromisoformat(bare), kind)
    except (KeyError, ValueError) as error:
        raise error if isinstance(error, NotAValue) else _refusal(kind) from None
    raise _refusal(kind)


def _float(value: float | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _plain(text: str, kind: ParameterType) -> str:
    """Text that can be stored everywhere."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refusal(kind) from None
    if "\x00" in text:
        raise _refusal(kind)
    return text


def _parse_decimal(text: str, kind: ParameterType) -> Decimal:
    """A decimal with the digits after the point that its type has."""
    if not _FIXED.fullmatch(text):
        raise _refusal(kind)
    scale = kind.scale or 0
    digits = Decimal(text).as_tuple()
    number = int("".join(map(str, digits.digits)) or "0")
    shift = scale + int(digits.exponent)
    whole, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if rest or whole >= 10**38:
        raise _refusal(kind)
    return Decimal((digits.sign if whole else 0, tuple(map(int, str(whole))), -scale))


def _moment(value: datetime, kind: ParameterType) -> datetime:
    """A moment in its zone; without an offset it is read as the time on the clocks there, which
    must have shown it once.
    """
    if kind.zone is None:
        if value.tzinfo is not None:
            raise NotAValue("the datetime has no zone: leave the offset out, or declare a zone")
        return value
    zone = zone_of(kind.zone)
    try:
        if value.tzinfo is not None:
            return value.astimezone(zone)
        first, second = (value.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
        if first.utcoffset() != second.utcoffset():
            raise NotAValue(
                f"clocks in {kind.zone} showed that time twice or never: write the offset from "
                "UTC, as in 2026-10-25T02:30:00+02:00"
            )
        return first
    except OverflowError:
        raise _refusal(kind) from None


def _text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float():
            return repr(value)
        case _:
            return str(value)


def _json_list(text: str) -> list[str]:
    try:
        found: Any = json.loads(text)
    except (RecursionError, ValueError):
        found = None
    if not isinstance(found, list):
        raise NotAValue('a list is written as ["a", "b"], or with commas')
    parts = []
    for item in found:
        if isinstance(item, bool):
            parts.append("true" if item else "false")
        elif isinstance(item, str | int | float):
            parts.append(str(item))
        else:
            raise NotAValue("a list holds single values")
    return parts


def _refusal(kind: ParameterType) -> NotAValue:
    scale = f" (here {kind.scale})" if kind.scale is not None else ""
    return NotAValue(f"give {_WANTED[kind.kind]}{scale}")


def instant(value: Value) -> Value:
    """What values of one type are compared by: moments as those in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
