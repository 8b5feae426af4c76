"""What reviewers do: approve plans, and take approvals back, on record."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from dpframe.errors import LedgerError
from dpframe.ledger.approvals import Approval, Requirement
from dpframe.ledger.bound import Bound
from dpframe.ledger.ranges import Allowed, allowed_fields
from dpframe.ledger.record import Draft, plain_text, short_text
from dpframe.ledger.signatures import KEY_VARIABLE, ApprovalKey

if TYPE_CHECKING:
    from dpframe.ledger.chain import Chain
    from dpframe.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Terms:
    """How often and until when a plan may run.

    Parameters
    ----------
    runs
        How often; None for as often as the budget allows.
    until
        The last day, UTC; None for no end.
    """

    runs: int | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise LedgerError(
                "a plan must be approved for at least one run",
                where=f"--runs {self.runs}",
                remedy=(
                    "write for example --runs 1",
                    "leave --runs out for as many as the budget allows",
                ),
            )


NO_LIMITS = Terms()


def approve(
    store: Store,
    name: str,
    fingerprint: str,
    document: str,
    by: str,
    key: ApprovalKey | None,
    terms: Terms = NO_LIMITS,
    allowed: Allowed = (),
) -> None:
    """Record an approval for the current budget, signed if there is a key. If `allowed` is given
    it covers a range of parameters, and the fingerprint is that of the template.

    Raises
    ------
    LedgerError
        When it cannot be recorded, the budget does not exist, `by` is not on one line, or the key
        can only verify.
    """
    named, who = plain_text(name, "name"), approver(by, key)

    def approving(chain: Chain) -> Draft:
        bound = Bound.of(chain.account(named))
        plan = _Approved(named, fingerprint, document, allowed)
        return _drafted(chain, plan, who, key, terms, bound)

    store.append(approving)


def renewals(
    chain: Chain, bound: Bound, name: str, by: str, key: ApprovalKey | None
) -> list[Draft]:
    """The approvals of a budget that count now, again for another amount, with the runs that are
    left. They are recorded together with what changes the amount: between the two, what is left
    could be used once more, or renewed twice.

    Raises
    ------
    LedgerError
        When the budget does not exist, or they are signed and the key cannot sign.
    """
    who, needed = approver(by, key), Requirement(key)
    before = Bound.of(chain.account(name))
    found = [
        a
        for a in chain.approvals.get(name, ())
        if needed.why_not(a, chain.identities, before) is None
    ]
    if key is None and any(a.signature is not None for a in found):
        raise LedgerError(
            "the approvals of this budget are signed, and the renewed ones would not be",
            where="--keep-approvals",
            remedy=f"set {KEY_VARIABLE} to the key that signs them",
        )
    return [
        _drafted(
            chain,
            _Approved(name, a.fingerprint, a.document, a.allowed),
            who,
            key,
            Terms(a.left, a.until),
            bound,
        )
        for a in found
    ]


@dataclass(frozen=True, slots=True)
class _Approved:
    """What is approved: for the budget of a name, a plan with its document, or a range of plans."""

    name: str
    fingerprint: str
    document: str
    allowed: Allowed


def _drafted(
    chain: Chain,
    plan: _Approved,
    who: str,
    key: ApprovalKey | None,
    terms: Terms,
    bound: Bound,
) -> Draft:
    approval = Approval(
        plan.name,
        plan.fingerprint,
        who,
        datetime.now(UTC),
        plan.document,
        None,
        uuid.uuid4().hex,
        chain.identities[-1],
        bound,
        terms.runs,
        terms.until,
        allowed=plan.allowed,
    )
    signature = None if key is None else key.sign(*approval.signed_fields())
    why = _text(approval, signature)
    return Draft(plan.name, "approved", fingerprint=plan.fingerprint, who=who, why=why)


def approver(by: object, key: ApprovalKey | None) -> str:
    """Who approves.

    Raises
    ------
    LedgerError
        When that is not on one line, or the key can only verify.
    """
    who = short_text(by, "--by")
    if not who.isprintable():  # it is shown in lines of its own
        raise LedgerError(
            f"--by must be text on one line, not {who!r}",
            where="--by",
            remedy='write for example --by "Ada Lovelace"',
        )
    if key is not None:
        key.sign()  # nothing: raises where it cannot
    return who


def _text(made: Approval, signature: str | None) -> str:
    assert made.bound is not None
    fields: dict[str, object] = {
        "plan": made.document,
        "signature": signature,
        "id": made.id,
        "ledger": made.ledger,
        "budget": made.bound.fields(),
        "runs": made.runs,
        "until": None if made.until is None else made.until.isoformat(),
    }
    if made.allowed:
        fields["parameters"] = allowed_fields(made.allowed)
    return json.dumps(fields)


def revoke(store: Store, name: str, fingerprint: str, by: str, reason: str | None) -> str:
    """Take back all approvals of a plan that were recorded until now.

    Parameters
    ----------
    store, name
        The budget.
    fingerprint
        The fingerprint of the plan; its first 8 digits are enough if they are unique.
    by, reason
        Recorded with it.

    Returns
    -------
    str
        The whole fingerprint.

    Raises
    ------
    LedgerError
        When no approved plan matches, or several do.
    """
    who = short_text(by, "--by")
    why = None if reason is None else short_text(reason, "--reason")
    found: list[str] = []

    def revoking(chain: Chain) -> Draft:
        valid = {a.fingerprint for a in chain.approvals.get(name, ()) if a.revoked is None}
        meant = [f for f in valid if f.startswith(fingerprint) and len(fingerprint) >= 8]
        if len(meant) != 1:
            which = "several plans whose fingerprint begins" if meant else "no approved plan"
            raise LedgerError(
                f"the budget {name!r} has {which} with {fingerprint!r}",
                where="--revoke",
                remedy="run `dpframe ledger show`, which lists the approved plans",
            )
        found.append(meant[0])
        return Draft(name, "revoked", fingerprint=meant[0], who=who, why=why)

    store.append(revoking)
    return found[-1]
