"""Whether a ledger may still be used where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpframe.errors import LedgerError

if TYPE_CHECKING:
    from dpframe.ledger.chain import Chain


def require_here(chain: Chain) -> None:
    """Refuse to write to a ledger that goes on elsewhere.

    Raises
    ------
    LedgerError
        With where it went.
    """
    if chain.moved is not None:
        raise LedgerError(
            f"the ledger was moved to {chain.moved.why} on {chain.moved.time[:10]}",
            remedy="use it there; this one can only be read",
        )


def unwitnessed(chain: Chain, name: str) -> LedgerError:
    """The refusal of a ledger without its head file: a copy has none."""
    return LedgerError(
        f"the ledger does not verify: it has {chain.length} records, and its head file {name!r} is "
        "missing, as with a copy",
        remedy="put both files in place; if the head file is lost, and this is no copy, an owner "
        "can accept the ledger as it is, on record: `dpframe ledger adopt`",
    )
