"""``dpframe ledger``: budgets, kept results, and a ledger as a whole."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from functools import partial
from pathlib import Path

from dpframe.api.files import Content, NotKept, destination, require_result, write
from dpframe.api.reuse import content_of, standing, words
from dpframe.charge import budget_of, convert_budget, resolve_composition
from dpframe.cli.output import Announced, BadInput, print_help, print_record, say
from dpframe.cli.pins import JSON, PLACE, Commands, Option, add_command, day, option, switch
from dpframe.core.budget import Budget, amount
from dpframe.core.exact import show_input
from dpframe.core.units import Identifier, Rows
from dpframe.core.windows import NAMES, Windows, number_of
from dpframe.errors import InvalidBudget, LedgerError, UnsupportedOperation
from dpframe.ledger import budgets, owners, report
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.approvals import ApprovalKey
from dpframe.ledger.chain import require_here
from dpframe.ledger.kept import Attempt
from dpframe.ledger.ledger import Keeping
from dpframe.ledger.owners import prune, redraw, renewals, to_redraw
from dpframe.ledger.place import DEFAULT_NAME, store_at
from dpframe.ledger.record import KEY_VARIABLE, Head, Seal
from dpframe.ledger.report import amounts, metrics, stream_words
from dpframe.ledger.store import Store
from dpframe.ledger.streaming import close_stream

# ``dpframe ledger releases | restore | prune``: results that a ledger keeps.

Parsed = argparse.Namespace

_SHORTEST = 8
"""Characters of a fingerprint that name one."""


def _attempts_in(store: Store, name: str | None) -> list[tuple[Keeping, str, Attempt]]:
    """What was begun in a budget, or in all, in the order of charges."""
    chain = store.read(whole=True)
    names = list(chain.accounts) if name is None else [chain.account(name).name]
    result = [
        (Keeping(store, budget), budget, attempt)
        for budget in names
        for attempt in chain.results.of(budget).by_number.values()
    ]
    return sorted(result, key=lambda one: one[2].number)


def _releases(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    found = _attempts_in(store, parsed.name)
    chain = store.read()  # streams have results of their own
    names = chain.accounts if parsed.name is None else [parsed.name]
    streams = [(budget, stream) for budget in names for stream in chain.streams.of(budget)]
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
        return print_record(rows)
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
        return print_record(rows)
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
    paths = _write_results(content, parsed.output)
    shown = [str(path) for path in paths]
    if parsed.json:
        record = {
            "number": attempt.number,
            "fingerprint": content.plan.fingerprint,
            "cost": attempt.cost.words(),
            "released": content.released.isoformat(),
            "output": shown if content.plan.queries else shown[0],
        }
        return print_record(record)
    say(
        f"restored to {' and '.join(shown)}: released {content.released:%Y-%m-%d %H:%M:%S} UTC, "
        f"cost {attempt.cost.words()}, paid once; plan {content.plan.fingerprint}"
    )
    return 0


def _attempt_of_plan(parsed: Parsed) -> tuple[Keeping, Attempt]:
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


def _write_results(content: Content, path: Path) -> list[Path]:
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


# ``dpframe ledger adopt | redraw | move | rekey``: what owners do with a ledger as a whole.

NEW_KEY_VARIABLE = "DPFRAME_LEDGER_NEW_KEY"
"""The environment variable with the key that is to take the place of the other."""


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
    return print_record(_fields(store, head) | streams)


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
        return print_record({"name": made.name, "stream": parsed.stream} | amounts(made))
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
        return print_record(_fields(store, head))
    say(f"{what}: {head.seq} records")
    say(f"head: {head.seq} {head.hash}")
    return 0


def _fields(store: Store, head: Head) -> dict[str, object]:
    return {"ledger": store.where, "records": head.seq, "head": head.hash}


# ``dpframe ledger``: budgets that are kept.

_AMOUNTS = ("epsilon", "delta", "rho")
_OVER = 3
"""The exit code of a budget with less left than `--at-least`."""


def add_commands(commands: Commands) -> None:
    """Add ``dpframe ledger``."""
    ledger = commands.add_parser("ledger", help="create, read, verify and raise budgets")
    ledger.set_defaults(run=lambda _: print_help(ledger))
    acts = ledger.add_subparsers(title="commands", metavar="COMMAND")
    every = option("--name", "NAME", "budget name (default: all budgets)")
    required = option("--name", "NAME", "budget name", required=True)
    default = option(
        "--name", "NAME", f"budget name (default: {DEFAULT_NAME})", default=DEFAULT_NAME
    )
    by = option("--by", "WHO", "who does this", required=True)
    reason = option("--reason", "WHY", "reason, for the record", required=True)

    def add(
        run: Callable[[Parsed], int], name: str, words: str, more: str, *options: Option
    ) -> None:
        description = f"{words.capitalize()}.{more}"
        where = option("--ledger", "WHERE", PLACE, required=True)
        added = add_command(acts, run, name, words, description, where, *options)
        added.set_defaults(act=name, announced={})

    add(
        _create,
        "create",
        "create a budget, and fix its amount",
        " Sessions with must_exist=True and jobs with --must-exist use only budgets that "
        "exist. The ledger is created if it does not exist.",
        default,
        *(option(f"--{name}", "AMOUNT", f"total {name} of the budget") for name in _AMOUNTS),
        option(
            "--composition",
            None,
            "how costs add up (default: sum)",
            choices=("sum", "zcdp", "gdp"),
            default="sum",
        ),
        option(
            "--unit",
            None,
            "privacy unit (default: the unit of the first charge)",
            choices=("rows", "identifier"),
        ),
        option(
            "--adjacency",
            None,
            "adjacency of --unit rows",
            choices=("add-remove", "change-one"),
        ),
        option(
            "--per",
            None,
            "one budget of this amount for each window of the data's time",
            choices=tuple(NAMES),
        ),
        option("--by", "WHO", "who creates it", required=True),
        JSON,
    )
    add(
        _close,
        "close",
        "end a budget, or one of its streams, on record",
        " Afterwards nothing is charged to the budget, and its streams release nothing new. "
        "This cannot be undone. Earlier charges stay, and earlier results can still be read.",
        required,
        option("--stream", "STREAM", "end only this stream; the budget stays open"),
        by,
        reason,
        JSON,
    )
    add(
        _grant,
        "grant",
        "raise a budget, on record",
        "",
        required,
        *(option(f"--{name}", "MORE", f"{name} to add to the budget") for name in _AMOUNTS),
        switch(
            "--keep-approvals",
            "keep existing approvals valid for the new amount (default: plans need approval again)",
        ),
        by,
        reason,
        JSON,
    )
    add(_show, "show", "show budgets, grants, approvals and charges", "", every, JSON)
    add(_read, "verify", "check that nothing was changed since it was written", "", every)
    add(_read, "export", "print every record, as JSON lines", "", every)
    add(
        _read,
        "metrics",
        "print budgets and charges, for monitoring",
        " The format is OpenMetrics text, which Prometheus reads, for example from a file in "
        "the folder of its node exporter.",
        every,
    )
    add(
        _check,
        "check",
        "check that enough of a budget is left",
        f" Exit code 0 if so, {_OVER} if not. A closed budget has nothing left.",
        default,
        option(
            "--at-least",
            "AMOUNT",
            "minimum epsilon that must remain (or rho, or mu squared, if the budget is counted in "
            "that)",
            required=True,
        ),
        option("--delta", "AMOUNT", "minimum delta that must remain"),
        option(
            "--day",
            "DATE",
            "for a budget per time window: any day in the window to check (default is the window "
            "with the least left)",
        ),
        JSON,
    )
    add(_releases, "releases", "list results that are kept, under way or lost", "", every, JSON)
    add(
        _restore,
        "restore",
        "write a kept result to a file",
        " This costs nothing, because it is post-processing. A result that was changed or lost is "
        "refused, and nothing is written. Each of several queries gets its own file.",
        every,
        JSON,
        option("fingerprint", "FINGERPRINT", "fingerprint of the plan, or its first characters"),
        option("--output", "FILE", "file to write: .parquet or .csv", type=Path, required=True),
        option("--number", "N", "number of the charge (default: the newest)", type=int),
    )
    add(
        _prune,
        "prune",
        "delete old results, on record",
        " Their cost stays charged. A later request for a pruned result is refused with a note, "
        "and is charged again only with --again.",
        every,
        JSON,
        option(
            "--before",
            "DATE",
            "delete results of charges before this day (UTC)",
            type=day,
            required=True,
        ),
        option(
            "--keep-last",
            "N",
            "always keep the newest N results of each budget",
            type=int,
            default=0,
        ),
        option("--by", "WHO", "who deletes them", required=True),
    )
    add(
        _adopt,
        "adopt",
        "accept a ledger whose head file is lost, on record",
        " Make sure that it is the ledger with every release and not a copy: charges to another "
        "copy are not in it. Streams use the files in their folder, and draw nothing new until "
        "`dpframe ledger redraw`.",
        by,
        JSON,
        reason,
    )
    add(
        _redraw,
        "redraw",
        "pay once more for a stream of an adopted ledger, so that it can release again",
        " Draws missing from this copy may be repeated, so the stream's full cost is charged "
        "again.",
        by,
        JSON,
        default,
        option("--stream", "STREAM", "name of the stream", required=True),
        reason,
        switch(
            "--charge-again",
            "charge the full cost of the stream once more (default: only show how much that is)",
        ),
    )
    add(
        _move,
        "move",
        "move a ledger to another file or database, and close this one",
        " All records move too. If it is interrupted, repeat the command to continue.",
        by,
        JSON,
        option("--to", "WHERE", "empty destination: path or database URL", required=True),
    )
    add(
        _rekey,
        "rekey",
        "change the key of a ledger",
        f" Set {KEY_VARIABLE} to the present key, if there is one, and {NEW_KEY_VARIABLE} to the "
        f"new one. Afterwards set {KEY_VARIABLE} to the new key.",
        by,
        JSON,
    )


def _show(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    if parsed.json:
        return print_record(report.record(store, parsed.name))
    for line in report.show(store, parsed.name):
        say(line)
    return 0


def _read(parsed: Parsed) -> int:
    read = {"verify": report.verify, "export": report.export, "metrics": metrics}[parsed.act]
    for line in read(store_at(parsed.ledger, create=False), parsed.name):
        say(line)
    return 0


def _create(parsed: Parsed) -> int:
    given = [getattr(parsed, name) for name in _AMOUNTS]
    budget, within = resolve_composition(budget_of(None, *given), parsed.composition)
    store = store_at(parsed.ledger)
    with Announced(parsed):
        unit = _unit(parsed)
        made = budgets.create(store, parsed.name, budget, within, unit, parsed.by, parsed.per)
    return _print_budget(parsed, made)


def _unit(parsed: Parsed) -> str | None:
    if parsed.per is not None:
        if parsed.unit == "rows" or parsed.adjacency is not None:
            raise InvalidBudget(
                "a budget for each window of time protects individuals, not rows",
                where=f"--per {parsed.per}",
                remedy=("leave --unit and --adjacency out", "write --unit identifier"),
            )
        return Identifier("any", parsed.per, "when").kind
    if parsed.unit == "identifier":
        if parsed.adjacency == "change-one":
            raise InvalidBudget(
                "--adjacency change-one is for rows, not for individuals",
                where="--adjacency change-one",
                remedy=("leave --adjacency out", "write --unit rows"),
            )
        return Identifier("any").kind
    if parsed.unit is None and parsed.adjacency is None:
        return None
    return Rows(parsed.adjacency or "add-remove").kind


def _close(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    if parsed.stream is None:
        return _print_budget(parsed, budgets.close(store, parsed.name, parsed.by, parsed.reason))
    stream = close_stream(store, parsed.name, parsed.stream, parsed.by, parsed.reason)
    drawn = {"stream": stream.name, "drawn": stream.drawn, "periods": stream.periods}
    if parsed.json:
        return print_record({"name": parsed.name} | drawn | {"closed": True})
    say(
        f"the stream {stream.name!r} of {parsed.name!r} is closed, with {stream.drawn} of "
        f"{stream.periods} periods drawn; what it cost stays charged"
    )
    return 0


def _grant(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    given = {name: getattr(parsed, name) for name in _AMOUNTS}
    amounts = {name: more for name, more in given.items() if more is not None}
    renewing = None
    if parsed.keep_approvals:
        key = ApprovalKey.from_environment()
        renewing = partial(renewals, name=parsed.name, by=parsed.by, key=key)
    made = budgets.grant(
        store, parsed.name, amounts, parsed.by, parsed.reason, convert_budget, renewing
    )
    return _print_budget(parsed, made)


def _print_budget(parsed: Parsed, account: Account) -> int:
    """What a budget is now."""
    if parsed.json:
        found = {"name": account.name} | report.amounts(account)
        return print_record(found | parsed.announced)
    ended = ", and is closed" if account.closed is not None else ""
    left = exact_words(account.remaining)
    say(f"{account.name}: {report.whole(account)}; {left} remains{ended}")
    return 0


def _left_on(account: Account, day: str) -> Budget:
    """The remaining budget of the window that contains a day."""
    timeline = account.scopes.windows
    if timeline is None:
        raise InvalidBudget(
            f"the budget {account.name!r} is for all time",
            where=f"--day {day}",
            remedy="leave --day out",
        )
    try:
        number = number_of(timeline.every, date.fromisoformat(day))
    except ValueError:
        raise InvalidBudget(
            f"{show_input(day)} is not a day",
            where="--day",
            remedy="write for example --day 2026-11-22",
        ) from None
    if account.closed is not None:
        return account.remaining
    return account.budget - timeline.largest(Windows(timeline.every, number, number, False))


def _check(parsed: Parsed) -> int:
    chain = store_at(parsed.ledger, create=False).read()
    require_here(chain.moved)  # nothing of it is left here
    account = chain.account(parsed.name)
    left = account.remaining if parsed.day is None else _left_on(account, parsed.day)
    wanted = amount(parsed.at_least, "--at-least"), amount(parsed.delta or 0, "--delta")
    enough = left.main >= wanted[0] and left.slack >= wanted[1]
    if parsed.json:
        found = {
            "name": account.name,
            "enough": enough,
            "at_least": {left.currency: str(wanted[0]), "delta": str(wanted[1])},
        }
        print(json.dumps(found | report.amounts(account), indent=2))
    else:
        ended = " (it was closed)" if account.closed is not None else ""
        words = "enough" if enough else f"less than {left.currency} {parsed.at_least}"
        if not enough and parsed.delta is not None:
            words += f" and delta {parsed.delta}"
        say(f"{account.name}: {exact_words(left)} remains{ended}: {words}")
    return 0 if enough else _OVER
