"""Moves the contents next to a ledger with it: kept results, and rows of streams.

It is copied twice, before the old place is closed and after that, what is there already left alone.
So users of the new place find everything recorded by then, and the same call finishes a move that
was interrupted. Only contents with the digest in a record are copied, and results without a
record yet, which have their own seal.
"""

from __future__ import annotations

from dpframe.errors import LedgerError
from dpframe.ledger.chain import Chain
from dpframe.ledger.kept import Attempt, content_digest
from dpframe.ledger.store import Store
from dpframe.ledger.streaming import digest_of
from dpframe.ledger.streams import Batch, OpenedStream


def bring(chain: Chain, source: Store, destination: Store) -> int:
    """Copy what records of a ledger name, and is not there; how much that was.

    Parameters
    ----------
    chain
        The ledger at the source.
    source, destination
        Its places; the second is kept for it, or has it.

    Raises
    ------
    LedgerError
        When it cannot be copied, or rows of other streams lie there.
    """
    copied = 0
    for name in chain.accounts:
        for attempt in chain.results.of(name).by_number.values():
            copied += _bring_result(attempt, source, destination)
    for stream in chain.streams.all():
        for batch in stream.batches:
            copied += _bring_rows(stream, batch, source, destination)
    return copied


def bring_rest(chain: Chain, source: Store, destination: Store) -> int:
    """The same to where a ledger was moved; nothing where that is somewhere else."""
    if chain.moved is None or destination.where != chain.moved.why:
        return 0
    if destination.read().identity != chain.moved.fingerprint:
        return 0
    return bring(chain, source, destination)


def _bring_result(attempt: Attempt, source: Store, destination: Store) -> int:
    number, count = attempt.number, len(attempt.begun.identity.outputs)
    if attempt.pruned is not None:
        return 0

    def is_right(blobs: list[bytes]) -> bool:
        return attempt.content in (None, content_digest(blobs))

    there = destination.contents.read(number, count, is_right)
    if there is not None and is_right(there):
        return 0
    blobs = source.contents.read(number, count, is_right)
    if blobs is None or not is_right(blobs):
        return 0
    destination.contents.write(number, blobs)
    return 1


def _bring_rows(stream: OpenedStream, batch: Batch, source: Store, destination: Store) -> int:
    rows = destination.rows_of_streams()
    there = rows.read(stream.number, batch.first)
    copied = 0
    if there is None:
        content = source.rows_of_streams().read(stream.number, batch.first)
        if content is None or digest_of(content) != batch.digest:
            return 0  # it was lost before
        there, copied = rows.keep(stream.number, batch.first, content), 1
    if digest_of(there) != batch.digest:
        raise LedgerError(
            f"{destination.where!r} has other rows where those of the stream {stream.name!r} "
            "belong",
            remedy="move those rows to another place, and run the same command again: it continues",
        )
    return copied
