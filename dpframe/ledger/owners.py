"""What owners do with a whole ledger: give it another key, move it, or give up its head file."""

from __future__ import annotations

import json
from typing import Any

from dpframe.errors import LedgerError, require
from dpframe.ledger.absent import no_ledger
from dpframe.ledger.brought import bring, bring_rest
from dpframe.ledger.chain import Chain, rekeying
from dpframe.ledger.head_file import Seen
from dpframe.ledger.record import Draft, Head, Record, Seal, sealed, short_text
from dpframe.ledger.standing import require_here
from dpframe.ledger.store import Store
from dpframe.ledger.tables import Tables, rows_after


def adopt(store: Store, by: str, reason: str) -> Head:
    """Accept a ledger whose head file is lost, on record, and write the file again.

    A person who can do that can also replace a ledger by an old copy. So the record says who it
    was and why, and the head that `verify` printed can be compared with what is there.

    Raises
    ------
    LedgerError
        When the head file is there, or the ledger does not verify.
    """
    who, why = short_text(by, "--by"), short_text(reason, "--reason")

    def adopting(chain: Chain) -> Draft:
        if not chain.length:
            raise no_ledger(store.where)
        return Draft("", "adopted", who=who, why=why)

    store.adopt(adopting)
    return store.read().head()


def rekey(store: Store, key: Seal, by: str) -> Head:
    """Seal what follows with another key, and vouch for what was before with it.

    The record that says so is the first one under the new key. It has a hash of the content of all
    records before it, and what they add up to; so the new key alone verifies all of them. The old
    key alone is then not enough to add to the ledger. Other head files than the one next to the
    ledger are sealed with the old key, and must be removed.

    Parameters
    ----------
    store
        Opened with the key that it has now, if it has any.
    key
        The new one.
    by
        Who does it.

    Raises
    ------
    LedgerError
        When the ledger does not verify with the old key, or does not exist.
    """
    who = short_text(by, "--by")
    store.reseal(lambda chain: _rekeyed(chain, key, who), key)
    return store.verify()


def _rekeyed(chain: Chain, key: Seal, who: str) -> Draft:
    if chain.identity is None:
        raise LedgerError(
            "the ledger has no identity yet, because an earlier version wrote it",
            remedy="add to a budget first: `dpframe ledger grant`",
        )
    return Draft("", "rekeyed", who=who, why=rekeying(chain, key, chain.length + 1))


def move(source: Store, destination: Store, by: str) -> Head:
    """Move a ledger to another place, a file or a database, and close the one that there was.

    The copy has all records, and one more with an identity of its own. The source ends with a
    record that names that identity and the place. It is written before the copy can be used, so at
    no time both can be spent. Before that the empty destination is reserved for the ledger: an
    interrupted call is continued only where the reservation is found. Kept results and rows of
    streams are copied before the source is closed, and what came meanwhile after that; calling it
    again brings what is missing.

    Parameters
    ----------
    source
        Where it is. A head file of it that lies elsewhere follows the ledger.
    destination
        An empty destination, without a head file elsewhere. It has the same key.
    by
        Who does it.

    Returns
    -------
    Head
        The head of the ledger at the destination.

    Raises
    ------
    LedgerError
        When the source does not verify or was moved before, the destination is not empty, or it
        has rows of other streams.
    """
    who = short_text(by, "--by")
    same = source.is_keyed == destination.is_keyed
    require(same, "a ledger moves only to a place with the same key")
    source.verify()
    known = source.read(whole=True)
    arrived = known.moved is not None and destination.promised_to(str(known.identity)) is None
    if arrived and bring_rest(known, source, destination):  # after a move that was interrupted
        return destination.verify()

    def moving() -> Chain:
        identity = _promised(source.read(), destination)
        bring(source.read(whole=True), source, destination)
        _move(source, destination, identity, who)
        moved = destination.read()
        left = source.read(whole=True)  # while its head files are still its own
        source.hand_over(Seen(moved.length, moved.tip, moved.identity))
        return left

    # In the order in which forks wait for them.
    first, second = sorted((source.turn, destination.turn), key=lambda turn: turn.number)
    chain = first.run(lambda: second.run(moving))
    bring_rest(chain, source, destination)
    return destination.verify()


def _promised(chain: Chain, destination: Store) -> str:
    """The identity that a ledger will have at the place that is kept for it."""
    if not chain.length or chain.identity is None:
        raise LedgerError(
            "there is no ledger to move, or an earlier version wrote it",
            remedy=(
                "write the path or URL of a ledger",
                "add to a budget first: `dpframe ledger grant`",
            ),
        )
    if chain.moved is not None and chain.moved.why != destination.where:
        require_here(chain.moved)
    found = destination.promised_to(chain.identity)
    if chain.moved is None:
        return found or destination.promise(chain.identity)
    if found is None or found != chain.moved.fingerprint:
        require_here(chain.moved)  # all of it was moved
    return str(found)


def _move(source: Store, destination: Store, identity: str, who: str) -> None:
    """The source is committed first, because its transaction ends first."""

    def arriving(to: Tables, kept: Chain, begun: list[Record]) -> None:
        def leaving(tables: Tables, chain: Chain, added: list[Record]) -> None:
            if kept.length or (chain.moved is not None and chain.moved.fingerprint != identity):
                raise LedgerError(
                    "another process is moving the ledger, or moving one to this place",
                    remedy="wait until it is done, and run the command again",
                )
            records = chain.length if chain.moved is None else chain.length - 1
            last = _copied(tables, to, records)
            origin = json.dumps({"from": chain.identity, "place": source.where})
            draft = Draft("", "identified", fingerprint=identity, who=who, why=origin)
            begun.append(sealed(draft, records + 1, last.time, last.hash, source.seal))
            if chain.moved is None:
                moved = Draft("", "moved", fingerprint=identity, who=who, why=destination.where)
                added += chain.following([moved])

        source.write(leaving)

    destination.write(arriving)
    destination.forget()


def _copied(tables: Tables, to: Tables, records: int) -> Record:
    """The last of the records."""
    last: tuple[Any, ...] = ()
    for rows in rows_after(tables, 0):
        taken = [row for row in rows if row[0] <= records]
        to.insert_rows(taken)
        last = taken[-1] if taken else last
    return Record(*last)
