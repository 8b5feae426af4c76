"""Hints for names that are nearly right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from dpframe.core.exact import show_input
from dpframe.errors import UnknownColumn


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest known one, or the list of all."""
    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6) or [
        n for n in names if n.lower() == name.lower()
    ]
    if near:
        return f"did you mean {near[0]!r}?"
    shown = ", ".join(repr(n) for n in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"use one of {shown}{more}" if names else "the frame has no columns"


def unknown_column(
    name: object, known: Iterable[str], where: str | None = None, *, frame: str = "the frame"
) -> UnknownColumn:
    """The refusal of a column that a frame does not have."""
    return UnknownColumn(
        f"{frame} has no column {show_input(name)}",
        where=where,
        remedy=did_you_mean(str(name), known),
    )
