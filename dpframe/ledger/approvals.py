"""Approvals of plans, as a ledger keeps them: who approved which fingerprint, and the plan itself.

An approval is a record of the ledger's chain like any other, so it cannot be added, altered or
dropped without notice by whoever could not do that to a charge. What it approves is kept with it,
so that another plan can be compared with it later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dpframe.ledger.record import Draft, Record, plain_text
from dpframe.ledger.signatures import ApprovalKey

if TYPE_CHECKING:
    from dpframe.ledger.store import Store

_FIELDS = {"plan", "signature"}


@dataclass(frozen=True, slots=True)
class Approval:
    """One plan that somebody approved.

    Parameters
    ----------
    name
        Of the budget that the plan may be charged to.
    fingerprint
        Of the plan.
    by
        Who approved it.
    time
        When, UTC.
    document
        The plan as JSON.
    signature
        Of the name, the fingerprint and who approved it; None where nobody signed.
    """

    name: str
    fingerprint: str
    by: str
    time: datetime
    document: str
    signature: str | None


def read_approval(record: Record) -> Approval:
    """The approval that a record holds.

    Raises
    ------
    ValueError, TypeError
        When it holds none.
    """
    found = json.loads(record.why or "")
    if not isinstance(found, dict) or found.keys() != _FIELDS or not record.fingerprint:
        raise ValueError
    document, signature = found["plan"], found["signature"]
    if not isinstance(document, str) or not isinstance(signature, str | None) or not record.who:
        raise TypeError
    time = datetime.fromisoformat(record.time)
    return Approval(record.name, record.fingerprint, record.who, time, document, signature)


def approve(
    store: Store, name: str, fingerprint: str, document: str, by: str, key: ApprovalKey | None
) -> None:
    """Record an approval, signed where there is a key.

    Raises
    ------
    LedgerError
        When it cannot be recorded, or the key can only verify.
    """
    named, who = plain_text(name, "name"), plain_text(by, "--by")
    signature = None if key is None else key.sign(named, fingerprint, who)
    why = json.dumps({"plan": document, "signature": signature})
    draft = Draft(named, "approved", fingerprint=fingerprint, who=who, why=why)
    store.append(lambda _: draft)


def valid(approvals: tuple[Approval, ...], key: ApprovalKey | None) -> Iterator[Approval]:
    """Those that count: with a key only what it verifies."""
    for approval in approvals:
        if key is None or key.verifies(
            approval.signature, approval.name, approval.fingerprint, approval.by
        ):
            yield approval
