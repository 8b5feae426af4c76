"""What parameters may be in runs that an approval covers: any value, a range, or some values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from dpframe.core.parameters import (
    NAME,
    Held,
    NotAValue,
    Parameter,
    ParameterType,
    instant,
    read_type,
)

ANY = "any"
_TO = ".."


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a parameter may have.

    Parameters
    ----------
    type
        The type of the parameter, in words.
    words
        ``any``, or the first and the last value, as ``2027-01-01..2027-12-31`` (either may be
        left out), or a JSON list of values.
    """

    type: str
    words: str

    def __post_init__(self) -> None:
        if _in_one_form(self.words, read_type(self.type)) != self.words:
            raise NotAValue("the values are not written in the form of their type")

    def covers(self, parameter: Parameter) -> bool:
        """Whether the parameter is of the type, and its value one of these."""
        if parameter.type != self.type:
            return False
        if self.words == ANY:
            return True
        kind = read_type(self.type)
        if not _is_between(self.words, kind):
            return parameter.value in json.loads(self.words)
        low, high = _ends(self.words, kind)
        value: Any = _comparable(parameter.held)
        least = low is None or _comparable(low) <= value
        return least and (high is None or value <= _comparable(high))

    def example(self) -> Held | None:
        """One of the values; None where it may be any."""
        if self.words == ANY:
            return None
        kind = read_type(self.type)
        if _is_between(self.words, kind):
            low, high = _ends(self.words, kind)
            return high if low is None else low
        return kind.read(json.loads(self.words)[0])


Allowed: TypeAlias = "tuple[tuple[str, Range], ...]"
"""What parameters may be, by name, in the order of names."""


def read_range(text: str, kind: ParameterType) -> Range | None:
    """The range of a text with more than one value: ``any``, ``LOW..HIGH``, or several values as
    JSON or with commas between them.

    Raises
    ------
    NotAValue
        When it holds what is no value of the type.
    """
    bare = text.strip()
    several = bare.startswith("[[") if kind.many else bare.startswith("[") or "," in bare
    if bare != ANY and not _is_between(bare, kind) and not several:
        return None
    return Range(kind.words(), _in_one_form(bare, kind))


def allowed_fields(allowed: Allowed) -> dict[str, dict[str, str]]:
    """As records keep it."""
    return {name: {"type": found.type, "values": found.words} for name, found in allowed}


def read_allowed(found: object) -> Allowed:
    """What `allowed_fields` made.

    Raises
    ------
    ValueError, TypeError
        When it is in another form.
    """
    if not isinstance(found, dict) or not found:
        raise TypeError
    result = []
    for name in sorted(found):
        one = found[name]
        if not isinstance(one, dict) or one.keys() != {"type", "values"}:
            raise ValueError
        if not all(isinstance(part, str) for part in one.values()) or not NAME.fullmatch(name):
            raise TypeError
        result.append((name, Range(one["type"], one["values"])))
    return tuple(result)


def covers_all(allowed: Allowed, parameters: Iterable[Parameter]) -> bool:
    """Whether each named parameter is given, with an allowed value."""
    given: Mapping[str, Parameter] = {parameter.name: parameter for parameter in parameters}
    return all(name in given and found.covers(given[name]) for name, found in allowed)


def _is_between(text: str, kind: ParameterType) -> bool:
    return kind.is_ordered and _TO in text


def _ends(text: str, kind: ParameterType) -> tuple[Held | None, Held | None]:
    low, _, high = text.partition(_TO)
    first, last = (kind.read(end) if end.strip() else None for end in (low, high))
    if first is None and last is None:
        raise NotAValue(f'a range has at least one end: write for example LOW..HIGH, or "{ANY}"')
    if first is not None and last is not None and _comparable(first) > _comparable(last):
        raise NotAValue("the range ends before it begins")
    return first, last


def _comparable(held: Held) -> Any:
    return held if isinstance(held, tuple) else instant(held)


def _in_one_form(text: str, kind: ParameterType) -> str:
    if text == ANY:
        return text
    if _is_between(text, kind):
        ends = ("" if end is None else kind.text(end) for end in _ends(text, kind))
        return _TO.join(ends)
    values = {kind.text(kind.read(part)) for part in _parts(text, kind)}
    if not values:
        raise NotAValue("at least one value is needed")
    return json.dumps(sorted(values), ensure_ascii=False)


def _parts(text: str, kind: ParameterType) -> list[str]:
    """Several values in one text, each as text."""
    if not text.startswith("["):
        return [part.strip() for part in text.split(",")]
    try:
        fields = json.loads(text)
    except (RecursionError, ValueError):
        raise NotAValue('several values are written as ["a", "b"], or with commas') from None
    return [_part(item, kind) for item in fields]


def _part(item: object, kind: ParameterType) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    if kind.many and isinstance(item, list):
        return json.dumps(item)
    if isinstance(item, str | int | float):
        return str(item)
    raise NotAValue("a list holds single values")
