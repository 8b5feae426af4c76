"""How streams are opened and go on, wherever their budget is kept."""

from __future__ import annotations

import hashlib
from typing import Protocol

from dpframe.errors import LedgerError, require
from dpframe.ledger.chain import Chain
from dpframe.ledger.drawing import Terms, require_drawing
from dpframe.ledger.record import Draft, Seal
from dpframe.ledger.releasing import Exclusive
from dpframe.ledger.row_contents import MemoryRows, RowContents
from dpframe.ledger.store import Store
from dpframe.ledger.streams import (
    Batch,
    OpenedStream,
    StreamOpening,
    Types,
    drawn_draft,
    opened_meanwhile,
    typed_draft,
)

STAYS = "a ledger keeps the streams that were opened"


def digest_of(content: bytes) -> str:
    """The digest that identifies a content."""
    return hashlib.sha256(content).hexdigest()


class StreamBook(Protocol):
    """The streams of one budget."""

    @property
    def contents(self) -> RowContents:
        """Where rows are kept."""
        ...

    def find(self, name: str) -> OpenedStream | None:
        """The current state of a stream, by its name."""
        ...

    def require_drawing(self, stream: OpenedStream, terms: Terms) -> None:
        """Refuse to draw for a stream that was stopped.

        Raises
        ------
        BudgetExceeded
            When it or its budget was closed.
        PlanMismatch
            When no approval counts that it needs.
        """
        ...

    def seal(self, stream: OpenedStream, values: list[object]) -> str:
        """The seal of rows of a stream, under the key of the ledger if it has one."""
        ...

    def add(self, stream: OpenedStream, batch: Batch, terms: Terms) -> None:
        """Record rows whose content is kept; nothing happens where they are recorded already.

        Raises
        ------
        LedgerError
            When others were recorded in their place, or it cannot be written.
        BudgetExceeded, PlanMismatch
            When the stream was stopped meanwhile.
        """
        ...

    def bind(self, name: str, types: Types) -> OpenedStream:
        """A stream, that reads columns of these types from now on where it had none.

        Raises
        ------
        LedgerError
            When it reads columns of other types, or it cannot be written.
        """
        ...


class MemoryStreams:
    """Streams that are gone when their process ends."""

    def __init__(self) -> None:
        self._found: dict[str, OpenedStream] = {}
        self._contents = MemoryRows()
        self._lock = Exclusive()

    @property
    def contents(self) -> RowContents:
        return self._contents

    def find(self, name: str) -> OpenedStream | None:
        return self._found.get(name)

    def require_new(self, opening: StreamOpening) -> None:
        """Refuse to pay for a stream that is open."""
        if opening.name in self._found:
            raise opened_meanwhile(opening.name)

    def open(self, opening: StreamOpening) -> None:
        """Remember a stream that is paid for."""
        self._found.setdefault(opening.name, opening.opened(len(self._found)))

    def require_drawing(self, stream: OpenedStream, terms: Terms) -> None:
        """Nothing: who could stop it would have to be in this process."""

    def seal(self, stream: OpenedStream, values: list[object]) -> str:
        return Seal(None).rows([stream.number, *values])

    def add(self, stream: OpenedStream, batch: Batch, terms: Terms) -> None:
        def adding() -> None:
            now = self._found[stream.name]
            if batch not in now.batches:
                self._found[stream.name] = _after(now, batch)

        self._lock.run(adding)

    def bind(self, name: str, types: Types) -> OpenedStream:
        stream = self._found[name]
        stream.require_types(types)
        return stream


class StoredStreams:
    """Streams of one budget of a store."""

    def __init__(self, store: Store, budget: str) -> None:
        self._store = store
        self._budget = budget

    @property
    def contents(self) -> RowContents:
        return self._store.rows_of_streams()

    def find(self, name: str) -> OpenedStream | None:
        return self._store.read().streams.find(self._budget, name)

    def require_drawing(self, stream: OpenedStream, terms: Terms) -> None:
        require_drawing(self._store.read(), self._budget, stream, terms)

    def seal(self, stream: OpenedStream, values: list[object]) -> str:
        return self._store.seal.rows([self._store.hash_of(stream.number), *values])

    def add(self, stream: OpenedStream, batch: Batch, terms: Terms) -> None:
        def adding(chain: Chain) -> Draft | None:
            now = chain.streams.find(self._budget, stream.name)
            require(now is not None and now.number == stream.number, STAYS)
            assert now is not None
            if batch in now.batches:
                return None
            require_drawing(chain, self._budget, now, terms)
            _after(now, batch)
            return drawn_draft(self._budget, stream, batch)

        self._store.append(adding)

    def bind(self, name: str, types: Types) -> OpenedStream:
        def binding(chain: Chain) -> Draft | None:
            now = chain.streams.find(self._budget, name)
            if now is None or now.types is not None or now.closed is not None:
                return None
            return typed_draft(self._budget, now, types)

        stream = self.find(name)
        if stream is not None and stream.types is None:
            self._store.append(binding)
            stream = self.find(name)
        require(stream is not None, STAYS)
        assert stream is not None
        stream.require_types(types)
        return stream


def _after(stream: OpenedStream, batch: Batch) -> OpenedStream:
    try:
        return stream.after(batch)
    except ValueError:
        raise LedgerError(
            f"another process recorded these periods of the stream {stream.name!r} first",
            remedy="release the period again, which returns its rows and costs nothing",
        ) from None
