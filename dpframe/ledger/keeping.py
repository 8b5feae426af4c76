"""What is kept of the results of one budget, in a ledger or in memory."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from dpframe.core.budget import Budget
from dpframe.ledger.account import Account
from dpframe.ledger.contents import Contents, MemoryContents
from dpframe.ledger.kept import Attempt, Attempts, Begun, Identity, Key
from dpframe.ledger.record import Draft, Seal
from dpframe.ledger.scopes import Scope


@dataclass(frozen=True, slots=True)
class Beginning:
    """A result that is about to be charged, and is to be kept.

    Parameters
    ----------
    begun
        The identity of the result.
    cost
        The cost of the plan; for a part of a frame the whole may be charged less.
    key
        The key under which it may begin only once, if any.
    after
        The charge of the attempt by that key which was lost, if there is one.
    """

    begun: Begun
    cost: Budget
    key: Key | None = None
    after: int | None = None

    def at(self, scope: Scope | None) -> Beginning:
        """The same, which says where its charge falls."""
        place = None if scope is None else scope.place
        return replace(self, begun=replace(self.begun, place=place))

    def drafts(self, attempts: Attempts, account: Account) -> list[Draft]:
        """What is recorded directly before the charge.

        Raises
        ------
        Overtaken
            When another process has begun it meanwhile.
        """
        attempts.require_newest(self.key, self.begun.identity, self.after)
        result = [self.begun.draft(account.name, self.cost, self.after)]
        if self.after is not None and self.after in account.open:
            result = [Draft(account.name, "failed", refers=self.after), *result]
        return result


class Keeping(Protocol):
    """What is kept of the results of one budget."""

    @property
    def contents(self) -> Contents:
        """Where contents lie."""
        ...

    @property
    def origin(self) -> str:
        """The identity of the ledger, which a move does not change."""
        ...

    def every(self) -> list[Attempt]:
        """All charges whose results were to be kept, as they are now, in order."""
        ...

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        """The current state of the last attempt by a key."""
        ...

    def attempt(self, number: int) -> Attempt | None:
        """The current state of the attempt for a charge."""
        ...

    def is_open(self, number: int) -> bool:
        """Whether it is not recorded how a charge ended."""
        ...

    def finish(self, number: int, content: str) -> None:
        """Record that a content exists whose own process could not record it."""
        ...

    def hash_of(self, number: int) -> str:
        """The hash of the record of a charge."""
        ...

    def seal(self, values: list[object]) -> str:
        """The seal of a content under the key of the ledger."""
        ...


class MemoryKeeping:
    """What is kept in memory, while the process lives."""

    def __init__(self) -> None:
        self.contents = MemoryContents()
        self.origin = uuid.uuid4().hex
        self.attempts = Attempts()
        self.open: set[int] = set()

    def begin(self, number: int, beginning: Beginning) -> None:
        """Remember a charge whose result is to be kept."""
        time, after = datetime.now(UTC), beginning.after
        self.attempts.begin(number, time, beginning.begun, beginning.cost, after)
        self.open.add(number)

    def every(self) -> list[Attempt]:
        return [*self.attempts.by_number.values()]

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        return self.attempts.newest(key, identity)

    def attempt(self, number: int) -> Attempt | None:
        return self.attempts.attempt(number)

    def is_open(self, number: int) -> bool:
        return number in self.open

    def finish(self, number: int, content: str) -> None:
        self.attempts.keep(number, datetime.now(UTC), content)
        self.open.discard(number)

    def hash_of(self, number: int) -> str:
        return f"{self.origin} {number}"

    def seal(self, values: list[object]) -> str:
        return Seal(None).release(values)
