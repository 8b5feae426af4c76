"""Whether a ledger may still be used where it is."""

from __future__ import annotations

from dpframe.errors import LedgerError
from dpframe.ledger.record import Head, Record, Seal


def require_here(moved: Record | None) -> None:
    """Refuse to write to a ledger that goes on elsewhere, as a record of it says.

    Raises
    ------
    LedgerError
        With where it went.
    """
    if moved is not None:
        raise LedgerError(
            f"the ledger was moved to {moved.why} on {moved.time[:10]}",
            why="a ledger that was moved can only be read",
            remedy=f"use it there: ledger={moved.why!r}",
        )


def unwitnessed(records: int, name: str) -> LedgerError:
    """The refusal of a ledger without its head file: a copy has none."""
    return LedgerError(
        f"the ledger does not verify: it has {records} records, but its head file {name!r} is "
        "missing, as after copying one file alone",
        remedy=(
            "put the head file back next to the ledger",
            "if it is lost and this is not a copy, accept the ledger: `dpframe ledger adopt`",
        ),
    )


def promised(seal: Seal, identity: str, origin: str) -> Head:
    """The head of an empty destination that is reserved for a ledger: a head without records,
    with the identity that the ledger will have there and, in place of a hash, the one that it has
    now.
    """
    return seal.head(0, identity + origin)


def kept_for_another() -> LedgerError:
    """The refusal of a place that is kept for a ledger."""
    return LedgerError(
        "a move of a ledger to this place was started and not finished",
        remedy=(
            "finish it: run the same `dpframe ledger move` again",
            "empty this place, if the ledger stays where it is",
        ),
    )
