"""``dpframe ledger adopt | move | rekey``: what owners do with a ledger as a whole."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from dpframe.cli.output import say
from dpframe.errors import LedgerError
from dpframe.ledger import owners
from dpframe.ledger.place import store_at
from dpframe.ledger.record import KEY_VARIABLE, Head, Seal
from dpframe.ledger.store import Store

NEW_KEY_VARIABLE = "DPFRAME_LEDGER_NEW_KEY"
"""The environment variable with the key that is to take the place of the other."""

Parsed = argparse.Namespace


def add_commands(acts: Any) -> None:
    """Add the commands to those of ``dpframe ledger``."""
    adopted = _added(
        acts,
        "adopt",
        "accept a ledger whose head file is lost, on record",
        _adopt,
        " Make sure that it is the one that has every release, and no copy of it: what was charged "
        "to another one is not in it.",
    )
    adopted.add_argument("--reason", required=True, metavar="WHY")
    moved = _added(
        acts,
        "move",
        "move a ledger to another file or database, and close this one",
        _move,
        " All records go along. If it is interrupted, the same command goes on.",
    )
    moved.add_argument("--to", required=True, metavar="WHERE", help="an empty place")
    _added(
        acts,
        "rekey",
        "give a ledger another key",
        _rekey,
        f" The key that it has is in {KEY_VARIABLE}, unless it has none, and the new one in "
        f"{NEW_KEY_VARIABLE}. After that the new one belongs into {KEY_VARIABLE}.",
    )


def _added(acts: Any, name: str, words: str, run: Callable[[Parsed], int], more: str) -> Any:
    added = acts.add_parser(name, help=words, description=f"{words.capitalize()}.{more}")
    added.add_argument("--ledger", required=True, metavar="WHERE")
    added.add_argument("--by", required=True, metavar="WHO")
    added.add_argument("--json", action="store_true", help="print JSON")
    added.set_defaults(run=run, act=name, announced={})
    return added


def _adopt(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    return _told(parsed, "accepted", store, owners.adopt(store, parsed.by, parsed.reason))


def _move(parsed: Parsed) -> int:
    source = store_at(parsed.ledger, create=False)
    destination = store_at(parsed.to, pinned=False)  # the head file elsewhere follows
    head = owners.move(source, destination, parsed.by)
    return _told(parsed, f"moved to {destination.where}", destination, head)


def _rekey(parsed: Parsed) -> int:
    key = os.environ.get(NEW_KEY_VARIABLE)
    if key is None:
        raise LedgerError(
            "there is no new key", where=NEW_KEY_VARIABLE, remedy="set the variable to it"
        )
    store = store_at(parsed.ledger, create=False)
    head = owners.rekey(store, Seal.of(key, NEW_KEY_VARIABLE), parsed.by)
    return _told(parsed, "sealed with the new key", store, head)


def _told(parsed: Parsed, what: str, store: Store, head: Head) -> int:
    """Where the ledger is now, and its head, which can be kept elsewhere and compared."""
    if parsed.json:
        found = {"ledger": store.where, "records": head.seq, "head": head.hash}
        print(json.dumps(found, indent=2))
        return 0
    say(f"{what}: {head.seq} records")
    say(f"head: {head.seq} {head.hash}")
    return 0
