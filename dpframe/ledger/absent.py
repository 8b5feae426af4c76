"""Ledgers and budgets that do not exist: how they are refused, and what plans are made with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.errors import NoBudget
from dpframe.ledger.memory import MemoryLedger
from dpframe.ledger.names import create_command


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
