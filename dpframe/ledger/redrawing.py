"""Streams of a ledger that was accepted without its head file: they are paid for once more before
they draw anything new.

A copy of a ledger does not know what was drawn since it was made. If streams continued from the
copy, rows that were drawn and handed out before would be drawn again with other noise, and two
draws of a row reveal more than one.

Guarantee
---------
A stream may be charged k times: once when it is opened, and once more each time its ledger is
accepted and it is to draw again. Then k times its cost covers everything that was drawn and
handed out between.

Proof
-----
Between two of these records each row is drawn once at most, as everywhere. So all that was ever
drawn is k sets of rows, each of them a part of those of one whole stream, whose nights are those of
the frame as it was read then. Each set costs no more than the stream, and they compose.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.core.budget import Budget
from dpframe.errors import LedgerError
from dpframe.ledger.account import Account
from dpframe.ledger.budgets import require_open
from dpframe.ledger.caller import this_caller
from dpframe.ledger.chain import Chain
from dpframe.ledger.charges import Charge
from dpframe.ledger.drawing import stream_of
from dpframe.ledger.in_scope import required
from dpframe.ledger.record import Draft, short_text
from dpframe.ledger.store import Store
from dpframe.ledger.streams import OpenedStream


@dataclass(frozen=True, slots=True)
class Redrawing:
    """A stream that draws nothing new.

    Parameters
    ----------
    budget
        Whose it is.
    stream
        As the ledger knows it.
    cost
        What it was charged, and would be once more.
    """

    budget: str
    stream: OpenedStream
    cost: Budget


def to_redraw(store: Store, budget: str, name: str) -> Redrawing:
    """What paying once more for a stream comes to; nothing is charged.

    Raises
    ------
    LedgerError
        When the stream does not exist, or draws as usual.
    """
    chain = store.read(whole=True)
    account = chain.account(budget)
    found = _doubted(chain, budget, name)
    return Redrawing(budget, found, account.entries[found.number + 1].cost)


def redraw(store: Store, one: Redrawing, by: str, reason: str) -> Account:
    """Pay for a stream once more, so that it draws again from where the ledger stands.

    Raises
    ------
    BudgetExceeded
        When its cost does not fit, or the budget was closed.
    LedgerError
        When it draws already, or this cannot be recorded.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")
    caller = this_caller()

    def paying(chain: Chain) -> list[Draft]:
        account = chain.account(one.budget)
        require_open(account)
        found = _doubted(chain, one.budget, one.stream.name)
        plan = chain.streams.plan_of(found)
        left, within = account.remaining, account.within
        required(None, account.scopes, one.cost, left, account.budget, within)
        text = Charge(caller, one.cost).text()
        draft = Draft(one.budget, "redrawn", found.number, plan, who=who, why=why)
        paid = Draft(one.budget, "charged", None, plan, account.unit, one.cost, caller.user, text)
        return [draft, paid]

    number = store.append(paying)
    store.append(lambda chain: Draft(one.budget, "released", refers=number))
    return store.read().account(one.budget)


def _doubted(chain: Chain, budget: str, name: str) -> OpenedStream:
    stream = stream_of(chain, budget, name)
    if stream.closed is not None:
        raise LedgerError(
            f"the stream {name!r} was closed on {stream.closed.time[:10]}",
            remedy="leave it closed: it releases nothing new",
        )
    if stream.doubted is None:
        raise LedgerError(
            f"the stream {name!r} needs no second payment: all that it released is on record",
            remedy="release its periods again, which costs nothing",
        )
    return stream
