"""What owners do with budgets, and which of them may be opened."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dpframe.core.budget import ApproxDP, Budget, PureDP, amount
from dpframe.core.exact import Number
from dpframe.core.tree import visible
from dpframe.core.windows import Every
from dpframe.errors import BudgetExceeded, InvalidBudget, LedgerError, NoBudget
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.approvals import Bound
from dpframe.ledger.chain import Chain
from dpframe.ledger.record import Draft, name_list, require_new, short_text
from dpframe.ledger.scopes import per_text
from dpframe.ledger.store import Store

# What may be opened: which ledger, which budget, and whether a new one.
#
# The person who runs a job decides about these, and the job opens its session. So they are set
# around the job, for the whole process: a job must not get round them in another thread. A job in
# Python can, if it wants to, since it is code; what they stop is a mistake, and a job in TOML.

New: TypeAlias = Literal["open", "stated", "refuse", "plan"]
"""What to do if a session names a budget that does not exist. ``open`` creates it, ``stated``
creates it only if the session requests it, ``refuse`` refuses the session, and ``plan`` allows
only plans.
"""

LOG = logging.getLogger("dpframe")


@dataclass(frozen=True, slots=True)
class NewBudget:
    """A budget that was just created."""

    name: str  # The name of the budget
    amount: str  # In words
    where: str  # The ledger's place, in full
    others: tuple[str, ...]  # Names that the ledger had before
    new_ledger: bool  # Whether there was no ledger at that place

    def words(self) -> str:
        """That it is new, and where: a wrong name or path shows."""
        if self.new_ledger:
            return f"new budget {self.name!r} of {self.amount} in the new ledger {self.where!r}"
        known = name_list(self.others) or "no other"
        return f"new budget {self.name!r} of {self.amount} in {self.where!r}, which has {known}"


@dataclass(frozen=True, slots=True)
class _Allowed:
    ledger: str | os.PathLike[str] | None = None
    name: str | None = None
    new: New = "open"
    tell: Callable[[NewBudget], None] | None = None
    tell_absent: Callable[[NoBudget], None] | None = None
    postponed: list[NoBudget] | None = None


_allowed = _Allowed()


@contextmanager
def only(
    # `ledger`, `name`: the only ones that may be used; None for any.
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    *,
    new: New = "open",  # What happens to a budget that does not exist
    tell: Callable[[NewBudget], None] | None = None,  # Called with each budget that is created
    # Called with the refusal of each budget that does not exist and is only planned for.
    tell_absent: Callable[[NoBudget], None] | None = None,
) -> Iterator[None]:
    """Within this, sessions use no other ledger or budget, and open a new one only if they may."""
    with _allowing(_Allowed(ledger, name, new, tell, tell_absent)):
        yield


@contextmanager
def postpone() -> Iterator[list[NoBudget]]:
    """Within this, sessions that would open a budget only plan; the list has the budgets that do
    not exist.

    So a job that turns out to make no sense has opened nothing.
    """
    absent: list[NoBudget] = []
    with _allowing(replace(_allowed, postponed=absent)):
        yield absent


@contextmanager
def _allowing(allowed: _Allowed) -> Iterator[None]:
    global _allowed
    before, _allowed = _allowed, allowed
    try:
        yield
    finally:
        _allowed = before


def new_budget(*, must_exist: bool, create: bool) -> New:
    """What happens here to a budget that does not exist, for a session that says so of its own:
    never ``"stated"``.
    """
    if must_exist or _allowed.new == "refuse" or (_allowed.new == "stated" and not create):
        return "refuse"
    return "plan" if _allowed.new == "plan" or _allowed.postponed is not None else "open"


def create_would_open(*, must_exist: bool) -> bool:
    """Whether ``--create`` or ``create = true`` would open a budget that is refused here."""
    return _allowed.new == "stated" and not must_exist


def require_allowed(
    where: str | None,  # The ledger's place in full, None for memory
    name: str,  # The name of the budget
    place_of: Callable[..., str],  # The place in full of a path or URL
) -> None:
    """Refuse a ledger or a name other than the one that is allowed. Raises `LedgerError` when it is
    another.
    """
    if _allowed.ledger is not None and where != (only_one := place_of(_allowed.ledger)):
        used = "keeps its budget in memory" if where is None else f"names the ledger {where!r}"
        raise LedgerError(
            f"the job's session {used}, and the command names {only_one!r}",
            where="--ledger",
            remedy=(f"write ledger={only_one!r} in the job", "give --ledger as the job has it"),
        )
    if _allowed.name is not None and name != _allowed.name:
        raise LedgerError(
            f"the job's session names the budget {name!r}, and the command names {_allowed.name!r}",
            where="--name",
            remedy=(
                f"write name={_allowed.name!r} in the job",
                f"write --name {shlex.quote(name)}",
            ),
        )
    if _allowed.new == "refuse" and where is None:
        raise LedgerError(
            "the job's session keeps its budget in memory, so it is new each time it runs",
            where="--must-exist",
            remedy='keep it in a ledger: dp.Session(..., ledger="budget.db")',
        )


def tell(made: NewBudget) -> None:
    """Say that a budget was created."""
    LOG.info("%s", made.words())
    if _allowed.tell is not None:
        _allowed.tell(made)


def tell_absent(refusal: NoBudget) -> None:
    """Say that a budget does not exist, for which a session only plans."""
    if _allowed.postponed is not None:
        _allowed.postponed.append(refusal)
    elif _allowed.tell_absent is not None:
        _allowed.tell_absent(refusal)


# What owners do with budgets: create them, raise them and end them, on record.


def open_budget(
    store: Store,  # Where
    draft: Draft,  # The record that opens it
    *,
    again: bool = True,  # Whether it may be there
) -> None:
    """Create a budget, and say so if others can use it; nothing happens if it is there. Raises
    `LedgerError` when its name looks like the name of another, or it is there and may not be.
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
    for new in made if store.is_shared else ():
        tell(new)


