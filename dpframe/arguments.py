"""Calls whose arguments do not fit: what Python answers with a bare `TypeError` is refused by name,
with what to write instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from dpframe.errors import DPFrameError, UnsupportedOperation

__all__ = ["misfit"]

_ENDS = frozenset(("lower", "upper", "low", "high", "lo", "hi", "min", "max", "lower_bound"))
_EXAMPLES: Mapping[str, str | tuple[str, str]] = MappingProxyType(
    {
        "unit": (
            'write unit="user_id" with the column that identifies the person of a row',
            "write unit=dp.Rows() where each row is one person",
        ),
        "bounds": "write bounds=(low, high)",
        "denominator_bounds": "write denominator_bounds=(0, high)",
        "keys": 'write keys=["a", "b"]',
    }
)
"""What to write for an argument that is missing."""
_OF_POLARS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "other": ("groups that are not listed are dropped", "use dp_histogram(column, other=True)"),
        "limits": (
            "a simulation, a suggestion or an audit is of one plan under one limit",
            "write the limit before the query: .limit_rows(n)",
        ),
        "streaming": ("Polars chooses its engine by name", 'write engine="streaming"'),
        "strict": ("values that do not fit become null", "leave strict= out"),
    }
)
"""Keywords of Polars, or of other methods: why they are not taken, and what to write."""


def misfit(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> DPFrameError | None:
    """The refusal of a call that does not bind; None where its arguments fit the function."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return _refusal(function, list(signature.parameters.values()), args, kwargs)
    return None


def _refusal(
    function: Callable[..., Any],
    known: list[inspect.Parameter],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> DPFrameError:
    called = _name(function)
    if known and known[0].name == "self":
        known, args = known[1:], args[1:]
    places = [p for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [p.name for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in known)
    unknown = [] if open_ended else [name for name in kwargs if name not in names]
    if unknown:
        return _unknown(called, unknown, names)
    surplus = args[len(places) :]
    if surplus and not any(p.kind is p.VAR_POSITIONAL for p in known):
        return _surplus(called, places, args, names)
    filled = {p.name for p in places[: len(args)]}
    twice = [name for name in kwargs if name in filled]
    if twice:
        return UnsupportedOperation(
            f"{called} has the argument {twice[0]!r} twice",
            where=f"{called}(..., {twice[0]}=...)",
            remedy=f"leave {twice[0]}= out",
        )
    missing = [p.name for p in known if p.name in names and p.default is p.empty]
    lacking = next(name for name in missing if name not in filled and name not in kwargs)
    return UnsupportedOperation(
        f"{called} needs the argument {lacking!r}",
        where=f"{called}(...)",
        remedy=_EXAMPLES.get(lacking, f"write {called}(..., {lacking}=...)"),
    )


def _unknown(called: str, unknown: Sequence[str], names: Sequence[str]) -> DPFrameError:
    name, why = unknown[0], None
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    remedy: str | tuple[str, str]
    if name in _ENDS and "bounds" in names:
        remedy = _EXAMPLES["bounds"]
    elif name in _OF_POLARS:
        why, remedy = _OF_POLARS[name]
    elif near:
        remedy = f"did you mean {near[0]}=?"
    else:
        remedy = f"use its arguments: {', '.join(names)}" if names else "leave it out"
    return UnsupportedOperation(
        f"{called} has no argument {name!r}",
        where=f"{called}(..., {name}=...)",
        why=why,
        remedy=remedy,
    )


def _surplus(
    called: str, places: Sequence[inspect.Parameter], args: Sequence[Any], names: Sequence[str]
) -> DPFrameError:
    ends = [a for a in args if isinstance(a, (int, float)) and not isinstance(a, bool)]
    if "bounds" in names and len(ends) == 2:
        remedy = f"write the bounds as one pair: ({ends[0]}, {ends[1]})"
    else:
        rest = [name for name in names if name not in {p.name for p in places}]
        remedy = f"name the others: {', '.join(f'{n}=...' for n in rest)}" if rest else "drop some"
    count = f"{len(places)} argument{'s' if len(places) != 1 else ''}"
    return UnsupportedOperation(
        f"{called} takes {count} without a name, not {len(args)}",
        where=f"{called}(...)",
        remedy=remedy,
    )


def _name(function: Callable[..., Any]) -> str:
    """What an analyst calls the function."""
    name, owner = function.__name__, function.__qualname__.rpartition(".")[0]
    if name == "__init__":
        return f"dp.{owner}"
    return name if owner else f"dp.{name}"
