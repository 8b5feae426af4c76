"""Contents of kept results that owners give up: deleted on record, while their charges stay.

A spend stays spent, whether the result still exists or not. So a record says first that a content
is given up; then it is deleted. A later request for that result is refused with a note, and is
charged again only on request. If a process dies between the two, it leaves a content that is
never handed out, and that the next call deletes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from dpframe.errors import LedgerError
from dpframe.ledger.chain import Chain
from dpframe.ledger.kept import Attempt
from dpframe.ledger.record import Draft, short_text
from dpframe.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was given up of one budget.

    Parameters
    ----------
    name
        The name of the budget.
    attempts
        The results, in the order of their charges.
    """

    name: str
    attempts: tuple[Attempt, ...]


def prune(store: Store, name: str | None, by: str, before: date, last: int = 0) -> list[Pruned]:
    """Give up the contents of results that were kept before a day, and delete them.

    Parameters
    ----------
    store
        The ledger.
    name
        The name of the budget; None for all budgets.
    by
        Who does it.
    before
        The day, UTC; what was kept on it stays.
    last
        How many of the newest results of each budget stay whenever they were kept.

    Returns
    -------
    list[Pruned]
        By budget, the results that were given up.

    Raises
    ------
    LedgerError
        When the ledger does not verify, does not have the budget, or contents may not be deleted;
        then nothing is given up. Or a content cannot be deleted: the same call goes on then.
    """
    who = short_text(by, "--by")
    if last < 0:
        raise LedgerError(
            f"the number of results to keep is {last}",
            where=f"--keep-last {last}",
            remedy="write for example --keep-last 10",
        )
    made: dict[str, tuple[Attempt, ...]] = {}

    known = store.read(whole=True)
    due = {
        budget: _due(known.results.of(budget).by_number.values(), before, last)
        for budget in _names(known, name)
    }

    def pruning(chain: Chain) -> list[Draft] | None:
        made.clear()
        for budget, attempts in due.items():
            now = (chain.results.of(budget).attempt(one.number) for one in attempts)
            if found := tuple(one for one in now if one is not None and one.pruned is None):
                made[budget] = found
        drafts = [_draft(budget, one, who) for budget, found in made.items() for one in found]
        return drafts or None

    store.contents.prepare_removal()
    store.append(pruning)
    chain = store.read(whole=True)
    for budget in _names(chain, name):
        for attempt in chain.results.of(budget).by_number.values():
            if attempt.pruned is not None:  # also by a call that was interrupted
                store.contents.remove(attempt.number, len(attempt.begun.identity.outputs))
    return [Pruned(budget, found) for budget, found in made.items()]


def _names(chain: Chain, name: str | None) -> list[str]:
    return list(chain.accounts) if name is None else [chain.account(name).name]


def _due(attempts: Iterable[Attempt], before: date, last: int) -> tuple[Attempt, ...]:
    kept = sorted(
        (one for one in attempts if one.content is not None and one.pruned is None),
        key=lambda one: one.number,
    )
    end = datetime(before.year, before.month, before.day, tzinfo=UTC)
    old = kept[: max(0, len(kept) - last)]
    return tuple(one for one in old if one.time < end)


def _draft(budget: str, one: Attempt, who: str) -> Draft:
    return Draft(budget, "pruned", one.number, one.begun.identity.fingerprint, who=who)
