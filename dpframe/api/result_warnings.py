"""Warnings of results that are not what they seem: too small by the limit that was found, or
without any group.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import TypeAlias

import polars as pl

from dpframe.errors import DroppedRows, NoGroups, ResultWarning
from dpframe.mechanisms import KeyMechanism
from dpframe.pipeline import PreparedTogether

__all__ = ["ResultRemark", "remarks_of", "warn"]

ResultRemark: TypeAlias = "tuple[type[ResultWarning], str]"
"""A kind of warning, and what it says."""

_CHANCES = (Fraction(1, 2), Fraction(19, 20))
_OURS = str(Path(__file__).parents[1])


def remarks_of(prepared: PreparedTogether, frames: Sequence[pl.DataFrame]) -> list[ResultRemark]:
    """What is to be said of results that are not what they seem. All of it follows from released
    numbers and from plans.

    Parameters
    ----------
    prepared
        What was run.
    frames
        The result of each query; first that of the search for a limit, where there is one.
    """
    return [*_of_dropped(prepared, frames[0]), *_of_no_groups(prepared, frames)]


def warn(remarks: Iterable[ResultRemark]) -> None:
    """Say them as Python's warnings, at the line that called dpframe."""
    for kind, message in remarks:
        warnings.warn(message, kind, stacklevel=_depth())


def _of_dropped(prepared: PreparedTogether, histogram: pl.DataFrame) -> Iterator[ResultRemark]:
    """That a limit which was found drops more than a tenth, or may, by its own noisy histogram."""
    loss = prepared.loss(histogram)
    if loss is None or not loss.is_much:
        return
    yield (
        DroppedRows,
        f"{prepared.found(histogram)}. The numbers may lack as much, and interval=0.95 covers it: "
        "spend more, or write the limit where you know how many rows people have",
    )


def _of_no_groups(
    prepared: PreparedTogether, frames: Sequence[pl.DataFrame]
) -> Iterator[ResultRemark]:
    """How large a group has to be, where nobody listed any and none appears."""
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
        yield NoGroups, message


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
