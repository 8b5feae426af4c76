"""``dpframe ledger adopt | redraw | move | rekey``: what owners do with a ledger as a whole."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

from dpframe.cli.output import say
from dpframe.errors import LedgerError
from dpframe.ledger import owners
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.owners import redraw, to_redraw
from dpframe.ledger.place import DEFAULT_NAME, store_at
from dpframe.ledger.record import KEY_VARIABLE, Head, Seal
from dpframe.ledger.report import amounts
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
        " Make sure that it is the ledger with every release and not a copy: charges to another "
        "copy are not in it. Streams use the files in their folder, and draw nothing new until "
        "`dpframe ledger redraw`.",
    )
    adopted.add_argument("--reason", required=True, metavar="WHY", help="reason, for the record")
    _add_redraw(acts)
    moved = _added(
        acts,
        "move",
        "move a ledger to another file or database, and close this one",
        _move,
        " All records move too. If it is interrupted, repeat the command to continue.",
    )
    moved.add_argument(
        "--to", required=True, metavar="WHERE", help="empty destination: path or database URL"
    )
    _added(
        acts,
        "rekey",
        "change the key of a ledger",
        _rekey,
        f" Set {KEY_VARIABLE} to the present key, if there is one, and {NEW_KEY_VARIABLE} to the "
        f"new one. Afterwards set {KEY_VARIABLE} to the new key.",
    )


def _add_redraw(acts: Any) -> None:
    redrawn = _added(
        acts,
        "redraw",
        "pay once more for a stream of an adopted ledger, so that it can release again",
        _redraw,
        " Draws missing from this copy may be repeated, so the stream's full cost is charged "
        "again.",
    )
    redrawn.add_argument(
        "--name",
        metavar="NAME",
        help=f"budget name (default: {DEFAULT_NAME})",
        default=DEFAULT_NAME,
    )
    redrawn.add_argument("--stream", required=True, metavar="STREAM", help="name of the stream")
    redrawn.add_argument("--reason", required=True, metavar="WHY", help="reason, for the record")
    redrawn.add_argument(
        "--charge-again",
        action="store_true",
        help="charge the full cost of the stream once more (default: only show how much that is)",
    )


def _added(acts: Any, name: str, words: str, run: Callable[[Parsed], int], more: str) -> Any:
    added = acts.add_parser(name, help=words, description=f"{words.capitalize()}.{more}")
    added.add_argument(
        "--ledger", required=True, metavar="WHERE", help="path, or sqlite:/// or postgresql:// URL"
    )
    added.add_argument("--by", required=True, metavar="WHO", help="who does this")
    added.add_argument("--json", action="store_true", help="print JSON")
    added.set_defaults(run=run, act=name, announced={})
    return added


def _adopt(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    head = owners.adopt(store, parsed.by, parsed.reason)
    still = store.read().streams.doubted()
    if not parsed.json:
        _print_head(parsed, "accepted", store, head)
        for budget, stream in still:
            say(
                f"the stream {stream.name!r} of {budget!r} knows of {stream.drawn} of "
                f"{stream.periods} periods, and draws nothing new: if it drew more since this copy "
                "was made, they would be drawn twice. Put what was drawn into the folder of the "
                "streams, or pay for it once more: `dpframe ledger redraw --charge-again`"
            )
        return 0
    found = [
        {"name": budget, "stream": stream.name, "drawn": stream.drawn, "periods": stream.periods}
        for budget, stream in still
    ]
    streams = {"streams": found} if found else {}
    print(json.dumps(_fields(store, head) | streams, indent=2))
    return 0


def _redraw(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    one = to_redraw(store, parsed.name, parsed.stream)
    if not parsed.charge_again:
        raise LedgerError(
            f"to release periods of the stream {parsed.stream!r} again costs "
            f"{one.cost.words()} once more",
            where="dpframe ledger redraw",
            why=f"it may have released more than the {one.stream.drawn} periods that this ledger "
            "records",
            remedy=(
                "put the lost rows back into the folder of the streams, which costs nothing",
                "add --charge-again, if they are lost",
            ),
        )
    made = redraw(store, one, parsed.by, parsed.reason)
    if parsed.json:
        print(json.dumps({"name": made.name, "stream": parsed.stream} | amounts(made), indent=2))
        return 0
    say(
        f"the stream {parsed.stream!r} draws again from period {one.stream.drawn + 1} on, for "
        f"{one.cost.words()} more; {exact_words(made.remaining)} remains"
    )
    return 0


def _move(parsed: Parsed) -> int:
    source = store_at(parsed.ledger, create=False)
    destination = store_at(parsed.to, pinned=False)  # the head file elsewhere follows
    head = owners.move(source, destination, parsed.by)
    return _print_head(parsed, f"moved to {destination.where}", destination, head)


def _rekey(parsed: Parsed) -> int:
    key = os.environ.get(NEW_KEY_VARIABLE)
    if key is None:
        raise LedgerError(
            f"{NEW_KEY_VARIABLE} is not set",
            where=NEW_KEY_VARIABLE,
            remedy="set it to the new key",
        )
    store = store_at(parsed.ledger, create=False)
    head = owners.rekey(store, Seal.of(key, NEW_KEY_VARIABLE), parsed.by)
    return _print_head(parsed, "sealed with the new key", store, head)


def _print_head(parsed: Parsed, what: str, store: Store, head: Head) -> int:
    """Where the ledger is now, and its head, which can be kept elsewhere and compared."""
    if parsed.json:
        print(json.dumps(_fields(store, head), indent=2))
        return 0
    say(f"{what}: {head.seq} records")
    say(f"head: {head.seq} {head.hash}")
    return 0


def _fields(store: Store, head: Head) -> dict[str, Any]:
    return {"ledger": store.where, "records": head.seq, "head": head.hash}
