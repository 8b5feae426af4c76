"""Python's warning of numbers in which individuals are weighed although nobody wrote so."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from dpframe.aggregates.query import Query
from dpframe.errors import WeighedResults

__all__ = ["warn_of_weights"]

_OURS = str(Path(__file__).parents[1])


def warn_of_weights(queries: Iterable[Query]) -> None:
    """Say of queries that run what else only their plans say."""
    names = [name for query in queries if query.is_weighed for name in _names(query)]
    if not names:
        return
    verb = "adds" if len(names) == 1 else "add"
    message = (
        f"{', '.join(map(repr, names))} {verb} up weights: nobody limited in how many groups an "
        "individual is, so one in t groups counts 1 / sqrt(t) in each, and numbers are too small "
        'where people are in several; write .limit_groups(n, by=...) or limits="auto" to count '
        "them whole, or .limit_norm(1) if this is meant"
    )
    warnings.warn(message, WeighedResults, stacklevel=_depth())


def _names(query: Query) -> list[str]:
    return [output.name for output in query.outputs]


def _depth() -> int:
    """How far up the caller of dpframe is."""
    for depth in count(2):
        try:
            frame = sys._getframe(depth)
        except ValueError:
            break
        if not frame.f_code.co_filename.startswith(_OURS):
            return depth
    return 2
