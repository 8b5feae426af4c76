"""Hints for names that are nearly right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


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
