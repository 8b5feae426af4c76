"""Streams of a ledger: which were opened, and which of their rows were drawn.

Two kinds of records say so. ``stream`` stands directly before the charge that pays for all periods,
and says what tells the stream from others. ``drawn`` says which rows of noise were drawn next, with
the digest of their content, which is kept beside the ledger. Rows are recorded in order and each
once, so no row is drawn twice as long as what was recorded is believed: a content that is lost
stays lost.

Nothing here follows from private data: names, digests of plans, and of what was released.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from dpframe.errors import LedgerError
from dpframe.ledger.record import Draft, Record

__all__ = ["STREAMED", "Batch", "OpenedStream", "StreamKept", "StreamOpening", "Streams"]

STREAMED = frozenset({"stream", "drawn"})
"""Kinds of records of streams."""
_DIGEST = re.compile("[0-9a-f]{64}")
_MOST = 1 << 31
_KEPT: dict[str, type] = {"asked": str, "details": str}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that were drawn at once, for periods that follow one another.

    Parameters
    ----------
    first, last
        The numbers of the periods, from 0.
    digest
        Of their content.
    """

    first: int
    last: int
    digest: str


@dataclass(frozen=True, slots=True)
class StreamKept:
    """What a later version needs to go on with a stream that it would plan in another way.

    Parameters
    ----------
    asked
        The digest of all that was asked: the query, the schedule and the spend.
    details
        The plan that was charged, and what is drawn for it, as JSON.
    """

    asked: str
    details: str


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """A stream that was paid for.

    Parameters
    ----------
    number
        Of its record.
    name
        What it is opened by.
    definition
        The digest of all that tells it from others.
    periods
        How many there are.
    kept
        What later versions need; None where an earlier version opened it.
    batches
        What was drawn so far.
    """

    number: int
    name: str
    definition: str
    periods: int
    kept: StreamKept | None = None
    batches: tuple[Batch, ...] = ()

    @property
    def drawn(self) -> int:
        """How many periods have their rows."""
        return self.batches[-1].last + 1 if self.batches else 0

    def after(self, batch: Batch) -> OpenedStream:
        """The same with more rows drawn.

        Raises
        ------
        ValueError
            When they are not the next ones.
        """
        right = batch.first == self.drawn <= batch.last < self.periods
        if not right or not _DIGEST.fullmatch(batch.digest):
            raise ValueError
        return replace(self, batches=(*self.batches, batch))


@dataclass(frozen=True, slots=True)
class StreamOpening:
    """A stream that is to be paid for.

    Parameters
    ----------
    name, definition, periods, kept
        As those of an `OpenedStream`.
    """

    name: str
    definition: str
    periods: int
    kept: StreamKept | None = None

    def draft(self, budget: str, streams: Streams, fingerprint: str) -> Draft:
        """The record of it.

        Raises
        ------
        StreamIsOpen
            When there is one of that name.
        """
        if streams.find(budget, self.name) is not None:
            raise opened_meanwhile(self.name)
        said = {"stream": self.name, "definition": self.definition, "periods": self.periods}
        if self.kept is not None:
            said |= {"asked": self.kept.asked, "details": self.kept.details}
        return Draft(budget, "stream", fingerprint=fingerprint, why=json.dumps(said))

    def asks_the_same(self, opened: OpenedStream) -> bool:
        """Whether a stream was opened with the same query, schedule and spend, whatever a version
        makes of them.
        """
        if self.kept is None or opened.kept is None:
            return False
        return (self.kept.asked, self.periods) == (opened.kept.asked, opened.periods)

    def opened(self, number: int) -> OpenedStream:
        """The stream once it has its record."""
        return OpenedStream(number, self.name, self.definition, self.periods, self.kept)

    @classmethod
    def read(cls, record: Record) -> StreamOpening:
        """What a record says.

        Raises
        ------
        ValueError, TypeError, KeyError
            When it makes no sense.
        """
        said = _said(record, {"stream": str, "definition": str, "periods": int}, _KEPT)
        right = bool(said["stream"]) and 0 < said["periods"] < _MOST
        if not right or not _DIGEST.fullmatch(said["definition"]):
            raise ValueError
        kept = None
        if "asked" in said:
            kept = StreamKept(said["asked"], said["details"])
            if not _DIGEST.fullmatch(kept.asked):
                raise ValueError
        return cls(said["stream"], said["definition"], said["periods"], kept)


class StreamIsOpen(LedgerError):
    """Somebody else opened it meanwhile; whoever meets this looks again."""


def opened_meanwhile(name: str) -> StreamIsOpen:
    """The refusal to pay for a stream once more."""
    return StreamIsOpen(
        f"the stream {name!r} was opened by another process meanwhile",
        remedy="open it again, which costs nothing",
    )


class Streams:
    """The streams of all budgets of a chain."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], OpenedStream] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._last: Record | None = None

    def find(self, budget: str, name: str) -> OpenedStream | None:
        """The stream of a budget by its name."""
        return self._found.get((budget, name))

    def all(self) -> list[OpenedStream]:
        """Those of all budgets, in the order in which they were opened."""
        return list(self._found.values())

    def require(self, record: Record) -> None:
        """Refuse a record of a stream that no ledger writes, whoever sealed it; and what comes
        directly after one that opens a stream, and is not its charge.

        Raises
        ------
        ValueError, TypeError, KeyError
            When it makes no sense.
        """
        last = self._last
        if last is not None and record.seq == last.seq + 1:  # a checkpoint names no charges
            paid = ("charged", last.name, last.fingerprint)
            if (record.act, record.name, record.fingerprint) != paid:
                raise ValueError
        if record.act == "stream":
            opening = StreamOpening.read(record)
            known = self.find(record.name, opening.name) is not None
            if known or not _DIGEST.fullmatch(record.fingerprint or ""):
                raise ValueError
        elif record.act == "drawn":
            self._after(record)

    def apply(self, record: Record) -> None:
        """Take a record in."""
        self._last = record if record.act == "stream" else None
        if record.act == "stream":
            made = StreamOpening.read(record)
            place = record.name, made.name
            self._names[record.seq] = place
            self._found[place] = made.opened(record.seq)
        elif record.act == "drawn":
            self._found[self._names[record.refers or 0]] = self._after(record)

    def _after(self, record: Record) -> OpenedStream:
        place = self._names[record.refers or 0]
        if place[0] != record.name:
            raise ValueError
        said = _said(record, {"first": int, "last": int})
        batch = Batch(said["first"], said["last"], record.fingerprint or "")
        return self._found[place].after(batch)


def drawn_draft(budget: str, stream: OpenedStream, batch: Batch) -> Draft:
    """The record of rows that were drawn."""
    said = json.dumps({"first": batch.first, "last": batch.last})
    return Draft(budget, "drawn", stream.number, batch.digest, why=said)


def _said(
    record: Record, kinds: dict[str, type], more: dict[str, type] | None = None
) -> dict[str, Any]:
    """What a record says, with `more` of it or without."""
    said = json.loads(record.why or "")
    if not isinstance(said, dict):
        raise ValueError
    if more is not None and said.keys() & more.keys():
        kinds = kinds | more
    if said.keys() != kinds.keys():
        raise ValueError
    if any(type(said[name]) is not kind for name, kind in kinds.items()):
        raise TypeError
    return said
