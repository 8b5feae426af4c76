"""Budgets in memory, and those that do not exist."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.errors import LedgerError, NoBudget
from dpframe.ledger.account import Entry, Settled, this_caller
from dpframe.ledger.approvals import Approval, Bound, Requirement
from dpframe.ledger.ledger import Beginning, MemoryKeeping, happened, report_charge
from dpframe.ledger.locks import Exclusive
from dpframe.ledger.record import create_command
from dpframe.ledger.scopes import InScope, Scope, Timeline, Totals, in_scope, required
from dpframe.ledger.streaming import MemoryStreams
from dpframe.ledger.streams import StreamOpening

# A budget kept in memory, for as long as the process lives.


class MemoryLedger:
    """A ledger that is gone when its process ends; safe between threads.

    A forked process has a copy of it, which may not spend: the two would spend the same budget.
    """

    where = "kept in memory only"

    def __init__(
        self, budget: Budget, within: ApproxDP | None = None, per: Every | None = None
    ) -> None:
        self._budget = budget
        self._within = within
        self._entries: list[Entry] = []
        self._spent = budget.of(budget.main * 0)
        self._scopes = Totals(
            self._spent, windows=None if per is None else Timeline(per, self._spent)
        )
        self._unit: str | None = None
        self._lock = Exclusive()
        self._process = os.getpid()
        self.keeping = MemoryKeeping()
        self._streams = MemoryStreams()

    @property
    def name(self) -> str | None:
        return None

    @property
    def streams(self) -> MemoryStreams:
        self._require_own()  # a copy would draw other noise for the same rows
        return self._streams

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def within(self) -> ApproxDP | None:
        return self._within

    @property
    def per(self) -> Every | None:
        windows = self._scopes.windows
        return None if windows is None else windows.every

    @property
    def spent(self) -> Budget:
        return self._spent

    @property
    def remaining(self) -> Budget:
        return self._budget - self._spent

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def approvals(self) -> tuple[()]:
        """None: who could approve what this process does would have to be in it."""
        return ()

    @property
    def other_approvals(self) -> Mapping[str, Sequence[Approval]]:
        """None, as there is no other budget."""
        return {}

    @property
    def identities(self) -> tuple[()]:
        """Empty: it cannot be referred to."""
        return ()

    @property
    def bound(self) -> Bound:
        return Bound(self._within or self._budget, self._budget.measure)

    def require_unit(self, unit: str) -> None:
        if self._unit not in (None, unit):
            raise other_unit(str(self._unit), unit)

    def charge(
        self,
        cost: Budget,
        fingerprint: str,
        unit: str | None = None,
        approval: Requirement | None = None,
        scope: Scope | None = None,
        beginning: Beginning | None = None,
        stream: StreamOpening | None = None,
    ) -> int:
        if approval is not None:  # raises: nothing can be approved here
            approval.chosen(self.approvals, fingerprint, (), self.bound)
        self._require_own()

        def charging() -> int:
            if beginning is not None:
                self.keeping.attempts.require_newest(
                    beginning.key, beginning.begun.identity, beginning.after
                )
            if unit is not None:
                self.require_unit(unit)
            left = self._budget - self._spent
            amounts = required(scope, self._scopes, cost, left, self._budget, self._within)
            if stream is not None:
                self._streams.require_new(stream)
            self._spent = self._spent + amounts[0]  # first: what interrupts the rest is charged
            number, time, caller = len(self._entries), datetime.now(UTC), this_caller()
            self._entries.append(
                Entry(number, time, fingerprint, amounts[0], "charged", caller, scope, amounts)
            )
            if stream is not None:
                self._streams.open(stream)
            if scope is not None:
                scope.add(self._scopes, amounts)
            self._unit = self._unit or unit
            if beginning is not None:
                self.keeping.begin(number, beginning.at(scope))
            report_charge(None, number, fingerprint, cost)
            return number

        return self._lock.run(charging)

    def in_scope(self, scope: Scope, cost: Budget | None = None) -> InScope:
        self._require_own()
        return self._lock.run(
            lambda: in_scope(scope, self._scopes, self._budget - self._spent, cost)
        )

    def _require_own(self) -> None:
        if os.getpid() != self._process:
            raise LedgerError(
                "a budget in memory belongs to the process that opened it, and this "
                "process was forked from it",
                why="it would spend the same budget again",
                remedy='keep the budget in a file: dp.Session(..., ledger="budget.db")',
            )

    def settle(self, number: int, status: Settled, content: str | None = None) -> None:
        def settling() -> None:
            self._entries[number] = replace(self._entries[number], status=status)
            self.keeping.open.discard(number)
            if content is not None:
                self.keeping.finish(number, content)

        self._lock.run(settling)
        happened("release" if status == "released" else "failed", record=number)

    def verify(self) -> None:
        """Nothing to do: no other process can write to it."""


def other_unit(recorded: str, unit: str) -> LedgerError:
    """The refusal of a query under another notion of neighbour than earlier ones."""
    return LedgerError(
        f"the budget is for the unit {recorded!r}, and the query for {unit!r}",
        why="costs for different units do not add up",
        remedy=(
            "protect the frame with the unit of the budget: protect(frame, unit=...)",
            "use another budget: dp.Session(..., name=...)",
        ),
    )


# Ledgers and budgets that do not exist: how they are refused, and what plans are made with.


class AbsentBudget(MemoryLedger):
    """A budget that does not exist, for commands that only plan: plans are those of a new one, and
    every charge is refused.

    Parameters
    ----------
    name
        What it would be called.
    refusal
        Why nothing can be charged.
    budget, within, per
        As for `MemoryLedger`.
    """

    where = "not opened yet"

    def __init__(
        self,
        name: str,
        refusal: NoBudget,
        budget: Budget,
        within: ApproxDP | None = None,
        per: Every | None = None,
    ) -> None:
        super().__init__(budget, within, per)
        self._name = name
        self._refusal = refusal

    @property
    def name(self) -> str:
        return self._name

    def charge(self, *_: object, **__: object) -> NoReturn:
        """Refuse: what is released must be on record.

        Raises
        ------
        NoBudget
            Always.
        """
        raise self._refusal


def no_ledger(where: str | Path) -> NoBudget:
    """The refusal of a ledger that does not exist."""
    is_file = "://" not in str(where)
    start = f"dpframe looked in the folder {str(Path(os.path.abspath(where)).parent)!r}"
    return NoBudget(
        f"there is no ledger {str(where)!r}",
        where="ledger",
        why=start if is_file else None,
        remedy=(
            f"write the {'path' if is_file else 'URL'} of a ledger that exists",
            f"open a budget in a new ledger: {create_command()}",
        ),
    )
