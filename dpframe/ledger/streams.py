"""Streams of a ledger: which were opened, and which of their rows were drawn.

There are five kinds of records. ``stream`` stands directly before the charge that pays for all
periods, and holds the identity of the stream. ``drawn`` names the next rows of noise and the digest
of their content, which is stored next to the ledger. ``ended``: an owner closed the stream, which
draws nothing more. ``typed`` holds the types of the columns that an earlier version's stream reads,
and is written when this is opened again.

Each row is recorded once and in order, so no row is drawn twice, and a content that is lost stays
lost. A copy of the ledger does not know what was drawn after it was made. So once a ledger is
accepted without its head file (``adopted``), its streams draw nothing until ``redrawn``, which
stands directly before a charge of the whole cost. Then all rows may be drawn once more, which costs
no more than a second stream.

Nothing here follows from private data: names, digests of plans, and of what was released.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TypeAlias

from dpframe.errors import LedgerError
from dpframe.ledger.record import Draft, Record, Stored

STREAMED = frozenset({"stream", "drawn", "typed", "redrawn", "ended"})
"""Kinds of records of streams."""
_DIGEST = re.compile("[0-9a-f]{64}")
_MOST = 1 << 31
_KEPT: dict[str, type] = {"asked": str, "details": str}

Types: TypeAlias = "tuple[tuple[str, dict[str, str]], ...]"
"""The types of the columns that are read, by frame (`dpframe.plan.types_read`)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that were drawn at once, for periods that follow one another."""

    # `first`, `last`: the numbers of the periods, from 0.
    first: int
    last: int
    digest: str  # The digest of their content


@dataclass(frozen=True, slots=True)
class StreamKept:
    """What a later version needs to go on with a stream that it would plan in another way."""

    asked: str  # The digest of the whole request: the query, the schedule and the spend
    details: str  # The plan that was charged, and what is drawn for it, as JSON


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """A stream that was paid for."""

    number: int  # The number of its record
    name: str  # The name that it is opened with
    definition: str  # The digest of everything that identifies it
    periods: int  # How many there are
    # What later versions need; None where an earlier version opened it.
    kept: StreamKept | None = None
    batches: tuple[Batch, ...] = ()  # What was drawn so far
    # The types of the columns that it reads; None where an earlier version opened it, until it is
    # opened again.
    types: Types | None = None
    # The number of the record that accepted the ledger as a possible copy; since then nothing is
    # drawn. None if that did not happen, or was paid for.
    doubted: int | None = None
    # The number of the approval that it was paid for under; None without one, or where an earlier
    # version opened it.
    approval: int | None = None
    closed: Record | None = None  # The record by which an owner closed it

    def require_types(self, types: Types) -> None:
        """Refuse columns of other types than those that it reads. Raises `LedgerError` with the
        first one, and what it was.
        """
        for (frame, before), (_, now) in zip(self.types or (), types, strict=False):
            for name, text in before.items():
                if now.get(name, text) != text:
                    raise LedgerError(
                        f"the column {name!r} of {frame!r} has type {now[name]}, and "
                        f"had {text} when the stream {self.name!r} was opened",
                        where="session.stream(...)",
                        why="its rows could fall into other periods, or count differently, for "
                        "the same charge",
                        remedy=(
                            "cast it to the type that it had, before the frame is protected",
                            "open a new stream, which is charged",
                        ),
                    )

    @property
    def drawn(self) -> int:
        """How many periods have their rows."""
        return self.batches[-1].last + 1 if self.batches else 0

    def after(self, batch: Batch) -> OpenedStream:
        """The same with more rows drawn. Raises `ValueError` when they are not the next ones."""
        right = batch.first == self.drawn <= batch.last < self.periods
        if not right or not _DIGEST.fullmatch(batch.digest):
            raise ValueError
        return replace(self, batches=(*self.batches, batch))


@dataclass(frozen=True, slots=True)
class StreamOpening:
    """A stream that is to be paid for."""

    # `name`, `definition`, `periods`, `kept`, `types`: as those of an `OpenedStream`.
    name: str
    definition: str
    periods: int
    kept: StreamKept | None = None
    types: Types | None = None

    def draft(
        self, budget: str, streams: Streams, fingerprint: str, approval: int | None = None
    ) -> Draft:
        """The record of it, which names the approval that its charge uses. Raises `StreamIsOpen`
        when there is one of that name.
        """
        if streams.find(budget, self.name) is not None:
            raise opened_meanwhile(self.name)
        said = {"stream": self.name, "definition": self.definition, "periods": self.periods}
        if self.kept is not None:
            said |= {"asked": self.kept.asked, "details": self.kept.details}
        if self.types is not None:
            said["types"] = self.types
        return Draft(budget, "stream", approval, fingerprint, why=json.dumps(said))

    def asks_the_same(self, opened: OpenedStream) -> bool:
        """Whether a stream was opened with the same query, schedule and spend, in any version."""
        if self.kept is None or opened.kept is None:
            return False
        return (self.kept.asked, self.periods) == (opened.kept.asked, opened.periods)

    def opened(self, number: int) -> OpenedStream:
        """The stream once it has its record."""
        return OpenedStream(
            number, self.name, self.definition, self.periods, self.kept, types=self.types
        )

    @classmethod
    def read(cls, record: Record) -> StreamOpening:
        """What a record says. Raises `ValueError, TypeError, KeyError` when it makes no sense."""
        said = _fields_of(record, {"stream": str, "definition": str, "periods": int}, _KEPT)
        right = bool(said["stream"]) and 0 < said["periods"] < _MOST
        if not right or not _DIGEST.fullmatch(said["definition"]):
            raise ValueError
        kept = None
        if "asked" in said:
            kept = StreamKept(said["asked"], said["details"])
            if not _DIGEST.fullmatch(kept.asked):
                raise ValueError
        types = _read_types(said["types"]) if "types" in said else None
        return cls(said["stream"], said["definition"], said["periods"], kept, types)


class StreamIsOpen(LedgerError):
    """Another process opened it meanwhile; the caller looks it up again."""


def opened_meanwhile(name: str) -> StreamIsOpen:
    """The refusal to pay for a stream once more."""
    return StreamIsOpen(
        f"another process opened the stream {name!r} in the meantime",
        remedy="open it again, which costs nothing",
    )


class Streams:
    """The streams of all budgets of a chain."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], OpenedStream] = {}
        self._names: dict[int, tuple[str, str]] = {}
        self._plans: dict[int, str | None] = {}

    def find(self, budget: str, name: str) -> OpenedStream | None:
        """The stream of a budget by its name."""
        return self._found.get((budget, name))

    def all(self) -> list[OpenedStream]:
        """The streams of all budgets, in the order in which they were opened."""
        return list(self._found.values())

    def of(self, budget: str) -> list[OpenedStream]:
        """The streams of one budget, in the same order."""
        return [found for (name, _), found in self._found.items() if name == budget]

    def doubted(self) -> list[tuple[str, OpenedStream]]:
        """Those that draw nothing, with their budgets."""
        found = self._found.items()
        return [(budget, one) for (budget, _), one in found if one.doubted is not None]

    def require(self, record: Record) -> None:
        """Refuse a record of a stream that no ledger writes, even with a valid seal. Raises
        `ValueError, TypeError, KeyError` when it makes no sense.
        """
        if record.act == "stream":
            opening = StreamOpening.read(record)
            known = self.find(record.name, opening.name) is not None
            if known or not _DIGEST.fullmatch(record.fingerprint or ""):
                raise ValueError
        elif record.act in STREAMED:
            self._changed(record)

    def apply(self, record: Record) -> None:
        """Take a record in."""
        if record.act == "stream":
            opening = StreamOpening.read(record)
            place = record.name, opening.name
            self._names[record.seq] = place
            self._found[place] = replace(opening.opened(record.seq), approval=record.refers)
            self._plans[record.seq] = record.fingerprint
        elif record.act == "adopted":  # it may be a copy, which does not know what was drawn since
            for place, found in self._found.items():
                self._found[place] = replace(found, doubted=record.seq)
        elif record.act in STREAMED:
            self._found[self._names[record.refers or 0]] = self._changed(record)

    def plan_of(self, stream: OpenedStream) -> str:
        """The fingerprint of the plan that a stream was charged."""
        return str(self._plans[stream.number])

    def _changed(self, record: Record) -> OpenedStream:
        """A stream after a record of it."""
        place = self._names[record.refers or 0]
        if place[0] != record.name:
            raise ValueError
        found = self._found[place]
        if found.closed is not None:
            raise ValueError
        if record.act == "ended":
            if not record.who:
                raise ValueError
            return replace(found, closed=record)
        if record.act == "typed":
            if found.types is not None:
                raise ValueError
            return replace(found, types=_read_types(_fields_of(record, {"types": list})["types"]))
        if record.act == "redrawn":
            if found.doubted is None or record.fingerprint != self._plans[found.number]:
                raise ValueError
            return replace(found, doubted=None)
        said = _fields_of(record, {"first": int, "last": int})
        return found.after(Batch(said["first"], said["last"], record.fingerprint or ""))


