"""``dpframe ledger``: budgets that are kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from datetime import date
from functools import partial
from typing import Any

from dpframe.charge import budget_of, counted_in, resolve_composition
from dpframe.cli import kept, whole
from dpframe.cli.output import Announced, print_help, say
from dpframe.core.budget import Budget, amount
from dpframe.core.exact import as_given
from dpframe.core.units import Identifier, Rows
from dpframe.core.windows import NAMES, Windows, number_of
from dpframe.errors import InvalidBudget
from dpframe.ledger import budgets, report
from dpframe.ledger.account import Account
from dpframe.ledger.amounts import exact_words
from dpframe.ledger.approvals import ApprovalKey
from dpframe.ledger.chain import require_here
from dpframe.ledger.owners import renewals
from dpframe.ledger.place import DEFAULT_NAME, store_at
from dpframe.ledger.report import metrics
from dpframe.ledger.streaming import close_stream

_AMOUNTS = ("epsilon", "delta", "rho")
_WHERE = "path, or sqlite:/// or postgresql:// URL"
_OVER = 3
"""The exit code of a budget with less left than `--at-least`."""

Parsed = argparse.Namespace


def add_commands(commands: Any) -> None:
    """Add ``dpframe ledger``."""
    ledger = commands.add_parser("ledger", help="create, read, verify and raise budgets")
    ledger.set_defaults(run=lambda _: print_help(ledger))
    acts = ledger.add_subparsers(title="commands", metavar="COMMAND")
    _add_owners(acts)
    _add_readers(acts)
    kept.add_commands(acts)
    whole.add_commands(acts)


def _added(
    acts: Any,
    name: str,
    words: str,
    run: Callable[[Parsed], int],
    *,
    named: str = "for all",
    more: str = "",
) -> Any:
    added = acts.add_parser(name, help=words, description=f"{words.capitalize()}.{more}")
    added.add_argument("--ledger", required=True, metavar="WHERE", help=_WHERE)
    default = DEFAULT_NAME if named == "default" else None
    shown = {
        "default": f"budget name (default: {DEFAULT_NAME})",
        "for all": "budget name (default: all budgets)",
        "required": "budget name",
    }[named]
    added.add_argument(
        "--name", required=named == "required", metavar="NAME", help=shown, default=default
    )
    added.set_defaults(run=run, act=name, announced={})
    return added


def _add_owners(acts: Any) -> None:
    _add_create(acts)
    closed = _added(
        acts,
        "close",
        "end a budget, or one of its streams, on record",
        _close,
        named="required",
        more=" Afterwards nothing is charged to the budget, and its streams release nothing new. "
        "This cannot be undone. Earlier charges stay, and earlier results can still be read.",
    )
    closed.add_argument(
        "--stream", metavar="STREAM", help="end only this stream; the budget stays open"
    )
    granted = _added(acts, "grant", "raise a budget, on record", _grant, named="required")
    for name in _AMOUNTS:
        granted.add_argument(f"--{name}", metavar="MORE", help=f"{name} to add to the budget")
    granted.add_argument(
        "--keep-approvals",
        action="store_true",
        help="keep existing approvals valid for the new amount (default: plans need approval "
        "again)",
    )
    for parser in (closed, granted):
        parser.add_argument("--by", required=True, metavar="WHO", help="who does this")
        parser.add_argument("--reason", required=True, metavar="WHY", help="reason, for the record")
        _json(parser)


def _add_create(acts: Any) -> None:
    created = _added(
        acts,
        "create",
        "create a budget, and fix its amount",
        _create,
        named="default",
        more=" Sessions with must_exist=True and jobs with --must-exist use only budgets that "
        "exist. The ledger is created if it does not exist.",
    )
    for name in _AMOUNTS:
        created.add_argument(f"--{name}", metavar="AMOUNT", help=f"total {name} of the budget")
    created.add_argument(
        "--composition",
        choices=("sum", "zcdp", "gdp"),
        default="sum",
        help="how costs add up (default: sum)",
    )
    created.add_argument(
        "--unit",
        choices=("rows", "identifier"),
        help="privacy unit (default: that of the first charge)",
    )
    created.add_argument(
        "--adjacency", choices=("add-remove", "change-one"), help="adjacency of --unit rows"
    )
    created.add_argument(
        "--per",
        choices=tuple(NAMES),
        help="one budget of this amount for each window of the data's time",
    )
    created.add_argument("--by", metavar="WHO", required=True, help="who creates it")
    _json(created)


def _add_readers(acts: Any) -> None:
    shown = _added(acts, "show", "show budgets, grants, approvals and charges", _show)
    _json(shown)
    _added(acts, "verify", "check that nothing was changed since it was written", _read)
    _added(acts, "export", "print every record, as JSON lines", _read)
    _added(
        acts,
        "metrics",
        "print budgets and charges, for monitoring",
        _read,
        more=" The format is OpenMetrics text, which Prometheus reads, for example from a file in "
        "the folder of its node exporter.",
    )
    checked = _added(
        acts,
        "check",
        "check that enough of a budget is left",
        _check,
        named="default",
        more=f" Exit code 0 if so, {_OVER} if not. A closed budget has nothing left.",
    )
    checked.add_argument(
        "--at-least",
        required=True,
        metavar="AMOUNT",
        help="minimum epsilon that must remain (or rho, or mu squared, if the budget is counted in "
        "that)",
    )
    checked.add_argument("--delta", metavar="AMOUNT", help="minimum delta that must remain")
    checked.add_argument(
        "--day",
        metavar="DATE",
        help="for a budget per time window: any day in the window to check (default is the window "
        "with the least left)",
    )
    _json(checked)


def _json(parser: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _show(parsed: Parsed) -> int:
    store = store_at(parsed.ledger, create=False)
    if parsed.json:
        print(json.dumps(report.record(store, parsed.name), indent=2))
        return 0
    return _print_lines(report.show(store, parsed.name))


def _read(parsed: Parsed) -> int:
    read = {"verify": report.verify, "export": report.export, "metrics": metrics}[parsed.act]
    return _print_lines(read(store_at(parsed.ledger, create=False), parsed.name))


def _print_lines(lines: Iterable[str]) -> int:
    for line in lines:
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
        print(json.dumps({"name": parsed.name} | drawn | {"closed": True}, indent=2))
        return 0
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
        store, parsed.name, amounts, parsed.by, parsed.reason, counted_in, renewing
    )
    return _print_budget(parsed, made)


def _print_budget(parsed: Parsed, account: Account) -> int:
    """What a budget is now."""
    if parsed.json:
        found = {"name": account.name} | report.amounts(account)
        print(json.dumps(found | parsed.announced, indent=2))
        return 0
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
            f"{as_given(day)} is not a day",
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
