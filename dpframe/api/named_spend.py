"""Spends have names, because a number alone does not state its measure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from dpframe.core.exact import as_given
from dpframe.errors import InvalidBudget

P = ParamSpec("P")
R = TypeVar("R")


def named_spend(places: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A method that takes only the first `places` arguments without a name and refuses others in
    words.

    Raises
    ------
    InvalidBudget
        By the method, when it is called with more.
    """

    def named(method: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(method)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > places + 1:
                raise _unnamed(method.__name__, args[places + 1], places)
            return method(*args, **kwargs)

        return called

    return named


def _unnamed(method: str, given: object, places: int) -> InvalidBudget:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    shown = as_given(given) if number else "1"
    before = "..., " * places
    return InvalidBudget(
        f"the spend {as_given(given) if number else f'a {type(given).__name__}'} needs a name",
        where=f".{method}({before}{as_given(given) if number else '...'})",
        remedy=(
            f"write .{method}({before}epsilon={shown})",
            f"write .{method}({before}rho={shown}) in a session with rho",
        ),
    )
