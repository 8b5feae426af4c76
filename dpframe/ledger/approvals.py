"""Approvals of plans, as a ledger keeps them: who approved which fingerprint, and the plan itself.

An approval is a record of the ledger's chain like any other, so it cannot be added, altered or
dropped without notice by whoever could not do that to a charge. What it approves is kept with it,
so that another plan can be compared with it later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from dpframe.errors import LedgerError
from dpframe.ledger.names import require_new
from dpframe.ledger.record import Draft, Record, plain_text
from dpframe.ledger.signatures import ApprovalKey

if TYPE_CHECKING:
    from dpframe.ledger.chain import Chain
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
        When it cannot be recorded, the name is not on one line, or the key can only verify.
    """
    named, who = plain_text(name, "name"), plain_text(by, "--by")
    if not who.isprintable():  # it is shown in lines of its own
        raise LedgerError(f"--by must be text on one line, not {who!r}", where="--by")
    signature = None if key is None else key.sign(named, fingerprint, who)
    why = json.dumps({"plan": document, "signature": signature})
    draft = Draft(named, "approved", fingerprint=fingerprint, who=who, why=why)

    def approving(chain: Chain) -> Draft:
        if named not in chain.accounts:
            require_new(named, [*chain.accounts, *chain.approvals])
        return draft

    store.append(approving)


Signed = Literal["unsigned", "signed, not checked", "signed", "signature is wrong"]


def signed(approval: Approval, key: ApprovalKey | None) -> Signed:
    """What can be said of its signature with the key that there is."""
    if approval.signature is None:
        return "unsigned"
    if key is None:
        return "signed, not checked"
    right = key.verifies(approval.signature, approval.name, approval.fingerprint, approval.by)
    return "signed" if right else "signature is wrong"


def valid(approvals: Iterable[Approval], key: ApprovalKey | None) -> Iterator[Approval]:
    """Those that count: with a key only what it verifies."""
    return (a for a in approvals if key is None or signed(a, key) == "signed")
