"""Typed access to the constant options of an operation."""

from __future__ import annotations

import json

from dpframe.core.tree import Option, Options
from dpframe.errors import InvalidBounds


def text_option(options: Options, name: str) -> str:
    """An option that is text."""
    value = options[name]
    if not isinstance(value, str):
        raise InvalidBounds(f"{name} must be text, not {value!r}")
    return value


def optional_text(options: Options, name: str) -> str | None:
    """An option that is text or left out."""
    return None if options.get(name) is None else text_option(options, name)


def whole_option(options: Options, name: str) -> int:
    """An option that is a whole number which fits in 64 bits."""
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidBounds(f"{name} must be a whole number, not {value!r}")
    if not -(2**63) <= value < 2**63:
        raise InvalidBounds(f"{name} must fit in 64 bits")
    return value


def flag_option(options: Options, name: str) -> bool:
    """An option that is True or False; False when left out."""
    return options.get(name) is True


def texts_option(options: Options, name: str) -> tuple[str, ...]:
    """An option that is a tuple of texts."""
    values = options[name]
    if not isinstance(values, tuple):
        raise InvalidBounds(f"{name} must be a list of texts")
    return tuple(_as_text(name, value) for value in values)


def _as_text(name: str, value: Option) -> str:
    if not isinstance(value, str):
        raise InvalidBounds(f"{name} must be a list of texts, and {value!r} is not one")
    return value


def quoted(text: str) -> str:
    """Text as an analyst would write it, with odd characters escaped."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
