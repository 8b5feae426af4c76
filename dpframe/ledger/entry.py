"""One spend of a budget, as its ledger keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dpframe.core.budget import Budget
from dpframe.ledger.caller import NOBODY, Caller
from dpframe.ledger.scopes import Scope

Status = Literal["charged", "released", "failed"]
Settled = Literal["released", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend.

    Parameters
    ----------
    number
        The number of the charge in its ledger; numbers rise, but need not be consecutive.
    time
        When it was charged, UTC.
    fingerprint
        The fingerprint of the plan.
    cost
        What the whole budget was charged.
    status
        ``"charged"`` until the release is done, then ``"released"`` or ``"failed"``; a failure
        keeps its charge.
    caller
        Who was charged.
    scope
        Where it falls; None for all of the budget's frames.
    amounts
        For an entry with a scope: the charge of the whole, then of each level below it, and last
        the cost of the plan.
    """

    number: int
    time: datetime
    fingerprint: str
    cost: Budget
    status: Status
    caller: Caller = NOBODY
    scope: Scope | None = None
    amounts: tuple[Budget, ...] = ()
