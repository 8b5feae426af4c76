"""What may be opened: which ledger, which budget, and whether a new one.

Whoever runs a job decides about these, and the job opens its session. So they are set around the
job, for the whole process: a job must not get round them in another thread. A job in Python can,
if it wants to, since it is code; what they stop is a mistake, and a job in TOML.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpframe.errors import LedgerError

LOG = logging.getLogger("dpframe")


@dataclass(frozen=True, slots=True)
class NewBudget:
    """A budget that was just created.

    Parameters
    ----------
    name
        Of the budget.
    amount
        In words.
    where
        The ledger's place, in full.
    others
        Names that the ledger had before.
    new_ledger
        Whether there was no ledger at that place.
    """

    name: str
    amount: str
    where: str
    others: tuple[str, ...]
    new_ledger: bool

    def words(self) -> str:
        """That it is new, and where: a wrong name or path shows."""
        if self.new_ledger:
            return f"new budget {self.name!r} of {self.amount} in the new ledger {self.where!r}"
        known = ", ".join(map(repr, self.others[:5])) or "no other"
        more = f" and {len(self.others) - 5} more" if len(self.others) > 5 else ""
        return (
            f"new budget {self.name!r} of {self.amount} in {self.where!r}, which has {known}{more}"
        )


@dataclass(frozen=True, slots=True)
class _Allowed:
    ledger: str | os.PathLike[str] | None = None
    name: str | None = None
    must_exist: bool = False
    tell: Callable[[NewBudget], None] | None = None


_allowed = _Allowed()


@contextmanager
def only(
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    *,
    must_exist: bool = False,
    tell: Callable[[NewBudget], None] | None = None,
) -> Iterator[None]:
    """Within this, sessions open no other ledger or budget, and none that is new if it must exist.

    Parameters
    ----------
    ledger, name
        The only ones that may be used; None for any.
    must_exist
        Whether budgets must have been created before.
    tell
        Called with each budget that is created.
    """
    global _allowed
    before, _allowed = _allowed, _Allowed(ledger, name, must_exist, tell)
    try:
        yield
    finally:
        _allowed = before


def must_exist() -> bool:
    """Whether whoever runs this process forbids new budgets."""
    return _allowed.must_exist


def require_allowed(where: str | None, name: str, place_of: Callable[..., str]) -> None:
    """Refuse a ledger or a name other than the one that is allowed.

    Parameters
    ----------
    where
        The ledger's place in full, None for memory.
    name
        Of the budget.
    place_of
        The place in full of a path or URL.

    Raises
    ------
    LedgerError
        When it is another.
    """
    if _allowed.ledger is not None and where != (only_one := place_of(_allowed.ledger)):
        used = "keeps its budget in memory" if where is None else f"uses the ledger {where!r}"
        raise LedgerError(
            f"the session {used}, and this run may use {only_one!r} only",
            where="--ledger",
            remedy="give the run the ledger of its job, or the job that of the run",
        )
    if _allowed.name is not None and name != _allowed.name:
        raise LedgerError(
            f"the session uses the budget {name!r}, and this run may use {_allowed.name!r} only",
            where="--name",
            remedy="give the run the budget of its job, or the job that of the run",
        )
    if _allowed.must_exist and where is None:
        raise LedgerError(
            "the session keeps its budget in memory, so it is new each time it runs",
            where="--must-exist",
            remedy='keep it in a ledger: dp.Session(..., ledger="budget.db")',
        )


def tell(made: NewBudget) -> None:
    """Say that a budget was created."""
    LOG.info("%s", made.words())
    if _allowed.tell is not None:
        _allowed.tell(made)
