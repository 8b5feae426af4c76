"""Ledgers and budgets that do not exist: how they are refused, and what plans are made with."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.errors import NoBudget
from dpframe.ledger.memory import MemoryLedger
from dpframe.ledger.names import close_names, name_list


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


def no_budget(name: str, where: str, known: Iterable[str]) -> NoBudget:
    """The refusal of a budget that a ledger does not have."""
    names = tuple(known)
    close = close_names(name, names)
    there = f", which has {name_list(names)}" if names else ", which has no budget"
    create = f"`dpframe ledger create --ledger WHERE --name {shlex.quote(name)}`"
    meant = f"write name={' or '.join(map(repr, close))}" if close else "check the name"
    return NoBudget(
        f"there is no budget {name!r} in {where!r}{there}",
        where=f"name={name!r}",
        remedy=(meant, f"open the budget first: {create}"),
    )


def no_ledger(where: str | Path) -> NoBudget:
    """The refusal of a ledger that does not exist."""
    start = f" (a relative one starts from {os.getcwd()!r})" if isinstance(where, Path) else ""
    kind = "path" if isinstance(where, Path) else "URL"
    return NoBudget(
        f"there is no ledger {str(where)!r}",
        where="ledger",
        remedy=(
            f"check the {kind}{start}",
            "open a budget in a new ledger: `dpframe ledger create --ledger WHERE --name NAME`",
        ),
    )
