"""Tracebacks without rows: what a public function raises shows no frame of dpframe but its own.

Debuggers, test runners and error trackers show the local variables of each frame of a traceback,
and a frame of dpframe's that was handed a raw frame has rows among them. So errors leave a public
function as if it had raised them itself, and by then it holds nothing.
"""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from types import FunctionType, MappingProxyType
from typing import Any, ParamSpec, TypeVar

from dpframe.errors import DPFrameError, UnsupportedOperation

__all__ = ["misfit"]

# Calls whose arguments do not fit: what Python answers with a bare `TypeError` is refused by name,
# with what to write instead.

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
    elif names[:1] == ["columns"] and all(isinstance(a, str) for a in args):
        remedy = f"write the columns as one list: {[*args]!r}"
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


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_LOOK_UPS = ("__getattr__", "__getattribute__")
"""They take names, and often fail for a reason."""
_PACKAGES = {"polars", "pyarrow", "pandas", "numpy", "duckdb", "_duckdb", "pyspark", "narwhals"}
_MOST = 100


def sealed(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors carry no local variables of what it called."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            failed: BaseException = error
        if isinstance(failed, TypeError):  # Python's own of a call, perhaps
            failed = misfit(function, args, kwargs) or failed
        if isinstance(failed, DPFrameError):
            _hide(failed, [*args, *kwargs.values()])
        del args, kwargs  # which hold what was handed over
        try:
            raise _emptied(failed, sys.exc_info()[1])
        finally:
            del failed  # or its traceback would hold itself

    return called


def all_sealed(cls: type[T]) -> type[T]:
    """A class whose own public methods and operators are sealed; properties take no frames."""
    for name, found in list(vars(cls).items()):
        internal = name.startswith("_") and not name.startswith("__")
        if isinstance(found, FunctionType) and not internal and name not in _LOOK_UPS:
            setattr(cls, name, sealed(found))
    return cls


def _hide(error: DPFrameError, given: list[Any]) -> None:
    """Take out of a message what it quotes of a frame that was given for something else. Such a
    quotation has several lines, so that most messages need no look at what was given.
    """
    inner = [e for v in given if isinstance(v, (list, tuple)) for e in v[:_MOST]]
    inner += [e for v in given if isinstance(v, dict) for e in list(v.values())[:_MOST]]
    for value in [*given, *inner]:
        if "\n" not in f"{error.what}{error.where}":
            return
        if has_rows(value):
            for text in {repr(value), str(value)}:
                name = f"a {type(value).__name__}"
                error.what = error.what.replace(text, name)
                error.where = None if error.where is None else error.where.replace(text, name)
            error.args = (error.what, error.where, error.why, error.remedy)


def has_rows(value: object) -> bool:
    """Whether it is a frame or column of some library, identified by its class name, because this
    module imports no library.
    """
    package = type(value).__module__.partition(".")[0]
    return package in _PACKAGES and "Expr" not in type(value).__name__


def _emptied(error: BaseException, outside: BaseException | None) -> BaseException:
    """The error and those behind it, without their frames, up to the one that the caller was
    handling. An error that is not a refusal, so perhaps a bug, keeps a note of the lines that it
    came from.
    """
    seen: set[int] = {id(outside)}
    behind: list[Any] = [error]
    while behind:
        found = behind.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        behind += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            behind += found.exceptions
        if isinstance(found, Exception) and not isinstance(found, DPFrameError):
            lines = traceback.format_list(traceback.extract_tb(found.__traceback__))
            found.add_note("It came from:\n" + "".join(lines).rstrip())
        found.__traceback__ = None
    return error
