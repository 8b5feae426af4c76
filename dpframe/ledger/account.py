"""One budget of a ledger, as its records say."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpframe.core.budget import ApproxDP, Budget
from dpframe.core.windows import Every
from dpframe.ledger.entry import Entry
from dpframe.ledger.record import Record
from dpframe.ledger.scopes import Totals


@dataclass(slots=True)
class Account:
    """One budget of a ledger, up to the last record read."""

    name: str
    budget: Budget
    totals: list[Budget]
    """The budget when it was opened and after each grant, as sessions give it."""
    grants: list[Record]
    """Its opening and all grants."""
    spent: Budget
    scopes: Totals
    """What was charged to parts of frames, and to windows."""
    within: ApproxDP | None = None
    """The (epsilon, delta) that the budget, then an amount of rho, was taken to imply."""
    unit: str | None = None
    closed: Record | None = None
    """What ended it; nothing is charged or granted after that."""
    charges: int = 0
    """How many there are."""
    open: set[int] = field(default_factory=set)
    """Numbers of the charges that are not settled yet."""
    entries: dict[int, Entry] = field(default_factory=dict)
    """All charges, if the chain is whole; otherwise none."""

    @property
    def per(self) -> Every | None:
        """The windows of time that each have this budget, or None for one budget for all time."""
        return None if self.scopes.windows is None else self.scopes.windows.every

    @property
    def remaining(self) -> Budget:
        """What may still be spent: nothing once it is closed."""
        if self.closed is not None:
            return self.budget.of(self.budget.main * 0)
        return self.budget - self.spent
