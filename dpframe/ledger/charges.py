"""What a record of a charge says beside its amount: who was charged, and where it falls."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpframe.core.budget import Budget
from dpframe.ledger.caller import NOBODY, Caller, caller_of
from dpframe.ledger.record import Record
from dpframe.ledger.scopes import Scope, read_scope, scope_fields


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge, as its record keeps it.

    Parameters
    ----------
    caller
        Who is charged.
    cost
        Of the plan.
    scope
        Where it falls; None for all of the budget's frames, and then it is charged its cost.
    """

    caller: Caller
    cost: Budget
    scope: Scope | None = None

    def text(self) -> str:
        """All but the user, as records keep it."""
        found = self.caller.fields()
        if self.scope is not None:
            found["scope"] = scope_fields(self.scope, self.cost)
        return json.dumps(found)


def read_charge(record: Record) -> Charge:
    """What the record of a charge says.

    Raises
    ------
    ValueError, TypeError, KeyError, ArithmeticError
        When it does so in another form.
    """
    amount = record.amount
    if record.why is None:
        return Charge(NOBODY if record.who is None else Caller(record.who), amount)
    found = json.loads(record.why)
    if not isinstance(found, dict):
        raise ValueError
    scope, cost = None, amount
    if "scope" in found:
        scope, cost = read_scope(found.pop("scope"), amount)
    return Charge(caller_of(record.who, found), cost, scope)
