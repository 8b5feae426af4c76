"""One spend of a budget, as its ledger keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dpframe.core.budget import Budget
from dpframe.ledger.caller import NOBODY, Caller

Status = Literal["charged", "released", "failed"]
Settled = Literal["released", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend.

    Parameters
    ----------
    number
        Of the charge in its ledger; they rise, and need not be consecutive.
    time
        When it was charged, UTC.
    fingerprint
        Of the plan.
    cost
        What was charged.
    status
        ``"charged"`` until the release is done, then ``"released"`` or ``"failed"``; a failure
        keeps its charge.
    caller
        Who was charged.
    """

    number: int
    time: datetime
    fingerprint: str
    cost: Budget
    status: Status
    caller: Caller = NOBODY
