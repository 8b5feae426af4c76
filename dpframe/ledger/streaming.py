"""How streams are opened, go on and end, wherever their budget is kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from dpframe.core.tree import visible
from dpframe.errors import BudgetExceeded, LedgerError, require
from dpframe.ledger.approvals import Requirement
from dpframe.ledger.budgets import require_open
from dpframe.ledger.chain import Chain, require_here
from dpframe.ledger.contents import Contents
from dpframe.ledger.record import Draft, short_text
from dpframe.ledger.store import Store
from dpframe.ledger.streams import (
    Batch,
    OpenedStream,
    Types,
    drawn_draft,
    typed_draft,
)

# Whether a stream may draw more: not once it or its budget was closed, nor while no approval counts
# that it needs.
#
# A stream is charged once and draws for as long as it has periods. A refused charge alone is not
# enough to stop a stream. So everything that stops charges also stops draws, before data are read
# and once more in the transaction that records the draws. Earlier draws are handed out at any time,
# because that is post-processing; earlier charges stay charged.


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a session draws."""

    requirement: Requirement  # Which approvals count
    needs_approval: bool  # Whether the session runs approved plans only


def require_drawing(chain: Chain, budget: str, stream: OpenedStream, terms: Terms) -> None:
    """Refuse to draw for a stream that was stopped.

    A stream that was paid for under an approval draws while one of its plan counts, also in
    sessions that need none. It does not matter if the amount of the budget has changed since, or if
    all runs are used: the charge was made. Raises `BudgetExceeded` when the stream or its budget
    was closed. Raises `PlanMismatch` when no approval counts. Raises `LedgerError` when the ledger
    was moved.
    """
    require_here(chain.moved)
    require_open(chain.account(budget))
    end = stream.closed
    if end is not None:
        raise BudgetExceeded(
            f"the stream {stream.name!r} was closed on {end.time[:10]} by {visible(end.who or '')}"
            f": {visible(end.why or '')}",
            remedy=(
                "release earlier periods again, which costs nothing",
                "open another stream: session.stream(..., name=...), which is charged",
            ),
        )
    if not terms.needs_approval and stream.approval is None:
        return
    plan, approvals = chain.streams.plan_of(stream), chain.approvals.get(budget, [])
    terms.requirement.require_standing(approvals, plan, chain.identities)


def close_stream(store: Store, budget: str, name: str, by: str, reason: str) -> OpenedStream:
    """End a stream of a budget: it draws nothing more. There is no way back. Raises `LedgerError`
    when the budget or stream does not exist, or this cannot be recorded. Raises `BudgetExceeded`
    when it or its budget was closed before.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def closing(chain: Chain) -> Draft:
        require_open(chain.account(budget))
        stream = stream_of(chain, budget, name)
        if stream.closed is not None:
            raise BudgetExceeded(
                f"the stream {name!r} was closed on {stream.closed.time[:10]} already",
                remedy="leave it closed: it releases nothing new",
            )
        return Draft(budget, "ended", stream.number, who=who, why=why)

    store.append(closing)
    return stream_of(store.read(), budget, name)


def stream_of(chain: Chain, budget: str, name: str) -> OpenedStream:
    """A stream of a budget by its name. Raises `LedgerError` when the stream does not exist."""
    stream = chain.streams.find(budget, name)
    if stream is None:
        known = ", ".join(repr(one.name) for one in chain.streams.of(budget))
        raise LedgerError(
            f"the budget {budget!r} has no stream {name!r}",
            remedy=f"write one of its streams: {known}"
            if known
            else "open one: session.stream(...)",
        )
    return stream


STAYS = "a ledger keeps the streams that were opened"


def digest_of(content: bytes) -> str:
    """The digest that identifies a content."""
    return hashlib.sha256(content).hexdigest()


class StreamBook:
    """The streams of one budget of a store."""

    def __init__(self, store: Store, budget: str) -> None:
        self._store = store
        self._budget = budget

    @property
    def contents(self) -> Contents:
        """Where rows are kept."""
        return self._store.contents

    def find(self, name: str) -> OpenedStream | None:
        """The current state of a stream, by its name."""
        return self._store.read().streams.find(self._budget, name)

    def require_drawing(self, stream: OpenedStream, terms: Terms) -> None:
        """Refuse to draw for a stream that was stopped. Raises `BudgetExceeded` when it or its
        budget was closed, and `PlanMismatch` when no approval counts that it needs.
        """
        require_drawing(self._store.read(), self._budget, stream, terms)

    def seal(self, stream: OpenedStream, values: list[object]) -> str:
        """The seal of rows of a stream, under the key of the ledger if it has one."""
        return self._store.seal.rows([self._store.hash_of(stream.number), *values])

    def add(self, stream: OpenedStream, batch: Batch, terms: Terms) -> None:
        """Record rows whose content is kept; nothing happens where they are recorded already.
        Raises `LedgerError` when others were recorded in their place, or it cannot be written.
        Raises `BudgetExceeded, PlanMismatch` when the stream was stopped meanwhile.
        """

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
        """A stream, that reads columns of these types from now on where it had none. Raises
        `LedgerError` when it reads columns of other types, or it cannot be written.
        """

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
