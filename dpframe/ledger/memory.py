"""A budget kept in memory, for as long as the process lives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from threading import Lock
from typing import Literal

from dpframe.core.budget import Budget
from dpframe.errors import BudgetExceeded

Status = Literal["charged", "released", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One spend.

    Parameters
    ----------
    time
        When it was charged, UTC.
    fingerprint
        Of the plan.
    cost
        What was charged.
    status
        ``"charged"`` until the release is done, then ``"released"`` or ``"failed"``; a failure
        keeps its charge.
    """

    time: datetime
    fingerprint: str
    cost: Budget
    status: Status


class MemoryLedger:
    """Entries that are only ever added to; safe between threads.

    It is a privacy filter for adaptively chosen plans: each plan is admitted only if the sum of all
    costs stays within the budget. Sums are valid filters for pure DP and (epsilon, delta) (Rogers,
    Roth, Ullman & Vadhan 2016, Theorem 3.6) and for zCDP (Feldman & Zrnic 2021).
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._entries: list[Entry] = []
        self._spent = budget.of(budget.main * 0)
        self._lock = Lock()

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def spent(self) -> Budget:
        with self._lock:
            return self._spent

    @property
    def entries(self) -> tuple[Entry, ...]:
        with self._lock:
            return tuple(self._entries)

    def charge(self, cost: Budget, fingerprint: str) -> int:
        """Record a spend before any data is read.

        Returns
        -------
        int
            The entry's number, for `settle`.

        Raises
        ------
        BudgetExceeded
            When it does not fit; nothing is recorded then.
        """
        with self._lock:
            if not (self._budget - self._spent).covers(cost):
                raise over_budget(self._budget, self._spent, cost)
            now = datetime.now(UTC)
            self._entries.append(Entry(now, fingerprint, cost, "charged"))
            self._spent = self._spent + cost
            return len(self._entries) - 1

    def settle(self, number: int, status: Status) -> None:
        """Record how a charged release ended. The charge stays in any case."""
        with self._lock:
            self._entries[number] = replace(self._entries[number], status=status)


def over_budget(budget: Budget, spent: Budget, cost: Budget) -> BudgetExceeded:
    """The refusal of a spend, with all amounts at full precision."""
    left = budget - spent
    over = cost - left
    amounts = [f"{cost.currency} {exact_amount(over.main)}"] if over.main else []
    if over.slack:
        amounts.append(f"delta {exact_amount(over.slack)}")
    return BudgetExceeded(
        f"the plan costs {exact_words(cost)}, and {exact_words(left)} remains of "
        f"{exact_words(budget)}: {' and '.join(amounts)} too much",
        remedy=f"spend at most {exact_words(left)}" if left.main else "the budget is used up",
    )


def exact_words(budget: Budget) -> str:
    """Amounts at full precision."""
    text = f"{budget.currency} {exact_amount(budget.main)}"
    return f"{text} and delta {exact_amount(budget.slack)}" if budget.slack else text


def exact_amount(value: Fraction) -> str:
    """A number that people may write back: all its decimals, or the first 17 where it has more.

    Cut, never rounded up, so that spending what is said to remain is never refused.
    """
    with localcontext(prec=17, rounding=ROUND_DOWN):
        cut = Decimal(value.numerator) / value.denominator
    if not 1e-4 <= cut < 1e17 and cut:
        mantissa, _, exponent = f"{cut.normalize():e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{cut.normalize():f}"
