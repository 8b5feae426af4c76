"""The kept results of one budget, next to a ledger."""

from __future__ import annotations

from dpframe.errors import LedgerError
from dpframe.ledger.chain import Chain
from dpframe.ledger.contents import Contents
from dpframe.ledger.kept import Attempt, Identity, Key
from dpframe.ledger.record import Draft
from dpframe.ledger.store import Store


class StoredKeeping:
    """The kept results of the budget `name`, next to a ledger."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name

    @property
    def contents(self) -> Contents:
        return self._store.contents

    @property
    def origin(self) -> str:
        return self._store.read().identities[0]

    def every(self) -> list[Attempt]:
        found = self._store.read(whole=True).results.of(self._name).by_number
        return [found[number] for number in sorted(found)]

    def newest(self, key: Key | None, identity: Identity) -> Attempt | None:
        return self._store.look_up(lambda chain: chain.results.of(self._name).newest(key, identity))

    def attempt(self, number: int) -> Attempt | None:
        return self._store.look_up(lambda chain: chain.results.of(self._name).attempt(number))

    def is_open(self, number: int) -> bool:
        return number in self._store.read().account(self._name).open

    def finish(self, number: int, content: str) -> None:
        self._store.append(lambda chain: kept(chain, self._name, number, content))

    def hash_of(self, number: int) -> str:
        return self._store.hash_of(number)

    def seal(self, values: list[object]) -> str:
        return self._store.seal.release(values)


def kept(chain: Chain, name: str, number: int, content: str) -> list[Draft] | None:
    """The records that a content is there, and its charge is done; None where they are there.

    Raises
    ------
    LedgerError
        When the charge has ended in another way.
    """
    attempt = chain.results.of(name).attempt(number)
    if attempt is not None and attempt.content == content:
        return None
    if attempt is None or attempt.content or number not in chain.account(name).open:
        raise LedgerError(
            f"the charge {number} ended before its result could be kept",
            remedy="run `dpframe ledger releases`, which lists the results that are kept",
        )
    fingerprint = attempt.begun.identity.fingerprint
    return [
        Draft(name, "kept", number, fingerprint, why=content),
        Draft(name, "released", refers=number),
    ]
