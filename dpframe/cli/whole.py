"""``dpframe ledger adopt | move | rekey``: what owners do with a ledger as a whole."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from dpframe.cli.output import say
from dpframe.errors import LedgerError
from dpframe.ledger import owners
from dpframe.ledger.place import store_at
from dpframe.ledger.record import KEY_VARIABLE, Head, Seal

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
    added.set_defaults(run=run, act=name, announced={})
    return added


def _adopt(parsed: Parsed) -> int:
    head = owners.adopt(store_at(parsed.ledger, create=False), parsed.by, parsed.reason)
    return _told("accepted", head)


def _move(parsed: Parsed) -> int:
    source, destination = store_at(parsed.ledger, create=False), store_at(parsed.to)
    return _told(f"moved to {destination.where}", owners.move(source, destination, parsed.by))


def _rekey(parsed: Parsed) -> int:
    key = os.environ.get(NEW_KEY_VARIABLE)
    if key is None:
        raise LedgerError(
            "there is no new key", where=NEW_KEY_VARIABLE, remedy="set the variable to it"
        )
    store = store_at(parsed.ledger, create=False)
    return _told(
        "sealed with the new key", owners.rekey(store, Seal.of(key, NEW_KEY_VARIABLE), parsed.by)
    )


def _told(what: str, head: Head) -> int:
    say(f"{what}: {head.seq} records")
    say(f"head: {head.seq} {head.hash}")
    return 0
