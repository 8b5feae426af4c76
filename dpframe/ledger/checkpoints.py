"""What all records of a ledger add up to, as a record of its chain.

Who opens a long ledger begins at its last checkpoint: the head vouches for the last record, each
record for the one before it, down to the checkpoint, whose hash covers what it says. A full check
replays everything, and refuses a checkpoint that says anything else.

Charges are in it as sums. Finished results that are kept are not in it: there may be any number,
and each is looked up on request and verified by its own hash. Everything else (openings, grants,
approvals, results under way and other rare records) is named by number with a seal over the whole
record. So it can be read again and verified separately, even after the ledger was given another
key. For that reason results that were over before it was given that key are named as well.
Checkpoints of earlier versions name all results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from dpframe.ledger.account import Account
from dpframe.ledger.approvals import Approval
from dpframe.ledger.exact_text import from_hex, hex_text
from dpframe.ledger.kept import RESULTS, Results
from dpframe.ledger.record import Record, Seal

EVERY = 1024
"""Records between two checkpoints, at least."""

SUMMED = frozenset({"charged", "released", "failed", "checkpoint", "rekeyed"})
"""Kinds of records whose sums a checkpoint holds."""


class Summed(Protocol):
    """Records that were read in order, and what they add up to (see `dpframe.ledger.chain`)."""

    seal: Seal
    whole: bool
    length: int
    checkpoint: int
    kept: list[Record]
    accounts: dict[str, Account]
    approvals: dict[str, list[Approval]]
    results: Results

    def extend(self, record: Record) -> None:
        """Append a record whose hash is known to be right."""
        ...


def is_due(chain: Summed) -> bool:
    """Whether to write one; less often where it is long, so that they take little room."""
    since = chain.length - chain.checkpoint
    parts = sum(account.scopes.size for account in chain.accounts.values())
    if since < EVERY:
        return False
    named = len(_named(chain, chain.results.older.since))
    return since >= named + len(chain.accounts) + parts


def _named(chain: Summed, since: int | None) -> list[Record]:
    """The records that a checkpoint names. Records of results are named only if the result is under
    way or was begun before the ledger got its key. With `since=None` all are named, as in earlier
    versions.
    """

    def is_named(record: Record) -> bool:
        if since is None or record.act not in RESULTS:
            return True
        if record.act == "begun":
            is_open = record.seq + 1 in chain.accounts[record.name].open
            return is_open or record.seq < since
        return (record.refers or 0) <= since

    return [record for record in chain.kept if is_named(record)]


def state_of(chain: Summed, seal: Seal, since: int | None) -> str:
    """What the records so far add up to, in one form only.

    Parameters
    ----------
    chain
        The records.
    seal
        The state of the named records.
    since
        The number of the record that gave the ledger its key, 0 for none; None for the form that
        earlier versions wrote.
    """
    spent = {
        account.name: [
            hex_text(account.spent.main),
            hex_text(account.spent.slack),
            account.unit,
            account.charges,
            sorted(account.open),
        ]
        for account in chain.accounts.values()
    }
    kept = [[record.seq, seal.kept(record)] for record in _named(chain, since)]
    used = [
        [approval.number, approval.used]
        for approvals in chain.approvals.values()
        for approval in approvals
        if approval.used
    ]
    state: dict[str, Any] = {"kept": kept, "spent": spent, "used": used}
    scopes = {a.name: found for a in chain.accounts.values() if (found := a.scopes.state())}
    if since is not None:
        state["results"] = since
    if scopes:  # left out where nothing has any, as it always was
        state["scopes"] = scopes
    return json.dumps(state, separators=(",", ":"))


def kept_numbers(checkpoint: Record) -> list[int]:
    """The numbers of the records that a checkpoint refers to.

    Raises
    ------
    ValueError, TypeError, KeyError
        When the record is not a checkpoint.
    """
    return [int(number) for number, _ in _state(checkpoint)["kept"]]


def restore(chain: Summed, checkpoint: Record, rows: Iterable[tuple[Any, ...]]) -> None:
    """Bring an empty chain to a checkpoint whose hash is right, with the rows that it refers to.

    Raises
    ------
    ValueError, TypeError, KeyError
        When it makes no sense, or the rows are not those.
    """
    state = _state(checkpoint)
    if "results" in state:
        older = chain.results.older
        older.until, older.since = checkpoint.seq, int(state["results"])
    records = [Record(*row) for row in rows]
    seals = [[record.seq, chain.seal.kept(record)] for record in records]
    if seals != state["kept"]:
        raise ValueError
    for record in records:
        chain.extend(record)
    if list(state["spent"]) != list(chain.accounts):
        raise ValueError
    for name, (main, slack, unit, charges, unsettled) in state["spent"].items():
        account = chain.accounts[name]
        account.spent = account.budget.of(from_hex(main), from_hex(slack))
        account.unit, account.charges, account.open = unit, charges, set(unsettled)
    for name, found in state.get("scopes", {}).items():
        chain.accounts[name].scopes.restore(found)
    used = dict(state["used"])
    for name, approvals in chain.approvals.items():
        chain.approvals[name] = [replace(a, used=used.pop(a.number, 0)) for a in approvals]
    if used:
        raise ValueError
    chain.whole = False


def _state(checkpoint: Record) -> dict[str, Any]:
    fields = json.loads(checkpoint.why or "")
    if checkpoint.act == "rekeyed":
        fields = json.loads(fields["state"])
    if not isinstance(fields, dict) or fields.keys() - {"scopes", "results"} != {
        "kept",
        "spent",
        "used",
    }:
        raise ValueError
    return fields
