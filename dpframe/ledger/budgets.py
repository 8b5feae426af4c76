"""What owners do with budgets: create them, raise them and end them, on record."""

from __future__ import annotations

from collections.abc import Callable

from dpframe.core.budget import ApproxDP, Budget, PureDP, amount
from dpframe.core.exact import Number
from dpframe.core.visible import visible
from dpframe.core.windows import Every
from dpframe.errors import BudgetExceeded, InvalidBudget, LedgerError
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.bound import Bound
from dpframe.ledger.chain import Chain
from dpframe.ledger.names import require_new
from dpframe.ledger.opening import NewBudget, tell
from dpframe.ledger.record import Draft, short_text
from dpframe.ledger.scopes import per_text
from dpframe.ledger.store import Store


def open_budget(store: Store, draft: Draft, *, again: bool = True) -> None:
    """Create a budget, and say so; nothing happens if it is there.

    Parameters
    ----------
    store
        Where.
    draft
        The record that opens it.
    again
        Whether it may be there.

    Raises
    ------
    LedgerError
        When its name looks like that of another, or it is there and may not be.
    """
    made: list[NewBudget] = []

    def opening(chain: Chain) -> Draft | None:
        if draft.name in chain.accounts:
            if again:  # another process was faster
                return None
            raise _there(chain.accounts[draft.name])
        require_new(draft.name, [*chain.accounts, *chain.approvals])
        others = tuple(chain.accounts)
        made.append(
            NewBudget(draft.name, _amount_words(draft), store.where, others, not chain.length)
        )
        return draft

    store.append(opening)
    for new in made:
        tell(new)


def _amount_words(draft: Draft) -> str:
    assert draft.amount is not None
    return exact_words(draft.within or draft.amount)


def create(
    store: Store,
    name: str,
    budget: Budget,
    within: ApproxDP | None,
    unit: str | None,
    by: str,
    per: Every | None = None,
) -> Account:
    """Create a budget, so that people who run jobs do not decide about its amount.

    Parameters
    ----------
    store, name
        The ledger and the name of the budget.
    budget, within
        As for `StoredLedger`.
    unit
        The kind of its privacy unit; None leaves that to the first charge.
    by
        Who creates it.
    per
        The windows of time that each have this budget.

    Raises
    ------
    LedgerError
        When there is one of that name, or of one that looks like it.
    """
    who = short_text(by, "--by")
    why = per_text(per)
    draft = Draft(name, "opened", unit=unit, amount=budget, who=who, why=why, within=within)
    open_budget(store, draft, again=False)
    return store.read().account(name)


def _there(account: Account) -> LedgerError:
    return LedgerError(
        f"the ledger has the budget {account.name!r} already: it was opened with "
        f"{exact_words(account.totals[0])} on {account.grants[0].time[:10]}",
        remedy=("raise it with `dpframe ledger grant`", "choose another name"),
    )


def close(store: Store, name: str, by: str, reason: str) -> Account:
    """End a budget: nothing is charged to it any more. There is no way back.

    Raises
    ------
    LedgerError
        When the budget does not exist, or this cannot be recorded.
    BudgetExceeded
        When it was closed before.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def closing(chain: Chain) -> Draft:
        require_open(chain.account(name))
        return Draft(name, "closed", who=who, why=why)

    store.append(closing)
    return store.read().account(name)


def require_open(account: Account) -> None:
    """Refuse a budget that was closed.

    Raises
    ------
    BudgetExceeded
        With who closed it, when and why.
    """
    end = account.closed
    if end is not None:
        raise BudgetExceeded(
            f"the budget {account.name!r} was closed on {end.time[:10]} by {visible(end.who or '')}"
            f": {visible(end.why or '')}",
            remedy="use another budget: name=...",
        )


def grant(
    store: Store,
    name: str,
    amounts: dict[str, Number],
    who: str,
    why: str,
    counted_in: Callable[[type[Budget], ApproxDP], Budget],
    renewing: Callable[[Chain, Bound], list[Draft]] | None = None,
) -> Account:
    """Raise a budget, on record.

    A budget that was opened with (epsilon, delta) and is counted in rho or mu squared is raised in
    epsilon and delta. The record has the sum of both, and how much more that implies.

    Parameters
    ----------
    store, name
        The budget.
    amounts
        What is added, by ``epsilon``, ``delta``, ``rho``.
    who, why
        Recorded with it.
    counted_in
        An (epsilon, delta) in the measure that the budget is counted in.
    renewing
        What is recorded with it, of the budget as it was and the amount that it then has.

    Raises
    ------
    InvalidBudget
        When nothing is added, or in another measure.
    LedgerError
        When the budget does not exist, or this cannot be recorded.
    BudgetExceeded
        When it was closed.
    """

    def granting(chain: Chain) -> list[Draft]:
        account = chain.account(name)
        require_open(account)
        more = _more(account.within or account.budget, amounts)
        now = (account.within or account.budget) + more  # a delta of 1 or more is refused here
        by, reason = short_text(who, "--by"), short_text(why, "--reason")
        added, within = _added(account, more, now, counted_in)
        kept = [] if renewing is None else renewing(chain, Bound(now, account.budget.measure))
        return [Draft(name, "granted", amount=added, who=by, why=reason, within=within), *kept]

    store.append(granting)
    return store.read().account(name)


def _added(
    account: Account,
    more: Budget,
    now: Budget,
    counted_in: Callable[[type[Budget], ApproxDP], Budget],
) -> tuple[Budget, ApproxDP | None]:
    """What a grant adds in the measure that the budget is counted in, and the (epsilon, delta) that
    it then stands for where that is another one.
    """
    if account.within is None:
        return more, None
    assert isinstance(now, ApproxDP)
    added = counted_in(type(account.budget), now) - account.budget
    if added.is_zero:
        raise InvalidBudget(
            f"the grant is too small to add any {added.currency}", remedy="grant a larger amount"
        )
    return added, now


def _more(budget: Budget, amounts: dict[str, Number]) -> Budget:
    known = [budget.currency] if isinstance(budget, PureDP) else [budget.currency, "delta"]
    for given in amounts:
        if given not in known:
            raise InvalidBudget(
                f"the budget counts in {budget.measure}, which has no {given}",
                where=f"--{given}",
                remedy=f"grant {' and '.join(f'--{k} MORE' for k in known)}",
            )
    main = amount(amounts.get(budget.currency, 0), budget.currency)
    result = budget.of(main, amount(amounts.get("delta", 0), "delta"))
    if result.is_zero:
        raise InvalidBudget("the grant is empty", remedy=f"write --{budget.currency} MORE")
    return result
