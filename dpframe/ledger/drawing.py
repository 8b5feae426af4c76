"""Whether a stream may draw more: not once it or its budget was closed, nor while no approval
counts that it needs.

A stream is charged once and draws for as long as it has periods. A refused charge alone is not
enough to stop a stream. So everything that stops charges also stops draws, before data are read
and once more in the transaction that records the draws. Earlier draws are handed out at any time,
because that is post-processing; earlier charges stay charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpframe.core.visible import visible
from dpframe.errors import BudgetExceeded, LedgerError
from dpframe.ledger.account import Account
from dpframe.ledger.approvals import Approval, Requirement
from dpframe.ledger.budgets import require_open
from dpframe.ledger.record import Draft, Record, short_text
from dpframe.ledger.standing import require_here
from dpframe.ledger.store import Store
from dpframe.ledger.streams import OpenedStream, Streams


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a session draws.

    Parameters
    ----------
    requirement
        Which approvals count.
    needs_approval
        Whether the session runs approved plans only.
    """

    requirement: Requirement
    needs_approval: bool


class HasStreams(Protocol):
    """The parts of a chain that streams need."""

    streams: Streams
    approvals: dict[str, list[Approval]]
    identities: list[str]
    moved: Record | None

    def account(self, name: str) -> Account:
        """A budget by name."""
        ...


def require_drawing(chain: HasStreams, budget: str, stream: OpenedStream, terms: Terms) -> None:
    """Refuse to draw for a stream that was stopped.

    A stream that was paid for under an approval draws while one of its plan counts, also in
    sessions that need none. It does not matter if the amount of the budget has changed since, or
    if all runs are used: the charge was made.

    Raises
    ------
    BudgetExceeded
        When the stream or its budget was closed.
    PlanMismatch
        When no approval counts.
    LedgerError
        When the ledger was moved.
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
    """End a stream of a budget: it draws nothing more. There is no way back.

    Raises
    ------
    LedgerError
        When the budget or stream does not exist, or this cannot be recorded.
    BudgetExceeded
        When it or its budget was closed before.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def closing(chain: HasStreams) -> Draft:
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


def stream_of(chain: HasStreams, budget: str, name: str) -> OpenedStream:
    """A stream of a budget by its name.

    Raises
    ------
    LedgerError
        When the stream does not exist.
    """
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
