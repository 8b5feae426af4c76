"""The fields of dataclasses, remembered by type: plans are walked by them many times."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, Final

EXACT: Final = "exact"
"""Marks, in the metadata of a field, whole numbers for which 64 bits may be too few: terms of an
exact fraction, and the number of ways in which several quantiles may be placed.
"""
WRITTEN: Final = "written"
"""In the metadata of a field, what documents call it, where that is not its name."""


def fields_of(value: object) -> tuple[dataclasses.Field[Any], ...] | None:
    """The fields of a dataclass's instance, in order; None for any other value."""
    kind: type = type(value)
    return _fields(kind)


@cache
def _fields(kind: type) -> tuple[dataclasses.Field[Any], ...] | None:
    return dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else None


def written(field: dataclasses.Field[Any]) -> str:
    """What documents call a field."""
    return str(field.metadata.get(WRITTEN, field.name))
