"""Parts of a frame that are periods, and wait for rows that come late.

A delay fixes when a part may be paid for and read. Protection and cost do not depend on it: a
part that waits is the same part, and is charged in the same way.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

from dpframe.core import clock
from dpframe.errors import TooEarly
from dpframe.frames.binary import frames_of
from dpframe.frames.part import Part
from dpframe.frames.relation import Relation
from dpframe.rows.fold import domain

__all__ = ["require_due"]


def require_due(relations: Iterable[Relation]) -> None:
    """Refuse to read parts before their time.

    Raises
    ------
    TooEarly
        With the first time at which all may be read.
    """
    waits = [found for relation in relations for found in _waiting(relation)]
    if not waits:
        return
    due, part = max(waits, key=lambda found: found[0])
    if due > clock.now():
        raise TooEarly(
            f"this may be released from {due:%Y-%m-%d %H:%M:%S} UTC on",
            due=due,
            where=part.words(),
            why="the part waits for rows that come late; nothing was read or charged",
            remedy="release it after that time",
        )


def _waiting(relation: Relation) -> Iterator[tuple[dt.datetime, Part]]:
    """When each part may be read that waits, among all frames that are joined."""
    for frame in frames_of(relation):
        for step, before in frame.steps:
            if isinstance(step, Part) and step.waits is not None:
                for named, value in zip(step.by, step.values, strict=True):
                    if isinstance(value, dt.date):
                        zone = domain(named.tree, before.columns).dtype.zone
                        yield step.waits.due(value, zone), step
