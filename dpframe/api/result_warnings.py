"""Python's warnings of results that are not what they seem. Each follows from the query, from its
plan or from noisy numbers.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import polars as pl

from dpframe.aggregates.aggregate import Query
from dpframe.core.units import Rows
from dpframe.describe.notes import impossible_keys
from dpframe.errors import (
    DroppedRows,
    EventRows,
    ImpossibleKeys,
    NoGroups,
    NoRows,
    ResultWarning,
    ValuesAtBounds,
)
from dpframe.frames.binary import frames_of
from dpframe.mechanisms import KeyMechanism
from dpframe.pipeline import PreparedTogether
from dpframe.plan.looks import looks_identifying
from dpframe.release import Doubt
from dpframe.release.results import Doubts

__all__ = ["warn_of_queries", "warn_of_results"]

Warnings: TypeAlias = "list[tuple[str, ...]]"
"""The sentences of the warnings of each result."""

_KINDS: Mapping[str, type[ResultWarning]] = MappingProxyType(
    {
        kind.__name__: kind
        for kind in (
            DroppedRows,
            EventRows,
            ImpossibleKeys,
            NoGroups,
            NoRows,
            ValuesAtBounds,
        )
    }
)
_LOOK_UP = "{}; look up what Polars gives, and list these values"
_CHANCES = (Fraction(1, 2), Fraction(19, 20))
_OURS = str(Path(__file__).parents[1])


def warn_of_queries(queries: Iterable[Query]) -> Warnings:
    """Warn about queries that run, for facts that otherwise only their plans show; return the
    warnings of each."""
    found = [_of_query(query) for query in queries]
    _warn(found)
    return _sentences(found)


def _of_query(query: Query) -> list[Doubt]:
    made = [Doubt("ImpossibleKeys", _LOOK_UP.format(said)) for said in impossible_keys(query)]
    return [*made, *_of_events(query)]


def _of_events(query: Query) -> Iterator[Doubt]:
    """Say that people seem to have several of the rows that are protected, by names and types."""
    for frame in {frame.token: frame for frame in frames_of(query.relation)}.values():
        unit, columns = frame.source.unit, frame.source.columns
        if not isinstance(unit, Rows) or unit.contributions > 1:
            continue
        people = [name for name in columns if looks_identifying(name)]
        times = [name for name, found in columns.items() if found.dtype.name == "Datetime"]
        if people and times:
            yield Doubt(
                "EventRows",
                f"each row of {frame.name} is protected separately, but {people[0]!r} and the time "
                f"{times[0]!r} suggest several rows per person. A person with n rows is protected "
                f"n times less. Protect people with unit={people[0]!r}, or declare the most rows "
                "of a person with dp.Rows(contributions=n)",
            )


def _warn(doubts: Iterable[Sequence[Doubt]]) -> None:
    """Give each once, as Python's warnings."""
    for doubt in dict.fromkeys(doubt for found in doubts for doubt in found):
        warnings.warn(doubt.words, _KINDS.get(doubt.kind, ResultWarning), stacklevel=_depth())


def _sentences(doubts: Iterable[Sequence[Doubt]]) -> Warnings:
    return [tuple(dict.fromkeys(doubt.words for doubt in found)) for found in doubts]


def warn_of_results(
    prepared: PreparedTogether,
    frames: Sequence[pl.DataFrame],
    doubts: Doubts,
    place: int | None = None,
    warned: set[int] | None = None,
) -> Warnings:
    """Warn about results, for facts that otherwise only plans and remarks show, and for doubts;
    return the warnings of each.

    Parameters
    ----------
    prepared
        What was run.
    frames
        The result of each query; first that of the search for a limit, where there is one.
    doubts
        The doubts about each result that follow from its noisy numbers.
    place
        Which limit was found.
    warned
        The frames of the session for which a limit that seems to drop little was announced: one
        warning each is enough. All are among the sentences that are returned.
    """
    dropped = list(_of_dropped(prepared, frames[0], place))
    own = list(doubts) or [() for _ in frames]
    if prepared.limits is not None:  # of the search itself nothing is worth a warning
        own = [(), *own[1:]]
    without = [list(_of_no_groups(prepared, number, frame)) for number, frame in enumerate(frames)]
    found = [[*dropped, *apart, *none] for apart, none in zip(own, without, strict=True)]
    loss, frame = prepared.loss(frames[0], place), prepared.parts[0].query.relation.token
    if warned is not None and loss is not None and loss.seems_little:
        quiet = {*dropped} if frame in warned else set()
        warned.add(frame)
        _warn([doubt for doubt in own if doubt not in quiet] for own in found)
    else:
        _warn(found)
    return _sentences(found)


def _of_dropped(
    prepared: PreparedTogether, histogram: pl.DataFrame, place: int | None
) -> Iterator[Doubt]:
    """Say that a limit which was found drops more than a tenth, or may, by its noisy histogram."""
    loss = prepared.loss(histogram, place)
    if loss is None or not loss.is_much:
        return
    yield Doubt(
        "DroppedRows",
        f"{prepared.found(histogram, place)}; interval=0.95 covers this. If you know the most that "
        "one person has, write the limit, such as .limit_rows(n)",
    )


def _of_no_groups(prepared: PreparedTogether, number: int, frame: pl.DataFrame) -> Iterator[Doubt]:
    """Warn how large a group must be, if groups were chosen privately and none appears."""
    part = prepared.parts[prepared.places[number].block]
    groups = part.query.groups
    laws = [r.law for r in part.plan.releases if isinstance(r.law, KeyMechanism)]
    if frame.height or groups is None or not groups.discovered or not laws:
        return
    half, sure = (max(law.size_at(chance) for law in laws) for chance in _CHANCES)
    message = (
        f"no group of {groups.words()} appears. At this spend a group of {half:,} individuals "
        f"appears with a chance of 50%, one of {sure:,} with 95%. List the groups with "
        "keys=[...], make fewer of them, or spend more epsilon or delta"
    )
    yield Doubt("NoGroups", message)


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
