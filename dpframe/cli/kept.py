"""``dpframe ledger releases | restore | prune``: results that a ledger keeps."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

from dpframe.api.files import destination, require_result, write
from dpframe.api.kept_frame import standing, words
from dpframe.api.packed import Content, NotKept
from dpframe.api.reuse import content_of
from dpframe.cli.input import BadInput
from dpframe.cli.output import say
from dpframe.errors import LedgerError, UnsupportedOperation
from dpframe.ledger.chain import Chain
from dpframe.ledger.kept import Attempt
from dpframe.ledger.owners import prune
from dpframe.ledger.place import store_at
from dpframe.ledger.report import stream_words
from dpframe.ledger.store import Store
from dpframe.ledger.stored import StoredKeeping
from dpframe.ledger.streams import OpenedStream

Parsed = argparse.Namespace

_SHORTEST = 8
"""Characters of a fingerprint that name one."""


def add_commands(acts: Any) -> None:
    """Add the commands to those of ``dpframe ledger``."""
    listed = _added(acts, "releases", "list results that are kept, under way or lost", "")
    listed.set_defaults(run=_releases)
    restored = _added(
        acts,
        "restore",
        "write a kept result to a file",
        " This costs nothing, because it is post-processing. A result that was changed or lost is "
        "refused, and nothing is written. Each of several queries gets its own file.",
    )
    restored.add_argument(
        "fingerprint",
        metavar="FINGERPRINT",
        help="fingerprint of the plan, or its first characters",
    )
    restored.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="file to write: .parquet or .csv"
    )
    restored.add_argument(
        "--number", type=int, metavar="N", help="number of the charge (default: the newest)"
    )
    restored.set_defaults(run=_restore)
    pruned = _added(
        acts,
        "prune",
        "delete old results, on record",
        " Their cost stays charged. A later request for a pruned result is refused with a note, "
        "and is charged again only with --again.",
    )
    pruned.add_argument(
        "--before",
        type=_day,
        required=True,
        metavar="DATE",
        help="delete results of charges before this day (UTC)",
    )
    pruned.add_argument(
        "--keep-last",
        type=int,
        default=0,
        metavar="N",
        help="always keep the newest N results of each budget",
    )
    pruned.add_argument("--by", required=True, metavar="WHO", help="who deletes them")
    pruned.set_defaults(run=_prune)


def _day(text: str) -> date:
    return date.fromisoformat(text)


def _added(acts: Any, name: str, words: str, more: str) -> Any:
    added = acts.add_parser(name, help=words, description=f"{words.capitalize()}.{more}")
    added.add_argument(
        "--ledger", required=True, metavar="WHERE", help="path, or sqlite:/// or postgresql:// URL"
    )
    added.add_argument("--name", metavar="NAME", help="budget name (default: all budgets)")
    added.add_argument("--json", action="store_true", help="print JSON")
    added.set_defaults(act=name, announced={})
    return added


def _attempts_in(store: Store, name: str | None) -> list[tuple[StoredKeeping, str, Attempt]]:
    """What was begun in a budget, or in all, in the order of charges."""
    chain = store.read(whole=True)
    names = list(chain.accounts) if name is None else [chain.account(name).name]
    result = [
        (StoredKeeping(store, budget), budget, attempt)
        for budget in names
        for attempt in chain.results.of(budget).by_number.values()
    ]
    return sorted(result, key=lambda one: one[2].number)


def _streams(chain: Chain, name: str | None) -> list[tuple[str, OpenedStream]]:
    """The streams of a budget, or of all, which have results of their own."""
    names = chain.accounts if name is None else [name]
    return [(budget, stream) for budget in names for stream in chain.streams.of(budget)]


def _releases(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    found = _attempts_in(store, parsed.name)
    streams = _streams(store.read(), parsed.name)
    rows = [
        {
            "number": attempt.number,
            "name": budget,
            "time": attempt.time.isoformat(),
            "status": standing(keeping, attempt),
            "fingerprint": attempt.begun.identity.fingerprint,
            **words(attempt),
        }
        for keeping, budget, attempt in found
    ]
    if parsed.json:
        print(json.dumps(rows, indent=2))
        return 0
    if not rows and not streams:
        say("nothing is kept; sessions with keep_releases=True and runs with --run-id keep results")
    for row in rows:
        run = f"  run {row['run']}" if row["run"] else ""
        say(
            f"{row['name']}  {row['number']}  {str(row['time'])[:19].replace('T', ' ')}  "
            f"{row['status']}  {row['cost']}  plan {str(row['fingerprint'])[:16]}{run}  "
            f"{row['query']}"
        )
    for budget, stream in streams:
        say(f"{budget}  {stream_words(stream)}; what was drawn is handed out by session.stream")
    if any(row["status"] in ("lost", "missing", "CHANGED") for row in rows):
        say(
            "a lost result stays charged. Put it back from a backup if there is one, or pay again: "
            "`dpframe run JOB --run-id RUN --again`"
        )
    return 0


def _prune(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    found = prune(store, parsed.name, parsed.by, parsed.before, parsed.keep_last)
    if parsed.json:
        rows = [
            {"name": one.name, "number": a.number, "fingerprint": a.begun.identity.fingerprint}
            for one in found
            for a in one.attempts
        ]
        print(json.dumps(rows, indent=2))
        return 0
    if not found:
        say("nothing is kept that is so old")
    for one in found:
        say(f"{one.name}: pruned {len(one.attempts)} results; what they cost stays charged")
    return 0


def _restore(parsed: Parsed) -> int:
    keeping, attempt = _attempt_of_plan(parsed)
    try:
        content = content_of(keeping, attempt)
    except NotKept as why:
        raise LedgerError(
            f"the result of the charge {attempt.number} cannot be restored: {why}",
            remedy=(
                "restore its file from a backup",
                "run the job again with --again, which is charged",
            ),
        ) from None
    paths = _written(content, parsed.output)
    shown = [str(path) for path in paths]
    if parsed.json:
        record = {
            "number": attempt.number,
            "fingerprint": content.plan.fingerprint,
            "cost": attempt.cost.words(),
            "released": content.released.isoformat(),
            "output": shown if content.plan.queries else shown[0],
        }
        print(json.dumps(record, indent=2))
        return 0
    say(
        f"restored to {' and '.join(shown)}: released {content.released:%Y-%m-%d %H:%M:%S} UTC, "
        f"cost {attempt.cost.words()}, paid once; plan {content.plan.fingerprint}"
    )
    return 0


def _attempt_of_plan(parsed: Parsed) -> tuple[StoredKeeping, Attempt]:
    """The newest kept result of the plan."""
    given = parsed.fingerprint.lower()
    kept = [
        (keeping, attempt)
        for keeping, _, attempt in _attempts_in(store_at(parsed.ledger, create=False), parsed.name)
        if attempt.content is not None and parsed.number in (None, attempt.number)
    ]
    found = [one for one in kept if one[1].begun.identity.fingerprint.startswith(given)]
    plans = {attempt.begun.identity.fingerprint for _, attempt in found}
    if len(given) < _SHORTEST or len(plans) > 1:
        raise BadInput(
            UnsupportedOperation(
                f"{len(plans)} plans have a fingerprint that begins so"
                if len(plans) > 1
                else f"a fingerprint is given by {_SHORTEST} characters or more",
                remedy="write more characters of it: `dpframe ledger releases` lists them",
            ),
            Path(parsed.fingerprint),
        )
    if not found:
        raise LedgerError(
            f"no result of the plan {given[:16]!r} is kept",
            remedy="run `dpframe ledger releases`, which lists the results that are kept",
        )
    return found[-1]


def _written(content: Content, path: Path) -> list[Path]:
    count = len(content.frames)
    numbers = range(1, count + 1)
    paths = [path]
    if content.plan.queries:
        paths = [path.with_name(f"{path.stem}-{number}{path.suffix}") for number in numbers]
    with ExitStack() as stack:
        made = [stack.enter_context(destination(place)) for place in paths]
        for place in paths:
            require_result(place)
        for number, frame, place, new in zip(numbers, content.frames, paths, made, strict=True):
            query = number if content.plan.queries else None
            write(frame, content.plan, place, new, query, content.released)
    return paths
