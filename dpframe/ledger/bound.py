"""What an approval is for: one budget of one ledger, and its amount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpframe.core.budget import Budget
from dpframe.core.windows import Every
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.record import MEASURES


@dataclass(frozen=True, slots=True)
class StatedBudget:
    """The budget that a plan is to be charged to, as a reviewer reads it.

    Parameters
    ----------
    name
        The identity of the budget in the ledger; None for a budget in memory.
    ledger
        The identity of its ledger; None for a budget in memory.
    whole
        All that may be spent, as it was given, grants included.
    counted
        The measure in which charges are added up.
    per
        The windows of time that each have this budget; None for one budget for all time.
    """

    name: str | None
    ledger: str | None
    whole: Budget
    counted: str
    per: Every | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The amount that an approval is for.

    Parameters
    ----------
    whole
        All that may be spent, as sessions give it.
    counted
        The measure in which charges are added up.
    """

    whole: Budget
    counted: str

    @classmethod
    def of(cls, account: Account) -> Bound:
        """The current state of a budget."""
        return cls(account.within or account.budget, account.budget.measure)

    @classmethod
    def read(cls, found: Any) -> Bound:
        """The amount that `fields` made.

        Raises
        ------
        KeyError, TypeError, ValueError, ArithmeticError
            When it makes no sense.
        """
        if not isinstance(found, Mapping) or found.keys() != {
            "measure",
            "main",
            "slack",
            "counted",
        }:
            raise ValueError
        if not all(isinstance(value, str) for value in found.values()):
            raise TypeError
        measure = MEASURES[found["measure"]]
        whole = measure.of(Fraction(found["main"]), Fraction(found["slack"]))
        return cls(whole, MEASURES[found["counted"]].measure)

    def fields(self) -> dict[str, str]:
        """As JSON; of one amount there is one form."""
        return {
            "measure": self.whole.measure,
            "main": str(self.whole.main),
            "slack": str(self.whole.slack),
            "counted": self.counted,
        }

    def words(self) -> str:
        """In words."""
        through = "" if self.counted == self.whole.measure else f" through {self.counted}"
        return f"{exact_words(self.whole)} in {self.whole.measure}{through}"
