"""Python's warnings of results that are not what they seem: too small for want of a limit or by the
one that was found, or without any group.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path

import polars as pl

from dpframe.aggregates.query import Query
from dpframe.errors import DroppedRows, NoGroups, WeighedResults
from dpframe.mechanisms import KeyMechanism
from dpframe.pipeline import PreparedTogether

__all__ = ["warn_of_results", "warn_of_weights"]

_CHANCES = (Fraction(1, 2), Fraction(19, 20))
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


def warn_of_results(prepared: PreparedTogether, frames: Sequence[pl.DataFrame]) -> None:
    """Say what only plans and remarks say of results.

    Parameters
    ----------
    prepared
        What was run.
    frames
        The result of each query; first that of the search for a limit, where there is one.
    """
    _warn_of_dropped(prepared, frames[0])
    _warn_of_no_groups(prepared, frames)


def _warn_of_dropped(prepared: PreparedTogether, histogram: pl.DataFrame) -> None:
    """Say that a limit that was found drops many rows, by its own noisy histogram: more than one
    percent, and more than noise hides.
    """
    loss = prepared.loss(histogram)
    if loss is None or not loss.is_much:
        return
    message = (
        f"{prepared.found(histogram)}. Numbers are too small by so much beside their noise, or are "
        "of the rows that are left: spend more, write a higher limit, or see what is dropped with "
        "report_dropped=True"
    )
    warnings.warn(message, DroppedRows, stacklevel=_depth())


def _warn_of_no_groups(prepared: PreparedTogether, frames: Sequence[pl.DataFrame]) -> None:
    """Say how large a group has to be, where nobody listed any and none appears."""
    for place, frame in zip(prepared.places, frames, strict=True):
        part = prepared.parts[place.block]
        groups = part.query.groups
        laws = [r.law for r in part.plan.releases if isinstance(r.law, KeyMechanism)]
        if frame.height or groups is None or not groups.discovered or not laws:
            continue
        half, sure = (max(law.size_at(chance) for law in laws) for chance in _CHANCES)
        message = (
            f"no group of {groups.words()} appears: at this spend one of {half:,} individuals "
            f"appears with an even chance, and one of {sure:,} nearly always (95%); list the "
            "groups with keys=[...], make fewer of them, or spend more epsilon or delta"
        )
        warnings.warn(message, NoGroups, stacklevel=_depth())


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
