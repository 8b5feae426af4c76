"""What people read of a ledger, and the one thing they may add: a grant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from dpframe.core.budget import ApproxDP, Budget, PureDP, amount
from dpframe.core.exact import Number
from dpframe.errors import InvalidBudget
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.approvals import Approval, signed
from dpframe.ledger.chain import Account, Chain
from dpframe.ledger.record import COLUMNS, Draft, Record, plain_text
from dpframe.ledger.signatures import ApprovalKey
from dpframe.ledger.store import Store


def show(store: Store, name: str | None) -> Iterator[str]:
    """Budgets, grants, approvals and charges, a line each.

    Raises
    ------
    LedgerError
        When the ledger does not verify, or has no budget of that name.
    """
    chain, key = store.read(), ApprovalKey.from_environment()
    if not chain.accounts and not chain.approvals:
        yield "no budgets"
    for budget, approvals in _unopened(chain, name).items():
        yield f"{budget}: not opened yet"
        yield from _approved(approvals, key)
    for account in _chosen(chain, name):
        yield f"{account.name}: {_measure(account)}, unit: {account.unit or 'none yet'}"
        yield f"  budget     {_whole(account)}"
        for grant in account.grants:
            yield f"    {_granted(grant)}"
        yield from _approved(chain.approvals.get(account.name, []), key)
        yield f"  spent      {exact_words(account.spent)}{_ends(account)}"
        yield f"  remaining  {exact_words(account.remaining)}"
        for entry in account.entries.values():
            time = f"{entry.time:%Y-%m-%d %H:%M:%S}"
            cost = exact_words(entry.cost)
            yield f"    {time}  {entry.status:8}  {cost}  plan {entry.fingerprint[:16]}"


def _approved(approvals: list[Approval], key: ApprovalKey | None) -> Iterator[str]:
    for approval in approvals:
        yield (
            f"    {approval.time:%Y-%m-%d %H:%M:%S}  approved  plan {approval.fingerprint[:16]}  "
            f"{signed(approval, key)}, by {approval.by}"
        )


def record(store: Store, name: str | None) -> dict[str, Any]:
    """What `show` shows, for programs; amounts are exact, as text such as ``"3/10"``.

    Raises
    ------
    LedgerError
        When the ledger does not verify, or has no budget of that name.
    """
    chain, key = store.read(), ApprovalKey.from_environment()
    unopened = {
        budget: {"opened": False, "approvals": _approvals(approvals, key)}
        for budget, approvals in _unopened(chain, name).items()
    }
    return unopened | {
        account.name: {
            "opened": True,
            "unit": account.unit,
            "budget": _exact(account.within or account.budget),
            "spent": _exact(account.spent),
            "remaining": _exact(account.remaining),
            "grants": [_grant(record) for record in account.grants],
            "approvals": _approvals(chain.approvals.get(account.name, []), key),
            "charges": [
                {
                    "time": entry.time.isoformat(),
                    "status": entry.status,
                    "fingerprint": entry.fingerprint,
                    "cost": _exact(entry.cost),
                }
                for entry in account.entries.values()
            ],
        }
        for account in _chosen(chain, name)
    }


def _unopened(chain: Chain, name: str | None) -> dict[str, list[Approval]]:
    """Approvals for budgets that no session has opened yet."""
    return {
        budget: approvals
        for budget, approvals in chain.approvals.items()
        if name in (None, budget) and budget not in chain.accounts
    }


def _approvals(approvals: list[Approval], key: ApprovalKey | None) -> list[dict[str, str]]:
    return [
        {
            "time": approval.time.isoformat(),
            "fingerprint": approval.fingerprint,
            "by": approval.by,
            "signature": signed(approval, key),
        }
        for approval in approvals
    ]


def _grant(record: Record) -> dict[str, Any]:
    found = {"time": record.time, "act": record.act, "amount": _exact(record.amount)}
    return found if record.who is None else found | {"by": record.who, "reason": record.why}


def _exact(budget: Budget) -> dict[str, str]:
    return {
        "measure": budget.measure,
        budget.currency: str(budget.main),
        "delta": str(budget.slack),
    }


def _measure(account: Account) -> str:
    if account.within is None:
        return account.budget.measure
    return f"{account.within.measure} through {account.budget.measure}"


def _whole(account: Account) -> str:
    """The budget as it was given, with the rho that it amounts to where rho is counted."""
    counted = exact_words(account.budget)
    return counted if account.within is None else f"{exact_words(account.within)}: {counted}"


def _chosen(chain: Chain, name: str | None) -> list[Account]:
    if name is None:
        return list(chain.accounts.values())
    return [] if _unopened(chain, name) else [chain.account(name)]


def _granted(record: Record) -> str:
    time, amount = record.time[:19].replace("T", " "), exact_words(record.amount)
    if record.act == "opened":
        given = "" if record.within is None else f"{exact_words(record.within)}: "
        return f"{time}  opened    {given}{amount}"
    now = "" if record.within is None else f" (now {exact_words(record.within)})"
    return f"{time}  granted   {amount}{now} by {record.who}: {record.why}"


def _ends(account: Account) -> str:
    if not account.entries:
        return ""
    counted = Counter(entry.status for entry in account.entries.values())
    charges = f"{len(account.entries)} charge{'s' if len(account.entries) > 1 else ''}"
    return f" in {charges}: " + ", ".join(f"{n} {status}" for status, n in counted.items())


def verify(store: Store, name: str | None) -> Iterator[str]:
    """That the ledger verifies, and its head, which can be kept elsewhere and compared.

    Raises
    ------
    LedgerError
        When it does not, or has no budget of that name.
    """
    head = store.verify()
    budgets = len(_chosen(store.read(), name))
    keyed = "keyed" if store.is_keyed else "not keyed: whoever can write to it can rewrite it"
    yield f"verified: {head.seq} records of {budgets} budget{'s' if budgets != 1 else ''}, {keyed}"
    yield f"head: {head.seq} {head.hash}"


def export(store: Store, name: str | None) -> Iterator[str]:
    """Every record as stored, one JSON object a line; then what `verify` raises, if anything."""
    for row in store.rows():
        record = dict(zip(COLUMNS, row, strict=True))
        if name in (None, record["name"]):
            yield json.dumps(record, default=repr)
    _chosen(store.read(), name)


def grant(
    store: Store,
    name: str,
    amounts: dict[str, Number],
    who: str,
    why: str,
    rho_within: Callable[[ApproxDP], Fraction],
) -> Iterator[str]:
    """Raise a budget, on record.

    A budget that was opened with (epsilon, delta) and is counted in rho is raised in epsilon and
    delta. The record has the sum of both, and how much more rho that implies than there was.

    Parameters
    ----------
    store, name
        The budget.
    amounts
        What is added, by ``epsilon``, ``delta``, ``rho``.
    who, why
        Recorded with it.
    rho_within
        The rho that implies an (epsilon, delta).

    Raises
    ------
    InvalidBudget
        When nothing is added, or in another measure.
    LedgerError
        When there is no such budget, or it cannot be recorded.
    """

    def granting(chain: Chain) -> Draft:
        account = chain.account(name)
        more = _more(account.within or account.budget, amounts)
        now = (account.within or account.budget) + more  # a delta of 1 or more is refused here
        by, reason = plain_text(who, "--by"), plain_text(why, "--reason")
        if account.within is None:
            return Draft(name, "granted", amount=more, who=by, why=reason)
        assert isinstance(now, ApproxDP)
        rho = account.budget.of(rho_within(now)) - account.budget
        if rho.is_zero:
            raise InvalidBudget("the grant is too small to add any rho", remedy="grant more")
        return Draft(name, "granted", amount=rho, who=by, why=reason, within=now)

    store.append(granting)
    account = store.read().account(name)
    yield f"{name}: {_whole(account)}, of which {exact_words(account.remaining)} remains"


def _more(budget: Budget, amounts: dict[str, Number]) -> Budget:
    known = [budget.currency] if isinstance(budget, PureDP) else [budget.currency, "delta"]
    for given in amounts:
        if given not in known:
            raise InvalidBudget(
                f"the budget is in {budget.measure}, which has no {given}",
                where=f"--{given}",
                remedy=f"grant {' and '.join('--' + k for k in known)}",
            )
    main = amount(amounts.get(budget.currency, 0), budget.currency)
    made = budget.of(main, amount(amounts.get("delta", 0), "delta"))
    if made.is_zero:
        raise InvalidBudget("the grant is empty", remedy=f"say --{budget.currency} MORE")
    return made
