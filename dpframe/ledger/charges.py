"""The facts in a record of a charge as well its amount: the charged process, and the scope."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpframe.core.budget import Budget
from dpframe.core.parameters import Parameter
from dpframe.ledger.approvals import Covered
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
        The fingerprint of the plan.
    scope
        Where it falls; None for all of the budget's frames, and then it is charged its cost.
    covered
        How an approval of a range covers it; None where none does that it uses.
    """

    caller: Caller
    cost: Budget
    scope: Scope | None = None
    covered: Covered | None = None

    def text(self) -> str:
        """All but the user, as records keep it."""
        found = self.caller.fields()
        if self.scope is not None:
            found["scope"] = scope_fields(self.scope, self.cost)
        if self.covered is not None:
            given = {p.name: {"type": p.type, "value": p.value} for p in self.covered.parameters}
            found["covered"] = {"template": self.covered.template, "parameters": given}
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
    fields = json.loads(record.why)
    if not isinstance(fields, dict):
        raise ValueError
    scope, cost = None, amount
    if "scope" in fields:
        scope, cost = read_scope(fields.pop("scope"), amount)
    covered = _read_covered(fields.pop("covered")) if "covered" in fields else None
    return Charge(caller_of(record.who, fields), cost, scope, covered)


def _read_covered(found: object) -> Covered:
    if not isinstance(found, dict) or found.keys() != {"template", "parameters"}:
        raise ValueError
    template, given = found["template"], found["parameters"]
    if not isinstance(template, str) or not isinstance(given, dict):
        raise TypeError
    if any(one.keys() != {"type", "value"} for one in given.values()):
        raise ValueError
    made = (Parameter(name, one["type"], one["value"]) for name, one in sorted(given.items()))
    return Covered(template, tuple(made))