def _amount_words(draft: Draft) -> str:
    assert draft.amount is not None
    return exact_words(draft.within or draft.amount)


def create(
    # `store`, `name`: the ledger and the name of the budget.
    store: Store,
    name: str,
    # `budget`, `within`: as for `Ledger`.
    budget: Budget,
    within: ApproxDP | None,
    unit: str | None,  # The kind of its privacy unit; None leaves that to the first charge
    by: str,  # Who creates it
    per: Every | None = None,  # The windows of time that each have this budget
) -> Account:
    """Create a budget, so that people who run jobs do not decide about its amount. Raises
    `LedgerError` when there is one of that name, or of one that looks like it.
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
    """End a budget: nothing is charged to it any more. There is no way back. Raises `LedgerError`
    when the budget does not exist, or this cannot be recorded. Raises `BudgetExceeded` when it was
    closed before.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def closing(chain: Chain) -> Draft:
        require_open(chain.account(name))
        return Draft(name, "closed", who=who, why=why)

    store.append(closing)
    return store.read().account(name)


def require_open(account: Account) -> None:
    """Refuse a budget that was closed. Raises `BudgetExceeded` with who closed it, when and why."""
    end = account.closed
    if end is not None:
        raise BudgetExceeded(
            f"the budget {account.name!r} was closed on {end.time[:10]} by {visible(end.who or '')}"
            f": {visible(end.why or '')}",
            remedy="use another budget: name=...",
        )


def grant(
    # `store`, `name`: the budget.
    store: Store,
    name: str,
    amounts: dict[str, Number],  # What is added, by ``epsilon``, ``delta``, ``rho``
    # `who`, `why`: recorded with it.
    who: str,
    why: str,
    # An (epsilon, delta) in the measure that the budget is counted in.
    counted_in: Callable[[type[Budget], ApproxDP], Budget],
    # What is recorded with it, of the budget as it was and the amount that it then has.
    renewing: Callable[[Chain, Bound], list[Draft]] | None = None,
) -> Account:
    """Raise a budget, on record.

    A budget that was opened with (epsilon, delta) and is counted in rho or mu squared is raised in
    epsilon and delta. The record has the sum of both, and how much more that implies. Raises
    `InvalidBudget` when nothing is added, or in another measure. Raises `LedgerError` when the
    budget does not exist, or this cannot be recorded. Raises `BudgetExceeded` when it was closed.
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
