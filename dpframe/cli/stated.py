"""The budget that a plan states, and the one that the ledger has."""

from __future__ import annotations

import shlex

from dpframe.charge import resolve_composition
from dpframe.core.budget import GDP, ZCDP
from dpframe.errors import LedgerError, PlanMismatch
from dpframe.ledger.account import Account
from dpframe.ledger.approvals import Bound, StatedBudget
from dpframe.ledger.budgets import open_budget, require_open
from dpframe.ledger.place import DEFAULT_NAME
from dpframe.ledger.record import Draft, create_command, no_budget
from dpframe.ledger.scopes import per_text
from dpframe.ledger.store import Store
from dpframe.report import Plan

_COMPOSITIONS = {ZCDP.measure: "zcdp", GDP.measure: "gdp"}
"""How a budget is composed that is counted in another measure than it was given in."""


def name_of(plan: Plan, given: str | None) -> str:
    """The budget that a plan is approved for.

    Raises
    ------
    PlanMismatch
        When the plan states another one than was given.
    """
    stated = None if plan.budget is None else plan.budget.name
    if given is not None and stated not in (None, given):
        raise PlanMismatch(
            f"the plan names the budget {stated!r}, and the command {given!r}",
            where=f"--name {shlex.quote(given)}",
            remedy=(
                "leave --name out",
                f"plan the query again in a session with name={given!r}",
            ),
        )
    return given or stated or DEFAULT_NAME


def require_stated(store: Store, name: str, plan: Plan, *, create: bool) -> Account:
    """The budget that a plan states, as the ledger has it; opened if it is new and `create` allows.

    Raises
    ------
    PlanMismatch
        When the ledger is another one, or has another amount.
    NoBudget
        When it does not exist, and may not be opened.
    LedgerError
        When it is new, and the plan states no amount.
    BudgetExceeded
        When it was closed.
    """
    chain, stated = store.read(), plan.budget
    if stated is not None and stated.ledger not in (None, *chain.identities):
        raise _mismatch(f"the plan was made for another ledger than {store.where!r}", store)
    if name not in chain.accounts:
        if not create:
            raise no_budget(name, chain.accounts, store.where)
        if stated is None:
            raise LedgerError(
                f"the ledger {store.where!r} has no budget {name!r}, and the plan states no amount",
                remedy=(
                    f"create it: {create_command(shlex.quote(name))}",
                    f"plan the query in a session with ledger={store.where!r}",
                ),
            )
        _create(store, name, stated)
        chain = store.read()
    account = chain.account(name)
    require_open(account)
    there = Bound.of(account)
    if stated is not None and there != (seen := Bound(stated.whole, stated.counted)):
        raise _mismatch(
            f"the plan was made for a budget of {seen.words()}, and {name!r} in "
            f"{store.where!r} has {there.words()}",
            store,
        )
    return account


def _create(store: Store, name: str, stated: StatedBudget) -> None:
    same = stated.counted == stated.whole.measure
    composition = "sum" if same else _COMPOSITIONS.get(stated.counted, stated.counted)
    budget, within = resolve_composition(stated.whole, composition)
    why = per_text(stated.per)
    open_budget(store, Draft(name, "opened", amount=budget, within=within, why=why))


def _mismatch(what: str, store: Store) -> PlanMismatch:
    return PlanMismatch(
        what, remedy=f"plan the query again in a session with ledger={store.where!r}"
    )
