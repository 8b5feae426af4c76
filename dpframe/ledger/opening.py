"""What may be opened: which ledger, which budget, and whether a new one.

The person who runs a job decides about these, and the job opens its session. So they are set
around the job, for the whole process: a job must not get round them in another thread. A job in
Python can, if it wants to, since it is code; what they stop is a mistake, and a job in TOML.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dpframe.errors import LedgerError, NoBudget
from dpframe.ledger.names import name_list

New: TypeAlias = Literal["open", "stated", "refuse", "plan"]
"""What to do if a session names a budget that does not exist. ``open`` creates it, ``stated``
creates it only if the session requests it, ``refuse`` refuses the session, and ``plan`` allows
only plans.
"""

LOG = logging.getLogger("dpframe")


@dataclass(frozen=True, slots=True)
class NewBudget:
    """A budget that was just created.

    Parameters
    ----------
    name
        The name of the budget.
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
        known = name_list(self.others) or "no other"
        return f"new budget {self.name!r} of {self.amount} in {self.where!r}, which has {known}"


@dataclass(frozen=True, slots=True)
class _Allowed:
    ledger: str | os.PathLike[str] | None = None
    name: str | None = None
    new: New = "open"
    tell: Callable[[NewBudget], None] | None = None
    tell_absent: Callable[[NoBudget], None] | None = None
    postponed: list[NoBudget] | None = None


_allowed = _Allowed()


@contextmanager
def only(
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    *,
    new: New = "open",
    tell: Callable[[NewBudget], None] | None = None,
    tell_absent: Callable[[NoBudget], None] | None = None,
) -> Iterator[None]:
    """Within this, sessions use no other ledger or budget, and open a new one only if they may.

    Parameters
    ----------
    ledger, name
        The only ones that may be used; None for any.
    new
        What happens to a budget that does not exist.
    tell
        Called with each budget that is created.
    tell_absent
        Called with the refusal of each budget that does not exist and is only planned for.
    """
    with _allowing(_Allowed(ledger, name, new, tell, tell_absent)):
        yield


@contextmanager
def postpone() -> Iterator[list[NoBudget]]:
    """Within this, sessions that would open a budget only plan; the list has the budgets that do
    not exist.

    So a job that turns out to make no sense has opened nothing.
    """
    absent: list[NoBudget] = []
    with _allowing(replace(_allowed, postponed=absent)):
        yield absent


@contextmanager
def _allowing(allowed: _Allowed) -> Iterator[None]:
    global _allowed
    before, _allowed = _allowed, allowed
    try:
        yield
    finally:
        _allowed = before


def new_budget(*, must_exist: bool, create: bool) -> New:
    """What happens here to a budget that does not exist, for a session that says so of its own:
    never ``"stated"``.
    """
    if must_exist or _allowed.new == "refuse" or (_allowed.new == "stated" and not create):
        return "refuse"
    return "plan" if _allowed.new == "plan" or _allowed.postponed is not None else "open"


def create_would_open(*, must_exist: bool) -> bool:
    """Whether ``--create`` or ``create = true`` would open a budget that is refused here."""
    return _allowed.new == "stated" and not must_exist


def require_allowed(where: str | None, name: str, place_of: Callable[..., str]) -> None:
    """Refuse a ledger or a name other than the one that is allowed.

    Parameters
    ----------
    where
        The ledger's place in full, None for memory.
    name
        The name of the budget.
    place_of
        The place in full of a path or URL.

    Raises
    ------
    LedgerError
        When it is another.
    """
    if _allowed.ledger is not None and where != (only_one := place_of(_allowed.ledger)):
        used = "keeps its budget in memory" if where is None else f"names the ledger {where!r}"
        raise LedgerError(
            f"the job's session {used}, and the command names {only_one!r}",
            where="--ledger",
            remedy=(f"write ledger={only_one!r} in the job", "give --ledger as the job has it"),
        )
    if _allowed.name is not None and name != _allowed.name:
        raise LedgerError(
            f"the job's session names the budget {name!r}, and the command names {_allowed.name!r}",
            where="--name",
            remedy=(
                f"write name={_allowed.name!r} in the job",
                f"write --name {shlex.quote(name)}",
            ),
        )
    if _allowed.new == "refuse" and where is None:
        raise LedgerError(
            "the job's session keeps its budget in memory, so it is new each time it runs",
            where="--must-exist",
            remedy='keep it in a ledger: dp.Session(..., ledger="budget.db")',
        )


def tell(made: NewBudget) -> None:
    """Say that a budget was created."""
    LOG.info("%s", made.words())
    if _allowed.tell is not None:
        _allowed.tell(made)


def tell_absent(refusal: NoBudget) -> None:
    """Say that a budget does not exist, for which a session only plans."""
    if _allowed.postponed is not None:
        _allowed.postponed.append(refusal)
    elif _allowed.tell_absent is not None:
        _allowed.tell_absent(refusal)