def drawn_draft(budget: str, stream: OpenedStream, batch: Batch) -> Draft:
    """The record of rows that were drawn."""
    said = json.dumps({"first": batch.first, "last": batch.last})
    return Draft(budget, "drawn", stream.number, batch.digest, why=said)


def typed_draft(budget: str, stream: OpenedStream, types: Types) -> Draft:
    """The record of the types of the columns that a stream reads, of one that has none."""
    return Draft(budget, "typed", stream.number, why=json.dumps({"types": types}))


def _read_types(found: Stored) -> Types:
    for name, columns in found:
        if not all(isinstance(text, str) for text in (name, *columns, *columns.values())):
            raise TypeError
    return tuple((name, dict(columns)) for name, columns in found)


def _fields_of(
    record: Record, kinds: dict[str, type], more: dict[str, type] | None = None
) -> dict[str, Stored]:
    """What a record says, with `more` of it or without; and with types, where that may be."""
    fields = json.loads(record.why or "")
    if not isinstance(fields, dict):
        raise ValueError
    if more is not None and "types" in fields:
        kinds = kinds | {"types": list}
    if more is not None and fields.keys() & more.keys():
        kinds = kinds | more
    if fields.keys() != kinds.keys():
        raise ValueError
    if any(type(fields[name]) is not kind for name, kind in kinds.items()):
        raise TypeError
    return fields
