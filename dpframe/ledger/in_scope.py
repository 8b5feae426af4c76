"""How one scope of a budget stands, and whether a plan fits there."""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.core.budget import ApproxDP, Budget
from dpframe.errors import LedgerError, require
from dpframe.ledger.amounts import over_budget
from dpframe.ledger.clocks import require_clocks
from dpframe.ledger.scopes import Scope, Totals, WindowScope, amounts_of


@dataclass(frozen=True, slots=True)
class InScope:
    """What a scope was charged, and what may still be.

    Parameters
    ----------
    spent
        All that was charged to it.
    left
        What may still be charged to it, if nothing else is meanwhile.
    increase
        The amount that a plan would now charge to the whole budget, if a plan is given.
    """

    spent: Budget
    left: Budget
    increase: Budget


def in_scope(scope: Scope, totals: Totals, left: Budget, cost: Budget | None) -> InScope:
    """The state of a scope while `left` remains in the whole budget."""
    amounts = amounts_of(scope, totals, totals.zero if cost is None else cost)
    return InScope(scope.spent(totals), scope.room(totals, left), amounts[0])


def required(
    scope: Scope | None,
    totals: Totals,
    cost: Budget,
    left: Budget,
    budget: Budget,
    within: ApproxDP | None,
) -> tuple[Budget, ...]:
    """What a plan of this cost adds, to the whole budget first; refused where it does not fit.

    Raises
    ------
    BudgetExceeded
        With what is left, in the scope if there is one.
    LedgerError
        When the scope may not be charged, or not any more.
    """
    require(
        totals.windows is None or isinstance(scope, WindowScope),
        "a budget for windows of time is charged for the windows that a query reads",
    )
    if isinstance(scope, WindowScope):
        require_clocks(totals.clocks, scope.clocks)
    elif scope is not None and scope.is_past(totals):
        raise LedgerError(
            "a later part of the frame was charged before this one",
            where=scope.place,
            why="the limit keeps the first parts of each individual, so new rows could put an "
            "individual into one part more",
            remedy=(
                'read a kept release again with reuse="same"',
                "run the parts in the order of their keys, on another budget",
            ),
        )
    amounts = amounts_of(scope, totals, cost)
    if left.covers(amounts[0]):
        return amounts
    if scope is None:
        raise over_budget(budget, budget - left, cost, within)
    spent, room = scope.spent(totals), scope.room(totals, left)
    raise over_budget(spent + room, spent, cost, within, of=scope.words + scope.fullest(totals))
