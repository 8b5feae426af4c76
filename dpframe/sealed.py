"""Tracebacks without rows: what a public function raises shows no frame of dpframe but its own.

Debuggers, test runners and error trackers show the local variables of each frame of a traceback,
and a frame of dpframe's that was handed a raw frame has rows among them. So errors leave a public
function as if it had raised them itself, and by then it holds nothing.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from dpframe.arguments import misfit
from dpframe.errors import DPFrameError

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
